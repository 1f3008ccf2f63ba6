"""Every form that runs has ports or a typed reason, which is that of the condition that left it out."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from benchmarks.drawn.round_trip import QUIET, measure
from cyclescope.infer.gaps import Gaps
from cyclescope.infer.machine_model import build_model
from cyclescope.infer.ports.approach import GrowingApproach, TimedPorts, read_approach
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.infer.readout import Readout
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import model_form_id
from cyclescope.isa.registry import instruction_set, isa_names
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PortPlanner
from cyclescope.measure.store import Store
from cyclescope.remarks.model import forms
from cyclescope.remarks.ports import NoPorts, Without, group_of
from cyclescope.remarks.remark import Remark
from cyclescope.report.summary import Tally, summary_text
from cyclescope.simulate.draw import draw_machine

SEED = random.SystemRandom().randrange(1 << 30)
ANY = 40  # forms of no special kind
FORMS = 1500  # of each table
GROUPS = {group.name.lower() for group in Without} - {"forms"}
EACH = 2  # of every attribute, and of what stands beside instances


def chosen(table, planner, draw):
    """Some forms of every attribute and of every kind of company, and others."""
    plans, kinds = PortPlanner(planner), {}
    able = [form for form in select(table, ()) if form.encoding or form.bits]
    for form in draw.sample(able, len(able)):
        company = plans.company(form)
        kinds.setdefault(company and (company.kind, company.restores), []).append(form)
        for attribute in form.attributes:
            kinds.setdefault(attribute, []).append(form)
    some = [form for found in kinds.values() for form in found[:EACH]] + draw.sample(able, ANY)
    return list({model_form_id(form): form for form in some}.values())


@pytest.fixture(scope="module", params=sorted(isa_names()))
def drawn(request, tmp_path_factory):
    """A store of a drawn machine."""
    print(f"seed {SEED}")  # noqa: T201
    table = load_table(request.param)
    planner = Planner(table, lambda form: True)
    some = chosen(table, planner, random.Random(SEED))
    machine = draw_machine(SEED, select(table, ()), isa=request.param)
    path = tmp_path_factory.mktemp("reasons") / "store.sqlite"
    with closing(measure(machine, table, some, QUIET, path)) as store:
        yield store, table, some


@pytest.mark.slow
def test_no_form_that_runs_is_without_ports_and_without_a_reason(drawn):
    store, table, some = drawn
    readout = Readout(store, table)
    if readout.approach is None:
        pytest.skip("nothing fills the front end of this core, as the summary of a run says")
    found = [both for both in readout.each() if both[0].status == "ok"]
    assert len(found) > len(some) / 2
    without = [(timing, usage) for timing, usage in found if timing.ports is None]
    assert without
    for timing, usage in without:
        assert timing.ports_note, timing.id
        assert isinstance(usage.remarks[0].meaning, NoPorts)
    assert {timing.id for timing, usage in found if usage.operations is None and not usage.remarks} == set()
    assert {timing.ports_reason for timing, _ in without} <= GROUPS
    assert Gaps(timing for timing, _ in found).without_ports


@pytest.mark.parametrize("isa", isa_names())
def test_every_form_of_a_table_has_a_reason(isa):
    """On a core of which nothing but the front end is known."""
    print(f"seed {SEED}")  # noqa: T201 - to repeat it
    table = load_table(isa)
    approach = TimedPorts(FrontEndFacts(table, {instruction_set(isa).roles.nop: 0.25}))
    planner = Planner(table, lambda form: True)
    found = {}
    for form in random.Random(SEED).sample(list(table), min(FORMS, len(table))):
        usage = approach.usage(form, planner)
        assert usage.ports is None
        assert usage.note, form.id
        found.setdefault(usage.group, form.id)
    assert set(found) <= GROUPS
    assert len(table) < FORMS or {"unasked", "kernel"} <= set(found)


# --- which one -------------------------------------------------------------------------------------

EXPECTED = {
    "PUSH (R64)": NoPorts.STACK,
    "POP (R64)": NoPorts.STACK,
    "JZ (Rel8)": NoPorts.NOT_TAKEN,
    "JMP (Rel8)": NoPorts.TAKEN,
    "JMP (R64)": NoPorts.TAKEN,
    "CALL_NEAR (Rel32)": NoPorts.CALLS,
    "RET_NEAR": NoPorts.CALLS,
    "DIV (R64)": NoPorts.VALUES,
    "MOVSB": NoPorts.RESTORED,
    "MOVSB_REPE": NoPorts.COUNT,
    "FLD1": NoPorts.X87_STACK,
    "VPGATHERDD (YMM, VSIB_YMM, YMM)": NoPorts.RESTORED,
    "POPF": NoPorts.NO_KERNEL,
}


@pytest.fixture
def few(complete, table):
    """What a small store of x86-64 tells."""
    with closing(Store(complete, readonly=True)) as store:
        yield read_approach(store, table), table


@pytest.fixture(scope="module")
def approach(complete, table):
    """The same for all tests that leave it as it is."""
    with closing(Store(complete, readonly=True)) as store:
        yield read_approach(store, table)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_reason_is_what_left_a_form_out(approach, table, name):
    usage = approach.usage(table[name], Planner(table, lambda form: True))
    assert usage.ports is None
    assert usage.remarks[0].meaning is EXPECTED[name]
    assert usage.group == group_of(usage.remarks).name.lower()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("MFENCE", NoPorts.SERIALIZING),
        ("FSIN", NoPorts.TOO_LONG),
    ],
)
def test_two_instances_are_too_long_in_buffers_or_behind_them(few, name, why):
    """The longer of the two counts: what stays in buffers looks quicker."""
    approach, table = few
    facts = approach.ports.facts.front_end
    facts.alone[name] = 18.0
    facts.throughputs[name] = 20.05
    found = approach.usage(table[name], Planner(table, lambda form: True))
    assert found.remarks == (why.of(40.1),)


@pytest.mark.parametrize("cycles", [1.0, 19.9, 20.1])
def test_what_a_lock_keeps_waiting_tells_no_ports(few, cycles):
    """Whatever it takes: on a Zen 5 two take as long as is hidden, and each run read ports of a few."""
    approach, table = few
    facts = approach.ports.facts
    facts.front_end.alone["ADD_LOCK (M64, R64)"] = facts.front_end.throughputs["ADD_LOCK (M64, R64)"] = cycles
    found = approach.usage(table["ADD_LOCK (M64, R64)"], Planner(table, lambda form: True))
    assert (found.ports, found.remarks) == (None, (NoPorts.LOCKED.of(),))


def test_a_division_says_what_its_unit_takes(few):
    approach, table = few
    approach.ports.facts.front_end.throughputs["DIV (R64)"] = 7.01
    found = approach.usage(table["DIV (R64)"], Planner(table, lambda form: True))
    assert [one.meaning for one in found.remarks] == [NoPorts.VALUES, NoPorts.UNPIPELINED]
    assert "7.01" in found.note


def test_reasons_are_counted_by_group():
    alone = {one for one in NoPorts if group_of((one.of(),))}
    whole = {NoPorts.STOPPED, NoPorts.NO_FILLER, NoPorts.IN_ORDER}
    beside = {NoPorts.UNPIPELINED, NoPorts.ISSUES_WITH, NoPorts.NOT_WITH}
    assert alone == set(NoPorts) - whole - beside
    assert group_of(()) is None
    assert group_of((Remark(),)) is None


def test_the_summary_and_the_model_count_the_reasons(complete, table):
    """But for what nobody asked of the other forms that run."""
    with closing(Store(complete, readonly=True)) as store:
        tally = Tally(Readout(store, table).timings())
        counts = dict(tally.gaps.reasons)
        assert counts.pop(Without.UNASKED.name.lower()) > 0
        assert counts[Without.VALUES.name.lower()] > 0  # divisions
        told = tally.gaps.without_ports.text
        assert told.startswith(Without.FORMS.of(forms(sum(counts.values())), "").text)
        assert all(Without[name.upper()].of(count).text in told for name, count in counts.items())
        assert f"note: {told}" in summary_text(store, tally, True, None).splitlines()
        assert told in build_model(store, table).provenance.notes
        assert not Gaps().without_ports


# --- while a store grows -----------------------------------------------------------------------------


def taken_out(store, where):
    rows = store.rows(f"SELECT * FROM measurement WHERE {where}")
    store.database.execute(f"DELETE FROM measurement WHERE {where}")
    return rows


def put_back(store, rows):
    """Under numbers that are free, as a store gives them."""
    places = ", ".join("?" * (len(rows[0]) - 1))
    query = f"INSERT INTO measurement SELECT NULL, {places}"
    store.database.executemany(query, [row[1:] for row in rows])


def told(approach):
    facts = approach.ports.facts
    return facts.structure, facts.confined, facts.front_end.counts, facts.front_end.alone


def test_an_approach_that_grows_is_what_a_whole_store_tells(complete, table, tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_bytes(complete.read_bytes())
    with closing(Store(path, isa=table.isa)) as store:
        later = taken_out(store, "quantity = 'ports' AND id % 3 = 0")
        growing = GrowingApproach(store, table)
        assert told(growing.read()) == told(read_approach(store, table))
        growing.settle_front_end()
        before = growing.read()
        assert told(before) == told(read_approach(store, table))
        assert growing.read() is before, "nothing is new"
        put_back(store, later)
        again = taken_out(store, "id = (SELECT MAX(id) FROM measurement WHERE quantity = 'ports')")
        put_back(store, [(*again[0][:6], again[0][6] + 3.0, *again[0][7:])])
        whole = read_approach(store, table)
        assert told(growing.read()) == told(whole) != told(before)
        last = taken_out(store, "id = (SELECT MAX(id) FROM measurement)")
        put_back(store, [(*last[0][:6], 9.0, *last[0][7:])])  # under the same number
        assert told(growing.read()) == told(read_approach(store, table)) != told(whole)


def test_throughputs_are_read_once_for_the_stages_of_the_front_end(complete, table, monkeypatch):
    times = []
    with closing(Store(complete, isa=table.isa, readonly=True)) as store:
        found, growing = store.throughputs(), GrowingApproach(store, table)
        monkeypatch.setattr(store, "throughputs", lambda: times.append(1) or found)
        assert told(growing.read()) == told(growing.read())
        assert len(times) == 1
        growing.settle_front_end()
        assert len(times) == 2, "once more for what ports rest on"


def test_what_stands_beside_slow_forms_leaves_all_else_as_it_was_told(complete, table, tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_bytes(complete.read_bytes())
    with closing(Store(path, isa=table.isa)) as store:
        growing = GrowingApproach(store, table)
        growing.settle_front_end()
        before = growing.read()
        facts = before.ports.facts
        slow = next(name for name in facts.confined if name not in facts.classes.widths)
        rows = store.rows(f"SELECT * FROM measurement WHERE quantity = 'ports' AND form != '{slow}' LIMIT 2")
        some = [(0, form, row[2], slow, *row[4:]) for form, row in zip((slow, rows[0][1]), rows, strict=True)]
        put_back(store, some)
        after = growing.read()
        assert after is before, "usages are not told anew"
        assert after.ports.facts.waits == read_approach(store, table).ports.facts.waits
        assert after.ports.facts.waits[rows[0][1]][slow] != 0
        again = taken_out(store, f"source = '{slow}' AND form != '{slow}'")
        put_back(store, [(*again[0][:6], again[0][6] + 3.0, *again[0][7:]), *again[1:]])
        assert growing.read() is before
        assert after.ports.facts.waits == read_approach(store, table).ports.facts.waits
        put_back(store, [(0, slow, *rows[0][2:5], "x97", *rows[0][6:])])
        assert growing.read() is not before
