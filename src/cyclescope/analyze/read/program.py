"""A program: the code of a text, an object file or plain bytes, in one space of addresses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from cyclescope.analyze.decode.block import Block, BlockInstruction, SourcePlace
from cyclescope.analyze.decode.decoder import REASON, Decoder, Flow, FlowStep, Reference
from cyclescope.analyze.decode.instruments import Comment, instrumented
from cyclescope.errors import SourceError
from cyclescope.isa.registry import instruction_set
from cyclescope.remarks.remark import NOTHING, Remark

SECTION_PLACES = 64  # bytes: where sections begin that follow each other, as lines of caches do
_LOOKED_BACK = 200  # instructions
MOST_INSTRUCTIONS = 20_000  # instructions of a block: half a second, and far more than a person reads


class Piece(NamedTuple):
    """Code that lies together, at the address of its first byte."""

    name: str
    address: int
    code: bytes

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + len(self.code)


class Function(NamedTuple):
    """A function's name and addresses."""

    name: str
    address: int
    end: int


class Statement(NamedTuple):
    """Where a line of the source begins in the code.

    `text` is the instruction as written, "" where a line is several of them or a macro; `data` tells
    that the bytes are none.
    """

    address: int
    line: int
    text: str
    data: bool


class JumpTable(NamedTuple):
    """Addresses of code that data names, for indirect jumps; `used` is where code refers to the data."""

    used: int
    targets: tuple[int, ...]


class Located(NamedTuple):
    """Places by address, and what keeps the others from having one."""

    places: dict[int, SourcePlace]
    problem: Remark = NOTHING


