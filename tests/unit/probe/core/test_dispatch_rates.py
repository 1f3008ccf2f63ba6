"""How many instructions a cycle takes: on cores whose width is drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import instruction
from cyclescope.probe.core import dispatch
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.simulate.front_end import FrontEnd
from tests.support.made.probed import NOISE, drawn, facts, shared_slots

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 20
PROBE = PROBES["dispatch"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
ANY = CASES[dispatch.ANY_KIND]


def test_widths_of_drawn_cores():
    wrong, told = [], 0
    for number in range(CORES):
        machine = drawn([PROBE], SEED + number)
        for fact in facts(PROBE, SimulatedBackend(machine, noise=NOISE)):
            if fact.subject == dispatch.ANY_KIND and fact.is_resolved:
                told += 1
                off = abs(fact.value - machine.core.width) - fact.error
                wrong += [(SEED + number, fact, machine.core.width)] if off > 0.02 * fact.value else []
    assert wrong == []
    assert told > CORES / 4, f"seed {SEED}: {told}"


def judged(*rates, error=0.005, more=None):
    """Rates of each mix with one NOP behind each instruction, and with three; `more` are other readings."""
    points = [point for point in ANY.points if dispatch.NOPS_BEHIND in point.part]
    found = {
        (point.part, 0): Interval((1 - error) / rate, (1 + error) / rate)
        for point, rate in zip(points, rates, strict=True)
    }
    return PROBE.judge(ANY, Readings(found | (more or {}), {})).value


def test_units_and_nops_that_share_a_place_are_no_width():
    assert judged(8.0, 8.0, 8.0, 7.98, 5.0, 6.0).value == pytest.approx(8.0, abs=0.06)
    with pytest.raises(Unresolved, match="no mixes agree"):
        judged(6.0, 8.0, 6.0, 8.0, 6.0, 8.0)
    with pytest.raises(Unresolved, match="other rates"):
        judged(6.0, 6.0, 8.0, 8.0, 6.0, 8.0)


@pytest.mark.parametrize(("apart", "told"), [(0.02, True), (0.04, False)])
def test_how_near_two_rates_are(apart, told):
    rates = 8.0, 8.0 * (1 - apart), 4.0, 8.0, 4.0, 8.0
    if told:
        assert judged(*rates).low < 8.0 * (1 - apart)
    else:
        with pytest.raises(Unresolved, match="no mixes agree"):
            judged(*rates)


def test_where_nops_share_slots_mixes_without_them_tell():
    """Rates of a Zen 4, where a NOP takes the slot of the addition before it."""
    rates = 8.0, 10.2, 6.0, 8.0, 8.9, 9.5
    assert judged(*rates, more=shared_slots(6.0, 6.0, 6.0, 6.0)).value == pytest.approx(6.0, abs=0.05)
    with pytest.raises(Unresolved, match="no mixes agree"):
        judged(*rates)


def test_widths_of_cores_whose_nops_share_slots():
    """With each other: moves tell it on cores with few units."""
    wrong, told = [], 0
    for number in range(CORES):
        machine = drawn([PROBE], SEED + number, width=6)
        backend = SimulatedBackend(machine, noise=NOISE, front_end=FrontEnd(pairs=True))
        for fact in facts(PROBE, backend):
            if fact.subject == dispatch.ANY_KIND and fact.is_resolved:
                told += 1
                wrong += [(SEED + number, fact)] if abs(fact.value - 6) > 0.1 + fact.error else []
    assert wrong == []
    assert told > CORES / 2, f"seed {SEED}"


@pytest.mark.parametrize(("isa", "sizes"), [("x86-64", range(1, 13)), ("aarch64", (4,)), ("riscv64", (2, 4))])
def test_nops_are_as_long_as_they_say(isa, sizes):
    table = load_table(isa)
    lengths = []
    for case in PROBE.cases(isa):
        if case.subject.startswith("NOPs of"):
            size = int(case.subject.split()[2])
            lengths.append(size)
            assert {len(instruction(table, one).code) for one in case.points[0].lines} == {size}
    assert lengths == list(sizes)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_mixes_have_as_many_nops_as_they_say(isa):
    for case in PROBE.cases(isa):
        for point in case.points if case.subject == dispatch.ANY_KIND else ():
            if dispatch.NOPS_BEHIND not in point.part:
                continue
            nops = int(point.part.split()[-1])
            names = [line.form for line in point.lines]
            assert names.count(names[1]) * (nops + 1) == len(names) * nops
            assert names[nops] != names[nops + 1]
            assert point.count == len(names)
