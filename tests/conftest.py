"""What all tests share: the instruction table, the packages next to `src`, and repeatable examples."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from cyclescope.isa.table import load_table

sys.path.insert(0, str(Path(__file__).parents[1]))  # `tools` and `tests` are packages of the source tree
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=200)
settings.load_profile("repeatable")

# nohup and a script's background jobs ignore these, and what is ignored is inherited by the commands that
# tests start; what has a handler is not.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session")
def table():
    """The x86-64 instruction table."""
    return load_table("x86-64")
