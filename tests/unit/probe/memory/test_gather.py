"""Gathers: what their registers hold, what readings say, and drawn cores whose times are known."""

from __future__ import annotations

import random
import struct

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory import gather
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import NOISE, drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
PROBE = PROBES["gather"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}


def judged(value, error, is_steady=True):
    found = {("asked", 0): Interval(value - error, value + error, is_steady)}
    return PROBE.judge(next(iter(CASES.values())), Readings(found, {})).value


def test_how_well_a_time_has_to_be_known():
    for error in (0.9, 1.9 / 2):
        assert judged(10.0, error).value == pytest.approx(10.0)
    for error, is_steady in ((1.1, True), (0.1, False)):
        with pytest.raises(Unresolved, match="differ"):
            judged(10.0, error, is_steady)


@pytest.mark.parametrize("width", [4, 8])
def test_how_many_lines_indices_lead_to(width):
    lines = {}
    for spread in gather.GATHERED_PLACES:
        some = struct.unpack(f"<{64 // width}{'i' if width == 4 else 'q'}", gather.indices(width, spread))
        lines[spread.name] = len({one // 64 for one in some})
        places = {one % 64 for one in some}
        assert (len(places) == 1) == (spread.elements == 0)
    assert set(lines.values()) == {1, 64 // width, 64 // width + 1} or set(lines.values()) == {1, 64 // width}
    assert lines["one element"] == lines["in one line"] == 1


def test_masks_say_what_is_left_out():
    halves = {
        case.subject: case.points[0].setting for case in PROBE.cases("x86-64") if "half" in case.subject
    }
    for subject, setting in halves.items():
        if ", K" in subject:
            assert dict(setting.masks)[gather.MASK_REGISTER] == 0x5555555555555555
        else:
            mask = dict(setting.vectors)[gather.VECTOR_MASK]
            width = 8 if "QQ" in subject else 4
            assert mask[:width] == b"\xff" * width
            assert mask[width : 2 * width] == bytes(width)
    (first, *_) = [case for case in PROBE.cases("aarch64") if "half" in case.subject]
    assert dict(first.points[0].setting.masks)[gather.MASK_REGISTER] & 0x1111 == 0x0101, "a bit per byte"


def test_scatters_are_known_to_a_twentieth():
    """One run of a Zen 4 saw 12.0 cycles, another 13.0; gathers are as the looks say."""
    for case in PROBE.cases("x86-64"):
        taken = PROBE.judge(case, Readings({("asked", 0): Interval(11.9, 12.1)}, {})).value
        assert taken.error == pytest.approx(0.6 if "SCATTER" in case.subject else 0.1)


def test_what_drawn_cores_take():
    told = 0
    for number in range(3):
        machine = drawn([PROBE, PROBES["accesses"], PROBES["zero-idioms"]], SEED + number)
        truth, assembler = SimulatedBackend(machine), Assembler(load_table("x86-64"))
        for fact in facts(PROBE, SimulatedBackend(machine, noise=NOISE)):
            if fact.is_resolved:
                told += 1
                (p,) = CASES[fact.subject].points
                right = truth.steady(assembler.kernel(p.lines, p.flags, p.setting)).cycles / p.count
                assert fact.value == pytest.approx(right, rel=0.03), f"seed {SEED}"
    assert told > 1.5 * len(CASES), f"seed {SEED}: {told}"
