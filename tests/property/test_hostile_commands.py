"""Every command that reads a file, on damaged ones: one clear line, soon, in little room, nothing written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.files.hostile import Ran, broken, kinds, store_kind, wrong

KINDS = kinds()


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=4)
@given(data=st.data())
def test_damaged_files(name, data):
    kind = KINDS[name]
    assert broken(kind, data.draw(kind.damage)) == []


@pytest.fixture(scope="module")
def stores(complete, tmp_path_factory):
    return store_kind(complete, tmp_path_factory.mktemp("stores"))


@pytest.mark.slow
@settings(max_examples=2)
@given(data=st.data())
def test_damaged_stores(stores, data):
    assert broken(stores, data.draw(stores.damage)) == []


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Ran((), 0, "a table", "", 1, 0), ""),
        (Ran((), 1, "", "error: it is damaged\n", 1, 0), ""),
        (Ran((), 5, "", "error: it is damaged\n", 1, 0), "exit code 5"),
        (Ran((), 1, "", "error: internal error: KeyError: 1\n", 1, 0), "an internal error"),
        (Ran((), 1, "", "Traceback (most recent call last):\nerror: x\n", 1, 0), "a traceback"),
        (Ran((), 1, "", "error: a\nerror: b\n", 1, 0), "2 errors"),
        (Ran((), 0, "", "error: a\n", 1, 0), "1 errors"),
        (Ran((), 1, "", "", 1, 0), "no reason"),
        (Ran((), 1, "", "error: \x1b[2J\n", 1, 0), "what controls a terminal"),
        (Ran((), 0, "", "", 6, 0), "6.0 s"),
        (Ran((), 0, "", "", 1, 600 << 10), "600 MB"),
    ],
)
def test_what_a_command_owes(done, said):
    assert wrong(done) == said
