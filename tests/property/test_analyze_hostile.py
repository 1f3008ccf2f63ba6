"""Damaged inputs: whatever a file has become, a result or one clear line, soon and in little room."""

from __future__ import annotations

import resource
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cyclescope.analyze.choose.source import Choice, read_blocks
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import CyclescopeError
from cyclescope.report.predictions.text import analysis_text
from cyclescope.session.machines import load_model
from tests.support.files.damaged_code import BUILDS, CC, CHANGES, EDITS, TEXTS, built, changed, edited

SECONDS, MEGABYTES = 5, 500
MACHINES = {"x86-64": "skylake", "aarch64": "neoverse-v1", "riscv64": "sifive-p670"}
FEW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(
    max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)

pytestmark = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")


@cache
def predictor(isa):
    return Predictor(load_model(MACHINES[isa]))


def analysed(path):
    """Read and predict; what is raised is one line that says enough."""
    try:
        block = read_blocks(path, choice=Choice())[0]
        analysis_text(predictor(block.isa).predict(block, ignore_unknown=True))
    except CyclescopeError as error:
        assert "\n" not in str(error)
        assert 10 < len(str(error)) < 2000
        assert error.exit_code in (1, 2, 3)


def within_limits(path):
    """The same, in time (of the CPU: tests run beside each other) and memory."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    children, largest = sum(usage[:2]), usage.ru_maxrss  # of other tests: compilers, perhaps
    analysed(path)
    took = time.process_time() - start + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - children
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert took < SECONDS
    assert grown / 1024 < MEGABYTES
    copy = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # a child is one until it starts its program
    most = max(largest, copy, 1024 * MEGABYTES)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= most


def check_text(isa, edits):
    if not tools(isa):
        pytest.skip(f"no assembler for {isa}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k.s"
        path.write_text(edited(TEXTS[isa], edits), errors="surrogatepass")
        within_limits(path)


@pytest.mark.parametrize("isa", TEXTS)
@FEW
@given(edits=EDITS)
def test_damaged_texts(isa, edits):
    check_text(isa, edits)


@pytest.mark.slow
@pytest.mark.parametrize("isa", TEXTS)
@MANY
@given(edits=EDITS)
def test_many_damaged_texts(isa, edits):
    check_text(isa, edits)


# --- executables ----------------------------------------------------------------------------------


def check_binary(name, edits, kept):
    data = changed(built(name), edits)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k"
        path.write_bytes(data[: 4 + int(kept * len(data))])
        within_limits(path)


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", BUILDS)
@FEW
@given(edits=CHANGES, kept=st.just(1.0) | st.floats(0, 1))
def test_damaged_binaries(name, edits, kept):
    check_binary(name, edits, kept)


@pytest.mark.slow
@pytest.mark.skipif(CC is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", BUILDS)
@MANY
@given(edits=CHANGES, kept=st.just(1.0) | st.floats(0, 1))
def test_many_damaged_binaries(name, edits, kept):
    check_binary(name, edits, kept)
