"""Basic blocks of programs: what can be timed of them, as copies without a loop and as loops."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from cyclescope.analyze.choose.source import whole_block
from cyclescope.analyze.decode.block import Block, BlockInstruction, Register
from cyclescope.analyze.decode.decoder import Flow, decoder
from cyclescope.errors import CyclescopeError
from cyclescope.isa.register import domain
from cyclescope.isa.registry import DEFAULT, instruction_set, mnemonics, unfit
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.patterns import pattern
from cyclescope.kernel.state import (
    PLACE_STEP,
    REGISTERS_BASE,
    MachineState,
)
from cyclescope.measure.bench import level_of
from cyclescope.remarks.blocks import Unfit
from cyclescope.remarks.remark import NOTHING, Remark

UNROLLED, LOOP, KERNELS = "unrolled", "loop", "kernels"
NOTIONS = (UNROLLED, LOOP)  # in which a block is timed; KERNELS are loops of compiled programs


LOOPS_BACK, COUNTER_SHIFT = 1, 8  # flags of a block's kernel; see native/protocol.h
_LONGEST = 0x3FFF  # bytes of a block: eight copies are within a region of the runner
MXCSR = 0x1F80 | 0x8040  # denormals are zeros: memory holds small integers


class ProgramBlock(msgspec.Struct, frozen=True):
    """A basic block, and where it is from; `address` is where its code lies, where that is known."""

    code: bytes
    where: str = ""
    isa: str = DEFAULT
    address: int = 0


class BlockCase(msgspec.Struct, frozen=True):
    """A block in one of the notions: the code that repeats, and the kernel, or why there is none."""

    origin: ProgramBlock
    notion: str
    code: bytes
    block: Block
    kernel: Kernel | None = None
    reason: str = ""


def decoded(code: bytes, isa: str = DEFAULT, vendor: str = "") -> Block:
    """The instructions of machine code, all of it."""
    return whole_block(code, isa, vendor)


def cases(blocks: Sequence[ProgramBlock], notion: str) -> list[BlockCase]:
    """Every block in a notion."""
    make = _unrolled if notion == UNROLLED else _looped
    return [make(one, decoded(one.code, one.isa)) for one in blocks]


def case_of(origin: ProgramBlock, notion: str) -> BlockCase:
    """A block that was timed already: what is predicted of it."""
    if notion == UNROLLED:
        return BlockCase(origin, notion, origin.code, decoded(origin.code, origin.isa))
    if notion == KERNELS:
        block = placed(decoded(origin.code, origin.isa), origin.address, loop=True)
        return BlockCase(origin, notion, origin.code, block)
    return _looped(origin, decoded(origin.code, origin.isa))


def placed(block: Block, address: int, loop: bool) -> Block:
    """A block whose code begins at an address: which lines a loop has bytes in counts."""
    if not address and loop == block.loop:
        return block
    moved = (msgspec.structs.replace(one, address=one.address + address) for one in block)
    return msgspec.structs.replace(block, instructions=tuple(moved), loop=loop)


# --- notions ---------------------------------------------------------------------------------------


def _unrolled(origin: ProgramBlock, block: Block) -> BlockCase:
    reason = _unfit(origin, block)
    if not reason and any(address and address.rip_relative for one in block for address in one.memory):
        reason = Unfit.RELATIVE.of()
    kernel = None if reason else _kernel(origin.code, block, 0)
    return BlockCase(origin, UNROLLED, origin.code, block, kernel, reason.text)


def _looped(origin: ProgramBlock, block: Block) -> BlockCase:
    """The block with a counter that it does not use, and a branch."""
    reason = _unfit(origin, block)
    number = next(iter(_free(block)), None)
    if not reason and number is None:
        reason = Unfit.NO_COUNTER.of()
    end = b"" if reason or number is None else loop_end(origin.isa, number, len(origin.code))
    if not reason and not end:
        reason = Unfit.FAR_BRANCH.of()
    if reason or number is None:
        return BlockCase(origin, LOOP, origin.code, block, None, reason.text)
    code = origin.code + end
    whole = decoded(code, origin.isa)
    return BlockCase(origin, LOOP, code, whole, _kernel(code, whole, LOOPS_BACK | number << COUNTER_SHIFT))


def _unfit(origin: ProgramBlock, block: Block) -> Remark:
    """Why a block cannot be timed in any notion, nothing where it can."""
    for one in block:
        if one.form is None:
            return Unfit.UNKNOWN.of(one.problem)
        if why := unfit(one.form):
            return Unfit.AS_SAID.of(one.form.mnemonic, why)
        if "serializing" in one.form.attributes or one.form.mnemonic in mnemonics("answered"):
            return Unfit.ANSWERED.of(one.form.mnemonic)
    if any(step.flow != Flow.NEXT for step in decoder(origin.isa).steps(origin.code, 0)):
        return Unfit.BRANCHES.of()
    if _used(block).intersection(instruction_set(origin.isa).registers.kept):
        return Unfit.KEPT.of()
    return Unfit.LONG.of() if len(origin.code) > _LONGEST else NOTHING


def _free(block: Block) -> Iterator[int]:
    """General registers that a block does not use, those with no role in calls or addresses first."""
    used, own = _used(block), instruction_set(block.isa).registers
    avoided = used.union(own.set_apart, own.kept)
    for number in range(own.count - 1, -1, -1):
        if number not in avoided:
            yield number


def _used(block: Block) -> set[int]:
    """Numbers of the general registers that a block reads, writes or has in addresses."""
    return {n for one in block for n in map(_general, _registers(one)) if n is not None}


def _registers(one: BlockInstruction) -> Iterator[Register | None]:
    yield from one.registers
    for some in one.further.values():
        yield from some
    for address in one.memory:
        if address is not None:
            yield from (address.base, address.index)


def _general(register: Register | None) -> int | None:
    """The number of a general register, whatever part of it."""
    if register is None:
        return None
    cls, number = register
    if cls == "R8h":
        return number - 4
    if cls == "SP":
        return 31
    return number if cls == "X" or domain(cls) == "r" else None


# --- machine code ----------------------------------------------------------------------------------


def loop_end(isa: str, counter: int, before: int) -> bytes:
    """A decrement of a register and a branch over so many bytes back while it is not 0; "" if too far."""
    made: bytes = instruction_set(isa).module("kernel", "loops").loop_end(counter, before)
    return made


def _kernel(code: bytes, block: Block, flags: int) -> Kernel:
    return Kernel(code, len(block), _state(block.isa, *_vectors(block)), flags=flags)


def _vectors(block: Block) -> tuple[int, bool]:
    """How much vector state a block needs, and whether it uses x87."""
    text = "\n".join(one.text for one in block)
    classes = {register[0] for one in block for register in one.registers if register}
    return level_of(text, block.isa), bool(classes & {"ST", "MM"})


@cache
def _state(isa: str, level: int, x87: bool) -> MachineState:
    """Every general register points to a page and a line of its own; vectors hold 1.5."""
    record = instruction_set(isa)
    general = [REGISTERS_BASE + n * PLACE_STEP for n in range(record.registers.count)]
    for number in record.registers.untouched:
        general[number] = 0
    values = struct.pack("<f", 1.5) * 16
    if not record.fixed_width:
        return MachineState(tuple(general), values, vector_level=level, x87=x87, control=MXCSR)
    scalars = (int.from_bytes(pattern("f64")[:8], "little"),) * 32 if record.registers.has_floats else ()
    return MachineState(tuple(general), values, vector_level=level, flags=0, control=0, scalars=scalars)


def text_of(block: Block) -> str:
    """The instructions in one line."""
    return "; ".join(" ".join(one.text.split()) for one in block)


def readable(code: bytes, isa: str) -> str:
    """Why machine code is no block, or ""."""
    try:
        block = decoded(code, isa)
    except CyclescopeError as error:
        return error.message
    return next((one.problem for one in block if one.form is None and one.text == "(bad)"), "")
