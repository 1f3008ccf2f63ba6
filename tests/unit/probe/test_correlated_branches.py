"""Branches on one condition, on predictors that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.branches import correlated
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import NUMBERS, instruction
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.probed import drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 100
PROBE = PROBES["correlated-branches"]


class Predictor:
    """One that looks back over so many branches."""

    def __init__(self, seed, steady=1.0):
        self.draw, self.steady = random.Random(seed), steady
        self.reach = self.draw.choice((4, 10, 40, 200))
        self.wrong, self.plain = self.draw.uniform(8, 25), self.draw.uniform(4, 12)

    def take(self, part, between):
        second = {"same sign": self.reach <= between, "another sign": True, "always the same way": False}[
            part
        ]
        value = self.plain + between / 2 + self.wrong / 2 * (1 + second)
        value *= self.draw.gauss(1, 0.003)
        if self.draw.random() > self.steady:
            return Interval(value * 0.9, value * self.draw.uniform(1, 2), is_steady=False)
        return Interval(value * 0.99, value * 1.01)


@pytest.mark.parametrize("steady", [1.0, 0.7])
def test_what_drawn_predictors_know(steady):
    told = 0
    for number in range(CORES):
        core = Predictor(SEED + number, steady)
        for case, between in zip(PROBE.cases("x86-64"), correlated.BRANCHES_BETWEEN, strict=True):
            found = {(point.part, 0): core.take(point.part, between) for point in case.points}
            try:
                verdict = PROBE.judge(case, Readings(found, {}))
            except Unresolved:
                continue
            told += 1
            known = CoreAnswer.PRESENT if core.reach > between else CoreAnswer.ABSENT
            assert verdict.answer is known, f"seed {SEED + number}"
    assert told > 3 * CORES if steady == 1.0 else told > 0


def test_simulated_cores_predict_nothing_wrongly():
    found = facts(PROBE, SimulatedBackend(drawn([PROBE], SEED)))
    assert {fact.reason for fact in found} == {"branches on random signs take hardly longer"}


@pytest.mark.parametrize(("longer", "told"), [(0.9, False), (1.2, True)])
def test_how_much_a_random_sign_has_to_cost(longer, told):
    case = next(iter(PROBE.cases("x86-64")))
    values = {"same sign": 10.0, "another sign": 10.0 + longer, "always the same way": 10.0}
    found = Readings({(part, 0): Interval(value, value) for part, value in values.items()}, {})
    if told:
        assert PROBE.judge(case, found).answer is CoreAnswer.PRESENT
    else:
        with pytest.raises(Unresolved, match="hardly longer"):
            PROBE.judge(case, found)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_kernels_differ_in_one_register_alone(isa):
    """What the second branch looks at; between both are so many others."""
    table = load_table(isa)
    for case, between in zip(PROBE.cases(isa), correlated.BRANCHES_BETWEEN, strict=True):
        asked, waits, free = (point.lines for point in case.points)
        assert len(asked) == len(waits) == len(free)
        looks = [
            (one, other, third) for one, other, third in zip(asked, waits, free, strict=True) if one != other
        ]
        assert [{one.form, other.form, third.form} for one, other, third in looks] == [{looks[0][0].form}] * 4
        registers = {tuple(lines[n].registers[0] for lines in looks[:1] for n in range(3))}
        assert len(registers.pop()) == 3
        taken = [line for line in asked if NUMBERS[isa]["b"] in line.registers]
        assert len(taken) == 4 * between
        assert all(instruction(table, line).code() for line in asked)
