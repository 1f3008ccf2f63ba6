"""Which instructions ignore what one register for all their sources holds?

A slow operation and the candidate alternate on one register. If the candidate waits for the register, the
loop takes as long as both latencies; if not, it is as short as one in which the slow operation waits for
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from cyclescope.model.facts import DEPENDENCY_BREAKING, CoreAnswer
from cyclescope.probe.code import KernelLine, written
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    chain,
    first_of,
    parallel,
)


class Group(NamedTuple):
    """Candidates with the same operands, as templates with a target t and a source u.

    `slow` make t of u; the first one that shows something counts. `alone` are the operands of a candidate
    that reads one register, `apart` those of one that reads others.
    """

    slow: tuple[str, ...]
    forms: tuple[str, ...]
    alone: str
    apart: str
    quick: tuple[str, ...] = ()


_NAMES = (
    "PXOR", "XORPS", "XORPD", "PSUBB", "PSUBW", "PSUBD", "PSUBQ", "PSUBSB", "PSUBUSB", "PANDN", "ANDNPS",
    "PCMPEQB", "PCMPEQW", "PCMPEQD", "PCMPEQQ", "PCMPGTB", "PCMPGTD", "PCMPGTQ", "PADDD", "PAND",
)  # fmt: skip
_QUICK = ("PXOR", "PSUBD", "PCMPEQD", "PCMPGTD", "PADDD")
GROUPS: Mapping[str, tuple[Group, ...]] = {
    "x86-64": (
        Group(
            ("IMUL (R64, R64, I8): t u #3", "POPCNT (R64, R64): t u"),
            ("XOR_31 (R64, R64)", "XOR_31 (R32, R32)", "XOR_31 (R16, R16)", "XOR_30 (R8l, R8l)",
             "SUB_29 (R64, R64)", "SUB_29 (R32, R32)", "AND_21 (R64, R64)"),
            "t t", "t u", ("XOR_31 (R32, R32)", "SUB_29 (R32, R32)", "AND_21 (R64, R64)"),
        ),
        Group(
            ("CVTDQ2PS (XMM, XMM): t u", "PHMINPOSUW (XMM, XMM): t u", "PSHUFD (XMM, XMM, I8): t u #0"),
            tuple(f"{name} (XMM, XMM)" for name in _NAMES), "t t", "t u",
            tuple(f"{name} (XMM, XMM)" for name in _QUICK),
        ),
        Group(
            ("VCVTDQ2PS (YMM, YMM): t u", "VPERMQ (YMM, YMM, I8): t u #0", "VPSHUFD (YMM, YMM, I8): t u #0"),
            tuple(f"V{name} (YMM, YMM, YMM)" for name in _NAMES), "t t t", "t t u",
        ),
        Group(
            ("VCVTDQ2PS (ZMM, ZMM): t u", "VPERMQ (ZMM, ZMM, I8): t u #0", "VPSHUFD (ZMM, ZMM, I8): t u #0"),
            ("VPXORD (ZMM, ZMM, ZMM)", "VPSUBD (ZMM, ZMM, ZMM)", "VPADDD (ZMM, ZMM, ZMM)"), "t t t", "t t u",
        ),
    ),
    "aarch64": (
        Group(("MADDXrrr: t u u z",), ("EORXrs", "SUBXrs", "ANDXrs"), "t t t #0", "t t u #0",
              ("EORXrs", "SUBXrs", "ANDXrs")),
        Group(("FADDDrr: t u u",), ("EORv16i8", "SUBv4i32", "CMEQv4i32", "ANDv16i8"),
              "t t t", "t t u", ("EORv16i8",)),
    ),
    "riscv64": (
        Group(("MUL: t u u",), ("XOR", "SUB", "AND"), "t t t", "t t u", ("XOR", "SUB", "AND")),
    ),
}  # fmt: skip


def lines(isa: str, text: str, target: str, source: str) -> tuple[KernelLine, ...]:
    """The line of a template."""
    form, _, operands = text.partition(": ")
    chosen = (target if word == "t" else source if word == "u" else word for word in operands.split())
    return written(isa, f"{form}: {' '.join(chosen)}")


def _cases(isa: str) -> Iterator[ProbeCase]:
    for group in GROUPS.get(isa, ()):
        for form in group.forms:
            points = (p for x, slow in enumerate(group.slow) for p in _points(isa, group, form, slow, x))
            yield ProbeCase(form, tuple(points), form in group.quick)


def _points(isa: str, group: Group, form: str, slow: str, x: int) -> Iterator[Point]:
    carried, cut = lines(isa, slow, "a", "a"), lines(isa, slow, "a", "c")
    waiting = lines(isa, f"{form}: {group.apart}", "a", "b")
    yield chain("waits", *carried, *waiting, x=x)
    yield parallel("asked", *carried, *lines(isa, f"{form}: {group.alone}", "a", "a"), x=x)
    yield parallel("free", *cut, *waiting, x=x)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    """What the first slow operation tells whose levels are apart."""
    return first_of(partial(_told, readings), readings.places("waits"))


def _told(readings: Readings, x: int) -> ProbeVerdict:
    waits, asked, free = (readings.get(part, x) for part in ("waits", "asked", "free"))
    answer = CoreAnswer.DEPENDENT if is_higher(asked, free, waits) else CoreAnswer.BREAKING
    return ProbeVerdict(answer, None, steady(waits, asked, free))


PROBE = Probe(
    DEPENDENCY_BREAKING,
    "Which instructions do not wait for the one register that all their sources are?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, xor", "LLVM, IsZeroIdiomFunction and IsDepBreakingFunction"),
)
