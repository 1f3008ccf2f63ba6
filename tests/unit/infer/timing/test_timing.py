"""From hand-made records to timings: laws, bounds, values, idioms and notes."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.builder import TimingBuilder
from cyclescope.infer.timing.choice import against_law
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.results import EXACT, UNMEASURED, UPPER_BOUND, rounded
from cyclescope.isa.table import load_table
from cyclescope.kernel.cycle import NOP
from cyclescope.measure.record import FAILED, NOISY, STABLE, UNSTABLE
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.remarks.timing import Cause
from tests.support.files.records import ADD, IMUL, LINKS, MOV, TABLE, chain, latency, stream, timing

# --- whether there is a value -------------------------------------------------------------------


def test_what_the_cpu_does_not_execute_has_its_status_only():
    found = timing(ADD, stream(1.0), status="SIGILL")
    assert (found.status, found.throughput, found.latencies) == ("SIGILL", None, ())


def test_every_pair_is_there_even_without_a_record():
    found = timing(ADD).latencies
    assert len(found) == 14
    assert {lat.reason for lat in found} == {"not measured"}


def test_reasons_are_the_plans_or_the_errors():
    assert latency(IMUL, missing={("op1", "op1"): "no way"}).reason == "no way"
    assert latency(IMUL, chain(0.0, verdict=FAILED, error="SIGFPE")).reason == "SIGFPE"
    assert latency("PUSH (R64)", source="RSP", target="RSP").reason.startswith("RSP is updated")
    assert timing(ADD, missing={("", ""): "cannot run twice"}).throughput.reason == "cannot run twice"
    assert timing(ADD, stream(0.0, verdict=FAILED, error="hang")).throughput.reason == "hang"


# --- latencies ----------------------------------------------------------------------------------


def test_a_self_chain_is_exact():
    found = latency(IMUL, chain(3.0))
    assert (found.min, found.max, found.kind, found.note) == (3.0, 3.0, EXACT, "")


def test_a_chain_of_two_is_halved():
    assert latency(IMUL, chain(6.0, "op2", variant="swap", count=2), source="op2").max == 3.0


def test_links_are_subtracted():
    found = latency(
        ADD, chain(4.0, target="flags.CF", variant="link", links=("flag>r.CF", "r>r")), target="flags.CF"
    )
    assert (found.max, found.kind, found.bounds) == (2.0, EXACT, None)


def test_a_convention_comes_with_what_is_proved():
    record = chain(8.0, target="op1", variant="link", links=("v>r",))
    found = latency(IMUL, record)
    assert (found.max, found.kind) == (5.0, EXACT)
    assert found.convention == "transfer"
    assert found.bounds == (3.0, 7.0)


@pytest.mark.parametrize(
    ("net", "cycles", "cause"),
    [(0.1, 1.0, Cause.CARRIED), (-0.1, None, Cause.WITHHELD), (-1.2, None, Cause.WITHHELD)],
)
def test_links_lose_a_cycle_beside_each_other_and_no_more(net, cycles, cause):
    """The chain is longer than the form alone, so there is a dependency: of a cycle, or nobody knows."""
    links = (*["r>r"] * 26, "v>r")
    found = latency(IMUL, stream(20.0), chain(29.0 + net, variant="filled", links=links, spread=0.3))
    assert (found.max, found.cause) == (cycles, cause)


def test_an_unknown_link_is_the_reason():
    found = latency(IMUL, chain(8.0, variant="link", links=("k>r",)))
    assert found.kind is None
    assert "k>r" in found.reason


@pytest.mark.parametrize("cycles", [-1.0, 0.0, 0.5, 0.8])
def test_less_than_a_cycle_is_withheld_where_only_a_convention_says_so(cycles):
    found = latency(IMUL, chain(3.0 + cycles, variant="link", links=("v>r",)))
    assert (found.min, found.max, found.kind) == (None, None, None)
    assert found.reason.startswith("withheld")
    assert found.cause is Cause.WITHHELD


@pytest.mark.parametrize(
    ("sequence", "variant", "kind"),
    [(1.4, "plain x4", EXACT), (4.0, "plain x4", None), (1.4, "broken x4", None)],
)
def test_sequences_that_share_a_flag_and_take_less_than_a_cycle_disprove_a_doubtful_chain(
    sequence, variant, kind
):
    shift = "SHL (R64, CL)"
    records = chain(0.63, source="flags.CF", target="flags.CF", spread=0.3), stream(sequence, variant)
    found = latency(shift, *records, source="flags.CF", target="flags.CF")
    assert found.kind == kind
    assert found.cause is (Cause.INDEPENDENT if kind else Cause.WITHHELD)


def test_less_than_a_cycle_without_conventions_is_no_dependency():
    found = latency(IMUL, chain(0.25))
    assert (found.max, found.kind) == (0.0, EXACT)
    assert found.note.startswith("no dependency")


@pytest.mark.parametrize("form", ["ADD (R64, I8)", "INC (R64)", "BSWAP (R64)"])
def test_what_is_made_of_one_register_is_executed_by_the_renamer_where_it_takes_no_time(form):
    """An Intel core adds constants of 8 bits so; no core can know the sum without the register."""
    found = latency(form, chain(0.17))
    assert (found.max, found.kind, found.cause) == (0.0, EXACT, Cause.ELIMINATED)


@pytest.mark.parametrize("form", ["ADC (R64, I8)", "SUB_29 (R64, R64)", "SHL (R64, CL)"])
def test_what_reads_something_else_as_well_is_cut_where_it_takes_no_time(form):
    assert latency(form, chain(0.17)).cause is Cause.INDEPENDENT


def test_a_move_of_less_than_a_cycle_is_eliminated():
    found = latency(MOV, chain(0.4, "op2", variant="swap", count=2), source="op2")
    assert (found.max, found.note) == (0.0, "eliminated at rename")


def test_a_chain_as_long_as_the_throughput_proves_an_upper_bound_only():
    found = latency(IMUL, chain(4.0), stream(16.0))
    assert (found.min, found.max, found.kind) == (0.0, 4.0, UPPER_BOUND)
    assert (found.note, found.cause) == ("the throughput hides a shorter latency", Cause.HIDDEN)


def test_a_longer_chain_shows_what_the_throughput_hides():
    found = latency(IMUL, chain(4.0), chain(9.0, variant="filled", links=("r>r",) * 7), stream(16.0))
    assert (found.min, found.max, found.kind) == (2.0, 2.0, EXACT)


@pytest.mark.parametrize(("cycles", "kind", "most"), [(12.0, EXACT, 2.0), (11.5, UPPER_BOUND, 4.0)])
def test_a_chain_that_is_longer_still_confirms_it(cycles, kind, most):
    """Or refutes it: what takes as long whatever is in a chain is no latency."""
    filled = [chain(9.0, variant="filled", links=("r>r",) * 7)]
    filled += [chain(cycles, variant="filled longer", links=("r>r",) * 10)]
    found = latency(IMUL, chain(4.0), *filled, stream(16.0))
    assert (found.max, found.kind) == (most, kind)


def test_of_several_chains_the_shortest_counts():
    assert latency(IMUL, chain(3.0), chain(5.5, variant="link", links=("r>r",))).max == 3.0


def test_af_is_an_upper_bound():
    link = chain(5.0, target="flags.AF", variant="link", links=("flag>r.AF",))
    found = latency(ADD, link, target="flags.AF")
    assert (found.min, found.max, found.kind) == (0.0, 4.0, UPPER_BOUND)


def test_bypass_delays_are_next_to_the_latency():
    form = "VADDPD (YMM, YMM, YMM)"
    records = [
        chain(4.0, "op2", variant="same register"),
        chain(6.0, "op2", variant="integer link", links=("bypass.integer.256",)),
        chain(5.0, "op2", variant="fp link", links=("bypass.fp.256",)),
    ]
    found = latency(form, *records, source="op2")
    assert (found.max, found.bypass) == (4.0, {"integer": 5.0, "fp": 4.0})


def test_bypass_delays_alone_are_no_latency():
    """Of a run that was stopped, or whose plain chain failed."""
    delayed = chain(6.0, "op2", variant="integer link", links=("bypass.integer.256",))
    found = latency("VADDPD (YMM, YMM, YMM)", delayed, source="op2")
    assert (found.max, found.reason, found.unfinished) == (None, UNMEASURED, True)


@pytest.mark.parametrize(
    ("record", "confidence"),
    [
        (chain(3.0), HIGH),
        (chain(3.0, exceptions=0x20), HIGH),  # inexact is normal
        (chain(3.0, exceptions=0x02), MEDIUM),
        (chain(3.0, verdict=UNSTABLE), MEDIUM),
        (chain(3.0, verdict=NOISY), LOW),
    ],
)
def test_confidence_follows_the_verdict(record, confidence):
    assert latency(IMUL, record).confidence == confidence


# --- throughput ---------------------------------------------------------------------------------


def test_the_best_sequence_counts():
    found = timing(ADD, stream(4.0), stream(2.0, "plain x8", 8), stream(6.0, "unrolled x8", 8)).throughput
    assert (found.value, found.kind) == (0.25, EXACT)
    assert found.variants == {"plain x4": 1.0, "plain x8": 0.25, "unrolled x8": 0.75}


def test_a_stable_sequence_outweighs_a_better_one_that_is_not():
    found = timing(ADD, stream(4.0), stream(2.0, "plain x8", 8, verdict=NOISY)).throughput
    assert found.value == 1.0


def test_same_registers_indexed_addresses_and_slow_values_are_no_throughput():
    for variant in ("same register", "indexed x4", "slow"):
        found = timing(ADD, stream(4.0), stream(1.0, variant)).throughput
        assert found.value == 1.0
        assert found.variants[variant] == 0.25


def test_company_makes_an_upper_bound():
    found = timing("PUSH (R64)", stream(17.0, "with stack adjustment", 16)).throughput
    assert found.kind == UPPER_BOUND
    assert "with stack adjustment" in found.note


def test_a_broken_dependency_is_said():
    found = timing("MUL (R64)", stream(12.0), stream(4.0, "broken x4")).throughput
    assert (found.value, found.note) == (1.0, "its own dependency chain allows 3.0")


@pytest.mark.parametrize("verdict", [UNSTABLE, NOISY])
def test_where_what_cuts_a_dependency_was_disturbed_its_chain_is_a_bound(verdict):
    """A chain of three cycles is read without noise, and is no throughput."""
    found = timing("MUL (R64)", stream(12.0), stream(4.0, "broken x4", verdict=verdict)).throughput
    assert (found.value, found.kind) == (3.0, UPPER_BOUND)
    assert "disturbed" in found.note
    other = timing(
        "MUL (R64)", stream(12.0), stream(4.0, "broken x4", verdict=verdict), stream(8.0, "broken x8", 8)
    )
    assert (other.throughput.value, other.throughput.kind) == (1.0, EXACT)


@pytest.mark.parametrize(
    ("cycles", "verdict", "expected"),
    [
        (3.8, UNSTABLE, MEDIUM), (4.2, UNSTABLE, HIGH), (3.95, NOISY, HIGH), (3.8, NOISY, MEDIUM),
        (3.92, UNSTABLE, MEDIUM),
    ],
)  # fmt: skip
def test_what_was_faster_at_times_makes_a_throughput_less_sure(cycles, verdict, expected):
    """By more than readings that are sure may be off by."""
    found = timing(ADD, stream(4.0), stream(4.0, "unrolled x4"), stream(cycles, "plain x8", verdict=verdict))
    assert (found.throughput.value, found.throughput.confidence) == (1.0, expected)


@pytest.mark.parametrize(
    ("plain", "broken", "expected"),
    [
        ((2.0, 4.1), (2.02, 2.03, 4.0), (0.504, MEDIUM)),  # cycles of four instances
        ((4.0, 4.1), (2.0, 2.01, 2.02, 4.0), (0.502, MEDIUM)),
        ((4.0, 4.1), (2.0, 2.01, 4.0), (1.0, MEDIUM)),  # two: perhaps by chance
        ((2.0, 4.1), (2.01, 4.0), (1.0, MEDIUM)),  # one of its own is faster all the same
        ((3.95, 4.1), (3.94, 3.93, 4.0), (1.0, HIGH)),  # the same
        ((0.5, 4.1), (0.51, 0.51, 4.0), (1.0, MEDIUM)),  # faster than a NOP
        ((4.0, 4.5, 4.0, 4.52), (4.0, 4.1), (1.0, HIGH)),  # disturbed
    ],
)
def test_a_state_that_rounds_of_several_sequences_show_is_one(plain, broken, expected):
    """The fastest that the core runs a sequence at, though no record has it in most of its rounds."""
    records = stream(4.0, rounds=plain), stream(4.0, "unrolled x4", rounds=broken)
    builder = TimingBuilder(
        TABLE[ADD], records, LINKS | {NOP: LinkLatency(0.25, 0.25, 0.25)}, lambda s, t: ""
    )
    found = builder.build("ok").throughput
    assert (found.value, found.confidence) == expected


def test_what_an_index_shows_is_asked_of_each_look():
    """Registers that are free at one time are not at another: 0.58 with an index, and without one later."""
    first = stream(16 * 0.55, "plain x16", 16), stream(16 * 0.578, "indexed x16", 16)
    later = stream(16 * 0.58, "plain x16 again", 16), stream(16 * 0.58, "indexed x16 again", 16)
    found = timing("KMOVB (K, M8)", *first, *later).throughput
    assert (found.confidence, "registers" in found.note) == (MEDIUM, True)
    found = timing("KMOVB (K, M8)", stream(16 * 0.58, "plain x16", 16), first[1]).throughput
    assert (found.confidence, found.note) == (HIGH, "")


def test_what_is_stored_is_not_eliminated():
    """Where memory gives it back sooner than its link says: registers have names, memory has none."""
    pair = {"source": "op2", "target": "op1.data"}
    found = latency("MOV (M8, R8l)", chain(1.5, variant="link", links=("v>r",), **pair), **pair)
    assert (found.max, found.cause) == (None, Cause.WITHHELD)


def test_a_way_back_through_memory_that_takes_less_is_called_so():
    """A law that a latency is one cycle says nothing of why: the link is what is not what it was alone."""
    back = chain(4.0, "flags.CF", "op1.data", links=("mem>r.64",))
    assert "7.25 cycles less than the way back through memory alone" in against_law(back, -7.25).text
    assert against_law(chain(4.0, links=("v>r",)), -7.25).text.startswith("-7.25 cycles breaks the law")
    assert against_law(back, 0.4).text.startswith("0.40 cycles breaks the law")


def test_one_round_of_each_of_several_records_shows_no_state():
    """What is faster beside a neighbour was so in all of them at one moment; but nobody knows."""
    names = ("plain x4", "plain x8", "plain x12", "plain x16")
    found = timing(ADD, *[stream(4.0, name, rounds=(2.0, 4.0, 4.0)) for name in names]).throughput
    assert (found.value, found.confidence) == (1.0, MEDIUM)


@pytest.mark.parametrize(("source", "expected"), [("op1.data", 2.0), ("flags.CF", 1.0)])
def test_a_chain_through_memory_is_no_sequence(source, expected):
    """All of its instances meet at one place, those of sequences at many."""
    records = stream(8.0), chain(1.0, source, source)
    assert timing("ADC (M64, R64)", *records).throughput.value == expected


@pytest.mark.parametrize(
    ("other", "verdict", "expected"),
    [(40.5, STABLE, 10.0), (44.0, STABLE, None), (36.0, STABLE, None), (40.5, UNSTABLE, None)],
)
@pytest.mark.parametrize("unstable", ["first", "other"])
def test_what_is_written_to_memory_has_a_time_where_it_is_the_same_again(other, verdict, expected, unstable):
    one, two = (verdict, STABLE) if unstable == "first" else (STABLE, verdict)
    first, short = stream(40.0, verdict=one), stream(2.0, "plain x1", count=1, verdict=UNSTABLE)
    found = timing("MOVNTI (M64, R64)", first, stream(other, "unrolled x4", verdict=two), short).throughput
    assert found.value == expected
    assert (found.cause is Cause.WITHHELD) is (expected is None)


@pytest.mark.parametrize(("form", "trust"), [("MOVNTI (M64, R64)", MEDIUM), ("MOV (M64, R64)", HIGH)])
def test_what_shares_memory_with_others_is_no_surer_than_medium(form, trust):
    found = timing(form, stream(240.0), stream(241.0, "unrolled x4")).throughput
    assert (found.value, found.confidence) == (60.0, trust)


def test_a_dependency_that_cannot_be_broken_makes_an_upper_bound():
    found = timing("FADD (ST0, STi)", stream(12.0)).throughput
    assert (found.value, found.kind) == (3.0, UPPER_BOUND)


def test_repeated_strings_say_their_count():
    found = timing("MOVSB_REPE", stream(40.0, "count 8")).throughput
    assert (found.value, found.note) == (10.0, "repeat count 8")


# --- idioms and notes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cycles", "idiom"),
    [
        (0.6, "zero idiom, needs no execution unit"),
        (1.0, "dependency-breaking idiom"),
        (4.0, ""),
    ],
)
def test_idioms_break_the_dependency(cycles, idiom):
    records = [stream(1.0), stream(cycles, "same register"), chain(1.0), chain(1.0, "op2", variant="swap")]
    assert timing("XOR_31 (R64, R64)", *records).idiom == idiom


@pytest.mark.parametrize(("same", "idiom"), [(3.2, True), (3.6, False), (8.0, False)])
def test_a_cycle_and_more_proves_no_idiom(same, idiom):
    """Other values may take less, as of LSL, or the core makes something else of one register, as of SHLD."""
    records = [
        stream(1.0), stream(same, "same register"), chain(3.0), chain(3.0, "op2", variant="swap"),
    ]  # fmt: skip
    assert bool(timing("XOR_31 (R64, R64)", *records).idiom) is idiom


def test_no_idiom_without_a_latency_to_compare_with():
    assert timing("XOR_31 (R64, R64)", stream(1.0), stream(0.6, "same register")).idiom == ""


def test_floating_point_exceptions_are_noted():
    found = timing(IMUL, chain(3.0, exceptions=0x02 | 0x20), stream(4.0, exceptions=0x01))
    assert found.notes == ("floating-point exceptions raised: invalid, denormal",)
    assert timing(IMUL, chain(3.0, exceptions=0x20)).notes == ()


def test_values_are_rounded_to_what_the_noise_leaves():
    assert rounded(3.004) == 3.0
    assert str(rounded(-0.0)) == "0.0"


# --- a register that every instance has -----------------------------------------------------------


def nzcv(*records):
    builder = TimingBuilder(load_table("aarch64")["ADCSXr"], records, LINKS, lambda s, t: "")
    found = builder.build("ok").latencies
    return next(lat for lat in found if lat.source == lat.target == "NZCV")


def test_two_dependent_instructions_in_a_cycle_are_a_latency():
    own = chain(0.53, "NZCV", "NZCV")
    slower_than_cut = nzcv(own, stream(2.12), stream(1.2, "broken x4"))
    assert (slower_than_cut.max, slower_than_cut.kind) == (0.53, EXACT)
    assert slower_than_cut.note.startswith("less than a cycle")
    for streams in ([stream(2.12)], [stream(2.12), stream(2.12, "broken x4")]):
        found = nzcv(own, *streams)  # the sequences have the dependency, too: no proof that there is none
        assert (found.max, found.kind) == (0.53, UPPER_BOUND)
    nothing = nzcv(chain(-0.53, "NZCV", "NZCV"), stream(2.12))
    assert (nothing.max, nothing.reason[:15]) == (None, "withheld: -0.53")
