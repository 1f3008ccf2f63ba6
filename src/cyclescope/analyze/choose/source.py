"""The entry point: from text, a file or machine code to the block that is analysed."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from cyclescope.analyze.choose.functions import function_named, shown_names
from cyclescope.analyze.choose.loops import hottest, innermost_loops
from cyclescope.analyze.choose.markers import MarkedRegion, marked_regions, may_be_marked
from cyclescope.analyze.choose.unroll import find_unroll
from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.decode.decoder import Decoder, decoder
from cyclescope.analyze.read.assembler import disassembled_program, lines_of, text_program
from cyclescope.analyze.read.contents import ELF_MAGIC, HEXADECIMAL, read
from cyclescope.analyze.read.disassembly import has_code, is_disassembly, listed_isa, listed_program
from cyclescope.analyze.read.listings import as_assembly, as_objdump
from cyclescope.analyze.read.objects import object_program
from cyclescope.analyze.read.program import MOST_INSTRUCTIONS, Code, Function, Piece, Program
from cyclescope.analyze.read.syntax import SYNTAXES, likely_isa
from cyclescope.errors import CyclescopeError, SourceError, UnsupportedInstruction, UsageError, shortened
from cyclescope.isa.registry import DEFAULT
from cyclescope.remarks.reading import Chosen, ReadAs, at_line
from cyclescope.remarks.remark import LISTED, Remark

_FORMATS = {
    b"MZ": "a Windows program",
    b"\xcf\xfa\xed\xfe": "a Mach-O file",
    b"\xca\xfe\xba\xbe": "a universal Mach-O file",
    b"!<arch>": "an archive of object files",
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x1f\x8b": "a gzip file",
}
MACHINE_CODE = "machine code"  # the source of what is bytes
_ALL = Chosen.ALL.of().text
_MOST_LINES = 500_000  # of a text: 500 MB of memory
_LARGEST = 2_097_152  # 2 MiB of code that are searched for loops
_PREPROCESSED = re.compile(r"^[ \t]*#[ \t]*(define|include|if|ifdef|ifndef)\b", re.MULTILINE)  # in C
_DIRECTIVE = re.compile(  # nothing that people write in comments
    r"^[ \t]*#(?:[ \t]*ifn?def[ \t]+\w+[ \t]*$|[ \t]*include[ \t]*[<\"][^\n]*"
    r"|(?:define|if|elif|undef)[ \t][^\n]*)",
    re.MULTILINE,
)
_BRACES = re.compile(
    r"^[^\n#/)]*(?:\)[^\n#/)]*)*\)[ \t]*\{[^\n]*$|^[ \t]*\}[ \t]*;?[ \t\r]*$", re.MULTILINE
)  # of C and its relatives
_MOST_MARKED = 50_000  # instructions of all regions that are analysed together
_LINES = re.compile(r"\s*(\d{1,9})\s*(?:[-:]\s*(\d{1,9})\s*)?")


class Choice(msgspec.Struct, frozen=True):
    """Which part of the code is meant; at most one of `lines`, `addresses` and `region` counts, in
    this order.

    `lines` are source lines (`3-9,12`), `addresses` a range (`0x40-0x80`, the end excluded), `region` the
    name of a marked region or its number, counted from 1; where nothing is marked, the label or the number
    of an innermost loop. `function` looks only into one function. `whole` takes all the code instead of
    the innermost loop.
    """

    lines: str = ""
    addresses: str = ""
    region: str = ""
    function: str = ""
    whole: bool = False


def read_block(
    code: str | bytes | Path,
    isa: str = "",
    choice: Choice | None = None,
    syntax: str = "",
    vendor: str = "",
) -> Block:
    """The block to analyse, from assembly text (str), machine code or an ELF file (bytes) or a file.

    `Path("-")` is standard input. `isa` and the x86 `syntax` (`intel`, `att`) are found out where they are
    not given; machine code without ISA is x86-64. `vendor` `amd` reads 16-bit branches as AMD does.
    An instruction that decodes to no form is in the block, with its
    problem.

    The block is what `choice` says, else what markers enclose, else the innermost loop that most
    time is probably spent in, else all the code.

    Raises SourceError for input that is empty, binary, damaged, for another ISA, or with markers that do
    not match; UnsupportedInstruction for text that no assembler here takes; UsageError for a choice that
    is not there; BackendUnavailable without assembler or decoder. All are one line.
    """
    return only(read_blocks(code, isa, choice, syntax, vendor))


def whole_block(code: bytes, isa: str = DEFAULT, vendor: str = "") -> Block:
    """All of plain machine code, as `read_block` with `Choice(whole=True)`, in less time.

    How far a loop moves its pointers is not looked for.
    """
    reader = decoder(isa, vendor)
    short = len(code) <= MOST_INSTRUCTIONS and code.strip() and not code.startswith(ELF_MAGIC)
    run = reader.run(code) if short and not may_be_marked(code, isa) else None
    if run is None:
        return read_block(code, isa, Choice(whole=True), vendor=vendor)
    return Block(run.instructions, isa, MACHINE_CODE, "", _ALL, {}, run.loops)


def only(blocks: Sequence[Block]) -> Block:
    """The one block that was read. Raises UsageError where there are several regions."""
    if len(blocks) > 1:
        what = f"{blocks[0].source} has {len(blocks)} marked regions"
        raise UsageError(what, f"choose one of {_listed([block.name for block in blocks])}")
    return blocks[0]


def read_blocks(
    code: str | bytes | Path,
    isa: str = "",
    choice: Choice | None = None,
    syntax: str = "",
    vendor: str = "",
    source: str = "",
) -> list[Block]:
    """As `read_block`, with all marked regions where none is chosen."""
    program = read_program(code, isa, syntax, source)
    blocks = _blocks(program, choice or Choice(), vendor)
    return [
        msgspec.structs.replace(b, unroll=find_unroll(b.instructions, b.isa) if b.loop else None)
        for b in blocks
    ]


def read_program(code: str | bytes | Path, isa: str = "", syntax: str = "", source: str = "") -> Program:
    """All the code of a text, a file or bytes; arguments and errors as for `read_block`."""
    if syntax and syntax not in SYNTAXES:
        raise UsageError(f"unknown syntax {syntax!r}", f"choose one of {', '.join(SYNTAXES)}")
    if isinstance(code, Path):
        source = source or ("standard input" if str(code) == "-" else str(code))
        data = read(code, source)
    else:
        data = code.encode(errors="surrogateescape") if isinstance(code, str) else code
    source = source or ("text" if isinstance(code, str) else MACHINE_CODE)
    if isinstance(data, Path) or data.startswith(ELF_MAGIC):
        return _of_isa(object_program(data, source), isa)
    if not data.strip():
        raise SourceError(f"{source} is empty", "give assembly text, an object file or machine code")
    if isinstance(code, bytes):
        return _machine_code(code, isa or DEFAULT, source)
    folder = str(code.parent) if isinstance(code, Path) and str(code) != "-" else ""
    return _text(data, source, isa, syntax, folder)


def _text(data: bytes, source: str, isa: str, syntax: str, folder: str) -> Program:
    for magic, what in _FORMATS.items():
        if data.startswith(magic):
            raise SourceError(f"{source} is {what}", "give assembly text or an ELF file")
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # as shells of Windows write what is redirected
        with suppress(UnicodeError):
            data = data.decode("utf-16").encode()
    if b"\0" in data:
        raise SourceError(f"{source} is binary, but no ELF file", "give assembly text or an ELF file")
    text = data.decode("utf-8-sig", errors="replace")
    if HEXADECIMAL.fullmatch(text.strip()):
        return _machine_code(_hexadecimal(text), isa or DEFAULT, source)
    if text.count("\n") > _MOST_LINES:
        raise SourceError(f"{source} has more than {_MOST_LINES} lines", "give a part of it")
    lines = as_assembly(lines_of(text)) or lines_of(text)
    listing = as_objdump(lines) or (lines if is_disassembly(lines) else None)
    if listing is not None:
        return _listing(listing, source, isa, syntax)
    guessed = likely_isa(lines)
    decoder(isa or guessed or DEFAULT)  # before an assembler is looked for
    try:
        program = text_program("\n".join(lines), source, isa or guessed or DEFAULT, syntax, folder)
    except UnsupportedInstruction as error:
        raise _explained(error, text, source, isa, guessed) from error
    return msgspec.structs.replace(program, notes=(*program.notes, *_not_preprocessed(text)))


def _not_preprocessed(text: str) -> list[Remark]:
    """What is said of a text for the C preprocessor: assemblers take its lines for comments."""
    match = _DIRECTIVE.search(text)
    if match is None:
        return []
    line = len(lines_of(text[: match.end()]))
    return [at_line(line, ReadAs.PREPROCESSOR.of(shortened(match[0].strip())))]


def _listing(lines: tuple[str, ...], source: str, isa: str, syntax: str) -> Program:
    """What a disassembler printed."""
    found = listed_isa(lines)
    decoder(found)
    if has_code(lines, found):
        return _of_isa(listed_program(lines, source, found), isa)
    return _of_isa(disassembled_program(lines, source, found, syntax), isa)


def _explained(
    error: UnsupportedInstruction, text: str, source: str, isa: str, guessed: str
) -> CyclescopeError:
    """What is wrong with a text that no assembler takes."""
    if len(_BRACES.findall(text)) > 1:
        message = f"{source} is source code of another language, not assembly text"
        return SourceError(message, "compile it first: cc -O2 -S")
    if _PREPROCESSED.search(text):
        return UnsupportedInstruction(error.message, "preprocess it first, with cc -E")
    if isa in ("", guessed) or not guessed or not error.line:
        return error
    message = f"{source} looks like {guessed} code, not {isa}: {error.message}"
    return SourceError(message, "{arch} names a machine of that instruction set")


def _hexadecimal(text: str) -> bytes:
    return bytes.fromhex("".join(re.findall(r"(?:0x|\\x)?([0-9a-fA-F]{2})", text)))


def _machine_code(code: bytes, isa: str, source: str) -> Program:
    return Program(isa, source, (Piece("", 0, code),))


def _of_isa(program: Program, isa: str) -> Program:
    if isa and program.isa != isa:
        raise SourceError(f"{program.source} is code for {program.isa}, not {isa}", "choose a machine for it")
    return program


# --- which part -----------------------------------------------------------------------------------


def _blocks(program: Program, choice: Choice, vendor: str) -> list[Block]:
    reader = decoder(program.isa, vendor, program.syntax)
    if choice.addresses:
        return [_addressed(_code(program, reader, *_range(choice.addresses)), choice.addresses)]
    function = function_named(program, choice.function) if choice.function else None
    if function is not None:
        code = _code(program, reader, function.address, function.end)
    elif choice.lines and program.size > _LARGEST:
        code = _code(program, reader, *_span(program, choice.lines))
    else:
        code = _code(program, reader)
    if choice.lines:
        return [_lined(code, choice.lines)]
    regions, notes = marked_regions(code, part=function is not None)
    if choice.region:
        regions = [_region(program, regions or _loop_regions(code), choice.region)]
    if sum(region.size for region in regions) > _MOST_MARKED:
        what = f"the {len(regions)} marked regions of {program.source}: more than {_MOST_MARKED} instructions"
        raise SourceError(what, "choose one with {region}")
    blocks = [code.block(region.steps(), region.where, region.name) for region in regions]
    blocks = blocks or [_whole(code, function) if choice.whole else _loop(code, function)]
    return [msgspec.structs.replace(block, notes=_some((*map(str, notes), *block.notes))) for block in blocks]


def _some(notes: tuple[str, ...]) -> tuple[str, ...]:
    """The first notes, and how many more there are."""
    more = len(notes) - LISTED
    return notes if more <= 0 else (*notes[:LISTED], ReadAs.MORE_NOTES.of(more).text)


def _code(program: Program, reader: Decoder, start: int = 0, end: int = 1 << 64) -> Code:
    """The steps between two addresses, unless there are too many to go through."""
    if any(piece.end >= 1 << 64 for piece in program.pieces):
        raise SourceError(f"{program.source} has code at the end of all addresses", "build or copy it again")
    size = sum(len(part.code) for part in program.parts(start, end))
    if size > _LARGEST:
        remedy = "choose a part with {function} or {addresses}"
        raise SourceError(f"{program.source} has {size >> 20} MiB of code", remedy)
    return Code(program, reader, start, end)


def _span(program: Program, lines: str) -> tuple[int, int]:
    """The addresses from the first to the last of some source lines."""
    wanted = _numbers(lines, len(program.lines))
    ends = [*(one.address for one in program.statements[1:]), program.pieces[-1].end]
    found = [
        (one.address, end) for one, end in zip(program.statements, ends, strict=True) if one.line in wanted
    ]
    return min((at for at, _ in found), default=0), max((end for _, end in found), default=0)


def _loop_regions(code: Code) -> list[MarkedRegion]:
    """Innermost loops by their label, where nothing is marked."""
    return [
        MarkedRegion(
            one.name.partition(" in ")[0],
            len(one.steps),
            partial(tuple, one.steps),
            Chosen.LOOP.of(one.where),
        )
        for one in innermost_loops(code)
    ]


def _shown(function: Function) -> str:
    return shown_names([function.name])[0]


def _whole(code: Code, function: Function | None) -> Block:
    return _all(code, function, Chosen.FUNCTION.of(_shown(function)) if function else Chosen.ALL.of())


def _all(code: Code, function: Function | None, found: Remark) -> Block:
    if not code.steps:
        raise SourceError(
            f"{code.program.source} has no instructions", "give assembly text, an ELF file or machine code"
        )
    return code.block(code.steps, found, _shown(function) if function else "")


def _loop(code: Code, function: Function | None) -> Block:
    """The innermost loop that weighs most, or everything where there is no loop."""
    candidates = innermost_loops(code)
    if not candidates:
        whole = Chosen.FUNCTION.of(_shown(function)) if function else Chosen.ALL.of()
        return _all(code, function, Chosen.WITHOUT_LOOP.of(whole))
    chosen, count = hottest(candidates), len(candidates)
    found = Chosen.LOOP.of(chosen.where) if count == 1 else Chosen.ONE_LOOP.of(chosen.where, count)
    return code.block(chosen.steps, found, chosen.name)


def _lined(code: Code, lines: str) -> Block:
    if not code.program.lines:
        raise UsageError(
            f"{code.program.source} has no source lines", "choose with {function} or {addresses}"
        )
    wanted = _numbers(lines, len(code.program.lines))
    steps = [step for step in code.steps if code.line(step) in wanted]
    if not steps:
        raise UsageError(f"{code.program.source} has no instructions in lines {shortened(lines)}")
    return code.block(steps, Chosen.LINES.of(shortened(lines)))


def _numbers(text: str, last: int) -> set[int]:
    """Line numbers of a list like `3-9,12` or `3:9,12`."""
    found: set[int] = set()
    for part in text.split(","):
        match = _LINES.fullmatch(part)
        first, end = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= end:
            raise UsageError(f"{shortened(part.strip())!r} is no range of lines", "write for example 3-9,12")
        if first > last:
            raise UsageError(f"there is no line {first}", f"the last line is {last}")
        found.update(range(first, min(end, last) + 1))
    return found


def _range(text: str) -> tuple[int, int]:
    first, _, end = text.partition("-")
    try:
        start, stop = int(first, 0), int(end, 0)
    except ValueError:
        start, stop = 0, 0
    if not 0 <= start < stop:
        raise UsageError(f"{shortened(text)!r} is no range of addresses", "write for example 0x1040-0x1080")
    return start, stop


def _addressed(code: Code, addresses: str) -> Block:
    if not code.steps:
        raise UsageError(f"{code.program.source} has no code at {shortened(addresses)}")
    return code.block(code.steps, Chosen.ADDRESSES.of(shortened(addresses)))


def _region(program: Program, regions: list[MarkedRegion], name: str) -> MarkedRegion:
    for number, region in enumerate(regions, 1):
        if name in (region.name, str(number)):
            return region
    what = f"{program.source} has no region {shortened(name)}"
    if not regions:
        raise UsageError(what, "nothing is marked, and no loop")
    raise UsageError(what, f"there is {_listed([region.name for region in regions])}")


def _listed(names: list[str]) -> str:
    """Names, or numbers where there are none; not too many."""
    shown = [shortened(name) or str(number) for number, name in enumerate(names, 1)]
    return ", ".join(shown[:LISTED]) + ", ..." * (len(shown) > LISTED)
