"""What kernels do under qemu-user, one instruction after the other: registers, addresses, branches."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from cyclescope.backend.native import NativeBackend
from cyclescope.isa.table import load_table
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import CODE_BASE
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler
from cyclescope.probe.question import Point, ProbeCase

MOST_PLACES = 3  # of a sweep: the first, one in the middle and the last
# What a register holds instead: numbers, and doubles and floats that RISC-V boxes.
NUMBERS = (5, 6, 0x123456789ABCDEF)
BOXED = 0xFFFFFFFF  # above a float of RISC-V: without it the register is no number
BOXED_ONE = BOXED << 32 | 0x3F800000
FLOATS = (0x3FF8000000000000, 0x4034000000000000)  # 1.5 and 20
BOXED_FLOATS = (BOXED << 32 | 0x3FC00000, BOXED << 32 | 0x41A00000)


# The code area; a CPU without scalable vectors, whose registers would fill the log.
TRACING = "-singlestep -d {registers},nochain -dfilter {code:#x}+0x1000000 -D {log}"
_CPUS = {"aarch64": "max,sve=off", "riscv64": "rv64,v=true,vext_spec=v1.0,vlen=256"}
_MACHINES = {"aarch64": ("aarch64", ()), "riscv64": ("riscv:rv64", ("-M", "numeric,no-aliases"))}
_STEP = re.compile(r"^ ?(?:PC=| pc +)([0-9a-f]{16})", re.MULTILINE)
_VALUE = re.compile(r"\b(?:(X\d\d|SP)=|(x\d+)/\w+ +|Q(\d\d)=[0-9a-f]{16}:|(f\d+)/\w+ +)([0-9a-f]{16})")
_LISTED = re.compile(r"^ *([0-9a-f]+):\t(?:[0-9a-f]+ *)+\t([^\n]*)", re.MULTILINE)
_ADDRESS = {
    "aarch64": re.compile(r"\[(x\d+|sp)(?:, (?:#(-?\d+)|(x\d+)(?:, lsl #(\d))?))?\](?:, #-?\d+)?(!?)"),
    "riscv64": re.compile(r"(-?\d+)?\((x\d+)\)"),
}
_WIDTHS = {"b": 1, "h": 2, "w": 4, "s": 4, "x": 8, "d": 8, "q": 16}


class Access(NamedTuple):
    """What an instruction read or wrote in memory; `line` is its number in the body."""

    stores: bool
    address: int
    size: int
    line: int

    @property
    def places(self) -> range:
        """Its bytes."""
        return range(self.address, self.address + self.size)


class Step:
    """An instruction with what the log has of the registers before it."""

    def __init__(self, at: int, text: str, log: str) -> None:
        self.at, self.text, self.log = at, text, log

    @cached_property
    def registers(self) -> Mapping[str, int]:
        """By name: x0, sp, f0 (of AArch64 the low half of q0)."""
        return _registers(self.log)


class Traced(NamedTuple):
    """A body that ran once: its instructions in order, the registers behind it, its bytes."""

    isa: str
    status: str
    steps: list[Step]
    after: Mapping[str, int]
    starts: list[int]  # of instructions, in bytes from the body's first

    @property
    def accesses(self) -> list[Access]:
        """All of them, in order."""
        return [found for step in self.steps for found in self._accesses(step)]

    @property
    def jumps(self) -> list[int]:
        """How far in bytes each branch that was taken led, in order."""
        following = dict(zip(self.starts, self.starts[1:], strict=False))
        pairs = zip(self.steps, self.steps[1:], strict=False)
        return [two.at - one.at for one, two in pairs if following.get(one.at) != two.at]

    def _accesses(self, step: Step) -> Iterator[Access]:
        found = _ADDRESS[self.isa].search(step.text)
        name = step.text.split()[0]
        if found is None or name in ("jalr", "c.jr", "c.jalr"):
            return
        size = _size(step.text, self.isa)
        address = _address(found, step.registers, self.isa)
        both = name.startswith(("amo", "swp", "cas", "ldadd"))
        if both or not _stores(name):
            yield Access(False, address, size, self.starts.index(step.at))
        if both or _stores(name):
            yield Access(True, address, size, self.starts.index(step.at))


def _stores(name: str) -> bool:
    return name.startswith(("st", "sb", "sh", "sw", "sd", "fsw", "fsd", "sc.", "c.s", "c.fs", "vs"))


def _address(found: re.Match[str], registers: Mapping[str, int], isa: str) -> int:
    if isa == "riscv64":
        return registers[found[2]] + int(found[1] or 0)
    base, at, index, shift, _ = found.groups()
    return registers[base] + int(at or 0) + ((registers[index] << int(shift or 0)) if index else 0)


def _size(text: str, isa: str) -> int:
    """In bytes, from the name and the first register."""
    name, rest = text.split(maxsplit=1)
    if isa == "riscv64":
        vector = re.fullmatch(r"v[ls]e(\d+)\.v", name)
        return int(vector[1]) // 8 if vector else _WIDTHS[re.sub(r"u$|\.aq\w*|\.rl", "", name)[-1]]
    if name[-1] in "bh" and not name.startswith("sub"):
        return _WIDTHS[name[-1]]
    words = rest.split(", ")
    first = words[1] if name.startswith("st") and "xr" in name else words[0]
    return _WIDTHS[first[0]] * (2 if name in ("ldp", "stp", "ldnp", "stnp") else 1)


class Tracer:
    """Runs bodies once on a runner under an emulator that logs registers, or those of integers alone."""

    def __init__(self, isa: str, folder: Path, floats: bool) -> None:
        self.isa, self.registers = isa, "cpu,fpu" if floats else "cpu"
        self.log = folder / f"{self.registers}.log"

    def command(self, qemu: str, runner: Path) -> str:
        """How to start that runner."""
        options = TRACING.format(registers=self.registers, code=CODE_BASE, log=self.log)
        return f"exec {qemu} -cpu {_CPUS[self.isa]} {options} {runner}"

    def run(self, backend, kernel: Kernel) -> Traced:
        """What a body does."""
        begun = self.log.stat().st_size if self.log.exists() else 0
        (outcome,) = backend.probe([kernel])
        with self.log.open() as stream:
            stream.seek(begun)
            text = stream.read()
        code, start = kernel.setup + kernel.code, len(kernel.setup)
        listing = _listing(code, self.isa, self.log.with_suffix(".code"))
        begins = list(_STEP.finditer(text))
        ends = [*(one.start() for one in begins[1:]), len(text)]
        steps, after = [], {}
        for one, end in zip(begins, ends, strict=True):
            at = int(one[1], 16) - CODE_BASE - start
            log = text[one.end() : end]
            if steps and (steps[-1].at, steps[-1].log) == (at, log):
                continue  # begun again, as at the first instruction of a page
            if 0 <= at < len(kernel.code):
                steps.append(Step(at, listing[at + start], log))
            elif at >= len(kernel.code) and steps and not after:
                after = _registers(log)
        starts = [at - start for at in listing if at >= start]
        return Traced(self.isa, outcome.describe(), steps, after, starts)


def _registers(log: str) -> dict[str, int]:
    return {_named(*found.groups()): int(found[5], 16) for found in _VALUE.finditer(log)}


def _named(general: str | None, numbered: str | None, vector: str | None, scalar: str | None, _: str) -> str:
    if general:
        return "sp" if general == "SP" else f"x{int(general[1:])}"
    return numbered or scalar or f"f{int(vector or 0)}"


def _listing(code: bytes, isa: str, path: Path) -> dict[int, str]:
    """Instructions by address, as the disassembler of binutils reads them."""
    path.write_bytes(code)
    machine, more = _MACHINES[isa]
    command = [f"{isa}-linux-gnu-objdump", "-D", "-z", "-b", "binary", "-m", machine, *more, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {
        int(at, 16): text.split("\t//")[0].replace("\t", " ") for at, text in _LISTED.findall(done.stdout)
    }


def target(step: Step) -> str:
    """The register that an instruction writes: x10, or f10 for any part of a vector."""
    found = re.search(r" ([a-z])(\d+)", step.text)
    assert found is not None, step.text
    return ("x" if found[1] in "xw" else "f") + found[2]


class Runs:
    """Runs points once, as they are or from other registers; `emulators` are without floats and with them."""

    def __init__(self, isa: str, emulators: Sequence[tuple[Tracer, NativeBackend]]) -> None:
        self.isa, self.emulators = isa, emulators
        self.assembler = Assembler(load_table(isa))

    def __call__(self, point: Point, times: int = 1, **registers: int) -> Traced:
        """The body so many times; `registers` are numbers to start with, by name."""
        kernel = self.assembler.kernel(point.lines * times, point.flags, point.setting, point.setup)
        state = kernel.state
        for name, value in registers.items():
            number = int(name[1:])
            if name[0] == "x":
                general = (*state.general[:number], value, *state.general[number + 1 :])
                state = structs.replace(state, general=general)
            elif self.isa == "riscv64":
                others = (BOXED_ONE,) * 32 if value >> 32 == BOXED else state.scalars
                scalars = (*others[:number], value, *others[number + 1 :])
                state = structs.replace(state, scalars=scalars)
            else:
                kept = tuple(one for one in state.vectors if one[0] != number)
                contents = value.to_bytes(8, "little") * 8
                state = structs.replace(state, vectors=(*kept, (number, contents)))
        operands = (op for one in kernel.body for op in one.form.operands if op.is_register)
        tracer, backend = self.emulators[any(op.file not in ("r", "?") for op in operands)]
        return tracer.run(backend, structs.replace(kernel, state=state))

    def passes(self, point: Point, one: str, other: str = "", behind: int | None = None) -> bool:
        """Whether what a register holds at the end depends on what it, or another one, holds before.

        Or what it holds behind a line of this number.
        """
        kinds = (NUMBERS,) if (other or one)[0] == "x" else (FLOATS, BOXED_FLOATS)
        return any(
            len({self._held(point, one, behind, {other or one: value}) for value in kind}) > 1
            for kind in kinds
        )

    def _held(self, point: Point, one: str, behind: int | None, registers: Mapping[str, int]) -> int:
        done = self(point, **registers)
        return (done.after if behind is None else done.steps[behind + 1].registers)[one]

    def chosen(self, probe: str) -> Iterator[tuple[ProbeCase, Point]]:
        """A few points of each part of each case."""
        for case in PROBES[probe].cases(self.isa):
            parts: dict[str, list[Point]] = {}
            for point in case.points:
                parts.setdefault(point.part, []).append(point)
            for points in parts.values():
                places = sorted({0, len(points) // 2, len(points) - 1})[:MOST_PLACES]
                yield from ((case, points[place]) for place in places)
