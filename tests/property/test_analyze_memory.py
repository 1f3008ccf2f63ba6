"""Dependencies through memory against execution: the last store to every byte that a load reads."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.isa.table import load_table
from cyclescope.kernel.instruction import Instruction
from tests.support.code.blocks import of_code, predictor

TABLE = load_table("x86-64")
ROUNDS, FARTHEST = 40, 20  # iterations; distances that are compared
WORD = 8
_MASK = (1 << 64) - 1
registers = st.sampled_from((0, 1, 2, 3))  # RAX, RCX, RDX, RBX
offsets = st.sampled_from((-16, -8, -4, 0, 4, 8, 16, 24))
steps = st.sampled_from((-8, 0, 4, 8, 16))


def _made(form, numbers, offset=0, immediates=None):
    return Instruction(TABLE[form], numbers, offset, immediates)


instructions = st.one_of(
    st.builds(lambda a, b: ("move", a, b, 0), registers, registers),
    st.builds(lambda a, s: ("add", a, a, s), registers, steps),
    st.builds(lambda a, b, o: ("lea", a, b, o), registers, registers, offsets),
    st.builds(lambda a, b: ("sum", a, b, 0), registers, registers),
    st.builds(lambda a, b, o: ("load", a, b, o), registers, registers, offsets),
    st.builds(lambda a, b, o: ("store", a, b, o), registers, registers, offsets),
    st.builds(lambda a, b, o: ("store", a, b, o), registers, registers, offsets),
)


def encoded(one):
    """Machine code of one operation."""
    kind, a, b, number = one
    return {
        "move": lambda: _made("MOV_8B (R64, R64)", (a, b)),
        "add": lambda: _made("ADD (R64, I8)", (a,), 0, (number,)),
        "lea": lambda: _made("LEA_B_D8 (R64)", (a, b), number),
        "sum": lambda: _made("ADD_03 (R64, R64)", (a, b)),
        "load": lambda: _made("MOV (R64, M64)", (a, b), number),
        "store": lambda: _made("MOV (M64, R64)", (b, a), number),
    }[kind]().code


class Machine:
    """Executes the operations, remembering who stored every byte."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.registers = [draw.getrandbits(60) & ~63 for _ in range(4)]
        self.memory = {}  # words by address, as they were stored
        self.writers = {}  # (iteration, position) by byte
        self.seed = seed

    def step(self, iteration, place, one):
        """The (iteration, position) of the youngest store that a load reads, None for others."""
        kind, a, b, number = one
        values = self.registers
        address = values[b] + number & _MASK
        if kind == "load":
            touched = [self.writers[k] for k in range(address, address + WORD) if k in self.writers]
            values[a] = self.memory.get(address, random.Random(address ^ self.seed).getrandbits(60) & ~63)
            return max(touched, default=None)
        if kind == "store":
            self.memory[address] = values[a]
            self.writers.update((k, (iteration, place)) for k in range(address, address + WORD))
        else:
            values[a] = {"move": values[b], "add": values[a] + number, "lea": address,
                         "sum": values[a] + values[b]}[kind] & _MASK  # fmt: skip
        return None


def executed(body, seed):
    """Distance and store of every load in the last iterations, where they agree."""
    machine, seen = Machine(seed), {}
    for iteration in range(ROUNDS):
        for place, one in enumerate(body):
            found = machine.step(iteration, place, one)
            if one[0] == "load" and iteration >= ROUNDS - 3:
                seen.setdefault(place, set()).add(found and (iteration - found[0], found[1]))
    return {place: next(iter(found)) for place, found in seen.items() if len(found) == 1}


@settings(max_examples=600)
@given(st.lists(instructions, min_size=2, max_size=7))
def test_loads_depend_on_what_they_read(body):
    code = of_code(b"".join(map(encoded, body)))
    graph = predictor().graph(code.instructions)
    found = {p.load[0]: (p.distance, p.store[0]) for p in graph.memory}
    once, again = executed(body, 1), executed(body, 2)
    for place, expected in once.items():
        if again.get(place, ()) == expected and (expected is None or expected[0] <= FARTHEST):
            assert found.get(place) == expected, (place, body)
