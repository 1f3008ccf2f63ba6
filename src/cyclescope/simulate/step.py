"""One instruction as the engine takes it: words, and the addresses that depend on the kernel's state."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cyclescope.kernel.state import STACK_TOP, MachineState

NOWHERE, UNREAD = 0, 1  # locations that nothing writes, and that nothing reads
FIRST_REGISTER = 2  # location of a register
POINTER = -1  # instead of a register's number: AArch64's stack pointer, which is no general register


class EngineAccess(msgspec.Struct, frozen=True):
    """A memory access: its place among the words, and what its address is made of.

    `registers` are (number, scale); `on_stack` adds what pushes and pops have moved the stack pointer by, and
    `vector` the first element of a vector register, -1 for none: one address stands for all elements.
    """

    word: int
    registers: tuple[tuple[int, int], ...]
    displacement: int
    size: int
    on_stack: bool = False
    vector: int = -1

    def address(self, state: MachineState, moved: Mapping[int, int], stack: int = 0) -> int:
        """The address in a state; `moved` are the bytes that registers have been moved by since."""
        address = self.displacement + (stack if self.on_stack else 0)
        for number, scale in self.registers:
            address += (_content(state, number) + moved.get(number, 0)) * scale
        if self.vector >= 0:
            address += int.from_bytes(dict(state.vectors).get(self.vector, state.vector)[:8], "little")
        return (address + (1 << 63)) % (1 << 64) - (1 << 63)


class BaseMove(msgspec.Struct, frozen=True):
    """A base that an instruction moves on: by `amount` bytes, or by what a register holds."""

    register: int
    amount: int
    by: int | None = None

    def bytes(self, state: MachineState) -> int:
        """How far it moves in a state."""
        return self.amount if self.by is None else _content(state, self.by)


class EngineStep(msgspec.Struct, frozen=True):
    """A translated instruction.

    `stack` is what it adds to the stack pointer, in bytes; `moves` are the bases that it moves on, `written`
    the general registers that it writes otherwise: kernels give them back their value.
    """

    words: tuple[int, ...]
    accesses: tuple[EngineAccess, ...] = ()
    stack: int = 0
    moves: tuple[BaseMove, ...] = ()
    written: tuple[int, ...] = ()


def _content(state: MachineState, number: int) -> int:
    if number == POINTER:
        return STACK_TOP
    return state.general[number] if number < len(state.general) else 0
