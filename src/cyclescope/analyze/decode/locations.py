"""Where the values are that an instruction reads and writes: one location per register, whatever the part."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from cyclescope.analyze.decode.block import BlockInstruction, Register
from cyclescope.isa.dataflow import OLD, Node
from cyclescope.isa.register import domain, register_number

Location = tuple[str, int | str]  # register file or class and number; ("flag", name)


@cache
def location_of(register: Register | None, top: int = 0) -> Location | None:
    """The location of a register; `top` is where the x87 stack begins."""
    if register is None:
        return None
    cls, number = register
    file = domain(cls)
    if file == "h":
        return "r", number - 4
    if file == "x":
        return "x", (number + top) & 7
    return (cls, number) if file == "?" else (file, number)


_CLASS, _NUMBER = register_number("RSP")
STACK_POINTER: Location = domain(_CLASS), _NUMBER


@cache
def flag_place(flag: str) -> Location:
    """The location of a flag."""
    return "flag", flag


def place_of(instruction: BlockInstruction, node: Node, top: int = 0) -> Location | None:
    """The location of an end of a dependency, None for memory and for what is not there."""
    part = node.part
    if part in ("register", OLD):
        return location_of(instruction.registers[node.operand], top)
    if part == "flag":
        return flag_place(node.flag)
    if part == "data":
        return None
    register = instruction.registers[node.operand]  # AArch64 and RISC-V: addresses are made of operands
    if register is not None:
        return location_of(register)
    address = instruction.memory[node.operand]
    if address is None:
        return None
    return location_of(address.base if part == "address" else address.index)


def reads_one_register(instruction: BlockInstruction) -> bool:
    """Whether one register is all that the instruction's registers read, but for a mask that zeroes."""
    form = instruction.form
    if form is None:
        return False
    read = [instruction.registers[place] for place in form.alike]
    return len(read) > 1 and len({location_of(register) for register in read}) == 1


class Places(NamedTuple):
    """Locations of the sources and targets of an instruction, None for memory and for nothing.

    `read` and `written` are those that are something; what is written has the number of its operand. `words`
    are the numbers of all sources and targets for compiled code, -1 for nothing.
    """

    sources: tuple[Location | None, ...]
    targets: tuple[Location | None, ...]
    read: tuple[Location, ...]
    written: tuple[tuple[int, Location], ...]
    words: bytes
