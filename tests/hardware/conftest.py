"""The runner of this machine, and commands as processes."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from cyclescope.backend.link import runner_path
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable
from tests.support.programs.processes import Command, until


@pytest.fixture(scope="session")
def runner():
    try:
        return runner_path()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def native(runner):
    """A backend that the tests of a module share, on the CPU that commands choose."""
    with closing(NativeBackend(max(os.sched_getaffinity(0)))) as opened:
        yield opened


@pytest.fixture
def cyclescope(runner, tmp_path):
    command = Command(runner, tmp_path)
    yield command
    assert until(lambda: not command.running()), "a runner was left behind"
