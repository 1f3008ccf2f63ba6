"""Pieces of code that are timed beside each other: texts, machine code, files, sweeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from cyclescope.analyze.choose.source import read_program
from cyclescope.analyze.decode.decoder import Flow, decoder
from cyclescope.analyze.read.program import Program
from cyclescope.errors import UsageError, shortened
from cyclescope.infer.beside.bursts import Before, Burst, BurstPlan, burst_of
from cyclescope.infer.snippets import (
    check_code,
    check_kept,
    code_kernel,
    code_of,
    refused_lines,
    text_kernel,
)
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure import bench

_MOST_VALUES = 256  # of a sweep: some minutes
_FROM_TO = re.compile(r"([A-Za-z]\w*)=(-?\d{1,9})\.\.(-?\d{1,9})(?::(\d{1,9}))?")
_LISTED = re.compile(r"([A-Za-z]\w*)=(-?\d{1,9}(?:,-?\d{1,9})*)")


class Init(NamedTuple):
    """What comes before the code: once, before each run, and behind its first read of the clock.

    Each is assembly text or machine code.
    """

    one_time: str | bytes = ""
    each: str | bytes = ""
    late: str | bytes = ""

    @property
    def text(self) -> str:
        """All of it that is text, in order."""
        return "\n".join(part for part in self if isinstance(part, str) and part)

    def code(self, isa: str) -> tuple[bytes, bytes, bytes]:
        """The machine code of each. Raises UsageError, UnsupportedInstruction."""
        one_time, each, late = (part if isinstance(part, bytes) else code_of(part, isa) for part in self)
        return one_time, each, late

    def check(self, kept: str | None, isa: str) -> None:
        """Raise UsageError for machine code that names registers which are kept from it."""
        for part in self:
            if isinstance(part, bytes):
                check_code(part, kept, isa)


class Around(msgspec.Struct, frozen=True):
    """What is around code to be timed: instructions before it, copies of it, the vector state.

    `vectors` is a name of `measure.bench.VECTOR_LEVELS`, or empty for what the registers in the code need.
    With a `plan` copies run once, as many as that says.
    """

    init: Init = Init()
    unroll: int = 1
    vectors: str = ""
    plan: BurstPlan | None = None

    def kept(self, isa: str) -> str | None:
        """Registers that code may not name, None for the one that counts."""
        return None if self.plan is None else self.plan.kept(isa)


class Snippet(msgspec.Struct, frozen=True):
    """Code to time: what it is called, its kernel, how many copies a body has, or how these run once."""

    name: str
    kernel: Kernel
    copies: int = 1
    burst: Burst | None = None


class Sweep(msgspec.Struct, frozen=True):
    """A name in the code that stands for one number after the other."""

    name: str
    values: tuple[int, ...]

    def texts(self, text: str, init: Init) -> Iterator[tuple[str, str, Init]]:
        """What it is called, the text and the instructions before it, for every number.

        Raises UsageError where neither has the name.
        """
        mark = f"{{{self.name}}}"
        if mark not in text + init.text:
            raise UsageError(f"there is no {mark} in the code", f"write {mark} where the number goes")
        for value in self.values:
            number = str(value)
            parts = (one.replace(mark, number) if isinstance(one, str) else one for one in init)
            before = Init(*parts)
            yield f"{self.name}={value}", text.replace(mark, number), before


def sweep_of(text: str) -> Sweep:
    """The sweep of `N=1..64`, `N=0..64:8` or `N=1,2,4`. Raises UsageError."""
    if match := _LISTED.fullmatch(text):
        return Sweep(match[1], tuple(int(value) for value in match[2].split(",")))
    match = _FROM_TO.fullmatch(text)
    if match is None:
        raise UsageError(f"{shortened(text)!r} is no sweep", "write N=1..64, N=0..64:8 or N=1,2,4")
    values = range(int(match[2]), int(match[3]) + 1, max(int(match[4] or 1), 1))
    if not values:
        raise UsageError(f"{text!r} ends before it begins", "write the lesser number first: N=1..64")
    if len(values) > _MOST_VALUES:
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


def _of_text(name: str, text: str, init: Init, around: Around, isa: str) -> Snippet:
    unroll = 1 if around.plan else around.unroll
    kernel = text_kernel(text, init.text, unroll, around.vectors, isa, around.kept(isa))
    return _after(name, kernel, msgspec.structs.replace(around, init=init), isa)


def _in_copies(name: str, kernel: Kernel, init: Init, plan: BurstPlan, isa: str) -> Snippet:
    """The snippet of code whose copies run once, from the state that such have."""
    kernel = msgspec.structs.replace(kernel, state=bench.area_state(kernel.state.vector_level, isa))
    before = Before(*init.code(isa))
    return Snippet(name, kernel, burst=burst_of(kernel, before, plan))


def code_snippet(name: str, code: bytes, around: Around, isa: str) -> Snippet:
    """The snippet of machine code."""
    check_code(code, around.kept(isa), isa)
    kernel = code_kernel(code, 1 if around.plan else around.unroll, around.vectors, isa)
    return _after(name, kernel, around, isa)


def kernel_snippet(name: str, kernel: Kernel, around: Around) -> Snippet:
    """The snippet of a kernel that was made before, with its state and what it has before it."""
    if around.plan is None:
        return Snippet(name, kernel)
    return Snippet(name, kernel, burst=burst_of(kernel, Before(init=kernel.setup), around.plan))


def file_snippet(path: Path, function: str, around: Around, isa: str) -> Snippet:
    """The code of a file of assembly text or an object file, or of one function of it, without its return.

    Raises SourceError for what cannot be read, UsageError for a function that is not there.
    """
    with refused_lines():
        program = read_program(path, isa)
    code = _function(program, function) if function else _whole(program)
    text = "\n".join((*program.lines, around.init.text))
    check_kept(text, around.kept(isa), isa)
    check_code(code, around.kept(isa), isa)
    count = sum(1 for _ in decoder(isa).steps(code, 0))
    level = bench.VECTOR_LEVELS[around.vectors or _level(program, around.init.text, isa)]
    kernel = bench.machine_code(code, b"", count, 1 if around.plan else around.unroll, level, isa)
    return _after(f"{path.name}:{function}" if function else path.name, kernel, around, isa)


def _after(name: str, kernel: Kernel, around: Around, isa: str) -> Snippet:
    """The snippet of a kernel with the instructions that come before it."""
    around.init.check(around.kept(isa), isa)
    check_kept(around.init.text, around.kept(isa), isa)
    if around.plan is not None:
        return _in_copies(name, kernel, around.init, around.plan, isa)
    kernel = msgspec.structs.replace(kernel, setup=b"".join(around.init.code(isa)))
    return Snippet(name, kernel, around.unroll)


def _level(program: Program, init: str, isa: str) -> str:
    """The name of the vector state that the registers in a source need; the usual one without a source."""
    if not program.lines:
        return instruction_set(isa).registers.usual
    return bench.vectors_of("\n".join((*program.lines, init)), isa)


def _whole(program: Program) -> bytes:
    parts = list(program.parts())
    if len({part.name for part in parts}) > 1:
        what = f"{program.source} has several sections of code"
        raise UsageError(what, f"{{function}}, one of {_names(program)}")
    code = b"".join(part.code for part in parts)
    if [one.address for one in program.functions] == [parts[0].address]:
        return _without_return(code, program.isa)
    if _without_return(code, program.isa) != code:
        what = f"{program.source} returns out of what is timed"
        raise UsageError(what, f"{{function}}, one of {_names(program)}")
    return code


def _without_return(code: bytes, isa: str) -> bytes:
    """Code whose last instruction is no return: one that ends with the same bytes stays."""
    *_, last = [0, *(step.address for step in decoder(isa).steps(code, 0))]
    return code[:last] if code[last:] in instruction_set(isa).returns else code


def _function(program: Program, name: str) -> bytes:
    found = program.named(name)
    if found is None:
        raise UsageError(f"{program.source} has no function {name!r}", f"it has {_names(program)}")
    code = _without_return(program.code(found.address, found.end - found.address), program.isa)
    if _returns_early(code, program.isa):
        what = f"{name} returns in several places, and what is timed has to go on at its end"
        raise UsageError(what, "give a part of it as text")
    return code


def _returns_early(code: bytes, isa: str) -> bool:
    """Whether code that calls nothing has a return in it."""
    steps = list(decoder(isa).steps(code, 0))
    returns = any(code[one.address : one.end] in instruction_set(isa).returns for one in steps)
    return returns and not any(one.flow == Flow.CALL for one in steps)


def _names(program: Program) -> str:
    """What can be chosen: functions, and labels, the first where there are many."""
    every = dict.fromkeys((*(one.name for one in program.functions), *program.labels.values()))
    return shortened(", ".join(every)) or "none"
