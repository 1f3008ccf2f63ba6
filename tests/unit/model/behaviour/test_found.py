"""What facts of probes say of a core to those who predict its loops."""

from __future__ import annotations

import pytest

from cyclescope.model import library
from cyclescope.model.behaviour.found import (
    LINE_SIZES,
    SMALL_PLACES,
    SPACINGS,
    behaviour_of,
    measured_behaviour,
)
from cyclescope.model.behaviour.late_loads import LateLoads
from cyclescope.model.behaviour.nops import BeforeNop
from cyclescope.model.behaviour.passing import DISTANCES, MemoryPassing
from cyclescope.model.behaviour.published import (
    CORES,
    CoreBehaviour,
    LoadBanks,
    PartialWords,
    StoreChunks,
)
from cyclescope.model.facts import (
    ACROSS_AND_BEHIND,
    BANKS,
    CONSUMERS,
    COUNTED_AMONG,
    CROSSING,
    FORWARDING,
    FUSED_BRANCHES,
    FUSION,
    LOADED_PLACES,
    LOADS_AND_OPERATIONS,
    LOOPED,
    NARROW_LOADS,
    OF_GENERAL,
    PARTIAL_BITS,
    RENAMING,
    STACKED,
    THREES,
    WHOLE_BITS,
    CoreAnswer,
    Fact,
    MemoryWay,
    consumer_subject,
    distance_subject,
    forwarding_subject,
    fused_subject,
    loads_across,
    loads_apart,
    small_stores,
    stores_apart,
)
from cyclescope.model.machine import MEASURED, Core, MachineModel, Provenance
from cyclescope.probe.catalogue import PROBES
from cyclescope.session.machines import load_model

X86 = "x86-64"

FORWARDED, RENAMED, FAILED = CoreAnswer.FORWARDED, CoreAnswer.RENAMED, CoreAnswer.FAILED


def machine(*facts, kind=MEASURED, name="AuthenticAMD 19-11-1 znver4"):
    return MachineModel(name, "x86-64", Provenance(kind), Core(4.0), (), {}, facts=facts)


def test_a_measured_machine_has_its_own_facts_alone():
    """Its name says nothing: what a core of that name does may be another version's."""
    assert behaviour_of(machine()).renamed == ""
    assert behaviour_of(machine()).store_chunk is None
    assert not behaviour_of(machine()).passing
    assert behaviour_of(machine(kind="extracted")).store_chunk == StoreChunks(32, 32)


def test_every_subject_that_is_read_is_asked():
    asked = {(probe.name, case.subject) for probe in PROBES.values() for case in probe.cases("x86-64")}
    wanted = [(RENAMING, str(way)) for way in MemoryWay]
    kinds = (OF_GENERAL, STACKED, LOOPED)
    wanted += [(RENAMING, distance_subject(count, kind)) for count in DISTANCES for kind in kinds]
    wanted += [(BANKS, name(apart)) for name in (loads_apart, stores_apart) for apart in SPACINGS]
    wanted += [(CONSUMERS, consumer_subject("ADDSD (XMM, XMM)", "MULSD (XMM, XMM)"))]
    wanted += [
        (BANKS, THREES),
        (BANKS, NARROW_LOADS),
        (BANKS, ACROSS_AND_BEHIND),
        (BANKS, LOADED_PLACES),
        (BANKS, LOADS_AND_OPERATIONS),
        *((BANKS, small_stores(bits, 2)) for bits in (*PARTIAL_BITS, WHOLE_BITS)),
        *((BANKS, small_stores(PARTIAL_BITS[0], places)) for places in SMALL_PLACES),
        *((CROSSING, loads_across(f"{line} bytes")) for line in LINE_SIZES),
    ]
    wanted += [(FORWARDING, forwarding_subject(64, 64, 0)), (FORWARDING, forwarding_subject(64, 64, 4))]
    wanted += [(FUSION, fused_subject("CMP_39 (R64, R64)", "JZ (Rel8)"))]
    assert set(wanted) <= asked


