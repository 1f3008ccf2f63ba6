"""The record of the tiny instruction set."""

from __future__ import annotations

from cyclescope.isa.record import FormRoles, GeneralRegisters, InstructionSet, Toolchain, Writing

RECORD = InstructionSet(
    name="tiny",
    home="tiny.{}",
    runner=99,
    elf=0xF0F0,
    machines=("tiny",),
    nop=bytes((1, 0, 0, 0)),
    lengths=(4,) * 256,
    step=4,
    toolchain=Toolchain(triple="tiny-linux-gnu"),
    writing=Writing(comments=(";",), listed="tiny"),
    registers=GeneralRegisters(count=32, kept=(31,), set_apart=(30,)),
    roles=FormRoles(
        nop="NOP",
        load="LD",
        store="ST",
        slow="MUL",
        beside="ADDI",
        simple={"NOP": ("NOP",), "general": ("ADDI", "ADD", "SUB", "XOR"), "move": ("SET",)},
        sized=("NOP",),
    ),
)
