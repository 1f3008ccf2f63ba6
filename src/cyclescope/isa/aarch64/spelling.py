"""How AArch64 is written otherwise than the table has it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cyclescope.isa.aarch64.aliases import ALIASES, OTHER_CONDITIONS
from cyclescope.isa.find.spelling import Spelling

_CONDITION = re.compile(r"(?<=[ .])(cs|cc)(?=$|[ ,])")
_VECTOR_LIST = re.compile(r"\{ ?v(\d+)\.(\w+) ?- ?v(\d+)\.\w+ ?\}")
_NO_SHIFT = re.compile(r"(?:(?<=[us]xt[bhwx])|, lsl) 0$")
_STACK = re.compile(r"\bw?sp\b")
_BARE_LIST = re.compile(r"(?<= )(z\d+\.\w), (?=p\d+)")
_LAST_BASE = re.compile(r"\[([^\],]+)\]$")


def _line(line: str) -> str:
    return _VECTOR_LIST.sub(_listed, _CONDITION.sub(lambda m: OTHER_CONDITIONS[m[1]], line))


def _listed(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[3])
    count = (last - first) % 32 + 1
    return "{ " + ", ".join(f"v{(first + n) % 32}.{match[2]}" for n in range(count)) + " }"


def _alternatives(line: str) -> Iterator[str]:
    yield _NO_SHIFT.sub("", line)
    if _STACK.search(line):  # its forms extend what others shift
        yield line.replace(" lsl ", " uxtx ")
        yield line.replace(" lsl ", " uxtw ")
    listed = _BARE_LIST.sub(r"{ \1 }, ", line)  # SVE's loads and stores
    for text in dict.fromkeys((line, listed)):
        yield text
        yield _LAST_BASE.sub(r"[\1, 0]", text)
        yield _LAST_BASE.sub(r"[\1, 0, mul vl]", text)


SPELLING = Spelling(
    lists=("{ ", " }"),
    names={"fp": "x29", "lr": "x30", "ip0": "x16", "ip1": "x17"},
    endings=(", uxtx", ", uxtw", ", all", ", all, mul 1", ", mul 1"),
    aliases=ALIASES,
    line=_line,
    alternatives=_alternatives,
)
