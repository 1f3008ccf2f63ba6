"""Two CPUs of this machine, where it has two."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cyclescope.backend.meeting import MeetingLink
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.host.identity import Hypervisor
from cyclescope.host.topology import read_topology
from cyclescope.host.uname import host_isa
from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.run import ask
from cyclescope.session.probes import pairs_of
from tests.support.made.handing import handed_over
from tests.support.programs.processes import patiently

pytestmark = pytest.mark.hardware
MOST_LIKE_ALONE, LEAST_TIMES = 8, 0.9  # threads of a core; noise of both readings


def test_a_line_is_handed_over(runner):
    handed_over(host_isa())


def test_memory_to_meet_in_that_is_none(runner):
    with (
        Path(os.devnull).open("rb") as nothing,
        pytest.raises(BackendUnavailable, match="cannot map the memory where kernels meet"),
    ):
        NativeBackend(link=MeetingLink(nothing.fileno()))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_what_two_cpus_say_can_be(native):
    probes = [PROBES["core-to-core"], PROBES["shared-core"]]
    table = load_table(native.capabilities().isa)

    def is_so():
        lines, shared = ask(
            probes, native, table, quick=True, pairs=pairs_of(read_topology(), Hypervisor.NONE)
        )
        for fact in lines.facts:  # neighbours make it longer, and never shorter
            assert fact.reason if not fact.is_resolved else fact.value > 10, "farther than the nearest cache"
        for fact in shared.facts:
            assert fact.reason if not fact.is_resolved else LEAST_TIMES < fact.value < MOST_LIKE_ALONE

    patiently(is_so, tries=3)
