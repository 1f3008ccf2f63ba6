"""Machine code of every instruction, and what LLVM reads in it when a field changes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .probe import Answer, Probe, features
from .records import Field, Record

WHOLE = 9  # fields of so many bits are tried with every value
TRIES = (8, 40, 400, 6000)
NAMED = {  # numbers that have names: of state, on AArch64 what user code reaches
    "mrs_sysreg_op": range(0xD800, 0xE000),
    "msr_sysreg_op": range(0xD800, 0xE000),
    "csr_sysreg": range(1 << 12),
    "VTypeIOp10": range(1 << 10),
    "VTypeIOp11": range(1 << 11),
}


@dataclass
class Sample:
    """Values of all fields with which LLVM reads the instruction."""

    values: list[int]
    answer: Answer


Trials = dict[int, Answer | None]  # by value of a field, None where it is another instruction or none


def encoded(record: Record, values: Sequence[int]) -> bytes:
    """Machine code with these values of the fields."""
    word = record.base
    for field, value in zip(record.fields, values, strict=True):
        for bit, position in enumerate(field.positions):
            word |= (value >> bit & 1) << position
    return word.to_bytes(record.length, "little")


def find(probe: Probe, records: Sequence[Record]) -> dict[str, Sample]:
    """A sample of every instruction."""
    found: dict[str, Sample] = {}
    for tries in TRIES:
        left = [r for r in records if r.name not in found]
        tried = [(r, values) for r in left for values in _guesses(r, tries)]
        answers = probe.decode((features(probe.isa, r), encoded(r, values)) for r, values in tried)
        for (record, values), answer in zip(tried, answers, strict=True):
            if answer and answer.opcode == record.name:
                found.setdefault(record.name, Sample(values, answer))
    return found


def _guesses(record: Record, count: int) -> Iterator[list[int]]:
    """Different registers, then anything."""
    draw = random.Random(record.name)
    for turn in range(count):
        yield [
            _guess(draw, field, place, turn) & (1 << field.width) - 1
            for place, field in enumerate(record.fields)
        ]


def _guess(draw: random.Random, field: Field, place: int, turn: int) -> int:
    if field.register and turn < 3:
        return (place + 1, place + 9, 4 * place + 4)[turn]
    if turn < 8:
        return (1, 2, 0, 1, 5, 3, 8, 12)[turn] * (1 if turn & 1 else place + 1)
    return draw.getrandbits(field.width)


def vary(probe: Probe, records: Sequence[Record], samples: dict[str, Sample]) -> dict[str, list[Trials]]:
    """For every field of every instruction, what other values make of the sample."""
    asked = []
    for record in records:
        for place, field in enumerate(record.fields):
            asked += [(record, place, value) for value in values_to_try(field)]
    answers = probe.decode(
        (features(probe.isa, record), encoded(record, _changed(samples[record.name], place, value)))
        for record, place, value in asked
    )
    trials: dict[str, list[Trials]] = {r.name: [{} for _ in r.fields] for r in records}
    for (record, place, value), answer in zip(asked, answers, strict=True):
        same = answer if answer and answer.opcode == record.name else None
        trials[record.name][place][value] = same
    return trials


def _changed(sample: Sample, place: int, value: int) -> list[int]:
    return [*sample.values[:place], value, *sample.values[place + 1 :]]


def values_to_try(field: Field) -> list[int]:
    """Every value, or some of all sizes."""
    if field.width <= WHOLE:
        return list(range(1 << field.width))
    draw = random.Random(field.width)
    some = [n + d for k in range(field.width + 1) for n in (1 << k,) for d in (-2, -1, 0, 1)]
    some += [draw.getrandbits(field.width) for _ in range(24)]
    some += NAMED.get(field.cls, ())
    return sorted({value & (1 << field.width) - 1 for value in some})
