"""Ports and usages of simulated machines of known truth, measured and inferred."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager

import pytest

from benchmarks.drawn.round_trip import compare, core_named, measure, sample
from cyclescope.backend.simulated import LOUD, QUIET
from cyclescope.infer.front_end.slots import SlotCount
from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.machine_model import build_model
from cyclescope.infer.ports.approach import read_approach
from cyclescope.infer.ports.builder import PortBuilder
from cyclescope.infer.ports.candidates import candidates, preference
from cyclescope.infer.ports.evidence import ERROR, PortFacts
from cyclescope.infer.ports.experiments import PortCampaign
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.infer.ports.timed import TimedJudge
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PortPlanner
from cyclescope.measure.record import FrontEndReadings, Reading
from cyclescope.model import library
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.model.library import llvm_model
from cyclescope.model.machine import ROUND_ROBIN, STATIC
from cyclescope.model.resources import resource_throughput
from cyclescope.remarks.front_end import Slots
from cyclescope.remarks.ports import Named, NoPorts
from cyclescope.remarks.remark import NOTHING
from cyclescope.session.machines import load_model
from cyclescope.simulate.draw import draw_machine
from tests.support.made.classes import StatedEvidence, classes_of
from tests.support.made.front_ends import StatedFrontEnd

VAGUE = Slots.VAGUE.of(1.0, 0.02)
MEASURED = (
    "IMUL (R64, R64)", "SHL (R64, I8)", "VPADDD (XMM, XMM, XMM)", "VPADDD (XMM, XMM, M128)",
    "VDIVPS (XMM, XMM, XMM)", "PADDB (MM, MM)", "CPUID", "DIVPD (XMM, XMM)", "NOP",
    "VSQRTPS (XMM, XMM)", "VDIVSS (XMM, XMM, XMM)", "VERR (R32)",
)  # fmt: skip
ALL = (
    "znver1", "znver2", "znver3", "znver4", "sandybridge", "haswell", "broadwell", "skylake",
    "skylake-avx512", "icelake-server", "silvermont", *(f"drawn:{seed}" for seed in range(1, 13)),
)  # fmt: skip


def check(name, table, count, noise, counters):
    machine, front_end = core_named(name)
    forms = sample(table, machine, count)
    comparison, verdicts, _ = compare(machine, table, forms, noise, counters, front_end)
    assert comparison.same_structure()
    assert not [v for v in verdicts if not v.right and v.confidence == HIGH]
    sure = [v for v in verdicts if v.identifiable]
    assert len(sure) > count / 4
    assert sum(v.right for v in sure) >= (1.0 if counters else 0.98) * len(sure)


@pytest.mark.slow
@pytest.mark.parametrize("counters", [False, True], ids=["time", "counters"])
@pytest.mark.parametrize("name", ALL)
def test_all_machines_are_recovered(table, name, counters):
    check(name, table, 1500, LOUD, counters)


@pytest.mark.parametrize(
    ("binding", "claims"), [(ROUND_ROBIN, 0), pytest.param(STATIC, 10, marks=pytest.mark.slow)]
)
def test_nothing_is_claimed_of_ports_that_may_be_given_in_turn(table, binding, claims):
    """Two of four ports in turn look like two micro-operations for all four, and the other way round."""
    machine, front_end = core_named("drawn:9204")
    forms = sample(table, machine, 40)
    _, verdicts, _ = compare(machine, table, forms, LOUD, False, front_end, binding)
    assert not [v for v in verdicts if not v.right and v.confidence != LOW]
    assert sum(v.right and v.confidence == HIGH for v in verdicts) >= claims


# --- one machine, looked at -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def skylake_store(table, tmp_path_factory):
    """Port experiments of a simulated Skylake, with some forms, made without any model: nobody writes it."""
    file, machine = tmp_path_factory.mktemp("ports") / "store.sqlite", load_model("skylake")
    with without_models():
        made = skylake_in(file, table, machine)
    with closing(made) as store:
        yield store


def skylake_in(file, table, machine=None):
    forms = [table[name] for name in MEASURED]
    return measure(machine or load_model("skylake"), table, forms, QUIET, file)


@contextmanager
def without_models():
    """Whoever looks up a model that ships fails."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("shipped", "summaries", "_archive", "_shipped"):
            patch.setattr(library, name, lambda *_: pytest.fail("a model was read"))
        yield


