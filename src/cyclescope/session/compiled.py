"""Loops of compiled programs: C files, one loop each, compiled by what is there, run and found in the object.

A file has `long run(long n)`, which does `n` rounds of its innermost loop (`loops/loops.h`). Cycles per round
are the slope between two numbers of rounds. How many rounds one iteration of the machine's loop is, compilers
decide; a run step by step counts that, and whether the loop that was found is where the time goes.
"""

from __future__ import annotations

import shlex
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path

import msgspec

from cyclescope.analyze.choose.source import Choice, read_block, read_program
from cyclescope.analyze.decode.block import Block
from cyclescope.errors import BackendUnavailable, CyclescopeError, UsageError
from cyclescope.host.uname import host_isa
from cyclescope.measure.blocks import CLEAN, DISTURBED, LINEAR, NONLINEAR, UNSTABLE, BlockTiming, failed
from cyclescope.remarks.blocks import Untimed
from cyclescope.session.blocks import KERNELS, BlockCase, ProgramBlock

_FUNCTION = "run"
ROUNDS = (512, 1536)  # between which the slope is
_HALF = (512, 1024)  # the same of fewer rounds: where these take another time, it is none of the loop alone
_COUNTED = (128, 384)  # the same for the run step by step
SAMPLES, NANOSECONDS = 60, 20_000.0
_PASSES, AGREE = 3, 0.02  # runs of the program; what two of them differ by at most
_MOST_PASSES = 8  # runs where no two agree
_TRIES = 2  # runs with fewer rounds: the nearer counts, as noise makes slopes differ
FEWEST = 6  # samples of a run between quiet moments
QUIET = 0.03  # relative: what NOPs take more than undisturbed; ends of loops and noise take one
_MOSTLY = 0.95  # of the steps have to be those of the loop
_PATIENCE = 60.0  # seconds for the compiler, and for a run: each takes one, on a quiet machine
COMPILERS = ("gcc", "clang", "cc")
LEVELS = (("-O2",), ("-O3", "-march=native"))

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
    return [Build(file, name, level) for file in files for name in found for level in LEVELS]


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
    found = []
    for done, build in enumerate(chosen):
        found.append(_timed(build, nop))
        report(done + 1, len(chosen))
    return found


def _timed(build: Build, nop: float) -> tuple[BlockCase, BlockTiming]:
    block = Block((), host_isa(), name=build.name)
    with tempfile.TemporaryDirectory(prefix="cyclescope-") as folder:
        try:
            made = _compiled(build, Path(folder))
            block = made.block
            timing = _per_iteration(_time(made.program, nop), _iterations(made))
        except _Failed as why:
            timing = failed(str(why))
        except CyclescopeError as error:
            timing = failed(error.message)
    code = b"".join(one.code for one in block)
    return BlockCase(ProgramBlock(code, build.name, block.isa), KERNELS, code, block), timing


# --- compiling -------------------------------------------------------------------------------------


def _compiled(build: Build, folder: Path) -> Compiled:
    """The program and its loop. Raises _Failed, CyclescopeError."""
    made, program = folder / "loop.o", folder / "program"
    _compile(build, made)
    harness = str(shipped() / "harness" / "harness.c")
    _run([build.compiler, "-O2", "-w", harness, str(made), "-o", str(program)], "linked")
    block = read_block(made, choice=Choice(function=_FUNCTION))
    entry = next(f.address for f in read_program(made).functions if f.name == _FUNCTION)
    if not block.loop:
        raise _Failed("no loop is found in it")
    return Compiled(program, block, block.instructions[0].address - entry)


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


