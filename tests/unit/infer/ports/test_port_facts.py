"""What was measured of forms and classes of blocking instructions: which are ports, and what forms cost."""

from __future__ import annotations

import pytest

from cyclescope.infer.front_end.slots import SlotCount
from cyclescope.infer.front_end.width import FoundWidth
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.infer.ports.questions import (
    FIRST_LOOK,
    LONGEST_PAIR,
    SECOND_LOOK,
    second_slot_questions,
    simple_forms,
    slot_questions,
)
from cyclescope.infer.ports.timed import TimedJudge
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import ALONE, INSTANCES, PORTS, PortPlanner
from cyclescope.measure.record import Record
from cyclescope.remarks.ports import NoClass
from tests.support.made.classes import classes_of, cost_records, facts_by_time
from tests.support.made.front_ends import StatedFrontEnd

TWO, OTHER, THREE = "VPHMINPOSUW (XMM, XMM)", "VCVTDQ2PD (XMM, XMM)", "VBROADCASTSS (XMM, XMM)"
FOUR, LOAD = "VPADDB (XMM, XMM, XMM)", "MOV (R64, M64)"
MULTIPLIES = "VPMADDUBSW (XMM, XMM, XMM)"
WIDTHS = {TWO: 2, OTHER: 2, THREE: 3, FOUR: 4, LOAD: 2}
FILES = {name: frozenset("m" if name == LOAD else "v") for name in WIDTHS}


def facts_of(table, pairs, confined, width=6.0, widths=WIDTHS, files=FILES, members=None, throughputs=()):
    """Facts with pairs as times (of one class alone) and confinements as measured."""
    classes = classes_of(table, widths, files, members, pairs)
    front_end = StatedFrontEnd(table, width, dict(throughputs))
    return facts_by_time(classes, cost_records(classes, confined), front_end)


@pytest.fixture
def uneven(table):
    """As on Zen 4: a class of three of four ports, beside which the fourth is hardly used."""
    pairs = {
        (TWO, OTHER): 4 / 3, (TWO, THREE): 5 / 3, (OTHER, THREE): 5 / 3,
        (TWO, FOUR): 6 / 4, (OTHER, FOUR): 6 / 4, (THREE, FOUR): 7 / 4,
        (THREE, LOAD): 1.2,
    }  # fmt: skip
    confined = {
        TWO: {TWO: 1.0, OTHER: 0.0, THREE: 1.0, FOUR: 1.0},
        OTHER: {TWO: 0.0, OTHER: 1.0, THREE: 1.0, FOUR: 1.0},
        THREE: {TWO: 0.55, OTHER: 0.0, THREE: 1.0, FOUR: 1.0, LOAD: 0.0},
        FOUR: {TWO: 0.0, OTHER: 0.0, THREE: 0.8, FOUR: 1.0},
        LOAD: {LOAD: 1.0, THREE: 0.02},
    }
    return pairs, confined


def test_a_class_that_holds_others_up_is_ports_where_pairs_show_that_they_escape(table, uneven):
    facts = facts_of(table, *uneven)
    assert facts.evidence.units == {}
    sets = {name: set(ports) for name, ports in facts.structure.sets.items()}
    assert sets[THREE] == sets[TWO] | sets[OTHER]
    assert sets[THREE] < sets[FOUR]


@pytest.mark.parametrize("verdict", ["noisy", "unstable"])
def test_a_slow_form_that_one_round_found_fast_is_not_counted(table, verdict):
    """Among fillers for as long as it takes, it would be a loop of many thousand instructions."""
    plans = PortPlanner(Planner(table, lambda form: True))
    lucky = Record(TWO, ALONE, "", "", "", -0.1, 0.2, verdict, 2, ())
    fast = {form.id: 0.25 for form in simple_forms(table)}

    def asked(cycles):
        facts = FrontEndFacts(table, fast | {TWO: cycles}, [lucky])
        return len(list(slot_questions(facts, plans, [table[TWO]])))

    longest = LONGEST_PAIR / INSTANCES
    assert [asked(cycles) for cycles in (1.0, longest - 1)] == [len(FIRST_LOOK)] * 2
    assert [asked(cycles) for cycles in (longest + 1, 2000.0)] == [0, 0]


