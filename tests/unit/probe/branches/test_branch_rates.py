"""How many branches a cycle takes."""

from __future__ import annotations

import pytest

from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import instruction
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved

PROBE = PROBES["branch-rates"]
ISAS = ["x86-64", "aarch64", "riscv64"]


@pytest.mark.parametrize("isa", ISAS)
def test_an_answer_is_branches_by_cycles(isa):
    for case in PROBE.cases(isa):
        (point,) = case.points
        found = {(point.part, point.x): Interval(0.495, 0.505)}
        assert PROBE.judge(case, Readings(found, {})).value.value == pytest.approx(2.0, abs=0.05)
        with pytest.raises(Unresolved, match="where the code lies"):
            PROBE.judge(case, Readings({(point.part, point.x): Interval(0.4, 0.6)}, {}))


@pytest.mark.parametrize("isa", ISAS)
def test_jumps_are_as_far_apart_as_they_say(isa):
    """A jump, and what fills the bytes up to the next."""
    table = load_table(isa)
    for case in PROBE.cases(isa):
        (point,) = case.points
        if case.subject.startswith("taken"):
            spacing = int(case.subject.split()[1])
            code = [instruction(table, line).code for line in point.lines]
            begins, at = [], 0
            for line, one in zip(point.lines, code, strict=True):
                begins += [at] if line.form.partition(" ")[0] == point.lines[0].form.partition(" ")[0] else []
                at += len(one)
            assert begins[: point.count] == [spacing * n for n in range(point.count)]
            assert len(code[0]) <= 4, "in one line of code, wherever that is a multiple of 4"
        else:
            branches = [line for line in point.lines if line.form == point.lines[0].form]
            assert len(branches) == point.count


def test_what_depends_a_little_on_where_code_lies_is_less_sure():
    case = next(iter(PROBE.cases("x86-64")))
    (point,) = case.points
    verdict = PROBE.judge(case, Readings({(point.part, point.x): Interval(1.0, 1.15, is_steady=False)}, {}))
    assert verdict.confidence == "medium"
    assert (verdict.value.low, verdict.value.high) == (pytest.approx(1 / 1.15), pytest.approx(1.0, abs=0.01))
    with pytest.raises(Unresolved) as error:
        PROBE.judge(case, Readings({(point.part, point.x): Interval(0.5, 1.0, is_steady=False)}, {}))
    assert error.value.detail.text == "1.00 to 2.01 per cycle"


@pytest.mark.parametrize(
    ("subject", "cycles", "right"),
    [
        ("not taken", 8.0416 / 16, 2.0),
        ("taken, 8 bytes apart", 64.74 / 64, 1.0),
        ("taken, 64 bytes apart", 65.25 / 64, 1.0),
    ],
)
def test_the_branch_of_the_loop_is_none_of_those_that_are_asked_about(subject, cycles, right):
    """Readings of a Zen 4, which takes one branch a cycle that is taken, or two that are not."""
    case = next(case for case in PROBE.cases("x86-64") if case.subject == subject)
    (point,) = case.points
    found = Readings({(point.part, point.x): Interval(cycles - 0.001, cycles + 0.001)}, {})
    value = PROBE.judge(case, found).value
    assert value.low <= right <= value.high
    assert value.error < 0.02 * right
