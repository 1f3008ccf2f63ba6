"""What comments for llvm-mca say about instructions: latencies, and RISC-V's vector configuration.

`# LLVM-MCA-LATENCY 100` sets the latency of all that follows, `# LLVM-MCA-LATENCY` ends that;
`# LLVM-MCA-RISCV-LMUL M2` and `# LLVM-MCA-RISCV-SEW E32` say what `vsetvli` would, until the next one does.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.vector_settings import Vectors
from cyclescope.errors import shortened
from cyclescope.isa.registry import instruction_set, instruction_sets
from cyclescope.model.limits import CYCLES
from cyclescope.remarks.reading import Instrument, at_line
from cyclescope.remarks.remark import NOTHING, Remark

COMMENT = r"(?:#|//|/\*|;|@|!)[\s#;/*!]{0,20}"  # the beginning of a comment in any of the assemblers
_INSTRUMENT = re.compile(COMMENT + r"LLVM-MCA-(?!BEGIN|END)([\w-]*)[ \t]*([^*\n]*)")
_LATENCY, _LMUL, _SEW = "LATENCY", "RISCV-LMUL", "RISCV-SEW"
_VALUES = {
    _LATENCY: (re.compile(r"\d{0,7}"), Instrument.WANTS_CYCLES.of(int(CYCLES.most))),
    _LMUL: (re.compile(r"M[1248]|MF[248]"), Instrument.WANTS_MULTIPLIER.of()),
    _SEW: (re.compile(r"E(8|16|32|64)"), Instrument.WANTS_WIDTH.of()),
}


class Comment(NamedTuple):
    """A line of the source with a comment in it that may be a marker."""

    line: int
    text: str


class _Instrument(NamedTuple):
    line: int
    value: str


def instrumented(
    instructions: Sequence[BlockInstruction],
    comments: Sequence[Comment],
    isa: str,
    settings: Callable[[], Sequence[int]],
) -> tuple[tuple[BlockInstruction, ...], tuple[Remark, ...]]:
    """Instructions with what comments in front of them say, and notes on what was not understood.

    `settings` finds the lines of all instructions that set VTYPE.
    """
    found, notes = _read(comments, isa)
    changed = tuple(instructions)
    if found[_LATENCY]:
        changed = tuple(_with_latency(found[_LATENCY], one) for one in changed)
    types = instruction_set(isa).vector_types if found[_LMUL] or found[_SEW] else None
    if types is not None:
        from cyclescope.analyze.decode.vector_comments import configured_by  # of few instruction sets

        sets = sorted(settings())
        changed, more = configured_by(changed, [_vectors(found, sets, one.line) for one in changed], types)
        notes += more
    return changed, tuple(notes)


def _read(comments: Sequence[Comment], isa: str) -> tuple[dict[str, list[_Instrument]], list[Remark]]:
    """Instruments by kind, in the order of lines, and notes."""
    found: dict[str, list[_Instrument]] = {kind: [] for kind in _VALUES}
    notes = []
    for comment in comments:
        match = _INSTRUMENT.search(comment.text) if "LLVM-MCA-" in comment.text else None
        if match is None:
            continue
        kind, value = match[1], match[2].strip()
        problem = _problem(kind, value, isa)
        if problem:
            why = Instrument.NO_EFFECT.of(shortened(match[0].strip()), problem)
            notes.append(at_line(comment.line, why))
        else:
            found[kind].append(_Instrument(comment.line, value))
    return found, notes


def _problem(kind: str, value: str, isa: str) -> Remark:
    """Why a comment for llvm-mca cannot be followed, nothing where it can."""
    if kind not in _VALUES:
        return Instrument.UNKNOWN.of(", ".join(f"-{name}" for name in _VALUES))
    if kind in (_LMUL, _SEW) and not instruction_set(isa).has_configurations:
        able = (record.name for record in instruction_sets() if record.has_configurations)
        return Instrument.OF_OTHERS.of(" and ".join(able))
    pattern, wanted = _VALUES[kind]
    good = pattern.fullmatch(value) and (kind != _LATENCY or int(value or 0) <= CYCLES.most)
    return NOTHING if good else wanted


def _last(found: Sequence[_Instrument], line: int, since: int = 0) -> str:
    """The value of the last comment in front of a line, "" where there is none since another line."""
    at = bisect_left(found, line, key=lambda one: one.line) - 1
    return found[at].value if at >= 0 and found[at].line >= since else ""


def _with_latency(found: Sequence[_Instrument], one: BlockInstruction) -> BlockInstruction:
    """An instruction with the latency of the last comment in front of it."""
    said = _last(found, one.line)
    return msgspec.structs.replace(one, latency=float(said)) if said else one


def _vectors(found: dict[str, list[_Instrument]], sets: Sequence[int], line: int) -> Vectors:
    """What comments say of vectors at a line, since the last that sets VTYPE in the code."""
    at = bisect_left(sets, line) - 1
    since = sets[at] if at >= 0 else 0
    sew, lmul = _last(found[_SEW], line, since), _last(found[_LMUL], line, since)
    return Vectors(int(sew[1:] or 0), Fraction(lmul[1:].replace("F", "1/")) if lmul else Fraction(0))
