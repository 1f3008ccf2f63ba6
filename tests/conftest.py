"""What all tests share: the instruction table, the packages next to `src`, and repeatable examples."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

from cyclescope.isa.table import load_table

sys.path.insert(0, str(Path(__file__).parents[1]))  # `tools` and `tests` are packages of the source tree
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=200)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def table():
    """The x86-64 instruction table."""
    return load_table("x86-64")
