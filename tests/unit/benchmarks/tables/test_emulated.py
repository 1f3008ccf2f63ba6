"""Kernels under emulation: which forms are drawn, and what is counted of them."""

from __future__ import annotations

import pytest

from benchmarks.tables.emulated import drawn, executed, group_of, judged
from cyclescope.backend.base import OK, SIGNAL, Outcome, Sample
from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table
from tests.support.code.fixed_width import planner

TABLE = load_table("riscv64")
ADD, LOAD, STORE = TABLE["ADD"], TABLE["LD"], TABLE["SD"]


class Backend:
    """Executes what has none of some instructions."""

    def __init__(self, *illegal):
        self.illegal = set(illegal)

    def outcomes(self, kernels):
        for kernel in kernels:
            ids = {instruction.form.id for instruction in kernel.body}
            yield Outcome(SIGNAL, 4) if ids & self.illegal else Outcome(OK)

    def probe(self, kernels):
        return list(self.outcomes(kernels))

    def submit(self, kernels, effort):
        self.samples = [[Sample(1.0, 0.0, o.status)] for o in self.outcomes(kernels)]

    def collect(self):
        return self.samples


def test_every_group_is_drawn_before_any_twice():
    forms = [form for form in select(TABLE, []) if form.configuration is None]
    groups = {group_of(form) for form in forms}
    found = drawn(forms, len(groups), seed=1)
    assert {group_of(form) for form in found} == groups
    assert len(drawn(forms, 200, seed=1)) == 200
    assert drawn(forms, 50, seed=1) == drawn(forms, 50, seed=1) != drawn(forms, 50, seed=2)


def test_there_are_no_more_than_there_are():
    assert set(drawn([ADD, LOAD], 5, seed=1)) == {ADD, LOAD}


@pytest.mark.parametrize(
    ("form", "group"), [(ADD, "BASE r"), (LOAD, "RV64 r memory"), (TABLE["AMOADD_D"], "ZAAMO r atomic")]
)
def test_groups(form, group):
    assert group_of(form) == group


def test_what_the_machine_lacks_is_not_drawn_from():
    assert executed(Backend("LD"), planner("riscv64"), [ADD, LOAD, STORE]) == [ADD, STORE]


def test_counts_and_problems():
    results = judged(Backend(), planner("riscv64"), [ADD])
    (result,) = results.values()
    assert result.forms == 1
    assert result.kernels == result.run == result.measured > 3
    assert result.chains == result.carry > 0
    assert not result.problems
    result = judged(Backend("LD"), planner("riscv64"), [STORE])["RV64 r memory"]
    assert 0 < result.run < result.kernels
    assert result.problems[0].startswith("SD op1 -> [op2].data link: SIGILL")
