"""Regions that markers in the code enclose: OSACA's, IACA's and LLVM-MCA's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cyclescope.analyze.block import BlockInstruction
from cyclescope.analyze.decode import Step
from cyclescope.analyze.program import Code, Comment, Program
from cyclescope.errors import SourceError

# In a comment: OSACA-BEGIN, LLVM-MCA-BEGIN name, IACA START, ... and their ends.
_MARKER = re.compile(
    r"(?:#|//|/\*|;|@|!)[\s#;/*]*(?:(?P<first>START|END|STOP)[-_ ])?(?P<tool>OSACA|LLVM-MCA|IACA)[-_ ]?"
    r"(?P<second>BEGIN|START|END|STOP)?(?:[-_ ]MARKER)?\b[ \t]*(?P<name>[^\s*]*)"
)
_BEGIN, _END = "begin", "end"
_BYTE_MARKS = {
    "x86-64": (bytes((0x64, 0x67, 0x90)),),
    "aarch64": (bytes((213, 3, 32, 31)), bytes((31, 32, 3, 213))),  # NOP, in either order
}
_STORED = bytes((0x65, 0xC6, 0x04, 0x25))  # mov byte ptr gs:[...], ...
_LOADED = {"MOV": (("R32", 3), ("R64", 3)), "MOVZ": (("X", 1),)}  # a move, and the registers it may load
_IACA = {111: _BEGIN, 222: _END}
_REMEDY = "every region needs a beginning and an end"


class Region(NamedTuple):
    """Steps between two markers; `where` says it in words."""

    name: str
    steps: tuple[Step, ...]
    where: str


class _Mark(NamedTuple):
    kind: str
    name: str
    tool: str
    line: int


def _mark(comment: Comment) -> _Mark | None:
    match = _MARKER.search(comment.text)
    if match is None or not (match["first"] or match["second"]):
        return None
    word = match["first"] or match["second"]
    kind = _BEGIN if word in ("BEGIN", "START") else _END
    name = match["name"] if match["tool"] == "LLVM-MCA" else ""
    return _Mark(kind, name, match["tool"], comment.line)


def comment_regions(code: Code) -> list[Region]:
    """Regions between comments, in order. Raises SourceError where they do not match up."""
    program = code.program
    marks = [mark for comment in program.comments if (mark := _mark(comment))]
    pairs = _paired(program, marks)
    lines = [(code.line(step), step) for step in code.steps] if pairs else []
    return [
        _region(program, first, last, tuple(step for line, step in lines if first.line < line < last.line))
        for first, last in pairs
    ]


def _region(program: Program, first: _Mark, last: _Mark, steps: tuple[Step, ...]) -> Region:
    if not steps:
        raise SourceError(f"{program.source}, line {first.line}: nothing between the markers", _REMEDY)
    return Region(
        first.name, steps, f"between the {first.tool} markers in lines {first.line} and {last.line}"
    )


def _paired(program: Program, marks: Sequence[_Mark]) -> list[tuple[_Mark, _Mark]]:
    """Beginnings with their ends; an end without a name ends the only open region."""
    opened: dict[str, _Mark] = {}
    pairs = []
    for mark in marks:
        where = f"{program.source}, line {mark.line}: {mark.tool} {mark.kind} marker"
        if mark.kind == _BEGIN:
            if mark.name in opened:
                raise SourceError(
                    f"{where} while the region of line {opened[mark.name].line} is open", _REMEDY
                )
            opened[mark.name] = mark
            continue
        name = next(iter(opened)) if len(opened) == 1 and not mark.name else mark.name
        if name not in opened:
            raise SourceError(f"{where} without a beginning", _REMEDY)
        pairs.append((opened.pop(name), mark))
    for mark in opened.values():
        raise SourceError(
            f"{program.source}, line {mark.line}: {mark.tool} begin marker without an end", _REMEDY
        )
    return sorted(pairs, key=lambda pair: pair[0].line)


def byte_regions(code: Code) -> list[Region]:
    """Regions between IACA's instructions: `mov ebx, 111` or 222 and the bytes 64 67 90.

    For Microsoft's compiler they are `mov byte ptr gs:[111], 111` and 222. OSACA has the first kind for
    AArch64 too, `mov x1, #111` and a NOP.
    """
    marks = sorted([*_byte_marks(code), *_stored_marks(code)])
    regions = []
    for begin, end in zip(marks[::2], marks[1::2], strict=False):
        if (begin.kind, end.kind) != (_BEGIN, _END):
            raise _unbalanced(code, begin if begin.kind == _END else end)
        steps = tuple(code.steps[begin.behind : end.first])
        if not steps:
            raise SourceError(f"{_place(code, begin)}: nothing between the markers", _REMEDY)
        where = f"between the {_tool(code)} markers at {_spot(code, begin)} and {_spot(code, end)}"
        regions.append(Region("", steps, where))
    if len(marks) % 2:
        raise _unbalanced(code, marks[-1])
    return regions


class _ByteMark(NamedTuple):
    """A marker of instructions: the position of its first, and of what is behind it."""

    first: int
    behind: int
    kind: str


def _positions(code: Code, pattern: bytes) -> Iterator[int]:
    """Positions of the steps that begin with some bytes."""
    for piece in code.program.parts():
        at = piece.code.find(pattern)
        while at >= 0:
            position = code.index.get(piece.address + at)
            if position is not None:
                yield position
            at = piece.code.find(pattern, at + 1)


def _byte_marks(code: Code) -> Iterator[_ByteMark]:
    """Loads of 111 or 222 in front of the marker's bytes."""
    for pattern in _BYTE_MARKS.get(code.program.isa, ()):
        for position in _positions(code, pattern):
            number = _loaded(code.instruction(code.steps[position - 1])) if position else None
            if number in _IACA:
                yield _ByteMark(position - 1, position + 1, _IACA[number])


def _stored_marks(code: Code) -> Iterator[_ByteMark]:
    for number, kind in _IACA.items() if code.program.isa == "x86-64" else ():
        for position in _positions(code, _STORED + bytes((number, 0, 0, 0, number))):
            yield _ByteMark(position, position + 1, kind)


def _loaded(one: BlockInstruction) -> int | None:
    """The constant that a move puts into the register of markers."""
    name = one.form.mnemonic if one.form is not None else ""
    if not one.registers or one.registers[0] not in _LOADED.get(name, ()):
        return None
    return next((value for value in one.immediates if value is not None), None)


def _tool(code: Code) -> str:
    return "IACA" if code.program.isa == "x86-64" else "OSACA"


def _spot(code: Code, mark: _ByteMark) -> str:
    step = code.steps[mark.first]
    line = code.line(step)
    return f"line {line}" if line else f"{step.address:#x}"


def _place(code: Code, mark: _ByteMark) -> str:
    return f"{code.program.source}, {_spot(code, mark)}"


def _unbalanced(code: Code, mark: _ByteMark) -> SourceError:
    return SourceError(f"{_place(code, mark)}: {_tool(code)} marker without its counterpart", _REMEDY)