@pytest.mark.parametrize(
    ("each", "counted"), [(LONGEST_PAIR / INSTANCES - 1, True), (LONGEST_PAIR / INSTANCES + 1, False)]
)
def test_what_leaves_its_buffers_slowly_is_not_counted(table, each, counted):
    """Two streaming stores take a few cycles, eight of them hundreds: with 11208 NOPs a loop is none."""
    plans = PortPlanner(Planner(table, lambda form: True))
    buffered = Record(TWO, ALONE, "", "", "", 4.0, 0.1, "ok", 2, ())
    fast = {form.id: 0.25 for form in simple_forms(table)}
    facts = FrontEndFacts(table, fast | {TWO: each}, [buffered])
    asked = [*slot_questions(facts, plans, [table[TWO]])]
    assert bool(asked) == counted


def test_one_reading_makes_no_unit_but_a_doubt(table, uneven):
    pairs, confined = uneven
    facts = facts_of(table, pairs | {(THREE, FOUR): 7 / 3}, confined)
    assert not facts.evidence.units
    assert facts.structure.sets.keys() == WIDTHS.keys()


def test_a_class_that_the_others_contradict_is_no_set_of_ports(table, uneven):
    """One port cannot be among both of two pairs of ports that have none in common."""
    pairs, confined = uneven
    pairs = pairs | {(THREE, TWO): 5 / 2, (THREE, OTHER): 5 / 2, (THREE, FOUR): 7 / 2, (THREE, LOAD): 1.0}
    confined = confined | {
        TWO: confined[TWO] | {THREE: 1.0}, OTHER: confined[OTHER] | {THREE: 1.0},
        THREE: {TWO: 2.0, OTHER: 2.0, THREE: 1.0, FOUR: 2.0},
    }  # fmt: skip
    facts = facts_of(table, pairs, confined)
    left = {*facts.evidence.units, *facts.structure.left_out}
    assert left == {THREE}
    assert facts.structure.sets.keys() == WIDTHS.keys() - left


@pytest.mark.parametrize(("ratio", "is_unit"), [(4 / 3, False), (1.85, False), (1.95, True)])
def test_what_few_of_a_class_cost_two_others_is_no_port_where_many_fill_more(table, ratio, is_unit):
    """As multiplications of a Zen 3, which share one port with additions and one with conversions."""
    widths = {TWO: 2, OTHER: 2, MULTIPLIES: 2}
    pairs = {(TWO, OTHER): 1.0, (MULTIPLIES, TWO): ratio, (MULTIPLIES, OTHER): ratio}
    confined = {name: {name: 1.0} for name in widths}
    confined[MULTIPLIES] |= {TWO: 0.99, OTHER: 0.98}
    facts = facts_of(table, pairs, confined, widths=widths, files=dict.fromkeys(widths, "v"))
    assert (MULTIPLIES in facts.evidence.units) == is_unit
    if ratio == 4 / 3:
        sets = {name: set(ports) for name, ports in facts.structure.sets.items()}
        assert [len(sets[MULTIPLIES] & sets[name]) for name in (TWO, OTHER)] == [1, 1]


CROSSING, ONE = "CVTTPD2PI (MM, XMM)", "VCVTPS2DQ (XMM, XMM)"


@pytest.mark.parametrize(("files", "is_unit"), [("vx", False), ("x", True)])
def test_what_needs_two_register_files_does_not_show_what_others_need(table, files, is_unit):
    """It costs the ports of one class, and runs beside those of another as if it had none of them."""
    widths = {ONE: 1, CROSSING: 2, TWO: 2}
    apart = {(CROSSING, TWO): 1.0, (ONE, TWO): 1.5, (ONE, CROSSING): 1.5}
    confined = {name: {name: 1.0} for name in widths}
    confined[ONE] = dict.fromkeys(widths, 1.0)
    of = {ONE: "v", TWO: "v", CROSSING: files}
    assert (ONE in facts_of(table, apart, confined, widths=widths, files=of).evidence.units) == is_unit


