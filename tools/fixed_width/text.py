"""How LLVM writes an instruction, taken apart: a template, and a text per field and value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import takewhile

from .records import Record
from .samples import Sample, Trials

_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_GROUP = r"((?:\{[^}]*\}|[^{}])*?)"  # a list in braces is one operand
_PAIR = r"(\w+, \w+)"
Texts = dict[int, str]


class NotApartError(ValueError):
    """LLVM writes the instruction in another way than its template says."""


@dataclass
class Written:
    """Template with a place per text, and what is written there: the field, and the text by its value."""

    template: str = ""
    places: list[tuple[int, Texts]] = field(default_factory=list)

    def add(self, place: int, texts: Texts) -> None:
        """Write a field."""
        self.template += f"{{{len(self.places)}}}"
        self.places.append((place, texts))

    def literal(self, text: str) -> None:
        """Write text."""
        self.template += text.replace("{", "{{").replace("}", "}}")


class Reader:
    """Finds the operands in what LLVM writes."""

    def __init__(self, record: Record) -> None:
        self.literals, self.regions = _regions(record)
        blank = [_blank(literal) for literal in self.literals]
        pairs = {place for place, f in enumerate(record.fields) if "PairClass" in f.cls}
        groups = [_PAIR if pairs.intersection(places) else _GROUP for places in self.regions]
        parts = [group + literal for group, literal in zip(groups, blank[1:], strict=True)]
        self._pattern = re.compile(blank[0] + "".join(parts) + "$")

    def read(self, text: str) -> tuple[str, ...] | None:
        """Texts of the regions; None where another mnemonic is written."""
        match = self._pattern.match(text)
        return match.groups() if match else None


def take_apart(record: Record, sample: Sample, trials: list[Trials]) -> Written:
    """How an instruction is written. Raises NotApartError."""
    reader = Reader(record)
    whole = reader.read(sample.answer.text)
    if whole is None:
        raise NotApartError(f"{record.name}: {sample.answer.text}")
    read = [_read(reader, trial) for trial in trials]
    read = [_only(place, reader, whole, by_value) for place, by_value in enumerate(read)]
    written = Written()
    written.literal(reader.literals[0])
    for number, places in enumerate(reader.regions):
        texts = [(p, {v: parts[number] for v, parts in read[p].items()}) for p in dict.fromkeys(places)]
        _write_region(written, whole[number], texts)
        written.literal(reader.literals[number + 1])
    written.template = " ".join(written.template.split())
    _unshifted_index(record, written)
    return written


def _unshifted_index(record: Record, written: Written) -> None:
    """LLVM writes a shift behind a 64-bit index where there is none, but for an alias that hides it."""
    for number, (place, texts) in enumerate(written.places):
        if record.fields[place].cls.startswith("ro_Xextend"):
            written.template = written.template.replace(f", {{{number}}}", f"{{{number}}}")
            written.places[number] = place, {v: f", {t}" if v else "" for v, t in texts.items()}


def from_template(record: Record, known: dict[tuple[str, int], Texts]) -> Written:
    """The same by LLVM's template, with the texts that operands of these classes have elsewhere."""
    reader, written = Reader(record), Written()
    written.literal(reader.literals[0])
    for places, literal in zip(reader.regions, reader.literals[1:], strict=True):
        for place in places:
            written.add(place, known[record.fields[place].cls, record.fields[place].width])
        written.literal(literal)
    written.template = " ".join(written.template.split())
    return written


def _regions(record: Record) -> tuple[list[str], list[list[int]]]:
    """Text between the operands, and the fields of operands that stand next to each other."""
    regions: list[list[int]] = []
    literals, end = [""], 0
    for match in _NAME.finditer(record.text):
        between = record.text[end : match.start()]
        if between or not regions:
            literals[-1] += between
            literals.append("")
            regions.append([])
        name = match[1] or match[2]
        places = [record.field_of(part) for part in record.groups.get(name, [name])]
        regions[-1] += [place for place in places if place >= 0]
        end = match.end()
    literals[-1] += record.text[end:]
    return literals, regions


def _blank(literal: str) -> str:
    """A pattern of a literal, with one blank for any."""
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", literal))


def _read(reader: Reader, trial: Trials) -> dict[int, tuple[str, ...]]:
    found = {value: reader.read(answer.text) for value, answer in trial.items() if answer}
    return {value: parts for value, parts in found.items() if parts is not None}


def _only(
    place: int, reader: Reader, whole: tuple[str, ...], by_value: dict[int, tuple[str, ...]]
) -> dict[int, tuple[str, ...]]:
    """Values that change nothing but the regions that the field is in, or all where nearly none does.

    The amount that CM.PUSH and its like move the stack pointer by depends on the list of registers.
    """
    others = [number for number, places in enumerate(reader.regions) if place not in places]
    found = {v: parts for v, parts in by_value.items() if all(parts[n] == whole[n] for n in others)}
    return found if 2 * len(found) >= len(by_value) else by_value


def _write_region(written: Written, whole: str, fields: list[tuple[int, Texts]]) -> None:
    """Write fields that stand next to each other: what changes with one of them is its text."""
    if len(fields) == 1:
        written.add(*fields[0])
        return
    spans = sorted((*_span(whole, texts), place, texts) for place, texts in fields)
    end = 0
    for start, stop, place, texts in spans:
        if start < end:
            raise NotApartError(f"{whole}: fields overlap")
        word = len(re.search(r"\w*$", whole[end:start])[0])  # type: ignore[index]
        tail = len(whole) - stop
        written.literal(whole[end : start - word])
        written.add(place, {v: text[start - word : len(text) - tail] for v, text in texts.items()})
        end = stop
    written.literal(whole[end:])


def _span(whole: str, texts: Texts) -> tuple[int, int]:
    """The part of a region that changes with a field."""
    different = {whole, *texts.values()}
    start = _common(different)
    return start, len(whole) - _common({text[start:][::-1] for text in different})


def _common(texts: set[str]) -> int:
    """How many characters all texts begin with."""
    alike = takewhile(lambda characters: len(set(characters)) == 1, zip(*texts, strict=False))
    return sum(1 for _ in alike)