@pytest.fixture(scope="module")
def skylake(skylake_store, table):
    """What they tell."""
    return read_approach(skylake_store, table).ports


def usage(builder, table, name):
    return builder.usage(table[name], builder.facts.front_end.throughputs.get(name))


def ports_of(builder, name):
    return set(builder.structure.sets[name])


def test_classes_know_their_ports(skylake):
    classes = skylake.facts.classes
    by_width = {("".join(classes.files[name]), classes.widths[name]) for name in skylake.structure.sets}
    assert {
        ("r", 4),
        ("r", 2),
        ("r", 1),
        ("v", 3),
        ("v", 2),
        ("v", 1),
        ("x", 2),
        ("m", 2),
        ("m", 1),
    } <= by_width


def test_integer_and_vector_classes_share_ports(skylake):
    files, widths = skylake.facts.classes.files, skylake.facts.classes.widths
    wide = next(n for n, f in files.items() if f == {"r"} and widths[n] == 4)
    vector = next(n for n, f in files.items() if f == {"v"} and widths[n] == 3)
    assert ports_of(skylake, vector) < ports_of(skylake, wide)


def test_a_usage_says_what_was_found(skylake, table):
    found = usage(skylake, table, "VPADDD (XMM, XMM, M128)")
    assert (found.confidence, found.slots) == (HIGH, 2)
    assert sorted((len(op.ports), op.count) for op in found.operations) == [(2, 1), (3, 1)]
    assert found.throughput == 0.5
    assert {label for label, weight in found.resources.items() if weight == 1} >= {
        f"p{''.join(map(str, op.ports))}" for op in found.operations
    }


def test_slots_are_not_told_where_the_width_was_disturbed(skylake, table):
    name = "SHL (R64, I8)"
    front_end = skylake.facts.front_end
    assert front_end.told(table[name]) == (1.0, NOTHING)
    slower = [r._replace(cycles=1.045 * r.cycles) for r in front_end._widths]
    readings = FrontEndReadings(front_end._readings, slower)
    disturbed = FrontEndFacts(table, front_end.throughputs, (), readings)
    slots, reason = disturbed.told(table[name])
    assert slots is None
    assert "as the width is not: no two kinds" in reason.text


@pytest.mark.parametrize(
    ("whole", "shown", "told"),
    [
        (1, 1.0, ""),
        (0, None, "neither a NOP nor a move"),
        (None, None, "its front-end slots are not known: 1.00 ± 0.02 slots: too vague"),
    ],
)
def test_slots_that_what_needs_a_port_cannot_have_are_not_told(skylake, table, whole, shown, told):
    name = "SHL (R64, I8)"
    known, count = skylake.facts.front_end, SlotCount(float(whole or 1), 0.02, whole, 0.9, 1.1, VAGUE)
    front_end = StatedFrontEnd(
        table,
        width=known.width,
        throughputs=known.throughputs,
        slots=known.slots | {name: count.slots},
        counts=known.counts | {name: count},
        width_fact=known.width_fact,
        saturating=known.saturating,
    )
    facts = PortFacts(front_end, skylake.facts.evidence, ())
    found = usage(PortBuilder(TimedJudge(facts, None)), table, name)
    assert found.operations
    assert found.slots == shown
    assert told in found.note
    assert (found.confidence == HIGH) == (shown == 1.0)


def test_what_limits_beside_ports_is_said(skylake, table):
    found = usage(skylake, table, "VDIVPS (XMM, XMM, XMM)")
    assert found.confidence != HIGH
    assert "runs slower than these ports allow" in found.note


def test_mmx_has_blocking_instructions_of_its_own(skylake, table):
    found = usage(skylake, table, "PADDB (MM, MM)")
    assert [len(op.ports) for op in found.operations] == [2]
    assert found.confidence == HIGH


def test_idle_slots_are_a_doubt(skylake, table):
    found = usage(skylake, table, "NOP")
    assert (found.ports, found.confidence) == ("-", "medium")
    assert "need no port" in found.note


def test_what_was_not_measured_has_no_ports(skylake, table):
    found = skylake.usage(table["DIVPD (XMM, XMM)"], 4.0, (NoPorts.NO_SLOTS.of(),))
    assert (found.ports, found.note) == (None, NoPorts.NO_SLOTS.value)


