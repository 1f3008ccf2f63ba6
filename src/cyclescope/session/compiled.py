"""Loops of compiled programs: C files, one loop each, compiled by what is there, run and found in the object.

A file has `long run(long n)`, which does `n` rounds of its innermost loop (`loops/loops.h`). Cycles per round
are the slope between two numbers of rounds. How many rounds one iteration of the machine's loop is, compilers
decide; a run step by step counts that, and whether the loop that was found is where the time goes.

All programs are run in turn, and in later turns those again whose quickest run no other agrees with: a
neighbour that is there for a minute spoils a turn, and no program.
"""

from __future__ import annotations

import shlex
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from math import floor, inf
from pathlib import Path

import msgspec

from cyclescope.analyze.choose.source import Choice, read_block, read_program
from cyclescope.analyze.decode.block import Block
from cyclescope.errors import BackendUnavailable, CyclescopeError, UsageError
from cyclescope.host.uname import host_isa
from cyclescope.measure.blocks import CLEAN, DISTURBED_BLOCK, LINEAR, NONLINEAR, UNSTABLE, BlockTiming, failed
from cyclescope.remarks.blocks import Untimed
from cyclescope.session.blocks import KERNELS, BlockCase, ProgramBlock

_FUNCTION = "run"
_ROUNDS = 128  # what numbers of rounds are multiples of
_FEW = 3  # the slope is between a part of the rounds that a loop can do, one of so many, and all of them
_COUNTED = (128, 384)  # the same for the run step by step
SAMPLES, NANOSECONDS = 60, 20_000.0
_PASSES, _AGREE = 5, 0.02  # runs of the program; what two of them differ by at most
_MOST_PASSES = 24  # runs where none agrees with the quickest
_TRIES = 6  # runs with fewer rounds, until one is as it should be: noise makes slopes differ
FEWEST = 6  # samples of a run between quiet moments
QUIET_LOOP = (
    0.03  # relative: what NOPs, or trips, take more than undisturbed; ends of loops and noise take one
)
_HICCUPS = 2  # samples of a run that are too short by one of the clock's
_MOSTLY = 0.95  # of the steps have to be those of the loop
_PATIENCE = 60.0  # seconds for the compiler, and for a run: each takes one, on a quiet machine
COMPILERS = ("gcc", "clang", "cc")
_LEVELS = (("-O2",), ("-O3", "-march=native"))

_Report = Callable[[int, int], None]


class Build(msgspec.Struct, frozen=True):
    """A C file and how it is compiled."""

    source: Path
    compiler: str
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's name, the compiler's and its options."""
        return f"{self.source.stem}, {' '.join((Path(self.compiler).name, *self.options))}"


class Compiled(msgspec.Struct, frozen=True):
    """A program, the loop in it and where that begins, in bytes from the function's start."""

    program: Path
    block: Block
    offset: int


class _Failed(Exception):
    """Why a loop has no time."""


def shipped() -> Path:
    """The folder of the loops that come with cyclescope."""
    return Path(str(resources.files("cyclescope"))) / "session" / "loops"


def builds(folder: Path | None = None) -> list[Build]:
    """Every C file of a folder with every compiler here, at two levels.

    Raises UsageError for a folder without C files, BackendUnavailable where there is no compiler.
    """
    folder = folder or shipped()
    files = sorted(folder.glob("*.c")) if folder.is_dir() else []
    if not files:
        what = "has no C files" if folder.is_dir() else "is no folder"
        raise UsageError(f"{folder} {what}", "each has a function long run(long n)")
    found = list(compilers())
    if not found:
        raise BackendUnavailable("no C compiler here", "install gcc or clang, or give blocks of machine code")
    return [Build(file, name, level) for file in files for name in found for level in _LEVELS]


def compilers() -> Iterator[str]:
    """The C compilers that are there; another name of one that was found already is none."""
    seen: set[str] = set()
    for name in COMPILERS:
        path = shutil.which(name)
        if path and (name != "cc" or not seen):
            seen.add(name)
            yield path


def timed_loops(
    chosen: Sequence[Build], nop: float, report: _Report = lambda done, of: None
) -> list[tuple[BlockCase, BlockTiming]]:
    """Compile, run and find loops; `nop` are cycles of a NOP on the undisturbed core, 0 if unknown."""
    with tempfile.TemporaryDirectory(prefix="cyclescope-") as folder:
        quiet = _Quiet(nop)
        tried = [_Tried(build, Path(folder) / str(n), quiet) for n, build in enumerate(chosen)]
        for _ in range(_MOST_PASSES):
            for one in tried:
                one.run()
            report(sum(one.is_done for one in tried), len(tried))
        return [one.timed() for one in tried]


