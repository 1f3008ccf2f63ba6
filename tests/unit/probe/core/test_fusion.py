"""Fused pairs on cores with front ends drawn from seeds that nobody tuned on."""

from __future__ import annotations

import random

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.catalogue import PROBES
from cyclescope.simulate.features import draw_front_end
from cyclescope.simulate.front_end import FrontEnd
from tests.support.made.probed import NOISE, drawn, facts, scored
from tests.support.made.truths import BRANCHES, FIRSTS, fused

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 4
FUSION = PROBES["fusion"]


def test_what_drawn_front_ends_fuse():
    cores = []
    for number in range(CORES):
        front_end = draw_front_end(SEED + number, FIRSTS, BRANCHES)
        machine = drawn([FUSION], SEED + number)
        backend = SimulatedBackend(machine, noise=NOISE, front_end=front_end)
        cores.append((backend, lambda subject, front_end=front_end: fused(front_end, subject)))
    score = scored(FUSION, cores)
    assert score.wrong == [], f"seed {SEED}"
    assert score.stated >= 0.8, f"seed {SEED}: {score}"


def test_nops_that_share_a_slot_are_no_fused_pair():
    machine = drawn([FUSION], SEED)
    found = facts(FUSION, SimulatedBackend(machine, front_end=FrontEnd(pairs=True)))
    assert {fact.answer for fact in found} <= {CoreAnswer.SEPARATE, CoreAnswer.NONE}, f"seed {SEED}"
