"""Questions to LLVM's library, asked in batches."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import llvm
from .records import Record

HERE = Path(__file__).parent
TRIPLES = {"aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu"}
TRIPLE_OF_32_BITS = "riscv32-linux-gnu"


@dataclass
class Answer:
    """An instruction as LLVM reads it."""

    opcode: str
    operands: list[str]  # registers by name, numbers
    text: str


def build(directory: Path) -> Path:
    """The program that asks LLVM."""
    return llvm.build(HERE / "probe.cpp", directory)


class Probe:
    """LLVM's library for one ISA."""

    def __init__(self, program: Path, isa: str) -> None:
        self.program = program
        self.isa = isa

    def describe(self) -> list[dict[str, Any]]:
        """What the library knows of each opcode."""
        command = [str(self.program), "describe", TRIPLES[self.isa]]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def decode(self, questions: Iterable[tuple[str, bytes]]) -> list[Answer | None]:
        """Answers to (features, code); None for code that is no instruction, or an unpredictable one."""
        asked = list(questions)
        small = [features.startswith("-64bit") for features, _ in asked]
        answers = {
            narrow: iter(self._ask(narrow, [q for q, s in zip(asked, small, strict=True) if s == narrow]))
            for narrow in (False, True)
        }
        return [next(answers[narrow]) for narrow in small]

    def _ask(self, narrow: bool, questions: list[tuple[str, bytes]]) -> list[Answer | None]:
        if not questions:
            return []
        lines = "".join(f"{features or '+none'} {code.hex()}\n" for features, code in questions)
        triple = TRIPLE_OF_32_BITS if narrow else TRIPLES[self.isa]
        done = subprocess.run(
            [self.program, "decode", triple], input=lines, check=True, capture_output=True, text=True
        )
        return [_answer(line) for line in done.stdout.splitlines()]


def _answer(line: str) -> Answer | None:
    if line == "-":
        return None
    opcode, operands, text = line.split("\t")
    return Answer(opcode, operands.split(), " ".join(text.partition("//")[0].split()))


def features(isa: str, record: Record) -> str:
    """Features that LLVM needs to read an instruction: everything on AArch64, what it asks for on RISC-V.

    RISC-V's extensions use the same encodings for different instructions.
    """
    if isa == "aarch64":
        return "+all"
    wanted = record.alternatives[0]
    signed = [f if f.startswith("-") else "+" + f for f in wanted]
    return ",".join(sorted(signed, key=lambda f: f != "-64bit"))
