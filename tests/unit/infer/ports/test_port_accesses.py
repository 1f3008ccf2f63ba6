"""Accesses to memory as blocking instructions: what they need beside ports, and where instances stand."""

from __future__ import annotations

import pytest

from benchmarks.drawn.round_trip import compare, core_named, sample
from cyclescope.backend.simulated import LOUD
from cyclescope.infer.likelihood.noise import Look, Tail, alike
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.likelihood.usage import UsageSolver
from cyclescope.infer.ports import class_questions
from cyclescope.infer.ports.builder import PortBuilder
from cyclescope.infer.ports.candidates import domains
from cyclescope.infer.ports.class_questions import ClassQuestions
from cyclescope.infer.ports.classes import knees_of, pairs_of, threes_of
from cyclescope.infer.ports.evidence import Costs
from cyclescope.infer.ports.groups import AccessCosts, PortGroups
from cyclescope.infer.ports.timed import TimedJudge
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PORTS, PortPlanner
from cyclescope.measure.record import Record
from cyclescope.model.facts import HIGH
from cyclescope.model.machine import Operation
from tests.support.made.classes import classes_of, facts_by_time
from tests.support.made.front_ends import StatedFrontEnd

STORE, PLAIN = "VMOVUPS (M128, XMM)", "MOV (M64, R64)"
ALU, MOVE, ADD = "LEA_B_D32 (R64)", "VMOVAPD_28 (XMM, XMM)", "VPADDB (XMM, XMM, XMM)"
FUSED = "VFMADD132PD (XMM, XMM, M128)"
CLASSES = {STORE: [STORE, PLAIN], ALU: [ALU]}
WIDTHS = {STORE: 2, ALU: 6}
FILES = {STORE: frozenset("m"), ALU: frozenset("r")}


def reading(form, source, cycles, more):
    """Two instances among blocking instructions of so many cycles: how many cycles they make it more."""
    return Record(form, PORTS, source, "", f"x{cycles}", cycles + more, 0.05, "ok", 2, ())


def known_classes(table, widths=WIDTHS, files=FILES, classes=CLASSES):
    return classes_of(table, widths, files, classes, {(STORE, ALU): 1.0, (MOVE, ADD): 10 / 6})


def facts_of(table, records=(), classes=CLASSES, widths=WIDTHS, files=FILES, **front_end):
    known = known_classes(table, widths, files, classes)
    return facts_by_time(known, records, StatedFrontEnd(table, 8.0, **front_end))


def test_of_stores_of_two_register_files_those_count_that_a_form_costs_least(table):
    """What reads three registers takes what brings vectors to stores on a Zen 5, and no port for stores."""
    among_vectors = [reading(FUSED, STORE, 8, 1.0), reading(FUSED, STORE, 13, 1.0)]
    [costly] = facts_of(table, among_vectors).confined[FUSED].values()
    assert costly == pytest.approx(1.0)
    [free] = facts_of(table, [*among_vectors, reading(FUSED, PLAIN, 8, 0.0)]).confined[FUSED].values()
    assert free == pytest.approx(0.0)


def test_what_waits_for_a_lock_tells_no_ports(table):
    records = [reading(form, ALU, 8, 1.0) for form in ("ADD_LOCK (M64, R64)", FUSED)]
    assert list(facts_of(table, records).confined) == [FUSED]


def test_readings_of_forms_without_new_records_are_not_read_anew(table):
    other = "LEA_B_D32 (R32)"
    records = [reading(form, ALU, 8, 1.0) for form in (FUSED, other)]
    before = Costs(known_classes(table), records)
    more = [*records, reading(FUSED, ALU, 13, 0.0)]
    after, anew = (Costs(known_classes(table), more, *told) for told in ((before, {FUSED}), ()))
    assert (after.looks, after.confined) == (anew.looks, anew.confined)
    assert list(after.looks) == list(anew.looks)
    assert after.looks[other] is before.looks[other]
    assert after.confined[FUSED] != before.confined[FUSED]
    wider = Costs(known_classes(table, {**WIDTHS, ALU: 4}), more, before, {FUSED})
    assert wider.looks[other] != before.looks[other], "of other classes they are"


