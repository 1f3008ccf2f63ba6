"""Files of other tools that were mutated: a sound model, or one line with the place and nothing written."""

from __future__ import annotations

import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.cli.main import main
from cyclescope.formats.registry import READABLE, by_name
from cyclescope.model.check import problems
from cyclescope.session.machines import read_machine
from tests.support.models import exchanged
from tests.support.published import ONLY_READ

SECONDS, MEGABYTES = 5, 500
NASTY = ("nan", "-1", "1e400", "9.2e18", "0", "<b>", "&lt;", "'", '"', ":", "- ", "{", "}", "*", "&a",
         "\x1b[2J", "\n", ",", "..", "~", "=", "p99", "p", "true", "null", "[[[[", "é" * 50,
         "\x00", "\r", "\ufeff", "9" * 5000, "[" * 5000, "a" * 5000, "!!python/none ", "<<: ", "---\n", "%",
         "<!DOCTYPE a>", "0x10", "1_000", "1:30", "2001-01-01", "1e-320", "-0.0", "|", ">", "? ",
         "\udc80")  # fmt: skip
EDITS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "copy", "delete"]), st.floats(0, 0.999), st.integers(0, 200),
              st.sampled_from(NASTY) | st.text(max_size=3)),
    min_size=1, max_size=6,
)  # fmt: skip


@cache
def sound(name: str) -> str:
    """A file of a format."""
    return ONLY_READ.get(name) or by_name(name).write(exchanged(3)).text


def mutated(text, edits):
    for what, where, length, word in edits:
        at = int(where * len(text))
        some = text[at : at + length]
        middle = {"put": word, "copy": some * 2, "delete": ""}[what]
        text = text[:at] + middle + text[at + (min(length, 6) if what == "put" else length) :]
    return text


def imported(name, path, output):
    """Exit code and standard error of `cyclescope import`."""
    errors = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(errors), pytest.raises(SystemExit) as end:
        main(["import", str(path), "--machine", "m", "--format", name, "-o", str(output)])
    return end.value.code or 0, errors.getvalue()


def check(name, contents):
    """What `import` does with a file; whether it made a model."""
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / "a file", Path(folder) / "made.json"
        path.write_text(contents, encoding="utf-8", errors="surrogateescape", newline="")
        start, before = time.process_time(), getrusage(RUSAGE_SELF).ru_maxrss
        code, errors = imported(name, path, output)
        assert time.process_time() - start < SECONDS
        assert getrusage(RUSAGE_SELF).ru_maxrss - before < MEGABYTES << 10
        if code == 0:
            assert not list(problems(read_machine(output)))
            return True
        (line,) = errors.splitlines()
        assert line.startswith("error: ")
        assert "internal error" not in line
        assert "a file" in line
        assert line.isprintable()
        assert len(line) < 600 + len(folder)
        assert [one.name for one in Path(folder).iterdir()] == [path.name]
        return False


@pytest.mark.parametrize("name", READABLE)
def test_what_is_mutated_is_sound(name):
    assert check(name, sound(name))


@pytest.mark.parametrize("name", READABLE)
@settings(max_examples=25)
@given(edits=EDITS)
def test_mutated_files(name, edits):
    check(name, mutated(sound(name), edits))


@pytest.mark.slow
@pytest.mark.parametrize("name", READABLE)
@settings(max_examples=200)  # of each of ten formats
@given(edits=EDITS)
def test_many_mutated_files(name, edits):
    check(name, mutated(sound(name), edits))
