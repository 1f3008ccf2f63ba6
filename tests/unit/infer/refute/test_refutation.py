"""Mixes that nobody measured before: they refute what is wrong, and say how often claims hold."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from types import SimpleNamespace

import msgspec
import pytest

from benchmarks.drawn.round_trip import Comparison, checks, measure, sample
from cyclescope.backend.simulated import LOUD
from cyclescope.infer.machine_model import build_model
from cyclescope.infer.ports.approach import read_approach
from cyclescope.infer.readout import Readout
from cyclescope.infer.refute.calibration import (
    ASKED,
    CHECKED,
    DRAWN_FIRST,
    Judge,
    Verdict,
    shape_of,
    stored_verdicts,
    trials_of,
)
from cyclescope.infer.refute.drawer import MixDrawer
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.infer.refute.planner import MixPlanner, mix_key, mixed_forms
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PortPlanner
from cyclescope.measure.store import Store
from cyclescope.simulate.draw import draw_machine


@pytest.fixture(scope="module")
def machine(table):
    return draw_machine(2, list(table))


@pytest.fixture(scope="module")
def store(machine, table, tmp_path_factory):
    """A store of a drawn core with noise and neighbours."""
    file = tmp_path_factory.mktemp("refuted") / "store.sqlite"
    with closing(measure(machine, table, sample(table, machine, 120), LOUD, file)) as opened:
        yield opened


@pytest.fixture(scope="module")
def builder(store, table):
    return read_approach(store, table).ports


@pytest.fixture(scope="module")
def model(builder, store, table):
    cycles = builder.facts.front_end.throughputs
    usages = {name: builder.usage(table[name], cycles.get(name)) for name in builder.facts.confined}
    units = stored_verdicts(store).units
    whole = MixModel(builder, usages)
    return whole.only_with(units)


def test_ports_are_recovered_by_time(machine, builder, table):
    """Other machines, and those with counters, are recovered in tests/unit/infer/ports at night."""
    comparison = Comparison(machine, builder, counted=False)
    verdicts = [verdict for form in sample(table, machine, 120) if (verdict := comparison.verdict(form))]
    assert len([verdict for verdict in verdicts if verdict.identifiable]) > 30
    assert [check for check in checks("drawn:2", comparison, verdicts) if not check.passed] == []


def test_what_is_right_holds(store):
    calibration = stored_verdicts(store).calibration
    assert calibration.covered > 0.6 * calibration.claims > 60
    assert calibration.mixes["high"].number > 100
    assert calibration.mixes["high"].share > 0.97
    assert calibration.mixes["high"].error < 0.02
    assert not calibration.broken
    assert calibration.refuted < 0.05 * calibration.claims


def test_what_calibrates_had_no_part_in_refuting(store):
    first = {trial.forms for trial in trials_of(store, (DRAWN_FIRST, ASKED))}
    checked = {trial.forms for trial in trials_of(store, (CHECKED,))}
    assert len(checked) > 100
    assert not first & checked


def test_a_wrong_usage_is_refuted_and_its_partners_are_not(store, table, model):
    counts = Counter(name for trial in trials_of(store) for name in set(trial.forms))
    trials = [trial for trial in trials_of(store) if min(map(counts.__getitem__, trial.forms)) > 4]
    counts = Counter(name for trial in trials for name in set(trial.forms))
    name = max(
        (n for n in model.claimed if model.usages[n].confidence == "high" and model.usages[n].operations),
        key=counts.__getitem__,
    )
    before = set(Judge(model, trials).refuted())
    wrong = msgspec.structs.replace(
        model.usages[name], ports="wrong", operations=tuple(
            msgspec.structs.replace(op, count=op.count + 3) for op in model.usages[name].operations
        ),
    )  # fmt: skip
    verdicts = Judge(
        MixModel(model._builder, {**model.usages, name: wrong}, model._without), trials
    ).refuted()
    assert set(verdicts) - before == {name}
    assert verdicts[name].confidence == "low"
    assert "fresh mixes" in verdicts[name].reason


def test_no_form_of_a_mix_waits_for_another(store, table, model):
    legal = store.legality()
    planner = Planner(table, lambda form: legal.get(form.id) == "ok")
    mixes = MixPlanner(PortPlanner(planner))
    drawn = list(MixDrawer(model, mixes, random.Random(5)).covering(model.claimed))
    assert len(drawn) > 15
    for forms in drawn:
        parts = mixes.parts(forms)
        for name, part in parts.items():
            others = frozenset().union(*[other.writes for n, other in parts.items() if n != name])
            assert part.reads.isdisjoint(others)


def test_mixes_that_tell_of_halves_have_sure_forms_for_both_and_for_one(store, table, model):
    legal = store.legality()
    mixes = MixPlanner(PortPlanner(Planner(table, lambda form: legal.get(form.id) == "ok")))
    sure = {name: usage for name, usage in model.usages.items() if usage.confidence != "low"}
    counts = Counter(op.ports for name in model.claimed if name in sure for op in sure[name].operations)
    both, second = sorted((ports for ports, _ in counts.most_common(2)), key=len, reverse=True)
    halves = SimpleNamespace(both=both, second=second)
    drawn = list(MixDrawer(model, mixes, random.Random(5)).of_halves(halves))
    kinds = Counter()
    for name in (form.id for mix in drawn for form in mix):
        kinds += Counter({op.ports for op in sure[name].operations} & {both, second})
    assert min(kinds[both], kinds[second]) > 5


def test_a_mix_is_put_together_once_for_what_asks_in_turn(store, table, model, monkeypatch):
    legal = store.legality()
    mixes = MixPlanner(PortPlanner(Planner(table, lambda form: legal.get(form.id) == "ok")))
    forms = next(MixDrawer(model, mixes, random.Random(5)).covering(model.claimed))
    made = []
    chosen = MixPlanner._chosen
    monkeypatch.setattr(MixPlanner, "_chosen", lambda self, some: made.append(some) or chosen(self, some))
    assert mixes.parts(list(forms)) is mixes.parts(forms)
    assert [mixes.question(forms, DRAWN_FIRST, order).make() for order in (0, 1)]
    assert not made
    fresh = MixPlanner(PortPlanner(Planner(table, lambda form: legal.get(form.id) == "ok")))
    assert fresh.parts(forms) == mixes.parts(forms)
    assert len(made) == 1


def test_orders_have_the_same_instructions(store, table, model):
    legal = store.legality()
    planner = Planner(table, lambda form: legal.get(form.id) == "ok")
    mixes = MixPlanner(PortPlanner(planner))
    forms = next(MixDrawer(model, mixes, random.Random(5)).covering(model.claimed))
    first, second = (mixes.question(forms, DRAWN_FIRST, order).make() for order in (0, 1))
    assert first.kernel.instructions == second.kernel.instructions == first.count * len(forms)
    assert first.kernel.code != second.kernel.code


def test_what_calibrates_has_forms_of_every_kind(store, table, model):
    drawer = MixDrawer(model, None, random.Random(5))
    kinds = {(drawer._kind(name), model.usages[name].confidence) for name in model.claimed}
    first = drawer.of_all_kinds(model.claimed, len(kinds))
    assert {(drawer._kind(name), model.usages[name].confidence) for name in first} == kinds
    assert len(drawer.of_all_kinds(model.claimed, 5)) == 5


def test_the_verdict_reaches_results_and_the_model(store, table):
    readout = Readout(store, table)
    timing, usage = next((t, u) for t, u in readout.each() if u.confidence == "high" and u.operations)
    verdict = Verdict(shape_of(usage), "low", "refuted by 2 of 2 fresh mixes")
    readout.verdicts = msgspec.structs.replace(readout.verdicts, refuted={timing.id: verdict})
    found = {t.id: t for t, _ in readout.each()}[timing.id]
    assert found.ports_confidence == "low"
    assert "refuted" in found.ports_note
    model = build_model(store, table)
    assert model.calibration == stored_verdicts(store).calibration


# --- drawing -----------------------------------------------------------------------------------------


def test_mixes_are_short_and_bodies_long(store, table, model):
    legal = store.legality()
    mixes = MixPlanner(PortPlanner(Planner(table, lambda form: legal.get(form.id) == "ok")))
    drawn = list(MixDrawer(model, mixes, random.Random(5)).covering(model.claimed))
    sizes = {len(forms) for forms in drawn}
    assert min(sizes) == 2  # one that would have waited was left out
    assert max(sizes) == 6
    bodies = [mixes.question(forms, DRAWN_FIRST, 0).make().kernel.instructions for forms in drawn[:20]]
    assert min(bodies) >= 96
    assert max(bodies) <= 96 + 2 * 6


def test_what_reads_what_it_writes_has_four_registers(store, table):
    legal = store.legality()
    mixes = MixPlanner(PortPlanner(Planner(table, lambda form: legal.get(form.id) == "ok")))
    names = ("ADD_01 (R64, R64)", "IMUL (R64, R64)", "LEA_B (R64)")
    parts = mixes.parts([table[name] for name in names])
    if parts is not None:
        assert [parts[name].ring for name in names[:2]] == [4, 4]
    pair = mixes.parts([table[name] for name in names[:2]])
    assert [part.ring for part in pair.values()] == [4, 4]
    assert pair[names[0]].writes.isdisjoint(pair[names[1]].writes)


def test_each_unit_has_four_mixes(store, table, model):
    legal = store.legality()
    mixes = MixPlanner(PortPlanner(Planner(table, lambda form: legal.get(form.id) == "ok")))
    drawn = list(MixDrawer(model.only_with(model.units), mixes, random.Random(5)).of_units())
    shared = [unit for unit in model.units if len(model.takers(unit)) > 1]
    assert 2 * len(shared) < len(drawn) <= 4 * len(shared)


def test_mixes_take_the_units_of_their_forms(model):
    for unit in model.units:
        takers = set(model.takers(unit))
        others = [form for form in model.claimed if form not in takers]
        assert (unit in model.taken([*others[:3], *takers])) == bool(takers)
        assert unit not in model.taken(others)


def test_two_mixes_for_each_claim_calibrate(store):
    claims = stored_verdicts(store).calibration.claims
    assert 1.7 * claims < len(trials_of(store, (CHECKED,))) <= 2 * claims


# --- keys and notes ----------------------------------------------------------------------------------


def test_a_key_tells_the_forms():
    forms = ("ADD (R64, I8)", "MOV (R64, M64)", "ADD (R64, I8)")
    key = mix_key(forms, DRAWN_FIRST, 1)
    assert mixed_forms(key[0], key[2]) == forms
    assert mixed_forms("NOP", "") == ("NOP",)


def test_notes_are_kept_until_all_is_forgotten(tmp_path):
    with closing(Store(tmp_path / "s.sqlite", "m")) as store:
        assert store.note("x") == ""
        store.write_note("x", "one")
        store.write_note("x", "two")
        assert store.note("x") == "two"
        store.clear()
        assert store.note("x") == ""
        assert store.machine == "m"


def test_no_form_has_the_sign_between_forms():
    assert not [
        form.id for isa in ("x86-64", "aarch64", "riscv64") for form in load_table(isa) if " + " in form.id
    ]
