"""Stores made by hand: experiments, measurements and files with them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from cyclescope.errors import StoreError
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state
from cyclescope.measure.plan import Experiment
from cyclescope.measure.sampling import Measurement
from cyclescope.measure.store import Store

HERE, THERE = "this machine", "that machine"


def experiment(form="ADD", variant="plain", code=b"\x90", level=0, **more):
    kernel = Kernel(code, 1, default_state(level), b"\xcc", 3)
    parts = {"quantity": "latency", "source": "op1", "target": "op2", "count": 2, "links": ("a", "b")} | more
    return Experiment(form=form, variant=variant, kernel=kernel, **parts)


def measurement(cycles=1.0, verdict="ok", **more):
    return Measurement(cycles, 0.25, verdict, 12, 3, (1.0, 1.5), 2, "", (4.0,), **more)


def filled(path, *pairs, machine=HERE, session="a session"):
    with closing(Store(path, machine)) as opened:
        opened.begin_session(session, {"name": session})
        opened.write(pairs)
        opened.write_legality([("ADD", "ok"), (path.stem, "SIGILL")])
    return path


def spoil(path, statement, *values):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)


def opening(path, readonly):
    """What is said of a file that cannot be opened."""
    with pytest.raises(StoreError) as error:
        Store(path, HERE, readonly=readonly).close()
    assert str(path) in error.value.message
    assert error.value.remedy
    return str(error.value)
