"""Both sides of every limit between a chain and its latency, a sequence and its throughput."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.infer.timing.builder import TimingBuilder
from cyclescope.infer.timing.latency_system import LinkLatency, _whole
from cyclescope.infer.timing.link_chains import solve_links
from cyclescope.infer.timing.results import EXACT, INTERVAL, UPPER_BOUND, Latency
from cyclescope.infer.timing.several import with_flags_together
from cyclescope.infer.timing.throughput import ThroughputBuilder
from cyclescope.isa.table import load_table
from cyclescope.kernel.cycle import NOP
from cyclescope.measure.record import STABLE, UNSTABLE, Record
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.remarks.timing import Cause
from tests.unit.infer.timing.test_latency_system import settled, solve
from tests.unit.infer.timing.test_timing import ADD, IMUL, chain, stream, timing

TABLE = load_table("x86-64")
ONE = LinkLatency(1.0, 1.0, 1.0)


def built(form, records, links):
    return TimingBuilder(TABLE[form], records, links, lambda s, t: "").build("ok")


def one(form, records, links, source="op1", target="op1"):
    found = built(form, records, links).latencies
    return next(lat for lat in found if (lat.source, lat.target) == (source, target))


# --- latencies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("throughput", "cycles", "variant", "cause"),
    [
        (20.0, 25.0, "filled", Cause.WITHHELD),  # what fills the chain waits for the form
        (20.0, 22.3, "filled", Cause.WITHHELD),
        (20.0, 22.1, "filled", Cause.INDEPENDENT),  # as long as the form alone
        (25.0, 25.0, "filled", Cause.INDEPENDENT),
        (20.0, 25.0, "link", Cause.INDEPENDENT),
    ],
)
def test_a_filled_chain_that_takes_longer_than_the_form_is_no_proof_of_independence(
    throughput, cycles, variant, cause
):
    """Of LOCK INC, say: 24 instructions behind it run in 24 cycles, not beside the next one in 20."""
    links = {"r>r": LinkLatency(cycles / 25, cycles / 25, cycles / 25)}
    records = [stream(4 * throughput), chain(cycles, variant=variant, links=("r>r",) * 25)]
    assert one(IMUL, records, links).cause is cause


@pytest.mark.parametrize(("width", "told"), [(0.3, False), (0.45, False), (0.55, True), (0.9, True)])
def test_what_is_proved_is_told_where_it_is_wider_than_half_a_cycle(width, told):
    """Latencies are whole, so that an interval of half a cycle leaves one of them."""
    link = LinkLatency(3.0, 3.0 - width / 2, 3.0 + width / 2, "transfer")
    found = one(IMUL, [chain(8.0, variant="link", links=("v>r",))], {"v>r": link})
    assert (found.bounds is not None) is told


@pytest.mark.parametrize(
    ("spread", "verdict", "told"),
    [
        (0.15, STABLE, (EXACT, 9.0, HIGH)),
        (0.1, STABLE, (INTERVAL, 8.72, MEDIUM)),
        (0.15, UNSTABLE, (INTERVAL, 8.72, MEDIUM)),  # where rounds differ, the spread is no error
    ],
)
def test_a_latency_is_whole_within_the_error_of_its_chain(spread, verdict, told):
    """An average is no more than medium, whether the nearest whole number is above it or below."""
    record = chain(9.72, variant="link", links=("r>r",), spread=spread, verdict=verdict)
    found = one(IMUL, [record], {"r>r": ONE})
    assert (found.kind, found.min, found.confidence) == told


@pytest.mark.parametrize(
    ("shown", "kind"), [(2.0, EXACT), (2.2, EXACT), (2.3, UPPER_BOUND), (4.0, UPPER_BOUND)]
)
def test_a_chain_of_the_form_alone_outweighs_a_much_longer_one(shown, kind):
    """Links in the way make chains longer; noise does so by less than a tenth."""
    records = [stream(8.0), chain(2.0), chain(shown + 2.0, variant="link", links=("r>r", "r>r"))]
    assert one(IMUL, records, {"r>r": ONE}).kind == kind


@pytest.mark.parametrize(
    ("link", "net", "cause"),
    [
        ("r>r", -0.6, Cause.INDEPENDENT),
        ("r>r", -2.0, Cause.INDEPENDENT),
        ("mem>r.64", -0.9, Cause.INDEPENDENT),
        ("mem>r.64", -1.1, Cause.WITHHELD),
    ],
)
def test_links_through_memory_may_take_less_in_a_chain_than_alone(link, net, cause):
    """Others do not: what is shorter than they are is cut."""
    found = one(IMUL, [chain(3.0 + net, variant="link", links=(link,) * 3)], {link: ONE})
    assert found.cause is cause


@pytest.mark.parametrize(
    ("value", "between"),
    [(17.49, (17.0, 17.49)), (17.51, (17.0, 17.51)), (17.6, (17.0, 17.6)), (17.64, (17.64, 18.0))],
)
def test_an_average_halfway_is_next_to_the_number_below(value, between):
    """Else noise would choose among two numbers that are as near."""
    found = one(IMUL, [stream(8.0), chain(value + 2.0, variant="link", links=("r>r", "r>r"))], {"r>r": ONE})
    assert (found.min, found.max) == between


@pytest.mark.parametrize(
    ("cycles", "spread", "cause"),
    [(0.74, 0.05, Cause.INDEPENDENT), (0.74, 0.12, Cause.INDEPENDENT), (0.74, 0.14, Cause.WITHHELD),
     (0.5, 0.2, Cause.INDEPENDENT), (0.5, 0.6, Cause.WITHHELD), (0.76, 0.02, Cause.WITHHELD),
     (0.84, 0.02, Cause.WITHHELD)],
)  # fmt: skip
def test_no_dependency_is_told_where_a_cycle_is_out_of_the_question(cycles, spread, cause):
    """Two spreads from the reading, and as far from a cycle as what links show is taken for a whole number.

    Beside a clock that is disturbed rounds agree on what is too short; behind the long chain of a locked
    operation none may look like one.
    """
    records = [chain(3.0 + cycles, variant="link", links=("r>r",) * 3, spread=spread)]
    found = one(IMUL, records, {"r>r": ONE})
    assert found.cause is cause
    assert (found.max is None) is (cause is Cause.WITHHELD)


@pytest.mark.parametrize(
    ("net", "cycles", "cause"),
    [
        (0.83, 1.0, Cause.CARRIED),
        (0.55, 1.0, Cause.CARRIED),
        (0.3, None, Cause.WITHHELD),
        (-0.9, None, Cause.WITHHELD),
        (-1.1, 0.0, Cause.INDEPENDENT),  # what fills it takes no cycle less
        (0.95, 1.0, Cause.NONE),
    ],
)
def test_a_chain_that_is_longer_than_the_form_alone_goes_through_it(net, cycles, cause):
    """Then there is a dependency, of a cycle at least, whatever its links take beside each other."""
    links = ("r>r",) * 26
    records = [stream(20.0), chain(26.0 + net, variant="filled", links=links, spread=0.3)]
    found = one(IMUL, records, {"r>r": ONE})
    assert (found.max, found.cause) == (cycles, cause)


@pytest.mark.parametrize(
    ("more", "kind"), [(1.0, EXACT), (2.0, EXACT), (3.0, UPPER_BOUND), (5.0, UPPER_BOUND)]
)
def test_an_index_takes_two_cycles_longer_than_a_base_at_most(more, kind):
    """Adding it takes one or two; what takes longer is a load that was repeated."""
    records = [
        chain(4.0, source="op1.address", target="op1.data", variant="link", links=()),
        chain(4.0 + more, source="op1.index", target="op1.data", variant="link", links=()),
    ]
    assert one("MOV (M64, R64)", records, {}, "op1.index", "op1.data").kind == kind


@pytest.mark.parametrize(("cycles", "told"), [(160.0, True), (290.0, True), (310.0, False), (590.0, False)])
def test_streaming_stores_may_take_as_long_as_caches_do(cycles, told):
    """What takes longer went through memory, whose time varies."""
    found = one("MOVNTI (M64, R64)", [chain(cycles, "op2", "op1.data")], {}, "op2", "op1.data")
    assert (found.max is not None) is told


@pytest.mark.parametrize(
    ("bit", "name"),
    [(1, "invalid"), (2, "denormal"), (4, "division by zero"), (8, "overflow"), (16, "underflow")],
)
def test_exceptions_by_the_bits_of_mxcsr(bit, name):
    assert timing(ADD, stream(1.0, exceptions=bit)).notes == (f"floating-point exceptions raised: {name}",)
    assert timing(ADD, stream(1.0, exceptions=32)).notes == ()


# --- throughputs -----------------------------------------------------------------------------------


def throughput(*records, form=ADD, links=None):
    return built(form, records, links or {}).throughput


@pytest.mark.parametrize(("cycles", "told"), [(0.13, False), (0.22, False), (0.23, True), (0.3, True)])
def test_nothing_is_faster_than_a_nop(cycles, told):
    """But for noise of a tenth."""
    found = throughput(stream(4 * cycles), links={NOP: LinkLatency(0.25, 0.25, 0.25)})
    assert (found.value is not None) is told


@pytest.mark.parametrize(
    ("cycles", "kind"), [(0.6, UPPER_BOUND), (0.89, UPPER_BOUND), (0.91, EXACT), (1.8, EXACT)]
)
def test_what_takes_a_cycle_is_not_the_front_ends(cycles, kind):
    """The few instructions that cut dependencies take less in any front end."""
    found = throughput(stream(40.0), stream(4 * cycles, "broken x4"), form=IMUL)
    assert (found.kind, found.cause) == (kind, Cause.CUT)


@pytest.mark.parametrize(("ratio", "trust"), [(1.015, HIGH), (1.029, HIGH), (1.031, MEDIUM), (2.0, MEDIUM)])
def test_a_sequence_that_is_faster_than_all_others_stands_alone(ratio, trust):
    found = throughput(stream(4.0), stream(8.0 * ratio, "plain x8", 8))
    assert found.confidence == trust


@pytest.mark.parametrize(("ratio", "trust"), [(1.0, HIGH), (1.02, HIGH), (1.04, MEDIUM), (1.2, MEDIUM)])
def test_a_throughput_is_sure_if_another_look_at_its_sequence_agrees(ratio, trust):
    """What it finds otherwise, with rounds that agree, is another state of the core."""
    for first, again in ((1.0, ratio), (ratio, 1.0)):
        looks = stream(8.0 * first, "plain x8", 8), stream(8.0 * again, "plain x8 again", 8)
        assert throughput(*looks).confidence == trust
    slower = stream(16.4, "plain x16", 16), stream(16.4 * ratio, "plain x16 again", 16)
    assert throughput(stream(8.0, "plain x8", 8), *slower).confidence == HIGH, "of a sequence that counts"


@pytest.mark.parametrize(
    ("ratio", "verdict", "told"),
    [
        (1.0, STABLE, False),
        (1.5, STABLE, False),
        (1.9, STABLE, True),
        (4.0, STABLE, True),
        (4.0, UNSTABLE, False),
    ],
)
def test_an_index_that_makes_other_work_makes_twice_as_slow(ratio, verdict, told):
    """It is beside as many instances without one; cuts of dependencies are not in it."""
    sequences = stream(4.0, "plain x4"), stream(4.2, "unrolled x4"), stream(1.0, "broken x4")
    indexed = stream(4.2 * ratio, "indexed x4", verdict=verdict)
    assert throughput(*sequences, indexed).indexed == (
        pytest.approx(1.05 * ratio, abs=0.01) if told else None
    )
    assert throughput(stream(2.0, "plain x8", 8), indexed).indexed is None


@pytest.mark.parametrize(("ratio", "value"), [(1.01, 1.0), (1.02, 1.0), (1.04, 1.5), (1.06, 1.5)])
def test_a_second_sequence_confirms_one_that_is_not_stable(ratio, value):
    """Within three hundredths; else the stable one counts, which is slower."""
    records = [stream(4.0, verdict=UNSTABLE), stream(8.0 * ratio, "plain x8", 8, verdict=UNSTABLE)]
    assert throughput(*records, stream(24.0, "plain x16", 16)).value == value


@pytest.mark.parametrize(
    ("form", "cycles", "indexed", "told"),
    [
        ("KMOVB (K, M8)", 0.55, 0.578, True),
        ("KMOVB (K, M8)", 0.55, 0.56, False),  # the same but for noise
        ("KMOVB (K, M8)", 0.55, 0.9, False),  # other work
        ("KMOVB (K, M8)", 0.5, 0.53, False),  # two of a cycle: ports
        ("KMOVB (K, M8)", 0.667, 0.7, False),
        ("KMOVB (K, M8)", 0.95, 1.0, False),
        ("KMOVB (M8, K)", 0.55, 0.578, False),  # takes no register
    ],
)
def test_an_index_shows_that_registers_in_flight_limit_a_load(form, cycles, indexed, told):
    """Of 36 or 38 masks that are free on a Zen 4, each load has one for 21 cycles, or 22 with an index."""
    plain, other = stream(16 * cycles, "plain x16", 16), stream(16 * indexed, "indexed x16", 16)
    found = throughput(plain, other, form=form)
    assert (found.confidence, "registers" in found.note) == ((MEDIUM, True) if told else (HIGH, False))


@pytest.mark.parametrize(("ratio", "value"), [(1.02, 1.02), (1.04, 1.04)])
def test_a_stable_sequence_that_agrees_with_one_that_is_not_tells_the_value(ratio, value):
    """Of the two loops whose difference a reading is the shorter may have been disturbed."""
    records = [stream(4.0, verdict=UNSTABLE), stream(8.0 * ratio, "plain x8", 8)]
    assert throughput(*records).value == value


@pytest.mark.parametrize(
    ("cycles", "kind"), [(0.8, UPPER_BOUND), (1.4, UPPER_BOUND), (1.6, EXACT), (2.9, EXACT)]
)
def test_chains_through_five_bases_may_be_what_shows(cycles, kind):
    """Of five cycles to the next instance with its base: one cycle, and half as much beside others."""
    bases = [stream(4 * cycles, "bases x4")]
    found = ThroughputBuilder(TABLE[IMUL], bases, (), {}, str)
    there = Latency("op1", "op1", 5.0, 5.0, EXACT, 0.0)
    assert found.limited_by_registers(found.throughput(), [there]).kind == kind


@pytest.mark.parametrize(
    ("cycles", "kind"),
    [
        (0.28, UPPER_BOUND), (0.286, UPPER_BOUND), (0.312, UPPER_BOUND), (0.325, UPPER_BOUND),
        (0.278, UPPER_BOUND), (0.27, EXACT), (0.3303, EXACT), (0.333, EXACT), (0.345, EXACT), (0.5, EXACT),
    ],
)  # fmt: skip
def test_seven_registers_may_be_what_limits(cycles, kind):
    """Of two cycles to the next instance with its register: seven chains do 3.5 a cycle, of ports for 4."""
    form = "PAVGB (MM, MM)"
    records = [stream(7 * cycles, name, 7) for name in ("plain x7", "overwritten x7")]
    found = ThroughputBuilder(TABLE[form], records, (), {}, str)
    there = Latency("op1", "op1", 2.0, 2.0, EXACT, 0.0)
    assert found.limited_by_registers(found.throughput(), [there]).kind == kind


@pytest.mark.parametrize(("cycles", "kind"), [(0.138, UPPER_BOUND), (0.134, EXACT)])
def test_readings_of_a_part_of_a_cycle_are_no_better_than_the_clock(cycles, kind):
    """Seven chains of one cycle do seven a cycle: 0.143."""
    found = ThroughputBuilder(TABLE[IMUL], [stream(7 * cycles, "plain x7", 7)], (), {}, str)
    there = Latency("op1", "op1", 1.0, 1.0, EXACT, 0.0)
    assert found.limited_by_registers(found.throughput(), [there]).kind == kind


AF_BOUND = Latency("op1", "flags.AF", 0.0, 5.0, UPPER_BOUND, 0.0, note="AF", confidence=HIGH)


def flag(name, cycles, kind=EXACT, source="op1", **more):
    return Latency(source, f"flags.{name}", cycles, cycles, kind, 0.0, confidence=HIGH, **more)


def test_flags_that_are_written_together_are_there_together():
    *_, found = with_flags_together([flag("CF", 5.0), flag("ZF", 5.0), AF_BOUND])
    assert (found.min, found.max, found.kind, found.bounds) == (5.0, 5.0, EXACT, (0.0, 5.0))
    assert (found.convention, found.note) == ("flags", "")
    *_, found = with_flags_together([flag("CF", 5.0, convention="loads", bounds=(1.0, 9.0)), AF_BOUND])
    assert found.convention == "flags, loads"
    assert with_flags_together([flag("CF", 5.4), AF_BOUND])[-1].kind == EXACT


@pytest.mark.parametrize(
    "others",
    [
        [flag("CF", 4.0), flag("ZF", 5.0)], [flag("CF", 5.6)], [flag("CF", 5.0, UPPER_BOUND)],
        [flag("CF", 0.0)],
        [flag("CF", 5.0, source="op2")], [],
    ],
)  # fmt: skip
def test_where_the_others_do_not_say_it_af_has_a_bound(others):
    assert with_flags_together([*others, AF_BOUND])[-1] == AF_BOUND


# --- links -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "determined"), [(0.25, True), (0.34, True), (0.36, False), (0.7, False)])
def test_an_interval_narrower_than_half_a_cycle_is_a_value(width, determined):
    assert LinkLatency(2.0, 2.0, 2.0 + width).determined is determined


@pytest.mark.parametrize(
    ("value", "whole"), [(3.25, 3.0), (3.34, 3.0), (3.36, 3.36), (3.5, 3.5), (3.66, 4.0)]
)
def test_a_link_is_whole_but_for_noise(value, whole):
    """Noise of several chains adds up in their difference; an average of two paths is half-way."""
    assert _whole(value, 1.0, 9.0) == whole
    assert _whole(value, value, value) == value, "what is proved outweighs it"


@pytest.mark.parametrize(("cycles", "error"), [(1.0, 0.015), (10.0, 0.15), (100.0, 1.5)])
def test_chains_are_off_by_as_much_as_their_noise(cycles, error):
    """By 1.5 %."""
    link = solve(("r>r", 1.0), ("load.r.64", cycles))["load.r.64"]
    assert link.most == pytest.approx(cycles + error, abs=1e-3)


@pytest.mark.parametrize(
    ("cycles", "there", "back"),
    [(5.0, 3, 2), (5.3, 3, 2), (5.45, 3, 2), (5.55, 3, 3), (6.0, 3, 3), (4.7, 3, 2)],
)
def test_a_round_trip_is_odd_where_its_half_is_near_a_half(cycles, there, back):
    """Within a quarter of a cycle: noise of both ways."""
    found = solve(("r>r", 1.0), ("transfer.r>v v>r", cycles))
    values = found["transfer.r>v"].value, found["v>r"].value
    assert [round(value) for value in values] == [there, back]


@pytest.mark.parametrize(("conventions", "back"), [(2, 40.0), (4, 40.6)])
def test_a_chain_outweighs_a_few_conventions(conventions, back):
    """Of four cycles by which each does not hold, within the chain's noise: two do not bend it, four do."""
    there = [f"transfer.r>v.{32 << number}" for number in range(conventions)]
    found = solve(("r>r", 1.0), ("v>r", 40.0), *((f"{key} v>r", 84.0) for key in there))
    assert found["v>r"].value == pytest.approx(back, abs=0.01)


