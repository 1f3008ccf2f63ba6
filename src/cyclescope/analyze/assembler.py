"""Assembly text to a program, with the assembler that is there; every instruction keeps its line.

A label in front of every line of code tells, in the symbol table, where the line begins: all assemblers
have that, and it survives macros, relaxation and sections.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from cyclescope.analyze.elf import Elf
from cyclescope.analyze.objects import bases, pieces, references, symbol_address
from cyclescope.analyze.program import Comment, Function, Program, Statement, Table
from cyclescope.analyze.syntax import ATT, INTEL, Line, guess_isa, guess_syntax, split
from cyclescope.errors import BackendUnavailable, SourceError, UnsupportedInstruction

_MARK = re.compile(r"__cs(\d+)__")
_DROPPED = re.compile(
    r"\.(cfi_\w+|loc|file|ident|addrsig\w*|seh_\w+|def|scl|endef|build_version|subsections_via_symbols)\b"
)
_CHOICE = re.compile(r"\.(arch|cpu|attribute)\b")  # which instructions are allowed
_DARWIN_TEXT = re.compile(r"\.section\s+__TEXT,\s*__text\b.*")
_LOCAL = re.compile(r"(?<![\w$.])\.L[\w$.]+")
_REPAIRS = (
    (re.compile(r"\b(callq?|jmpq?)\s+[A-Za-z_~][^%]*[(<:].*"), r"\1 cyclescope.demangled"),  # a C++ name
    (re.compile(r"\bmovsx(?=\s+r\w+,\s*(e[a-ds]|r\d+d|dword))", re.IGNORECASE), "movsxd"),  # as gcc writes it
    (re.compile(r"\b([dqt]?word|t?byte|[xyz]mmword)(?=\s*\[)", re.IGNORECASE), r"\1 ptr "),  # as NASM has it
    (re.compile(r";.*"), ""),  # a comment of other assemblers
)
_NAME = re.compile(r"[\w.$@?]+")
_LOCAL_LABEL = re.compile(r"[.$\d]|L[A-Z]*\d+")  # the latter are Darwin's
_ERROR = re.compile(r"^[^\n]*?:(\d+):(?:\d+:)? (?:fatal )?error: (.*)", re.MULTILINE | re.IGNORECASE)
_UNUSABLE = re.compile(r"^(?:Fatal e|E)rror: ", re.MULTILINE)  # about an option, not about the text
_UNDEFINED = ".cyclescope.undefined"
_LISTED = ("code", "bytes", "padding", "data", "label")
_NATIVE = {"x86_64": "x86-64", "aarch64": "aarch64", "riscv64": "riscv64"}
_GNU_NAMES = {
    "x86-64": ("x86_64-linux-gnu-as",),
    "aarch64": ("aarch64-linux-gnu-as", "aarch64-none-linux-gnu-as", "aarch64-none-elf-as", "aarch64-elf-as"),
    "riscv64": (
        "riscv64-linux-gnu-as",
        "riscv64-unknown-linux-gnu-as",
        "riscv64-unknown-elf-as",
        "riscv64-elf-as",
    ),
}
_GNU_OPTIONS = {  # all instructions that a version may know; older versions refuse newer names
    "x86-64": (("--64",),),
    "aarch64": (("-mcpu=all",),),
    "riscv64": (
        ("-mno-relax", "-march=rv64gcv_zba_zbb_zbc_zbs_zbkb_zfh_zvfh_zicond_zfa_zvbb_zacas_zcb"),
        ("-mno-relax", "-march=rv64gcv_zba_zbb_zbc_zbs_zbkb_zfh"),
        ("-mno-relax", "-march=rv64gc"),
    ),
}
_TRIPLES = {"x86-64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu"}
_LLVM_MC_OPTIONS = {
    "x86-64": (),
    "aarch64": ("-mattr=+all",),
    "riscv64": (
        "-mattr=+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbc,+zbs,+zbkb,+zfh,+zvfh,+zicond,+zfa,+zvbb,+zvbc,+zacas,+zcb",
    ),
}
_CLANG_OPTIONS = {
    "x86-64": (),
    "aarch64": ("-march=armv9-a+sve2",),
    "riscv64": ("-march=rv64gcv_zba_zbb_zbs", "-mno-relax"),
}
_INTEL_HEADER = ".intel_syntax noprefix"
_ATTEMPTS = 4
_SECONDS = 60
_NEAR = 5  # lines


class Tool(NamedTuple):
    """An assembler: its name, and its command without input and output."""

    name: str
    command: tuple[str, ...]
    defines_local: bool  # whether it wants local labels to be defined
    knows_all: bool  # whether its options allow all instructions, whatever the text says


@cache
def tools(isa: str) -> tuple[Tool, ...]:
    """The assemblers for an instruction set that are installed, the fastest first."""
    return tuple(_tools(isa))


def _tools(isa: str) -> Iterator[Tool]:
    native = sys.platform == "linux" and _NATIVE.get(os.uname().machine) == isa
    for name in (("as",) * native) + _GNU_NAMES[isa]:
        if path := shutil.which(name):
            for options in _GNU_OPTIONS[isa]:
                yield Tool(name, (path, *options), False, True)
    triple, fixed = _TRIPLES[isa], isa == "riscv64"
    for name in _newest_first("llvm-mc"):
        yield Tool(name, (name, f"-triple={triple}", "-filetype=obj", *_LLVM_MC_OPTIONS[isa]), True, fixed)
    for name in _newest_first("clang"):
        options = (f"--target={triple}", "-c", "-x", "assembler", *_CLANG_OPTIONS[isa])
        yield Tool(name, (name, *options), True, fixed)
    zig = shutil.which("zig")
    if zig:
        options = ("-target", triple.replace("-gnu", "-musl"), "-c", "-x", "assembler")
        yield Tool("zig cc", (zig, "cc", *options), True, False)


def _newest_first(name: str) -> list[str]:
    """The program and its versioned names (`clang-19`) that are on the path."""
    found = {path.name for path in _programs() if re.fullmatch(rf"{name}-\d+", path.name)}
    versioned = sorted(found, key=lambda one: int(one.rpartition("-")[2]), reverse=True)
    return versioned + [name] * bool(shutil.which(name))


@cache
def _programs() -> tuple[Path, ...]:
    folders = [Path(folder) for folder in os.get_exec_path() if folder]
    found = (path for folder in folders if folder.is_dir() for path in folder.glob("*-[0-9]*"))
    return tuple(path for path in found if path.name.startswith(("llvm-mc-", "clang-")))


def text_program(text: str, source: str, isa: str = "", syntax: str = "", folder: str = "") -> Program:
    """The program of an assembly text; `isa` and `syntax` (x86) are guessed where they are not given.

    `folder` is where the text's own includes are. Raises SourceError for a text without instructions,
    UnsupportedInstruction for a line that no assembler here takes, BackendUnavailable without one.
    """
    raw = tuple(text.splitlines())
    isa = isa or guess_isa(raw)
    lines = split(raw, isa)
    if not any(line.kind in ("code", "bytes") for line in lines):
        raise SourceError(f"{source} has no instructions", "give assembly text, an ELF file or machine code")
    data = _assembled(lines, source, isa, syntax, folder)
    elf = Elf(data, f"the assembler's output for {source}")
    comments = tuple(
        Comment(line.number, text)
        for line, text in zip(lines, raw, strict=True)
        if line.written != text.strip() or ";" in text
    )
    return _program(elf, source, lines, raw, comments)


def _assembled(lines: Sequence[Line], source: str, isa: str, syntax: str, folder: str) -> bytes:
    found = tools(isa)
    if not found:
        names = ", ".join(("as" if isa == "x86-64" else _GNU_NAMES[isa][0], "clang", "llvm-mc", "zig"))
        raise BackendUnavailable(
            f"no assembler for {isa} found", f"install one of {names}, or give an object file or machine code"
        )
    first: UnsupportedInstruction | None = None
    header = _header(lines, isa, syntax)
    for tool in found:
        try:
            return _Attempt(tool, lines, header, folder).run(source)
        except UnsupportedInstruction as error:
            if first is None or ", line " not in first.message:  # one that names the line says more
                first = error
    assert first is not None
    raise first


def _header(lines: Sequence[Line], isa: str, syntax: str) -> str:
    if isa != "x86-64":
        return ""
    syntax = syntax or guess_syntax(lines)
    return _INTEL_HEADER if syntax == INTEL else ".att_syntax prefix"


class _Attempt:
    """One assembler on one text. Directives that it does not know are left out."""

    def __init__(self, tool: Tool, lines: Sequence[Line], header: str, folder: str) -> None:
        self._tool = tool
        self._lines = lines
        self._header = header
        self._folder = folder
        self._instead: dict[int, str] = {}

    def run(self, source: str) -> bytes:
        """The object file. Raises UnsupportedInstruction with the first line that is refused."""
        with _folder() as folder:
            for _ in range(_ATTEMPTS):
                data, messages = self._assemble(Path(folder))
                if data is not None:
                    return data
                unusable = _UNUSABLE.search(messages)
                errors = [] if unusable else [(int(m[1]) - 1, m[2]) for m in _ERROR.finditer(messages)]
                remaining = [(number, told) for number, told in errors if not self._repaired(number)]
                if remaining or not errors:
                    break
        raise self._refused(source, remaining, messages)

    def _assemble(self, folder: Path) -> tuple[bytes | None, str]:
        written, output = folder / "text.s", folder / "text.o"
        written.write_text(self._text(), errors="surrogateescape")
        include = ("-I", self._folder) if self._folder else ()
        command = (*self._tool.command, *include, str(written), "-o", str(output))
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            return None, f"no answer in {_SECONDS} seconds"
        except OSError as error:
            raise BackendUnavailable(f"{self._tool.name} cannot be started ({error.strerror})") from error
        return (output.read_bytes() if done.returncode == 0 and output.exists() else None), done.stderr

    def _text(self) -> str:
        """The lines, one further down than in the source, each with the label that marks it."""
        texts = [self._header]
        for line in self._lines:
            text = self._instead.get(line.number, line.written)
            if _DROPPED.match(line.text) or (self._tool.knows_all and _CHOICE.match(line.text)):
                text = "".join(f"{label}: " for label in line.labels)
            elif _DARWIN_TEXT.match(text):
                text = ".text"
            texts.append(f"__cs{line.number}__: {text}" if line.kind in _LISTED else text)
        if self._tool.defines_local:
            texts += self._missing_labels()
        return "\n".join(texts) + "\n"

    def _missing_labels(self) -> list[str]:
        """Definitions of local labels that a filtered listing has lost."""
        defined = {label for line in self._lines for label in line.labels}
        used = {name for line in self._lines for name in _LOCAL.findall(line.text)}
        missing = sorted(used - defined)
        return [f'.section {_UNDEFINED},"a"', *(f"{name}:" for name in missing)] if missing else []

    def _repaired(self, number: int) -> bool:
        """Whether a refused line can be put otherwise.

        Directives are left out; for the rest see `_REPAIRS`.
        """
        if not 1 <= number <= len(self._lines) or self._instead.get(number) == "":
            return False
        line = self._lines[number - 1]
        if line.text.startswith(".") and line.kind != "bytes":
            self._instead[number] = ""
            return True
        if number in self._instead:
            return False
        for pattern, replacement in _REPAIRS:
            text, count = pattern.subn(replacement, line.written)
            if count:
                self._instead[number] = text
                return True
        return False

    @property
    def _remedy(self) -> str:
        """What to try where the text is read as something that it is not."""
        if not self._header:
            return "correct or delete the line; --arch names a machine of another instruction set"
        syntax = INTEL if self._header == _INTEL_HEADER else ATT
        return f"correct or delete the line; it was read as {syntax} syntax, --syntax chooses another"

    def _refused(self, source: str, errors: list[tuple[int, str]], messages: str) -> UnsupportedInstruction:
        for number, told in errors:
            if 1 <= number <= len(self._lines):
                line = self._lines[number - 1]
                text = " ".join((line.text or line.written).split())
                return UnsupportedInstruction(
                    f"{source}, line {number}: {self._tool.name} refuses {text!r} ({told.strip()})",
                    self._remedy,
                )
        every = messages.strip().splitlines()
        shown = [line for line in every if "rror" in line] or every
        return UnsupportedInstruction(
            f"{source}: {self._tool.name} fails: {shown[0] if shown else 'no message'}"
        )


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="cyclescope-")
    except OSError as error:
        raise BackendUnavailable(
            "no temporary file can be made", "set TMPDIR to a folder for them"
        ) from error


def _program(
    elf: Elf, source: str, lines: Sequence[Line], raw: tuple[str, ...], comments: tuple[Comment, ...]
) -> Program:
    places = bases(elf)
    starts: dict[int, int] = {}
    for symbol in elf.symbols:
        match = _MARK.fullmatch(symbol.name)
        at = symbol_address(elf, places, symbol) if match else None
        if match and at is not None:
            starts[int(match[1])] = at
    return Program(
        elf.isa,
        source,
        pieces(elf, places),
        _statements(lines, starts),
        _functions(lines, starts, places, elf),
        _labels(lines, starts),
        references(elf, places),
        raw,
        comments,
        _tables(lines, starts),
    )


def _statements(lines: Sequence[Line], starts: dict[int, int]) -> tuple[Statement, ...]:
    found = [
        Statement(starts[line.number], line.number, _shown(line), line.kind == "data")
        for line in lines
        if line.number in starts and line.kind != "label"
    ]
    return tuple(sorted(found))


def _shown(line: Line) -> str:
    return " ".join(line.text.split()) if line.kind == "code" else ""


def _labels(lines: Sequence[Line], starts: dict[int, int]) -> dict[int, str]:
    """A name per address, of several the one that code refers to."""
    used = {name for line in lines if line.kind == "code" for name in _NAME.findall(line.text)}
    found: dict[int, str] = {}
    for line in lines:
        for label in line.labels if line.number in starts else ():
            at = starts[line.number]
            if at not in found or (label in used and found[at] not in used):
                found[at] = label
    return found


def _content(lines: Sequence[Line], starts: dict[int, int]) -> dict[str, dict[int, None]]:
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


def _tables(lines: Sequence[Line], starts: dict[int, int]) -> tuple[Table, ...]:
    """Data that names labels of code, at every place where code names the data."""
    content = _content(lines, starts)
    found: list[Table] = []
    last = ("", 0)
    for line in lines:
        for name in _NAME.findall(line.text) if line.kind == "code" and line.number in starts else ():
            if name in content:
                if name == last[0] and line.number - last[1] <= _NEAR:  # its address is made in two steps
                    found.pop()
                found.append(Table(starts[line.number], tuple(content[name])))
                last = name, line.number
    return tuple(found)


def _functions(
    lines: Sequence[Line], starts: dict[int, int], places: dict[int, int], elf: Elf
) -> tuple[Function, ...]:
    """From one label that is not local to the next, or to the section's end."""
    ends = {base + elf.sections[number].size for number, base in places.items()}
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
