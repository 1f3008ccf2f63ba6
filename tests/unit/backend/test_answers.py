"""Runners that lie: what cannot be is refused in one line, and no more is read than was asked for."""

from __future__ import annotations

import math
import resource
from contextlib import closing

import pytest

from cyclescope.backend.base import Depth, Effort
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state
from tests.support.programs.fake_runner import fake_runner

SETS, BYTES = {"present": 32, "written": 50, "unstable": 68, "depends": 86}, 18  # in struct differ_result
SIZE = 2680


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Make the runner that the backend finds, with Python that replaces some of its functions."""
    path = tmp_path / "runner"
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(path))
    return lambda changes="": fake_runner(path, changes)


def kernel():
    return Kernel(b"\x90", 1, default_state(0))


LIES = {
    "machine": [
        "def hello(version=10): return struct.pack('<4I7Q', 10, 9, 0, 4096, *[0] * 7)",
        "def hello(version=10): return struct.pack('<4I7Q', 10, 1, 5, 4096, *[0] * 7) + bytes(50)",
        "def hello(version=10): return struct.pack('<4I7Q', 10, 1, 1 << 30, 4096, *[0] * 7)",
    ],
    "counters": [
        "def setup(payload): return struct.pack('<4i2I', 0, 0, 0, 0, 1 << 31, 0)",
        "def setup(payload): return struct.pack('<4i2I', 1 << 20, 0, 0, 0, 0, 0)",
    ],
    "in place of 24": ["def setup(payload): return b'short'"],
}


@pytest.mark.parametrize(("said", "lie"), [(said, lie) for said, lies in LIES.items() for lie in lies])
def test_a_greeting_that_cannot_be(runner, said, lie):
    runner(lie)
    assert_nonsense(said, lambda: NativeBackend(0))


def assert_nonsense(said, ask):
    with pytest.raises(BackendUnavailable) as error:
        ask()
    assert "cannot be" in str(error.value)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def answered(runner, kind, answer):
    """A backend whose runner answers one kind of request with Python's expression."""
    runner(
        f"older = answer\ndef answer(kind, *rest): return {answer} if kind == {kind} else older(kind, *rest)"
    )
    return closing(NativeBackend(0))


@pytest.mark.parametrize("number", ["float('nan')", "float('inf')", "-1.0", "0.0", "-float('inf')"])
@pytest.mark.parametrize("place", [0, 1, 6])
def test_a_clock_that_cannot_be(runner, place, number):
    clock = ["0.5", "1.0", "100.0", "0.75", "0.01", "1e-9", "0.125"]
    clock[place] = "-0.5" if (place, number) == (6, "0.0") else number  # no base is known: 0 NOPs a cycle
    with answered(runner, "CALIBRATE", f"struct.pack('<7d', {', '.join(clock)})") as backend:
        assert_nonsense("clock", backend.calibrate)


@pytest.mark.parametrize(
    ("said", "lie"),
    [
        ("a time", "result(float('nan'))"),
        ("a time", "result(float('inf'))"),
        ("a time", "result(-1e300)"),
        ("a time", "result(float('inf'), 5)"),
        ("how a kernel ended", "result(0.0, 7)"),
        ("how a kernel ended", "result(0.0, 0xFFFFFFFF)"),
        ("how a kernel ended", "result(0.0, 1, 4096)"),
        ("how a kernel ended", "result(0.0, 1, 11, instruction=-2)"),
        ("how a kernel ended", "result(0.0, 1, 11, instruction=1 << 30)"),
    ],
)
def test_times_that_cannot_be(runner, said, lie):
    with answered(runner, "MEASURE", lie) as backend:
        backend.submit([kernel()], Effort(rounds=1))
        assert_nonsense(said, backend.collect)


def test_no_time_at_all_is_an_answer(runner):
    lie = "2 * struct.pack('<d', float('nan')) + result(1.0, 5)[16:]"
    with answered(runner, "MEASURE", lie) as backend:
        backend.submit([kernel()], Effort(rounds=1))
        assert math.isnan(backend.collect()[0][0].cycles)


@pytest.mark.parametrize(
    "lie", ["struct.pack('<Q2IiI', 0, 9, 0, -1, 0)", "struct.pack('<Q2IiI', 0, 1, 99, -1, 0)"]
)
def test_outcomes_that_cannot_be(runner, lie):
    with answered(runner, "PROBE", lie) as backend:
        assert_nonsense("how a kernel ended", lambda: backend.probe([kernel()]))


@pytest.mark.parametrize("name", SETS)
def test_observations_of_places_that_are_not_there(runner, name):
    """The last bit of a set is of no instruction set."""
    last = SETS[name] + BYTES - 1
    with answered(runner, "DIFFER", f"bytes({last}) + b'\\x80' + bytes({SIZE - last - 1})") as backend:
        assert_nonsense("places", lambda: backend.differ([kernel()], Depth()))


def test_observations_of_what_is_there(runner):
    with answered(runner, "DIFFER", f"bytes({SETS['present']}) + b'\\1' + bytes({SIZE - 33})") as backend:
        assert backend.differ([kernel()], Depth())[0].present == 1


FLOOD = """
import itertools
def answer(kind, payload, count):
    if kind != PROBE:
        return {HELLO: hello, CALIBRATE: None}.get(kind, lambda: setup(payload))()
    sys.stdout.buffer.write(FRAME.pack(MAGIC, kind, 0xFFFFFFFF, 0))
    for _ in range(1 << 20):
        sys.stdout.buffer.write(bytes(1 << 16))
"""
UNASKED = """
def answer(kind, payload, count):
    if kind != PROBE:
        return {HELLO: hello}.get(kind, lambda: setup(payload))()
    for _ in range(1 << 20):
        write(kind, bytes(24) * count)
"""


@pytest.mark.parametrize("how", [FLOOD, UNASKED])
def test_no_more_is_read_than_was_asked_for(runner, how):
    """A frame that is too long, frames that nobody asked for: the memory they take stays small."""
    runner(how)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with closing(NativeBackend(0)) as backend, pytest.raises(BackendUnavailable, match="another protocol"):
        for _ in range(10000):
            backend.probe([kernel()])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_what_a_runner_says_is_safe_to_print(runner):
    with answered(runner, "PROBE", "b''"):
        pass
    runner("def answer(*_): write(ERROR, b'\\x1b[2J\\x07' + b'no\\n' * 900); return b''")
    with pytest.raises(BackendUnavailable, match="refused") as error:
        NativeBackend(0)
    assert all(sign.isprintable() for sign in str(error.value))
    assert len(str(error.value)) < 500
