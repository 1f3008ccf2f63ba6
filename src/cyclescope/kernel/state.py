"""Registers and memory that a kernel starts with."""

from __future__ import annotations

import struct
from functools import cached_property

import msgspec

VECTOR_NONE, VECTOR_LEGACY, VECTOR_VEX128, VECTOR_VEX256, VECTOR_EVEX512 = range(5)

# The runner's fixed addresses; see native/arch.h.
DATA_BASE = 0x70000000
FIRST_WINDOW = DATA_BASE + 0x4000  # in the middle of the first filled window
SECOND_WINDOW = DATA_BASE + 0x14A40  # another page, other low 12 bits
STACK_TOP = 0x70100000 + 0x40000  # in the middle of the stack area
CODE_BASE = 0x60000000

DEFAULT_MXCSR = 0x1F80
_FORMAT = struct.Struct("<16Q Q I H H 2048s 8Q 64s 64s I I 16Q")


class MachineState(msgspec.Struct, frozen=True, dict=True):
    """Initial registers and memory of a kernel.

    `general` are the 16 general registers by number, `vector` 64 bytes repeated in every vector
    register except those given in `vectors`, `fill` the 64-byte patterns of the two data windows,
    `pokes` at most eight (address, 64-bit value) written after the fill. `vector_level` is one of
    the VECTOR_ constants; VECTOR_EVEX512 initialises masks as well.
    """

    general: tuple[int, ...]
    vector: bytes = bytes(64)
    vectors: tuple[tuple[int, bytes], ...] = ()
    masks: tuple[int, ...] = ((1 << 64) - 1,) * 8
    fill: tuple[bytes, bytes] = (bytes(64), bytes(64))
    pokes: tuple[tuple[int, int], ...] = ()
    vector_level: int = VECTOR_NONE
    x87: bool = False
    flags: int = 0x202
    mxcsr: int = DEFAULT_MXCSR

    @cached_property
    def packed(self) -> bytes:
        """The state in the runner's layout (struct state in native/protocol.h)."""
        registers = [self.vector] * 32
        for number, value in self.vectors:
            registers[number] = value
        pokes = [word for poke in self.pokes for word in poke]
        pokes += [0] * (16 - len(pokes))
        return _FORMAT.pack(
            *self.general, self.flags, self.mxcsr, self.vector_level, int(self.x87),
            b"".join(registers), *self.masks, *self.fill, len(self.pokes), 0, *pokes,
        )  # fmt: skip

    @classmethod
    def unpack(cls, packed: bytes) -> MachineState:
        """The state that `packed` came from."""
        values = _FORMAT.unpack(packed)
        general, rest = values[:16], values[16:]
        flags, mxcsr, level, x87, registers = rest[:5]
        masks, (first, second, pokes, _), words = rest[5:13], rest[13:17], rest[17:]
        vectors = tuple((n, registers[64 * n : 64 * n + 64]) for n in range(32))
        pairs = tuple((words[2 * i], words[2 * i + 1]) for i in range(pokes))
        return cls(general, bytes(64), vectors, masks, (first, second), pairs, level, bool(x87), flags, mxcsr)
