"""Regions that markers in the code enclose: OSACA's, IACA's and LLVM-MCA's."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.decoder import FlowStep
from cyclescope.analyze.decode.instruments import COMMENT, Comment
from cyclescope.analyze.read.program import Code, Program
from cyclescope.errors import SourceError, shortened
from cyclescope.isa.record import Markers
from cyclescope.isa.registry import instruction_set
from cyclescope.remarks.reading import Chosen, Marking, Spot, at_line
from cyclescope.remarks.remark import LISTED, NOTHING, Remark

# In a comment: OSACA-BEGIN, LLVM-MCA-BEGIN name, IACA START, ... and their ends.
_MARKER = re.compile(
    COMMENT + r"(?:(?P<first>BEGIN|START|END|STOP)[-_ ])?(?:IACA/)?(?P<tool>OSACA|LLVM-MCA|IACA)[-_ ]?"
    r"(?P<second>BEGIN|START|END|STOP)?(?:[-_ ]MARKER)?\b[ \t]*(?P<name>.*)"
)
# What somebody may have meant as a marker.
_NEARLY = re.compile(r"\b(OSACA|LLVM[-_ ]MCA|IACA)[-_ ]*(BEGIN|START|END|STOP)", re.IGNORECASE)
_ASIDE = re.compile(COMMENT)
_BEGIN, _END = "begin", "end"
_NAMING = "LLVM-MCA"  # the tool whose regions have names
_IACA = {111: _BEGIN, 222: _END}
_REMEDY = "every region needs a beginning and an end"


class MarkedRegion(NamedTuple):
    """Steps between two markers; `where` says which.

    Regions may overlap: `steps` makes a region's when they are asked for, `size` is how many there are.
    """

    name: str
    size: int
    steps: Callable[[], Sequence[FlowStep]]
    where: Remark


class Marked(NamedTuple):
    """The regions of a program, in order, and what there is to say about its markers."""

    regions: list[MarkedRegion]
    notes: list[Remark]


class _Mark(NamedTuple):
    """A marker in a comment. `ahead` tells that code of its line comes behind the marker."""

    kind: str
    name: str
    tool: str
    line: int
    ahead: bool


class _Span(NamedTuple):
    """A region's markers; None for the beginning or the end of the code."""

    first: _Mark | None
    last: _Mark | None


def marked_regions(code: Code, part: bool = False) -> Marked:
    """What markers enclose: those in comments, else those in bytes; of a part of a program, what is in it.

    As llvm-mca and OSACA have it, a region without an end goes on to the end of the code, an end alone begins
    with the code, regions of LLVM-MCA may overlap, and empty ones do not count; notes say so. Raises
    SourceError where markers do not match up.
    """
    places = _byte_places(code)
    if not code.program.comments:
        return Marked(_byte_regions(code, places), [])
    lines = _Lines(code)
    marks = [m for m in map(_mark, code.program.comments) if m and not lines.belongs(m, places)]
    notes = _misread(code.program)
    every = [(span, _region(lines, span)) for span in (_spans(code.program, marks) if marks else ())]
    regions = [(span, region) for span, region in every if region.size or not part]
    if not regions:
        return Marked(_byte_regions(code, places), notes)
    if places:
        spots = ", ".join(str(code.line(code.steps[mark.first])) for mark in places[:LISTED])
        notes.append(Marking.IN_COMMENTS.of(spots))
    notes += [note for span, _ in regions if (note := _open_end(span))]
    notes += [Marking.EMPTY.of(region.where) for _, region in regions if not region.size]
    kept = [region for _, region in regions if region.size]
    if not kept:
        raise SourceError(
            f"{code.program.source}, line {marks[0].line}: nothing between the markers", _REMEDY
        )
    return Marked(kept, notes)


