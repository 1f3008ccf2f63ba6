"""What asks for a second look at latencies."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.laws import is_through_memory, may_be_delayed
from cyclescope.infer.timing.link_chains import least_lawful, plain_sequences
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND, FormTiming, Latency, Throughput
from cyclescope.infer.timing.second_looks import latency_questions
from cyclescope.isa.dataflow import overwritten, pairs
from cyclescope.isa.table import load_table
from cyclescope.kernel.cycle import NOP, PLAIN
from cyclescope.kernel.variant import Kind, variant_of
from cyclescope.measure.plan import Planner
from cyclescope.measure.store import Store
from cyclescope.session.machines import load_model


def latency(value, kind=EXACT, **fields):
    return Latency("op1", "op1", value, value, kind, 0.01, **fields)


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, False), (1.0, False), (1.3, True), (2.0, True), (3.0, False), (5.0, False)]
)
def test_what_cuts_a_chain_may_delay_a_short_one(value, expected):
    assert may_be_delayed(latency(value)) is expected


def test_a_bound_tells_no_short_chain():
    assert not may_be_delayed(latency(2.0, UPPER_BOUND))
    assert not may_be_delayed(Latency("op1", "op1", None, None, None, None, reason="why"))


def test_pairs_through_memory():
    form = load_table("x86-64")["ADD (M64, R64)"]
    asked = {
        (pair.source.name, pair.target.name) for pair in pairs(form) if is_through_memory(pair, latency(5.0))
    }
    assert {("op1.data", "op1.data"), ("op2", "op1.data"), ("op1.address", "op1.data")} <= asked
    assert ("op2", "flags.CF") not in asked
    assert not any(is_through_memory(p, latency(9.0, values={"fast": 7.0, "slow": 9.0})) for p in pairs(form))


@pytest.mark.parametrize(
    ("form", "pair", "asked"), [("LOOP (Rel8)", "RCX", True), ("IMUL (R64, R64)", "op1", False)]
)
def test_a_chain_of_jumps_is_always_compared_with_a_filled_one(form, pair, asked):
    """Each may wait for where the one before went, and not for its count."""
    table = load_table("x86-64")
    known = Latency(pair, pair, 17.0, 17.0, EXACT, 0.1, measured=17.0)
    others = [Latency(p.source.name, p.target.name, None, None, None, None) for p in pairs(table[form])]
    latencies = tuple(known if (one.source, one.target) == (pair, pair) else one for one in others)
    timing = FormTiming(form, {}, "ok", Throughput(0.5, 0.01, EXACT), latencies)
    planner = Planner(table, lambda form: True)
    found = {variant_of(e.variant).kind for e in latency_questions(planner, table[form], timing)}
    assert (Kind.FILLED in found) is asked


@pytest.mark.parametrize(
    "form", ["ADD (M64, R64)", "VPEXPANDD_Z (XMM, K, XMM)", "LOOP (Rel8)", "POPCNT (R16, R16)"]
)
def test_what_is_asked_of_some_pairs_is_what_is_asked_of_them_among_all(form):
    table = load_table("x86-64")
    form, planner = table[form], Planner(table, lambda form: True)
    every = [*pairs(form), *overwritten(form)]
    latencies = tuple(
        Latency(p.source.name, p.target.name, 5.0, 5.0, EXACT, 0.1, measured=5.0) for p in every
    )
    timing = FormTiming(form, {}, "ok", Throughput(0.5, 0.01, EXACT), latencies)
    asked = [*planner.latency(form), *latency_questions(planner, form, timing)]
    assert asked
    for one in latencies:
        ends = (one.source, one.target)
        some = [*planner.latency(form, only=[ends]), *latency_questions(planner, form, timing, only=[ends])]
        assert some == [experiment for experiment in asked if (experiment.source, experiment.target) == ends]


def test_what_is_faster_than_a_nop_has_a_throughput(tmp_path):
    """The core issues three additions a cycle and one NOP: most of its forms had no throughput."""
    machine = load_model("cortex-a510")
    table = load_table(machine.isa)
    forms = [table[name] for name in ("ADDXri", "FADDDrr", "HINT")]
    with closing(Store(tmp_path / "store.sqlite", machine.name, isa=machine.isa)) as store:
        campaign = Campaign(table, SimulatedBackend(machine), store)
        campaign.run(Request(tuple(forms)), {})
        found = [timing.throughput.value for timing in campaign.results(forms)]
    assert found == pytest.approx([1 / 3, 1 / 2, 1], abs=0.01)


@pytest.mark.parametrize(("nop", "plain"), [(1.0, 0.5), (0.5, 1.0), (0.5, None), (None, 0.5)])
def test_nothing_is_faster_than_the_faster_of_both(nop, plain):
    known = {NOP: nop, PLAIN: plain}
    links = {name: LinkLatency(cycles, cycles, cycles) for name, cycles in known.items() if cycles}
    assert 0.25 < least_lawful(links) < 0.5
    assert least_lawful({}) == 0


def test_a_cpu_without_simple_instructions_has_nops_alone():
    planner = Planner(load_table("x86-64"), lambda form: True)
    assert len(plain_sequences(planner, lambda form: True)) == 1
    assert plain_sequences(planner, lambda form: False) == []
