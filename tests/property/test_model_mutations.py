"""Whatever becomes of a model's file: one clear line, or a finite prediction; soon and in little memory."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import CyclescopeError
from cyclescope.model.check import ModelError, problems
from cyclescope.session.machines import load_model, read_machine
from tests.support.code.blocks import block
from tests.support.files.mutation import KERNEL, mutated, small

SECONDS, BYTES = 5.0, 500 << 20
_CHECK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({bytes}, {bytes}))
from cyclescope.cli.main import main
main(["machines", "check", sys.argv[1]])
"""


def tried(path, data):
    """The prediction on a model, or the error in its place."""
    path.write_bytes(data)
    try:
        found = list(problems(read_machine(path)))
        machine = load_model(path)
        assert not found
        SimulatedBackend(machine).close()
        return Predictor(machine).predict(block(KERNEL, loop=True))
    except CyclescopeError as error:
        return error


def judge(path, data):
    start = time.process_time()
    found = tried(path, data)
    assert time.process_time() - start < SECONDS
    if isinstance(found, CyclescopeError):
        text = str(found)
        assert text.isprintable()
        assert 10 < len(text) < 2000
        assert found.exit_code in (1, 2, 3)
        return
    numbers = (found.cycles, found.lower, *found.interval, *found.bounds.values(), found.upper or 0.0)
    assert all(math.isfinite(number) and number >= 0 for number in numbers)
    assert found.lower <= found.cycles <= (found.upper or math.inf)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("mutated") / "model.json"


def test_the_model_that_is_mutated_is_sound(path):
    found = tried(path, small())
    assert not isinstance(found, CyclescopeError), found


@settings(max_examples=150)
@given(data=mutated())
def test_a_mutated_model_gets_one_clear_line_or_a_prediction(path, data):
    judge(path, data)


@pytest.mark.slow
@settings(max_examples=2000)
@given(data=mutated())
def test_two_thousand_mutated_models(path, data):
    judge(path, data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":' * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b" " * (25 << 20),
        b"[" + b"1," * (10 << 20),
    ],
)
def test_the_largest_files_take_little_memory(path, data):
    path.write_bytes(data)
    done = subprocess.run(
        check=False,
        args=[sys.executable, "-c", _CHECK.format(bytes=BYTES), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {path}: ")
    assert "internal" not in line


def test_an_error_names_the_first_defects_and_counts_the_others(path):
    path.write_bytes(small().replace(b'"slots": 1', b'"slots": -1'))
    with pytest.raises(
        ModelError, match=r"slots: -1 is not from 0 to 1000000; .*; and \d+ more: `cyclescope"
    ):
        load_model(path)