class _Lines:
    """The steps of a program by the source lines that they are from."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._order = sorted((code.line(step), number) for number, step in enumerate(code.steps))
        self._lines = [line for line, _ in self._order]

    def count(self, low: float, high: float) -> int:
        """How many steps are of the lines between two."""
        return bisect_left(self._lines, high) - bisect_right(self._lines, low)

    def between(self, low: float, high: float) -> tuple[FlowStep, ...]:
        """Steps of the lines between two, which do not count, in the order of addresses."""
        found = self._order[bisect_right(self._lines, low) : bisect_left(self._lines, high)]
        return tuple(self._code.steps[number] for number in sorted(number for _, number in found))

    def belongs(self, mark: _Mark, places: Sequence[_ByteMark]) -> bool:
        """Whether a comment only says what the bytes beside it are: no other code is between them."""
        after = bisect_right(
            places, mark.line, key=lambda place: self._code.line(self._code.steps[place.first])
        )
        near = places[max(after - 1, 0) : after + 1] if not mark.name else ()
        return any(place.kind == mark.kind and self._is_beside(mark.line, place) for place in near)

    def _is_beside(self, line: int, place: _ByteMark) -> bool:
        low = self._code.line(self._code.steps[place.first])
        last = self._code.program.statement(self._code.steps[place.behind - 1].end - 1)
        high = last.line if last else 0
        return low <= line <= high or not self.count(min(line, high), max(line, low))


# --- in comments ----------------------------------------------------------------------------------


def _mark(comment: Comment) -> _Mark | None:
    match = _MARKER.search(comment.text)
    if match is None or not (match["first"] or match["second"]):
        return None
    if comment.text.count('"', 0, match.start()) % 2:  # source that a disassembler printed: asm("# ...")
        return None
    word = match["first"] or match["second"]
    kind = _BEGIN if word in ("BEGIN", "START") else _END
    name = match["name"].strip().removesuffix("*/").strip() if match["tool"] == _NAMING else ""
    ahead = _ASIDE.match(comment.text.lstrip()) is not None
    if match["tool"] != _NAMING:  # the whole line is the marker, its code as well
        ahead = kind == _END
    return _Mark(kind, name, match["tool"], comment.line, ahead)


def _misread(program: Program) -> list[Remark]:
    """Comments that look like markers and are none."""
    return [
        at_line(comment.line, Marking.MISREAD.of(shortened(comment.text.strip())))
        for comment in program.comments
        if _NEARLY.search(comment.text) and _mark(comment) is None
    ]


def _spans(program: Program, marks: Sequence[_Mark]) -> list[_Span]:
    """Beginnings with their ends; an end without a name ends the only open region of its tool."""
    opened: dict[tuple[str, str], _Mark] = {}
    spans: list[_Span] = []
    for mark in marks:
        if mark.kind == _BEGIN:
            _open(program, opened, mark)
        elif not spans and not opened and not mark.name:
            spans.append(_Span(None, mark))
        else:
            spans.append(_Span(opened.pop(_ended(program, opened, mark)), mark))
    spans += [_Span(mark, None) for mark in opened.values()]
    return sorted(spans, key=lambda span: span.first.line if span.first else 0)


def _where(program: Program, mark: _Mark) -> str:
    return f"{program.source}, line {mark.line}: {mark.tool} {mark.kind} marker"


def _open(program: Program, opened: dict[tuple[str, str], _Mark], mark: _Mark) -> None:
    other = opened.get((mark.tool, mark.name))
    if other is not None:
        remedy = "regions that overlap need different names" if mark.tool == _NAMING else _REMEDY
        raise SourceError(f"{_where(program, mark)} while the region of line {other.line} is open", remedy)
    opened[mark.tool, mark.name] = mark


def _ended(program: Program, opened: dict[tuple[str, str], _Mark], mark: _Mark) -> tuple[str, str]:
    """Which open region a marker ends."""
    own = [key for key in opened if key[0] == mark.tool]
    if not mark.name and len(own) == 1:
        return own[0]
    key = mark.tool, mark.name
    if key not in opened:
        names = ", ".join(name for _, name in own if name)
        remedy = f"open are {names}" if names else _REMEDY
        raise SourceError(f"{_where(program, mark)} without a beginning", remedy)
    return key


def _open_end(span: _Span) -> Remark:
    """What is assumed about a region with one marker."""
    if span.last is None and span.first is not None:
        mark, assumed = span.first, Marking.NO_END
    elif span.first is None and span.last is not None:
        mark, assumed = span.last, Marking.NO_BEGINNING
    else:
        return NOTHING
    return at_line(mark.line, assumed.of(mark.tool, mark.kind))


def _limits(span: _Span) -> tuple[float, float]:
    """Between which lines a region is: a marker is behind the code of its line, or ahead of it."""
    first, last = span
    low = (first.line - 0.5 if first.ahead else first.line + 0.5) if first else 0.0
    high = (last.line - 0.5 if last.ahead else last.line + 0.5) if last else float("inf")
    return low, high


def _region(lines: _Lines, span: _Span) -> MarkedRegion:
    first, last = span
    low, high = _limits(span)
    mark = first or last
    assert mark is not None
    begin = Spot.LINE.of(first.line) if first else Chosen.BEGINNING.of()
    end = Spot.LINE.of(last.line) if last else Chosen.END.of()
    if first and last:
        where = Chosen.MARKED.of(mark.tool, first.line, last.line)
    else:
        where = Chosen.HALF_MARKED.of(begin, end, mark.tool)
    name = mark.name if first else ""
    return MarkedRegion(name, lines.count(low, high), partial(lines.between, low, high), where)


# --- in bytes -------------------------------------------------------------------------------------


class _ByteMark(NamedTuple):
    """A marker of instructions: the position of its first, and of what is behind it."""

    first: int
    behind: int
    kind: str


def _byte_places(code: Code) -> list[_ByteMark]:
    return sorted([*_byte_marks(code), *_stored_marks(code)])


def _byte_regions(code: Code, marks: Sequence[_ByteMark]) -> list[MarkedRegion]:
    """Regions between IACA's instructions: `mov ebx, 111` or 222 and the bytes 64 67 90.

    For Microsoft's compiler they are `mov byte ptr gs:[111], 111` and 222. OSACA has the first kind for
    AArch64 and RISC-V too, `mov x1, #111` or `li a1, 111` and a NOP.
    """
    regions = []
    for begin, end in zip(marks[::2], marks[1::2], strict=False):
        if (begin.kind, end.kind) != (_BEGIN, _END):
            raise _unbalanced(code, begin if begin.kind == _END else end)
        size = end.first - begin.behind
        if size <= 0:
            raise SourceError(f"{_place(code, begin)}: nothing between the markers", _REMEDY)
        where = Chosen.MARKED_AT.of(_tool(code), _spot(code, begin), _spot(code, end))
        regions.append(MarkedRegion("", size, partial(_between, code, begin, end), where))
    if len(marks) % 2:
        raise _unbalanced(code, marks[-1])
    return regions


def _between(code: Code, begin: _ByteMark, end: _ByteMark) -> Sequence[FlowStep]:
    return code.steps[begin.behind : end.first]


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
    known = instruction_set(code.program.isa).markers
    for pattern in known.codes:
        for position in _positions(code, pattern):
            number = _loaded(code.instruction(code.steps[position - 1]), known) if position else None
            if number in _IACA:
                yield _ByteMark(position - 1, position + 1, _IACA[number])


def may_be_marked(code: bytes, isa: str) -> bool:
    """Whether bytes of markers are in machine code."""
    known = instruction_set(isa).markers
    return any([pattern in code for pattern in (*known.codes, known.stored) if pattern])  # noqa: C419 - quicker


def _stored_marks(code: Code) -> Iterator[_ByteMark]:
    stored = instruction_set(code.program.isa).markers.stored
    for number, kind in _IACA.items() if stored else ():
        for position in _positions(code, stored + bytes((number, 0, 0, 0, number))):
            yield _ByteMark(position, position + 1, kind)


def _loaded(one: BlockInstruction, markers: Markers) -> int | None:
    """The constant that a move puts into the register of markers."""
    name = one.form.mnemonic if one.form is not None else ""
    if not one.registers or one.registers[0] not in markers.moves.get(name, ()):
        return None
    if any(one.registers[1:]):  # the number is added to something
        return None
    return next((value for value in one.immediates if value is not None), None)


def _tool(code: Code) -> str:
    return instruction_set(code.program.isa).markers.tool


def _spot(code: Code, mark: _ByteMark) -> str:
    step = code.steps[mark.first]
    line = code.line(step)
    return f"line {line}" if line else f"{step.address:#x}"


def _place(code: Code, mark: _ByteMark) -> str:
    return f"{code.program.source}, {_spot(code, mark)}"


def _unbalanced(code: Code, mark: _ByteMark) -> SourceError:
    return SourceError(f"{_place(code, mark)}: {_tool(code)} marker without its counterpart", _REMEDY)
