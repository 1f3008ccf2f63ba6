"""Moves and idioms on cores drawn with seeds that nobody tuned on: right whenever an answer is given."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.facts import Answer
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.core.moves import ITSELF
from cyclescope.session.machines import load_model
from tests.support.probed import NOISE, drawn, facts, scored

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 6
WIDE = {"width": 8, "ports": 8}  # where ports are the limit: else execution cannot be seen
MOVES, BREAKING, IDIOMS = (
    PROBES[name] for name in ("move-elimination", "dependency-breaking", "zero-idioms")
)


def moved(machine, subject):
    cost = machine.forms[subject.removesuffix(ITSELF)]
    return Answer.ELIMINATED if cost.eliminated else Answer.EXECUTED


def broken(machine, subject):
    return Answer.BREAKING if machine.forms[subject].idiom else Answer.DEPENDENT


def idle(machine, subject):
    return Answer.ZERO if machine.forms[subject].idiom == "zero" else Answer.EXECUTED


TRUTHS = [(MOVES, moved, 0.9), (BREAKING, broken, 0.8), (IDIOMS, idle, 0.8)]


@pytest.mark.parametrize(("probe", "truth", "least"), TRUTHS, ids=["moves", "breaking", "idioms"])
def test_what_drawn_renamers_do(probe, truth, least):
    cores = []
    for number in range(CORES):
        shape = WIDE if probe is IDIOMS else {}
        machine = drawn([probe], SEED + number, **shape)
        backend = SimulatedBackend(machine, noise=NOISE)
        cores.append((backend, lambda subject, machine=machine: truth(machine, subject)))
    score = scored(probe, cores)
    assert score.wrong == [], f"seed {SEED}"
    assert score.stated >= least, f"seed {SEED}: {score}"


@pytest.mark.parametrize("core", ["neoverse-v2", "sifive-p670"])
@pytest.mark.parametrize("probe", [MOVES, BREAKING], ids=["moves", "breaking"])
def test_other_instruction_sets(core, probe):
    machine = load_model(core)
    truth = moved if probe is MOVES else broken
    found = facts(probe, SimulatedBackend(machine, noise=NOISE))
    assert len(found) >= 3
    told = [(fact.subject, fact.answer) for fact in found if fact.is_resolved]
    assert told == [(subject, truth(machine, subject)) for subject, _ in told]
    assert len(told) >= len(found) / 2
