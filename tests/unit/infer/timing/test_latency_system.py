"""Links: what the chains determine is found, what they leave open is bounded."""

from __future__ import annotations

import random

import msgspec
import pytest

from cyclescope.backend.base import OK, Capabilities, Sample
from cyclescope.errors import MeasurementError
from cyclescope.infer.timing.latency_system import (
    GIVES_WAY,
    Equation,
    LatencySystem,
    LinkLatency,
    _weights,
    conventions,
    lower_bound,
)
from cyclescope.infer.timing.link_chains import LinkChains, _agreeing, _undelayed, solve_links
from cyclescope.infer.timing.links import KnownLinks, LinksInARow
from cyclescope.kernel.cycle import LINK_SPACING, SPACED, LinkKey
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import LINK, Experiment
from cyclescope.measure.record import FAILED, STABLE, UNSTABLE, Record
from cyclescope.measure.sampling import DISAGREE, Measurement

X86 = "x86-64"

KERNEL = Kernel(b"\x90", 1, MachineState((0,) * 16))


def solve(*equations):
    return LatencySystem([Equation(tuple(keys.split()), cycles) for keys, cycles in equations], X86).solve()


def test_one_link_in_a_row_is_exact():
    found = solve(("r>r", 1.0), ("bypass.fp.128 bypass.fp.128", 6.0))
    assert found["r>r"].value == pytest.approx(1.0)
    assert found["bypass.fp.128"].value == pytest.approx(3.0)
    assert all(link.determined and not link.convention for link in found.values())


def test_links_determined_by_others_are_exact():
    found = solve(("r>r", 1.0), ("xor", 1.0), ("load.r.64 r>r xor xor", 7.0), ("r>flag.CF flag>r.CF", 2.0))
    assert found["load.r.64"].value == pytest.approx(4.0)
    assert found["load.r.64"].determined
    assert found["flag>r.CF"].value == pytest.approx(1.0)  # both have taken their least


def test_a_round_trip_leaves_its_two_directions_open():
    found = solve(("r>r", 1.0), ("transfer.r>v v>r", 6.0))
    there, back = found["transfer.r>v"], found["v>r"]
    assert there.least == pytest.approx(1.0)
    assert there.most == pytest.approx(5.0, abs=0.2)
    assert not there.determined
    assert (there.value, back.value) == (pytest.approx(3.0), pytest.approx(3.0))  # by convention
    assert there.convention == back.convention == "transfer"


def test_an_odd_round_trip_takes_the_longer_part_there():
    found = solve(("r>r", 1.0), ("transfer.r>v v>r", 5.0))
    assert (found["transfer.r>v"].value, found["v>r"].value) == (pytest.approx(3.0), pytest.approx(2.0))


def test_only_conventions_that_apply_are_used():
    assert conventions(["m>r", "r>r"], X86) == []
    assert ("mmx", "m>r", "v>r") in conventions(["m>r", "v>r"], X86)
    assert ("loads", "mem>v.128", "load.v.128") in conventions(["mem>v.128", "load.v.128"], X86)


def test_links_of_several_instructions_take_at_least_a_cycle_each():
    assert lower_bound("r>r", X86) == 1.0
    assert lower_bound("restore.256", X86) == 2.0
    assert lower_bound("r>v.128", X86) == 3.0


def test_chains_that_contradict_each_other_give_the_middle_of_the_road():
    found = solve(("r>r", 1.0), ("r>r", 1.0), ("r>r", 1.6))
    assert found["r>r"].value == pytest.approx(1.0, abs=0.05)  # the two that agree
    assert found["r>r"].least <= 1.0 <= found["r>r"].most
    assert found["r>r"].most >= 1.0


def test_a_chain_faster_than_the_law_allows_does_not_break_the_solver():
    found = solve(("r>r", 1.0), ("xor", 1.0), ("load.r.64 xor xor", 1.5))
    assert found["r>r"].value == pytest.approx(1.0)
    assert all(link.value >= 1.0 - 1e-6 for link in found.values())


def test_a_convention_gives_way_to_chains_that_determine_its_links():
    found = solve(("r>r", 1.0), ("m>r m>r", 4.0), ("r>m m>r", 7.0))
    assert (found["m>r"].value, found["r>m"].value) == (pytest.approx(2.0), pytest.approx(5.0))


# --- which chains count -------------------------------------------------------------------------


