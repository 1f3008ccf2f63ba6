"""Which tests a run has."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("chosen", "slow"), [(["-m", "not hardware"], False), (["-m", "slow"], True)])
def test_slow_tests_run_where_they_are_named(chosen, slow):
    line = [sys.executable, "-m", "pytest", "--collect-only", *chosen, "tests/packages/test_wheel.py"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ("test_wheel.py::" in done.stdout) is slow, done.stdout + done.stderr
