"""Which instructions do nothing at all, on every instruction set."""

from __future__ import annotations

import pytest

from cyclescope.isa.registry import instruction_sets
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.nops import BeforeNop, is_nop, trails


@pytest.mark.parametrize("record", instruction_sets(), ids=lambda record: record.name)
def test_the_nop_of_every_instruction_set_is_one(record):
    table, roles = load_table(record.name), record.roles
    addition = table[roles.plain["addition"][0]]
    assert is_nop(table[roles.nop])
    assert not is_nop(addition)
    assert trails(addition, table[roles.nop], {BeforeNop.GENERAL})


def test_other_nops_of_a_table_are_some_too():
    assert is_nop(load_table("x86-64")["NOP_W"])