def settled(name, keys, cycles, cut=0.3, verdict=STABLE):
    def one(variant, value):
        experiment = Experiment(name, LINK, "", "", variant, KERNEL, 1, tuple(keys.split()))
        return experiment, Measurement(value, 0.0, verdict, 6, 0, (value,))

    return [one("", cycles), one("cut", cut)]


def test_a_chain_that_a_cut_does_not_speed_up_is_no_chain():
    reference = settled("r>r", "r>r", 1.0)
    assert "v>v.128" in solve_links([*reference, *settled("v", "v>v.128", 3.0)], X86)
    assert "v>v.128" not in solve_links([*reference, *settled("v", "v>v.128", 3.0, cut=2.95)], X86)


@pytest.mark.parametrize(
    ("bare", "with_others", "expected"),
    [(7.4, 13.0, 5.0), (5.0, 14.5, 5.0), (7.4, 13.6, 5.6)],  # delayed alone; beside others; in both, but less
)
def test_what_delays_loads_is_no_part_of_their_latency(bare, with_others, expected):
    """A load right behind its store may have to be repeated: then the chain with room for it counts."""
    found = solve_links(
        [
            *settled("r>r", "r>r", 1.0),
            *settled("v", "v>mem.128 mem>v.128", bare),
            *settled("v spaced", "v>mem.128 mem>v.128" + " r>r" * 8, with_others),
        ],
        X86,
    )
    assert found["v>mem.128"].value + found["mem>v.128"].value == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize("room", [5, 7])
def test_there_is_room_for_every_load_to_be_repeated(room):
    """As on a core whose loads take two and a half cycles more with less than `room` behind them."""
    bare, with_others = 5 + 2.5, 5 + LINK_SPACING + max(0.0, 2.5 * (1 - LINK_SPACING / room))
    found = solve_links(
        [
            *settled("r>r", "r>r", 1.0),
            *settled("v", "v>mem.128 mem>v.128", bare),
            *settled("v spaced", "v>mem.128 mem>v.128" + " r>r" * LINK_SPACING, with_others),
        ],
        X86,
    )
    assert found["v>mem.128"].value + found["mem>v.128"].value == pytest.approx(5.0, abs=0.1)
    assert LINK_SPACING <= 12, "a chain is measured with a dozen instructions and more"


@pytest.mark.parametrize(
    ("cycles", "spread", "expected"),
    [
        (24.3, 0.1, 24.0),
        (23.7, 0.1, 24.0),
        (23.6, 0.1, 23.6),
        (24.41, 0.1, 24.41),  # an average of several paths
        (4.11, 0.01, 4.0),
        (4.13, 0.01, 4.13),
        (33.45, 0.1, 33.45),
    ],
)
def test_closed_chains_are_whole_but_for_noise(cycles, spread, expected):
    assert read(cycles, spread, STABLE) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cycles", "spread", "expected"),
    [(7.39, 0.61, 8.0), (7.39, 0.45, 7.39), (6.95, 1.2, 6.95)],  # one between the rounds, none, two
)
def test_of_rounds_that_differ_the_whole_number_counts(cycles, spread, expected):
    assert read(cycles, spread, UNSTABLE) == pytest.approx(expected)


def read(cycles, spread, verdict):
    """What a chain of one link takes, of a reading."""
    reading = [*settled("v", "v>v.128", cycles, verdict=verdict)]
    noisy = [(e, msgspec.structs.replace(m, spread=spread)) for e, m in reading]
    link = solve_links([*settled("r>r", "r>r", 1.0), *noisy], X86)["v>v.128"]
    return (link.least + link.most) / 2


def memory(noise, stores=6, loads=(4, 7)):
    """Chains of stores of so many cycles, and loads that take so many to general and vector registers."""
    narrow, wide = loads
    chains = [
        ("r", "r>r", 1), ("xor", "xor", 1), ("vr", "transfer.r>v v>r", 7),
        ("l", "load.r.8 r>r xor xor", 7), ("w", "load.v.32 v>r xor xor", 11),
        ("a", "r>mem.32 mem>r.8", stores + narrow), ("b", "r>mem.32 mem>v.32 v>r", stores + wide + 3),
    ]  # fmt: skip
    read = [(name, keys, cycles * (1 + noise.gauss(0, 0.004))) for name, keys, cycles in chains]
    return [one for chain in read for one in settled(*chain)]


