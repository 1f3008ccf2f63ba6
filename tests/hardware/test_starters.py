"""Who starts the runner may end before it, or leave its signals in an odd state."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.programs.processes import ended, environment, until

pytestmark = pytest.mark.hardware

ABANDON = """
import os, signal
from cyclescope.backend.base import Effort
from cyclescope.backend.native import NativeBackend
from cyclescope.measure.bench import VECTOR_LEVELS, machine_code
backend = NativeBackend()
print(backend._transport.process.pid, flush=True)
endless = machine_code(b"\\xeb\\xfe", b"", 1, 1, VECTOR_LEVELS["sse"])
backend.submit([endless] * 60, Effort(rounds=1))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_runner_does_not_finish_a_batch_for_nobody(runner):
    """A minute of hanging kernels, whose results nobody waits for any more."""
    command = [sys.executable, "-c", ABANDON]
    environ = environment(CYCLESCOPE_RUNNER=str(runner))
    done = subprocess.run(command, check=False, capture_output=True, env=environ)
    assert done.returncode == -signal.SIGKILL
    assert until(lambda: ended(int(done.stdout)), seconds=30)


def test_signals_that_the_starter_ignores_or_blocks(runner):
    """As a service manager or a broken wrapper leaves them: faults, hangs and ends are noticed."""

    def hostile():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    command = [sys.executable, "-m", "cyclescope", "bench", "--asm"]
    environ = environment(CYCLESCOPE_RUNNER=str(runner))
    for snippet, said in (("ud2", "SIGILL"), ("1: jmp 1b", "hang")):
        done = subprocess.run(
            [*command, snippet], check=False, capture_output=True, env=environ, preexec_fn=hostile, timeout=60
        )
        assert done.returncode != 0
        assert said in done.stderr.decode()