@pytest.mark.slow
def test_a_form_looks_the_same_alone_as_among_all(table, tmp_path):
    machine = load_model("skylake")
    forms = candidates(table)[::120]
    with closing(measure(machine, table, forms, LOUD, tmp_path / "store.sqlite")) as store:
        both = [read_approach(store, table, forms=some).ports for some in (None, forms[:8])]
    members = [builder.facts.classes.members for builder in both]
    assert members[0] == members[1]
    groups = [builder.judge.groups for builder in both]
    usual = [[solver.usual for _, solver in some.groups] for some in groups]
    assert usual[0] == usual[1]
    assert groups[0].noise == groups[1].noise
    for form in forms[:8]:
        one, other = (usage(builder, table, form.id) for builder in both)
        assert one == other


def test_results_do_not_depend_on_the_models_that_ship(skylake_store, table):
    """Neither what is asked, as the store was made without any to look up, nor what it tells."""
    with without_models():
        builder = read_approach(skylake_store, table).ports
        found = [usage(builder, table, name) for name in MEASURED]
    assert any(one.confidence == HIGH for one in found)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(skylake_store, skylake, table, tmp_path):
    stages = []
    original = PortCampaign.settle

    def stopping(self, stage, experiments, deadline):
        stages.append(stage)
        return original(self, stage, experiments, deadline) and len(stages) % 3 != 0

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PortCampaign, "settle", stopping)
        for _ in range(2):
            skylake_in(tmp_path / "parts.sqlite", table).close()
    with closing(skylake_in(tmp_path / "parts.sqlite", table)) as store:
        assert store.count() == skylake_store.count()
        assert read_approach(store, table).ports.facts.structure == skylake.facts.structure


def test_what_is_in_the_store_is_not_made_again(skylake_store, table, tmp_path, monkeypatch):
    file = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(file)) as copied:
        skylake_store.database.backup(copied)
    for made in ("_mixed", "_filling"):
        monkeypatch.setattr(PortPlanner, made, lambda *_: pytest.fail("a kernel was made"))
    forms = [table[name] for name in ("IMUL (R64, R64)", "VPADDD (XMM, XMM, M128)")]
    with closing(measure(load_model("skylake"), table, forms, QUIET, file)) as store:
        assert store.count() == skylake_store.count()


def test_what_microcode_does_is_no_port_unless_all_of_it_is_explained(table):
    names = ("VERR (R32)", "ADD (M64, R64)")
    sets = {"LEA_B_D32 (R64)": (0, 1), "MOV (M64, R64)": (2, 3), "MOV (R64, M64)": (2, 3)}

    def usages(access):
        files = {name: "m" if "M64" in name else "r" for name in sets}
        classes = classes_of(table, dict.fromkeys(sets, 2), files)
        looks = {name: [Look(access if "M64" in name else 1.0, ERROR)] for name in sets}
        found = StatedEvidence(classes, dict.fromkeys(names, looks), Structure(4, sets))
        slots = dict.fromkeys(names, 2.0) | {names[0]: 30.0}
        front_end = StatedFrontEnd(table, throughputs=dict.fromkeys(names, 9.0), slots=slots)
        builder = PortBuilder(TimedJudge(PortFacts(front_end, found, ()), None))
        return [builder.usage(table[name], 9.0) for name in names]

    assert [found.ports for found in usages(1.05)] == ["1*p01+1*p23"] * 2
    micro, plain = usages(1.15)
    assert (micro.ports, plain.ports) == ("?", "1*p01+1*p23")
    assert (micro.alternatives, micro.confidence) == ((), LOW)
    assert "microcoded" in micro.note


def test_a_core_without_a_filler_says_so(table, tmp_path):
    machine = llvm_model("alderlake")  # where NOP has no slot
    form = table["IMUL (R64, R64)"]
    with closing(measure(machine, table, [form], QUIET, tmp_path / "store.sqlite")) as store:
        found = read_approach(store, table)
        assert (found.front_end.filler, found.ports) == ("", None)
        planner = Planner(table, lambda form: True)
        assert found.is_complete(planner)
        assert found.usage(form, planner).remarks == (NoPorts.NO_FILLER.of(),)


