"""Runners of other instruction sets under qemu-user."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import FIRST_WINDOW, SECOND_WINDOW, STACK_TOP, VECTOR_NONE, MachineState

NATIVE = Path(__file__).parents[3] / "src/cyclescope/native"


class Isa(NamedTuple):
    """An instruction set: how it is emulated, and words of machine code."""

    name: str
    cpu: str
    vector_bytes: int
    add: int  # adds a register to another
    load: int  # from the first pointer
    wild: int  # loads from address 0x40
    trap: int
    forever: int  # a branch to itself
    lose: tuple[int, ...]  # overwrites registers that C code relies on
    first_needed: tuple[int, ...]  # makes a pointer, loads, loses the pointer


AARCH64 = Isa(
    "aarch64", "max,sve-default-vector-length=64", 64,
    add=0x8B010000, load=0xF9400280, wild=0xF9400000, trap=0xD4200000, forever=0x14000000,
    lose=(0xD2800012, 0xD2800013, 0xD280001D, 0xD280001E, 0xD51BD040),  # x18 to x30, TPIDR_EL0
    first_needed=(0xAA1403E1, 0xF9400020, 0xD2800001),
)  # fmt: skip
RISCV64 = Isa(
    "riscv64", "rv64,v=true,vext_spec=v1.0,vlen=256", 32,
    add=0x00B50533, load=0x0004B503, wild=0x00053503, trap=0x00100073, forever=0x0000006F,
    lose=(0x00000193, 0x00000213, 0x00000093, 0x00000413),  # gp, tp, ra, s0
    first_needed=(0x00048593, 0x0005B503, 0x00000593),
)  # fmt: skip


def build(isa, sources, output, *flags):
    """Compile C files with the cross compiler of Debian."""
    command = [f"{isa.name}-linux-gnu-gcc", "-O1", "-fno-stack-protector", "-static", f"-I{NATIVE}"]
    subprocess.run([*command, *flags, *map(str, sources), "-lm", "-o", str(output)], check=True)


def words(*values):
    return struct.pack(f"<{len(values)}I", *values)


def state(isa, level=VECTOR_NONE, **more):
    """Small numbers, and pointers where forms of the instruction set have them."""
    general = [0x40] * 32
    if isa is AARCH64:
        general[20], general[21], general[31] = FIRST_WINDOW, SECOND_WINDOW, STACK_TOP
    else:
        general[9], general[8], general[2] = FIRST_WINDOW, SECOND_WINDOW, STACK_TOP
    given = {"general": tuple(general), "flags": 0, "control": 0, "vector_level": level}
    return MachineState(**(given | more))


def kernel(isa, *values, level=VECTOR_NONE, **more):
    return Kernel(words(*values), len(values), state(isa, level, **more))
