"""Branches on one condition, on predictors that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import mode

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.branches import correlated
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import NUMBERS, instruction
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import drawn, facts
from tests.support.made.readings import DrawnCore

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 100
PROBE = PROBES["correlated-branches"]


class Predictor(DrawnCore):
    """One that looks back over so many branches."""

    def __init__(self, seed, steady=1.0):
        super().__init__(seed, steady)
        self.reach = self.draw.choice((4, 10, 40, 200))
        self.wrong, self.plain = self.draw.uniform(8, 25), self.draw.uniform(4, 12)

    def take(self, part, between):
        second = {"same sign": self.reach <= between, "another sign": True, "always the same way": False}[
            part
        ]
        return self.read(self.plain + between / 2 + self.wrong / 2 * (1 + second))


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
    """The three kernels are the same instructions: what they wait for costs none of them more."""
    found = facts(PROBE, SimulatedBackend(drawn([PROBE], SEED)))
    reasons = {fact.reason for fact in found}
    assert reasons == {"branches on random signs take hardly longer"}, f"seed {SEED}"


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
def test_kernels_differ_in_masks_alone(isa):
    """Dependencies are the same, then, and so many branches are between the two."""
    table = load_table(isa)
    for case, between in zip(PROBE.cases(isa), correlated.BRANCHES_BETWEEN, strict=True):
        asked, waits, free = case.points
        assert asked.lines == waits.lines == free.lines
        assert (asked.setup, asked.flags, asked.count) == (waits.setup, waits.flags, waits.count)
        settings = [dict(point.setting.numbers) for point in case.points]
        masks = {NUMBERS[isa][letter] for letter in "ghA"}
        assert {number for number in settings[0] if len({s[number] for s in settings}) > 1} == masks
        taken = [line for line in asked.lines if line.form in ("JNZ (Rel8)", "CBNZX", "BNE")]
        assert len(taken) == asked.count * between
        assert all(instruction(table, line).code for line in asked.lines)


WAYS = {  # what these forms do, with registers in the order of their operands
    "IMUL (R64, R64)": lambda old, to, by: old[to] * old[by],
    "ADD_01 (R64, R64)": lambda old, to, by: old[to] + old[by],
    "AND_21 (R64, R64)": lambda old, to, by: old[to] & old[by],
    "MOV_89 (R64, R64)": lambda old, to, by: old[by],
    "MADDXrrr": lambda old, to, one, other, more: old[one] * old[other] + old[more],
    "MUL": lambda old, to, one, other: old[one] * old[other],
    **dict.fromkeys(["ADD", "ADDXrs"], lambda old, to, one, other: old[one] + old[other]),
    **dict.fromkeys(["AND", "ANDXrs"], lambda old, to, one, other: old[one] & old[other]),
}
LOOKS = {"TEST (R64, R64)": 0, "SUBSXrs": 1, "BLT": 0}  # at which of their registers branches on signs look


def signs(isa, point, times):
    """Signs that the branches of a kernel look at, one after the other."""
    registers = dict.fromkeys(NUMBERS[isa].values(), 0) | dict(point.setting.numbers)
    found = []
    for line in point.lines * times:
        if line.form in WAYS:
            registers[line.registers[0]] = WAYS[line.form](registers, *line.registers) % (1 << 64)
        elif line.form in LOOKS:
            looked = line.registers[LOOKS[line.form]]
            found += [registers[looked] >> 63] if looked != NUMBERS[isa]["b"] else []
    return found[::2], found[1::2]


def share(found):
    return sum(found) / len(found)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_what_the_second_branch_looks_at(isa):
    asked, waits, free = (signs(isa, point, 500) for point in next(iter(PROBE.cases(isa))).points)
    first = asked[0]
    assert first == asked[1] == waits[0] == free[0]
    assert share(first) == pytest.approx(0.5, abs=0.05)
    assert share(waits[1]) == pytest.approx(0.5, abs=0.05)
    assert share([a == b for a, b in zip(*waits, strict=True)]) == pytest.approx(0.5, abs=0.05)
    assert free[1] == [1, 0] * (len(first) // 2)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_branches_in_between_are_apart(isa):
    """By 8 bytes: nearer ones take longer each, and those further apart are in more lines."""
    table, case = load_table(isa), list(PROBE.cases(isa))[1]
    at, begins = 0, []
    for line in case.points[0].lines:
        if line.form in ("JNZ (Rel8)", "CBNZX", "BNE"):
            begins.append(at)
        at += len(instruction(table, line).code)
    assert mode(later - before for before, later in pairwise(begins)) == 8
