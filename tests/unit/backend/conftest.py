"""Fake runners, and fake hosts that are reached by ssh."""

from __future__ import annotations

import pytest

from cyclescope.backend import native
from tests.support.programs.fake_runner import fake_runner
from tests.support.programs.fake_ssh import FakeSsh


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Make the runner of this machine, which ssh then copies."""
    path = tmp_path / "runner"
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(path))
    monkeypatch.setattr(native, "PAUSES", (0.0,))
    return lambda changes="": fake_runner(path, changes)


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    found = FakeSsh(tmp_path / "ssh")
    monkeypatch.setenv("PATH", found.path)
    return found