# --- banks and chunks -------------------------------------------------------------------------------


def rates(name, slow, fast, slowed, error=0.02):
    return [
        Fact(BANKS, name(apart), CoreAnswer.VALUE, slow if apart in slowed else fast, error)
        for apart in SPACINGS
    ]


def test_banks_are_as_wide_as_the_least_distance_that_does_not_wait():
    facts = rates(loads_apart, 2.0, 3.0, (0, 4, 64, 128, 256))
    assert measured_behaviour(facts, X86).banks == LoadBanks(8, 64, 2.0)


@pytest.mark.parametrize(("rate", "width"), [(3.0, 4), (2.6, 4), (2.5, 8), (2.0, 8)])
def test_narrow_loads_tell_of_narrow_banks(rate, width):
    facts = rates(loads_apart, 2.0, 3.0, (0, 4, 64, 128, 256))
    facts.append(Fact(BANKS, NARROW_LOADS, CoreAnswer.VALUE, rate, 0.02))
    assert measured_behaviour(facts, X86).banks == LoadBanks(width, 64, 2.0)


def test_a_rate_is_a_half_of_a_number_where_it_may_be_one():
    slowed = (0, 4, 64, 128, 256)
    assert measured_behaviour(rates(loads_apart, 1.981, 3.0, slowed), X86).banks == LoadBanks(8, 64, 2.0)
    assert measured_behaviour(rates(loads_apart, 1.9, 3.0, slowed), X86).banks == LoadBanks(8, 64, 1.9)


@pytest.mark.parametrize(
    ("slow", "slowed", "error"),
    [(3.0, (), 0.02), (2.0, SPACINGS, 0.02), (2.0, (0, 4), 0.02), (2.0, (0, 64), 0.6), (2.7, (0, 64), 0.02)],
)
def test_no_banks_where_nothing_shows_them(slow, slowed, error):
    """All alike, no second bank, no period, errors as large as the difference, hardly a difference."""
    assert measured_behaviour(rates(loads_apart, slow, 3.0, slowed, error), X86).banks is None


def test_a_chunk_is_the_distance_from_which_on_stores_are_slower():
    facts = rates(stores_apart, 1.0, 2.0, (64, 128, 256))
    assert measured_behaviour(facts, X86).store_chunk == StoreChunks(64, 64)
    odd = [Fact(BANKS, THREES, CoreAnswer.VALUE, 1.5, 0.02)]
    even = [Fact(BANKS, THREES, CoreAnswer.VALUE, 1.9, 0.02)]
    assert measured_behaviour(facts + odd, X86).store_chunk == StoreChunks(64, 2)
    assert measured_behaviour(facts + even, X86).store_chunk == StoreChunks(64, 64)
    assert measured_behaviour(rates(stores_apart, 1.0, 2.0, (64,)), X86).store_chunk is None
    assert measured_behaviour(rates(stores_apart, 1.0, 2.0, ()), X86).store_chunk is None


@pytest.mark.parametrize(
    ("values", "error", "apart"),
    [
        ((), 0.1, False), ((0.0, 0.02), 0.16, True), ((0.0, 1.0), 0.16, False), ((0.3, 0.0), 0.21, False),
        ((0.3, 0.0), 0.19, True), ((None, 0.0), 0.1, True), ((None, None), 0.1, False),
    ],
)  # fmt: skip
def test_comparisons_are_apart_if_all_take_clearly_less_than_half_an_addition(values, error, apart):
    told = [
        Fact(FUSED_BRANCHES, fused_subject(f"{n}", "JZ (Rel8)"), CoreAnswer.VALUE, value, error)
        for n, value in enumerate(values)
    ]
    assert measured_behaviour(told, X86).branches_apart is apart
    among_choices = Fact(FUSED_BRANCHES, next(iter(COUNTED_AMONG)), CoreAnswer.VALUE, 1.0, 0.1)
    assert measured_behaviour([*told, among_choices], X86).branches_apart is apart