def test_one_reading_does_not_make_memory_share_ports_with_what_computes(table, uneven):
    pairs, confined = uneven
    found = facts_of(table, pairs, confined | {LOAD: {LOAD: 1.0, THREE: 1.0}}).structure
    assert set(found.sets[LOAD]).isdisjoint(found.sets[FOUR])
    assert not found.left_out


WIDE, WIDER = "VPADDD (ZMM, ZMM, ZMM)", "VMULPD (ZMM, ZMM, ZMM)"
LONG = {THREE: 3, WIDE: 2, WIDER: 2}
LONG_FILES = {THREE: frozenset("v"), WIDE: frozenset("z"), WIDER: frozenset("z")}


@pytest.mark.parametrize(
    ("times", "shuts"),
    [((), True), ((1.0, 1.0), False), ((1.15, 1.15), False), ((1.33, 1.0), False), ((1.33, 1.33), True)],
)
def test_whether_ports_are_shut_to_shorter_vectors_is_asked(table, times, shuts):
    """Two classes of which one has all ports of the other take so many times longer together."""
    pairs = {(THREE, wide): 5 / 3 * more for wide, more in zip((WIDE, WIDER), times, strict=False)}
    own = {name: {name: 1.0} for name in LONG}
    inside = {name: own[name] | {THREE: 1.0} for name in (WIDE, WIDER)} if pairs else {}
    facts = facts_of(table, pairs | {(WIDE, WIDER): 1.0}, own | inside, 8.0, LONG, LONG_FILES)
    assert facts.evidence.shuts == shuts
    assert bool(facts.evidence.looks(WIDE).get(THREE)) == (bool(pairs) and not shuts)
    if times == (1.0, 1.0):
        assert set(facts.structure.sets[WIDE]) < set(facts.structure.sets[THREE])


@pytest.mark.parametrize(
    ("among", "together", "shuts"),
    [
        (2.0, 5 / 3, False), (1.9, 5 / 3, False), (2.0, 1.98, False), (2.0, 2.02, True), (1.0, 5 / 3, True),
        (1.8, 5 / 3, True), (4.0, 2.0, True),
    ],
)  # fmt: skip
def test_what_takes_units_of_half_its_width_twice_shuts_no_ports(table, among, together, shuts):
    """One in a cycle beside three shorter ones on three ports takes 4/3 cycles, or 5/3 if it takes two turns.

    Where a port is shut to shorter ones as long as the loop lasts, it costs more, the more of them there are.
    """
    widths = LONG | {WIDE: 1, WIDER: 1}
    pairs = {(THREE, wide): together for wide in (WIDE, WIDER)}
    own = {name: {name: 1.0} for name in widths}
    inside = {name: own[name] | {THREE: among} for name in (WIDE, WIDER)}
    facts = facts_of(table, pairs, own | inside, 8.0, widths, LONG_FILES)
    assert facts.evidence.shuts == shuts
    assert shuts or {WIDE, WIDER} <= facts.evidence.units.keys()


@pytest.mark.parametrize(("among", "is_unit"), [(1.0, False), (2.0, True)])
def test_what_takes_two_turns_of_ports_that_nearly_fill_the_front_end_is_no_class(table, among, is_unit):
    widths, files = {FOUR: 6, WIDE: 3}, {FOUR: frozenset("v"), WIDE: frozenset("z")}
    confined = {FOUR: {FOUR: 1.0, WIDE: 0.5}, WIDE: {WIDE: 1.0, FOUR: among}}
    facts = facts_of(table, {(WIDE, FOUR): 1 + among / 2}, confined, 7.0, widths, files)
    assert (WIDE in facts.evidence.units) == is_unit


