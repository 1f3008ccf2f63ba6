"""Which CPU a runner begins on, and what it takes an undisturbed core for, where neighbours disturb some."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from cyclescope.backend.native import NativeBackend
from cyclescope.host.uname import host_isa
from tests.support.code.emulated import NATIVE
from tests.unit.native.conftest import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
WRAPPED = ("calibrate", "cpu_pin", "cpu_next")
LOOKS = 8  # as in supervisor.c


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """A runner that is told what its CPUs look like."""
    to = tmp_path_factory.mktemp("cpus") / "runner"
    sources = [
        *NATIVE.glob("*.c"),
        *(NATIVE / host_isa().replace("-", "_")).glob("*.c"),
        Path(__file__).with_name("some_cpus.c"),
    ]
    wrapped = [f"-Wl,--wrap={name}" for name in WRAPPED]
    command = [COMPILER, "-O1", "-fno-stack-protector", f"-I{NATIVE}", *sources, *wrapped, "-lm", "-o", to]
    subprocess.run(list(map(str, command)), check=True)
    return to


@pytest.fixture
def begun(runner, monkeypatch):
    """The CPU that is taken, and the base, with so many clean canaries and such bases on each."""

    def begin(shares, bases, known=0.0, movable=True):
        monkeypatch.setenv("CYCLESCOPE_RUNNER", str(runner))
        monkeypatch.setenv("SHARES", " ".join(map(str, shares)))
        monkeypatch.setenv("BASES", " ".join(map(str, bases)))
        with closing(NativeBackend(0, movable=movable)) as backend:
            found = backend.calibrate(nop=known)
            return round(found.canary) - 100, found.nop

    return begin


@pytest.mark.parametrize("count", [2, 3, 5, LOOKS])
def test_a_quiet_cpu_is_found_wherever_it_is(begun, count):
    for quiet in range(count):
        shares, bases = [0.4] * count, [1 / 3] * count
        shares[quiet], bases[quiet] = 1.0, 1 / 6
        assert begun(shares, bases) == (quiet, pytest.approx(1 / 6))


def test_where_none_is_quiet_the_quietest_is_taken(begun):
    assert begun([0.0, 0.3, 0.8, 0.5], [0.3, 0.3, 0.2, 0.3]) == (2, pytest.approx(0.2))
    assert begun([0.0] * 3, [0.3, 0.2, 0.3]) == (0, pytest.approx(0.2))


def test_the_first_that_is_quiet_is_taken(begun):
    assert begun([0.85, 0.95, 1.0], [0.2] * 3)[0] == 1


def test_no_more_than_some_are_looked_at(begun):
    shares = [0.1] * LOOKS + [1.0]
    assert begun(shares, [0.3] * LOOKS + [0.2]) == (0, pytest.approx(0.3))


def test_a_cpu_that_was_asked_for_is_kept(begun):
    assert begun([0.1, 1.0], [0.3, 0.2], movable=False) == (0, pytest.approx(0.3))


def test_a_known_base_is_kept_and_a_quiet_cpu_still_taken(begun):
    assert begun([0.1, 1.0], [0.3, 0.3], known=0.2) == (1, pytest.approx(0.2))
