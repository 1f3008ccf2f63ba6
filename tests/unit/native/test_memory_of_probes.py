"""Kernels of probes wait for, and touch, what the probes say, on AArch64 and RISC-V under qemu-user."""

from __future__ import annotations

import re

import pytest
from msgspec import structs

from cyclescope.kernel.state import CHAIN_BASE, DATA_BASE, FIRST_WINDOW, chain_start
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import CHAIN_PLACE
from tests.support.code.traced import Access, target

MOST_POINTERS = 600  # of a circle that is followed as a whole
ALL_ONES = (1 << 64) - 1
MOST_COPIED = 1024  # bytes of a body


# --- what waits for what --------------------------------------------------------------------------------

_WAITS = {
    "move-elimination": {"alone": True, "moved": True},
    "dependency-breaking": {"waits": True, "asked": False, "free": False},
    "consumers": {"first": True, "second": True, "in turn": True},
    "bypass": {"first": True, "second": True, "in turn": True},
    "store-forwarding": {"same link": True, "asked link": True},
    "issue-order": {"one after the other": True, "by turns": True, "in one chain": True},
    "in-flight": {"asked": False, "serial": True, "free": False},
    "scheduler": {"asked": True},
}


_COMPARES = "CMEQ"  # all ones where both are the same, which nothing else is
_KEEPS = ("AND", "ORR", "OR")  # what is left of a register and itself is the register


@pytest.mark.parametrize("probe", list(_WAITS))
def test_what_waits_for_itself(runs, probe):
    wrong = []
    for case, point in runs.chosen(probe):
        expected = _WAITS[probe].get(point.part.split(", mix")[0])
        if probe == "dependency-breaking" and case.subject.startswith(_COMPARES) and point.part == "waits":
            continue
        if probe == "dependency-breaking" and point.part == "asked":
            expected = case.subject.startswith(_KEEPS)
        if expected is None or (probe == "scheduler" and not case.subject.startswith("chained")):
            continue
        done = runs(point)
        register = target(done.steps[0])
        if done.status != "ok" or runs.passes(point, register) != expected:
            wrong.append((case.subject, point.part, point.x, done.status, register))
    assert wrong == []


def test_chains_by_turns_do_not_wait_for_each_other(runs):
    for _, point in runs.chosen("issue-order"):
        steps = runs(point).steps
        one, other = target(steps[0]), target(steps[1])
        assert (one == other) == (point.part != "by turns")
        if point.part == "by turns":
            assert not runs.passes(point, one, other)
            assert runs.passes(point, other)


def test_moves_change_nothing(runs):
    for case in PROBES["move-elimination"].cases(runs.isa):
        alone, moved = (runs(point) for point in case.points)
        register = target(alone.steps[0])
        assert moved.after[register] == alone.after[register]


def test_zero_idioms_are_zero(runs):
    for case, point in runs.chosen("zero-idioms"):
        if point.part != "alone":
            continue
        done = runs(point)
        values, keeps = {done.after[target(step)] for step in done.steps}, case.subject.startswith(_KEEPS)
        assert runs.passes(point, target(done.steps[0])) == keeps, case.subject
        assert keeps or values == {ALL_ONES if case.subject.startswith(_COMPARES) else 0}, case.subject


# --- where memory is touched ----------------------------------------------------------------------------


def _of(accesses: list[Access], stores: bool) -> list[Access]:
    return [one for one in accesses if one.stores == stores]