class Program(msgspec.Struct, frozen=True, dict=True):
    """Code with what is known about it.

    `statements` are by address, at most one per source line and piece; empty where there is no source
    text. `labels` are names by address, `references` relocations by address, `tables` what tables in the data
    name, as far as the source tells. `lines` is the source text, `notes` what of it was not understood.
    `locate` finds the places of addresses, where a file may have debugging information. `syntax` is that of
    x86 text. A linker has still to choose addresses, multiples of `alignment` bytes, if that is not 0.
    """

    isa: str
    source: str
    pieces: tuple[Piece, ...]
    statements: tuple[Statement, ...] = ()
    functions: tuple[Function, ...] = ()
    labels: dict[int, str] = {}
    references: dict[int, Reference] = {}
    lines: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    tables: tuple[JumpTable, ...] = ()
    notes: tuple[Remark, ...] = ()
    locate: Callable[[Sequence[int]], Located] | None = None
    syntax: str = ""
    alignment: int = 0

    @property
    def size(self) -> int:
        """Bytes of code."""
        return sum(len(piece.code) for piece in self.pieces)

    @cached_property
    def _starts(self) -> list[int]:
        return [statement.address for statement in self.statements]

    def statement(self, address: int, end: int = -1) -> Statement | None:
        """The source line that code is from; its text only where the code is all of the line's."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        found = self.statements[at]
        whole = found.address == address and end in (*self._starts[at + 1 : at + 2], *self._ends)
        return found if whole else found._replace(text="")

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(piece.end for piece in self.pieces)

    @cached_property
    def _places(self) -> list[int]:
        return [piece.address for piece in self.pieces]

    def code(self, address: int, length: int) -> bytes:
        """The bytes at an address."""
        piece = self.pieces[bisect_right(self._places, address) - 1]
        return piece.code[address - piece.address : address - piece.address + length]

    @cached_property
    def _entries(self) -> list[int]:
        return [function.address for function in self.functions]

    def function(self, address: int) -> Function | None:
        """The function that an address is in."""
        at = bisect_right(self._entries, address) - 1
        return self.functions[at] if at >= 0 and address < self.functions[at].end else None

    def named(self, name: str) -> Function | None:
        """The function of a name, or from a label to the next function or the end."""
        found = next((one for one in self.functions if one.name == name), None)
        at = next((at for at, label in self.labels.items() if label == name), None)
        if found is not None or at is None:
            return found
        ends = sorted({*self._entries, *self._ends, *(one.end for one in self.functions)})
        return Function(name, at, ends[bisect_right(ends, at)])

    def parts(self, start: int = 0, end: int = 1 << 64) -> Iterator[Piece]:
        """The code between two addresses, without what the source declares as data."""
        for piece in self.pieces:
            if piece.code and start <= piece.address and piece.end <= end and not self._data:
                yield piece
                continue
            low, high = max(start, piece.address), min(end, piece.end)
            for first, last in self._code_in(low, high):
                yield Piece(piece.name, first, piece.code[first - piece.address : last - piece.address])

    def _code_in(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        for at, begin in self._data:
            if at >= high:
                break
            if begin <= low:
                continue
            if low < at:
                yield low, at
            low = max(low, begin)
        if low < high:
            yield low, high

    @cached_property
    def _data(self) -> list[tuple[int, int]]:
        ends = [*self._starts[1:], max((p.end for p in self.pieces), default=0)]
        found = []
        for statement, end in zip(self.statements, ends, strict=False):
            if statement.data:
                limit = next((p.end for p in self.pieces if p.address <= statement.address < p.end), 0)
                found.append((statement.address, min(end, limit)))
        return found


def moved(program: Program, by: int) -> Program:
    """A program whose addresses are all so many bytes later."""
    return msgspec.structs.replace(
        program,
        pieces=tuple(one._replace(address=one.address + by) for one in program.pieces),
        statements=tuple(one._replace(address=one.address + by) for one in program.statements),
        functions=tuple(
            one._replace(address=one.address + by, end=one.end + by) for one in program.functions
        ),
        labels={at + by: name for at, name in program.labels.items()},
        references={
            at + by: one._replace(target=None if one.target is None else one.target + by)
            for at, one in program.references.items()
        },
        tables=tuple(
            JumpTable(one.used + by, tuple(at + by for at in one.targets)) for one in program.tables
        ),
        alignment=0,
    )


class Code:
    """The steps of a program, or of a part of it, in the order of addresses."""

    def __init__(self, program: Program, decoder: Decoder, start: int = 0, end: int = 1 << 64) -> None:
        self.program = program
        self.decoder = decoder
        self.steps = [
            self._linked(step)
            for part in program.parts(start, end)
            for step in decoder.steps(part.code, part.address)
        ]
        self.index = {step.address: i for i, step in enumerate(self.steps)}

    def _linked(self, step: FlowStep) -> FlowStep:
        """A step whose target is the symbol's that a relocation names; elsewhere the code ends."""
        if step.target is None or not self.program.references:
            return step
        for at in _fields(self.program, step):
            reference = self.program.references.get(at)
            if reference is not None:
                if reference.target is None:
                    return step._replace(target=None, flow=Flow.END if step.flow == Flow.JUMP else step.flow)
                rest = step.end - at if reference.relative else 0
                return step._replace(target=reference.target + reference.addend + rest)
        return step

    def line(self, step: FlowStep) -> int:
        """The source line of a step, 0 where there is none."""
        statement = self.program.statement(step.address)
        return statement.line if statement else 0

    def instruction(self, step: FlowStep) -> BlockInstruction:
        """A step in full."""
        program = self.program
        code = program.code(step.address, max(step.length, REASON))
        statement = program.statement(step.address, step.end)
        text, line = (statement.text, statement.line) if statement else ("", 0)
        found = self.decoder.instruction(code, step.address, program.references, text, line)
        name = program.labels.get(step.target, "") if step.target is not None else ""
        return msgspec.structs.replace(found, target=name) if name else found

    def block(self, steps: Iterable[FlowStep], found: Remark | str, name: str = "") -> Block:
        """Steps as a block. Lines come with the text they have in the source.

        Raises SourceError where there are more than one can analyse.
        """
        chosen = list(steps)
        if len(chosen) > MOST_INSTRUCTIONS:
            what = (
                f"{found} of {self.program.source}: {len(chosen)} instructions, more than {MOST_INSTRUCTIONS}"
            )
            raise SourceError(what, "choose a smaller part with {function}, {lines} or {addresses}")
        loop = bool(chosen) and chosen[-1].target == chosen[0].address
        plain = [self.instruction(step) for step in chosen]
        instructions = tuple(plain)
        if instruction_set(self.program.isa).has_configurations:
            own = [one.code for one in plain] * loop
            ways = self._ways_in(chosen) if chosen else []
            instructions = self.decoder.in_context(plain, [way + own for way in ways])
        instructions, notes = instrumented(
            instructions, self.program.comments, self.program.isa, self._settings
        )
        lines = {i.line: self.program.lines[i.line - 1] for i in instructions if i.line}
        instructions, problem = self._placed(instructions)
        said = tuple(map(str, (*self.program.notes, *notes, *problem)))
        return Block(
            instructions, self.program.isa, self.program.source, name, str(found), lines, loop, notes=said,
            alignment=self.program.alignment,
        )  # fmt: skip

    def _placed(
        self, instructions: tuple[BlockInstruction, ...]
    ) -> tuple[tuple[BlockInstruction, ...], tuple[Remark, ...]]:
        """Instructions with the places they were compiled from."""
        if self.program.locate is None:
            return instructions, ()
        places, problem = self.program.locate([one.address for one in instructions])
        found = (msgspec.structs.replace(one, place=places.get(one.address)) for one in instructions)
        return tuple(found), (problem,) * bool(problem)

    def _settings(self) -> list[int]:
        """Source lines of instructions that set what vectors others work on."""
        types = instruction_set(self.program.isa).vector_types
        codes = [self.program.code(step.address, step.length) for step in self.steps]
        return [self.line(self.steps[number]) for number in (types.settings_in(codes) if types else ())]

    def _ways_in(self, chosen: Sequence[FlowStep]) -> list[list[bytes]]:
        """Machine code in front of a block, as it lies there, and in front of branches to it."""
        first, inside = chosen[0], {step.address for step in chosen}
        jumps = [step for step in self._sources.get(first.address, ()) if step.address not in inside]
        at = self.index.get(first.address, 0)
        runs_on = at > 0 and self.steps[at - 1].flow in (Flow.NEXT, Flow.BRANCH, Flow.CALL)
        return [self._before(step) for step in ([first] if runs_on or not jumps else []) + jumps]

    @cached_property
    def _sources(self) -> dict[int, list[FlowStep]]:
        """Branches by their targets."""
        found: dict[int, list[FlowStep]] = {}
        for step in self.steps:
            if step.target is not None and step.flow in (Flow.BRANCH, Flow.JUMP):
                found.setdefault(step.target, []).append(step)
        return found

    def _before(self, step: FlowStep) -> list[bytes]:
        """Machine code in front of a step, as it lies there, of its function."""
        at = self.index.get(step.address, 0)
        first = self._entry(at)
        while first > 0 and self._is_inner(first):
            first = self._entry(first - 1)
        steps = self.steps[max(first, at - _LOOKED_BACK) : at]
        return [self.program.code(one.address, one.length) for one in steps]

    def _entry(self, at: int) -> int:
        """The step that the function of a step begins with, as its label says."""
        function = self.program.function(self.steps[at].address)
        return self.index.get(function.address, 0) if function else 0

    def _is_inner(self, at: int) -> bool:
        """Whether a label is no function's but a loop's: one runs into it, and branches go back to it."""
        address = self.steps[at].address
        return self.steps[at - 1].flow in (Flow.NEXT, Flow.BRANCH) and any(
            step.target == address and step.flow in (Flow.BRANCH, Flow.JUMP) for step in self.steps[at:]
        )


def _fields(program: Program, step: FlowStep) -> tuple[int, ...]:
    """Addresses at which a relocation is for a branch's target."""
    known = instruction_set(program.isa).relocations
    if known.branch_fields:
        return tuple(step.end - back for back in known.branch_fields)
    if program.code(step.address, 1)[0] & 0x7F == known.joint_jump:
        return step.address, step.address - 4  # the one in front may make the address
    return (step.address,)
