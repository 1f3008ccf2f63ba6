"""Registers and memory that a kernel starts with."""

from __future__ import annotations

import struct
from functools import cached_property

import msgspec

# How much vector state a kernel starts with; AArch64 and RISC-V have none, VECTOR_FLOAT (v0 to v31
# with 128 bits, f0 to f31) and VECTOR_SCALABLE (SVE with predicates, RVV).
VECTOR_NONE, VECTOR_LEGACY, VECTOR_VEX128, VECTOR_VEX256, VECTOR_EVEX512 = range(5)
VECTOR_FLOAT, VECTOR_SCALABLE = VECTOR_LEGACY, VECTOR_EVEX512

# The runner's fixed addresses; see native/arch.h.
DATA_BASE = 0x70000000
FIRST_WINDOW = DATA_BASE + 0x4000  # in the middle of the first filled window
SECOND_WINDOW = DATA_BASE + 0x14A40  # another page, other low 12 bits
STACK_TOP = 0x70100000 + 0x40000  # in the middle of the stack area
CODE_BASE = 0x60000000
_AREAS_BASE, _AREA_STEP, _AREA_SIZE = 0x71000000, 0x200000, 0x100000
# Where registers of basic blocks point to, each to a page and a line of its own.
REGISTERS_BASE, PLACE_STEP = 0x3000000, 0x1100

DEFAULT_MXCSR = 0x1F80
MET_BASE, MET_SIZE = 0x4F000000, 0x1000  # memory that kernels of several runners see
CHAIN_BASE, CHAIN_PAGES_BASE, CHAIN_SIZE, _PAGE = 0x50000000, 0x54000000, 0x4000000, 4096
_CHAIN_STEP, _CHAIN_SHIFT = 64, 22
_REGISTERS, _MASKS, _POKES = 32, 16, 8
_FORMAT = struct.Struct("<32Q 32Q 2048s 16Q 64s 64s Q I H H I I 16Q")
_FIRST = struct.Struct("<16Q Q I H H 2048s 8Q 64s 64s I I 16Q")  # of stores made by protocol 3


def area_middle(number: int) -> int:
    """The middle of one of five areas of 1 MiB that are 0, with nothing around them."""
    return _AREAS_BASE + number * _AREA_STEP + _AREA_SIZE // 2


class PointerRegisters(msgspec.Struct, frozen=True):
    """General registers that hold addresses when a snippet begins, by number.

    `stack` points into a stack, `pointers` and, for machine code, the `frame` to 4096 bytes of memory; of
    copies that run once each of `areas` points to the middle of an area of its own.
    """

    stack: int
    pointers: tuple[int, ...]
    areas: tuple[int, ...]
    frame: tuple[int, ...] = ()


def chain_start(spacing: int) -> int:
    """The address of the first pointer of a chain: those a page or more apart are in pages of their own."""
    return CHAIN_BASE if spacing < _PAGE else CHAIN_PAGES_BASE


class MachineState(msgspec.Struct, frozen=True, dict=True):
    """Initial registers and memory of a kernel.

    `general` are general registers by number (of x86-64 16, of AArch64 x0 to x30 and SP, of RISC-V
    x0 to x31, of which the runner keeps x0, gp and tp), 0 beyond those given. `vector` is repeated
    in every vector register except those given in `vectors`, 64 bytes each, repeated in longer
    ones; `scalars` are the f registers of RISC-V, the first 8 bytes of `vector` where none are
    given; `masks` hold the first 64 bits of mask or predicate registers, repeated in longer ones.
    `fill` are the 64-byte patterns of the two data windows, `pokes` at most eight (address, 64-bit
    value) written after the fill. `vector_level` is one of the VECTOR_ constants; VECTOR_EVEX512
    initialises masks as well. `flags` are RFLAGS or NZCV, `control` is MXCSR, FPCR or fcsr: their
    defaults are those of x86-64. `streaming` is for VECTOR_SCALABLE kernels of SME: streaming mode,
    with an array of zeros. `chain` is how many pointers are linked to a circle in random order, and the bytes
    between them, a multiple of 64 below 64 KiB; the first is at `chain_start`.
    """

    general: tuple[int, ...]
    vector: bytes = bytes(64)
    vectors: tuple[tuple[int, bytes], ...] = ()
    masks: tuple[int, ...] = ((1 << 64) - 1,) * _MASKS
    fill: tuple[bytes, bytes] = (bytes(64), bytes(64))
    pokes: tuple[tuple[int, int], ...] = ()
    vector_level: int = VECTOR_NONE
    x87: bool = False
    flags: int = 0x202
    control: int = DEFAULT_MXCSR
    scalars: tuple[int, ...] = ()
    streaming: bool = False
    chain: tuple[int, int] = (0, 0)

    @cached_property
    def packed(self) -> bytes:
        """The state in the runner's layout (struct state in native/protocol.h)."""
        registers = [self.vector] * _REGISTERS
        for number, value in self.vectors:
            registers[number] = value
        scalars = self.scalars or (int.from_bytes(self.vector[:8], "little"),) * _REGISTERS
        return _FORMAT.pack(
            *_padded(self.general, _REGISTERS), *_padded(scalars, _REGISTERS), b"".join(registers),
            *_padded(self.masks, _MASKS), *self.fill, self.flags, self.control, self.vector_level,
            self.x87 | self.streaming << 1, len(self.pokes),
            self.chain[0] | self.chain[1] // _CHAIN_STEP << _CHAIN_SHIFT,
            *_padded([word for poke in self.pokes for word in poke], 2 * _POKES),
        )  # fmt: skip

    @classmethod
    def unpack(cls, packed: bytes) -> MachineState:
        """The state that `packed`, perhaps of an older store, came from, with all its registers."""
        if len(packed) == _FIRST.size:
            return cls._unpack_first(packed)
        values = _FORMAT.unpack(packed)
        general, scalars, registers, rest = values[:32], values[32:64], values[64], values[65:]
        masks, fill, (flags, control, level, bits, pokes, chain) = rest[:16], rest[16:18], rest[18:24]
        return cls(
            general, bytes(64), _vectors(registers), masks, fill, _pairs(rest[24:], pokes), level,
            bool(bits & 1), flags, control, scalars, bool(bits & 2), _chain(chain),
        )  # fmt: skip

    @classmethod
    def _unpack_first(cls, packed: bytes) -> MachineState:
        values = _FIRST.unpack(packed)
        general, (flags, control, level, x87, registers), rest = values[:16], values[16:21], values[21:]
        masks, fill, pokes = rest[:8], rest[8:10], _pairs(rest[12:], rest[10])
        return cls(
            general, bytes(64), _vectors(registers), masks, fill, pokes, level, bool(x87), flags, control
        )


def _chain(word: int) -> tuple[int, int]:
    return word & ((1 << _CHAIN_SHIFT) - 1), (word >> _CHAIN_SHIFT) * _CHAIN_STEP


def _padded(values: tuple[int, ...] | list[int], count: int) -> list[int]:
    return [*values, *[0] * (count - len(values))]


def _vectors(registers: bytes) -> tuple[tuple[int, bytes], ...]:
    return tuple((n, registers[64 * n : 64 * n + 64]) for n in range(_REGISTERS))


def _pairs(words: tuple[int, ...], count: int) -> tuple[tuple[int, int], ...]:
    return tuple((words[2 * i], words[2 * i + 1]) for i in range(count))
