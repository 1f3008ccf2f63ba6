"""A finished run of a simulated core, which several modules read."""

from __future__ import annotations

import pytest

from tests.support.damage import fill


@pytest.fixture(scope="session")
def complete(table, tmp_path_factory):
    """Its store: nobody writes it."""
    return fill(tmp_path_factory.mktemp("complete") / "store.sqlite", table)


@pytest.fixture
def path(complete, tmp_path):
    """A copy of it."""
    copy = tmp_path / "store.sqlite"
    copy.write_bytes(complete.read_bytes())
    return copy
