"""Listings of Microsoft's compiler (MASM) as GNU assembly, line by line.

What `cl /FA` writes and websites show: `name PROC`, `$LL4@name:`, `DD`, numbers like `0ffH`, comments behind
a semicolon. Names that GNU assemblers do not take are put otherwise; messages and tables keep the line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cyclescope.isa.text import SIZES

_SIGNS = re.compile(
    r"^[ \t]*include\s+listing\.inc\b|^[\w$?@]+\s+(PROC|ENDP|SEGMENT|ENDS)\b|^\$L\w*@?[\w$?@]*:"
    r"|^[ \t]*INCLUDELIB\b|^[ \t]*npad\s+\d",
    re.MULTILINE,
)
_STRING = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_NAMED = re.compile(
    r"[ \t]*([A-Za-z_$?@][\w$?@.]*)[ \t]+(PROC|ENDP|SEGMENT|ENDS|D[BWDQT]|LABEL|EQU)\b[ \t]*(.*)"
)
_DATA = re.compile(r"[ \t]+(D[BWDQT])[ \t]+(.*)")
_NOTHING = re.compile(
    r"[ \t]*(include|INCLUDELIB|PUBLIC|EXTRN|EXTERN|TITLE|ASSUME|OPTION|ALIAS|COMM|END|ORG|ALIGN|\.\w+)\b",
    re.IGNORECASE,
)
_PADDING = re.compile(r"[ \t]*npad[ \t]+(\d{1,4})\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w$?@])(\d[\da-fA-F]*)[hH]\b")
_NAME = re.compile(r"(?<![\w$?@.%])(?=[\w.]*[$?@])[A-Za-z_$?@][\w$?@.]*")
_BARE = re.compile(r"\bPTR[ \t]+([A-Za-z_.][\w.]*(?:[+-]\d+)?)(?=[ \t]*(?:,|$))")  # relative to RIP
_OFFSET = re.compile(r"(\blea[ \t]+\w+,[ \t]*)OFFSET[ \t]+(?:FLAT:)?([\w.]+(?:[+-]\d+)?)", re.IGNORECASE)
_FLAT = re.compile(r"\bFLAT:")
_RETURN = re.compile(r"^([ \t]*ret)[ \t]+0[ \t]*$", re.IGNORECASE)
_REGISTERS = re.compile(
    r"(?:[re]?[abcd]x|[abcd][lh]|[re]?[sd]i|[sd]il|[re]?[sb]p|[sb]pl|r\d+[dwb]?|[xyz]mm\d+)", re.I
)
_BITS = {
    f"D{name[0].upper()}": bits for bits, name in SIZES.items() if not name.endswith("mmword")
}  # DB, DW, ...
_DIRECTIVES = {"DB": ".byte", "DW": ".2byte", "DD": ".4byte", "DQ": ".8byte"}
_CODE = ("_TEXT", "text")


def is_masm(text: str) -> bool:
    """Whether a text is a listing of Microsoft's compiler for x86."""
    return _SIGNS.search(text) is not None


def translated(lines: Sequence[str], names: dict[str, str]) -> list[str]:
    """The lines as GNU assembly in Intel syntax, each on its own line; comments stay behind `#`.

    `names` gets the names that had to be put otherwise.
    """
    return [_line(line, names) for line in lines]


def _line(line: str, names: dict[str, str]) -> str:
    code, comment = _split(line)
    text = _translated(code, names) if code.strip() else ""
    return f"{text} # {comment}" if comment.strip() else text


def _split(line: str) -> tuple[str, str]:
    """Code and comment; a semicolon in quotes begins none."""
    held = _STRING.sub(lambda match: "_" * len(match[0]), line)
    at = held.find(";")
    return (line, "") if at < 0 else (line[:at], line[at + 1 :])


def _translated(code: str, names: dict[str, str]) -> str:
    if _NOTHING.match(code):
        return ""
    if match := _PADDING.match(code):
        return f".nops {match[1]}" if int(match[1]) else ""
    if match := _NAMED.match(code):
        return _named(match[1], _known(match[1], names), match[2], match[3])
    if match := _DATA.match(code):
        return _data(match[1], match[2])
    code = _NUMBER.sub(lambda match: f"0x{match[1]}", code)
    code = _NAME.sub(lambda match: _known(match[0], names), code)
    code = _OFFSET.sub(r"\1[rip+\2]", _RETURN.sub(r"\1", code))
    return _BARE.sub(_relative, _FLAT.sub("", code))


def _known(name: str, names: dict[str, str]) -> str:
    """A name that GNU assemblers take."""
    if re.fullmatch(r"[A-Za-z_][\w.]*", name):
        return name
    return names.setdefault(name, f".Lmasm{len(names)}")


def _relative(match: re.Match[str]) -> str:
    """A variable by itself is addressed from the instruction."""
    name = match[1]
    return match[0] if _REGISTERS.fullmatch(name) else f"PTR [rip+{name}]"


def _named(name: str, known: str, word: str, rest: str) -> str:
    if word == "SEGMENT":
        return ".text" if name.startswith(_CODE) else ".data"
    if word in _BITS:
        return f"{known}: {_data(word, rest)}"
    return {"PROC": f"{known}:", "LABEL": f"{known}:", "ENDS": ".text"}.get(word, "")


def _data(word: str, rest: str) -> str:
    """Numbers as they are; of anything else the room it takes."""
    items = [item.strip() for item in _STRING.sub("0", rest).split(",")]
    numbers = [_NUMBER.sub(lambda match: f"0x{match[1]}", item) for item in items]
    if word in _DIRECTIVES and all(re.fullmatch(r"-?(0x[\da-fA-F]+|\d+)", one) for one in numbers):
        return f"{_DIRECTIVES[word]} {', '.join(numbers)}"
    count = sum(int(match[1]) if (match := re.match(r"(\d{1,9})[ \t]+DUP\b", item)) else 1 for item in items)
    return f".skip {count * _BITS[word] // 8}"