@pytest.mark.parametrize(("among", "form"), COUNTED_AMONG.items())
@pytest.mark.parametrize(
    ("value", "error", "there"),
    [(0.99, 0.18, True), (0.6, 0.11, False), (0.6, 0.05, True), (0.0, 0.1, False), (None, 0.1, False)],
)
def test_what_counts_and_branches_is_where_others_are_if_it_takes_their_place(
    among, form, value, error, there
):
    told = [Fact(FUSED_BRANCHES, among, CoreAnswer.VALUE, value, error)]
    assert measured_behaviour(told, X86).counted_as == ((form,) if there else ())
    both = [Fact(FUSED_BRANCHES, one, CoreAnswer.VALUE, 1.0, 0.1) for one in COUNTED_AMONG]
    assert measured_behaviour(both, X86).counted_as == tuple(COUNTED_AMONG.values())


@pytest.mark.parametrize(
    ("late", "mixed", "found"),
    [
        (2.5, 2.4, LateLoads(0.25, 0.3, 2 / 2.4 - 0.5)),
        (2.5, 3.99, LateLoads(0.25, 0.3, 0.0)),  # which may be as fast as others
        (2.5, None, LateLoads(0.25, 0.3, 0.0)),
        (None, 2.5, LateLoads(0.25, 0.0, 0.3)),
        (4.0, 4.0, None),
    ],
)
def test_late_loads_are_those_that_are_slower_than_others(late, mixed, found):
    facts = rates(loads_apart, 4.0, 4.0, ())
    facts += [
        Fact(BANKS, subject, CoreAnswer.VALUE, rate, 0.02)
        for subject, rate in ((LOADED_PLACES, late), (LOADS_AND_OPERATIONS, mixed)) if rate
    ]  # fmt: skip
    told = measured_behaviour(facts, X86).late_loads
    wanted = None if found is None else pytest.approx((found.each, found.late, found.mixed))
    assert (told and (told.each, told.late, told.mixed)) == wanted


@pytest.mark.parametrize(("rate", "joins"), [(1.0, True), (0.83, True), (0.79, False), (0.67, False)])
def test_stores_of_two_chunks_leave_with_others_where_two_take_two_cycles(rate, joins):
    facts = rates(stores_apart, 1.0, 2.0, (64, 128, 256))
    facts.append(Fact(BANKS, ACROSS_AND_BEHIND, CoreAnswer.VALUE, rate, 0.01))
    assert measured_behaviour(facts, X86).store_chunk.joins is joins


def small(cycles, slow, late, longer):
    """Stores of a few bits to `late` places are as fast as others, which take so many cycles each."""
    taken = {(bits, 2): (2 + longer * (bits in slow)) * cycles for bits in (*PARTIAL_BITS, WHOLE_BITS)}
    taken |= {(8, n): (n + longer * (n < late and bool(slow))) * cycles for n in SMALL_PLACES}
    return [
        Fact(BANKS, small_stores(bits, n), CoreAnswer.VALUE, n / all_of, 0.01)
        for (bits, n), all_of in taken.items()
    ]


@pytest.mark.parametrize(
    ("cycles", "slow", "late", "longer", "found"),
    [
        (1, (8, 16), 5, 3, PartialWords(4, 3.0, 5)),
        (1, (8, 16, 32), 4, 2.5, PartialWords(8, 2.5, 4)),
        (1, (8,), 7, 2, PartialWords(2, 2.0, 7)),
        (0.5, (8, 16), 4, 4, PartialWords(4, 2.0, 2)),
        (1, (), 5, 3, None),  # no part takes longer
        (1, (16,), 5, 3, None),  # nor is it parts of words that do
        (1, (8, 16), 9, 4, None),  # nobody saw how late is late enough
    ],
)
def test_parts_of_words_wait_where_the_narrowest_stores_are_slower(cycles, slow, late, longer, found):
    facts = rates(stores_apart, 1.0, 2.0, (64, 128, 256)) + small(cycles, slow, late, longer)
    assert measured_behaviour(facts, X86).store_chunk.partial == found


