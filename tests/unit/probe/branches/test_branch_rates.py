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
        assert PROBE.judge(case, Readings(found, {})).value.value == pytest.approx(2.0, abs=0.01)
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
            code = [instruction(table, line).code() for line in point.lines]
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
    assert (verdict.value.low, verdict.value.high) == (pytest.approx(1 / 1.15), 1.0)
    with pytest.raises(Unresolved) as error:
        PROBE.judge(case, Readings({(point.part, point.x): Interval(0.5, 1.0, is_steady=False)}, {}))
    assert error.value.detail.text == "1.00 to 2.00 per cycle"
