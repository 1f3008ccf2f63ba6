"""Mixes of made-up forms: how many there are, how large, of what; both sides of each limit."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.refute import refutation
from cyclescope.infer.refute.calibration import CHECKED, DRAWN_FIRST, trials_of
from cyclescope.infer.refute.drawer import MixDrawer
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.infer.refute.planner import MIXES, MixPlanner, mix_key, mixed_forms
from cyclescope.infer.refute.refutation import Refutation
from cyclescope.infer.workload import CALIBRATING as CHECKING
from cyclescope.infer.workload import DOUBTED, FRESH
from cyclescope.kernel.patterns import pattern
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PortPlanner, Question
from cyclescope.measure.record import STABLE, Record
from cyclescope.model.machine import Operation

PORTS = (0, 1, 2, 3)
USAGE = PortUsage(1.0, "1*p0123", (Operation(PORTS),), confidence="high")


@pytest.fixture(autouse=True)
def register_files(monkeypatch):
    monkeypatch.setattr("cyclescope.infer.ports.resources.domains", lambda form: frozenset("r"))


class _Table(dict):
    isa = "x86-64"


def builder_of(throughputs):
    """What makes usages of forms that take one of four ports; throughputs in cycles by name."""
    structure = Structure(4, {"any": PORTS})
    facts = SimpleNamespace(
        table=_Table({name: SimpleNamespace(id=name, mnemonic=name, operands=()) for name in throughputs}),
        classes=SimpleNamespace(widths={"any": 4}, files={"any": frozenset("r")}),
        evidence=SimpleNamespace(shuts=False),
        front_end=SimpleNamespace(alone={}, slots={}, width=4.0, whole=False, narrow=None,
                                  throughputs=throughputs),
        renamed=frozenset(), confined={name: {"any": 1.0} for name in throughputs}, waits={},
        structure=structure,
    )  # fmt: skip
    return SimpleNamespace(
        wide_loads=SimpleNamespace(heads=(), of=lambda *_: {}),
        facts=facts, structure=structure, names=tuple("0123"),
        memory=frozenset(), blind=False, usage=lambda form, cycles: USAGE,
    )  # fmt: skip


def model_of(throughputs):
    return MixModel(builder_of(throughputs), dict.fromkeys(throughputs, USAGE))


class AnyMix:
    """A planner for which all forms go together but those of `alone`; it counts how often those are tried."""

    def __init__(self, alone=()):
        self.alone, self.tried = alone, Counter()

    def parts(self, forms):
        for form in forms:
            if form.id in self.alone:
                self.tried[form.id] += 1
                return None
        return {form.id: SimpleNamespace(ring=100) for form in forms}

    def question(self, forms, phase, order):
        return Question(mix_key([form.id for form in forms], phase, order), lambda: None)


def named(count):
    return {f"F{number}": 0.25 for number in range(count)}


def drawer_of(count, planner):
    return MixDrawer(model_of(named(count)), planner, random.Random(5))


# --- what is in a mix ------------------------------------------------------------------------------


def test_mixes_are_of_three_to_six_forms():
    """Fewer tell little of each other, more hide each other; what is left of each half may be less."""
    sizes = Counter(map(len, drawer_of(300, AnyMix()).covering(list(named(300)))))
    assert {size for size, number in sizes.items() if number > 2} == {3, 4, 5, 6}
    assert sum(size * number for size, number in sizes.items()) > 295, "every form is in one"


@pytest.mark.parametrize(("cycles", "claimed"), [(6.5, True), (11.9, True), (12.1, False), (23.0, False)])
def test_forms_that_take_longer_than_a_dozen_cycles_are_in_no_mix(cycles, claimed):
    """All others would be hidden behind them."""
    assert ("SLOW" in model_of({"SLOW": cycles, "FAST": 0.25}).claimed) is claimed


def test_a_form_that_goes_with_no_other_is_dealt_three_times():
    planner = AnyMix(alone=("F7",))
    list(drawer_of(100, planner).covering(list(named(100))))
    assert planner.tried["F7"] == 3


def test_each_unit_that_forms_share_has_four_mixes():
    """Of which two have to hold: one may be disturbed."""
    model = SimpleNamespace(
        units=["shared", "own"], cycles=lambda forms: 1.0, facts=model_of(named(9)).facts,
        takers=lambda unit: ["F1", "F2", "F3"] if unit == "shared" else ["F4"],
    )  # fmt: skip
    assert len(list(MixDrawer(model, AnyMix(), random.Random(5)).of_units())) == 4


def waiting(alone, predicted, ring=4, throughput=0.5):
    """Whether a form waits for itself in a mix of so many predicted cycles."""
    front_end = SimpleNamespace(alone={"A": alone}, throughputs={"A": throughput})
    facts = SimpleNamespace(front_end=front_end, table={})
    model = SimpleNamespace(facts=facts, cycles=lambda forms: predicted)
    planner = SimpleNamespace(parts=lambda forms: {form.id: SimpleNamespace(ring=ring) for form in forms})
    drawer = MixDrawer(model, planner, random.Random(1))
    return drawer._waiting([SimpleNamespace(id="A")]) == {"A"}


def test_an_instance_may_wait_for_three_quarters_of_the_mix():
    assert waiting(4.0, 1.2)
    assert not waiting(4.0, 1.5)


def test_two_instances_alone_tell_a_latency_where_they_take_longer_than_by_throughput():
    assert not waiting(1.05, 0.1)
    assert waiting(2.0, 0.1)


def test_instances_without_registers_of_their_own_wait_for_each_other():
    assert waiting(4.0, 2.5, ring=0)
    assert not waiting(4.0, 2.7, ring=0)


# --- kernels ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixes(table):
    return MixPlanner(PortPlanner(Planner(table, lambda form: True)))


def test_floats_have_harmless_values_beside_a_form_that_needs_other_registers(mixes, table):
    """Integers as floats are so small that a Zen 3 takes four times as long for their products."""
    high, product, sum_ = "CMP_38 (R8h, R8h)", "VMULPS (XMM, XMM, M128)", "VPADDW (XMM, XMM, M128)"
    own = {name: mixes.parts([table[name]])[name].state for name in (high, product, sum_)}
    assert own[high].general != own[product].general

    def state_of(*names):
        return mixes.question(tuple(table[name] for name in names), DRAWN_FIRST, 0).make().kernel.state

    together = state_of(sum_, high, product)
    assert together.general == own[high].general
    assert (together.vector, together.fill) == (own[product].vector, own[product].fill)
    assert own[product].vector == pattern("f32") != own[sum_].vector
    assert state_of(sum_, high).vector == own[sum_].vector
    assert state_of(sum_, high, product) is together, "backends know states by identity"


@pytest.mark.parametrize("shuts", [True, False])
def test_the_widest_vectors_are_in_no_mix_with_shorter_ones_where_they_shut_ports(table, shuts):
    mixes = MixPlanner(PortPlanner(Planner(table, lambda form: True)), shuts)
    add, wide, short, shorter = (
        table[name]
        for name in (
            "ADD_01 (R64, R64)", "VPADDD (ZMM, ZMM, ZMM)", "VPADDD (XMM, XMM, XMM)", "VPADDD (YMM, YMM, YMM)"
        )
    )  # fmt: skip
    some = ((add, wide), (add, short), (short, shorter), (wide, short), (wide, shorter))
    together = [mixes.parts(forms) is not None for forms in some]
    assert together == [True, True, True, not shuts, not shuts]


def test_what_reads_what_it_writes_has_four_registers(table, mixes):
    """It waits for itself a fourth as long: of the registers that there are, two such forms have enough."""
    some = ("ADD_01 (R64, R64)", "IMUL (R64, R64)", "SHL (R64, I8)", "VPADDD (XMM, XMM, XMM)")
    pair = mixes.parts([table[name] for name in some[:2]])
    assert [part.ring for part in pair.values()] == [4, 4]
    assert pair[some[0]].writes.isdisjoint(pair[some[1]].writes)
    assert mixes.parts([table[name] for name in some]) is None


@pytest.mark.parametrize(("names", "together"), [
    (("MOV (M64, R64)", "VMOVDQU (M256, YMM)"), True),
    (("SUB (M8, 0)", "ADD (R64, M64)"), True),
    (("SUB (M8, 0)", "VMOVDQU (M256, YMM)"), False),
    (("VMOVNTPD (M256, YMM)", "ADD_01 (R64, R64)"), False),
    (("VMOVNTDQA (XMM, M128)", "ADD_01 (R64, R64)"), True),
    (("PREFETCHNTA (M8)", "ADD_01 (R64, R64)"), True),
])  # fmt: skip
def test_nothing_in_a_mix_waits_for_memory(table, mixes, names, together):
    """Neither behind the caches, nor for another form's store, which a narrower or wider load cannot take."""
    assert (mixes.parts([table[name] for name in names]) is not None) is together


