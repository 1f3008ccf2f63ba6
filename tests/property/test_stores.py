"""Stores of runs that were stopped, and stores with damage: every command reads them."""

from __future__ import annotations

import gc
import shutil
import signal
import sqlite3
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from resource import RUSAGE_SELF, getrusage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.cli.main import main
from tests.support.files.damage import (
    BYTES,
    DAMAGE,
    change,
    install,
    readers,
    rows,
    thin,
    unbound,
)

SECONDS, MEGABYTES = 5, 500
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The simulated host: its folder, and where its store is to be."""
    folder = tmp_path_factory.mktemp("host")
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.MonkeyPatch.context() as patch:
        yield folder, install(patch, folder)
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


def run(arguments):
    """(exit code, standard output, standard error) of a command line."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    gc.enable()  # `analyze` lives too short for it, this process does not
    return end.value.code or 0, *(text.buffer.getvalue().decode() for text in (out, err))


def check(arguments):
    """No command fails but with one clear line; what was printed, None where it failed."""
    code, out, err = run(arguments)
    assert "internal error" not in err, (arguments, err)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == (code not in (0, 3)) or code in (1, 3), (arguments, code, err)
    assert len(errors) <= 1
    assert len(err) < 5000
    return out if code == 0 else None


def put(complete, path):
    for old in path.parent.glob(f"{path.stem}*"):
        old.unlink()
    shutil.copy(complete, path)
    return path


@settings(max_examples=2)
@given(share=st.floats(0, 1), links=st.booleans(), legality=st.booleans())
def test_stopped_anywhere(complete, here, share, links, legality):
    folder, place = here
    path = put(complete, place)
    change(path, ("UPDATE session SET conditions = json_remove(conditions, '$.finished')",))
    last = round(share * rows(path))
    change(path, ("DELETE FROM measurement WHERE id > ?", last))
    if not last and not links:
        change(path, ("DELETE FROM link",))
    if not last and not legality:
        change(path, ("DELETE FROM legality",))
    said = [check(arguments) for arguments in readers(path, folder)]
    lost = share < 0.5  # all of the port step comes later, which is most of the rows
    assert all("a run was stopped" in (out or "") for out in said[:2]) or not lost


@pytest.fixture(scope="module")
def loose(complete, tmp_path_factory):
    """The same without constraints."""
    return unbound(put(complete, tmp_path_factory.mktemp("loose") / "loose.sqlite"))


@pytest.fixture(scope="module")
def small(loose):
    """The same with fewer rows."""
    return thin(put(loose, loose.with_name("small.sqlite")))


def read_all(store, here, damage, whole=True):
    folder, place = here
    path = put(store, place)
    for hurt in damage:
        with suppress(sqlite3.DatabaseError):  # the first left no such table, or no store
            hurt(path)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    for arguments in readers(path, folder, whole):
        start = time.process_time()
        check(arguments)
        assert time.process_time() - start < SECONDS, arguments
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < MEGABYTES << 10


@settings(max_examples=2)
@given(damage=st.lists(DAMAGE, min_size=1, max_size=2))
def test_damaged_anywhere(loose, here, damage):
    read_all(loose, here, damage)


@settings(max_examples=12)
@given(damage=st.lists(BYTES, min_size=1, max_size=2))
def test_damaged_bytes(small, here, damage):
    read_all(small, here, damage, whole=False)


@pytest.mark.slow
@settings(max_examples=2000)
@given(damage=st.lists(DAMAGE | BYTES, min_size=1, max_size=3))
def test_damaged_everywhere(small, here, damage):
    read_all(small, here, damage, whole=False)
