"""Drawn machines: repeatable, plausible, and complete."""

from __future__ import annotations

import pytest

from benchmarks.drawn.features import with_narrow_units
from cyclescope.isa.dataflow import is_old, overwritten, pairs
from cyclescope.model.machine import DRAWN
from cyclescope.simulate.cost import template
from cyclescope.simulate.draw import draw_machine
from cyclescope.simulate.simulator import Simulator
from cyclescope.simulate.units import Units

SEEDS = range(40)


@pytest.fixture(scope="module")
def some(table):
    return list(table)[::37]


@pytest.fixture(scope="module")
def machines(some):
    return [draw_machine(seed, some) for seed in SEEDS]


def test_equal_seeds_draw_equal_machines(some, machines):
    assert draw_machine(5, some) == machines[5]
    assert len({repr(machine.forms) for machine in machines}) == len(machines)


def test_a_form_costs_the_same_whatever_it_is_drawn_with(some, machines):
    few = draw_machine(5, some[10:30])
    assert few.core == machines[5].core
    assert few.forms == {form.id: machines[5].forms[form.id] for form in some[10:30]}


def test_machines_are_of_the_sizes_that_exist(machines):
    for machine in machines:
        assert machine.provenance.kind == DRAWN
        assert 4 <= machine.core.width <= 8
        assert 4 + 2 <= len(machine.ports) <= 12 + 2  # two dividers
        assert 128 <= machine.core.reorder_buffer <= 512
        for scheduler in machine.core.schedulers:
            assert 16 <= scheduler.entries <= 128
            assert max(scheduler.ports) < len(machine.ports)
    assert len({len(m.ports) for m in machines}) > 5
    assert len({m.core.width for m in machines}) == 5


def test_widths_and_ports_can_be_asked_for(some):
    machine = draw_machine(1, some[:5], width=5, ports=11)
    assert machine.core.width == 5
    assert len(machine.ports) == 11 + 2


def test_every_form_has_a_cost_that_the_engine_takes(some, machines):
    for machine in machines[:8]:
        engine = Simulator(machine).engine
        assert set(machine.forms) == {form.id for form in some}
        for form in some:
            needs = template(form, machine.forms[form.id], machine.core, Units.of(machine))
            assert engine.add(needs) >= 0
            assert len(needs.work) == sum(op.count for op in machine.forms[form.id].operations)
        for cost in machine.forms.values():
            assert cost.slots >= 1
            assert all(op.ports and max(op.ports) < len(machine.ports) for op in cost.operations)


def test_every_pair_that_can_be_measured_has_a_latency(some, machines):
    moves = 0
    for form in some:
        cost = machines[0].forms[form.id]
        wanted = {f"{p.source.name}->{p.target.name}" for p in pairs(form) if not p.excluded}
        moves += cost.eliminated
        measured = {pair for pair in cost.latencies if not is_old(pair)}
        assert measured == (set() if "nop" in form.attributes else wanted), form.id
    assert moves < len(some) / 10


def test_vex_and_legacy_cost_the_same(table):
    machine = draw_machine(2, table)
    for name in ("ADDPS", "MULPD", "PSHUFB", "PMADDWD", "PMULLW", "SHUFPS", "DIVPD"):
        legacy = next(f for f in table if f.mnemonic == name and f.vector_width == 128 and f.memory < 0)
        vex = next(
            f
            for f in table
            if f.mnemonic == "V" + name and f.vector_width == 256 and f.memory < 0 and "vex" in f.attributes
        )
        assert machine.forms[legacy.id].operations == machine.forms[vex.id].operations, name


def test_classes_are_few_and_dividers_unpipelined(table):
    machine = draw_machine(7, table)
    sets = {op.ports for cost in machine.forms.values() for op in cost.operations}
    assert 6 <= len(sets) <= 16
    busy = {op.ports for cost in machine.forms.values() for op in cost.operations if op.cycles > 1}
    assert busy == {(len(machine.ports) - 2,), (len(machine.ports) - 1,)}


def test_some_mnemonics_wait_for_what_they_overwrite(table):
    machine = draw_machine(3, table)
    found = {form_id: cost for form_id, cost in machine.forms.items() if any(map(is_old, cost.latencies))}
    able = [form for form in table if overwritten(form)]
    assert 0.02 * len(able) < len(found) < 0.15 * len(able)
    for form_id, cost in found.items():
        known = {f"{pair.source.name}->{pair.target.name}" for pair in overwritten(table[form_id])}
        old = {pair: cycles for pair, cycles in cost.latencies.items() if is_old(pair)}
        assert set(old) == known, form_id
        assert all(1 <= cycles <= max(cost.latencies.values()) for cycles in old.values()), form_id


NARROW = {
    "VPADDD (ZMM, ZMM, ZMM)": 2.0, "VPADDD (YMM, YMM, YMM)": 1.0, "VPMOVWB (YMM, ZMM)": 2.0,
    "VPBROADCASTD (ZMM, R32)": 1.0, "VMOVUPS (ZMM, M512)": 2.0, "VMOVUPS (YMM, M256)": 1.0,
}  # fmt: skip


@pytest.mark.parametrize(("form", "turns"), NARROW.items())
def test_units_of_half_the_width_take_the_widest_vectors_twice(table, form, turns):
    whole = draw_machine(3, list(table))
    found = with_narrow_units(whole, list(table)).forms[form]
    assert found.slots == whole.forms[form].slots
    for one, before in zip(found.operations, whole.forms[form].operations, strict=True):
        assert (one.ports, one.count, one.cycles) == (before.ports, before.count, turns * before.cycles)


def test_what_is_loaded_for_all_of_a_vector_is_loaded_once(table):
    """One element: the addition takes two turns of its port, the load one."""
    machine = draw_machine(3, list(table))
    found = with_narrow_units(machine, list(table)).forms["VPADDD (ZMM, ZMM, M32_1to16)"].operations
    loads = machine.forms["MOV (R64, M64)"].operations[0].ports
    assert {op.ports == loads: op.cycles for op in found} == {True: 1.0, False: 2.0}
