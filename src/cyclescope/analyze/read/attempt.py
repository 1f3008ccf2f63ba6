"""One assembler on one text: lines that it refuses are rewritten, or left out with a note."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cyclescope.analyze.read.assemblers import Tool
from cyclescope.analyze.read.syntax import ATT, DATA, INTEL, SourceLine
from cyclescope.errors import BackendUnavailable, UnsupportedInstruction, shortened
from cyclescope.isa.assembly.assemble import with_sizes
from cyclescope.isa.assembly.limits import Budget
from cyclescope.remarks.reading import ReadAs, at_lines
from cyclescope.remarks.remark import LISTED, NOTHING, Remark

_DROPPED = re.compile(
    r"\.(cfi_\w+|loc|file|ident|addrsig\w*|seh_\w+|def|scl|endef|build_version|subsections_via_symbols)\b"
)
_CHOICE = re.compile(r"\.(arch|cpu|attribute)\b")  # which instructions are allowed
_DARWIN_TEXT = re.compile(r"\.section\s+__TEXT,\s*__text\b.*")
_LOCAL = re.compile(r"(?<![\w$.])\.L[\w$.]+")


class _Repair(NamedTuple):
    """What a part of a refused line is replaced by, and what to say about it."""

    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]
    note: Remark = NOTHING


def _as_symbol(name: re.Match[str]) -> str:
    """A C++ name as assemblers take it: the same for the same name, so that addresses stay comparable."""
    return re.sub(r"\W+", "_", name[0])


_CPP_NAME = re.compile(  # `vtable for app::Shape` in `lea rax, vtable for app::Shape[rip+16]`
    r"(?<=[\s,$*+:])(?!\w+\s*,|(?:PTR|FLAT|lo12)\b|[fg]s:(?!:))"
    r"(?=[^%\[\]]*?(?:::|<| for |\((?!,?%)))"
    r"[A-Za-z_~](?:(?!\bPTR\b|\bFLAT:|\blo12:|@\w|[+-]\d)[^%$\[\]])*?"
    r"(?=[+-]\d|@\w|\(,?%|\[|\]|\s*$|,\s*(?:[%$]|-?\d*\(%|\w+\s*$))"
)
_REPAIRS = (
    _Repair(
        re.compile(r"\b(callq?|jmpq?)\s+[A-Za-z_~][^%]*[(<:].*"), r"\1 cyclescope.demangled"
    ),  # a C++ name
    _Repair(re.compile(r"\bmovsx(?=\s+r\w+,\s*(e[a-ds]|r\d+d|dword))", re.IGNORECASE), "movsxd"),  # gcc's
    _Repair(re.compile(r"\[\s*rel\s+", re.IGNORECASE), "[rip + "),  # NASM's
    _Repair(re.compile(r"(?<=[\s,$(\[+-])(\d[\da-f]*)h\b", re.IGNORECASE), r"0x\1"),  # MASM's, and llvm-mca's
    _Repair(
        re.compile(r"^(?!\s*(?:[bcjt]|loop)\w*[\s.])(.*[\s,$])([01]{2,})b\b", re.IGNORECASE), r"\g<1>0b\2"
    ),
    _Repair(re.compile(r"(?<![\w.$])([\w.$]+)@(?:GOT)?PAGEOFF\b"), r":lo12:\1"),  # Darwin's
    _Repair(re.compile(r"(?<![\w.$])([\w.$]+)@(?:GOT)?PAGE\b"), r"\1"),
    _Repair(re.compile(r"(?:^|\s)#(?=\s|[A-Z]).*"), "", ReadAs.COMMENT.of("#")),
    _Repair(re.compile(r"^\s*;.*"), ""),
    _Repair(re.compile(r";.*"), "", ReadAs.COMMENT.of("a semicolon")),  # of other assemblers
    _Repair(_CPP_NAME, _as_symbol),
)
_ERROR = re.compile(r"^[^\n]*?:(\d+):(?:\d+:)? (?:fatal )?error: (.*)", re.MULTILINE | re.IGNORECASE)
_UNUSABLE = re.compile(r"^(?:Fatal e|E)rror: ", re.MULTILINE)  # about an option, not about the text
_LONGEST = 2000  # characters of a line that is put otherwise: more is no compiler's, and patterns take long
_UNDEFINED = ".cyclescope.undefined"
_LISTED = ("code", "bytes", "padding", "data", "label")
INTEL_HEADER = ".intel_syntax noprefix"
_LACKING = re.compile(  # what assemblers say of an instruction that they do not know, or not here
    r"unrecognized (?:opcode|instruction)|unknown mnemonic|invalid instruction mnemonic|requires|support",
    re.IGNORECASE,
)


class Attempt:
    """One assembler on one text. Directives that it does not know are left out."""

    def __init__(
        self,
        tool: Tool,
        lines: Sequence[SourceLine],
        header: str,
        folder: str,
        budget: Budget,
        exists: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`exists` tells of a line whether there is such an instruction."""
        self._tool = tool
        self._exists = exists
        self._lines = lines
        self._header = [header]
        self._extended = False
        self._options: tuple[str, ...] = ()
        self._folder = folder
        self._budget = budget
        self._instead: dict[int, str] = {}
        self._said: dict[Remark, list[int]] = {}

    def run(self, source: str) -> bytes:
        """The object file. Raises UnsupportedInstruction with the first line that is refused."""
        with _folder() as folder:
            while True:  # more is allowed once, and a line is put otherwise once
                data, messages = self._assemble(Path(folder))
                if data is not None:
                    return data
                errors = self._errors(messages)
                if self._extend():
                    continue
                remaining = [(number, told) for number, told in errors if not self._repaired(number)]
                if remaining or not errors:
                    break
        raise self._refused(source, remaining, messages)

    def _errors(self, messages: str) -> list[tuple[int, str]]:
        """Refused lines of the source, each with the first message; those of the header are below 1."""
        if _UNUSABLE.search(messages):
            return []
        found: dict[int, str] = {}
        for match in _ERROR.finditer(messages):
            found.setdefault(int(match[1]) - len(self._header), match[2])
        return list(found.items())

    def _extend(self) -> bool:
        """Whether more instructions can be allowed: the first thing to try."""
        if self._extended or not (self._tool.extensions or self._tool.more):
            return False
        self._extended = True
        self._options = self._tool.more
        self._header = [*self._header, *self._tool.extensions]
        return True

    @property
    def notes(self) -> Iterator[Remark]:
        """What was left out or read otherwise than it is written."""
        for said, numbers in self._said.items():
            yield at_lines(numbers, said, LISTED)

    def _assemble(self, folder: Path) -> tuple[bytes | None, str]:
        written, output = folder / "text.s", folder / "text.o"
        written.write_text(self._text(), errors="surrogateescape")
        include = ("-I", self._folder) if self._folder else ()
        command = (*self._tool.command, *self._options, *include, str(written), "-o", str(output))
        done = self._budget.run(self._tool.name, command, folder)
        return (output.read_bytes() if done.ok and output.exists() else None), done.messages

    def _text(self) -> str:
        """The lines behind the header, each with the label that marks it."""
        texts = list(self._header)
        for line in self._lines:
            text = self._instead.get(line.number, self._written(line))
            if _DROPPED.match(line.text) or (self._tool.knows_all and _CHOICE.match(line.text)):
                text = "".join(f"{label}: " for label in line.labels)
            elif _DARWIN_TEXT.match(text):
                text = ".text"
            texts.append(f"__cs{line.number}__: {text}" if line.kind in _LISTED else text)
        if self._tool.defines_local:
            texts += self._missing_labels()
        return "\n".join(texts) + "\n"

    def _written(self, line: SourceLine) -> str:
        """A line as assemblers understand it."""
        if self._header[0] != INTEL_HEADER or line.kind != "code":
            return line.written
        return with_sizes(line.written)

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
        if -len(self._header) < number <= 0:  # an extension that is not known here
            done = self._header[number - 1] == ""
            self._header[number - 1] = ""
            return not done
        if not 1 <= number <= len(self._lines) or self._instead.get(number) == "":
            return False
        line = self._lines[number - 1]
        if line.text.startswith(".") and line.kind != "bytes":
            self._instead[number] = ""
            if line.kind != "directive" or not DATA.match(line.text):  # but debugging information
                self._say(ReadAs.LEFT_OUT.of(shortened(line.text.split()[0]), self._tool.name), number)
            return True
        if number in self._instead:
            return False
        for repair in _REPAIRS if len(line.written) <= _LONGEST else ():
            text, count = repair.pattern.subn(repair.replacement, self._written(line))
            if count:
                self._instead[number] = text
                self._say(repair.note, number)
                return True
        return False

    def _say(self, note: Remark, number: int) -> None:
        if note:
            self._said.setdefault(note, []).append(number)

    def _remedy(self, line: SourceLine, told: str) -> str:
        """What to try: another assembler, or another text where it is read as something that it is not."""
        if _LACKING.search(told) and self._exists(line.text):
            return "the assemblers here are too old for it: install newer ones, or give an object file"
        if not self._header[0]:
            return "correct or delete the line; {arch} names a machine of another instruction set"
        syntax = INTEL if self._header[0] == INTEL_HEADER else ATT
        return f"correct or delete the line; it was read as {syntax} syntax, {{syntax}} chooses another"

    def _refused(self, source: str, errors: list[tuple[int, str]], messages: str) -> UnsupportedInstruction:
        for number, told in errors:
            if 1 <= number <= len(self._lines):
                line = self._lines[number - 1]
                text = shortened(" ".join((line.text or line.written).split()))
                why = f"{self._tool.name} refuses {text!r} ({shortened(told.strip())})"
                return UnsupportedInstruction(
                    f"{source}, line {number}: {why}", self._remedy(line, told), number
                )
        every = messages.strip().splitlines()
        shown = [line for line in every if "rror" in line] or every
        return UnsupportedInstruction(
            f"{source}: {self._tool.name} fails: {shortened(shown[0]) if shown else 'no message'}"
        )


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="cyclescope-")
    except OSError as error:
        raise BackendUnavailable(
            "no temporary file can be made", "set TMPDIR to a folder for them"
        ) from error
