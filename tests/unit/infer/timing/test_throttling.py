"""Latencies that depend on how full the scheduler is: what is asked, what is told, cores of known truth."""

from __future__ import annotations

from contextlib import closing

import msgspec
import pytest

from benchmarks.drawn.features import with_drawn_scheduler
from cyclescope.backend.simulated import LOUD, QUIET, SimulatedBackend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.machine_model import form_cost
from cyclescope.infer.timing.link_chains import LinkChains, solve_links
from cyclescope.infer.timing.results import EXACT, INTERVAL, UPPER_BOUND, FormTiming, Latency
from cyclescope.infer.timing.throttling import suspects, with_room
from cyclescope.isa.dataflow import is_old
from cyclescope.isa.table import load_table
from cyclescope.kernel.variant import Kind
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Planner
from cyclescope.measure.sampling import Sampler
from cyclescope.measure.store import Store
from cyclescope.model.facts import HIGH
from cyclescope.report.card import card
from cyclescope.session.machines import load_model
from cyclescope.simulate.draw import draw_machine

TABLE = load_table("x86-64")
FORM = TABLE["PADDD (XMM, XMM)"]
TOLD = "1 where the scheduler is not full, 2 in a chain alone"


def latency(most=2.0, **more):
    values = {"kind": EXACT, "spread": 0.01, "confidence": HIGH} | more
    return Latency(
        "op1", "op1", min=more.pop("min", most), max=most, **{k: values[k] for k in values if k != "min"}
    )


def timing(*latencies):
    return FormTiming(FORM.id, FORM.names, "ok", None, latencies)


# --- what readings say -----------------------------------------------------------------------------


