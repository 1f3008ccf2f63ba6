"""How long other programs are waited for, and how long a steady state is looked at: both sides of limits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend, _Region, _Summary, _window
from cyclescope.backend.peers.osaca import Osaca
from cyclescope.errors import CyclescopeError
from cyclescope.session import compiled
from cyclescope.session.compiled import _Failed

SUMMARY = "Summary:\n  PortPressure:\n    P0: 2.0\n  LCD: 1.0\nEnd:\n"


class Slow:
    """Programs that take so many seconds, on a clock of their own."""

    def __init__(self, seconds, monkeypatch):
        self.seconds = seconds
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, command, timeout, **more):
        if self.seconds > timeout:
            raise subprocess.TimeoutExpired(command, timeout)
        if "--yaml-out" in command:
            Path(command[command.index("--yaml-out") + 1]).write_text(SUMMARY)
        return subprocess.CompletedProcess(command, 0, "LLVM version 22.1.0", "")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program"
    path.touch(mode=0o755)
    return str(path)


@pytest.mark.parametrize(("seconds", "answers"), [(35.0, True), (59.0, True), (61.0, False), (110.0, False)])
def test_osaca_has_a_minute_for_a_block(monkeypatch, program, seconds, answers):
    """Most blocks take a second, those of hundreds of instructions half a minute."""
    slow = Slow(0.0, monkeypatch)
    osaca = Osaca("skylake", executable=program, isa="x86-64")
    slow.seconds = seconds
    cycles, reason = osaca.cycles(["addq %rax, %rbx"])
    assert (cycles, reason) == (2.0, "") if answers else reason.endswith("has not answered for 60 s")


@pytest.mark.parametrize(("seconds", "answers"), [(35.0, True), (59.0, True), (61.0, False), (110.0, False)])
def test_compilers_and_loops_have_a_minute(monkeypatch, seconds, answers):
    """A loop is timed within a second; a compiler may be on a disk that sleeps."""
    Slow(seconds, monkeypatch)
    if answers:
        assert compiled._run(["cc"])
    else:
        with pytest.raises(_Failed, match="does not end or start"):
            compiled._run(["cc"])


@pytest.mark.parametrize(("seconds", "answers"), [(3.0, True), (4.9, True), (5.1, False), (9.0, False)])
def test_llvm_mca_has_five_seconds_for_next_to_nothing(monkeypatch, program, seconds, answers):
    """It takes a tenth of one; twenty others may run beside it. This one answers with nothing."""
    Slow(seconds, monkeypatch)
    said = "ended with exit status 0" if answers else "has not answered for 5 s"
    with pytest.raises(CyclescopeError, match=said):
        LlvmMcaBackend("znver3", program)


@pytest.mark.parametrize(
    ("cycles", "window"), [(100, 512), (26, 2048), (400, 128), (101, 512), (800, 64), (205, 256)]
)
def test_the_steady_state_is_looked_at_for_500_cycles(cycles, window):
    """So many that a cycle more or less at the ends is a fifth of a percent; iterations are powers of two."""
    region = _Region("", [], _Summary(cycles, 100, 1.0))
    assert _window(8, region) == 8 + window
    assert window * cycles / 100 >= 500 > window * cycles / 200