@pytest.mark.parametrize(("names", "together"), [
    (("SETNZ (R8l)", "VPADDD (XMM, XMM, XMM)"), True),
    (("SETNZ (R8l)", "ADD_01 (R64, R64)"), False),
    (("SETNZ (R8l)", "SAL (R32, 0)"), False),
    (("SETNZ (R8l)", "SETZ (R8l)"), True),
    (("SAL (R32, 0)", "ADD_01 (R64, R64)"), True),
])  # fmt: skip
def test_nothing_in_a_mix_reads_flags_of_another_form(table, mixes, names, together):
    """Nor of one whose mnemonic writes them: a shift by 0 keeps them, but who reads them waits for it."""
    assert (mixes.parts([table[name] for name in names]) is not None) is together


@pytest.mark.parametrize("count", [2, 3])
def test_the_loop_is_a_hundredth_of_a_mix(table, mixes, count):
    """Which has an even number of each form, for the order in pairs."""
    names = ("ADD_01 (R64, R64)", "IMUL (R64, R64)", "VPADDD (XMM, XMM, XMM)")
    made = mixes.question([table[name] for name in names[:count]], DRAWN_FIRST, 0).make()
    assert 96 <= made.kernel.instructions < 96 + 2 * count
    assert made.kernel.instructions == made.count * count