def slow(*values):
    """One more core, for the night."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("alone", "readings", "room"),
    [
        (2.0, [1.0], 1.0),
        (2.0, [1.78], 1.0),  # the front end delivers late
        (2.0, [1.85], None),  # off by less than loops near the width are
        (2.0, [2.0, 2.3], None),
        (2.0, [2.0, 1.2], 1.0),  # one chain of two is proof
        (3.0, [2.6], 2.0),
        (3.0, [2.3, 1.2], 1.0),
        (4.0, [3.7], None),
        (2.0, [0.0], None),  # no instruction takes less than a cycle: such a reading tells nothing
        (2.0, [0.85], None),
        (2.0, [], None),
    ],
)
def test_a_throttled_chain_that_is_shorter_proves_a_second_value(alone, readings, room):
    found = with_room(latency(alone), readings)
    assert found.with_room == room
    assert (found.min, found.max, found.kind) == (room or alone, alone, EXACT)


def test_the_condition_is_told_on_the_card_and_in_the_model():
    found = with_room(latency(note="why not"), [1.1])
    assert found.note == f"why not; {TOLD}"
    text = card(FORM, timing(found))
    assert "1.00 or 2.00" in text
    assert TOLD in text
    cost = form_cost(timing(found))
    assert (cost.latencies, cost.ranges, cost.with_room) == (
        {"op1->op1": 2.0}, {"op1->op1": (1.0, 2.0)}, {"op1->op1": 1.0},
    )  # fmt: skip
    assert not form_cost(timing(latency())).with_room


def test_only_whole_latencies_of_more_than_a_cycle_are_asked():
    asked = [latency(2.0), latency(9.0)]
    others = [
        latency(1.0), latency(10.0), latency(2.5), latency(2.0, kind=UPPER_BOUND, min=0.0),
        latency(3.0, kind=INTERVAL, min=2.0), latency(2.0, values={"fast": 2.0}),
        latency(2.0, convention="transfer"), msgspec.structs.replace(latency(2.0), source="op1.old"),
        Latency("op1", "op1", None, None, None, None),
        msgspec.structs.replace(latency(6.0), source="op1.data", target="op1.data"),  # renamed in short loops
    ]  # fmt: skip
    assert [one.cycles for one in suspects(FORM, timing(*asked, *others))] == [2, 9]


# --- kernels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("per_nop", "cycles", "nops"), [(1 / 8, 1, 7), (1 / 4, 1, 3), (1 / 8, 2, 15), (1 / 16, 1, 15)]
)
def test_the_front_end_delivers_an_instance_in_the_cycles_asked(per_nop, cycles, nops):
    planner = Planner(TABLE, lambda form: True)
    alone, swapped = (planner.throttled(FORM, source, "op1", cycles, per_nop) for source in ("op1", "op2"))
    assert [e.kernel.instructions for e in alone] == [1 + nops]
    assert [(e.kernel.instructions, e.count, e.links) for e in swapped] == [(2 * (1 + nops), 2, ())]
    assert alone[0].variant == f"throttled to {cycles} self"


def test_nothing_is_cut_where_the_scheduler_has_to_have_room():
    """A move in front of each instance filled a scheduler again that NOPs had left room in."""
    form = TABLE["VPTERNLOGD (XMM, XMM, XMM, I8)"]
    (swapped,) = Planner(TABLE, lambda form: True).throttled(form, "op3", "op1", 1, 1 / 8)
    assert (swapped.kernel.instructions, swapped.count) == (2 * (1 + 7), 2)
    assert {one.form.mnemonic for one in swapped.kernel.body} == {"VPTERNLOGD", "NOP"}


def test_a_chain_with_helpers_or_without_room_is_not_asked():
    planner = Planner(TABLE, lambda form: True)
    assert planner.throttled(TABLE["PADDD (XMM, M128)"], "op2.data", "op1", 1, 1 / 8) == []
    assert planner.throttled(FORM, "op1", "op1", 1, 1.0) == []


# --- whole campaigns -------------------------------------------------------------------------------

FORMS = [form for form in TABLE if form.id.startswith(("P", "V")) and form.memory < 0][::40]


def told(machine, path, noise=QUIET, forms=FORMS):
    """Pairs with chains of their own that read what is true, and all records.

    Of a pair its name, latency and true cycles with room.
    """
    table = load_table(machine.isa)
    planner = Planner(table, lambda form: True)
    with closing(Store(path, machine.name, isa=machine.isa)) as store:
        run = Campaign(table, SimulatedBackend(machine, noise=noise), store)
        run.run(Request(tuple(forms), frozenset((THROUGHPUT, LATENCY))), {})
        found = []
        for form, one in zip(forms, run.results(forms), strict=True):
            own = {(c.source, c.target) for c in planner.plan(form).chains if not c.links}
            cost = machine.forms[form.id]
            for lat in one.latencies:
                pair = f"{lat.source}->{lat.target}"
                alone = (lat.source, lat.target) in own and not is_old(lat.source)
                if alone and lat.kind == EXACT and lat.max == cost.latencies.get(pair):
                    found.append((f"{form.id} {pair}", lat, cost.with_room.get(pair)))
        return found, list(store.records())


@pytest.mark.parametrize(("seed", "noise"), [slow(11, QUIET), slow(12, QUIET), (13, LOUD), slow(14, LOUD)])
def test_cores_whose_scheduler_fills_up_have_two_values(seed, noise, tmp_path):
    machine = with_drawn_scheduler(draw_machine(seed, TABLE), FORMS, seed)
    found, _ = told(machine, tmp_path / "s.sqlite", noise)
    assert not [name for name, lat, room in found if lat.with_room not in (None, room)]
    true = [lat for _, lat, room in found if room is not None and lat.max <= 8]
    assert len(true) > 50
    assert sum(lat.with_room is not None for lat in true) >= 0.98 * len(true)


def test_throttled_chains_are_made_while_the_first_of_them_run(tmp_path, monkeypatch):
    made, made_by_then = [], set()
    throttled, submit = Planner.throttled, SimulatedBackend.submit

    def noted(self, *rest):
        made.append(rest)
        return throttled(self, *rest)

    def submitted(self, *rest):
        made_by_then.add(len(made))
        submit(self, *rest)

    monkeypatch.setattr(Planner, "throttled", noted)
    monkeypatch.setattr(SimulatedBackend, "submit", submitted)
    monkeypatch.setattr(Sampler.__init__, "__defaults__", (None, 40, 2))
    told(with_drawn_scheduler(draw_machine(11, TABLE), FORMS, 11), tmp_path / "s.sqlite")
    assert len(made_by_then) > 10, "not only before them, after a sample and after all"


def with_logic_in_two_states(machine):
    """The machine with logic between vector registers that takes 2 cycles, 1 while the scheduler has room."""
    costs = dict(machine.forms)
    for form in TABLE:
        if form.mnemonic.startswith(("VPAND", "VPOR", "VANDPS", "VORPS")) and form.memory < 0:
            pairs = costs[form.id].latencies
            costs[form.id] = msgspec.structs.replace(
                costs[form.id], latencies=dict.fromkeys(pairs, 2.0), with_room=dict.fromkeys(pairs, 1.0),
                ranges=dict.fromkeys(pairs, (1.0, 2.0)),
            )  # fmt: skip
    return msgspec.structs.replace(machine, forms=costs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, slow(12), slow(15)])
def test_links_are_the_same_in_every_run_on_such_a_core(seed):
    """And the cycles of vectors to memory and back are the core's."""
    machine = with_logic_in_two_states(draw_machine(seed, TABLE))
    found = []
    for noise in range(3):
        backend = SimulatedBackend(machine, noise=msgspec.structs.replace(LOUD, seed=noise))
        chains = LinkChains(backend, Planner(TABLE, lambda form: True).link_experiments())
        chains.look()
        links = solve_links(chains.settled, isa="x86-64")
        found.append({key: link.value for key, link in links.items()})
        for width in (32, 64, 128, 256, 512):
            both = found[-1][f"v>mem.{width}"] + found[-1][f"mem>v.{width}"]
            assert both == machine.core.forward_latency
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("name", "step"), [slow("neoverse-v2", 60), ("sifive-p670", 5)])
def test_other_instruction_sets_have_them_too(name, step, tmp_path):
    plain = load_model(name)
    able = [f for f in load_table(plain.isa) if f.id in plain.forms and plain.forms[f.id].latencies]
    forms = [form for form in able if form.memory < 0][::step]
    found, _ = told(with_drawn_scheduler(plain, forms, 3), tmp_path / "s.sqlite", forms=forms)
    assert not [name for name, lat, room in found if lat.with_room not in (None, room)]
    assert sum(lat.with_room is not None for _, lat, _ in found) >= 10


@pytest.mark.parametrize("seed", [slow(11), 13])
def test_cores_without_show_single_values_and_take_a_sample_only(seed, tmp_path):
    found, records = told(draw_machine(seed, TABLE), tmp_path / "s.sqlite", LOUD)
    assert all(lat.with_room is None for _, lat, _ in found)
    assert 25 < sum(record.kind is Kind.THROTTLED for record in records) < 50


@pytest.mark.slow
def test_a_run_that_goes_on_asks_nothing_twice(tmp_path):
    machine = with_drawn_scheduler(draw_machine(11, TABLE), FORMS, 11)
    _, first = told(machine, tmp_path / "s.sqlite")
    _, second = told(machine, tmp_path / "s.sqlite")
    assert [r.id for r in first] == [r.id for r in second]
