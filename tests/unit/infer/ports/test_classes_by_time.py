"""Which forms are of one class, which of them stands for it, and which classes have ports."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cyclescope.infer.ports.classes import blockers_of, grouped_by_time
from cyclescope.infer.ports.counted import grouped_by_counts
from cyclescope.infer.ports.front_end import is_one_slot
from tests.support.made.classes import classes_of, cost_records, facts_by_time
from tests.support.made.front_ends import StatedFrontEnd

FOUR, ADD = "VPADDB (XMM, XMM, XMM)", "LEA_B_D32 (R64)"
GROUP = {("v", 2): ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("times", "members"),
    [(1.95, {"a": ["a", "b"], "c": ["c"]}), (1.85, {"a": ["a"], "b": ["b"], "c": ["c"]})],
)
def test_forms_that_take_nearly_twice_as_long_together_have_the_same_ports(times, members):
    """The more of their ports are the same the longer: two of three that are take 1.5 times as long."""
    pairs = {frozenset("ab"): times, frozenset("ac"): 1.0, frozenset("bc"): 1.0}
    assert grouped_by_time(GROUP, pairs) == (members, [])


def test_those_that_were_not_measured_together_are_told():
    assert grouped_by_time(GROUP, {frozenset("ab"): 2.0}) == ({"a": ["a", "b"]}, [("a", "c", 2)])


@pytest.mark.parametrize("shared", [True, False])
def test_moves_have_ports_where_instructions_of_other_registers_share_them(table, shared):
    """A drawn core has five ports for vectors and general registers, and moves alone were sampled of five."""
    moves = "MOVSX (R64, R8l)"
    widths, files = {FOUR: 4, ADD: 2, moves: 5}, {FOUR: "v", ADD: "r", moves: "r"}
    pairs = {(moves, FOUR): 9 / 5 if shared else 1.0, (moves, ADD): 7 / 5, (ADD, FOUR): 1.0}
    confined = {
        FOUR: {FOUR: 1.0, ADD: 0.0, moves: float(shared)}, ADD: {FOUR: 0.0, ADD: 1.0, moves: 1.0},
        moves: {FOUR: 0.0, ADD: 0.0, moves: 1.0},
    }  # fmt: skip
    classes = classes_of(table, widths, files, None, pairs)
    facts = facts_by_time(classes, cost_records(classes, confined), StatedFrontEnd(table, 12.0))
    assert (moves in facts.evidence.units) != shared


@pytest.mark.parametrize(
    ("alone", "found"),
    [
        (1.0, ["BLSR (R64, R64)", "POPCNT (R64, R64)"]),
        (1.9, ["POPCNT (R64, R64)", "BLSR (R64, R64)"]),
        (2.1, ["POPCNT (R64, R64)"]),  # their rate may be that of few registers, and not of two ports
    ],
)
def test_what_waits_for_what_it_overwrites_stands_for_no_class(table, alone, found):
    """Two of them take longer than two that something else separates, though they read no result.

    A drawn core has three ports for PABSD, which writes one of six registers of MMX: one in three cycles.
    """
    names = ["BLSR (R64, R64)", "POPCNT (R64, R64)"]
    facts = SimpleNamespace(
        table=table, throughputs=dict.fromkeys(names, 0.5), alone={names[0]: alone, names[1]: 1.0},
        takes=lambda form, slots: slots == 1,
    )  # fmt: skip
    [group] = blockers_of(facts, 6).values()
    assert group == found


@pytest.mark.parametrize(
    ("slots", "width", "stores"),
    [
        ((1, 1), 6, ["VMOVUPS (M128, XMM)", "MOV (M64, R64)"]),
        ((2, 1), 6, ["VMOVUPS (M128, XMM)"]),
        (
            (2, 2),
            6,
            ["MOV (M64, R64)", "VMOVUPS (M128, XMM)"],
        ),  # whose datum needs none of the vectors' ports
        ((2, 2), 4, []),  # nothing would run beside them
    ],
)
def test_stores_of_two_slots_are_blocking_instructions_where_no_others_are(table, slots, width, stores):
    taken = {"MOV (M64, R64)": slots[0], "VMOVUPS (M128, XMM)": slots[1], "MOV (R64, M64)": 1}
    facts = SimpleNamespace(
        table=table, throughputs=dict.fromkeys(taken, 0.5), alone={},
        takes=lambda form, slots: slots == taken[form],
    )  # fmt: skip
    [group] = blockers_of(facts, width).values()
    assert group == ["MOV (R64, M64)", *stores]


@pytest.mark.parametrize(("vectors", "kept"), [((5, 6), True), ((5, 7), False), ((7, 8), True)])
def test_what_fills_the_front_end_has_ports_if_others_show_no_more_of_them(table, vectors, kept):
    """Four of five ports, all that four slots fill: vectors of other registers have the fifth."""
    wide, two = "PSHUFW (MM, MM, I8)", "VAESIMC (XMM, XMM)"
    filled = {wide: (frozenset("3456"), 8.0), two: (frozenset(map(str, vectors)), 4.0)}
    blockers = {("p", 4): [wide], ("v", 2): [two]}
    found = grouped_by_counts(StatedFrontEnd(table, 4.0), blockers, filled)
    assert (wide in found.members) == kept
    assert two in found.members


@pytest.mark.parametrize(("vectors", "kept"), [("78", True), ("8", False), ("57", False)])
def test_a_port_of_vectors_that_others_of_its_registers_use_is_no_port_more(table, vectors, kept):
    """CRC32 runs on a vector port of LLVM's first Zen, whose four ALUs are all that four slots fill."""
    wide, crc, two = "LEA_B (R64)", "CRC32 (R64, R64)", "VAESIMC (XMM, XMM)"
    width = len(vectors)
    filled = {
        wide: (frozenset("3456"), 8.0), crc: (frozenset("7"), 2.0), two: (frozenset(vectors), 2.0 * width)
    }  # fmt: skip
    blockers = {("r", 4): [wide], ("r", 1): [crc], ("v", width): [two]}
    assert (wide in grouped_by_counts(StatedFrontEnd(table, 4.0), blockers, filled).members) == kept


