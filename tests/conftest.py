"""What all tests share: the table, a finished run, the packages next to `src`, and repeatable examples."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import settings

from cyclescope.isa.table import load_table

sys.path.insert(0, str(Path(__file__).parents[1]))  # `tools` and `tests` are packages of the source tree

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.register_profile(
    "fresh", derandomize=False, deadline=None, max_examples=2000, print_blob=True, database=None
)
settings.load_profile("repeatable")  # another by --hypothesis-profile, as in .ci/nightly

# nohup and a script's background jobs ignore these, and what is ignored is inherited by the commands that
# tests start; what has a handler is not.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

ENOUGH = 480.0  # seconds of tests of real times, after which a loud machine is not waited for any more
FAILURES = (AssertionError, subprocess.TimeoutExpired)  # that neighbours can be the reason of
began = time.monotonic()
COLLECTING = 100_000, 10, 10  # objects; by default a fifth of the time is spent on garbage among tables


def pytest_collection_finish():
    """Thousands of tests and modules stay: nobody has to look for garbage among them."""
    gc.collect()
    gc.freeze()


unfreeze, unfrozen = gc.unfreeze, []


def noted():
    """To ask how much is set apart takes as long as to count it: a tenth of a second after some tests."""
    unfreeze()
    unfrozen.append(True)


gc.unfreeze = noted


def pytest_runtest_setup():
    """Commands that ran in this process have collected garbage their way."""
    gc.enable()
    gc.set_threshold(*COLLECTING)
    if unfrozen:
        gc.freeze()
        unfrozen.clear()


def pytest_collection_modifyitems(config, items):
    """Slow tests run where -m names them; any other -m, such as 'not hardware', leaves them out."""
    if "slow" in (config.option.markexpr or ""):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def _skip_if_loud(when):
    from tests.support.programs.quiet import QUIET, undisturbed

    if (share := undisturbed()) < QUIET:
        pytest.skip(f"neighbours disturb this machine {when}: it is left alone {share:.0%} of the time")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """What fails on a machine that is left alone has failed; of what fails on another nobody can tell."""
    if not pyfuncitem.get_closest_marker("hardware"):
        return (yield)
    if time.monotonic() - began > ENOUGH:
        _skip_if_loud(f"after {ENOUGH:.0f} s of tests")
    try:
        return (yield)
    except FAILURES as failure:
        _skip_if_loud(f"({failure})")
        raise


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """What is kept of machines, played ones too, is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def table():
    """The x86-64 instruction table."""
    return load_table("x86-64")


@pytest.fixture(scope="session")
def complete(table, tmp_path_factory):
    """The store of a finished run of all quantities on a simulated Skylake: nobody writes it."""
    from tests.support.files.damage import fill
    from tests.support.files.shared import shared_file

    return shared_file(tmp_path_factory, "complete.sqlite", lambda path: fill(path, table))
