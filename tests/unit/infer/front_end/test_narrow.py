"""Instructions of which a cycle takes fewer than it has slots: on cores that have such, and on no other."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from cyclescope.backend.loops import Loops
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.front_end.narrow import narrow_moves, narrow_of
from cyclescope.infer.front_end.width import FoundWidth
from cyclescope.infer.ports.approach import read_approach
from cyclescope.isa.register import register_files
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.record import Reading
from cyclescope.measure.store import Store
from cyclescope.model.machine import Narrow
from cyclescope.simulate.draw import draw_machine
from cyclescope.simulate.front_end import FrontEnd

MOVE, OTHER, WIDE = "VMOVAPS_28 (XMM, XMM)", "MOVAPS_0F28 (XMM, XMM)", "VMOVAPD (ZMM, ZMM)"
ADDED, MASKS, GENERAL, NOP = "VPADDD (XMM, XMM, XMM)", "KADDB (K, K, K)", "LEA_B (R32)", "NOP (M32)"
WIDTH, EACH, ENOUGH = 8, 6, 40  # slots, moves, and seeds among which one core renames moves
FORMS = (MOVE, ADDED, MASKS, "ADD_01 (R64, R64)")
SEED = random.SystemRandom().randrange(1 << 30)


def told(table, tmp_path, machine, front_end):
    """What a simulated core's front end says of them."""
    backend = SimulatedBackend(machine, loops=Loops(1, machine.core.width), front_end=front_end)
    with closing(backend), closing(Store(tmp_path / "s.sqlite", "m")) as store:
        campaign, forms = Campaign(table, backend, store), [table[name] for name in FORMS]
        campaign.run(Request(tuple(forms), frozenset((THROUGHPUT, LATENCY))), {})
        campaign.front_end(forms)
        return read_approach(store, table).front_end.narrow


@pytest.mark.parametrize("has", [True, False])
def test_drawn_cores_tell_whether_they_have_such(table, tmp_path, has):
    draw = random.Random(SEED)
    width = draw.randint(4, 8)
    narrow = Narrow(draw.choice((("v",), ("k", "v"))), float(draw.randint(2, width - 1)), draw.randint(0, 4))
    machines = (draw_machine(SEED + n, list(table), width=width, ports=12) for n in range(ENOUGH))
    machine = next(one for one in machines if one.forms[MOVE].eliminated and one.forms[MASKS].slots == 1)
    found = told(table, tmp_path, machine, FrontEnd(narrow=narrow if has else None))
    if not has:
        assert found is None, f"seed {SEED}"
        return
    assert found is not None, f"seed {SEED}: {narrow}"
    assert (found.files, found.slots) == (narrow.files, narrow.slots), f"seed {SEED}"
    shows = all(k * narrow.slots + 1 + narrow.beside < (k + 0.9) * width for k in (1, 2))  # by whole cycles
    assert found.beside in ({narrow.beside} if shows else {narrow.beside, 0}), f"seed {SEED}: {narrow}"


def readings(counts=(), spread=0.005, **taken):
    """Loops with moves: of a round with one other by its name, and by numbers with NOPs."""
    names = {"nop": NOP, "added": ADDED, "masks": MASKS, "general": GENERAL}
    for name, cycles in taken.items():
        yield Reading(MOVE, names[name], "", f"{EACH}.1.4", 4 * cycles, spread, 28)
    for (moves, others), cycles in dict(counts).items():
        yield Reading(MOVE, NOP, "", f"{moves}.{others}.1", cycles, spread, moves + others)


def rounds(beside):
    """Loops that take whole cycles as soon as so many others are in them."""
    every = ((k * EACH + 1, others, k + 1) for k in (1, 2) for others in range(1, 5))
    return {
        (moves, others): more if beside and others >= beside else max((moves + others) / WIDTH, moves / EACH)
        for moves, others, more in every
    }


def of(table, *found):
    return narrow_of(float(WIDTH), [one for some in found for one in some], table, {MOVE})


MORE = 1 + 1 / EACH


@pytest.mark.parametrize("beside", [0, 1, 3, 4])
def test_whole_cycles_are_told_from_as_many_others_on_as_need_them(table, beside):
    found = of(table, readings(rounds(beside), nop=1.0, added=MORE, masks=1.0, general=1.0))
    assert (found.files, found.slots, found.beside) == (("v",), EACH, beside)
    assert "6 VMOVAPS_28 (XMM, XMM) a cycle, and one fewer for each of VPADDD" in found.source


def test_other_registers_share_the_places_where_they_take_one(table):
    assert of(table, readings(rounds(3), nop=1.0, added=MORE, masks=MORE)).files == ("k", "v")


@pytest.mark.parametrize(
    "taken",
    [
        {"nop": 1.0, "added": 1.0},  # moves alone are limited
        {"nop": MORE, "added": MORE},  # so is everything
        {"nop": 1.0, "added": 2.0},  # these wait for something else
        {"nop": 1.0, "added": 1.08},
        {"nop": 1.0},
    ],
)
def test_what_is_no_limit_of_such_instructions_is_not_told(table, taken):
    assert of(table, readings(rounds(3), **taken)) is None


def test_whole_cycles_that_come_and_go_are_not_told(table):
    mixed = rounds(0) | {(7, 2): 2.0, (13, 2): 3.0}
    assert of(table, readings(mixed, nop=1.0, added=MORE)).beside == 0
    one_of_two = rounds(0) | {(7, 4): 2.0}
    assert of(table, readings(one_of_two, nop=1.0, added=MORE)).beside == 0


def test_what_is_no_move_of_the_renamer_any_more_tells_nothing(table):
    some = readings(rounds(3), nop=1.0, added=MORE)
    assert narrow_of(float(WIDTH), list(some), table, ()) is None


def test_the_fastest_moves_of_a_file_say_whether_there_are_fewer(table):
    width, some = FoundWidth(float(WIDTH), 0.01), [OTHER, MOVE, WIDE]
    assert narrow_moves(width, {OTHER: 1 / 6, MOVE: 1 / 6}, table, some) == [(MOVE, 6)]  # no upper halves
    assert narrow_moves(width, {OTHER: 1 / 8, MOVE: 1 / 6}, table, some) == []
    assert narrow_moves(width, {OTHER: 1 / 6.3, MOVE: 1 / 6.3}, table, some) == []
    assert narrow_moves(width, {OTHER: 1 / 6, MOVE: 1 / 6}, table, []) == []
    read = {OTHER: 1 / 6, MOVE: 1 / 6.02, WIDE: 1 / 6.1}  # one is read as faster than it is
    assert narrow_moves(width, read, table, some) == [(MOVE, 6)]


def test_each_file_has_moves_of_its_own(table):
    width, general = FoundWidth(float(WIDTH), 0.01), "MOV_89 (R64, R64)"
    found = narrow_moves(width, {general: 1 / 7, MOVE: 1 / 6}, table, [general, MOVE])
    assert sorted(found) == [(general, 7), (MOVE, 6)]


def test_files_are_those_of_all_registers(table):
    assert register_files(table["VPADDD (XMM, K, XMM, XMM)"]) == {"v", "k"}
    assert register_files(table["MOVD (XMM, R32)"]) == {"v", "r"}
    assert register_files(table["VPGATHERDD (XMM, K, VSIB_XMM)"]) == {"v", "k"}
    assert register_files(table["NOP"]) == set()
