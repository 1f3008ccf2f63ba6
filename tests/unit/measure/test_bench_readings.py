"""`bench`: a reading is `ok` only where its error is within what rounds agree to."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from cyclescope.backend.base import OK, Sample
from cyclescope.measure import bench
from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.measure.sampling import DISAGREE

NOP = 0.125  # cycles: eight a cycle


class PlayedBackend:
    """Answers a kernel with numbers in turn, and what is known, NOPs, by a factor of what it takes."""

    def __init__(self, cycles, off):
        self.cycles, self.off = itertools.cycle(cycles), off

    def capabilities(self):
        return SimpleNamespace(isa="x86-64", emulated=False)

    def calibrate(self):
        return SimpleNamespace(nop=NOP)

    def submit(self, kernels, effort):
        self.rounds = effort.rounds

    def collect(self):
        own = [Sample(next(self.cycles), 0.0, OK, accepted=12) for _ in range(self.rounds)]
        return [own, [Sample(NOP * self.off, 0.0, OK, accepted=12) for _ in range(self.rounds)]]


@pytest.mark.parametrize(
    ("cycles", "off", "verdict"),
    [
        ([4.0], 1.0, STABLE),
        ([4.0], 1.003, STABLE),
        ([4.0], 1.007, UNSTABLE),  # the clock, or a neighbour: all is off by as much
        ([4.0], 0.99, UNSTABLE),
        ([3.99] * 4 + [4.01] * 4, 1.0, STABLE),
        ([3.72] * 4 + [4.12] * 4, 1.0, UNSTABLE),
    ],
)
def test_ok_only_where_rounds_agree(cycles, off, verdict, monkeypatch):
    monkeypatch.setattr(bench, "PAUSE", 0)
    found = bench.time_kernel(PlayedBackend(cycles, off), bench.machine_code(b"\x90", b"", 1, 1, 0), 5)
    assert found.verdict == verdict
    assert (found.error == DISAGREE) == (verdict == UNSTABLE)
    assert found.spread >= abs(off - 1) * found.cycles * 0.999
