"""Which results come later to operations of another kind than their own?

Two operations alternate, each waiting for the other. If that takes longer than both in chains of their own,
the result of one of them reaches the other later. Two operations of the same kind are measured as well:
some cores forward from an adder to itself a cycle earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cyclescope.model.facts import CONSUMERS, CoreAnswer, consumer_subject
from cyclescope.probe.code import written
from cyclescope.probe.levels import steady
from cyclescope.probe.question import (
    GridPlace,
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import Unclear

_BOTH = "in turn"
# Operations on numbers of one size: the first is what the others are asked with, and the second is of another
# kind. All have a chain from each source to the result. Other sizes would read each other's as denormals.
_GROUPS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "x86-64": (
        ("ADDSD", "MULSD", "SUBSD", "ADDPD", "SUBPD", "MAXSD", "MINPD"),
        ("ADDSS", "MULSS", "SUBSS", "ADDPS", "SUBPS", "MAXSS", "MINPS"),
        ("VADDSD", "VMULSD", "VSUBSD", "VADDPD", "VSUBPD", "VMAXSD", "VMINPD"),
        ("VADDSS", "VMULSS", "VSUBSS", "VADDPS", "VSUBPS", "VMAXSS", "VMINPS"),
    ),
    "aarch64": (("FADDDrr", "FMULDrr", "FSUBDrr", "FMAXDrr"), ("FADDSrr", "FMULSrr", "FSUBSrr", "FMAXSrr")),
    "riscv64": (("FADD_D", "FMUL_D", "FSUB_D", "FMAX_D"), ("FADD_S", "FMUL_S", "FSUB_S", "FMAX_S")),
}  # fmt: skip
_OPERANDS = {"x86-64": " (XMM, XMM): a b", "aarch64": ": a a b", "riscv64": ": a a b"}


def _text(isa: str, name: str) -> str:
    """An operation on a: its result is the next one's source."""
    if name.startswith("V"):
        return f"{name} (XMM, XMM, XMM): a a b"
    return f"{name}{_OPERANDS[isa]}"


def _cases(isa: str) -> Iterator[ProbeCase]:
    for names in _GROUPS.get(isa, ()):
        for first in names:
            for second in names[:2]:
                if first != second and (first, second) != (names[1], names[0]):
                    place = GridPlace("", first, second)
                    points = tuple(_points(isa, first, second))
                    yield ProbeCase(_subject(isa, first, second), points, place=place)


def _subject(isa: str, *names: str) -> str:
    return consumer_subject(*(_text(isa, name).partition(":")[0] for name in names))


def _points(isa: str, first: str, second: str) -> Iterator[Point]:
    one, other = (written(isa, _text(isa, name)) for name in (first, second))
    yield parallel("first", *one)
    yield parallel("second", *other)
    yield parallel(_BOTH, *one, *other)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    alone = readings.get("first") + readings.get("second")
    later = readings.get(_BOTH) - alone
    if not steady(later):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return ProbeVerdict(CoreAnswer.VALUE, later)


PROBE = Probe(
    CONSUMERS,
    "How much longer do two operations take in turn than in chains of their own?",
    Model.MATRIX,
    _cases,
    _judge,
    ("AMD, Software Optimization Guide for Family 1Ah (58455), floating-point forwarding",),
)