@pytest.mark.parametrize("kept", [True, False])
def test_widest_vectors_that_keep_twice_as_many_ports_are_no_class(table, kept):
    """Three of 512 bits a cycle: six ports that each keeps for two, or three of which three others share two.

    Shorter ones of six ports would fill a front end of six slots.
    """
    wide, one = "VPADDB (ZMM, ZMM, ZMM)", "VPSADBW (XMM, XMM, XMM)"
    widths, files = {wide: 3, FOUR: 3, one: 1}, {wide: "z", FOUR: "v", one: "v"}
    share = 0.5 if kept else 0.0
    pairs = {(wide, FOUR): 1.5, (wide, one): 7 / 6 if kept else 1.0, (FOUR, one): 4 / 3}
    confined = {
        wide: {wide: 1.0, FOUR: 0.0, one: 0.0}, FOUR: {wide: share, FOUR: 1.0, one: 0.0},
        one: {wide: share, FOUR: 1.0, one: 1.0},
    }  # fmt: skip
    classes = classes_of(table, widths, files, None, pairs)
    facts = facts_by_time(classes, cost_records(classes, confined), StatedFrontEnd(table, 6.0))
    assert (wide in facts.evidence.units) == kept
    assert facts.per_slot(table[wide]) == 1 + kept


@pytest.mark.parametrize(("costs", "is_unit"), [
    ((0.25, 0.25, 0.25), True), ((0.25, 0.25, 0.0), False), ((0.25, 0.25, 1.0), False),
    ((0.25, 0.25, 0.4), False), ((0.9, 0.9, 0.9), False), ((0.5, 0.5, 0.61), True),
])  # fmt: skip
def test_what_costs_nobody_a_whole_is_of_several_turns(table, costs, is_unit):
    """One BSWAP keeps all four ALUs of LLVM's first Zen busy: additions fill its front end."""
    swap, others = "BSWAP (R64)", ("ADD_01 (R64, R64)", "SUB_29 (R64, R64)", "OR_09 (R64, R64)")
    classes = classes_of(table, {swap: 1}, {swap: "r"}, None, {})
    confined = {swap: {swap: 1.0}, **{form: {swap: cost} for form, cost in zip(others, costs, strict=True)}}
    front_end = StatedFrontEnd(table, 4.0, slots=dict.fromkeys(others, 1.0))
    facts = facts_by_time(classes, cost_records(classes, confined), front_end)
    assert (swap in facts.evidence.units) == is_unit


@pytest.mark.parametrize(("slots", "is_one"), [(0.74, False), (0.76, True), (1.29, True), (1.31, False)])
def test_about_one_slot_is_one(slots, is_one):
    assert is_one_slot(slots) == is_one