def _time(program: Path, nop: float) -> BlockTiming:
    """Cycles per round, from several runs of the program, as many as it takes for two to agree."""
    values: list[float] = []
    same: list[float] = []
    for run in range(_MOST_PASSES):
        if run >= _PASSES and len(same) > 1:
            break
        value = _slope(_samples(program), nop)
        values = sorted([*values, value] if value is not None else values)
        same = _agreeing(values)
    if not values:
        return BlockTiming(0.0, 0.0, 1.0, DISTURBED, Untimed.DISTURBED.value)
    cycles, spread = statistics.median(same), same[-1] - same[0]
    if len(same) < 2:
        return BlockTiming(cycles, spread, 1.0, UNSTABLE, Untimed.NO_TWO_AGREE.value, 0, tuple(values))
    linearity = _linearity(program, nop, cycles)
    verdict, reason = CLEAN, ""
    if abs(linearity - 1) > LINEAR:
        verdict, reason = NONLINEAR, _nonlinear(linearity)
    return BlockTiming(cycles, spread, linearity, verdict, reason, 0, tuple(values))


def _agreeing(values: Sequence[float]) -> list[float]:
    """The lowest of sorted values that others agree with, and those: a neighbour only adds time."""
    some = [[v for v in values if low <= v <= low * (1 + AGREE)] for low in values]
    return next((same for same in some if len(same) > 1), some[0] if some else [])


def _linearity(program: Path, nop: float, cycles: float) -> float:
    """How many times as long a round takes where there are fewer of them."""
    slopes = (_slope(_samples(program, _HALF), nop) for _ in range(_TRIES))
    return min((s / cycles for s in slopes if s is not None), key=lambda part: abs(part - 1), default=1.0)


def _nonlinear(linearity: float) -> str:
    return (Untimed.LONGER_EACH if linearity < 1 else Untimed.SHORTER_EACH).of().text


class _Samples(msgspec.Struct, frozen=True):
    """What the harness printed: runs and instructions per sample, ticks of each part; rounds between two."""

    repeats: int
    additions: int
    nops: int
    rows: tuple[tuple[int, ...], ...]
    rounds: int = ROUNDS[1] - ROUNDS[0]


def _samples(program: Path, rounds: tuple[int, int] = ROUNDS) -> _Samples:
    command = [str(program), "time", *map(str, (*rounds, SAMPLES, NANOSECONDS))]
    head, *rows = _run(command).splitlines()
    repeats, additions, nops = map(int, head.split())
    samples = tuple(tuple(map(int, row.split())) for row in rows)
    return _Samples(repeats, additions, nops, samples, rounds[1] - rounds[0])


def _slope(found: _Samples, nop: float) -> float | None:
    """Cycles per round; None where there were not enough quiet moments."""
    ticks = (_low(r[3] for r in found.rows) - _low(r[2] for r in found.rows)) / found.additions
    if ticks <= 0:
        return None
    nops = [(row[5] - row[4]) / found.nops / ticks for row in found.rows]
    limit = (nop or min(nops)) * (1 + QUIET)
    quiet = [value <= limit for value in nops]
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
    some = ordered[len(ordered) // 16 : max(len(ordered) // 3, 1)]
    return statistics.fmean(some)


def basic_blocks(chosen: Sequence[Build]) -> list[ProgramBlock]:
    """The basic blocks that compilers make of loops, each once; without branches."""
    found: dict[bytes, ProgramBlock] = {}
    with tempfile.TemporaryDirectory(prefix="cyclescope-") as folder:
        for build in chosen:
            made = Path(folder) / "loop.o"
            try:
                _compile(build, made)
            except _Failed:
                continue
            for code in _straight(made):
                found.setdefault(code, ProgramBlock(code, build.name, host_isa()))
    return list(found.values())


def _straight(path: Path) -> Iterator[bytes]:
    """Machine code between places where the flow divides or joins, of two instructions at least."""
    from cyclescope.analyze.decode.decoder import BRANCH, JUMP, NEXT, decoder
    from cyclescope.analyze.read.program import Code

    program = read_program(path)
    code = Code(program, decoder(program.isa))
    leaders = {step.target for step in code.steps if step.flow in (BRANCH, JUMP)}
    leaders |= {function.address for function in program.functions}
    current: list[bytes] = []
    for step in code.steps:
        ends = step.address in leaders or step.flow != NEXT
        if ends:
            if len(current) > 1:
                yield b"".join(current)
            current = []
        if step.flow == NEXT:
            current.append(program.code(step.address, step.length))