@pytest.mark.parametrize("probe", ["caches", "cache-sets", "pages"])
def test_walks_follow_pointers_to_all_places(runs, probe):
    for case, point in runs.chosen(probe):
        many, apart = point.setting.chain
        assert many in (point.x, point.x // apart, point.x // 4096), (case.subject, point.part)
        *loads, last = runs(point).accesses
        first = chain_start(apart)
        places = [one.address for one in loads]
        assert (last.stores, last.address) == (True, FIRST_WINDOW + CHAIN_PLACE)
        assert len(loads) == point.count
        if many <= MOST_POINTERS:
            walk = structs.replace(point, lines=point.lines[:1] * (many + 1))
            steps = runs(walk).steps
            places = [step.registers[target(step)] for step in steps]
            assert sorted(places[:-1]) == [first + apart * number for number in range(many)]
            assert places[-1] == places[0]
        assert all((at - first) % apart == 0 and 0 <= at - first < many * apart for at in places)


def test_stores_and_loads_overlap_as_said(runs):
    """What is loaded depends on what was stored, and is where the subject says."""
    for case, point in runs.chosen("store-forwarding"):
        found = re.match(r"(\d+) bits, load of (\d+) at \+(\d+)", case.subject)
        if found is None or point.part not in ("asked", "same"):
            continue
        chain = target(runs(point).steps[0])
        assert runs.passes(point, chain, behind=1), (case.subject, point.part)
        if point.part == "same":
            continue
        stored, loaded, at = map(int, found.groups())
        store, load = runs(point).accesses
        assert (store.stores, store.size * 8) == (True, stored)
        assert (load.stores, load.size * 8, load.address - store.address) == (False, loaded, at)


def test_renamed_memory_is_one_place(runs):
    for case, point in runs.chosen("memory-renaming"):
        if point.part == "load" or len(point.lines) > 400:
            continue
        done = runs(point)
        accesses = done.accesses
        found = re.match(r"(\d+) stores in between", case.subject)
        between = int(found[1]) if found else 0
        store, *others, load = accesses[: between + 2]
        chain, loaded = target(done.steps[0]), target(done.steps[load.line])
        assert (loaded == chain) == (point.part == "asked"), case.subject
        assert runs.passes(point, loaded, chain, load.line), case.subject
        assert store.stores and not load.stores and store.address == load.address
        assert all(one.stores and not set(one.places) & set(store.places) for one in others)


def _bits(subject: str) -> int:
    return int(re.search(r"of (\d+) bits", subject)[1])


def test_accesses_are_as_many_and_as_wide_as_said(runs):
    for case, point in runs.chosen("accesses"):
        accesses = runs(point).accesses
        loads, stores = len(_of(accesses, False)), len(_of(accesses, True))
        ratio = re.match(r"(\d+) loads to (\d+) stores", case.subject)
        if ratio:
            assert loads * int(ratio[2]) == stores * int(ratio[1]) > 0, case.subject
        else:
            assert (stores if case.subject.startswith("loads") else loads) == 0
        if "vector" not in case.subject or runs.isa == "aarch64":
            assert {one.size * 8 for one in accesses} == {_bits(case.subject)}, case.subject


def test_accesses_are_as_far_apart_as_said(runs):
    seen = 0
    for case, point in runs.chosen("banks"):
        found = re.match(r"(loads|stores)( of \d+ bits)?( in threes,)? (\d+) bytes apart$", case.subject)
        if not found:
            continue
        seen += 1
        accesses = runs(point).accesses
        places = sorted({one.address for one in accesses})
        assert {one.stores for one in accesses} == {found[1] == "stores"}
        assert places[-1] - places[0] == int(found[4]), case.subject
        assert len(places) == (2 if int(found[4]) else 1)
    assert seen > 10


def test_accesses_cross_where_they_say(runs):
    for case, point in runs.chosen("crossing"):
        found = re.search(r"across (\d+) bytes", case.subject)
        if found:
            across = [
                one.address // int(found[1]) != one.places[-1] // int(found[1])
                for one in runs(point).accesses
            ]
            assert set(across) == {point.part == "across"}, case.subject


def test_loads_and_stores_of_other_pages_have_the_same_place_of_it(runs):
    for case, point in runs.chosen("4k-aliasing"):
        found = re.match(r"(a|\d+) pages? apart", case.subject)
        pages = 1 if found[1] == "a" else int(found[1])
        store, load = runs(point).accesses
        assert store.stores and not load.stores
        if point.part == "same place":
            assert load.address - store.address == 4096 * pages
        else:
            assert (load.address - store.address) % 4096
            assert (load.address - store.address) // 4096 == pages


def test_atomic_operations_are_where_they_say(runs):
    for case, point in runs.chosen("atomics"):
        accesses = runs(point).accesses
        lines = [one.address // 64 for one in accesses]
        stores, own = lines[:8], lines[8:]
        if "behind" in case.subject:
            assert len(set(stores)) == 8 and not set(own) & set(stores)
            assert bool(own) == (
                point.part == "asked" and not case.subject.startswith(("DMB", "DSB", "ISB", "FENCE"))
            )
        elif "by itself" not in case.subject:
            assert len(set(lines)) == (4 if "four lines" in case.subject else 1)


def test_bandwidth_walks_inside_its_size(runs):
    for case, point in runs.chosen("bandwidth"):
        if point.x > 1 << 20:
            continue
        accesses = [
            one for one in runs(point, min(4, max(1, point.x // 1024))).accesses if one.address >= CHAIN_BASE
        ]
        accesses = [one for one in accesses if one.address < FIRST_WINDOW]
        assert {one.stores for one in accesses} == {case.subject.startswith("stores")}, case.subject
        places = [place - CHAIN_BASE for one in accesses for place in one.places]
        assert min(places) >= 0 and max(places) < point.x, (case.subject, point.x)
        assert len(places) == len(set(places)), case.subject


def test_copies_are_whole_and_lie_as_said(runs):
    for case, point in runs.chosen("copies"):
        accesses = [one for one in runs(point).accesses if one.address < DATA_BASE]
        read, written = ({p for one in _of(accesses, s) for p in one.places} for s in (False, True))
        assert len(read) == len(written) == min(point.x or MOST_COPIED, MOST_COPIED), case.subject
        source, destination = min(read), min(written)
        into = re.search(r"destination (\d+) bytes? into a line", case.subject)
        if into and point.part == "asked":
            assert destination % 64 == int(into[1])
        else:
            aligned = re.search(r"destination (\d+) bytes (behind|before) the source", case.subject)
            if aligned and point.part == "asked":
                behind = int(aligned[1]) * (1 if aligned[2] == "behind" else -1)
                assert (destination - source - behind) % 4096 == 0