@pytest.mark.parametrize("seed", range(40))
def test_noise_does_not_choose_the_convention_that_gives_way(seed):
    """Data take a cycle more than an address to a vector register: one of two loads is not as assumed."""
    found = solve_links(memory(random.Random(seed)), X86)
    loads = {key: found[key].value for key in ("r>mem.32", "mem>r.8", "mem>v.32")}
    assert loads == {"r>mem.32": 6.0, "mem>r.8": 4.0, "mem>v.32": 7.0}


def test_no_two_conventions_weigh_the_same():
    """Of equal ones, a solver's luck would choose: the first holds."""
    weights = [*_weights(30)]
    assert weights[::2] == weights[1::2] == sorted(set(weights), reverse=True)
    assert weights[0] == GIVES_WAY
    assert 0.75 < weights[-1] / weights[0] < 0.85


@pytest.mark.parametrize(("less", "counts"), [(0.4, " spaced"), (0.6, ""), (1.0, "")])
def test_a_chain_in_another_state_than_the_others_does_not_count(less, counts):
    """All say that a vector goes to memory and back in nine cycles, but one with others on its way."""
    round_trip = ("v>mem.32", "mem>v.32")
    bare = Equation(round_trip, 9.0, "v")
    others = Equation((*round_trip, *["r>r"] * LINK_SPACING), 9.0 + LINK_SPACING - less, "v" + SPACED)
    every = [
        Equation(("r>r",), 1.0, "r"), Equation(("v>r",), 3.0, "f"), Equation(("v>mem.32",), 2.0, "s"),
        Equation(("r>mem.32",), 6.0, "c"), Equation(("r>mem.32", "mem>v.32", "v>r"), 16.0, "b"), bare, others,
    ]  # fmt: skip
    chosen = [*_undelayed(every, "x86-64")]
    assert bare not in chosen
    assert [e.name for e in _agreeing(every, chosen, "x86-64")][-1] == "v" + counts


def test_a_chain_that_failed_is_left_out():
    found = solve_links([*settled("r>r", "r>r", 1.0), *settled("m", "m>r r>m", 9.0, verdict=FAILED)], X86)
    assert set(found) == {"r>r"}


def test_without_the_reference_there_is_nothing_to_subtract():
    with pytest.raises(MeasurementError):
        solve_links(settled("v", "v>v.128", 3.0), X86)


@pytest.mark.parametrize(("cycles", "cut"), [(3.0, 3.0), (0.2, 0.1)])
def test_times_that_tell_no_dependency_are_not_said_to_be_noise_alone(cycles, cut):
    """An emulator behind a command is no noisy machine."""
    with pytest.raises(MeasurementError, match=rf"takes {cycles:.2f} cycles, and {cut:.2f} with") as said:
        solve_links(settled("r>r", "r>r", cycles, cut=cut), X86)
    assert "emulator" in said.value.remedy


def test_a_chain_of_one_cycle_counts_even_where_the_cut_costs_as_much():
    assert solve_links(settled("r>r", "r>r", 1.0, cut=1.0), X86)["r>r"].value == pytest.approx(1.0)


def test_a_core_in_order_waits_for_what_cuts_a_chain():
    """On x86-64, whose cores issue out of order, such a link carries nothing."""
    some = [*settled("r>r", "r>r", 1.0), *settled("v", "v>v.m1", 16.0, cut=16.0)]
    link = solve_links(some, "riscv64")["v>v.m1"]
    assert link.value == pytest.approx(16.0)
    assert (link.least, link.convention) == (1.0, "uncut")
    assert "v>v.m1" not in solve_links(some, X86)


def test_a_long_chain_need_not_be_much_faster_when_cut():
    reference = settled("r>r", "r>r", 1.0)
    found = solve_links([*reference, *settled("v", "r>v.m1 v>r", 33.0, cut=32.0)], "riscv64")
    assert found["v>r"].convention == "transfer"


# --- looks ----------------------------------------------------------------------------------------


class Neighbours:
    """Chains of 9 cycles that neighbours slow down until a number of visits."""

    def __init__(self, until):
        self.visits, self.until, self.waiting = 0, until, []

    def capabilities(self):
        return Capabilities("x86-64", "neighbours", 0, "cycles")

    def submit(self, kernels, effort):
        self.visits += 1
        slow = self.visits <= self.until
        rounds = [9.5 + 0.5 * self.visits, 14 + 0.7 * self.visits] if slow else [9.0, 9.01]
        self.waiting.append([[Sample(cycles, 0.01, OK, accepted=6) for cycles in rounds] for _ in kernels])

    def collect(self):
        return self.waiting.pop(0)