@pytest.mark.parametrize(("cycles", "known"), [(0.5, False), (0.85, False), (0.95, True)])
def test_a_chain_faster_than_its_instructions_is_none(cycles, known):
    found = solve_links([*settled("r>r", "r>r", 1.0), *settled("v", "v>v.128", cycles, cut=0.2)], "x86-64")
    assert ("v>v.128" in found) is known


@pytest.mark.parametrize(
    ("cycles", "cut", "known"),
    [(8.0, 7.2, True), (8.0, 7.3, False), (40.0, 39.2, True), (40.0, 39.5, False), (3.0, 2.65, True)],
)
def test_a_cut_saves_a_share_of_a_chain_or_most_of_a_cycle(cycles, cut, known):
    """A tenth of short chains, three quarters of a cycle of long ones: what noise does not reach."""
    found = solve_links([*settled("r>r", "r>r", 1.0), *settled("v", "v>v.128", cycles, cut=cut)], "x86-64")
    assert ("v>v.128" in found) is known


def test_few_updates_between_nops_tell_nothing_of_room():
    """They are known by their registers, as in any short loop."""
    form = load_table("x86-64")["INC (M64)"]
    few = Record(form.id, "latency", "op1.data", "op1.data", "throttled to 1 self", 1.3, 0.01, STABLE, 1, ())
    assert TimingBuilder(form, [few], {}, lambda source, target: "").throttled == {}
    other = msgspec.structs.replace(few, source="RCX", target="RCX")
    assert TimingBuilder(form, [other], {}, lambda source, target: "").throttled == {("RCX", "RCX"): [1.3]}
