"""nanoBench's additions to assembly text: `100*|add rax, rbx; nop|` copies, `|8` is a NOP of 8 bytes."""

from __future__ import annotations

import re

from cyclescope.errors import UsageError, shortened
from cyclescope.isa.registry import instruction_set

_REPEATED = re.compile(r"(\d+)\s*\*\s*\|([^|]*)\|")
_NOP = re.compile(r"\|\s*(\d+)\s*(?=[;\n]|$)")
_LARGEST = 1_000_000  # characters of what is written: some ten times what one body may hold


def expanded(text: str, isa: str) -> str:
    """The text as assemblers read it. Raises UsageError for what cannot be written so."""
    return _NOP.sub(lambda match: _nop(int(match[1]), isa), _REPEATED.sub(_copies, text))


def _copies(match: re.Match[str]) -> str:
    count = int(match[1])
    if not 1 <= count * (len(match[2]) + 1) <= _LARGEST:
        raise UsageError(
            f"{shortened(match[0])!r} is no number of copies", "write some hundred, and unroll more"
        )
    return ";".join([match[2]] * count)


def _nop(length: int, isa: str) -> str:
    record = instruction_set(isa)
    if record.fixed_width:
        raise UsageError(f"|{length}: {isa} has no NOPs of a chosen length", "write nop")
    code = record.module("isa", "padding").nop(length)
    if code is None:
        raise UsageError(f"|{length}: no NOP has so many bytes", "write 1 to 15")
    return ".byte " + ",".join(f"{byte:#04x}" for byte in code)
