"""llvm-mca answers: LLVM's scheduling model of a CPU instead of the CPU.

The same kernels go through the same inference; what comes out is what LLVM believes of the CPU, not a
measurement. Instructions are given as text, so the assembler chooses among equal encodings.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import ceil, log2
from typing import TypeVar

import msgspec

from cyclescope.backend.base import Capabilities
from cyclescope.backend.peers.analyzers import (
    Analysis,
    AnalyzerBackend,
    TimedOut,
    ending,
    find_programs,
    run_program,
)
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.isa.registry import DEFAULT, instruction_set
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, Kernel

NAMES = ("llvm-mca", *(f"llvm-mca-{version}" for version in range(22, 13, -1)))
_ALWAYS = "nop"  # in a call that may have nothing else to answer
_PATIENCE = 5.0  # seconds for a call with next to nothing to do: a tenth of one, beside fifty others
WORTH = 50_000  # simulated instructions that are worth as much again; the usual rate is ten times that
CALL = 500  # instructions in one call
WORK = 400_000  # simulated instructions in one call
SETTLE = 512  # instructions before the steady state: as many as a large reorder buffer holds
TURNS = 240  # instances that take units in turn: as often each of 2, 3, 4, 5, 6, 8, 10 or 12
_WINDOW = 500.0  # cycles at least of the steady state that are counted: one at the ends is 0.2 %

_REMEDY = "install LLVM (apt install llvm), or name another program"


_PARSE_ERROR = re.compile(r"^\S*?:(\d+):\d+: error: (.*)$", re.MULTILINE)

Key = TypeVar("Key")


class _Version(tuple[int, ...]):
    """A version number: later ones are greater."""

    def __str__(self) -> str:
        return ".".join(map(str, self))


class _Pressure(msgspec.Struct):
    row: int = msgspec.field(name="InstructionIndex")
    port: int = msgspec.field(name="ResourceIndex")
    cycles: float = msgspec.field(name="ResourceUsage")


class _Pressures(msgspec.Struct):
    rows: list[_Pressure] = msgspec.field(name="ResourcePressureInfo")


class _Summary(msgspec.Struct):
    cycles: int = msgspec.field(name="TotalCycles")
    iterations: int = msgspec.field(name="Iterations")
    throughput: float = msgspec.field(name="BlockRThroughput")


class Stated(msgspec.Struct, frozen=True):
    """What llvm-mca states for an instruction alone.

    Cycles until the slowest result, cycles per instruction that ports and dispatch allow,
    micro-operations as the scheduling model counts them, and how many of its resources one takes.
    """

    latency: float
    throughput: float
    operations: int
    resources: int


class _Info(msgspec.Struct):
    latency: float = msgspec.field(name="Latency")
    operations: int = msgspec.field(name="NumMicroOpcodes")


class _Infos(msgspec.Struct):
    rows: list[_Info] = msgspec.field(name="InstructionList")


class _Region(msgspec.Struct):
    name: str = msgspec.field(name="Name")
    instructions: list[str] = msgspec.field(name="Instructions")
    summary: _Summary = msgspec.field(name="SummaryView")
    pressures: _Pressures | None = msgspec.field(name="ResourcePressureView", default=None)

    infos: _Infos | None = msgspec.field(name="InstructionInfoView", default=None)

    def stated(self) -> Stated | None:
        """What is stated for a region of one instruction."""
        if self.infos is None:
            return None
        info = self.infos.rows[0]
        taken = sum(1 for entry in self.pressures.rows if entry.row == 0) if self.pressures else 0
        return Stated(info.latency, self.summary.throughput, info.operations, taken)

    def pressure(self, ports: int) -> tuple[float, ...]:
        """Cycles of each port per iteration: the row behind those of the instructions."""
        found = [0.0] * ports
        for entry in self.pressures.rows if self.pressures else ():
            if entry.row == len(self.instructions):
                found[entry.port] = entry.cycles
        return tuple(found)


class _Target(msgspec.Struct):
    ports: list[str] = msgspec.field(name="Resources")


class _Report(msgspec.Struct):
    regions: list[_Region] = msgspec.field(name="CodeRegions")
    target: _Target = msgspec.field(name="TargetInfo")


_DECODER = msgspec.json.Decoder(_Report)


class LlvmMcaBackend(AnalyzerBackend):
    """llvm-mca with its model of a CPU, named as in `-mcpu`.

    `isa` is that of the kernels; `executable` is a path or name; otherwise the newest installed one is
    taken. `patience` is the time limit of a small call in seconds; an instruction that is not answered in
    time counts as unknown. Counters are cycles per port of the model. Raises BackendUnavailable where the
    program is absent or does not work, UsageError where it has no model of the CPU.
    """

    def __init__(
        self, cpu: str, executable: str | None = None, patience: float = _PATIENCE, isa: str = DEFAULT
    ) -> None:
        super().__init__()
        self.cpu, self.isa = cpu, isa
        record = instruction_set(isa)
        self._triple = record.toolchain.triple.replace("-linux", "-unknown-linux")
        self._header = record.toolchain.header
        self.refused: dict[str, str] = {}  # instructions that have no analysis, with the reason
        self._known: set[str] = set()
        self._patience = patience
        self._version, self.program = max(map(self._with_version, find_programs(NAMES, executable, _REMEDY)))
        self._skips = "parse-failure" in self._run(["--help"], "").stdout
        self._ports = self._read_ports()

    def capabilities(self) -> Capabilities:
        """Version and CPU of the model, and its ports."""
        return Capabilities(
            self.isa, f"llvm-mca {self._version}, model of {self.cpu}", 0, "model", self._ports,
            notes=("predicted by LLVM's scheduling model, not measured",), real_time=False,
        )  # fmt: skip

    def accepted(self, kernels: Sequence[Kernel]) -> list[int]:
        """Position of the first instruction that LLVM does not know for this CPU, or -1."""
        bodies = [lines(kernel) for kernel in kernels]
        new = dict.fromkeys(line for body in bodies for line in body)
        self._check([line for line in new if line not in self._known and line not in self.refused])
        return [next((n for n, line in enumerate(body) if line in self.refused), -1) for body in bodies]

    def analysed(self, kernels: Sequence[Kernel]) -> list[Analysis | None]:
        """Cycles per iteration in the steady state, and the pressure on each port."""
        bodies = [lines(kernel) for kernel in kernels]
        streams = [bool(kernel.flags & CANARY) for kernel in kernels]
        settling = [_power(SETTLE / len(body)) for body in bodies]
        first = self._regions(bodies, zip(settling, streams, strict=True), views=True)
        longer = zip(map(_window, settling, first), streams, strict=True)
        second = self._regions(bodies, longer, views=False)
        return [self._analysis(*both) for both in zip(first, second, strict=True)]

    def _analysis(self, first: _Region | None, second: _Region | None) -> Analysis | None:
        if first is None or second is None:
            return None
        cycles = second.summary.cycles - first.summary.cycles
        iterations = second.summary.iterations - first.summary.iterations
        return Analysis(cycles / iterations, first.pressure(len(self._ports)))

    def steady(self, bodies: Sequence[list[str]]) -> list[float | None]:
        """Cycles per iteration of blocks of text in the steady state; None for what LLVM does not take."""
        settling = [_power(SETTLE / max(len(body), 1)) for body in bodies]
        first = self._regions(bodies, [(count, True) for count in settling], views=False)
        longer = [(_window(count, found), True) for count, found in zip(settling, first, strict=True)]
        second = self._regions(bodies, longer, views=False)
        found = (self._analysis(*both) for both in zip(first, second, strict=True))
        return [one.cycles if one else None for one in found]

    def stated(self, instructions: Sequence[Instruction]) -> list[Stated | None]:
        """What the model states for each instruction alone; None where it does not know it."""
        bodies = [[line(instruction)] for instruction in instructions]
        found = self._regions(bodies, [(1, True)] * len(bodies), views=True)
        return [region.stated() if region else None for region in found]

    def pressures(self, instructions: Sequence[Instruction]) -> list[tuple[float, ...] | None]:
        """Cycles of each port per instance of each instruction alone; None where it is not known."""
        bodies = [[line(instruction)] for instruction in instructions]
        found = self._regions(bodies, [(TURNS, True)] * len(bodies), views=True)
        return [region.pressure(len(self._ports)) if region else None for region in found]

    # --- what LLVM knows ---------------------------------------------------------------------------

    def _check(self, new: Sequence[str]) -> None:
        """Find out which instructions have an analysis: each alone in a region."""
        for start in range(0, len(new), CALL):
            self._check_some(new[start : start + CALL])

    def _check_some(self, some: Sequence[str]) -> None:
        report, messages = self._call([[line] for line in (*some, _ALWAYS)], 1, True, views=False)
        if report is None and len(some) > 1:  # an older LLVM, which gives up without a line number
            half = len(some) // 2
            self._check_some(some[:half])
            self._check_some(some[half:])
            return
        found = {int(region.name) for region in report.regions} if report else set()
        for number, line in enumerate(some):
            if number in found:
                self._known.add(line)
            else:
                self.refused[line] = messages.get(number, f"{self.cpu} has no scheduling information")

    # --- analyses ----------------------------------------------------------------------------------

    def _regions(
        self, bodies: Sequence[list[str]], settings: Iterable[tuple[int, bool]], views: bool
    ) -> list[_Region | None]:
        """The region of each body, run with its number of iterations."""
        result: list[_Region | None] = [None] * len(bodies)
        for (iterations, stream), numbers in _grouped(settings).items():
            for some in _batches(numbers, lambda n: len(bodies[n]), min(CALL, WORK // iterations)):
                call = partial(self._call, iterations=iterations, stream=stream, views=views)
                self._fill(result, bodies, some, call)
        return result

    def _fill(
        self,
        result: list[_Region | None],
        bodies: Sequence[list[str]],
        numbers: Sequence[int],
        call: Callable[[list[list[str]]], tuple[_Report | None, dict[int, str]]],
    ) -> None:
        """Fill in what a call answers; bodies that it fails on are found by halving."""
        report, _ = call([bodies[n] for n in numbers])
        if report is None and len(numbers) > 1:
            half = len(numbers) // 2
            self._fill(result, bodies, numbers[:half], call)
            self._fill(result, bodies, numbers[half:], call)
            return
        for region in report.regions if report else ():
            number = numbers[int(region.name)]
            if len(region.instructions) == len(bodies[number]):
                result[number] = region

    def _call(
        self, bodies: Sequence[list[str]], iterations: int, stream: bool, views: bool
    ) -> tuple[_Report | None, dict[int, str]]:
        """The report on some bodies, None where there is none, and what is wrong by line."""
        text = [self._header]
        for number, body in enumerate(bodies):  # behind `//` llvm-mca reads no name
            text += [f"# LLVM-MCA-BEGIN {number}", *body, f"# LLVM-MCA-END {number}"]
        options = [f"-iterations={iterations}", f"-noalias={'true' if stream else 'false'}"]
        options += [f"-resource-pressure={int(views)}", f"-instruction-info={int(views)}"]
        options += ["-skip-unsupported-instructions=any"] if self._skips else []
        work = iterations * sum(map(len, bodies))
        try:
            done = self._run([*self._target(), "-json", *options, "-"], "\n".join(text) + "\n", work)
        except TimedOut as error:
            return None, dict.fromkeys(range(len(bodies)), error.message)
        # One line per body where a line number is of use, behind the header and the region's beginning.
        messages = {(int(line) - 3) // 3: said for line, said in _PARSE_ERROR.findall(done.stderr)}
        try:
            return _DECODER.decode(done.stdout), messages
        except msgspec.DecodeError:
            return None, messages

    # --- the program -------------------------------------------------------------------------------

    def _target(self) -> list[str]:
        return [f"-mtriple={self._triple}", f"-mcpu={self.cpu}"]

    def _run(self, options: Sequence[str], text: str, work: int = 0) -> subprocess.CompletedProcess[str]:
        return run_program([self.program, *options], text, self._patience * (1 + work / WORTH))

    def _with_version(self, program: str) -> tuple[_Version, str]:
        done = run_program([program, "--version"], "", self._patience)
        found = re.search(r"LLVM version ([\d.]*\d)", done.stdout)
        if done.returncode or found is None:
            raise BackendUnavailable(f"{program} is no llvm-mca: it {ending(done)}", _REMEDY)
        return _Version(map(int, found[1].split("."))), program

    def _read_ports(self) -> tuple[str, ...]:
        """Names of the model's ports; units of the same name are numbered."""
        done = self._run([*self._target(), "-json", "-"], f"{self._header}\nnop\n")
        architecture = self._triple.partition("-")[0]
        listed = f"`{self.program} -mtriple={architecture} -mcpu=help` lists those it knows"
        if "is not a recognized processor" in done.stderr:
            raise UsageError(f"LLVM {self._version} knows no CPU {self.cpu!r}", listed)
        if "unable to find instruction-level scheduling information" in done.stderr:
            raise UsageError(f"LLVM {self._version} has no scheduling model of {self.cpu!r}", listed)
        try:
            names = _DECODER.decode(done.stdout).target.ports
        except msgspec.DecodeError as error:
            raise BackendUnavailable(f"{self.program} {ending(done)}", _REMEDY) from error
        return tuple(re.sub(r"\.([\0-\x1f])$", lambda unit: f".{ord(unit[1])}", name) for name in names)