@pytest.mark.parametrize(
    ("other", "among", "is_unit"),
    [(2.0, 0.0, True), (2.0, 0.11, True), (2.0, 0.13, False), (2.0, 1.0, False), (1.0, 0.0, False)],
)
def test_what_no_shorter_class_shows_takes_as_many_turns_as_the_others_of_its_length(
    table, other, among, is_unit
):
    """Four ports, two turns each: shorter vectors of these fill the front end, so that it looks like two."""
    widths = {TWO: 2, WIDE: 1, WIDER: 2}
    files = {TWO: frozenset("v"), WIDE: frozenset("z"), WIDER: frozenset("z")}
    pairs = {(WIDE, TWO): 1 + other / 2, (WIDER, TWO): 1.5 if is_unit else 4 / 3, (WIDE, WIDER): 1.5}
    confined = {
        TWO: {TWO: 1.0, WIDE: 0.5, WIDER: is_unit / 2},
        WIDE: {TWO: other, WIDE: 1.0, WIDER: 1.0},
        WIDER: {TWO: among, WIDE: 0.0, WIDER: 1.0},
    }
    facts = facts_of(table, pairs, confined, 4.0, widths, files)
    assert (WIDER in facts.evidence.units) == is_unit


ROTATE, ADD, MOVE = "RORX (R64, R64, I8)", "LEA_B_D32 (R64)", "LEA_B (R64)"


@pytest.mark.parametrize(("move", "inside", "is_unit"), [(7, 0.0, True), (7, 1.0, False), (6, 0.0, False)])
def test_what_nearly_fills_the_front_end_is_ports_where_it_shares_some(table, move, inside, is_unit):
    """Moves that are eliminated run at 7 a cycle where 8 are renamed; six ALUs of six are no such thing."""
    widths = {ROTATE: 3, ADD: 4, MOVE: move}
    pairs = {(ROTATE, ADD): 7 / 4, (MOVE, ADD): (4 + move) / 8, (MOVE, ROTATE): (3 + move) / 8}
    if inside:
        pairs |= {(MOVE, ADD): (4 + move) / move, (MOVE, ROTATE): (3 + move) / move}
    confined = {
        ROTATE: {ROTATE: 1.0, ADD: 1.0, MOVE: inside}, ADD: {ADD: 1.0, ROTATE: 0.0, MOVE: inside},
        MOVE: {MOVE: 1.0, ADD: 0.0, ROTATE: 0.0},
    }  # fmt: skip
    facts = facts_of(table, pairs, confined, 8.0, widths, dict.fromkeys(widths, frozenset("r")))
    assert (MOVE in facts.evidence.units) == is_unit
    assert facts.renamed == ({MOVE} if is_unit else set())
    assert {*facts.structure.sets} == widths.keys() - ({MOVE} if is_unit else set())


MULTIPLY = "IMUL (R64, R64, 0)"
LATE = {ROTATE: 3, ADD: 6, MULTIPLY: 3}


def multiplier(table, together, throughputs=(), deposit=0.0, wider=0.0):
    """Multiplications that cost additions two turns of their ports, and how long both take together.

    What `throughputs` has is of their class as well, and costs rotations `deposit` and additions `wider`.
    """
    pairs = {(ROTATE, ADD): 9 / 6, (ROTATE, MULTIPLY): 6 / 5, (MULTIPLY, ADD): together}
    confined = {
        ROTATE: {ROTATE: 1.0, ADD: 1.0, MULTIPLY: 0.0}, ADD: {ADD: 1.0, ROTATE: 0.0, MULTIPLY: 0.0},
        MULTIPLY: {MULTIPLY: 1.0, ADD: 2.0, ROTATE: 0.5},
        **{name: {ROTATE: deposit, ADD: wider} for name in dict(throughputs)},
    }  # fmt: skip
    members = {ROTATE: [ROTATE], ADD: [ADD], MULTIPLY: [MULTIPLY, *dict(throughputs)]}
    files = dict.fromkeys(LATE, frozenset("r"))
    return facts_of(table, pairs, confined, 8.0, LATE, files, members, throughputs)


@pytest.mark.parametrize(("together", "is_unit"), [(1.79, False), (1.87, False), (1.9, True), (2.0, True)])
def test_late_results_are_no_second_micro_operation_where_ports_are_filled_sooner(table, together, is_unit):
    """Two of each would fill six ports for two cycles; a Zen 5 takes 1.79."""
    facts = multiplier(table, together)
    assert (MULTIPLY in facts.evidence.units) == is_unit
    if not is_unit:
        sets = {name: set(ports) for name, ports in facts.structure.sets.items()}
        assert len(sets[MULTIPLY] & sets[ROTATE]) == 1
        assert sets[MULTIPLY] < sets[ADD]
        assert facts.evidence.late == {MULTIPLY}