class _Tried:
    """A build on its way to a time, or to a reason why it has none."""

    def __init__(self, build: Build, folder: Path, quiet: _Quiet) -> None:
        self._quiet = quiet
        self._block = Block((), host_isa(), name=build.name)
        self._name, self._reason = build.name, ""
        self._runs: list[_Samples] = []
        folder.mkdir()
        with self._failing():
            self._made = _compiled(build, folder)
            self._block = self._made.block
            self._iterations = _iterations(self._made)
            self._rounds = _rounds(self._made.program)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except _Failed as why:
            self._reason = str(why)
        except CyclescopeError as error:
            self._reason = error.message

    def run(self) -> None:
        """Run the program once more, unless it has its time."""
        if not self.is_done:
            with self._failing():
                self._runs.append(_samples(self._made.program, self._rounds))
                self._quiet.learn(self._runs[-1])

    @property
    def is_done(self) -> bool:
        """Whether there is a reason against a time, or there are runs enough, the quickest of which agree.

        Two that agree beside a quicker one were disturbed alike.
        """
        if self._reason or len(self._runs) < _PASSES:
            return bool(self._reason)
        first, second = [*self._values(), inf, inf][:2]
        return second <= first * (1 + _AGREE) < inf

    def _values(self) -> list[float]:
        """Cycles per round of the runs: what is quiet is known the better the more there were."""
        values = (_slope(one, self._quiet) for one in self._runs)
        return sorted(value for value in values if value is not None)

    def timed(self) -> tuple[BlockCase, BlockTiming]:
        """The block, and its time in cycles per iteration."""
        timing = None
        if not self._reason:
            with self._failing():
                timing = _per_iteration(self._time(), self._iterations)
        code = b"".join(one.code for one in self._block)
        address = next((one.address for one in self._block), 0)
        origin = ProgramBlock(code, self._name, self._block.isa, address)
        case = BlockCase(origin, KERNELS, code, self._block)
        return case, timing or failed(self._reason)

    def _time(self) -> BlockTiming:
        """Cycles per round. Raises _Failed."""
        values = self._values()
        same = _agreeing(values)
        if not values:
            return BlockTiming(0.0, 0.0, 1.0, DISTURBED_BLOCK, Untimed.DISTURBED.value)
        cycles, spread = statistics.median(same), same[-1] - same[0]
        if len(same) < 2:
            return BlockTiming(cycles, spread, 1.0, UNSTABLE, Untimed.NO_TWO_AGREE.value, 0, tuple(values))
        linearity = self._linearity(cycles)
        verdict, reason = CLEAN, ""
        if abs(linearity - 1) > LINEAR:
            verdict, reason = NONLINEAR, _nonlinear(linearity)
        return BlockTiming(cycles, spread, linearity, verdict, reason, 0, tuple(values))

    def _linearity(self, cycles: float) -> float:
        """How many times as long a round takes where there are fewer of them."""
        few, many = self._rounds
        half, nearest = (few, _whole((few + many) / 2)), inf
        for _ in range(_TRIES):
            slope = _slope(_samples(self._made.program, half), self._quiet)
            if slope is not None:
                nearest = min(nearest, slope / cycles, key=lambda part: abs(part - 1))
            if abs(nearest - 1) <= LINEAR:
                break
        return nearest if nearest < inf else 1.0


# --- compiling -------------------------------------------------------------------------------------


def _compiled(build: Build, folder: Path) -> Compiled:
    """The program and its loop. Raises _Failed, CyclescopeError."""
    made, program = folder / "loop.o", folder / "program"
    _compile(build, made)
    harness = str(shipped() / "harness" / "harness.c")
    _run([build.compiler, "-O2", "-w", harness, str(made), "-o", str(program)], "linked")
    block = read_block(program, choice=Choice(function=_FUNCTION))  # where it lies in its lines counts
    entry = next(f.address for f in read_program(program).functions if f.name == _FUNCTION)
    if not block.loop:
        raise _Failed("no loop is found in it")
    return Compiled(program, block, block.instructions[0].address - entry)


def object_file(build: Build, folder: Path) -> Path | None:
    """What a compiler makes of a file, in a folder; None where it makes nothing."""
    try:
        _compile(build, folder / "loop.o")
    except _Failed:
        return None
    return folder / "loop.o"


def _compile(build: Build, made: Path) -> None:
    """An object file. Raises _Failed."""
    options = (*build.options, "-w", "-I", str(shipped()))
    _run([build.compiler, *options, "-c", str(build.source), "-o", str(made)], "compiled")


def _run(command: Sequence[str], done: str = "run") -> str:
    """What a command prints. Raises _Failed."""
    try:
        found = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Failed(f"it cannot be {done}: {shlex.quote(command[0])} does not end or start") from error
    if found.returncode:
        said = next((line.strip() for line in found.stderr.splitlines() if "error" in line.lower()), "")
        raise _Failed(f"it cannot be {done}" + (f": {said.rpartition('error: ')[2][:100]}" if said else ""))
    return found.stdout


# --- iterations ------------------------------------------------------------------------------------


def _iterations(made: Compiled) -> float:
    """Iterations of the machine's loop per round. Raises _Failed where the time is not the loop's."""
    counts = [_count(made, rounds) for rounds in _COUNTED]
    rounds = _COUNTED[1] - _COUNTED[0]
    steps, hits = ((counts[1][n] - counts[0][n]) / rounds for n in range(2))
    if hits * rounds < 1:
        raise _Failed("another loop runs than the one that was found")
    share = hits * len(made.block) / steps
    if not _MOSTLY <= share <= 1 / _MOSTLY:
        raise _Failed("its time is not that of the loop alone")
    return hits


