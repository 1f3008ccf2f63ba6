"""Which register moves does the renamer execute?

A chain of one simple operation is compared with the same chain with two moves in it: moves that are
eliminated add nothing, moves that are executed add a cycle or more each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import ITSELF, MOVE_ELIMINATION, CoreAnswer
from cyclescope.probe.code import written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import is_higher
from cyclescope.probe.question import Model, Probe, ProbeCase, ProbeVerdict, Readings, chain

_NONE, _ONE = Interval(0.0, 0.0), Interval(1.0, 1.0)  # cycles that a move adds: none, or at least one


class MoveChain(NamedTuple):
    """A move from a to b and back, and an operation on a that waits for a, as `code.written` has them."""

    there: str
    back: str
    operation: str
    quick: bool = True


def _same(form: str, operation: str, there: str = "b a", back: str = "a b", quick: bool = True) -> MoveChain:
    return MoveChain(f"{form}: {there}", f"{form}: {back}", operation, quick)


_MOVES: Mapping[str, tuple[MoveChain, ...]] = {
    "x86-64": (
        _same("MOV_89 (R64, R64)", "ADD_01 (R64, R64): a c"),
        _same("MOV_89 (R32, R32)", "ADD_01 (R32, R32): a c"),
        _same("MOV_89 (R16, R16)", "ADD_01 (R16, R16): a c"),
        _same("MOV_88 (R8l, R8l)", "ADD_00 (R8l, R8l): a c"),
        _same("MOVZX (R32, R8l)", "ADD_01 (R32, R32): a c"),
        _same("MOVZX (R32, R16)", "ADD_01 (R32, R32): a c", quick=False),
        _same("MOVSXD (R64, R32)", "ADD_01 (R64, R64): a c", quick=False),
        _same("MOVAPS_0F28 (XMM, XMM)", "PADDD (XMM, XMM): a c"),
        _same("MOVDQA_0F6F (XMM, XMM)", "PADDD (XMM, XMM): a c", quick=False),
        _same("VMOVAPS_28 (XMM, XMM)", "VPADDD (XMM, XMM, XMM): a a c", quick=False),
        _same("VMOVAPS_28 (YMM, YMM)", "VPADDD (YMM, YMM, YMM): a a c"),
        _same("VMOVDQA_6F (YMM, YMM)", "VPADDD (YMM, YMM, YMM): a a c", quick=False),
        _same("VMOVAPS (ZMM, ZMM)", "VPADDD (ZMM, ZMM, ZMM): a a c"),
        _same("KMOVQ (K, K)", "KADDQ (K, K, K): b b d", "c b", "b c", quick=False),
    ),
    "aarch64": (
        _same("ORRXrs", "ADDXrs: a a c #0", "b z a #0", "a z b #0"),
        _same("ORRWrs", "ADDWrs: a a c #0", "b z a #0", "a z b #0"),
        _same("ORRv16i8", "ADDv4i32: a a c", "b a a", "a b b"),
        _same("ORRv8i8", "ADDv2i32: a a c", "b a a", "a b b", quick=False),
        _same("FMOVDr", "FADDDrr: a a c"),
        _same("FMOVSr", "FADDSrr: a a c", quick=False),
    ),
    "riscv64": (
        _same("ADDI", "ADD: a a c", "b a #0", "a b #0"),
        _same("C_MV", "ADD: a a c", quick=False),
        _same("FSGNJ_D", "FADD_D: a a c", "b a a", "a b b"),
        _same("FSGNJ_S", "FADD_S: a a c", "b a a", "a b b", quick=False),
    ),
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    for move in _MOVES.get(isa, ()):
        form = move.there.partition(":")[0]
        alone = chain("alone", *written(isa, move.operation))
        both = chain("moved", *written(isa, move.operation, move.there, move.back))
        yield ProbeCase(form, (alone, both), move.quick)
        if _is_own(move):
            itself = written(isa, move.operation, f"{form}: a a", f"{form}: a a")
            yield ProbeCase(form + ITSELF, (alone, chain("moved", *itself)), is_quick=False)


def _is_own(move: MoveChain) -> bool:
    """Whether a move names a target and a source and nothing else, so that both can be one register."""
    return move.there.partition(": ")[2] == "b a"


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    added = (readings.get("moved") - readings.get("alone")).scaled(0.5)
    executed = is_higher(added, _NONE, _ONE)
    return ProbeVerdict(CoreAnswer.EXECUTED if executed else CoreAnswer.ELIMINATED, added)


PROBE = Probe(
    MOVE_ELIMINATION,
    "Which register moves does the renamer execute, so that they take no time?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    (
        "Agner Fog, test programs, mov_rename",
        "LLVM, IsOptimizableRegisterMove of the scheduling models",
    ),
)
