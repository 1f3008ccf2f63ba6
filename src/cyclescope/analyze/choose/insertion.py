"""Markers put into an assembly text, around a loop."""

from __future__ import annotations

from cyclescope.analyze.choose.loops import Candidate, innermost_loops
from cyclescope.analyze.choose.markers import marked_regions
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.read.masm import is_masm
from cyclescope.analyze.read.program import Code, Program
from cyclescope.analyze.read.syntax import SourceLine, split
from cyclescope.errors import SourceError, UsageError
from cyclescope.isa.registry import instruction_set

STYLES = {"osaca": ("OSACA-BEGIN", "OSACA-END"), "llvm-mca": ("LLVM-MCA-BEGIN", "LLVM-MCA-END")}


def markable_loops(program: Program) -> list[Candidate]:
    """The innermost loops of an assembly text.

    Raises SourceError where there is none, where there is no text to mark, or where it has markers.
    """
    if not program.lines:
        raise SourceError(f"{program.source} is no assembly text", "markers go into text")
    code = Code(program, decoder(program.isa))
    for region in marked_regions(code).regions:
        raise SourceError(f"{program.source} is marked already: {region.where}")
    found = innermost_loops(code)
    if not found:
        raise SourceError(f"{program.source} has no loop", "nothing to mark")
    return found


def marked(program: Program, loop: Candidate, style: str = "osaca") -> str:
    """The text with a loop, its label included, between markers of a style (see `STYLES`)."""
    if style not in STYLES:
        raise UsageError(f"unknown style of markers {style!r}", f"choose one of {', '.join(STYLES)}")
    first, last = loop.lines
    first = _label_line(split(program.lines, program.isa), first)
    comment = ";" if is_masm("\n".join(program.lines)) else instruction_set(program.isa).writing.comments[0]
    begin, end = (f"{comment} {word}" for word in STYLES[style])
    lines = [*program.lines[: first - 1], begin, *program.lines[first - 1 : last], end, *program.lines[last:]]
    return "\n".join(lines) + "\n"


def _label_line(lines: list[SourceLine], first: int) -> int:
    """The topmost label in front of a line, with nothing that is code in between."""
    found = first
    for line in reversed(lines[: first - 1]):
        if line.kind in ("code", "bytes", "padding", "data"):
            break
        if line.labels:
            found = line.number
    return found
