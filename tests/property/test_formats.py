"""Files of other tools that were mutated: a sound model, or one line with the place and nothing written."""

from __future__ import annotations

import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import pytest
from hypothesis import given, settings

from cyclescope.cli.main import main
from cyclescope.formats.registry import READABLE
from cyclescope.model.check import problems
from cyclescope.session.machines import read_machine
from tests.support.files.damaged_files import EDITS, mutated, sound

SECONDS, MEGABYTES = 5, 500


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
@settings(max_examples=12)
@given(edits=EDITS)
def test_mutated_files(name, edits):
    check(name, mutated(sound(name), edits))


@pytest.mark.slow
@pytest.mark.parametrize("name", READABLE)
@settings(max_examples=200)  # of each of ten formats
@given(edits=EDITS)
def test_many_mutated_files(name, edits):
    check(name, mutated(sound(name), edits))