@pytest.mark.parametrize(
    ("deposit", "cycles", "number", "crowded"),
    [
        (2.0, 1 / 3, 3, True), (1.4, 1 / 3, 3, False), (2.0, 2 / 3, 3, False), (2.0, 1 / 3, 2, False),
        (2.4, 1 / 3, 3, True), (2.6, 1 / 3, 3, False),
    ],
)  # fmt: skip
def test_ports_lose_turns_where_some_forms_cost_more_than_they_can_take(
    table, deposit, cycles, number, crowded
):
    """What runs three times a cycle has no two micro-operations for three ports; two forms may be noise.

    What costs more than two turns makes others wait for something else.
    """
    names = ["PDEP (R64, R64, R64)", "PEXT (R64, R64, R64)", "PEXT (R32, R32, R32)"][:number]
    facts = multiplier(table, 1.79, dict.fromkeys(names, cycles), deposit, 1.0)
    assert facts.evidence.crowded == ({ROTATE} if crowded else set())


@pytest.mark.parametrize(("deposit", "wider", "crowded"), [
    (2.0, 2.0, {ROTATE, ADD}), (2.0, 1.4, {ROTATE}), (1.0, 2.0, set()), (2.0, 2.6, {ROTATE}),
])  # fmt: skip
def test_a_class_with_these_ports_and_others_loses_the_turns_as_well(table, deposit, wider, crowded):
    """PDEP has one micro-operation for three of six ports, which costs all six two turns on a Zen 5."""
    names = ["PDEP (R64, R64, R64)", "PEXT (R64, R64, R64)", "PEXT (R32, R32, R32)"]
    facts = multiplier(table, 1.79, dict.fromkeys(names, 1 / 3), deposit, wider)
    assert facts.evidence.crowded == crowded


def test_accesses_to_memory_are_one_micro_operation_if_they_cost_one_at_best(table):
    """Side by side they cost as much as two, where a core deals them out before it knows what is free."""
    store = "MOV (M64, R64)"
    widths = {LOAD: 4, store: 2}

    def taken(*cycles):
        """Of a store among loads; of what it costs alone, nothing is known."""
        records = [
            Record(store, PORTS, LOAD, "", f"x8.{n}", c, 0.0, "ok", 2, ()) for n, c in enumerate(cycles)
        ]
        classes = classes_of(table, widths, dict.fromkeys(widths, "m"))
        facts = facts_by_time(classes, records, StatedFrontEnd(table, 8.0))
        return store in (units := facts.evidence.units) and units[store].meaning is NoClass.SEVERAL

    one, two = 8 + INSTANCES / 4, 8 + 2 * INSTANCES / 4
    assert [taken(one, two), taken(two, one), taken(two, two)] == [False, False, True]


def test_what_loads_cost_each_other_is_no_second_micro_operation(table):
    """Waiting for flags is: what forms of other classes cost more than half of one more does not count."""
    for cost, usual in ((0.7, 0.7), (1.3, 1.3), (1.45, 1.45), (1.6, 1.5), (2.0, 1.5)):
        confined = {LOAD: {LOAD: 1.0, THREE: cost}, TWO: {TWO: 1.0, THREE: cost}}
        groups = TimedJudge(facts_of(table, {}, confined), None).groups
        assert [groups._usual(name)[THREE] for name in (LOAD, TWO)] == pytest.approx([cost, usual])


def test_what_is_not_proved_is_asked_again_in_loops_of_whole_cycles(table):
    unsure, sure = SlotCount(1.2, 0.05, None, 1.2, 1.7), SlotCount(1.0, 0.05, 1, 1.0, 1.0)
    front_end = StatedFrontEnd(
        table,
        throughputs={TWO: 0.5, THREE: 0.5},
        counts={TWO: unsure, THREE: sure},
        alone={TWO: 2.0, THREE: 2.0},
        width_fact=FoundWidth(6.0, 0.0),
    )
    asked = second_slot_questions(
        front_end, PortPlanner(Planner(table, lambda f: True)), [table[TWO], table[THREE]]
    )
    variants = [question.key[-1] for question in asked if question.key[0] == TWO]
    counts = [tuple(map(int, text[1:].split("."))) for text in variants]
    whole = [(fillers, instances) for fillers, instances in counts if fillers % 6 == instances % 6 == 0]
    assert len(whole) == 2
    assert len({fillers for fillers, _ in whole}) == 2
    assert len(counts) == len(whole) + len(SECOND_LOOK)