def test_classes_that_are_not_wanted_are_not_looked_at(table, monkeypatch):
    """Most forms of a second look want none, and those for memory few."""
    looked_at = []
    monkeypatch.setattr(
        class_questions, "_touches", lambda facts, head, files: looked_at.append(head) or True
    )
    facts = facts_of(table, slots={FUSED: 1.0}, alone={FUSED: 1.0})
    questions = ClassQuestions(PortPlanner(Planner(table, lambda form: True)), lambda: None, [])
    asked = [list(questions._against(facts, [table[FUSED]], 0, only=some)) for some in ((), {ALU}, WIDTHS)]
    assert [[q.key[2] for q in some] for some in asked] == [[], [ALU], [STORE, ALU]]
    assert looked_at == [ALU, ALU], "the other one is of a file of its own"


def test_a_store_that_a_load_is_not_expected_to_cost_is_asked_of_another_register_file(table):
    def asked(cost, form):
        records = [reading(form, STORE, cycles, cost) for cycles in (8, 13)]
        builder = PortBuilder(
            TimedJudge(facts_of(table, records, slots={form: 1.0}, alone={form: 1.0}), None)
        )
        plans = PortPlanner(Planner(table, lambda form: True))
        questions = ClassQuestions(plans, lambda: builder, [table[form]])._again()
        return [q.key[4] for q in questions if q.key[2] == PLAIN]

    assert asked(1.0, FUSED) == ["x8", "x13"]
    assert asked(0.1, FUSED) == []
    assert asked(1.0, "VMOVUPS (M256, YMM)") == []  # it stores


def test_instances_that_stand_together_are_those_among_more_blocking_instructions(table):
    records = [reading(FUSED, STORE, cycles, 0.0) for cycles in (13, 8)]
    looks = facts_of(table, records).evidence.looks(FUSED)[STORE]
    assert [look.together for look in looks] == [True, False]


SETS = {"two": (0, 1), "four": (0, 1, 2, 3)}


def likeliest(together, spread, beside):
    """What explains readings of instances that stand apart and together, if those are usually `together`."""
    noise = alike(Tail(0.1, 0.4))
    solver = UsageSolver(
        SETS, [(0, 1), (0, 1, 2, 3)], {"two": {"four": 1.3}}, noise, counts=False,
        together={"two": {"four": together}},
    )  # fmt: skip
    looks = {
        "two": (Look(1.0, 0.05), Look(1.0, 0.05, together=True)),
        "four": (Look(spread, 0.1), Look(beside, 0.1, together=True)),
    }
    first, second = solver.candidates(looks, 0.5, 1)[:2]
    return first.operations, second.nats - first.nats


def test_what_is_usual_of_instances_that_stand_together_needs_no_other_micro_operation():
    one, clear = likeliest(1.9, 1.3, 1.9)
    same, vague = likeliest(1.3, 1.3, 1.9)
    assert one == same == (Operation((0, 1)),)
    assert clear > vague + 1.0
    assert likeliest(1.9, 2.4, 2.9)[0] == (Operation((0, 1)), Operation((0, 1, 2, 3)))


def test_what_stores_of_one_register_file_alone_cost_a_class_is_a_micro_operation_of_them(table):
    """On a Zen 5 the datum of a general register takes an ALU, that of a vector none."""
    own = [reading(name, ALU, 8, 1 / 3) for name in (PLAIN, STORE)]
    assert AccessCosts(facts_of(table, own)).by_kind[True] == {ALU: pytest.approx(1.0)}
    free = facts_of(table, [own[0], reading(STORE, ALU, 8, 0.0)])
    assert AccessCosts(free).by_kind[True] == {}


@pytest.mark.parametrize(
    ("wide", "most", "renaming"),
    [
        ([MOVE], 6, True),
        ([MOVE, "VPABSB (XMM, XMM)"], 6, False),  # something else runs as often
        ([MOVE], 3, False),  # additions run more often
    ],
)
def test_moves_that_run_more_often_than_anything_else_show_no_ports(table, wide, most, renaming):
    found = facts_of(
        table, [reading(n, n, 8, 2 / w) for n, w in ((MOVE, most), (ADD, 4))],
        {MOVE: wide, ADD: [ADD]}, {MOVE: most, ADD: 4}, {MOVE: frozenset("v"), ADD: frozenset("v")},
    )  # fmt: skip
    assert (MOVE in found.evidence.units) == renaming
    assert ADD not in found.evidence.units


