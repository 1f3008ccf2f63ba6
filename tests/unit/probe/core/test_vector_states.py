"""Mixed VEX and SSE: cores that save, merge or do neither, and simulated ones, whose times are known."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import NOISE, drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
PROBE = PROBES["vector-states"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
ONE, EIGHT = "VEX of 256 bits and SSE in turn", "VEX of 256 bits and SSE in turn, 8 of each"
SET, CLEARED = "write by SSE, upper half set", "write by SSE, upper half cleared"


def judged(subject, is_steady=True, **parts):
    """What is said of readings by part, each a value and its error."""
    found = {(part, 0): Interval(value - error, value + error) for part, (value, error) in parts.items()}
    if not is_steady:
        found["asked", 0] = Interval(found["asked", 0].low, found["asked", 0].high, is_steady=False)
    return PROBE.judge(CASES[subject], Readings(found, {}))


def values(*longer):
    """What is told of one and of eight of each in turn, that take so much longer than two and 16 cycles."""
    return [
        judged(subject, asked=(alone + more, 0.02), beside=(alone, 0.02)).value.value
        for subject, alone, more in zip((ONE, EIGHT), (2.0, 16.0), longer, strict=True)
    ]


def test_transitions_are_as_long_with_eight_of_each_and_merging_is_not():
    assert values(140.0, 140.0) == pytest.approx([140, 140])
    assert values(1.0, 8.0) == pytest.approx([1, 8])
    assert values(0.0, 0.0) == pytest.approx([0, 0], abs=0.01)


def test_kernels_have_so_many_of_each():
    for subject, count in ((ONE, 1), (EIGHT, 8)):
        forms = [line.form for line in CASES[subject].points[0].lines]
        assert forms == ["VADDPS (YMM, YMM, YMM)"] * count + ["ADDPS (XMM, XMM)"] * count
    side = CASES["8 of SSE side by side, upper halves set"].points[0]
    assert len({line.registers[0] for line in side.lines}) == len(side.lines) == len(side.setup) == 8


def test_what_is_compared_differs_in_what_is_asked_alone():
    for subject, case in CASES.items():
        asked, beside = case.points[0], case.points[-1]
        if "write" in subject or subject == "VZEROUPPER":
            continue
        if "alone" in subject or "upper halves" in subject:
            assert asked.lines == beside.lines
            assert asked.setup != beside.setup
        else:
            assert [line.registers for line in beside.lines if "V" in line.form[:1]] != []
            assert all(line.form.startswith("V") for line in beside.lines)
            assert len(asked.lines) == len(beside.lines)


@pytest.mark.parametrize(("asked", "beside"), [(2.0, 2.0), (142.0, 2.0)])
def test_how_well_a_difference_has_to_be_known(asked, beside):
    most = max(0.25, 0.1 * (asked - beside))
    for share in (0.55, 0.95):
        verdict = judged(ONE, asked=(asked, share * most), beside=(beside, 0.0))
        assert verdict.value.value == pytest.approx(asked - beside)
    with pytest.raises(Unresolved, match="differ"):
        judged(ONE, asked=(asked, 1.05 * most), beside=(beside, 0.0))
    with pytest.raises(Unresolved, match="differ"):
        judged(ONE, is_steady=False, asked=(asked, 0.01), beside=(beside, 0.0))


def test_a_write_waits_for_its_register_or_not():
    levels = {"waits": (3.0, 0.02), "free": (0.5, 0.01)}
    assert judged(SET, asked=(3.0, 0.02), **levels).answer is CoreAnswer.MERGED
    assert judged(SET, asked=(4.0, 0.02), **levels).answer is CoreAnswer.MERGED, "merging takes time itself"
    assert judged(CLEARED, asked=(0.5, 0.01), **levels).answer is CoreAnswer.APART
    for asked in ((1.75, 0.02), (1.5, 1.2)):
        with pytest.raises(Unresolved, match="not clearly"):
            judged(SET, asked=asked, **levels)


def test_what_drawn_cores_take():
    """Simulated cores have no upper halves, but some have writes by SSE that wait for their register."""
    told = 0
    for number in range(4):
        machine = drawn([PROBE], SEED + number)
        truth, assembler = SimulatedBackend(machine), Assembler(load_table("x86-64"))
        for fact in facts(PROBE, SimulatedBackend(machine, noise=NOISE)):
            if fact.is_resolved:
                told += 1
                right = true_answer(truth, assembler, CASES[fact.subject])
                if fact.value is None:
                    assert fact.answer is right, f"seed {SEED}"
                else:
                    assert abs(fact.value - right) <= fact.error + 0.05, f"seed {SEED}: {fact}"
    assert told > 3 * len(CASES), f"seed {SEED}: {told}"


def true_answer(backend, assembler, case):
    """What the noiseless core takes longer; whether its model has the write wait for what was there."""
    if "write" in case.subject:
        waits = "op1.old->op1" in backend.machine.forms["CVTDQ2PS (XMM, XMM)"].latencies
        return CoreAnswer.MERGED if waits else CoreAnswer.APART
    asked, beside = (
        backend.steady(assembler.kernel(point.lines, point.flags, point.setting)).cycles
        for point in case.points
    )
    return asked - beside


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_others_have_no_upper_halves_to_keep(isa):
    assert list(PROBE.cases(isa)) == []
    assert PROBE.why_not[isa]
