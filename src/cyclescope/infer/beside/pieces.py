"""Pieces of code that are timed beside each other: texts, machine code, files, sweeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from cyclescope.analyze.choose.source import read_program
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.read.program import Program
from cyclescope.errors import UsageError, shortened
from cyclescope.infer.snippets import code_kernel, text_kernel
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure import bench

_MOST_VALUES = 256  # of a sweep: some minutes
_FROM_TO = re.compile(r"([A-Za-z]\w*)=(-?\d{1,9})\.\.(-?\d{1,9})(?::(\d{1,9}))?")
_LISTED = re.compile(r"([A-Za-z]\w*)=(-?\d{1,9}(?:,-?\d{1,9})*)")


class Around(msgspec.Struct, frozen=True):
    """What is around code to be timed: instructions before it, copies of it, the vector state.

    `vectors` is a name of `measure.bench.LEVELS`, or empty for what the registers in the code need.
    """

    init: str = ""
    unroll: int = 1
    vectors: str = ""


class Snippet(msgspec.Struct, frozen=True):
    """Code to time: what it is called, its kernel, and how many copies of the code a body has."""

    name: str
    kernel: Kernel
    copies: int = 1


class Sweep(msgspec.Struct, frozen=True):
    """A name in the code that stands for one number after the other."""

    name: str
    values: tuple[int, ...]

    def texts(self, text: str, init: str) -> Iterator[tuple[str, str, str]]:
        """What it is called, the text and the instructions before it, for every number.

        Raises UsageError where neither has the name.
        """
        mark = f"{{{self.name}}}"
        if mark not in text + init:
            raise UsageError(f"there is no {mark} in the code", f"write {mark} where the number goes")
        for value in self.values:
            number = str(value)
            yield f"{self.name}={value}", text.replace(mark, number), init.replace(mark, number)


def sweep_of(text: str) -> Sweep:
    """The sweep of `N=1..64`, `N=0..64:8` or `N=1,2,4`. Raises UsageError."""
    if match := _LISTED.fullmatch(text):
        return Sweep(match[1], tuple(int(value) for value in match[2].split(",")))
    match = _FROM_TO.fullmatch(text)
    if match is None:
        raise UsageError(f"{shortened(text)!r} is no sweep", "write N=1..64, N=0..64:8 or N=1,2,4")
    values = range(int(match[2]), int(match[3]) + 1, max(int(match[4] or 1), 1))
    if not 1 <= len(values) <= _MOST_VALUES:
        raise UsageError(f"{text!r} has {len(values)} numbers", f"up to {_MOST_VALUES} can be timed together")
    return Sweep(match[1], tuple(values))


def text_snippets(texts: Sequence[str], around: Around, sweep: Sweep | None, isa: str) -> list[Snippet]:
    """The snippets of assembly texts; with a sweep, one per number of each."""
    if sweep is None:
        return [_of_text(text, text, around.init, around, isa) for text in texts]
    named = [(text, *made) for text in texts for made in sweep.texts(text, around.init)]
    many = len(texts) > 1
    return [
        _of_text(f"{original}, {name}" if many else name, text, init, around, isa)
        for original, name, text, init in named
    ]


def _of_text(name: str, text: str, init: str, around: Around, isa: str) -> Snippet:
    kernel = text_kernel(text, init, around.unroll, around.vectors, isa)
    return Snippet(name, kernel, around.unroll)


def code_snippet(name: str, code: bytes, around: Around, isa: str) -> Snippet:
    """The snippet of machine code."""
    kernel = code_kernel(code, around.unroll, around.vectors, isa)
    return Snippet(name, _after(kernel, around, isa), around.unroll)


def file_snippet(path: Path, function: str, around: Around, isa: str) -> Snippet:
    """The code of a file of assembly text or an object file, or of one function of it, without its return.

    Raises SourceError for what cannot be read, UsageError for a function that is not there.
    """
    program = read_program(path, isa)
    code = _function(program, function) if function else _whole(program)
    bench.check_counter("\n".join(program.lines), around.init, isa)
    count = sum(1 for _ in decoder(isa).steps(code, 0))
    level = bench.LEVELS[around.vectors or _level(program, around.init, isa)]
    kernel = bench.machine_code(code, b"", count, around.unroll, level, isa)
    name = f"{path.name}:{function}" if function else path.name
    return Snippet(name, _after(kernel, around, isa), around.unroll)


def _after(kernel: Kernel, around: Around, isa: str) -> Kernel:
    """The kernel with the instructions that come before it."""
    if not around.init.strip():
        return kernel
    setup = text_kernel(around.init, "", 1, around.vectors, isa)
    return msgspec.structs.replace(kernel, setup=setup.code)


def _level(program: Program, init: str, isa: str) -> str:
    """The name of the vector state that the registers in a source need; the usual one without a source."""
    record = instruction_set(isa)
    if record.fixed_width or not program.lines:
        return record.registers.usual
    needed = bench.level_of("\n".join((*program.lines, init)))
    return next(name for name, level in bench.LEVELS.items() if level == needed)


def _whole(program: Program) -> bytes:
    parts = list(program.parts())
    if len({part.name for part in parts}) > 1:
        known = ", ".join(one.name for one in program.functions)
        raise UsageError(f"{program.source} has several sections of code", f"{{function}}, one of {known}")
    return b"".join(part.code for part in parts)


def _function(program: Program, name: str) -> bytes:
    found = next((one for one in program.functions if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in program.functions) or "none"
        raise UsageError(f"{program.source} has no function {name!r}", f"it has {known}")
    code = program.code(found.address, found.end - found.address)
    for ending in instruction_set(program.isa).returns:
        code = code.removesuffix(ending)
    return code