@pytest.mark.parametrize(("form", "widest"), [
    ("VCVTUDQ2PH (YMM, K, M32_1to16)", True), ("VCVTUQQ2PH (XMM, K, M512)", True),
    ("VPADDD (ZMM, ZMM, ZMM)", True),
    ("VPADDD (YMM, YMM, M256)", False), ("VPADDD_EVEX (YMM, YMM, M32_1to8)", False),
    ("MOVDIR64B (R64, M512)", False),
])  # fmt: skip
def test_what_reads_512_bits_for_a_vector_is_of_the_widest_wherever_it_reads_them(table, form, widest):
    assert ("z" in domains(table[form])) == widest


def test_ports_that_only_the_widest_vectors_have_are_no_others(table):
    """A form that was not asked among those of 512 bits has no set of ports that only those have."""
    wide, narrow = "VPADDB (ZMM, ZMM, ZMM)", "VPADDB (XMM, XMM, XMM)"
    classes = classes_of(
        table, {wide: 2, narrow: 3}, {wide: frozenset("z"), narrow: frozenset("v")},
        {wide: [wide], narrow: [narrow]}, {(wide, narrow): 5 / 3},
    )  # fmt: skip
    facts = facts_by_time(classes, (), StatedFrontEnd(table, 8.0))
    groups = PortGroups(facts, Structure(3, {wide: (0, 1), narrow: (0, 1, 2)}), alike(Tail(0.1, 0.1)))
    [(_, solver)] = groups._for(table["PADDB (XMM, M128)"], {narrow: ()})
    assert solver.sets == [(0, 1, 2)]
    for form, asked in (("VPADDD (ZMM, ZMM, M512)", {narrow}), ("PADDB (XMM, M128)", {narrow, wide})):
        [(_, solver)] = groups._for(table[form], asked)
        assert solver.sets == [(0, 1), (0, 1, 2)]


def test_times_of_classes_that_fill_ports_together_are_none_of_each_in_full():
    def pair(variant, cycles):
        return Record("A", "pairs", "B", "", variant, cycles, 0.01, "ok", 1, ())

    some = [
        pair("x4.0", 6.0),
        pair("x4.1", 5.6),
        pair("x4.0.3.2", 4.0),
        pair("x4.1.2.3", 5.0),
        pair("x4.0.3.1", 4.4),
    ]
    both = frozenset("AB")
    assert pairs_of(some) == {both: pytest.approx(1.4)}
    assert knees_of(some) == {both: {5: pytest.approx(1.0), 4: pytest.approx(1.1)}}
    assert knees_of(some[:2]) == {}


def test_times_of_three_classes_are_none_of_two():
    def three(variant, cycles):
        return Record("A", "pairs", "B", "C", variant, cycles, 0.01, "ok", 1, ())

    some = [three("x4.0.4.3.3", 8.0), three("x4.1.4.3.3", 7.2), three("x4.0.1.1.1", 4.4)]
    assert threes_of(some) == {
        ("A", "B", "C"): {(4, 3, 3): pytest.approx(1.8), (1, 1, 1): pytest.approx(1.1)}
    }
    assert pairs_of(some) == knees_of(some) == {}


def test_three_classes_stand_in_one_loop_in_the_numbers_asked(table):
    """Each writes registers of its own, so that none waits for another."""
    plans = PortPlanner(Planner(table, lambda form: True))
    names = [ALU, ADD, "KNOTB (K, K)"]
    mixed, apart = (plans.filling([table[name] for name in names], (3, 2, 1), order) for order in (0, 1))
    assert mixed.key == (ALU, "pairs", ADD, "KNOTB (K, K)", "x4.0.3.2.1")
    body = [instruction.form.id for instruction in mixed.make().kernel.body]
    assert [body.count(name) for name in names] == [12, 8, 4]
    assert [one.form.id for one in apart.make().kernel.body] == sorted(body, key=names.index) != body


@pytest.mark.slow
def test_three_classes_of_a_drawn_machine_share_the_port_that_they_share():
    """Ports 0 1 3 6, 1 3 5 and 0 1 2: in pairs they take what 0 1 3 4, 0 2 3 and 1 2 4 would."""
    machine, front_end = core_named("drawn:408286")
    table = load_table(machine.isa)
    comparison, verdicts, _ = compare(machine, table, sample(table, machine, 40), LOUD, front_end=front_end)
    assert comparison.same_structure()
    assert all(verdict.right for verdict in verdicts if verdict.confidence == HIGH)
