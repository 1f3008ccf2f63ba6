"""Assembly text to machine code, with the assembler that is there."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import msgspec

from cyclescope.errors import BackendUnavailable, UnsupportedInstruction, shortened
from cyclescope.isa.assembly.limits import Budget


class Assembled(msgspec.Struct, frozen=True):
    """Machine code and the number of instructions it was written as."""

    code: bytes
    instructions: int


def lines_of(text: str) -> list[str]:
    """Instructions of a text; `;` and newlines separate them, `#` begins a comment."""
    parts = re.split(r"[;\n]", re.sub(r"#[^\n]*", "", text))
    return [part.strip() for part in parts if part.strip()]


# NASM's sizes: GNU as takes `dword [rbx]` for [rbx + 4], and what it does not know for a symbol.
_SIZED = re.compile(r"\b([dqtoyz]?word|byte|[xyz]mmword|tbyte)\s*(?=\[)", re.IGNORECASE)
_SIZES = {"tword": "tbyte", "oword": "xmmword", "yword": "ymmword", "zword": "zmmword"}


def with_sizes(text: str) -> str:
    """Intel syntax with the sizes of memory as GNU as has them."""
    return _SIZED.sub(lambda size: f"{_SIZES.get(size[1].lower(), size[1])} ptr ", text)


def assemble(text: str) -> Assembled:
    """Assemble Intel-syntax x86-64 text with GNU as.

    Raises BackendUnavailable where there is no assembler, UnsupportedInstruction where it refuses, naming
    the line, and SourceError where that takes too much.
    """
    tools = [shutil.which(name) for name in ("as", "objcopy")]
    if None in tools:
        raise BackendUnavailable(
            "no assembler found", "install binutils (apt install binutils), or give machine code with {hex}"
        )
    lines = lines_of(text)
    budget = Budget("the code", len(text))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        source, output, binary = (folder / name for name in ("a.s", "a.o", "a.bin"))
        body = [".intel_syntax noprefix", ".text", *map(with_sizes, lines)]
        source.write_text("\n".join(body) + "\n")
        command = [str(tools[0]), "--64", "-mnaked-reg", str(source), "-o", str(output)]
        done = budget.run("as", command, folder)
        if not done.ok:
            raise UnsupportedInstruction(_first_error(done.messages, str(source), lines))
        command = [str(tools[1]), "-O", "binary", "-j", ".text", str(output), str(binary)]
        done = budget.run("objcopy", command, folder)
        if not done.ok:
            raise BackendUnavailable(f"objcopy failed: {shortened(done.messages.strip())}")
        return Assembled(binary.read_bytes(), _executed(lines))


def _executed(lines: list[str]) -> int:
    """Lines that are instructions; bytes are one, as nobody writes data among code to be timed."""
    return sum((not line.endswith(":") and not line.startswith(".")) or _is_byte(line) for line in lines)


def _is_byte(line: str) -> bool:
    return line.startswith(".byte ")


def _first_error(messages: str, source: str, lines: list[str]) -> str:
    match = re.search(rf"^{re.escape(source)}:(\d+): (?:Fatal )?[Ee]rror: (.*)", messages, re.MULTILINE)
    number = int(match[1]) - 3 if match else -1  # behind the two directives
    if not match or not 0 <= number < len(lines):
        told = messages.replace(source, "the text").splitlines()
        first = next((line for line in told if "rror" in line), " ".join(told))
        return f"the assembler failed: {first}"
    return f"{shortened(lines[number])!r} cannot be assembled: {shortened(match[2])}"