@pytest.mark.parametrize("missing", [small_stores(16, 2), small_stores(WHOLE_BITS, 2), small_stores(8, 3)])
def test_nothing_is_told_of_parts_of_words_where_an_answer_is_missing(missing):
    facts = rates(stores_apart, 1.0, 2.0, (64, 128, 256)) + small(1, (8, 16), 5, 3)
    asked = [fact for fact in facts if fact.subject != missing]
    assert measured_behaviour(asked, X86).store_chunk.partial is None


@pytest.mark.parametrize(
    ("extra", "found"),
    [
        ((0.0, 0.0, 0.5), 64),
        ((0.0, 0.5, 0.5), 32),
        ((0.0, 0.0, 0.1), None),
        ((0.0, 0.0, 0.22), None),
        ((0.0, 0.0, 0.3), 64),
    ],
)
def test_a_line_is_the_shortest_across_whose_end_loads_take_longer(extra, found):
    """Longer by half of what a load takes at least, the error included."""
    facts = rates(loads_apart, 3.0, 3.0, ())
    facts += [
        Fact(CROSSING, loads_across(f"{line} bytes"), CoreAnswer.VALUE, longer, 0.06)
        for line, longer in zip(LINE_SIZES, extra, strict=True)
    ]
    crossing = measured_behaviour(facts, X86).crossing
    assert (crossing.line if crossing else None) == found
    assert crossing is None or (crossing.each, crossing.extra) == (pytest.approx(1 / 3), max(extra))
    assert measured_behaviour(facts[-3:], X86).crossing is None


# --- fusion -----------------------------------------------------------------------------------------


def pair(first, second, answer):
    return Fact(FUSION, fused_subject(first, f"{second} (Rel8)"), answer)


def test_pairs_fuse_where_all_their_forms_do():
    """Mnemonics are those of the table: JE is that of JZ (Rel8)."""
    compared, fused, separate = "CMP_39 (R64, R64)", CoreAnswer.FUSED, CoreAnswer.SEPARATE
    found = measured_behaviour([
        pair(compared, "JZ", fused), pair(compared, "JS", separate), pair("OR_09 (R64, R64)", "JZ", separate),
        pair(compared, "JB", fused), pair("CMP (R64, M64)", "JB", separate),
    ], X86)  # fmt: skip
    assert found.fuses("CMP", "JE")
    assert found.fuses("CMP", "JNE")  # the same flags
    assert found.fuses("CMP", "JB")  # what is in memory stands for itself
    assert found.apart_in_memory == {"CMP"}
    asked_for = (("CMP", "JS"), ("CMP", "JNS"), ("OR", "JE"))
    nobody_asked = (("CMP", "JL"), ("ADD", "JE"))
    assert not any(found.fuses(*one) for one in (*asked_for, *nobody_asked))


def test_what_shares_its_slot_with_a_nop():
    load = Fact(FUSION, fused_subject("MOV (R64, M64)", "NOP (M32)"), CoreAnswer.FUSED)
    vector = Fact(FUSION, fused_subject("PADDD (XMM, XMM)", "NOP (M32)"), CoreAnswer.SEPARATE)
    branch = Fact(FUSION, fused_subject("CMP_39 (R64, R64)", "JZ (Rel8)"), CoreAnswer.FUSED)
    assert measured_behaviour([load, vector, branch], X86).trailed == {BeforeNop.MEMORY}
    assert measured_behaviour([load], "aarch64").trailed == frozenset()


def test_pairs_of_another_instruction_set():
    subject = fused_subject("SUBSXrs z a b", "Bcc")
    assert measured_behaviour([Fact(FUSION, subject, CoreAnswer.FUSED)], "aarch64").pairs == frozenset()


# --- results that come earlier to some ---------------------------------------------------------------


