"""A finished run of a simulated core to write into."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(complete, tmp_path):
    """A copy of it."""
    copy = tmp_path / "store.sqlite"
    copy.write_bytes(complete.read_bytes())
    return copy
