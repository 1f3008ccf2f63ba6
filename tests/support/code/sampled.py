"""Readings of the fake core (`tests/unit/native/fake_core.c`), and what it is given to run."""

from __future__ import annotations

from typing import NamedTuple

from cyclescope.kernel.kernel import CANARY, FAST

HERTZ = 3.7e9  # of the fake core
WIDE = CANARY | FAST
NOPS, CHAIN = "n" * 8, "a"


class Reading(NamedTuple):
    kernel: int
    status: int
    cycles: float
    accepted: int
    rejected: int
    disturbed: int
    short_units: int
    long_units: int
    trips: int
    other: float = 0.0


class Answer(NamedTuple):
    ticks: float
    nop: float
    clean: float
    loop_end: float
    canary: float
    readings: list[Reading]
    seconds: float
    asked: int  # for another CPU
    beats: int  # signs of life


def wide(*bodies):
    return [(body, WIDE) for body in bodies]


def samples(found):
    """How many were taken: pairs of two lengths."""
    return sum(r.accepted + r.rejected for r in found.readings)