# --- text -------------------------------------------------------------------------------------------


def lines(kernel: Kernel) -> list[str]:
    """The body in the words of LLVM's assembler, one instruction per line."""
    return [line(instruction) for instruction in kernel.body]


def line(instruction: Instruction) -> str:
    """An instruction in the words of LLVM's assembler, which may differ from those of GNU as."""
    toolchain, text = instruction_set(instruction.form.isa).toolchain, instruction.text
    for pattern, replacement in toolchain.llvm_rewrites:
        text = re.sub(pattern, replacement, text)
    attributes = instruction.form.attributes
    return next((word for name, word in toolchain.llvm_prefixes.items() if name in attributes), "") + text


def _window(settling: int, found: _Region | None) -> int:
    """Iterations until WINDOW cycles, and a quarter of the settling, have passed in the steady state."""
    if found is None:
        return settling
    needed = _WINDOW * found.summary.iterations / found.summary.cycles
    return settling + _power(max(needed, settling / 4))


# --- batches ----------------------------------------------------------------------------------------


def _power(least: float) -> int:
    """The next power of two, so that few numbers of iterations occur."""
    return 1 << max(ceil(log2(max(least, 1.0))), 0)


def _grouped(keys: Iterable[Key]) -> dict[Key, list[int]]:
    """Positions by key."""
    found: dict[Key, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        found[key].append(position)
    return found


def _batches(numbers: Iterable[int], size: Callable[[int], int], most: int) -> Iterator[list[int]]:
    """Consecutive numbers, their sizes at most `most` together (a single one may be greater)."""
    batch: list[int] = []
    total = 0
    for number in numbers:
        if batch and total + size(number) > most:
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += size(number)
    if batch:
        yield batch
