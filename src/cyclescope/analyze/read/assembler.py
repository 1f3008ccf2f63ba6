"""Assembly text to a program, with the assembler that is there; every instruction keeps its line.

A label in front of every line of code tells, in the symbol table, where the line begins: all assemblers
have that, and it survives macros, relaxation and sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import msgspec

from cyclescope.analyze.decode.instruments import Comment
from cyclescope.analyze.read.assemblers import tools
from cyclescope.analyze.read.attempt import INTEL_HEADER, Attempt
from cyclescope.analyze.read.binary import Binary
from cyclescope.analyze.read.disassembly import alignment as listed_alignment
from cyclescope.analyze.read.disassembly import as_text, placed_line
from cyclescope.analyze.read.masm import is_masm, translated
from cyclescope.analyze.read.objects import alignment, bases, pieces, references, symbol_address
from cyclescope.analyze.read.program import SECTION_PLACES, Function, JumpTable, Program, Statement, moved
from cyclescope.analyze.read.semicolons import without_comments, without_strings
from cyclescope.analyze.read.syntax import ATT, INTEL, SourceLine, guess_isa, guess_syntax, split
from cyclescope.errors import BackendUnavailable, SourceError, UnsupportedInstruction
from cyclescope.host.uname import host_isa
from cyclescope.isa.assembly.limits import Budget
from cyclescope.isa.find.written import forms_of
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import load_table
from cyclescope.remarks.reading import ReadAs, at_line
from cyclescope.remarks.remark import Remark

_MARK = re.compile(r"__cs(\d+)__")
_LINE_END = re.compile(r"\r\n|\n|\r")  # as editors count lines
_REPEATED = re.compile(r"\.(rept|irpc?|rep)\b", re.IGNORECASE)
_NAME = re.compile(r"[\w.$@?]+")
_LOCAL_LABEL = re.compile(r"[.$\d]|L[A-Z]*\d+")  # the latter are Darwin's
_NEAR = 5  # lines
# What says that x86 code is for another mode of the CPU: it would be read as other instructions.


def text_program(text: str, source: str, isa: str = "", syntax: str = "", folder: str = "") -> Program:
    """The program of an assembly text; `isa` and `syntax` (x86) are guessed where they are not given.

    `folder` is where the text's own includes are. Raises SourceError for a text without instructions,
    UnsupportedInstruction for a line that no assembler here takes, BackendUnavailable without one.
    """
    raw = lines_of(text)
    isa = isa or guess_isa(raw)
    writing = instruction_set(isa).writing
    masm = bool(writing.att) and is_masm(text)
    names: dict[str, str] = {}
    written = translated(raw, names) if masm else raw
    return _written_program(written, raw, source, isa, syntax or INTEL * masm, folder, names)


def disassembled_program(lines: Sequence[str], source: str, isa: str, syntax: str) -> Program:
    """The program of a disassembler's listing without bytes; errors as for `text_program`."""
    program = _written_program(as_text(lines), tuple(lines), source, isa, syntax, "", {})
    number, address = placed_line(lines) or (0, 0)
    assembled = next((one.address for one in program.statements if one.line == number), None)
    if assembled is not None and len(program.pieces) == 1:
        program = moved(program, (address - assembled) % SECTION_PLACES)  # lines count, not pages
    return msgspec.structs.replace(program, alignment=listed_alignment(lines))


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text, as editors count them."""
    return tuple(_LINE_END.split(text.rstrip()))


def _written_program(
    written: Sequence[str],
    raw: tuple[str, ...],
    source: str,
    isa: str,
    syntax: str,
    folder: str,
    names: Mapping[str, str],
) -> Program:
    """The program of lines as GNU assemblers want them; `raw` is how they are shown.

    `names` are those that stand for others, by the other.
    """
    lines = split(written, isa)
    if not any(line.kind in ("code", "bytes") or _REPEATED.match(line.text) for line in lines):
        raise SourceError(f"{source} has no instructions", "give assembly text, an ELF file or machine code")
    modes = _modes(raw, source, isa)
    syntax = (syntax or guess_syntax(lines, isa)) if instruction_set(isa).writing.att else ""
    plain, commented = without_comments(written, syntax == INTEL)
    lines = split(plain, isa)
    data, notes = _assembled(lines, source, isa, syntax, folder)
    binary = Binary(data, f"the assembler's output for {source}")
    comments = tuple(_comments(lines, raw))
    program = _program(binary, source, _renamed(lines, names), raw, comments, (*modes, *commented, *notes))
    return msgspec.structs.replace(program, syntax=syntax)


def _comments(lines: Sequence[SourceLine], raw: Sequence[str]) -> Iterator[Comment]:
    """Lines with comments, or with what begins one where the assembler refuses it otherwise."""
    for line, text in zip(lines, raw, strict=True):
        if line.written != text.strip():
            yield Comment(line.number, text)
        elif ";" in text or "#" in text:
            yield Comment(line.number, without_strings(text))


def _modes(raw: Sequence[str], source: str, isa: str) -> tuple[Remark, ...]:
    """Notes on code for 32 bits that is read as code for 64; SourceError where that means another thing."""
    writing = instruction_set(isa).writing
    pattern = re.compile(writing.other_mode or "(?!)", re.IGNORECASE)
    found = ((number, pattern.match(text)) for number, text in enumerate(raw, 1))
    first = next(((number, match[0].strip()) for number, match in found if match), None)
    if first is None:
        return ()
    number, what = first
    if writing.mode_note:
        return (at_line(number, ReadAs.OTHER_MODE.of(writing.mode_note)),)
    told = f"{source}, line {number}: {what!r}, but only 64-bit code is analysed"
    raise SourceError(told, "compile it for 64 bits, or give the part that is")


def _renamed(lines: Sequence[SourceLine], names: Mapping[str, str]) -> list[SourceLine]:
    """Lines with the names that the source has."""
    back = {other: name for name, other in names.items()}
    if not back:
        return list(lines)
    pattern = re.compile("|".join(map(re.escape, sorted(back, key=len, reverse=True))))
    return [
        msgspec.structs.replace(
            line,
            labels=tuple(back.get(label, label) for label in line.labels),
            text=pattern.sub(lambda match: back[match[0]], line.text),
        )
        for line in lines
    ]


def _assembled(
    lines: Sequence[SourceLine], source: str, isa: str, syntax: str, folder: str
) -> tuple[bytes, tuple[Remark, ...]]:
    """The object file, and notes on what of the text is not in it."""
    found = tools(isa)
    if not found:
        own = "as" if isa == host_isa() else next(iter(instruction_set(isa).toolchain.gnu_names), "as")
        names = ", ".join((own, "clang", "llvm-mc", "zig"))
        raise BackendUnavailable(
            f"no assembler for {isa} found", f"install one of {names}, or give an object file or machine code"
        )
    first: UnsupportedInstruction | None = None
    header = {INTEL: INTEL_HEADER, ATT: ".att_syntax prefix"}.get(syntax, "")
    budget = Budget(source, sum(len(line.written) for line in lines))
    for tool in found:
        attempt = Attempt(tool, lines, header, folder, budget, partial(_exists, isa))
        try:
            return attempt.run(source), tuple(attempt.notes)
        except SourceError:  # no time is left: what was refused before says more
            if first is None:
                raise
            break
        except UnsupportedInstruction as error:
            if first is None or not first.line:  # one that names the line says more
                first = error
    assert first is not None
    raise first


def _exists(isa: str, text: str) -> bool:
    """Whether the table has an instruction, as far as it reads text: not that of x86."""
    return instruction_set(isa).fixed_width and bool(forms_of(load_table(isa), text))


def _program(
    binary: Binary,
    source: str,
    lines: Sequence[SourceLine],
    raw: tuple[str, ...],
    comments: tuple[Comment, ...],
    notes: tuple[Remark, ...],
) -> Program:
    places = bases(binary)
    starts: dict[int, int] = {}
    for symbol in binary.symbols:
        match = _MARK.fullmatch(symbol.name)
        at = symbol_address(binary, places, symbol) if match else None
        if match and at is not None:
            starts[int(match[1])] = at
    return Program(
        binary.isa,
        source,
        pieces(binary, places),
        _statements(lines, starts),
        _functions(lines, starts, places, binary),
        _labels(lines, starts),
        references(binary, places),
        raw,
        comments,
        _tables(lines, starts),
        notes,
        alignment=alignment(binary),
    )


def _statements(lines: Sequence[SourceLine], starts: dict[int, int]) -> tuple[Statement, ...]:
    found = [
        Statement(starts[line.number], line.number, _shown(line), line.kind == "data")
        for line in lines
        if line.number in starts and line.kind != "label"
    ]
    return tuple(sorted(found))


def _shown(line: SourceLine) -> str:
    return " ".join(line.text.split()) if line.kind == "code" else ""


def _labels(lines: Sequence[SourceLine], starts: dict[int, int]) -> dict[int, str]:
    """A name per address, of several the one that code refers to."""
    used = {name for line in lines if line.kind == "code" for name in _NAME.findall(line.text)}
    found: dict[int, str] = {}
    for line in lines:
        for label in line.labels if line.number in starts else ():
            at = starts[line.number]
            if at not in found or (label in used and found[at] not in used):
                found[at] = label
    return found


def _content(lines: Sequence[SourceLine], starts: dict[int, int]) -> dict[str, dict[int, None]]:
    """Addresses of code, in order, that the data behind a label names."""
    places = {label: starts[line.number] for line in lines if line.number in starts for label in line.labels}
    content: dict[str, dict[int, None]] = {}
    current: tuple[str, ...] = ()
    for line in lines:
        current = line.labels or current
        for name in _NAME.findall(line.text) if line.kind in ("data", "table") else ():
            if name in places and name not in current:
                for label in current:
                    content.setdefault(label, {})[places[name]] = None
    return content


def _tables(lines: Sequence[SourceLine], starts: dict[int, int]) -> tuple[JumpTable, ...]:
    """Data that names labels of code, at every place where code names the data."""
    content = _content(lines, starts)
    found: list[JumpTable] = []
    last = ("", 0)
    for line in lines:
        for name in _NAME.findall(line.text) if line.kind == "code" and line.number in starts else ():
            if name in content:
                if name == last[0] and line.number - last[1] <= _NEAR:  # its address is made in two steps
                    found.pop()
                found.append(JumpTable(starts[line.number], tuple(content[name])))
                last = name, line.number
    return tuple(found)


def _functions(
    lines: Sequence[SourceLine], starts: dict[int, int], places: dict[int, int], binary: Binary
) -> tuple[Function, ...]:
    """From one label that is not local to the next, or to the section's end."""
    ends = {base + binary.sections[number].size for number, base in places.items()}
    named = {
        starts[line.number]: label
        for line in lines
        if line.number in starts
        for label in line.labels
        if not _LOCAL_LABEL.match(label) and not label.isdigit() and label[0] != "."
    }
    order = sorted({*named, *ends})
    following = dict(pairwise(order))
    return tuple(Function(name, at, following.get(at, at)) for at, name in sorted(named.items()))