# --- a whole refutation ----------------------------------------------------------------------------


class Kept:
    """A store of mixes alone."""

    def __init__(self, *records):
        self.records = records

    def note(self, key):
        return ""

    def records_of(self, quantities, since=0):
        return self.records


def read(forms, cycles=1.0, phase=DRAWN_FIRST, spread=0.0):
    """A reading of a mix, per mix."""
    key = mix_key(forms, phase, 0)
    assert key[1] == MIXES
    return Record(*key, cycles=cycles, spread=spread, verdict=STABLE, count=1, links=())


def asked(monkeypatch, claims, stage, *records):
    """Forms of the mixes that a stage asks for, once for each order, and the names of all stages."""
    monkeypatch.setattr(refutation, "MixPlanner", lambda plans, shuts: AnyMix())
    run = Refutation(builder_of(named(claims)), Kept(*records), None, random.Random(1))
    stages = list(run.stages())
    keys = [question.key for question in next(make for name, make in stages if name == stage)()]
    return [mixed_forms(key[0], key[2]) for key in keys], [name for name, _ in stages]


def test_each_mix_is_measured_in_two_orders(monkeypatch):
    """What depends on the order is no matter of ports."""
    mixes, _ = asked(monkeypatch, 40, FRESH)
    assert set(Counter(mixes).values()) == {2}