@pytest.mark.parametrize(("until", "expected"), [(0, 9.0), (7, 9.0), (14, 9.0), (30, None)])
def test_a_disturbed_chain_is_looked_at_again(until, expected):
    """Through fourteen visits: what disturbs for twice as long is no passing neighbour."""
    backend = Neighbours(until)
    chains = LinkChains(backend, [Experiment("v", LINK, "", "", "", KERNEL, 1, ("v>r",))])
    chains.look()
    ((_, found),) = chains.settled
    assert bool(chains.disturbed) == (expected is None)
    assert expected is None or found.cycles == pytest.approx(expected, abs=0.01)


def test_only_what_was_disturbed_is_measured_again():
    """Of a finished run: an undisturbed chain keeps its reading, another a better one."""
    known = [
        Record(name, LINK, "", "", "", cycles, 0.01, verdict, 1, ("v>r",), error=error)
        for name, cycles, verdict, error in (("calm", 5.0, STABLE, ""), ("loud", 9.9, UNSTABLE, DISAGREE))
    ]
    experiments = [Experiment(r.form, LINK, "", "", "", KERNEL, 1, r.links) for r in known]
    chains = LinkChains(Neighbours(0), experiments, known)
    chains.look()
    assert [e.form for e, _ in chains.better] == ["loud"]
    assert [m.cycles for _, m in chains.settled] == pytest.approx([5.0, 9.0], abs=0.01)


def test_a_reading_that_is_no_better_is_not_kept():
    known = [Record("v", LINK, "", "", "", 8.0, 0.01, UNSTABLE, 1, ("v>r",), error=DISAGREE)]
    chains = LinkChains(Neighbours(100), [Experiment("v", LINK, "", "", "", KERNEL, 1, ("v>r",))], known)
    chains.look(1)
    assert chains.better == []
    assert chains.disturbed


def test_a_later_look_goes_on_with_what_was_disturbed():
    backend = Neighbours(7)
    chains = LinkChains(backend, [Experiment("v", LINK, "", "", "", KERNEL, 1, ("v>r",))])
    chains.look(1)
    assert chains.disturbed
    chains.look()
    assert not chains.disturbed
    before = backend.visits
    chains.look()
    assert backend.visits == before


@pytest.mark.parametrize(
    ("key", "parts", "files"),
    [
        ("r>v.128", ("", "r", "v", "128"), {"r", "v"}),
        ("mem>r.32", ("", "mem", "r", "32"), {"mem", "r"}),
        ("load.r.64", ("load", "r", "", "64"), {"r"}),
        ("transfer.r>f.32", ("transfer", "r", "f", "32"), {"r", "f"}),
        ("v>r", ("", "v", "r", ""), {"v", "r"}),
        ("restore.f.64", ("", "restore", "", "f.64"), {"restore"}),
    ],
)
def test_keys_of_links_are_read(key, parts, files):
    link = LinkKey.read(key)
    assert tuple(link) == parts
    assert link.files == files
    assert link.text == key


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("transfer.r>v.128", "v>r"), [("transfer", "transfer.r>v.128", "v>r")]),
        (("transfer.r>f.32", "f>r.32"), [("transfer", "transfer.r>f.32", "f>r.32")]),
        (("mem>v.128", "load.v.128"), [("loads", "mem>v.128", "load.v.128")]),
        (("mem>x.80", "load.v.80"), [("x87", "mem>x.80", "load.v.80")]),
        (("mem>r.32", "load.r.32"), []),  # of two dependent instructions
        (("mem>r.8", "load.r.8"), [("loads", "mem>r.8", "load.r.8")]),
    ],
)
def test_conventions_of_keys(keys, expected):
    assert conventions(keys, "x86-64") == expected


# --- links in a row ------------------------------------------------------------------------------------

IN_A_ROW = KnownLinks(
    {"a": LinkLatency(2.0, 1.0, 3.0, "transfer, masks"), "b": LinkLatency(1.0, 1.0, 1.5, "loads")}
)


def test_links_add_up_with_their_conventions():
    assert IN_A_ROW.along(("a", "b", "a")) == LinksInARow(5.0, 3.0, 7.5, "loads, masks, transfer", ())
    assert IN_A_ROW.along(()) == LinksInARow(0, 0, 0, "", ())
    assert IN_A_ROW.along(("a", "c", "d")) == LinksInARow(2.0, 1.0, 3.0, "masks, transfer", ("c", "d"))


def test_links_in_a_row_are_added_up_once():
    assert IN_A_ROW.along(("b", "a")) is IN_A_ROW.along(("b", "a"))
