"""Commands run in this process, on a simulated machine unless a test says otherwise."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

import pytest

from cyclescope.cli.main import main
from tests.support.code.blocks import SUM_LOOP
from tests.support.files.shared import shared_file
from tests.support.made.machine import FORMS, simulate

PROGRESS = re.compile(r"[\w ]+: \d+ of \d+, |measuring|second look")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def error(self):
        """The one line of an error. What takes long says how far it is, and on a busy machine all does."""
        lines = [line for line in self.err.splitlines() if not PROGRESS.match(line)]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        assert "internal error" not in lines[0]
        return lines[0].removeprefix("error: ")


@pytest.fixture
def kernel(tmp_path):
    """A file with a loop."""
    path = tmp_path / "sum.s"
    path.write_text(SUM_LOOP)
    return path


@pytest.fixture
def cyclescope(capsys):
    """Run a command line."""
    before = [signal.getsignal(number) for number in SIGNALS]

    def run(*args):
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        done = capsys.readouterr()
        return Ran(end.value.code or 0, done.out, done.err)

    yield run
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def machine(monkeypatch):
    """The backends that the commands of a test opened."""
    return simulate(monkeypatch)


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """A store with some forms, one of them illegal; to be copied before it is written."""

    def make(path):
        with pytest.MonkeyPatch.context() as patch:
            simulate(patch)
            with pytest.raises(SystemExit) as end:
                main(["measure", *FORMS, "VADDPH (XMM, XMM, XMM)", "--store", str(path)])
            assert not end.value.code

    return shared_file(tmp_path_factory, "measured.sqlite", make)


@pytest.fixture
def store(measured, tmp_path):
    """A copy of it."""
    path = tmp_path / "store.sqlite"
    path.write_bytes(measured.read_bytes())
    return path
