"""Moves and idioms on cores drawn with seeds that nobody tuned on: right whenever an answer is given."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings
from cyclescope.session.machines import load_model
from cyclescope.simulate.draw import draw_machine
from tests.support.made.probed import NOISE, drawn, facts, forms_of, scored
from tests.support.made.truths import broken, idle, moved

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 6
WIDE = {"width": 8, "ports": 8}  # where ports are the limit: else execution cannot be seen
MOVES, BREAKING, IDIOMS = (
    PROBES[name] for name in ("move-elimination", "dependency-breaking", "zero-idioms")
)


TRUTHS = [
    (MOVES, moved, {}, 0.9), (BREAKING, broken, {}, 0.8), (IDIOMS, idle, WIDE, 0.8), (IDIOMS, idle, {}, 0.5),
]  # fmt: skip
NAMES = ["moves", "breaking", "idioms", "idioms of any core"]


@pytest.mark.parametrize(("probe", "truth", "shape", "least"), TRUTHS, ids=NAMES)
def test_what_drawn_renamers_do(probe, truth, shape, least):
    cores = []
    for number in range(CORES):
        machine = drawn([probe], SEED + number, **shape)
        backend = SimulatedBackend(machine, noise=NOISE)
        cores.append((backend, lambda subject, machine=machine: truth(machine, subject)))
    score = scored(probe, cores)
    assert score.wrong == [], f"seed {SEED}"
    assert score.stated >= least, f"seed {SEED}: {score}"


def test_idioms_are_not_called_executed_where_ordinary_ones_wait():
    """Two slots each on a core of five: more of them take longer by the front end, idioms or not."""
    machine = drawn([IDIOMS], 743346101)
    core = (SimulatedBackend(machine, noise=NOISE), lambda subject: idle(machine, subject))
    assert scored(IDIOMS, [core]).wrong == []


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


def test_the_stack_pointer_is_followed():
    """Simulated front ends do; where pushes and pops are slow for other reasons, nothing is told."""
    probe = PROBES["stack-engine"]
    some = [probe, MOVES, PROBES["memory-renaming"]]
    machines = [drawn(some, SEED + number, ports=12) for number in range(CORES)]
    machines += [draw_machine(SEED + number, forms_of(some, "x86-64")) for number in range(CORES)]
    found = [facts(probe, SimulatedBackend(machine, noise=NOISE))[0].answer for machine in machines]
    assert set(found) <= {CoreAnswer.PRESENT, CoreAnswer.NONE}, f"seed {SEED}"
    assert CoreAnswer.PRESENT in found[:CORES], f"seed {SEED}: {found}"


def test_narrow_writes_are_merged():
    """Simulated narrow writes read the whole register; of flags the carry is a register of its own."""
    probe = PROBES["partial-registers"]
    answers: dict[bool, list[CoreAnswer]] = {True: [], False: []}
    for number in range(CORES):
        machine = draw_machine(SEED + number, forms_of([probe], "x86-64"), ports=12)
        for fact in facts(probe, SimulatedBackend(machine, noise=NOISE)):
            answers["flags" in fact.subject].append(fact.answer)
    assert set(answers[False]) <= {CoreAnswer.MERGED, CoreAnswer.NONE}, f"seed {SEED}"
    assert set(answers[True]) <= {CoreAnswer.APART, CoreAnswer.NONE}, f"seed {SEED}"
    assert CoreAnswer.MERGED in answers[False], f"seed {SEED}"
    assert CoreAnswer.APART in answers[True], f"seed {SEED}"


@pytest.mark.parametrize(
    ("cycles", "answer"), [(4.0, CoreAnswer.MERGED), (3.0, CoreAnswer.MERGED), (0.5, CoreAnswer.APART)]
)
def test_merging_may_take_less_than_an_operation(cycles, answer):
    """A Zen 3 merges the low part of a vector in a cycle, behind a multiplication of three."""
    probe = PROBES["partial-registers"]
    (case,) = (case for case in probe.cases("x86-64") if "XMM" in case.subject)
    by_part = {point.part: point.lines for point in case.points}
    assert by_part["waits"] == by_part["asked"][:1], "the multiplication alone waits for itself"
    found = {"asked": cycles, "waits": 3.0, "free": 0.5}
    readings = {(part, 0): Interval(value - 0.03, value + 0.03) for part, value in found.items()}
    assert probe.judge(case, Readings(readings, {})).answer == answer


def test_cores_without_early_results():
    """Every result of a simulated core comes to all its readers at once."""
    probe = PROBES["consumers"]
    found = facts(probe, SimulatedBackend(drawn([probe, MOVES], SEED), noise=NOISE))
    told = [fact for fact in found if fact.is_resolved]
    assert len(told) >= 0.8 * len(found), f"seed {SEED}"
    assert [fact for fact in told if abs(fact.value) > max(fact.error, 0.1)] == [], f"seed {SEED}"
    assert measured_behaviour(found, isa="x86-64").early == {}
