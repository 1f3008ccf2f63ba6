"""Atomic operations: on simulated cores, whose times are known, and what readings say."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory import atomics
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import NOISE, drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
PROBE = PROBES["atomics"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
BEHIND = f"XCHG, {atomics.BEHIND}"
ONE = f"XCHG, {atomics.ONE_PLACE}"


def judged(subject, asked, stores=(8.0, 0.0), is_steady=True):
    found = {
        (part, 0): Interval(value - error, value + error, is_steady)
        for part, (value, error) in {"asked": asked, "stores alone": stores}.items()
    }
    return PROBE.judge(CASES[subject], Readings(found, {})).value


def truth(backend, subject):
    """What the simulated core takes for the probe's own kernels."""
    assembler = Assembler(load_table("x86-64"))
    asked, *stores = [
        backend.steady(assembler.kernel(p.lines, p.flags, p.setting)).cycles / p.count
        for p in CASES[subject].points
    ]
    return asked - sum(stores)


def test_what_drawn_cores_take():
    told = 0
    for number in range(6):
        machine = drawn([PROBE], SEED + number)
        backend = SimulatedBackend(machine, noise=NOISE)
        for fact in facts(PROBE, backend):
            if fact.is_resolved:
                told += 1
                right = truth(SimulatedBackend(machine), fact.subject)
                assert fact.value == pytest.approx(right, abs=fact.error + 0.02 * abs(right) + 0.01), (
                    f"seed {SEED}"
                )
    assert told > 3 * len(CASES), f"seed {SEED}"


def test_processes_of_one_core_agree_behind_stores():
    """MFENCE of a Zen 5, eight processes."""
    one, other = (
        judged("MFENCE, behind eight stores, longer than these", (at + 8, 0.0)) for at in (78.4, 81.2)
    )
    assert one.high >= other.value
    assert one.error < 0.06 * one.value


def test_processes_of_one_core_agree_where_little_is_left_behind_stores():
    """LOCK CMPXCHG of a Zen 4, three processes."""
    subject = "LOCK CMPXCHG, behind eight stores, longer than these"
    one, other = (judged(subject, (at, 0.04), (7.99, 0.03)) for at in (8.987, 9.331))
    assert one.meets(other)
    assert one.error < 0.5


@pytest.mark.parametrize("longer", [0.5, 4.0, 5.0, 5.5, 6.0, 8.0, 20.0])
def test_a_quiet_core_says_what_it_takes_behind_stores(longer):
    assert judged(BEHIND, (8.0 + longer, 0.02), (8.0, 0.02)).value == pytest.approx(longer)


def test_processes_of_one_core_agree_on_a_fence():
    """MFENCE of a Zen 5, five processes; and XCHG of a Zen 4."""
    one, other = (judged(f"MFENCE, {atomics.BY_ITSELF}", (at, 0.4)) for at in (76.392, 78.89))
    assert one.high >= other.low
    assert one.error < 0.06 * one.value
    one, other = (judged(ONE, (at, 0.03)) for at in (7.497, 7.672))
    assert one.meets(other)
    assert judged(ONE, (20.0, 1.0)).error == pytest.approx(1.0)


def test_behind_stores_it_is_what_they_do_not_take_anyway():
    assert judged(BEHIND, (30.0, 0.3)).value == pytest.approx(22.0)
    assert judged(ONE, (30.0, 0.3)).value == pytest.approx(30.0)


@pytest.mark.parametrize(("value", "error"), [(20.0, 2.0), (2.0, 0.6)])
def test_how_well_a_time_has_to_be_known(value, error):
    assert judged(ONE, (value, error * 0.95)).value == pytest.approx(value)
    assert judged(ONE, (value, error * 0.55)).value == pytest.approx(value)
    with pytest.raises(Unresolved, match="differ"):
        judged(ONE, (value, error * 1.05))
    with pytest.raises(Unresolved, match="differ"):
        judged(ONE, (value, 0.01), is_steady=False)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_operations_and_stores_never_meet(isa):
    """Stores in front go to other lines than what is asked about, and each to its own."""
    for case in PROBE.cases(isa):
        if not case.subject.endswith(atomics.BEHIND):
            continue
        asked, alone = case.points
        stores = [_line(point, text) for point in (alone,) for text in point.lines]
        assert len(set(stores)) == len(stores) == atomics.STORES_BEFORE
        own = [_line(asked, text) for text in asked.lines[atomics.STORES_BEFORE :] if len(text.registers) > 1]
        assert not set(own) & set(stores)


def _line(point, text):
    """The line of memory that an instruction's pointer leads to, of those that are set."""
    places = dict(point.setting.pointers)
    bases = [number for number in text.registers if number in places] or [text.registers[0]]
    return (places.get(bases[0], 0) + text.at) // 64