def in_turn(first, second, longer, error=0.05):
    forms = (f"{name} (XMM, XMM)" for name in (first, second))
    return Fact(CONSUMERS, consumer_subject(*forms), CoreAnswer.VALUE, longer, error)


def test_results_come_early_to_operations_of_their_own_kind():
    facts = [
        in_turn("ADDSD", "MULSD", 1.0), in_turn("SUBSD", "MULSD", 1.0), in_turn("SUBSD", "ADDSD", 0.0),
        in_turn("MAXSD", "MULSD", 0.0), in_turn("MAXSD", "ADDSD", 1.0), in_turn("ADDPD", "MULSD", 0.6, 0.2),
    ]  # fmt: skip
    assert measured_behaviour(facts, X86).early == {"ADDSD": 1.0, "SUBSD": 1.0}
    assert measured_behaviour(facts[1:], X86).early == {}  # nobody knows whose kind they are of


# --- the way through memory -------------------------------------------------------------------------


def test_nothing_is_told_without_facts():
    assert not MemoryPassing(())
    assert not MemoryPassing((Fact(FORWARDING, forwarding_subject(64, 64, 0), reason="looks differ"),))


# --- published --------------------------------------------------------------------------------------


def test_costs_that_a_guide_contradicts_are_corrected_and_said_to_be():
    ours, theirs = load_model("znver3"), library.llvm_model("znver3")
    store, immediate, load = "MOV (M64, R64)", "MOV (R32, I32)", "MOV (R64, M64)"
    assert {op.cycles for op in ours.forms[store].operations} == {1.0}
    assert {op.cycles for op in theirs.forms[store].operations} == {1.0, 2.0}
    assert ours.forms[immediate].operations[0].cycles < theirs.forms[immediate].operations[0].cycles
    assert (ours.forms[load].latencies["op2.address->op1"], ours.forms["NOP"].operations) == (4, ())
    assert theirs.forms[load].latencies["op2.address->op1"] == 5
    assert any("56665" in note and "MOV" in note for note in ours.provenance.notes)
    assert load_model("skylake").forms == library.llvm_model("skylake").forms


@pytest.mark.parametrize("form", ["MOV (R64, SEG)", "MOV (SEG, R64)", "MOV (R64, CR)", "IMUL (R64, R64)"])
def test_what_no_guide_contradicts_stays(form):
    ours, theirs = load_model("znver3").forms, library.llvm_model("znver3").forms
    assert ours.get(form) == theirs.get(form)


def test_what_loads_and_stores_needs_two_addresses():
    """LLVM has its address units busy for two cycles: that is one for each, and no mistake."""
    ours, theirs = (machine.forms["ADC (M8, I8)"] for machine in (load_model("znver3"), _llvm()))
    busy = [{op.ports: op.cycles for op in cost.operations} for cost in (ours, theirs)]
    units = {ports[0]: ports for ports in busy[0]}
    names = load_model("znver3").ports
    addresses, arithmetic = (units[names.index(name)] for name in ("AGU0", "ALU0"))
    assert busy[0][addresses] == busy[1][addresses]
    assert (busy[0][arithmetic], busy[1][arithmetic]) == (1.0, 4.0)


def _llvm():
    return library.llvm_model("znver3")


def test_what_is_published_names_where():
    assert all(core.sources for core in CORES.values())
    assert CORES.keys() <= library.names()
    assert all(core.behaviour != CoreBehaviour() for core in CORES.values())


@pytest.mark.parametrize(("name", "cycles"), [("znver4", 1.0), ("sandybridge", None)])
def test_writes_of_parts_wait_where_they_are_merged(name, cycles, table):
    from cyclescope.analyze.cost.instruction import PlacedCosts

    costs = PlacedCosts(load_model(name))
    assert costs.cost(table["MOV (R8l, M8)"]).latencies.get("op1->op1") == cycles
    assert costs.cost(table["MOV (R16, M16)"]).latencies.get("op1->op1") == cycles
    assert "op1->op1" not in costs.cost(table["MOV (R32, M32)"]).latencies
