"""How the runner opens and reads performance counters, on a kernel that a C file plays."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[3] / "src/cyclescope/native"
COMPILER = shutil.which("cc") or shutil.which("gcc")
PLAYED = ("syscall", "mmap", "munmap", "close", "ioctl")
NOT_RDPMC = errno.EOPNOTSUPP
LOST = 98

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("counters") / "fake_kernel"
    sources = [Path(__file__).with_name("fake_kernel.c"), NATIVE / "counters.c"]
    wrapped = [f"-Wl,--wrap={name}" for name in PLAYED]
    command = [str(COMPILER), "-O1", "-I", str(NATIVE), *map(str, sources), *wrapped, "-o", str(path)]
    subprocess.run(command, check=True)
    return path


def opened(program, opens, fits, readable, wanted):
    """(events open, error, events beside the cycles, whether the calibration was kept, closed), clock"""
    done = subprocess.run(
        [program, *map(str, (opens, fits, readable, wanted))], check=True, capture_output=True, text=True
    )
    first, clock = done.stdout.splitlines()
    count, error, beside, calibration, closed = first.split()
    return (int(count), int(error), int(beside), calibration == "7", int(closed)), int(clock)


def read(program, raw, offset, width, lost=0):
    arguments = [program, "1", "1", "1", "1", str(raw), str(offset), str(width), str(lost)]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True)
    return done.returncode, [int(line) for line in done.stdout.splitlines()[1:]]


def test_no_counters_asked_for(program):
    assert opened(program, 8, 8, 1, 0) == ((0, 0, 0, True, 0), 42)


def test_all_that_fit_are_open(program):
    found, clock = opened(program, 8, 8, 1, 3)
    assert found == (3, 0, 2, False, 0)  # another clock than the one that was calibrated
    assert clock != 42


def test_refused_altogether_falls_back_to_the_time_stamp_counter(program):
    assert opened(program, 0, 8, 1, 3) == ((0, errno.ENOENT, 0, True, 0), 42)


def test_an_unknown_event_ends_the_list(program):
    found, _ = opened(program, 2, 8, 1, 5)
    assert found == (2, errno.ENOENT, 1, False, 0)


def test_counters_that_user_space_may_not_read_are_closed(program):
    assert opened(program, 8, 8, 0, 3) == ((0, NOT_RDPMC, 0, True, 1), 42)


def test_an_event_too_many_is_closed_and_the_others_count_again(program):
    found, clock = opened(program, 8, 2, 1, 5)
    assert found == (2, NOT_RDPMC, 1, False, 1)
    assert clock != 42


@pytest.mark.parametrize(
    ("raw", "offset", "width", "count"),
    [
        (1000, 0, 48, 1000),
        (1000, 5_000_000_000_000, 48, 5_000_000_001_000),
        (0x8000_0000_0010, 1 << 47, 48, 0x10),  # perf starts a counter at -2^47
        (0xFFFF_FFFF_FFFF, 100, 48, 99),
        (0xFFFF_FFFF, 100, 32, 99),
        (1 << 40, 1, 64, (1 << 40) + 1),
    ],
)
def test_counts_are_signed_and_as_wide_as_the_counter(program, raw, offset, width, count):
    assert read(program, raw, offset, width) == (0, [count])


def test_a_counter_that_is_taken_away_ends_the_worker(program):
    assert read(program, 1000, 0, 48, lost=1) == (LOST, [])