def test_members_of_classes_and_what_differs_in_width_only_are_typical(table):
    typical = set(facts_of(table, {}, {}).classes.typical)
    assert WIDTHS.keys() <= typical
    assert {"VCVTDQ2PD (ZMM, YMM)", "VBROADCASTSS (ZMM, XMM)"} <= typical
    assert typical.isdisjoint(("VCVTDQ2PD (ZMM, M256)", "VPADDD (ZMM, ZMM, ZMM)"))


RING = "VPMADDUBSW (XMM, XMM, XMM)"


@pytest.mark.parametrize(("together", "is_unit"), [(4 / 3, False), (1.85, False), (1.9, True), (2.0, True)])
def test_one_port_of_each_of_two_pairs_is_no_micro_operation_for_either(table, together, is_unit):
    """As on a Zen 3: a few cost either pair one, but beside it two in a cycle fill three ports."""
    widths = {TWO: 2, OTHER: 2, RING: 2, FOUR: 4}
    pairs = {(TWO, OTHER): 1.0, (TWO, RING): together, (OTHER, RING): together}
    pairs |= {(name, FOUR): 6 / 4 for name in (TWO, OTHER, RING)}
    confined = {
        TWO: {TWO: 1.0, OTHER: 0.0, RING: 0.0, FOUR: 1.0},
        OTHER: {TWO: 0.0, OTHER: 1.0, RING: 0.0, FOUR: 1.0},
        RING: {TWO: 1.0, OTHER: 1.0, RING: 1.0, FOUR: 1.0},
        FOUR: {TWO: 0.0, OTHER: 0.0, RING: 0.0, FOUR: 1.0},
    }
    facts = facts_of(table, pairs, confined, widths=widths, files=dict.fromkeys(widths, frozenset("v")))
    assert (RING in facts.evidence.units) == is_unit
    if together < 1.5:
        sets = {name: set(ports) for name, ports in facts.structure.sets.items()}
        assert [len(sets[RING] & sets[name]) for name in (TWO, OTHER, FOUR)] == [1, 1, 2]
        assert TimedJudge(facts, None).groups.blind


@pytest.mark.parametrize(
    ("together", "costs", "blind"),
    [(1.5, 0.0, False), (1.64, 0.0, False), (1.66, 0.0, True), (1.5, 0.45, False), (1.5, 0.55, True)],
)
def test_a_core_deals_ports_out_blindly_where_classes_are_in_each_others_way(table, together, costs, blind):
    """Two pairs with one port in common have three: two of each fill them for 4/3 of a cycle."""
    widths = {TWO: 2, OTHER: 2, FOUR: 4}
    pairs = {(TWO, OTHER): 4 / 3, (TWO, FOUR): together, (OTHER, FOUR): 6 / 4}
    confined = {
        TWO: {TWO: 1.0, OTHER: costs, FOUR: 1.0}, OTHER: {TWO: 0.0, OTHER: 1.0, FOUR: 1.0},
        FOUR: {TWO: 0.0, OTHER: 0.0, FOUR: 1.0},
    }  # fmt: skip
    facts = facts_of(table, pairs, confined, widths=widths, files=dict.fromkeys(widths, frozenset("v")))
    assert TimedJudge(facts, None).groups.blind == blind


def test_what_accesses_take_of_each_other_does_not_show_how_ports_are_dealt_out(table):
    store = "MOV (M64, R64)"
    widths = {LOAD: 3, store: 2}
    confined = {LOAD: {LOAD: 1.0, store: 0.0}, store: {LOAD: 1.0, store: 1.0}}
    facts = facts_of(table, {(LOAD, store): 2.5}, confined, widths=widths, files=dict.fromkeys(widths, "m"))
    assert not TimedJudge(facts, None).groups.blind
