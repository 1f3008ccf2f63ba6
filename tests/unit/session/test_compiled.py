"""Loops of C: those that ship, what compilers make of them, and times out of samples."""

from __future__ import annotations

import re
import shutil

import pytest

from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.measure.blocks import FAILED
from cyclescope.session import compiled
from cyclescope.session.compiled import (
    Build,
    _compiled,
    _Failed,
    _iterations,
    _Samples,
    _slope,
    builds,
    shipped,
    timed_loops,
)

CC = shutil.which("cc")
STEP, FASTEST, SAMPLE = 41, 8, 80_000  # cycles of a slow clock's step; NOPs a cycle; cycles of 20 us at 4 GHz
needs_compiler = pytest.mark.skipif(CC is None, reason="needs a C compiler")
TICKS, NOP = 0.75, 0.25  # per cycle; cycles


def source(tmp_path, body, name="loop"):
    path = tmp_path / f"{name}.c"
    path.write_text(f'#include "loops.h"\n{body}\n')
    return Build(path, str(CC), ("-O2", "-fno-tree-vectorize"))


SUM = (
    "long a[MOST];\nlong run(long n) { long s = 0;\n"
    "for (long i = 0; i < n; i++) s = (s ^ a[i]) * 3; return s; }"
)
TWICE = (
    "static volatile long a[MOST];\n"
    "long run(long n) { for (long i = 0; i < n; i += 2) { a[i] = i; a[i + 1] = n; } return a[1]; }"
)
NO_LOOP = "long run(long n) { return n; }"
OTHER = (  # the loop that weighs more does not run
    "static volatile long a[MOST];\nlong run(long n) { for (long i = 0; i < n; i++) a[i] = 1;\n"
    "if (a[0] == 2) for (long i = 0; i < n; i++)\n"
    "for (long j = 0; j < n; j++) a[j] += a[i] * a[j]; return a[1]; }"
)


def test_there_are_forty_loops_at_least():
    files = list(shipped().glob("*.c"))
    assert len(files) >= 40
    assert all("long run(long n)" in file.read_text() for file in files)


@needs_compiler
def test_every_shipped_loop_compiles_and_has_a_loop(tmp_path):
    without = []
    for file in sorted(shipped().glob("*.c")):
        folder = tmp_path / file.stem
        folder.mkdir()
        made = _compiled(Build(file, str(CC), ("-O2",)), folder)
        if not made.block.loop or made.block.unknown:
            without.append(file.name)
    assert not without


@needs_compiler
@pytest.mark.parametrize(("body", "iterations"), [(SUM, 1.0), (TWICE, 0.5)])
def test_iterations_are_counted_step_by_step(tmp_path, body, iterations):
    made = _compiled(source(tmp_path, body), tmp_path)
    assert _iterations(made) == pytest.approx(iterations, abs=0.02)


@needs_compiler
def test_a_loop_that_does_not_run_is_not_judged(tmp_path):
    with pytest.raises(_Failed, match=r"another loop runs|not that of the loop alone"):
        _iterations(_compiled(source(tmp_path, OTHER), tmp_path))


@needs_compiler
@pytest.mark.parametrize(
    ("body", "words"),
    [(NO_LOOP, "no loop"), ("nonsense", "cannot be compiled"), ("long walk(long);", "linked")],
)
def test_what_has_no_loop_has_its_reason(tmp_path, body, words):
    ((case, timing),) = timed_loops([source(tmp_path, body)], 0.0)
    assert timing.verdict == FAILED
    assert words in timing.reason
    assert "\n" not in timing.reason
    assert case.origin.where == "loop, cc -O2 -fno-tree-vectorize"


def test_folders_without_loops(tmp_path):
    with pytest.raises(UsageError, match="has no C files"):
        builds(tmp_path)
    with pytest.raises(UsageError, match="is no folder"):
        builds(tmp_path / "absent")


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BackendUnavailable, match="no C compiler"):
        builds()


# --- samples ---------------------------------------------------------------------------------------


def samples(cycles_per_round, count=40, slow=(), factor=2.0):
    """Rows as the harness prints them; those of `slow` numbers beside a neighbour."""
    repeats, chain, nops = 50, 4000, 4000
    rows = []
    for n in range(count):
        load = factor if n in slow else 1.0
        few, many = (repeats * (100 + rounds * cycles_per_round) * load for rounds in compiled.ROUNDS)
        times = (few, many, 1000, 1000 + chain, 500 * load, (500 + nops * NOP) * load)
        rows.append(tuple(round(TICKS * cycles) for cycles in times))
    return _Samples(repeats, chain, nops, tuple(rows))


@pytest.mark.parametrize("cycles", [0.5, 4.0])
def test_the_slope_is_free_of_what_is_around_the_loop(cycles):
    assert _slope(samples(cycles), NOP) == pytest.approx(cycles, rel=0.003)


def test_samples_beside_neighbours_do_not_count():
    assert _slope(samples(4.0, slow=range(0, 40, 5)), NOP) == pytest.approx(4.0, rel=0.003)


def test_without_quiet_moments_there_is_no_value():
    assert _slope(samples(4.0, slow=range(40)), NOP) is None


@pytest.mark.parametrize(("first", "enough"), [(6, False), (7, True)])
def test_six_quiet_moments_are_enough(first, enough):
    """A sample is quiet if the one before it is as well."""
    found = _slope(samples(4.0, slow=range(first, 40)), NOP)
    assert (found is not None) is enough


@pytest.mark.parametrize("cycles", [-1e-2, 0.0])
def test_rounds_that_take_no_time_were_disturbed(cycles):
    assert _slope(samples(cycles), NOP) is None


@pytest.mark.parametrize(("factor", "quiet"), [(1.025, True), (1.036, False)])
def test_how_much_slower_is_quiet(factor, quiet):
    found = _slope(samples(4.0, slow=range(40), factor=factor), NOP)
    assert (found is not None) is quiet


def test_nops_beside_a_loop_are_long_for_the_clock_and_short_beside_the_loop():
    text = (shipped() / "harness" / "harness.c").read_text()
    each, few, many = (
        int(re.search(rf"#define {n} (\d+)", text)[1]) for n in ("NOPS", "NOPS_FEW", "NOPS_MANY")
    )
    cycles = each * (many - few) / FASTEST
    assert cycles * compiled.QUIET / 2 > STEP
    assert each * many / FASTEST < SAMPLE / 10
    assert each * few / FASTEST > SAMPLE / 200, "what brings the code is not timed"
