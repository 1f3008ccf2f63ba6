"""How many constants a line of code has room for: of cores that are drawn, whose readings have noise."""

from __future__ import annotations

import random
import shutil

import pytest

from cyclescope.model.behaviour.constants import ConstantRoom, constant_room
from cyclescope.model.behaviour.lines import CodeLines
from cyclescope.model.facts import (
    BESIDE_CONSTANTS,
    CODE_LINES,
    LONGER_NOPS,
    SHORTEST_NOPS,
    WITH_CONSTANTS,
    Constants,
    CoreAnswer,
    Fact,
    loop_of,
    loop_with,
)
from tests.support.code.blocks import predicted

SEED = random.SystemRandom().randrange(1 << 30)
NOP, ERROR = 2, 0.02  # bytes; cycles
END = 1  # a decrement and its branch, which has a constant
needs_assembler = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


class Core:
    """A core with room for constants, or None; loads and comparisons share so many ports."""

    def __init__(self, room, width=6.0, loads=3, seed=1, noise=0.01, look=1.0):
        self.room, self.width, self.loads, self.look = room, width, loads, look
        self.draw, self.noise = random.Random(seed), noise

    def _trip(self, instructions, loads=0, places=0):
        looks = max(self.room.looks(instructions, places), 1) if self.room else 1
        cycles = max(instructions / self.width, 1 + self.look * (looks - 1), loads / self.loads)
        value = cycles + self.draw.uniform(0, self.noise)
        return value - ERROR, value

    def readings(self):
        read = {loop_of(n, NOP): self._trip(n + END, places=1) for n in BESIDE_CONSTANTS}
        for (what, among), counts in WITH_CONSTANTS.items():
            for count in counts:
                twos = count // 2 if what is Constants.TWO else 0
                ones = count % 2 if what is Constants.TWO else count
                wide = what is Constants.WIDE
                each = self.room.places(0, 1) if wide and self.room else 1
                places = 1 + ones * each + twos * (self.room.places(2, 0) if self.room else 0)
                read[loop_with(count, what, among)] = self._trip(among + END, twos, places)
        return read


def drawn(seed):
    """Room that loops of six and seven instructions can fill."""
    draw = random.Random(seed)
    each, most = draw.choice((0, 1, 2)), draw.randrange(3, 6)
    wide, two = draw.choice((1, 2)), draw.choice((1, 2))
    return ConstantRoom(most + each * (BESIDE_CONSTANTS[1] + END), each, wide, two)


@pytest.mark.parametrize("number", range(40))
def test_what_there_is_room_for_is_found_on_drawn_cores(number):
    """Nothing else is: beside six instructions a line may not be full with eight constants."""
    room = drawn(SEED + number)
    found = constant_room(Core(room, seed=SEED + number).readings(), NOP)
    beside_fewer = room.room - room.each * (BESIDE_CONSTANTS[0] + END)
    asked = max(WITH_CONSTANTS[Constants.TWO, BESIDE_CONSTANTS[0]]) * room.two / 2
    if beside_fewer > asked:
        assert found in (None, room), (SEED, number)
    else:
        # of a long constant: a third look so soon that none is clear leaves one place
        assert found is not None and (found.room, found.each, found.two) == (room.room, room.each, room.two)
        assert found.wide <= room.wide, (SEED, number)


def test_a_core_as_measured():
    """A Zen 3: eight instructions and four constants, or two constants more for each instruction less."""
    room = ConstantRoom(20, 2, 2, 2)
    assert constant_room(Core(room).readings(), NOP) == room
    assert [room.looks(8, 4), room.looks(8, 5), room.looks(7, 6), room.looks(7, 7)] == [1, 2, 1, 2]
    assert (room.places(1, 1), room.places(2, 0), room.places(0, 0)) == (3, 2, 0)


@pytest.mark.parametrize("core", [Core(None), Core(None, loads=1), Core(None, width=2.0)])
def test_nothing_is_said_where_no_line_is_ever_full(core):
    """What takes longer with every load lacks a port, not room."""
    assert constant_room(core.readings(), NOP) is None