@pytest.mark.parametrize(("known", "asked"), [(0, 10), (4, 6), (9, 1), (10, 0), (30, 0)])
def test_ports_of_few_forms_are_in_ten_mixes(monkeypatch, known, asked):
    """Fewer would say less of them than what is believed of all forms."""
    builder = builder_of(named(60))
    rare = {"F1", "F2"}

    def usage(form, cycles):
        return msgspec.structs.replace(USAGE, ports="2*p0123") if form.id in rare else USAGE

    builder.usage = usage
    monkeypatch.setattr(refutation, "MixPlanner", lambda plans, shuts: AnyMix())
    of_others = [read([f"F{n}", f"F{n + 1}", f"F{n + 2}"]) for n in range(3, 58)]
    records = [read(["F1", f"F{n}", f"F{n + 2}"]) for n in range(3, 3 + known)]
    run = Refutation(builder, Kept(*of_others, *records), None, random.Random(1))
    stages = [make for name, make in run.stages() if name == FRESH]
    keys = [question.key for question in stages[1]() if question.key[4] == "order 0"]
    mixes = [mixed_forms(key[0], key[2]) for key in keys]
    assert asked <= sum(not rare.isdisjoint(mix) for mix in mixes) < asked + 3, "partners may be of them"
    assert all(len({*mix} - rare) > 0 for mix in mixes)


def test_forms_of_a_mix_that_did_not_hold_are_asked_twice_beside_others(monkeypatch):
    """One more mix could have a bad neighbour, or a wrong partner."""
    holding = [read([f"F{n}", f"F{n + 1}", f"F{n + 2}", f"F{n + 3}"]) for n in range(4, 196, 4)]
    mixes, _ = asked(monkeypatch, 200, DOUBTED, read(["F0", "F1", "F2", "F3"], 2.0), *holding)
    assert Counter(forms[0] for forms in {*mixes}) == {"F0": 2, "F1": 2, "F2": 2, "F3": 2}


@pytest.mark.parametrize(("claims", "number"), [(50, 100), (100, 200), (440, 880), (460, 900), (600, 900)])
def test_two_mixes_for_each_claim_calibrate_and_nine_hundred_at_most(monkeypatch, claims, number):
    """A share of 0.95 of a third of them is known within 0.025."""
    mixes, stages = asked(monkeypatch, claims, CHECKING)
    assert len(mixes) == 2 * number
    assert stages.count(CHECKING) == 4, "more are drawn while few could be read"


def test_every_level_has_mixes_of_its_own(monkeypatch):
    """Of all claims, hardly a mix would be of sure ones alone."""
    levels = {"low": 400, "medium": 150, "high": 50}
    names = [f"{level}{number}" for level, count in levels.items() for number in range(count)]
    builder = builder_of(dict.fromkeys(names, 0.25))

    def usage(form, cycles):
        return msgspec.structs.replace(USAGE, confidence=form.id.rstrip("0123456789"))

    builder.usage = usage
    monkeypatch.setattr(refutation, "MixPlanner", lambda plans, shuts: AnyMix())
    run = Refutation(builder, Kept(), None, random.Random(1))
    questions = [question.key for question in dict(run.stages())[CHECKING]()]
    mixes = [mixed_forms(key[0], key[2]) for key in questions if key[4] == "order 0"]
    sure = [forms for forms in mixes if all(form.startswith("high") for form in forms)]
    medium = [forms for forms in mixes if not any(form.startswith("low") for form in forms)]
    assert len(sure) >= 100, "two for each claim"
    assert len(medium) - len(sure) > 200
    assert len(mixes) - len(medium) > 200


@pytest.mark.parametrize(("known", "more"), [(0, True), (449, True), (450, False), (500, False)])
def test_half_of_the_mixes_are_enough_where_others_cannot_be_read(monkeypatch, known, more):
    records = [read(["F0", "F1", f"F{number}"], phase=CHECKED) for number in range(2, 2 + known)]
    mixes, _ = asked(monkeypatch, 600, CHECKING, *records)
    assert len(mixes) == (2 * (900 - known) if more else 0)


@pytest.mark.parametrize(("spread", "judged"), [(0.03, True), (0.045, True), (0.055, False), (0.09, False)])
def test_twice_the_spread_of_a_mix_is_its_error(spread, judged):
    """What is off by more than a tenth tells nothing of whether it takes what was predicted."""
    some = trials_of(Kept(read(["A", "B"], 3.0, spread=3 * spread)))
    assert bool(some) is judged
