"""What an instruction reads and writes, by role, from its bytes alone: iced-x86 decodes it.

Nothing here comes from the package's tables, so that a wrong table shows.

A role says which operand a value is: `op0`, `op1`, ... as iced-x86 numbers them, `mask`, `base2`,
`index2` and `data2` of the memory operand 2, `reg.r0` for an implicit register, `data.r7` for memory
at an implicit register, `flag.CF`. A location is a place that holds a value: `r0` to `r15`, `v0` to
`v31`, `k0` to `k7`, `m0` to `m7`, `x0` to `x7` (from the top of the x87 stack), or a flag.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from iced_x86 import (
    Code,
    CpuidFeature,
    Decoder,
    DecoderOptions,
    Instruction,
    InstructionInfo,
    InstructionInfoFactory,
    MemorySizeExt,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RegisterExt,
)

CODE_BASE = 0x60000000
FLAG_BITS = {"CF": 16, "PF": 32, "AF": 8, "ZF": 4, "SF": 2, "OF": 1, "DF": 64}
READS = {
    OpAccess.READ,
    OpAccess.COND_READ,
    OpAccess.READ_WRITE,
    OpAccess.READ_COND_WRITE,
    OpAccess.COND_WRITE,
}
WRITES = {OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE}
COUNTED = ("SHL", "SHR", "SAR", "SAL", "ROL", "ROR", "RCL", "RCR", "SHLD", "SHRD")
_FACTORY = InstructionInfoFactory()


def _names(enum: object) -> dict[int, str]:
    found = ((getattr(enum, name), name) for name in dir(enum) if not name.startswith("_"))
    return {value: name for value, name in found if isinstance(value, int)}


_OPTIONS = sorted(o for o in _names(DecoderOptions) if o != DecoderOptions.NONE)
CODES, MNEMONICS, FEATURES = _names(Code), _names(Mnemonic), _names(CpuidFeature)


class Memory(NamedTuple):
    """A memory operand; `position` is the operand's number or the implicit base's location."""

    position: str
    base: str
    index: str
    scale: int
    displacement: int
    size: int
    read: bool
    write: bool


class Decoded(NamedTuple):
    """One instruction: (role, location) of what it reads and writes apart from memory data."""

    code: str
    mnemonic: str
    shape: str  # the roles: one opcode may be with or without memory, index, mask
    features: tuple[str, ...]
    length: int
    sources: tuple[tuple[str, str], ...]
    targets: tuple[tuple[str, str], ...]
    memory: tuple[Memory, ...]
    widths: tuple[int, ...]  # bits of the explicit register operands, 0 for others
    registers: tuple[str, ...]  # locations of the explicit register operands
    immediate: int | None
    pushes: int  # x87 registers pushed, negative when popped
    stack: int  # change of RSP
    high: bool  # whether one of the registers is AH, CH, DH or BH


def location(register: int) -> str:
    """Location of a register, "" for what is never data here (segments, control, RIP)."""
    if RegisterExt.is_gpr(register):
        return f"r{RegisterExt.number(RegisterExt.full_register(register))}"
    if RegisterExt.is_vector_register(register):
        return f"v{RegisterExt.number(register)}"
    for check, letter in (
        (RegisterExt.is_k, "k"),
        (RegisterExt.is_mm, "m"),
        (RegisterExt.is_st, "x"),
    ):
        if check(register):
            return f"{letter}{RegisterExt.number(register)}"
    return ""


@cache
def body(code: bytes) -> tuple[Decoded, ...]:
    """Every instruction of a body, in order of the bytes."""
    found = []
    offset = 0
    while offset < len(code):
        one = decode(code[offset : offset + 16])
        found.append(one)
        offset += one.length
    return tuple(found)


@cache
def decode(code: bytes) -> Decoded:
    """The first instruction of some bytes; encodings that few CPUs give a meaning come second."""
    found = (Decoder(64, code, options=o, ip=CODE_BASE).decode() for o in (DecoderOptions.NONE, *_OPTIONS))
    ins = next((i for i in found if not i.is_invalid), None)
    assert ins is not None, code.hex()
    return _read(ins)


def _read(ins: Instruction) -> Decoded:
    info = _FACTORY.info(ins)
    sources: list[tuple[str, str]] = []
    targets: list[tuple[str, str]] = []
    memory: list[Memory] = []
    widths, registers = [], []
    for i in range(ins.op_count):
        register = ins.op_register(i) if ins.op_kind(i) == OpKind.REGISTER else Register.NONE
        where = location(register)
        widths.append(8 * RegisterExt.size(register) if where else 0)
        registers.append(where)
        if where:
            access = info.op_access(i)
            partial = where[0] == "r" and widths[-1] < 32
            if access in READS or (partial and access in WRITES):
                sources.append((f"op{i}", where))
            if access in WRITES:
                targets.append((f"op{i}", where))
        elif ins.op_kind(i) == OpKind.MEMORY:
            memory.append(_memory(ins, i, info.op_access(i)))
    addresses = _addresses(memory)
    _mask(ins, info, sources, targets)
    _implicit(info, sources, targets, {where for _, where in addresses})
    memory += _implicit_memory(ins, info)
    pushes = -ins.fpu_stack_increment_info().increment
    if pushes > 0 and not any(where == "x0" for _, where in targets):
        targets.append(("reg.x0", "x0"))  # iced-x86 leaves out what a push writes
    _flags(ins, sources, targets)
    sources += addresses
    shape = " ".join(role for role, _ in (*sources, *targets)) + " memory" * len(memory)
    return Decoded(
        CODES[ins.code], MNEMONICS[ins.mnemonic], shape,
        tuple(FEATURES[f] for f in ins.cpuid_features()), ins.len,
        tuple(sources), tuple(targets), tuple(memory), tuple(widths), tuple(registers),
        _immediate(ins), pushes, ins.stack_pointer_increment,
        any(Register.AH <= ins.op_register(i) <= Register.BH for i in range(ins.op_count)),
    )  # fmt: skip


def _memory(ins: Instruction, i: int, access: int) -> Memory:
    size = MemorySizeExt.size(ins.memory_size) or 8
    displacement = 0 if ins.memory_base == Register.RIP else _signed(ins.memory_displacement)
    return Memory(
        str(i), location(ins.memory_base), location(ins.memory_index), ins.memory_index_scale,
        displacement, size, access in READS, access in WRITES,
    )  # fmt: skip


def _signed(value: int) -> int:
    return value - (1 << 64 if value >> 63 else 0)


def _addresses(memory: list[Memory]) -> list[tuple[str, str]]:
    found = []
    for m in memory:
        found += [(f"base{m.position}", m.base)] * bool(m.base)
        found += [(f"index{m.position}", m.index)] * bool(m.index)
    return found


def _mask(ins: Instruction, info: InstructionInfo, sources: list, targets: list) -> None:
    if not ins.has_op_mask:
        return
    where = location(ins.op_mask)
    sources.append(("mask", where))
    accesses = [used.access for used in info.used_registers() if used.register == ins.op_mask]
    if not WRITES.isdisjoint(accesses) and where not in {place for _, place in targets}:
        targets.append(("mask", where))


def _implicit(info: InstructionInfo, sources: list, targets: list, addresses: set[str]) -> None:
    read, written = {w for _, w in sources} | addresses, {w for _, w in targets}
    for used in info.used_registers():
        where = location(used.register)
        if not where or where == "r4":
            continue
        narrow = where[0] == "r" and RegisterExt.size(used.register) < 4
        role = f"reg.{where}"
        if where not in read and (used.access in READS or (narrow and used.access in WRITES)):
            sources.append((role, where))
            read.add(where)
        if where not in written and used.access in WRITES:
            targets.append((role, where))
            written.add(where)


def _implicit_memory(ins: Instruction, info: InstructionInfo) -> list[Memory]:
    explicit = any(ins.op_kind(i) == OpKind.MEMORY for i in range(ins.op_count))
    found = []
    for used in info.used_memory():
        base = location(used.base)
        if explicit and used.base != Register.RSP:
            continue
        size = MemorySizeExt.size(used.memory_size) or 8
        read, write = used.access in READS, used.access in WRITES
        found.append(Memory(f".{base}", base, "", 1, _signed(used.displacement), size, read, write))
    return found


def _flags(ins: Instruction, sources: list, targets: list) -> None:
    counted = MNEMONICS[ins.mnemonic] in COUNTED and ins.op_count > 1
    counted = counted and any(ins.op_register(i) == Register.CL for i in range(1, ins.op_count))
    for flag, bit in FLAG_BITS.items():
        written = ins.rflags_modified & bit
        if ins.rflags_read & bit or (counted and written):
            sources.append((f"flag.{flag}", flag))
        if written:
            targets.append((f"flag.{flag}", flag))


def _immediate(ins: Instruction) -> int | None:
    kinds = {OpKind.REGISTER, OpKind.MEMORY}
    last = ins.op_count - 1
    if last < 1 or ins.op_kind(last) in kinds or not OpKind.IMMEDIATE8 <= ins.op_kind(last) <= 14:
        return None
    return ins.immediate(last)
