"""Latency kernels of AArch64 and RISC-V carry their pair's dependency, and no other of the form."""

from __future__ import annotations

import pytest

from benchmarks.lib.taint import ASTRAY, KEEPING, THROUGH, Marks, around, cycles, verdicts
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.table import load_table
from cyclescope.kernel.aarch64.registers import POOLS as AARCH64
from cyclescope.kernel.chain import Use
from cyclescope.kernel.cycle import NOP
from cyclescope.kernel.riscv64.registers import POOLS as RISCV64
from tests.support.code.fixed_width import ISAS, planner, sample

POOLS = {"aarch64": AARCH64, "riscv64": RISCV64}


@pytest.mark.parametrize("isa", ISAS)
def test_the_pair_alone_closes_the_chain(isa):
    found = [verdict for form in sample(isa) for verdict in verdicts(planner(isa), form)]
    assert len(found) > 1000
    bad = [f"{v.form} {v.source} -> {v.target}: {v.text}" for v in found if not v.good]
    assert not bad


# Forms with more than one register per operand, with memory as wide as two, and with the stack's base.
SPECIAL = [
    ("aarch64", "CASPX"),
    ("aarch64", "FSCALE_4Z4Z_D"),
    ("aarch64", "ADCSXr"),
    ("riscv64", "AMOCAS_Q"),
    ("riscv64", "C_FSDSP"),
    ("riscv64", "C_LDSP"),
    ("riscv64", "VWADD_WV@e32,m2"),
]


@pytest.mark.parametrize(("isa", "form_id"), SPECIAL)
def test_special_operands(isa, form_id):
    found = list(verdicts(planner(isa), load_table(isa)[form_id]))
    assert found
    assert all(verdict.good for verdict in found)


@pytest.mark.parametrize("isa", ISAS)
def test_closed_chains_of_links_pass_every_link_and_controls_are_cut(isa):
    found = [row for row in cycles(planner(isa)) if row[0] != NOP]
    assert len(found) > 100
    for name, variant, passed, length in found:
        if variant == "cut":
            assert passed <= KEEPING, name
        else:
            assert passed == length, name


# --- the check itself ---------------------------------------------------------------------------


def ways(isa, form_id, source, target, change=lambda items: items):
    """By which ways a mark comes around a chain whose items are changed."""
    form = load_table(isa)[form_id]
    chains = planner(isa).plan(form).chains
    experiments = planner(isa).latency(form)
    chain, experiment = next(
        both
        for both in zip(chains, experiments, strict=True)
        if (both[0].source, both[0].target) == (source, target)
    )
    pair = next(p for p in pairs(form) if (p.source.name, p.target.name) == (source, target))
    both = zip(chain.items, experiment.kernel.body, strict=True)
    items = [(made, isinstance(item, Use)) for item, made in both]
    return around(Marks(POOLS[isa], experiment.kernel.state.general), change(items), pair)


def test_a_chain_without_its_link_is_open():
    assert ways("riscv64", "LD", "[op2].data", "op1") == THROUGH
    assert not ways("riscv64", "LD", "[op2].data", "op1", lambda items: items[:1]) & THROUGH
    assert ways("aarch64", "FCVTZSUXDr", "op2", "op1") == THROUGH
    assert not ways("aarch64", "FCVTZSUXDr", "op2", "op1", lambda items: items[:1]) & THROUGH


def test_a_link_that_goes_elsewhere_leaves_the_chain_open():
    def wrong(items):
        *others, (link, tested) = items
        return [*others, (type(link)(link.form, (9, *link.registers[1:]), 0, link.immediates), tested)]

    assert not ways("riscv64", "LD", "[op2].data", "op1", wrong) & THROUGH


def test_what_is_not_cut_is_another_way():
    assert ways("aarch64", "ADCSXr", "op2", "NZCV") == THROUGH

    def uncut(items):
        return [(made, tested) for made, tested in items if tested]

    assert ways("aarch64", "MLAv4i32", "op4", "op1") == THROUGH
    assert ways("aarch64", "MLAv4i32", "op4", "op1", uncut) & ASTRAY
