"""What is asked of programs with a loop, and what is made of their answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.measure.blocks import CLEAN, NONLINEAR, UNSTABLE
from cyclescope.session import compiled
from cyclescope.session.compiled import Build, shipped, timed_loops

CC = shutil.which("cc")
needs_compiler = pytest.mark.skipif(CC is None, reason="needs a C compiler")
SOURCE = """#include "loops.h"
long a[MOST];
long run(long n) { long s = 0; for (long i = 0; i < n; i++) s = (s ^ a[i]) * 3; return s; }
"""
PER_INSTANCE, REPEATS, LONG = 0.25, 50, 4000  # cycles of a NOP; runs; instructions
MOST = 1536  # rounds that the loop can do


class Program:
    """What programs answer: times of so many cycles per round, and such a share of steps in the loop."""

    def __init__(self, code, passes=(4.0,) * 9, share=1.0):
        self.passes, self.asked = list(passes), []
        self.code, self.length = code
        self.steps = self.length / share  # per round

    def __call__(self, command, **_):
        if command[1] == "most":
            return subprocess.CompletedProcess(command, 0, f"{MOST}\n", "")
        if command[1] not in ("time", "count"):
            Path(command[-1]).write_bytes(self.code)
            return subprocess.CompletedProcess(command, 0, "", "")
        numbers = [float(word) for word in command[2:]]
        self.asked.append((command[1], numbers))
        said = self._times(*numbers) if command[1] == "time" else self._steps(numbers[1])
        return subprocess.CompletedProcess(command, 0, said, "")

    def _times(self, few, many, count, _):
        cycles = self.passes.pop(0)
        runs = [round(REPEATS * (100 + rounds * cycles)) for rounds in (few, many)]
        row = (*runs, 1000, 1000 + LONG, 500, 500 + round(LONG * PER_INSTANCE), 700, 700 + LONG)
        head = (REPEATS, LONG, LONG, LONG)
        return "\n".join(" ".join(map(str, some)) for some in (head, *[row] * int(count)))

    def _steps(self, rounds):
        return f"{round(rounds * self.steps)} {round(rounds)}"

    def numbers(self, what):
        """What was asked for."""
        return [numbers for one, numbers in self.asked if one == what]


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """The loop as a compiler makes it, and how many instructions it has."""
    folder = tmp_path_factory.mktemp("loop")
    source, made = folder / "loop.c", folder / "loop.o"
    source.write_text(SOURCE)
    options = ("-O2", "-fno-tree-vectorize", "-I", str(shipped()))
    subprocess.run([str(CC), *options, "-c", str(source), "-o", str(made)], check=True)
    return made.read_bytes(), len(read_block(made, choice=Choice(function="run")))


def time_of(program, monkeypatch):
    """Cycles per iteration, of which a round is one."""
    monkeypatch.setattr(compiled.subprocess, "run", program)
    ((_, timing),) = timed_loops([Build(Path("loop.c"), "cc", ())], PER_INSTANCE)
    return timing


@needs_compiler
@pytest.mark.parametrize(
    ("passes", "verdict", "cycles"),
    [
        ((4.0, 4.06, 5.0, 5.0, 5.0, 4.0), CLEAN, 4.03),
        (tuple(4.0 * 1.03**n for n in range(24)), UNSTABLE, 4.0),  # all differ, and no more are asked
        ((*(4.0 * 1.03**n for n in range(23)), 4.0, 4.0), CLEAN, 4.0),
        ((4.0, *(7.0 + n / 50 for n in range(23)), 7.0), CLEAN, 7.07),  # of those that agree the lowest
        ((4.12, 4.13, 5.0, 5.0, 5.0, 4.12), CLEAN, 4.125),
        ((4.12, 4.12, 4.13, 4.13, 4.0, 4.01, 4.0), CLEAN, 4.005),  # four disturbed alike, and the fifth
        ((5.0, 4.0, 5.0, 5.0, 5.0, 5.0, 4.01, 4.0), CLEAN, 4.005),
        ((4.0, 4.01, 4.02, 4.0, 4.0, 4.0), CLEAN, 4.0),  # five are enough, and one of fewer rounds
    ],
)
def test_two_runs_agree_within_a_fiftieth(code, monkeypatch, passes, verdict, cycles):
    timing = time_of(Program(code, passes), monkeypatch)
    assert (timing.verdict, timing.cycles) == (verdict, pytest.approx(cycles, rel=1e-3))


@needs_compiler
@pytest.mark.parametrize(
    ("halves", "verdict", "reason"),
    [
        ((3.81,), CLEAN, ""), ((3.0, 4.19), CLEAN, ""), ((4.19,), CLEAN, ""),
        ((3.79, *5 * (3.0,)), NONLINEAR, "more rounds take longer each: misses of caches"),
        ((4.21, *5 * (9.0,)), NONLINEAR, "more rounds take less time each: they are too few"),
        ((*5 * (9.0,), 4.0), CLEAN, ""),
        ((*6 * (9.0,), 4.0), NONLINEAR, "more rounds take less time each"),  # six tries
    ],
)  # fmt: skip
def test_loops_whose_rounds_take_another_time_where_there_are_fewer_are_told_apart(
    code, monkeypatch, halves, verdict, reason
):
    """Misses of the nearest cache begin with more rounds; what a core takes in at once counts with fewer."""
    timing = time_of(Program(code, (*5 * (4.0,), *halves)), monkeypatch)
    assert timing.verdict == verdict and timing.reason.startswith(reason)
    assert timing.cycles == pytest.approx(4.0, rel=1e-3)


@needs_compiler
@pytest.mark.parametrize(("share", "judged"), [(0.96, True), (0.94, False), (1.04, True), (1.07, False)])
def test_nearly_all_steps_are_those_of_the_loop(code, monkeypatch, share, judged):
    assert (time_of(Program(code, share=share), monkeypatch).verdict == CLEAN) is judged


@needs_compiler
def test_what_is_asked_of_a_program(code, monkeypatch):
    """Rounds that every loop can do, a third of them to be taken off, and a few milliseconds for a run."""
    program = Program(code)
    time_of(program, monkeypatch)
    few, many, count, nanoseconds = program.numbers("time")[0]
    counted = [rounds for _, rounds in program.numbers("count")]
    assert 3 * few == many == MOST
    assert [numbers[:2] for numbers in program.numbers("time")[5:]] == [[few, (few + many) / 2]]
    assert 3 * counted[0] == counted[1] < many
    assert all(rounds % 128 == 0 for rounds in (few, many, *counted))
    assert 1e6 < count * nanoseconds < 2e6


@pytest.mark.parametrize(("seconds", "ends"), [(45, True), (90, False)])
def test_a_compiler_has_a_minute(tmp_path, monkeypatch, seconds, ends):
    def run(command, timeout, **_):
        if timeout < seconds:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 1, "", "error: it ended")

    monkeypatch.setattr(compiled.subprocess, "run", run)
    ((_, timing),) = timed_loops([Build(tmp_path / "loop.c", "cc", ())], 0.0)
    assert ("it ended" in timing.reason) is ends