def test_forms_that_hold_ports_for_other_reasons_are_conflicts(skylake, table):
    found = usage(skylake, table, "VERR (R32)")  # dozens of slots
    assert found.confidence == LOW
    assert found.microcoded


def test_errors_of_the_clock_go_both_ways(table):
    counts = {18: -0.08, 20: 0.0, 24: 0.08}  # slots by which the clock is wrong, per instance
    form = "IMUL (R64, R64)"
    readings = [
        Reading(form, "", "", f"x{n}.2", (n + 2 * (1 + wrong)) / 6, 0.03, 2) for n, wrong in counts.items()
    ]
    facts = FrontEndFacts(table, {"NOP": 1 / 6}, (), FrontEndReadings(readings))
    assert facts.slots[form] == pytest.approx(1)


@pytest.mark.parametrize(
    ("machine", "form"),
    [
        # no operand tells that its ports are those of addresses
        pytest.param("znver1", "MFENCE_0FAEF6", marks=pytest.mark.slow),
        ("skylake", "RCR (R8h, CL)"),  # ten micro-operations, and flags that blocking instructions may write
        pytest.param("neoverse-v1", "TBXv16i8Four", marks=pytest.mark.slow),  # five for the same two ports
    ],
)
def test_counters_tell_what_timing_can_hardly_tell(tmp_path, machine, form):
    model = load_model(machine)
    table = load_table(model.isa)
    comparison, [verdict], _ = compare(model, table, [table[form]], QUIET, counters=True)
    assert verdict.right
    assert comparison.same_structure()


@pytest.mark.slow
def test_usages_that_miss_what_was_counted_are_of_low_confidence():
    """ZNVER4 has units that no class fills: what is counted there leaves a usage incomplete."""
    model = load_model("znver4")
    table = load_table(model.isa)
    comparison, _, _ = compare(model, table, [table["MOVD (R32, XMM)"]], QUIET, counters=True)
    usage = comparison.builder.usage(table["MOVD (R32, XMM)"], 1.0)
    assert usage.operations is None
    assert "on ports that no class fills" in usage.note
    assert usage.confidence == LOW
    assert comparison.builder.judge.naming.meaning is Named.COUNTERS


@pytest.mark.slow
def test_two_for_the_same_ports_may_be_one_for_a_part_of_them():
    """Counters see the same of both, as no class has one of the ports alone."""
    model = load_model("neoverse-n2")
    table = load_table(model.isa)
    _, [verdict], _ = compare(model, table, [table["UQDECP_ZP_D"]], QUIET, counters=True)
    assert not verdict.right
    assert verdict.confidence == MEDIUM


@pytest.mark.slow
def test_what_other_ports_explain_of_the_throughput_is_not_explained_twice(table):
    model = draw_machine(5, list(table))  # its stores limit a shift in memory, whose other ports are classes'
    _, [verdict], _ = compare(model, table, [table["SHR (M64, I8)"]], QUIET)
    assert verdict.right


@pytest.mark.slow
def test_micro_operations_of_one_slot_are_two_where_all_classes_say_so():
    model = load_model("znver1")
    table = load_table(model.isa)
    _, [verdict], _ = compare(model, table, [table["INSERTQ (XMM, XMM, I8, I8)"]], QUIET)
    assert verdict.right


def test_divisions_and_roots_share_a_unit(skylake_store, table):
    names = ("VDIVPS (XMM, XMM, XMM)", "VSQRTPS (XMM, XMM)", "VDIVSS (XMM, XMM, XMM)", "IMUL (R64, R64)")
    model = build_model(skylake_store, table)
    units = [{n for n in model.forms[name].resources if n.startswith("what limits")} for name in names]
    assert len(units[0]) == 1
    assert units[0] == units[1] == units[2]
    assert not units[3]
    both = resource_throughput(model, {names[0]: 1.0, names[1]: 1.0})
    assert both[0] == pytest.approx(sum(model.forms[name].throughput for name in names[:2]), rel=0.05)


def test_moves_are_the_last_to_block(table):
    forms = [table[name] for name in ("VMOVQ_7E (XMM, XMM)", "PADDB (XMM, XMM)", "MOV (M64, R64)")]
    assert [form.id for form in sorted(forms, key=preference)] == [forms[1].id, forms[0].id, forms[2].id]
