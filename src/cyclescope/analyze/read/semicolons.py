"""Semicolons: between instructions for GNU as, in front of comments for others.

`dec rdi ; loop counter` is NASM's and Microsoft's way, where GNU as finds an instruction LOOP.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cyclescope.remarks.reading import ReadAs, at_lines
from cyclescope.remarks.remark import LISTED, Remark

_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_WHOLE_LINE = re.compile(r"\s*;")
_BEHIND_SPACE = re.compile(r"\s;")
_PREFIX = re.compile(r"\s*(?:[\w.$]+:\s*)*(?:lock|rep\w*|data16|xacquire|xrelease|notrack)\s*", re.IGNORECASE)
_OF_GNU_AS = re.compile(r"\s*\.(?:intel|att)_syntax\b")


def without_comments(lines: Sequence[str], intel: bool) -> tuple[list[str], tuple[Remark, ...]]:
    """Lines without the comments behind semicolons, and a note on those that had code in front.

    A semicolon behind a space begins a comment in a text of which a line begins with one, and in Intel syntax
    where the text does not say that it is for GNU as. One line alone is as people type it: instructions.
    """
    foreign = intel and len(lines) > 1 and not any(map(_OF_GNU_AS.match, lines))
    if not foreign and not any(map(_WHOLE_LINE.match, lines)):
        return list(lines), ()
    cut = [_without_comment(line) for line in lines]
    said = [
        number
        for number, (line, kept) in enumerate(zip(lines, cut, strict=True), 1)
        if kept != line and kept.strip()
    ]
    return cut, _note(said)


def _without_comment(line: str) -> str:
    if ";" not in line:
        return line
    if _WHOLE_LINE.match(line):
        return ""
    plain = without_strings(line)
    for match in _BEHIND_SPACE.finditer(plain):
        if not _PREFIX.fullmatch(plain[: match.start()]):
            return line[: match.start()]
    return line


def without_strings(line: str) -> str:
    """A line as long, with something plain in place of its strings."""
    return _STRING.sub(lambda text: "_" * len(text[0]), line)


def _note(numbers: Sequence[int]) -> tuple[Remark, ...]:
    return (at_lines(numbers, ReadAs.COMMENT.of("a semicolon"), LISTED),) if numbers else ()
