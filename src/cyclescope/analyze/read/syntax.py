"""How an assembly text is written: its instruction set, its syntax, and what each line is."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from cyclescope.isa.registry import DEFAULT, instruction_set, instruction_sets

INTEL, ATT = "intel", "att"
SYNTAXES = (INTEL, ATT)
_LOOKED_AT = 2000  # lines, enough to tell
_WIDEST = 200  # characters of a line: more is comment or data
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|#\d+\}')  # the latter is of lambdas in C++ names
_HELD = re.compile(r"\x00(\d+)\x00")  # a string that was put aside
_LABEL = re.compile(r"\s*([A-Za-z_.$@?][\w.$@?]*|\d+|\"[^\"]+\")\s*:(?!:)")
_DEMANGLED = re.compile(
    r"[A-Za-z_~][^#\"\s(<*&,:~\[]*[\s(<*&,:~\[](?:[^#\"]|#\d+\})*$"
)  # a C++ name, as websites have it
_ASSIGNMENT = re.compile(r"\s*[\w.$]+\s*==?[^=]")
_OPENING = re.compile(r"\s*\.(macro|rept|irpc?|rep)\b", re.IGNORECASE)
_CLOSING = re.compile(r"\s*\.(endm|endr|endmacro)\b", re.IGNORECASE)
_CODE_DATA = re.compile(
    r"\s*\.(byte|[248]byte|short|h?word|value|long|int|d?word|insn|inst(\.[nw])?)\b[\s\dxXa-fA-F,-]*([;#].*)?$"
)
_PADDING = re.compile(r"\s*\.(p2align[wl]?|balign[wl]?|align|nops?|nop|rept|irpc?|rep)\b")
DATA = re.compile(
    r"\s*\.(byte|[1248]byte|short|h?word|value|long|int|d?word|quad|octa|xword|zero|skip|space|fill|org|float|single"
    r"|double|tfloat|ascii|asciz|string\d*|u?leb128|base64|dc|dcb|ds)\b"
)


_CONSTANT = re.compile(r"[.$]?L?_{0,2}(?:LC|l?CPI)\d")  # compilers' labels of constants


class SourceLine(msgspec.Struct, frozen=True):
    """One line of a text, without comments.

    `kind` is `code` (instructions or a macro), `bytes` (instructions given as numbers), `padding`,
    `data`, `table` (data outside of code), `directive`, `label` (nothing but labels) or `empty`. `labels`
    stand in front of `text`; `written` is both.
    """

    number: int
    kind: str
    labels: tuple[str, ...]
    text: str
    written: str


def guess_isa(lines: Sequence[str]) -> str:
    """The instruction set that most operands look like; x86-64 where nothing tells."""
    return likely_isa(lines) or DEFAULT


def likely_isa(lines: Sequence[str]) -> str:
    """The instruction set that most operands look like, "" where nothing tells."""
    code = [_LABEL.sub("", line[:_WIDEST]).strip() for line in lines[:_LOOKED_AT]]
    code = [line for line in code if not line.startswith((".", "#", "//"))]
    text = "\n".join(code)
    lower = [line.lower() for line in code]
    votes = {
        record.name: len(re.findall(record.writing.operands, text, re.IGNORECASE))
        + sum(re.match(record.writing.mnemonics, line) is not None for line in lower)
        for record in instruction_sets()
    }
    return max(votes, key=lambda isa: votes[isa]) if any(votes.values()) else ""


def guess_syntax(lines: Sequence[SourceLine], isa: str) -> str:
    """AT&T where registers have a percent sign or immediates a dollar sign, else Intel."""
    writing = instruction_set(isa).writing
    att, any_operand = (re.compile(text, re.IGNORECASE) for text in (writing.att, writing.operands))
    code = [line for line in lines if line.kind == "code"]
    marked = sum(bool(att.search(line.text)) for line in code)
    bare = sum(bool(any_operand.search(line.text)) for line in code) - marked
    return ATT if marked > bare or (marked and marked == bare) else INTEL


def split(lines: Sequence[str], isa: str) -> list[SourceLine]:
    """Every line of a text with its kind."""
    result = []
    writing = instruction_set(isa).writing
    reader = _Reader(writing.comments, writing.whole_line)
    for number, raw in enumerate(lines, 1):
        result.append(reader.line(number, raw))
    return result


def _is_demangled(raw: str, text: str) -> bool:
    """Whether a line without comments is a C++ name as a label."""
    label = text.endswith(":") and not raw[:1].isspace() and _DEMANGLED.match(text) is not None
    return label and not _LABEL.match(text)


class _Reader:
    """Goes through the lines, remembering block comments, macro definitions and the section."""

    def __init__(self, comments: tuple[str, ...], whole_lines: str) -> None:
        self._comments = comments
        self._whole_lines = whole_lines
        self._in_comment = False
        self._depth = 0
        self._is_code = True
        self._is_data = False
        self._constant = False  # behind the label of one

    def line(self, number: int, raw: str) -> SourceLine:
        text = written = self._stripped(raw).strip()
        if _is_demangled(raw, text):
            return SourceLine(number, "label", (text[:-1],), "", "")
        labels, behind = [], 0
        while match := _LABEL.match(text, behind):
            labels.append(match[1].strip('"'))
            behind = match.end()
        text = text[behind:].lstrip()
        kind = self._kind(text, bool(labels))
        if labels or kind == "code":
            self._constant = kind != "code" and _CONSTANT.match(labels[-1]) is not None
        kind = "data" if kind == "bytes" and self._constant else kind
        return SourceLine(number, kind, tuple(labels), text, written)

    def _kind(self, text: str, labelled: bool) -> str:
        inside = self._depth > 0
        if _CLOSING.match(text):
            self._depth -= inside
            return "directive"
        if _OPENING.match(text):
            self._depth += 1
            return "padding" if not inside and not text.lstrip().startswith(".macro") else "directive"
        if inside:
            return "directive"
        if not text:
            return "label" if labelled else "empty"
        if text[0] != ".":
            return "directive" if _ASSIGNMENT.match(text) or text[0] == "#" else self._of("code")
        self._section(text)
        if _CODE_DATA.match(text):
            return self._of("bytes")
        if _PADDING.match(text):
            return self._of("padding")
        return self._of("data") if DATA.match(text) else "directive"

    def _of(self, kind: str) -> str:
        if self._is_code:
            return kind
        return "table" if self._is_data and kind in ("data", "bytes") else "directive"

    def _section(self, text: str) -> None:
        match = re.match(
            r"\.(text|data|bss|rodata|section|pushsection|popsection|previous)\b\s*([^\s,]*)(.*)", text
        )
        if match is None:
            return
        directive, name, rest = match.groups()
        if directive in ("section", "pushsection"):
            flags = re.search(r'"(\w*)"', rest)
            self._is_data = name.startswith((".data", ".rodata"))
            plain = not name.startswith((".data", ".bss", ".rodata", ".debug"))
            self._is_code = "x" in flags[1] if flags else plain
        else:
            self._is_data = directive in ("data", "rodata")
            self._is_code = directive not in ("data", "bss", "rodata")

    def _stripped(self, raw: str) -> str:
        """A line without its comments; strings are kept whole."""
        held: list[str] = []

        def hold(match: re.Match[str]) -> str:
            held.append(match[0])
            return f"\x00{len(held) - 1}\x00"

        text = _STRING.sub(hold, raw) if '"' in raw or "#" in raw else raw
        text = self._without_blocks(text)
        if self._whole_lines and text.lstrip().startswith(self._whole_lines):
            return ""
        for start in self._comments:
            text = text.partition(start)[0]
        return _HELD.sub(lambda match: held[int(match[1])], text) if held else text

    def _without_blocks(self, text: str) -> str:
        if not self._in_comment and "/*" not in text:
            return text
        kept, at = [], 0
        while at < len(text):
            found = text.find("*/" if self._in_comment else "/*", at)
            end = found if found >= 0 else len(text)
            if not self._in_comment:
                kept.append(text[at:end] + " " * (found >= 0))
            self._in_comment ^= found >= 0
            at = end + 2
        return "".join(kept)
