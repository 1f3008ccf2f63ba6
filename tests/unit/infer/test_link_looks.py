"""Links that a neighbour disturbs steadily: its looks agree with themselves, and only another time tells."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.link_chains import LOOKS, LinkChains, _agreed_by, solve_links
from cyclescope.infer.timing.links import stored_links
from cyclescope.infer.timing.results import EXACT
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Planner
from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.measure.sampling import DISAGREE, Measurement
from cyclescope.measure.store import Store
from cyclescope.model.facts import HIGH, MEDIUM
from tests.support.files.records import LINKS, TABLE, chain, latency
from tests.support.made.comparison import MACHINE
from tests.support.made.simulated import LOUD, SimulatedBackend
from tests.support.made.truth import Truth

CHAIN = "v>mem.128>v"
LOAD = "VPADDD (XMM, XMM, M128)", "op3.data", "op1"
OTHER = "ADD_01 (R64, R64)", "op1", "op1"


def looks(*cycles, verdict=STABLE):
    return [
        Measurement(c, 0.01, verdict, 6, 0, (c, c), error="" if verdict == STABLE else DISAGREE)
        for c in cycles
    ]


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        ((9.0,), 9.0),
        ((9.05, 9.0), 9.0),
        ((9.9, 9.0), None),
        ((9.9, 9.0, 9.0), None),
        ((9.9, 9.0, 9.0, 9.0), 9.0),
        ((9.9, 9.9, 9.0, 9.0), None),
        ((9.9, 9.9, 9.0, 9.0, 9.0), None),
        ((9.9, 9.9, 9.0, 9.0, 9.0, 9.0), 9.0),
        ((8.0, 9.0, 9.0, 9.0), 9.0),  # a hiccup of the clock
    ],
)
def test_looks_agree_or_nothing_is_sure(some, expected):
    found = _agreed_by(looks(*some))
    assert (found.verdict == STABLE) == (expected is not None)
    assert found.cycles == (expected or min(some))
    assert expected is not None or found.spread == max(some) - min(some)


def test_a_look_that_was_disturbed_confirms_and_does_not_contradict():
    calm, loud = looks(9.0), looks(9.02, 12.0, verdict=UNSTABLE)
    assert _agreed_by([*loud, *calm]).verdict == STABLE
    assert _agreed_by([loud[1], *calm]).verdict == UNSTABLE
    assert _agreed_by([*calm, *calm, loud[1], loud[1]]).verdict == STABLE


def test_the_least_of_disturbed_looks_counts_where_two_others_confirm_it():
    found = _agreed_by(looks(12.0, 9.0, 9.05, 10.0, 9.1, verdict=UNSTABLE))
    assert (found.verdict, found.cycles, found.spread) == (STABLE, 9.0, pytest.approx(0.1))
    assert _agreed_by(looks(9.0, 9.05, 10.0, 9.4, verdict=UNSTABLE)).verdict == UNSTABLE
    assert _agreed_by(looks(8.0, 9.0, 9.05, 9.1, verdict=UNSTABLE)).verdict == UNSTABLE


class Neighbour(SimulatedBackend):
    """In chains of links alone a vector takes a cycle longer through memory, while a neighbour `is_there`."""

    def __init__(self, is_there):
        super().__init__(Truth(1), LOUD)
        self.is_there, self.visits = is_there, {}
        planner = Planner(TABLE, lambda form: True)
        some = [e for e in planner.link_experiments() if e.form.startswith(CHAIN) and not e.variant]
        self.chains = {e.kernel.code for e in some}

    def submit(self, kernels, effort):
        for kernel in kernels:
            self.visits[kernel.code] = self.visits.get(kernel.code, 0) + 1
        super().submit(kernels, effort)

    def cycles(self, kernel):
        slow = kernel.code in self.chains and self.is_there(self.visits[kernel.code])
        return super().cycles(kernel) + slow


def told(is_there, path):
    forms = tuple(TABLE[name] for name, _, _ in (LOAD, OTHER))
    with closing(Store(path, MACHINE)) as store:
        campaign = Campaign(TABLE, Neighbour(is_there), store)
        assert campaign.run(Request(forms, frozenset((THROUGHPUT, LATENCY))), {})
        found = {timing.id: timing.latencies for timing in campaign.results(forms)}
        links = stored_links(store)
    pairs = [next(x for x in found[n] if (x.source, x.target) == (s, t)) for n, s, t in (LOAD, OTHER)]
    return links, *pairs


@pytest.mark.parametrize("until", [1, 2])
def test_a_neighbour_that_leaves_is_found_out(until, tmp_path):
    """Of two looks at the start, and one when the forms are measured."""
    links, load, other = told(lambda visit: visit <= until, tmp_path / "s.sqlite")
    calm, expected, _ = told(lambda visit: False, tmp_path / "calm.sqlite")
    assert links == calm
    assert (load.kind, load.confidence, load.max) == (EXACT, HIGH, expected.max)
    assert other.confidence == HIGH


def test_nothing_is_high_that_rests_on_a_link_whose_looks_disagree(tmp_path):
    links, load, other = told(lambda visit: visit % 2 == 0, tmp_path / "s.sqlite")
    assert {key for key, link in links.items() if link.disputed} >= {"v>mem.128"}
    assert not any(links[key].disputed for key in ("r>r", "xor", "load.r.64", "r>flag.CF"))
    assert load.confidence != HIGH
    assert other.confidence == HIGH


def test_a_value_is_as_sure_as_its_links(monkeypatch):
    record = chain(4.0, source="op1", target="flags.CF", variant="link", links=("flag>r.CF",))
    found = latency("ADD_01 (R64, R64)", record, target="flags.CF")
    monkeypatch.setitem(LINKS, "flag>r.CF", LinkLatency(1.0, 1.0, 1.0, disputed=True))
    doubted = latency("ADD_01 (R64, R64)", record, target="flags.CF")
    assert (found.confidence, doubted.confidence) == (HIGH, MEDIUM)
    assert found.max == doubted.max


def test_looks_come_to_an_end():
    backend = Neighbour(lambda visit: visit % 2 == 0)
    chains = LinkChains(backend, Planner(TABLE, lambda form: True).link_experiments())
    chains.look()
    assert max(backend.visits.values()) >= LOOKS
    assert {e.form.removesuffix(" spaced") for e in chains.disturbed} == {CHAIN}
    assert solve_links(chains.settled, isa="x86-64")["v>mem.128"].disputed
