"""Counting processes: how long a keeper is waited for."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.errors import MeasurementError
from cyclescope.session.counting import process
from cyclescope.session.counting.process import CountedProcess, Keeping, stop

DEAF = ("sh", "-c", "trap '' TERM; echo deaf; read _", "cyclescope.session.counting.keeper")


@pytest.fixture
def keeper():
    """A keeper that no signal wakes."""
    with subprocess.Popen(DEAF, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        running.stdout.readline()
        yield running.pid


class Clock:
    """A clock that goes on when one sleeps; something is done at a time."""

    def __init__(self, seconds, action):
        self.now, self._seconds, self._action = 0.0, seconds, action

    def sleep(self, seconds):
        self.now += seconds
        if self.now >= self._seconds:
            self._action()


@pytest.mark.parametrize(("seconds", "waited"), [(4.0, True), (7.0, False)])
def test_a_keeper_has_five_seconds_to_write(tmp_path, monkeypatch, keeper, seconds, waited):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "cyclescope" / "counting"
    folder.mkdir(parents=True)
    (folder / "7.json").write_bytes(msgspec.json.encode(Keeping(7, keeper, ())))
    counted = CountedProcess(7, 1.0, False, ())
    clock = Clock(seconds, lambda: (folder / "7.counted").write_bytes(msgspec.json.encode(counted)))
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=clock.sleep))
    if waited:
        assert stop(7) == counted
    else:
        with pytest.raises(MeasurementError, match="is lost"):
            stop(7)
