"""Ways through memory on cores whose renaming and forwarding is drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random
import re

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.found import WIDE_BITS, measured_behaviour
from cyclescope.model.facts import (
    BANKS,
    BESIDE_LOADS,
    LOOPED,
    CoreAnswer,
    MemoryWay,
    WideLoad,
    beside_stores,
    loads_and_additions,
    loads_apart,
    stores_apart,
    wide_loads,
    wide_stores,
)
from cyclescope.model.ports import issue_throughput
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.simulate.passing import Passing
from tests.support.made.probed import NOISE, drawn, facts, scored
from tests.support.made.truths import draw_passing, forwarded, renamed

X86 = "x86-64"

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 6
RENAMING = PROBES["memory-renaming"]


def test_what_drawn_cores_rename():
    cores = []
    for number in range(CORES):
        passing = draw_passing(SEED + number)
        machine = drawn([RENAMING, PROBES["move-elimination"]], SEED + number)
        cores.append((
            SimulatedBackend(machine, noise=NOISE, passing=passing),
            lambda subject, p=passing: renamed(p, subject),
        ))  # fmt: skip
    score = scored(RENAMING, cores)
    assert not score.wrong, f"seed {SEED}: {score.wrong}"
    assert score.stated >= 0.8, f"seed {SEED}: {score}"  # loads of 3 cycles leave some open: half were drawn


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_how_many_pairs_a_core_may_learn_while_it_is_asked_over_how_many_stores(isa):
    """As many at every distance: of 24 pairs of a Zen 3 some are learned, and of a Zen 5 40."""
    asked = set()
    for case in RENAMING.cases(isa):
        if "stores in between" in case.subject:
            point = case.points[0]
            assert len(point.lines) == point.count * (2 + 2 * int(case.subject.split()[0]))
            asked.add((point.count, case.subject.endswith(LOOPED)))
    assert asked == {(64, False), (1, True)}


def test_no_store_in_between_is_at_the_place_of_another_page():
    """Where pages lie decides whether such a store delays the load: by 7 cycles in some runs of a Zen 3."""
    assembler = Assembler(load_table("x86-64"))
    for case in RENAMING.cases("x86-64"):
        if "stores in between" in case.subject:
            kernel = assembler.kernel(case.points[0].lines, 0)
            stored, *others = [place for one in kernel.body for place in places(one, kernel.state)]
            loads = {place for place in others if place == stored}
            assert loads, case.subject
            assert not {place % 4096 for place in set(others) - loads} & {stored % 4096}, case.subject


def places(one, state):
    """Addresses that an instruction names."""
    for base, offset in re.findall(r"\[(\w+)(\+\d+)?\]", one.text):
        yield state.general[["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"].index(base)] + int(
            offset or 0
        )


FORWARDING, ACCESSES, CROSSING, ALIASING = (
    PROBES[name] for name in ("store-forwarding", "accesses", "crossing", "4k-aliasing")
)
SOME = [FORWARDING, PROBES["move-elimination"], ACCESSES, CROSSING, ALIASING]


def test_what_drawn_cores_do_not_forward():
    cores = []
    for number in range(3):
        passing = Passing(failed=(9.0, 12.0, 15.0)[number])
        backend = SimulatedBackend(drawn(SOME, SEED + number), noise=NOISE, passing=passing)
        cores.append((backend, forwarded))
    score = scored(FORWARDING, cores)
    assert not score.wrong, f"seed {SEED}: {score.wrong}"
    assert score.stated >= 0.9, f"seed {SEED}: {score}"


def test_loads_beside_additions_are_no_question_of_fetching():
    """A Zen 5 gets fewer than eight instructions of 3 and 4 bytes in a cycle, and eight of 5."""
    assembler = Assembler(load_table(X86))
    for pair in BESIDE_LOADS:
        asked = (case for case in PROBES[BANKS].cases(X86) if case.subject == loads_and_additions(*pair))
        body = assembler.kernel(next(asked).points[0].lines, 0).body
        additions = [len(one.code) for one in body if not one.form.accesses]
        assert sum(len(one.code) for one in body) >= 5 * min(len(body), 2 * len(additions)), pair


def test_where_everything_is_forwarded_nothing_is_told():
    found = facts(FORWARDING, SimulatedBackend(drawn(SOME, SEED), noise=NOISE))
    assert {fact.reason for fact in found} == {"what cannot be forwarded takes no longer here"}, (
        f"seed {SEED}"
    )


def rate(machine, subject):
    """Loads or stores per cycle by the ports of the plain moves, None for mixes."""
    if " to " in subject:
        return None
    roles = instruction_set(machine.isa).roles
    load, store = machine.forms[roles.load], machine.forms[roles.store]
    cost = load if subject.startswith("loads") else store
    return 1 / issue_throughput(cost, machine.core)[0]


def test_how_many_accesses_a_cycle_takes():
    wrong, told = [], 0
    for number in range(4):
        machine = drawn(SOME, SEED + number)
        for fact in facts(ACCESSES, SimulatedBackend(machine, noise=NOISE)):
            expected = rate(machine, fact.subject)
            if expected is not None and fact.is_resolved:
                told += 1
                wrong += [(fact, expected)] if abs(fact.value - expected) > fact.error else []
    assert wrong == [], f"seed {SEED}"
    assert told >= 4 * 10, f"seed {SEED}"


def test_cores_without_banks():
    """On simulated cores it makes no difference where accesses go: nothing is told of banks and lines."""
    probe = PROBES["banks"]
    found = facts(probe, SimulatedBackend(drawn([probe, *SOME], SEED), noise=NOISE))
    assert sum(fact.is_resolved for fact in found) >= 0.8 * len(found), f"seed {SEED}"
    behaviour = measured_behaviour(found, X86)
    assert (behaviour.banks, behaviour.store_chunk) == (None, None), f"seed {SEED}"
    assert behaviour.store_lines is None, f"seed {SEED}"
    assert behaviour.loaded_stores is None, f"seed {SEED}"


@pytest.mark.parametrize("bits", WIDE_BITS)
def test_stores_of_vectors_and_what_is_loaded_among_them(bits):
    cases = {case.subject: case for case in PROBES["banks"].cases("x86-64")}
    for loads, subject in ((0, wide_stores(bits)), (2, beside_stores(bits, 2)), (3, beside_stores(bits, 3))):
        (point,) = cases[subject].points
        lines = [load_table("x86-64")[line.form] for line in point.lines]
        stores = [form for form in lines if any(one.write for one in form.accesses)]
        assert {one.size for form in lines for one in form.accesses} == {bits // 8}
        assert (len(lines), point.count) == (len(stores) * (loads + 1),) * 2
        ((_, place),) = point.setting.pointers
        assert place >= 64  # no load is of what was stored


def test_drawn_cores_take_longer_for_loads_among_stores_where_they_share_ports():
    """A store has its address made by the ports of loads, which matters where these are one or two."""
    for number in range(4):
        machine = drawn([PROBES["banks"], CROSSING], SEED + number)
        backend = SimulatedBackend(machine, noise=NOISE)
        found = measured_behaviour([*facts(PROBES["banks"], backend), *facts(CROSSING, backend)], X86)
        (load,) = machine.forms["VMOVUPS (ZMM, M512)"].operations
        shared = any({*load.ports} & {*one.ports} for one in machine.forms["VMOVUPS (M512, ZMM)"].operations)
        each = 1 / len(load.ports) if shared else 0.0
        told = {one.size: (one.load, one.store) for one in found.beside_stores}
        few = {bits // 8: pytest.approx((each, each), rel=0.02) for bits in WIDE_BITS if each > 1 / 3}
        assert told == few, f"seed {SEED + number}"


class Watched(SimulatedBackend):
    """Remembers every kernel that it is given."""

    def __init__(self, machine):
        super().__init__(machine)
        self.kernels = []

    def submit(self, kernels, effort):
        self.kernels += [(kernel.code, kernel.flags, kernel.state.packed) for kernel in kernels]
        super().submit(kernels, effort)


def test_kernels_that_cases_share_are_looked_at_once():
    """Every case of forwarding is compared with the same five; two looks settle what is undisturbed."""
    backend = Watched(drawn(SOME, SEED))
    assert facts(FORWARDING, backend)
    points = sum(len(case.points) for case in FORWARDING.cases("x86-64"))
    assert len(backend.kernels) == 2 * len(set(backend.kernels)) < points


WIDE_LOADS = [wide_loads(bits, where) for bits in WIDE_BITS for where in WideLoad]


@pytest.mark.parametrize(("where", "places"), [("INSIDE", (0, 0)), ("ACROSS", (0, 64)), ("HALVES", (0, 64))])
def test_where_vectors_are_loaded_from(where, places):
    assembler = Assembler(load_table("x86-64"))
    for bits in WIDE_BITS:
        case = next(c for c in CROSSING.cases("x86-64") if c.subject == wide_loads(bits, WideLoad[where]))
        (point,) = case.points
        kernel = assembler.kernel(point.lines, 0)
        assert len(kernel.body) == point.count
        ((_, place),) = point.setting.pointers
        assert (place // 64 * 64, (place + bits // 8 - 1) // 64 * 64) == places
        assert (where == "HALVES") is (place + bits // 16 == 64), case.subject


def test_vectors_are_loaded_as_fast_across_the_lines_of_cores_that_have_none():
    found = facts(CROSSING, SimulatedBackend(drawn(SOME, SEED), noise=NOISE))
    told = {fact.subject: fact for fact in found if fact.is_resolved}
    for bits in WIDE_BITS:
        some = [told[subject] for where in WideLoad if (subject := wide_loads(bits, where)) in told]
        assert len(some) == len(WideLoad), f"seed {SEED}"
        assert {abs(fact.value - some[0].value) <= fact.error + some[0].error for fact in some} == {True}
    assert measured_behaviour(found, X86).crossing is None, f"seed {SEED}"


@pytest.mark.parametrize("probe", [CROSSING, ALIASING], ids=["crossing", "aliasing"])
def test_cores_without_lines_and_pages(probe):
    """Simulated cores have no caches: nothing is slower for where it is."""
    found = facts(probe, SimulatedBackend(drawn(SOME, SEED), noise=NOISE))
    told = [fact for fact in found if fact.is_resolved and fact.subject not in WIDE_LOADS]
    assert len(told) >= (len(found) - len(WIDE_LOADS)) * 0.8, f"seed {SEED}"
    assert [fact for fact in told if abs(fact.value) > fact.error or fact.answer is CoreAnswer.ALIASED] == []


@pytest.mark.parametrize("subject", [MemoryWay.REWRITTEN_SHORT, MemoryWay.OTHER_SHORT])
def test_pairs_that_a_core_may_learn_are_forwarded_where_looks_agree_about_it(subject):
    """A Zen 3 renames the pairs of a short loop; beside a neighbour they may take longer than a load."""
    case = next(case for case in RENAMING.cases("x86-64") if case.subject == subject)
    for asked, answer in (
        (Interval(9.9, 10.1), CoreAnswer.FORWARDED),
        (Interval(3.0, 3.2, is_steady=False), CoreAnswer.RENAMED),
        (Interval(9.8, 11.6, is_steady=False), None),
    ):
        found = {("asked", 0): asked, ("asked, cut", 0): Interval(3.0, 3.0), ("load", 0): Interval(4.0, 4.0)}
        if answer is None:
            with pytest.raises(Unresolved, match="looks differ"):
                RENAMING.judge(case, Readings(found, {}))
        else:
            assert RENAMING.judge(case, Readings(found, {})).answer is answer


def test_places_of_other_pages_are_asked_for_banks():
    """A cache may take them for one place, however far apart they are."""
    subjects = {case.subject for case in PROBES[BANKS].cases(X86)}
    for distance in (512, 4096, 65536):
        assert {loads_apart(distance), stores_apart(distance)} <= subjects
