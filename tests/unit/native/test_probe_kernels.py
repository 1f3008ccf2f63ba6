"""Every kernel of every probe runs on AArch64 and RISC-V, under qemu-user."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager

import pytest

from cyclescope.backend.base import Effort
from cyclescope.backend.meeting import meeting
from cyclescope.backend.native import NativeBackend
from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.pairs import CpuPair, CpuPairs, OtherCpu
from cyclescope.probe.run import ask
from cyclescope.remarks.run import Asking
from tests.support.made.handing import handed_over
from tests.support.made.probed import misled_gathers

ONCE = Effort(rounds=1, want=1, maximum=2, target=200.0)


@contextmanager
def met():
    """Two emulated CPUs."""
    with (
        meeting() as link,
        closing(NativeBackend(link=link)) as one,
        closing(NativeBackend(link=link)) as other,
    ):
        yield one, OtherCpu(other, time.monotonic)


@pytest.mark.parametrize("probe", PROBES.values(), ids=list(PROBES))
def test_every_kernel_runs_and_answers_nothing(backend, isa, probe):
    pairs = CpuPairs([CpuPair(0, 1, met)])
    (asked,) = ask([probe], backend, load_table(isa.name), effort=ONCE, pairs=pairs)
    assert bool(asked.facts) != bool(probe.why_not.get(isa.name))
    assert [(fact.subject, fact.reason) for fact in asked.facts if fact.reason != Asking.EMULATED.value] == []
    assert len(asked.measured) >= len(asked.facts)


def test_a_line_is_handed_over(backend, isa):
    """Nobody answers, then somebody does: the kernel waits no longer than that takes."""
    handed_over(isa.name)


def test_gathers_touch_what_their_indices_and_masks_say(backend, isa):
    assert list(misled_gathers(backend, isa.name)) == []
