"""Mutated files: a model, or one line."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.errors import CyclescopeError
from cyclescope.formats.exchange import Request
from cyclescope.formats.registry import FORMATS, by_name
from cyclescope.model.check import problems
from tests.support.models import exchanged

BOTH = [f.name for f in FORMATS if f.reader and f.writer]
NASTY = ("nan", "-1", "1e400", "9.2e18", "0", "<b>", "&lt;", "'", '"', ":", "- ", "{", "}", "*", "&a",
         "\x1b[2J", "\n", ",", "..", "~", "=", "p99", "p", "true", "null", "[[[[", "é" * 50)  # fmt: skip


@cache
def _written(name: str) -> str:
    return by_name(name).write(exchanged(3)).text


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=25, deadline=None)
@given(
    places=st.lists(st.floats(0, 0.999), min_size=1, max_size=6),
    words=st.lists(st.sampled_from(NASTY), min_size=6, max_size=6),
    cut=st.integers(0, 6),
)
def test_mutated_files(name, places, words, cut):
    contents = _written(name)
    for place, word in zip(places, words, strict=False):
        at = int(place * len(contents))
        contents = contents[:at] + word + contents[at + cut :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(contents, encoding="utf-8", errors="replace")
        try:
            found = by_name(name).read(path, Request("m", "file"))
        except CyclescopeError as error:
            assert "\n" not in str(error)
            return
        wrong = [line for line in problems(found.model) if "width" not in line]
        assert wrong == []
