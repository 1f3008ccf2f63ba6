"""Which loop a program spends its time in, judged from the code alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyclescope.analyze.choose.flow import Loop, loops
from cyclescope.analyze.choose.functions import shown_names
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.decoder import Flow, FlowStep
from cyclescope.analyze.read.program import Code
from cyclescope.remarks.reading import Chosen
from cyclescope.remarks.remark import NOTHING, listed

_SCALABLE = 128  # bits that a vector without a fixed width has at least


class Candidate(NamedTuple):
    """An innermost loop: the steps of one pass, its name and what speaks for it.

    `left_out` steps lie behind a gap, where compilers place unlikely code. `branches` are those that stay
    inside: the steps are then more than one pass takes. `lines` are the first and the last source line, 0
    where there is no source.
    """

    name: str
    steps: tuple[FlowStep, ...]
    left_out: int
    branches: int
    depth: int
    vector_bits: int
    memory: int
    calls: int
    lines: tuple[int, int]

    @property
    def rank(self) -> tuple[int, ...]:
        """Deeper, without calls, with more vector work, with more memory accesses, longer."""
        return (self.depth, -self.calls, self.vector_bits, self.memory, len(self.steps))

    @property
    def where(self) -> str:
        """The loop in words."""
        first, last = self.lines
        addresses = Chosen.FROM_ADDRESS.of(self.steps[0].address, self.steps[-1].end)
        place = Chosen.FROM_LINE.of(first, last) if first else addresses
        parts = [
            Chosen.NAMED.of(self.name, place) if self.name else place,
            Chosen.COUNTED.of(len(self.steps)),
            Chosen.DEPTH.of(self.depth) if self.depth > 1 else NOTHING,
            Chosen.OUT_OF_LINE.of(self.left_out) if self.left_out else NOTHING,
            Chosen.BOTH_WAYS.of() if self.branches else NOTHING,
        ]
        return listed(parts)


def innermost_loops(code: Code) -> list[Candidate]:
    """The innermost loops of a program in the order of the code."""
    found = [loop for loop in loops_of(code) if loop.innermost]
    functions = [code.program.function(code.steps[loop.head].address) for loop in found]
    names = [function.name if function else "" for function in functions]
    shown = shown_names(names)
    return [_candidate(code, *one) for one in zip(found, names, shown, strict=True)]


def loops_of(code: Code) -> list[Loop]:
    """All loops of a program."""
    entries = [code.index[f.address] for f in code.program.functions if f.address in code.index]
    return loops(code.steps, code.index, entries, _tables(code))


def _tables(code: Code) -> list[tuple[int, list[int]]]:
    """The program's tables as positions of steps."""
    index = code.index
    return [
        (index[used], [index[target] for target in targets if target in index])
        for used, targets in code.program.tables
        if used in index
    ]


def hottest(candidates: Sequence[Candidate]) -> Candidate:
    """The loop that most time is probably spent in; the first of equals."""
    return max(candidates, key=lambda one: one.rank)


def _candidate(code: Code, loop: Loop, function: str, shown: str) -> Candidate:
    kept = _in_line(code.steps, loop)
    steps = tuple(code.steps[p] for p in kept)
    instructions = [code.instruction(step) for step in steps]
    lines = [one.line for one in instructions if one.line]
    label = code.program.labels.get(code.steps[loop.head].address, "")
    return Candidate(
        (f"{label} in {shown}".lstrip() if label != function else shown) if function else label,
        steps,
        len(loop.body) - len(kept),
        _inner_branches(steps),
        loop.depth,
        sum(map(_vector_bits, instructions)),
        sum(any(one.memory) for one in instructions),
        sum(step.flow == Flow.CALL for step in steps),
        (min(lines, default=0), max(lines, default=0)),
    )


def _inner_branches(steps: Sequence[FlowStep]) -> int:
    """Branches that skip some of the steps."""
    inside = {step.address for step in steps[1:]}
    return sum(step.flow in (Flow.BRANCH, Flow.JUMP) and step.target in inside for step in steps)


def _in_line(steps: Sequence[FlowStep], loop: Loop) -> tuple[int, ...]:
    """The run of positions without a gap that holds the loop's head and its branch back.

    Unlikely code of a loop lies elsewhere; where the way back does too, the whole body is taken.
    """
    runs: list[list[int]] = [[]]
    for position in loop.body:
        if runs[-1] and runs[-1][-1] != position - 1:
            runs.append([])
        runs[-1].append(position)
    main = next(run for run in runs if loop.head in run)
    closed = steps[loop.head].address in {steps[p].target for p in main}
    return tuple(main) if closed else loop.body


def _vector_bits(one: BlockInstruction) -> int:
    """Bits of vector data that an instruction works on; scalar floating point counts its element."""
    form = one.form
    if form is None:
        return 0
    if form.has_fields:
        widths = [op.width or _SCALABLE for op in form.operands if op.file in ("v", "f")]
        return max(widths, default=0)
    if form.mnemonic.endswith(("SS", "SD")) and form.element in ("f32", "f64"):
        return int(form.element[1:])
    return form.vector_width if form.vector_width >= 128 else 0