def _count(made: Compiled, rounds: int) -> tuple[int, int]:
    words = _run([str(made.program), "count", str(made.offset), str(rounds)], "counted").split()
    if len(words) != 2:
        raise _Failed("its steps cannot be counted")
    return int(words[0]), int(words[1])


def _per_iteration(timing: BlockTiming, iterations: float) -> BlockTiming:
    return msgspec.structs.replace(
        timing, cycles=timing.cycles / iterations, spread=timing.spread / iterations,
        passes=tuple(value / iterations for value in timing.passes),
    )  # fmt: skip


# --- timing ----------------------------------------------------------------------------------------


def _rounds(program: Path) -> tuple[int, int]:
    """Between how many rounds the slope is. Raises _Failed."""
    most = _run([str(program), "most"]).strip()
    if not most.isdigit() or int(most) <= _COUNTED[1] - _ROUNDS:
        raise _Failed(f"it says in no way that is known how many rounds it can do: {most[:20]!r}")
    return max(_whole(int(most) / _FEW), _ROUNDS), int(most)


def _whole(rounds: float) -> int:
    return round(rounds / _ROUNDS) * _ROUNDS


class _Quiet:
    """What an undisturbed core takes for a NOP, 0 if unknown, and for a trip of a loop of nothing.

    Trips are whole cycles; of all that were seen the least count, for neighbours add to them.
    """

    def __init__(self, nop: float) -> None:
        self.nop, self.trip = nop, inf

    def learn(self, found: _Samples) -> None:
        """Trips of another run."""
        ticks = found.ticks
        if ticks > 0:
            self.trip = min(self.trip, max(floor(_least(found.trips(ticks)) + QUIET_LOOP), 1))

    def moments(self, found: _Samples, ticks: float) -> list[bool]:
        """Which samples were followed by a quiet moment."""
        nops = found.nops(ticks)
        limits = [(self.nop or _least(nops)) * (1 + QUIET_LOOP), self.trip * (1 + QUIET_LOOP)]
        return [
            nop <= limits[0] and trip <= limits[1] for nop, trip in zip(nops, found.trips(ticks), strict=True)
        ]


def _agreeing(values: Sequence[float]) -> list[float]:
    """The lowest of sorted values that others agree with, and those: a neighbour only adds time."""
    some = [[v for v in values if low <= v <= low * (1 + _AGREE)] for low in values]
    return next((same for same in some if len(same) > 1), some[0] if some else [])


def _nonlinear(linearity: float) -> str:
    return (Untimed.LONGER_EACH if linearity < 1 else Untimed.SHORTER_EACH).of().text


def _least(values: Sequence[float]) -> float:
    return sorted(values)[min(_HICCUPS, len(values) - 1)]


class _Samples(msgspec.Struct, frozen=True):
    """What the harness printed: runs and instructions per sample, ticks of each part; rounds between two."""

    repeats: int
    lengths: tuple[int, int, int]  # additions, NOPs, trips
    rows: tuple[tuple[int, ...], ...]
    rounds: int

    @property
    def ticks(self) -> float:
        """Ticks per core cycle."""
        return (_low(r[3] for r in self.rows) - _low(r[2] for r in self.rows)) / self.lengths[0]

    def nops(self, ticks: float) -> list[float]:
        """Cycles of a NOP behind every sample."""
        return [(row[5] - row[4]) / self.lengths[1] / ticks for row in self.rows]

    def trips(self, ticks: float) -> list[float]:
        """Cycles of a trip of the loop of nothing behind every sample."""
        return [(row[7] - row[6]) / self.lengths[2] / ticks for row in self.rows]


def _samples(program: Path, rounds: tuple[int, int]) -> _Samples:
    command = [str(program), "time", *map(str, (*rounds, SAMPLES, NANOSECONDS))]
    head, *rows = _run(command).splitlines()
    repeats, additions, nops, trips = map(int, head.split())
    samples = tuple(tuple(map(int, row.split())) for row in rows)
    return _Samples(repeats, (additions, nops, trips), samples, rounds[1] - rounds[0])


def _slope(found: _Samples, known: _Quiet) -> float | None:
    """Cycles per round; None where there were not enough quiet moments."""
    ticks = found.ticks
    if ticks <= 0:
        return None
    quiet = known.moments(found, ticks)
    rows = [row for n, row in enumerate(found.rows) if quiet[n] and quiet[n - 1]]
    if len(rows) < FEWEST:
        return None
    difference = _low(row[1] for row in rows) - _low(row[0] for row in rows)
    if difference <= 0:  # a neighbour slowed the fewer rounds down
        return None
    return difference / ticks / found.repeats / found.rounds


def _low(values: Iterator[int]) -> float:
    """The mean of the lower third without the very lowest: neighbours only add time, clocks hiccup."""
    ordered = sorted(values)
    return statistics.fmean(ordered[len(ordered) // 16 : max(len(ordered) // 3, 1)])