def test_nothing_is_said_of_what_was_not_asked():
    read = Core(ConstantRoom(20, 2, 2, 2)).readings()
    assert constant_room({}, NOP) is None
    for name in (loop_of(BESIDE_CONSTANTS[1], NOP), loop_with(5, Constants.ONE, BESIDE_CONSTANTS[1])):
        assert constant_room({key: one for key, one in read.items() if key != name}, NOP) is None


@pytest.mark.parametrize(("look", "told"), [(0.7, True), (0.5, False)])
def test_a_look_more_takes_a_cycle_or_nearly(look, told):
    """Of a wide core, on which slots hide nothing of it; half a cycle is what one of two ports takes."""
    room = ConstantRoom(20, 2, 2, 2)
    assert (constant_room(Core(room, width=12.0, look=look).readings(), NOP) is not None) is told


@pytest.mark.parametrize(("lower", "told"), [(0.15, True), (0.3, False)])
def test_trips_of_as_many_looks_take_the_same(lower, told):
    room = ConstantRoom(20, 2, 2, 2)
    read = Core(room, noise=0.0).readings()
    name = loop_with(6, Constants.ONE, BESIDE_CONSTANTS[1])
    read[name] = (read[name][0] + lower + ERROR, read[name][1] + lower + ERROR)
    assert (constant_room(read, NOP) is not None) is told


def test_lines_without_room_are_looked_at_again():
    lines = CodeLines(64, 8, 1.0, apart=True, room=ConstantRoom(20, 2, 2, 2))
    eight = [(4, 1.0)] * 8
    assert lines.cycles(0, eight, [(1, 0)] * 4 + [(0, 0)] * 4) == 1
    assert lines.cycles(0, eight, [(1, 0)] * 5 + [(0, 0)] * 3) == 2
    assert lines.cycles(0, eight, [(0, 1)] * 2 + [(1, 0)] + [(0, 0)] * 5) == 2
    assert lines.cycles(48, eight, [(1, 0)] * 8) == 2, "four of each line"
    assert CodeLines(64, 8, 1.0, apart=True).cycles(0, eight) == 1


def facts(core, lines):
    """Of a core with such lines, and of its constants."""
    told = {loop_of(n, size): max((n + END) / 6, lines.each(0, [(size, 1.0)] * n + [(9, 1.0)]))
            for size, counts in ((NOP, SHORTEST_NOPS), (4, LONGER_NOPS)) for n in counts}  # fmt: skip
    told |= {name: value for name, (_, value) in core.readings().items()}
    return [Fact(CODE_LINES, name, CoreAnswer.VALUE, value, ERROR) for name, value in told.items()]


@needs_assembler
@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("add rax, 8; add rbx, 8; add rcx, 8; nop; nop; nop; nop", None),
        ("add rax, 8; add rbx, 8; add rcx, 8; add rdx, 8; nop; nop; nop", 2),
        ("add rax, 8; mov rbx, [rcx + 8]; mov [rdx + 0x1000], rsi; cmp eax, 5; nop; nop; nop", 2),
        ("movabs rax, 0x123456789abc; movabs rbx, 0x123456789abc; nop; nop; nop; nop; nop", 2),
        ("nop dword ptr [rax + 8]\n" * 3 + "nop; nop; nop; add rax, 8", None),
        ("shl rax, 1; shl rbx, 1; shl rcx, 1; shl rdx, 1; nop; nop; nop", None),
        ("shl rax, 2; shl rbx, 2; shl rcx, 2; shl rdx, 2; nop; nop; nop", 2),
    ],
)
def test_loops_with_many_constants_wait_for_their_lines(text, cycles):
    found = facts(Core(ConstantRoom(20, 2, 2, 2), noise=0.0), CodeLines(64, 8, 1.0))
    assert predicted(f"{text}; jne 0", *found, loop=True).bounds.get("code_lines") == cycles
