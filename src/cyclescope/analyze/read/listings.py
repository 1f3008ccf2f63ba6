"""Listings of debuggers and profilers, put as `objdump -d` prints them, line by line.

They are GDB's `disassemble`, `disassemble /r` and `x/i`, and `perf annotate --stdio`, with sources in between
or without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_GDB = re.compile(r"(?:=>)?\s*0x0*([0-9a-f]+) <.*?>:\s+(.*)$")
_GDB_HEAD = re.compile(r"Dump of assembler code for function (.+?):?\s*$")
_PERF_HEAD = re.compile(r"\s*Percent\s*\|")
_PERF_COLUMN = re.compile(r"\s*(?:\d+\.\d+)?\s+[:|]\s*(?:\d+ {2,})?")
_HEADER = "{:0>4} <{}>:"


def as_objdump(lines: Sequence[str]) -> tuple[str, ...] | None:
    """The lines of such a listing as objdump has them, None of another text."""
    if any(map(_PERF_HEAD.match, lines)):
        return tuple(_PERF_COLUMN.sub("", line, count=1) for line in lines)
    if any(map(_GDB.match, lines)):
        return tuple(_of_gdb(lines))
    return None


def _of_gdb(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    heads: list[int] = []  # lines that name a function whose address comes behind them
    for line in lines:
        if match := _GDB.match(line):
            address, text = match.groups()
            for number in heads:
                found[number] = _HEADER.format(address, found[number])
            heads.clear()
            found.append(f"{address:>8}:\t{text}")
        elif match := _GDB_HEAD.match(line):
            heads.append(len(found))
            found.append(match[1])
        else:
            found.append("")
    return found
