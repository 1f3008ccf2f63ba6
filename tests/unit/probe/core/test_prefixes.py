"""Prefixes: instructions of the same bytes, what readings say, and drawn cores whose times are known."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler, instruction
from cyclescope.probe.core import prefixes
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import NOISE, drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
PROBE = PROBES["prefixes"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
ONE = "ADD of 16 bits, constant of 16, decoded each time"
TABLE = load_table("x86-64")


def judged(asked, beside, error, is_steady=True):
    found = {
        ("asked", 0): Interval(asked - error, asked + error, is_steady),
        ("beside", 0): Interval(beside, beside),
    }
    return PROBE.judge(CASES[ONE], Readings(found, {}))


def test_what_is_compared_has_as_many_bytes_and_the_prefixes_it_is_said_to_have():
    for one in prefixes.PREFIXED:
        for asked, beside in zip(
            *(point.lines for point in CASES[f"{one.subject}, in a short loop"].points), strict=True
        ):
            codes = [instruction(TABLE, line).code for line in (asked, beside)]
            assert len(codes[0]) == len(codes[1])
            assert [code.count(b"\x3e") for code in codes] == list(one.prefixes)
            short = [code.startswith((b"\x66", b"\x3e\x66")) for code in codes]
            assert short == ["16" in one.subject] * 2, "neither has another operand size"


def test_constants_are_shorter_in_what_is_asked_alone():
    for one in prefixes.PREFIXED[:3]:
        assert "I16" in one.asked
        assert "I16" not in one.beside


def test_long_loops_have_more_instructions_than_cores_keep_and_fit():
    for subject, case in CASES.items():
        for point in case.points:
            assert len({line.registers[0] for line in point.lines}) == 7, "none waits for another"
            if subject.endswith(prefixes.DECODED_AGAIN):
                assert len(point.lines) == point.count > 1.15 * 6144, "of a Zen 5"
                assert len(Assembler(TABLE).kernel(point.lines, point.flags).code) < 64_000
            else:
                assert len(point.lines) == point.count < 100


@pytest.mark.parametrize(("asked", "most"), [(0.3, 0.1), (3.3, 0.3)])
def test_how_well_a_difference_has_to_be_known(asked, most):
    for share in (0.55, 0.95):
        assert judged(asked, 0.3, share * most).value.value == pytest.approx(asked - 0.3)
    with pytest.raises(Unresolved, match="differ"):
        judged(asked, 0.3, 1.05 * most)


def test_what_looks_that_differ_leave_is_less_sure():
    verdict = judged(0.33, 0.3, 0.04, is_steady=False)
    assert verdict.confidence == MEDIUM
    assert verdict.value.low <= 0 <= verdict.value.high
    assert judged(3.3, 0.3, 0.01).confidence == HIGH


def test_what_drawn_cores_take():
    """Simulated cores do not decode: what is told is what the instructions take."""
    told = 0
    for number in range(3):
        machine = drawn([PROBE], SEED + number)
        truth, assembler = SimulatedBackend(machine), Assembler(TABLE)
        for fact in facts(PROBE, SimulatedBackend(machine, noise=NOISE)):
            if fact.is_resolved:
                told += 1
                asked, beside = (
                    truth.steady(assembler.kernel(p.lines, p.flags)).cycles / p.count
                    for p in CASES[fact.subject].points
                )
                assert abs(fact.value - (asked - beside)) <= fact.error + 0.02, f"seed {SEED}"
    assert told > 1.5 * len(CASES), f"seed {SEED}: {told}"


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_others_have_no_such_prefixes(isa):
    assert list(PROBE.cases(isa)) == []
    assert PROBE.why_not[isa]
