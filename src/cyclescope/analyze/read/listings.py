"""Listings of debuggers and profilers, put as `objdump -d` prints them, line by line.

They are GDB's `disassemble`, `disassemble /r` and `x/i`, and `perf annotate --stdio`, with sources in between
or without. What perf shows on a terminal (`--stdio2`) has no addresses but labels: it becomes assembly text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

_GDB = re.compile(r"(?:=>)?\s*0x0*([0-9a-f]+) <.*?>:\s+(.*)$")
_GDB_HEAD = re.compile(r"Dump of assembler code for function (.+?):?\s*$")
_PERF_HEAD = re.compile(r"\s*Percent\s*\|")
_PERF_COLUMN = re.compile(r"\s*(?:\d+\.\d+)?\s+[:|]\s*(?:\d+ {2,})?")
_HEADER = "{:0>4} <{}>:"
_TERMINAL_HEAD = re.compile(r"Percent[\s│]*$")
_SHARE = re.compile(r"\s*(?:\d+\.\d+)?[\s│]*")
_SHOWN = re.compile(r"(?:([0-9a-f]+): +)?([↑↓→←]?) *([a-z][\w.]*(?: +[^;={}]*)?)$")
_SOURCE = re.compile(r"(?:if|else|do|for|while|return|case|goto|struct|unsigned|int|long|double|float)\b")
_MASKS = re.compile(r"\{(?:%k\d|z|1to\d+)\}")
_NAMED = re.compile(r"[0-9a-f]{8,16} <(.+)>:$")


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


def as_assembly(lines: Sequence[str]) -> tuple[str, ...] | None:
    """The lines of what perf shows on a terminal as assembly text, None of another text."""
    head = next((number for number, line in enumerate(lines) if _TERMINAL_HEAD.match(line)), None)
    if head is None:
        return None
    rows = [_SHARE.sub("", line, count=1).rstrip() for line in lines[head:]]
    shown = [None if _SOURCE.match(row) else _SHOWN.fullmatch(_MASKS.sub("", row)) for row in rows]
    labels = {match[1] for match in shown if match and match[1]}
    found = [_of_terminal(*one, labels) for one in zip(rows, shown, strict=True)]
    return tuple([""] * head + found)


def _of_terminal(row: str, match: re.Match[str] | None, labels: Container[str]) -> str:
    if match is None:
        named = _NAMED.match(row)
        return f'"{named[1]}":' if named else ""
    text = row[match.start(3) :]
    if match[2] in ("↑", "↓"):  # a jump, to a label of the function
        target = text.split(",")[-1].split()[-1]
        text = (
            text.removesuffix(target) + f".L{target}" * (target in labels) + target * (target not in labels)
        )
    return f".L{match[1]}: {text}" if match[1] else text
