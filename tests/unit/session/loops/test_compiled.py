"""Loops of C: those that ship, what compilers make of them, and times out of samples."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import msgspec
import pytest

from cyclescope.analyze.choose.source import read_program
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.measure.blocks import FAILED
from cyclescope.session import compiled
from cyclescope.session.compiled import (
    Build,
    _compiled,
    _Failed,
    _iterations,
    _least,
    _Quiet,
    _rounds,
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
ROUNDS = (512, 1536)


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
SLOW_AT_FIRST = (
    "#include <time.h>\nlong a[MOST], before;\nlong run(long n) {\n"
    "struct timespec some = {0, 5000000}; if (!before++) nanosleep(&some, 0);\n"
    "long s = 0; for (long i = 0; i < n; i++) s = (s ^ a[i]) * 3; return s; }"
)
OWN_PAGES = (  # 1: the kernel does not say; 2: a page that is another's as well, or none
    "#include <fcntl.h>\n#include <stdint.h>\n#include <unistd.h>\nchar a[9 * 4096]; static long b;\n"
    'long run(long n) { int map = open("/proc/self/pagemap", O_RDONLY);\n'
    "long size = sysconf(_SC_PAGESIZE); char *places[] = {a, a + 3 * size, a + sizeof a - 1, (char *)&b};\n"
    "for (int i = 0; i < 4; i++) { uint64_t entry = 0;\n"
    "if (pread(map, &entry, 8, (uintptr_t)places[i] / size * 8) != 8) _exit(1);\n"
    "if (!(entry >> 63) || !(entry >> 56 & 1)) _exit(2); } _exit(0);\n"
    "for (long i = 0; i < n; i++) b += a[i]; return b; }"
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


@pytest.mark.slow
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


@needs_compiler
def test_what_shipped_loops_touch_is_in_the_smallest_caches(tmp_path):
    """Half of 32 KB and tables: a neighbour on the same core has the other half."""
    held = {}
    for file in sorted(shipped().glob("*.c")):
        made = tmp_path / f"{file.stem}.o"
        subprocess.run(
            [str(CC), "-O2", "-w", "-I", str(shipped()), "-c", str(file), "-o", str(made)], check=True
        )
        told = subprocess.run(["size", str(made)], check=True, capture_output=True, text=True).stdout.split()
        held[file.name] = int(told[7]) + int(told[8])  # data and bss, in the second line
    assert max(held.values()) <= 20 * 1024
    assert all(size > 10 * 1024 for size in held.values() if size > 256)


@needs_compiler
@pytest.mark.parametrize(
    ("each", "most"), [("", 1024), ("#define ROUND 1\n", 16384), ("#define ROUND 40\n", 384)]
)
def test_how_many_rounds_a_loop_can_do_is_in_it(tmp_path, each, most):
    build = source(tmp_path, SUM)
    build.source.write_text(each + build.source.read_text())
    few, many = _rounds(_compiled(build, tmp_path).program)
    assert (many, few % 128) == (most, 0)
    assert 0.25 <= few / many <= 0.4


@needs_compiler
def test_a_loop_lies_where_the_program_has_it(tmp_path):
    """Objects begin at 0: what lines its code is in, linking says."""
    made = _compiled(source(tmp_path, SUM), tmp_path)
    (entry,) = (f.address for f in read_program(made.program).functions if f.name == "run")
    assert entry and made.block.instructions[0].address == entry + made.offset


@needs_compiler
def test_runs_are_as_long_as_the_quickest_says_and_begin_warm(tmp_path):
    """An interruption is no round, and what was driven out between two runs is back before the next."""
    build = source(tmp_path, SLOW_AT_FIRST)
    program = str(_compiled(build, tmp_path).program)
    said = subprocess.run([program, "time", "128", "384", "1", "100000"], check=True, capture_output=True)
    repeats = int(said.stdout.split()[0])
    assert repeats >= 8, "the first call alone takes longer than all should"


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for its pages")
def test_what_nobody_wrote_has_pages_of_its_own(tmp_path):
    """One page of zeros at many addresses is slow on cores that guess a cache's way from the address."""
    program = str(_compiled(source(tmp_path, OWN_PAGES), tmp_path).program)
    code = subprocess.run([program, "time", "128", "384", "1", "1000"], check=False, timeout=60).returncode
    if code == 1:
        pytest.skip("the kernel does not say which pages are its own")
    assert code == 0


@needs_compiler
def test_runs_of_which_no_two_agree_are_24(tmp_path, monkeypatch):
    """And five of which all do: more would not tell more."""
    build, asked = source(tmp_path, SUM), []

    def run(slower):
        asked.append(slower)
        return samples(3.0 * slower ** len(asked))

    for slower, runs in ((1.1, 24), (1.0, 5)):
        asked.clear()
        monkeypatch.setattr(compiled, "_samples", lambda *_, by=slower: run(by))
        monkeypatch.setattr(compiled._Tried, "timed", lambda tried: tried._values())
        (values,) = timed_loops([build], NOP)
        assert (len(asked), len(values)) == (runs, runs)


