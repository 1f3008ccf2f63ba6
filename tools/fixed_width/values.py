"""What the values of a field stand for: which are legal, which registers, how they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

from cyclescope.isa.notation import FUNCTIONS

from .records import Field, Record
from .samples import WHOLE, Sample, Trials
from .text import Texts

_NUMBER = re.compile(r"^(.*?)(-?)(0x[0-9a-f]+|\d+)(.*)$")
MASKS = {"logical_imm32": "bit_mask_32", "logical_imm64": "bit_mask_64"}
SYSTEM = ["range", 0x8000, 0xFFFF]  # below are instructions without such an operand
Key = tuple[str, int]


class Merged:
    """Tables by class of operand, those that agree with each other put together.

    The values of one instruction can lack some that another has of the same class.
    """

    def __init__(self) -> None:
        self._tables: dict[Key, list[Texts]] = {}

    def add(self, key: Key, table: Texts) -> Texts:
        """The table that has all values of the given one."""
        known = self._tables.setdefault(key, [])
        for other in known:
            if all(other.get(value, text) == text for value, text in table.items()):
                other.update(table)
                return other
        known.append(dict(table))
        return known[-1]

    def largest(self) -> dict[Key, Texts]:
        """The largest table of each class."""
        return {key: max(tables, key=len) for key, tables in self._tables.items()}


def registers(field: Field, trials: Trials) -> Texts:
    """Registers by value of a field, as LLVM calls them; empty for what holds none."""
    read = {v: a.operands[field.operand] for v, a in trials.items() if a and len(a.operands) > field.operand}
    return {v: "" if name == "?" else name for v, name in read.items()} if field.register else {}


def legal(
    record: Record, place: int, sample: Sample, trials: list[Trials], everywhere: set[int]
) -> list[Any]:
    """Legal values as `[]` (all), `["range", first, last]`, `["bits", hex]` or `["mask", function]`."""
    field = record.fields[place]
    found = {value for value, answer in trials[place].items() if answer}
    found |= everywhere & set(clashes(record, place, sample, trials))
    if found == set(trials[place]):
        return []
    if field.width <= WHOLE:
        return ["bits", f"{sum(1 << value for value in found):x}"]
    if field.cls.endswith("sysreg_op"):
        return SYSTEM
    first, last = min(found), max(found)
    if all((first <= value <= last) == (value in found) for value in trials[place]):
        return ["range", first, last]
    return ["mask", MASKS[field.cls]]


def clashes(record: Record, place: int, sample: Sample, trials: list[Trials]) -> list[int]:
    """Illegal values of a register field that other registers of the sample have."""
    if not record.fields[place].register:
        return []
    others = {
        value
        for k, (field, value) in enumerate(zip(record.fields, sample.values, strict=True))
        if k != place and field.register
    }
    return [value for value, answer in trials[place].items() if not answer and value in others]


def rule(texts: Texts, width: int) -> list[Any]:
    """The shortest way to say how values are written.

    `["number", before, after, scale, bias, signed, base, exceptions]`, `["function", name, exceptions]` or
    `["list", texts]`, exceptions being pairs of value and text.
    """
    few = max(2, len(texts) // 8)
    found = [r for r in _numbers(texts, width) if len(r[-1]) <= few]
    for name, function in FUNCTIONS.items():
        exceptions = _exceptions(texts, function)
        if width > WHOLE and len(exceptions) <= max(few, 96):
            found.append(["function", name, exceptions])
    if found:
        return min(found, key=lambda r: len(r[-1]))
    if width > WHOLE + 2:
        raise ValueError(f"no rule for {sorted(texts.items())[:8]}")
    return ["list", [texts.get(value, "") for value in range(1 << width)]]


def _numbers(texts: Texts, width: int) -> Iterable[list[Any]]:
    """Rules that write a multiple of the value."""
    read = {value: match for value, text in texts.items() if (match := _NUMBER.match(text))}
    values = sorted(read)
    for one, two in pairwise(values[:5]):
        before, after = read[two][1], read[two][4]
        base = 16 if read[two][3].startswith("0x") else 10
        scale, rest = divmod(_number(read[two]) - _number(read[one]), two - one)
        bias = _number(read[one]) - scale * one
        for signed in (0, 1):
            made = ["number", before, after, scale, bias, signed, base]
            if scale and not rest:
                yield [*made, _exceptions(texts, partial(number_text, made, width))]


def _number(match: re.Match[str]) -> int:
    return int(match[2] + match[3], 0) if match[3].startswith("0x") else int(match[2] + match[3])


def number_text(rule_: list[Any], width: int, value: int) -> str:
    """A value by a rule of numbers."""
    _, before, after, scale, bias, signed, base = rule_
    if signed and value >> width - 1:
        value -= 1 << width
    number = value * scale + bias
    return f"{before}{number:#x}{after}" if base == 16 else f"{before}{number}{after}"


def _exceptions(texts: Texts, function: Callable[[int], str]) -> list[list[Any]]:
    wrong = []
    for value, text in sorted(texts.items()):
        try:
            same = function(value) == text
        except (ValueError, IndexError):
            same = False
        if not same:
            wrong.append([value, text])
    return wrong
