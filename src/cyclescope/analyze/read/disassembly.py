"""Listings of disassemblers (`objdump -d`, `llvm-objdump -d`): machine code, or text, at addresses.

Where the bytes of the code are in the listing, they are the code. Without them (`--no-show-raw-insn`) the
text is put so that an assembler takes it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from cyclescope.analyze.decode.instruments import Comment
from cyclescope.analyze.read.program import SECTION_PLACES, Function, Piece, Program, Statement
from cyclescope.analyze.read.syntax import guess_isa
from cyclescope.errors import SourceError
from cyclescope.isa.registry import instruction_set, instruction_sets

_FORMAT = r"file format (?:elf64-|mach-o[ -]|coff-)?(?:{})"
_SECTION = re.compile(r"Disassembly of section (\S+?):?\s*$")
_HEADER = re.compile(r"([0-9a-f]{4,16}) <(.+)>:\s*$")  # C++ names have such brackets, too
_CODED = re.compile(
    r"\s*([0-9a-f]{1,16}):[ \t]+((?:[0-9a-f]{2} )*[0-9a-f]{2}|[0-9a-f]{8}|[0-9a-f]{4}) *"
    r"(?:(?:\t|  )[ \t]*(.*))?$"
)
_PLAIN = re.compile(r"\s*([0-9a-f]{1,16}):[ \t]+(?!file format )([a-z.(].*)$")  # a file may be named `a`
_RELOCATION = re.compile(r"\s*[0-9a-f]+:[ \t]+R_\w+")
_TARGET = re.compile(r"\b(?:0x)?([0-9a-f]{1,16}) <.+>")
_LONG_NOP = re.compile(r"(?:data16 |[cdefgs]s )*nop[wl]?\s+\S")  # x86's padding
_ALIGNED = 16  # bytes: as most compilers align functions, and what they ask of a linker then
_COMMENT = re.compile(r"[ \t]*(?:#|//)\s.*$")


class _Row(NamedTuple):
    """An instruction of a listing; of a long one the bytes behind the first lines are rows without text."""

    line: int
    address: int
    code: bytes
    text: str


def is_disassembly(lines: Sequence[str]) -> bool:
    """Whether a text is what a disassembler prints: it says so, or bytes and addresses fit."""
    if any(_HEADER.match(line) or _SECTION.match(line) for line in lines):
        return any(_CODED.match(line) or _PLAIN.match(line) for line in lines)
    rows = [row for number, line in enumerate(lines, 1) if (row := _row(number, line, ""))]
    return len(rows) > 1 and all(a.address + len(a.code) == b.address for a, b in pairwise(rows))


def listed_isa(lines: Sequence[str]) -> str:
    """The instruction set of a listing: as it says, else what operands look like."""
    for line in lines:
        if match := _format().search(line):
            return instruction_sets()[(match.lastindex or 1) - 1].name
    texts = [match[3] or "" for line in lines if (match := _CODED.match(line))]
    texts += [match[2] for line in lines if (match := _PLAIN.match(line))]
    return guess_isa([_COMMENT.sub("", text) for text in texts])


@cache
def _format() -> re.Pattern[str]:
    """The line that names the instruction set, with a group for each."""
    listed = "|".join(f"({record.writing.listed})" for record in instruction_sets())
    return re.compile(_FORMAT.format(listed), re.IGNORECASE)


def has_code(lines: Sequence[str], isa: str) -> bool:
    """Whether the listing has the bytes of the code."""
    return any(_row(number, line, isa) for number, line in enumerate(lines, 1))


def listed_program(lines: Sequence[str], source: str, isa: str) -> Program:
    """The program of a listing with bytes. Raises SourceError where there are none."""
    rows, functions = _read(lines, isa)
    if not rows:
        raise SourceError(f"{source} has no instructions", "give assembly text, an ELF file or machine code")
    pieces = tuple(_pieces(rows))
    ends = dict(pairwise([*(at for at, name in functions if not name.startswith(".L")), pieces[-1].end]))
    statements = tuple(
        Statement(row.address, row.line, _shown(row.text), row.text.startswith("."))
        for row in rows
        if row.text
    )
    return Program(
        isa, source, pieces, statements,
        tuple(Function(name, at, ends.get(at, at)) for at, name in functions if name[0] != "."),
        dict(functions), lines=tuple(lines), comments=tuple(_comments(lines, rows)),
        alignment=alignment(lines),
    )  # fmt: skip


def alignment(lines: Sequence[str]) -> int:
    """Bytes that the functions of an object file's listing are aligned to; 0 where a linker chose addresses.

    It puts no code at 0, where a file's head is.
    """
    heads = filter(None, map(_HEADER.match, lines))
    starts = [int(head[1], 16) for head in heads if not head[2].startswith(".")]
    return gcd(_ALIGNED, *starts) if 0 in starts else 0


def _comments(lines: Sequence[str], rows: Sequence[_Row]) -> Iterator[Comment]:
    """Lines without code, where somebody may have put markers."""
    coded = {row.line for row in rows}
    yield from (Comment(number, line) for number, line in enumerate(lines, 1) if number not in coded)


def _read(lines: Sequence[str], isa: str) -> tuple[list[_Row], list[tuple[int, str]]]:
    """Rows and functions; sections that begin at one address are put behind each other."""
    rows: list[_Row] = []
    functions: list[tuple[int, str]] = []
    base = end = 0
    for number, line in enumerate(lines, 1):
        if _SECTION.match(line):
            base, end = -1, max([end, *(row.address + len(row.code) for row in rows[-1:])])
        elif match := _HEADER.match(line):
            at = int(match[1], 16)
            base = _base(at, end) if base < 0 else base
            functions.append((at + base, match[2]))
        elif row := _row(number, line, isa):
            base = _base(row.address, end) if base < 0 else base
            rows.append(row._replace(address=row.address + base))
    return sorted(rows, key=lambda row: row.address), sorted(functions)


def _base(address: int, end: int) -> int:
    """What is added to the addresses of a section: nothing where there is room."""
    return 0 if address >= end else -(-end // SECTION_PLACES) * SECTION_PLACES - address


def _row(number: int, line: str, isa: str) -> _Row | None:
    """The row of a line; `fadd` is hexadecimal too, but no code of the ISA."""
    match = None if _RELOCATION.match(line) else _CODED.match(line)
    if match is None:
        return None
    digits = match[2]
    code = bytes.fromhex(digits)
    if " " not in digits and len(code) > 1:  # a number, the least byte last
        if isa and len(code) not in instruction_set(isa).writing.words:
            return None
        code = code[::-1]
    return _Row(number, int(match[1], 16), code, match[3] or "")


def _shown(text: str) -> str:
    return " ".join(_COMMENT.sub("", text).split()) if not text.startswith(".") else ""


def _pieces(rows: Sequence[_Row]) -> Iterator[Piece]:
    """Code that lies together."""
    first, code = rows[0].address, b""
    for row in rows:
        if row.address != first + len(code):
            yield Piece("", first, code)
            first, code = row.address, b""
        code += row.code
    yield Piece("", first, code)


def as_text(lines: Sequence[str]) -> list[str]:
    """A listing without bytes as assembly text, line by line: addresses are labels."""
    texts: list[str] = []
    named: set[str] = set()
    for number, part in enumerate(_sections(lines)):
        rows = [match[1] for line in part if (match := _plain(line))]
        lengths = {one: int(following, 16) - int(one, 16) for one, following in pairwise([*rows, *rows[-1:]])}
        texts += [_header(line, named) or _text_of(line, f".Lat{number}_", lengths) for line in part]
    return texts


def placed_line(lines: Sequence[str]) -> tuple[int, int] | None:
    """The number and address of a line of a listing without bytes: the first code of its largest section."""
    number, sections = 0, []
    for part in _sections(lines):
        rows = [(number + at, row) for at, line in enumerate(part, 1) if (row := _plain(line))]
        sections.append([(at, int(row[1], 16)) for at, row in rows if not row[2].startswith((".", "(bad)"))])
        number += len(part)
    largest = max(sections, key=len)
    return largest[0] if largest else None


def _plain(line: str) -> re.Match[str] | None:
    return None if _RELOCATION.match(line) else _PLAIN.match(line)


def _sections(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """The lines section by section: addresses begin anew."""
    starts = [number for number, line in enumerate(lines) if _SECTION.match(line)]
    for first, last in pairwise([0, *starts, len(lines)]):
        yield lines[first:last]


def _header(line: str, named: set[str]) -> str:
    """A function's name as a label, once; that of a section (`.plt`) without the dot."""
    match = _HEADER.match(line)
    name = match[2].strip().lstrip(".") if match else ""
    if match is None or match[2].startswith(".L") or name in named:
        return ""
    named.add(name)
    return f'"{name}":'


def _text_of(line: str, prefix: str, lengths: Mapping[str, int]) -> str:
    match = _plain(line)
    if match is None:
        return ""
    text = _TARGET.sub(lambda target: _target(target[1], prefix, lengths), _COMMENT.sub("", match[2]))
    if _LONG_NOP.match(text):  # assemblers make a shorter one of this, or refuse it
        text = _long_nop(lengths[match[1]]) or text.replace("data16 ", "")
        return f"{prefix}{match[1]}: {text}"
    label = f"{prefix}{match[1]}:"
    return label if text.startswith((".", "(bad)")) else f"{label} {text}"


def _long_nop(length: int) -> str:
    """A NOP of so many bytes, so that what comes behind it is where it was; "" where there is none."""
    few = {3: "00", 4: "4000", 5: "440000", 6: "440000", 7: "8000000000"}.get(length, "840000000000")
    code = bytes.fromhex(f"0f1f{few}")
    prefixes = length - len(code)
    fits = prefixes >= 0 and length < 16
    return f".byte {', '.join(map(hex, bytes([0x66] * prefixes) + code))}" if fits else ""


def _target(address: str, prefix: str, known: Container[str]) -> str:
    return f"{prefix}{address}" if address in known else f"0x{address}"