# --- samples ---------------------------------------------------------------------------------------


def samples(cycles_per_round, count=40, slow=(), factor=2.0, of="all"):
    """Rows as the harness prints them; beside those of `slow` numbers a neighbour slows what `of` says."""
    repeats, chain, nops, trips = 50, 4000, 4000, 8000
    rows = []
    for n in range(count):
        load = factor if n in slow and of != "trips" else 1.0
        more = factor if n in slow and of != "nops" else 1.0
        few, many = (repeats * (100 + rounds * cycles_per_round) * load for rounds in ROUNDS)
        times = (
            few,
            many,
            1000,
            1000 + chain,
            500 * load,
            (500 + nops * NOP) * load,
            900,
            900 + trips * more,
        )
        rows.append(tuple(round(TICKS * cycles) for cycles in times))
    return _Samples(repeats, (chain, nops, trips), tuple(rows), ROUNDS[1] - ROUNDS[0])


def slope(found, nop=NOP, trip=1.0):
    quiet = _Quiet(nop)
    quiet.trip = trip
    return _slope(found, quiet)


@pytest.mark.parametrize("cycles", [0.5, 4.0])
def test_the_slope_is_free_of_what_is_around_the_loop(cycles):
    assert slope(samples(cycles)) == pytest.approx(cycles, rel=0.003)


def test_samples_beside_neighbours_do_not_count():
    assert slope(samples(4.0, slow=range(0, 40, 5))) == pytest.approx(4.0, rel=0.003)


def test_without_quiet_moments_there_is_no_value():
    assert slope(samples(4.0, slow=range(40))) is None


@pytest.mark.parametrize(("first", "enough"), [(6, False), (7, True)])
def test_six_quiet_moments_are_enough(first, enough):
    """A sample is quiet if the one before it is as well."""
    found = slope(samples(4.0, slow=range(first, 40)))
    assert (found is not None) is enough


@pytest.mark.parametrize("cycles", [-1e-2, 0.0])
def test_rounds_that_take_no_time_were_disturbed(cycles):
    assert slope(samples(cycles)) is None


@pytest.mark.parametrize(("factor", "quiet"), [(1.025, True), (1.036, False)])
def test_how_much_slower_is_quiet(factor, quiet):
    found = slope(samples(4.0, slow=range(40), factor=factor))
    assert (found is not None) is quiet


@pytest.mark.parametrize(("factor", "quiet"), [(1.025, True), (1.036, False)])
def test_a_neighbour_who_takes_branches_alone_is_seen(factor, quiet):
    """A NOP takes no more beside it: on a Zen 3 it gets up to each second of branches taken every cycle."""
    found = slope(samples(4.0, slow=range(40), factor=factor, of="trips"))
    assert (found is not None) is quiet


def test_the_least_trips_that_any_program_saw_count():
    quiet = _Quiet(NOP)
    slowed = samples(4.0, slow=range(40), factor=1.6, of="trips")
    quiet.learn(samples(4.0, slow=range(40), factor=2.0, of="trips"))
    assert quiet.trip == 2
    quiet.learn(slowed)
    assert quiet.trip == 1 and _slope(slowed, quiet) is None


def test_two_hiccups_of_the_clock_are_no_nops_where_none_is_known():
    """Two samples of a run are too short, two more are undisturbed, and beside all others is a neighbour."""
    rows = list(samples(4.0, slow=range(4, 40), factor=1.2, of="nops").rows)
    rows[:2] = [(*row[:5], row[4] - 5, *row[6:]) for row in rows[:2]]
    found = msgspec.structs.replace(samples(4.0), rows=tuple(rows))
    assert _least(found.nops(TICKS)) == pytest.approx(NOP, rel=0.01)
    assert slope(found, nop=0.0) is None


def test_nops_beside_a_loop_are_long_for_the_clock_and_short_beside_the_loop():
    text = (shipped() / "harness" / "harness.c").read_text()
    each, few, many = (
        int(re.search(rf"#define {n} (\d+)", text)[1]) for n in ("NOPS", "NOPS_FEW", "NOPS_MANY")
    )
    cycles = each * (many - few) / FASTEST
    assert cycles * compiled.QUIET_LOOP / 2 > STEP
    assert each * many / FASTEST < SAMPLE / 10
    assert each * few / FASTEST > SAMPLE / 200, "what brings the code is not timed"
    trips = [int(re.search(rf"#define {n} (\d+)", text)[1]) for n in ("TRIPS_FEW", "TRIPS_MANY")]
    assert (trips[1] - trips[0]) * compiled.QUIET_LOOP / 2 > STEP
    assert trips[1] < SAMPLE / 8
