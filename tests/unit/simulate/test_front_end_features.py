"""Front ends of simulated cores that pair NOPs, fuse moves, divide nothing, fetch so much; schedulers."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.drawn.features import with_drawn_scheduler
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.state import MachineState
from cyclescope.model.machine import Writeback
from cyclescope.simulate.draw import draw_machine
from cyclescope.simulate.engine import Engine
from cyclescope.simulate.front_end import FEATURELESS, FrontEnd
from cyclescope.simulate.simulator import Simulator

WIDTH = 4
NOP, MOVE, ADD, IMUL = "NOP", "MOV_89 (R64, R64)", "ADD_01 (R64, R64)", "IMUL (R64, R64)"


@pytest.fixture(scope="module")
def machine(table):
    return draw_machine(3, [table[name] for name in (NOP, MOVE, ADD, IMUL)], width=WIDTH, ports=12)


def cycles(machine, table, front_end, *instructions):
    body = [Instruction(table[name], registers) for name, *registers in map(list, instructions)]
    body = [Instruction(one.form, tuple(one.registers)) for one in body]
    return Simulator(machine, front_end=front_end).run(body, MachineState((0,) * 16)).cycles


def test_two_nops_share_a_slot(machine, table):
    run = [(NOP,)] * 24
    assert cycles(machine, table, FEATURELESS, *run) == 6
    assert cycles(machine, table, FrontEnd(pairs=True), *run) == 3


def test_a_nop_alone_has_a_slot_of_its_own(machine, table):
    run = [(NOP,), (MOVE, 1, 2)] * 12
    assert cycles(machine, table, FrontEnd(pairs=True), *run) == cycles(machine, table, FEATURELESS, *run)


def test_a_nop_trails_what_works_on_no_vectors(table):
    trails = FrontEnd(trails=True)
    first, _, last = run = [Instruction(table[name]) for name in (MOVE, NOP, NOP)]
    assert trails.shared(run) == [False, True, False]
    assert FrontEnd(trails=True, pairs=True).shared([*run, last]) == [False, True, False, True]
    assert trails.shared([Instruction(table["MOV (R64, M64)"]), last]) == [False, True]
    assert trails.shared([Instruction(table["PADDD (XMM, XMM)"]), last]) == [False, False]
    assert FEATURELESS.shared([first, last]) == [False, False]


def test_a_move_is_one_with_what_works_on_its_target(table):
    fuses, move = FrontEnd(fuses=True), Instruction(table[MOVE], (2, 1))
    target = move.registers[[slot.operand for slot in table[MOVE].encoding.slots].index(0)]
    first = [slot.operand for slot in table[ADD].encoding.slots].index(0)
    on_target, on_other = ([0, 0], [0, 0])
    on_target[first], on_other[first] = target, target + 3
    assert fuses.shared([move, Instruction(table[ADD], tuple(on_target))]) == [False, True]
    assert fuses.shared([move, Instruction(table[ADD], tuple(on_other))]) == [False, False]
    between = [move, Instruction(table[NOP]), Instruction(table[ADD], tuple(on_target))]
    assert fuses.shared(between) == [False] * 3
    assert fuses.shared([move, Instruction(table[IMUL], tuple(on_target))]) == [False, False]
    assert FEATURELESS.shared([move, Instruction(table[ADD], tuple(on_target))]) == [False, False]


def test_code_arrives_so_many_bytes_a_cycle(machine, table):
    run = [(NOP,)] * 24
    assert cycles(machine, table, FrontEnd(fetch=2.0), *run) == 12
    assert cycles(machine, table, FrontEnd(fetch=64.0), *run) == 6


def test_what_is_not_divided_leaves_slots_empty():
    whole = FrontEnd(whole=True)
    assert whole.cycles((), [1.0, 1.0, 1.0, 2.0], 4) == pytest.approx(4 / 3)  # one of 16 stays empty
    assert FEATURELESS.cycles((), [1.0, 1.0, 1.0, 2.0], 4) == 0


def test_it_says_what_it_does():
    assert list(FEATURELESS.features) == []
    assert list(FrontEnd(True, True, True, True, 16.0).features) == [
        "pairs NOPs", "NOPs trail", "fuses moves", "divides nothing", "16 bytes per cycle",
    ]  # fmt: skip


def test_a_padded_instruction_is_longer_and_the_same(table):
    plain, padded = (Instruction(table[NOP], padding=n) for n in (0, 3))
    assert (len(plain.code), len(padded.code)) == (1, 4)
    assert padded.text == "ds ds ds nop"


def test_a_scheduler_that_the_front_end_keeps_empty_shortens_what_waits_for_it(machine, table):
    true = machine.forms[IMUL].latencies["op1->op1"]
    with_room = with_drawn_scheduler(machine, [table[IMUL]], 1, share=1.0)
    chain = (IMUL, 1, 2)
    for nops, taken in (
        (0, true),  # alone
        (int(true - 1) * WIDTH - 2, true),  # a slot less than the front end needs
        (int(true - 1) * WIDTH - 1, true - 1),
        (int(true) * WIDTH, int(true) + 1 / WIDTH),  # the front end alone
    ):
        body = [chain, *[(NOP,)] * nops]
        assert cycles(with_room, table, FEATURELESS, *body) == pytest.approx(taken, rel=0.002)
        assert cycles(machine, table, FEATURELESS, *body) == pytest.approx(max(true, taken), rel=0.002)


@pytest.mark.parametrize(("name", "writeback", "times"), [(IMUL, None, 2), (ADD, None, 1), (ADD, (0,), 2)])
def test_code_that_room_in_the_scheduler_changes_nothing_of_is_simulated_once(
    machine, table, monkeypatch, name, writeback, times
):
    """Where results wait to be written, what others usually take counts."""
    run, taken = Engine.run, []
    monkeypatch.setattr(Engine, "run", lambda self, *rest: taken.append(self) or run(self, *rest))
    roomy = with_drawn_scheduler(machine, [table[IMUL]], 1, share=1.0)
    written = Writeback(writeback, 2) if writeback else None
    roomy = msgspec.structs.replace(roomy, core=msgspec.structs.replace(roomy.core, writeback=written))
    cycles(roomy, table, FEATURELESS, (name, 1, 2))
    assert len(taken) == times
