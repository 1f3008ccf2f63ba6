"""Operands, accesses, flags and attributes of a variant, from iced-x86 plus named rules.

The rules add what iced does not model (MXCSR, x87 control words, merging of partial registers,
flags that survive a shift by zero) and correct what real execution showed to be wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from iced_x86 import (
    EncodingKind,
    FlowControl,
    Instruction,
    InstructionInfoFactory,
    MemorySize,
    MemorySizeInfo,
    Mnemonic,
    OpAccess,
    Register,
    RegisterExt,
    RflagsBits,
)

from .enumerate_forms import (
    BLOCK_KINDS,
    BRANCHES,
    FIXED,
    IMMEDIATES,
    PAIR_KINDS,
    REG,
    STRING_MEMORY,
    VSIB_INDEX,
    Variant,
    enum_names,
    is_register,
    register_class,
)

ACCESS = enum_names(OpAccess)
MEMORY_SIZE = enum_names(MemorySize)
MNEMONIC = enum_names(Mnemonic)
FLOW = enum_names(FlowControl)
ENCODING = enum_names(EncodingKind)
FLAG_BITS = {
    "CF": RflagsBits.CF, "PF": RflagsBits.PF, "AF": RflagsBits.AF, "ZF": RflagsBits.ZF,
    "SF": RflagsBits.SF, "OF": RflagsBits.OF, "DF": RflagsBits.DF,
}  # fmt: skip
CLASS_WIDTH = {
    "R8l": 8, "R8h": 8, "R16": 16, "R32": 32, "R64": 64, "MM": 64, "XMM": 128, "YMM": 256,
    "ZMM": 512, "K": 64, "ST": 80, "SEG": 16, "BND": 128, "TMM": 8192, "CR": 64, "DR": 64,
}  # fmt: skip
FACTORY = InstructionInfoFactory()


@dataclass
class Op:
    """One operand of the table, in the order of the shipped record."""

    name: str
    kind: str
    cls: str
    width: int = 0
    read: bool = False
    write: bool = False
    conditional: bool = False
    implicit: bool = False
    fixed: str = ""
    element: str = ""

    def access(self, name: str) -> None:
        """Add one of iced's OpAccess values."""
        self.read |= "READ" in name
        self.write |= "WRITE" in name
        self.conditional |= "COND" in name
        if "COND_WRITE" in name and self.kind == "register":
            self.read = True  # the old value passes through when the condition is false


@dataclass
class Facts:
    """What the generator knows of one variant besides its encoding."""

    operands: list[Op]
    flags_read: list[str]
    flags_written: list[str]
    flags_undefined: list[str]
    attributes: set[str] = field(default_factory=set)
    element: str = ""


def element_of(memory_size: int) -> str:
    """Short name of the element type of an iced memory size: f32, i8, ..."""
    name = MEMORY_SIZE[MemorySizeInfo(memory_size).element_type]
    match = re.fullmatch(r"(U?INT|FLOAT|BFLOAT)(\d+)", name)
    if not match:
        return ""
    return {"INT": "i", "UINT": "i", "FLOAT": "f", "BFLOAT": "bf"}[match[1]] + match[2]


def _memory_class(variant: Variant, kind: str, width: int, element_bits: int) -> str:
    if kind in VSIB_INDEX:
        return "VSIB_" + VSIB_INDEX[kind][0]
    if kind == "MEM_OFFS":
        return f"Moffs{width}"
    if variant.broadcast:
        return f"M{element_bits}_1to{width // element_bits}"
    return f"M{width}"


def _explicit(variant: Variant, ins: Instruction) -> list[tuple[int, Op]]:
    """Explicit operands as (iced index, operand); the mask is inserted after the first."""
    info = FACTORY.info(ins)
    result: list[tuple[int, Op]] = []
    for index, kind in enumerate(variant.kinds):
        op = _explicit_operand(variant, ins, index, kind)
        op.access(ACCESS[info.op_access(index)])
        result.append((index, op))
    if variant.mask:
        mask = Op("", "register", "K", 64, read=True)
        mask.write = any(u.register == ins.op_mask and "WRITE" in ACCESS[u.access]
                         for u in info.used_registers())  # fmt: skip
        result.insert(1, (-1, mask))
    return result


def _explicit_operand(variant: Variant, ins: Instruction, index: int, kind: str) -> Op:
    if is_register(variant, index):
        cls = register_class(variant, index)
        op = Op("", "register", cls, CLASS_WIDTH[cls])
        if kind in BLOCK_KINDS or kind in PAIR_KINDS:
            op.fixed = "block4" if kind in BLOCK_KINDS else "pair"
        return op
    if kind in FIXED:
        register = FIXED[kind]
        return Op("", "register", *_fixed_class(register), fixed=REG[register].replace("ST0", "ST0"))
    if kind in IMMEDIATES:
        cls = "0" if variant.zero_immediate else IMMEDIATES[kind][1]
        width = 4 if kind == "IMM4_M2Z" else int(cls[1:] or 8)  # a register number fills the byte
        return Op("", "immediate", cls, width)
    if kind in BRANCHES:
        return Op("", "branch", BRANCHES[kind][1], int(BRANCHES[kind][1][3:]))
    return _memory_operand(variant, ins, kind)


def _memory_operand(variant: Variant, ins: Instruction, kind: str) -> Op:
    if variant.lea:
        return Op("", "address", "LEA_" + variant.lea, 64)
    size = MemorySizeInfo(ins.memory_size)
    width = size.size * 8
    element = element_of(ins.memory_size)
    bits = size.element_size * 8
    if variant.broadcast:
        width = MemorySizeInfo(variant.info.memory_size).size * 8
    cls = _memory_class(variant, kind, width, bits)
    return Op("", "memory", cls, bits if variant.broadcast else width, element=element)


def _fixed_class(register: int) -> tuple[str, int]:
    name = REG[register]
    if name in ("AH", "CH", "DH", "BH"):
        return "R8h", 8
    if RegisterExt.is_gpr(register):
        bits = RegisterExt.size(register) * 8
        return {8: "R8l", 16: "R16", 32: "R32", 64: "R64"}[bits], bits
    cls = re.sub(r"\d+$", "", name)
    cls = cls if cls in CLASS_WIDTH else "SEG"
    return cls, CLASS_WIDTH[cls]


def _implicit(ins: Instruction, explicit: list[tuple[int, Op]]) -> list[Op]:
    """Registers and memory that the instruction uses without naming them."""
    info = FACTORY.info(ins)
    named = {r for i, op in explicit if i >= 0 for r in _operand_registers(op, ins.op_register(i))}
    implied = any(op.name.startswith("[") for _, op in explicit)  # no field names its registers
    address = {RegisterExt.full_register(r) for r in (ins.memory_base, ins.memory_index)}
    address.discard(Register.NONE)
    found: dict[int, list[tuple[int, str]]] = {}
    for used in info.used_registers():
        full = RegisterExt.full_register(used.register)
        if full in named or (full in address and not implied) or used.register == ins.op_mask:
            continue
        found.setdefault(full, []).append((used.register, ACCESS[used.access]))
    result = [_implicit_register(uses) for uses in found.values()]
    return result + _implicit_memory(ins, explicit)


def _operand_registers(op: Op, register: int) -> range:
    """Full registers of an explicit operand: one, or the consecutive ones of a block or pair."""
    first = RegisterExt.full_register(register)
    return range(first, first + {"block4": 4, "pair": 2}.get(op.fixed, 1))


def _implicit_register(uses: list[tuple[int, str]]) -> Op:
    widest = max((r for r, _ in uses), key=RegisterExt.size)
    if {REG[r] for r, _ in uses} == {"AL", "AH"}:
        widest = Register.AX
    op = Op(REG[widest], "register", *_fixed_class(widest), implicit=True, fixed=REG[widest])
    for _, access in uses:
        op.access(access)
    return op


def _implicit_memory(ins: Instruction, explicit: list[tuple[int, Op]]) -> list[Op]:
    if any(op.kind == "memory" and not op.implicit for _, op in explicit):
        bases = {Register.RSP, Register.RBP}  # PUSH m and POP m use the stack as well
    else:
        bases = {Register.RSP, Register.RBP, Register.RSI, Register.RDI, Register.RBX, Register.RAX}
    found: dict[str, Op] = {}
    for used in FACTORY.info(ins).used_memory():
        name = f"[{REG[used.base]}]"
        named = any(op.name == name for _, op in explicit)
        if used.base not in bases or used.base == ins.memory_base or named:
            continue
        width = MemorySizeInfo(used.memory_size).size * 8
        op = found.setdefault(name, Op(name, "memory", f"M{width}", width, implicit=True))
        op.fixed = REG[used.base]
        op.access(ACCESS[used.access])
    return list(found.values())


def _name_operands(variant: Variant, explicit: list[tuple[int, Op]]) -> None:
    """op1, op2, ... for what a programmer writes; [RSI] and friends for string operands."""
    number = 0
    for index, op in explicit:
        kind = variant.kinds[index] if index >= 0 else ""
        if kind in STRING_MEMORY or kind == "SEG_RBX_AL":
            op.fixed = {"SEG_RSI": "RSI", "SEG_RBX_AL": "RBX"}.get(kind, "RDI")
            op.name, op.implicit = f"[{op.fixed}]", True
            continue
        if any(k in STRING_MEMORY for k in variant.kinds) and op.fixed:  # AL of SCASB, STOSB, LODSB
            op.name, op.implicit = op.fixed, True
            continue
        number += 1
        op.name = f"op{number}"


def _flags(mask: int) -> list[str]:
    return [name for name, bit in FLAG_BITS.items() if mask & bit]


# --- named rules -------------------------------------------------------------------------------

COUNTED = re.compile(r"(SHL|SHR|SAR|SAL|ROL|ROR|RCL|RCR|SHLD|SHRD)$")
NO_MXCSR = re.compile(
    r"V?P?(MOV(?!NTI)|AND|ANDN|OR|XOR|UNPCK|SHUF|BLEND|BROADCAST|INSERT|EXTRACT|GATHER|SCATTER"
    r"|COMPRESS|EXPAND|PERM|ALIGN|TEST|LDDQU|MASKMOV|ZERO|TERNLOG|PREFETCH|CMOV|DPBF16|LOADUNPACK)"
)
FALSELY_WRITTEN = {"CLZERO"}
MXCSR_ITSELF = {"LDMXCSR", "STMXCSR", "VLDMXCSR", "VSTMXCSR"}
X87_CONTROL = {"FLDCW", "FNINIT"}
BLEND = re.compile(r"VP?BLENDM")
EXACT = re.compile(r"V?CVT((DQ|UDQ|PI)2PD|U?SI2SD)$")


def _uses_mxcsr(name: str, element: str, variant: Variant) -> bool:
    """SSE and AVX floating-point arithmetic, conversions and comparisons use MXCSR.

    So do VRCP14 and VRSQRT14 (denormals are zeros), unlike RCPPS and RSQRTPS.
    """
    if name in MXCSR_ITSELF:
        return True
    vector = any(k.startswith(("XMM", "YMM", "ZMM", "MM_")) for k in variant.kinds)
    if not vector or not (element.startswith(("f", "bf")) or name.startswith(("CVT", "VCVT"))):
        return False
    if "BF16" in name or name.startswith(("PF", "PI2F", "V4F", "VEXP2")):
        return False
    if name in ("RCPPS", "RCPSS", "RSQRTPS", "RSQRTSS", "VRCPPS", "VRCPSS", "VRSQRTPS", "VRSQRTSS"):
        return False
    return not NO_MXCSR.match(name)


def _is_exact(name: str, ops: list[Op]) -> bool:
    """A 32-bit integer to double precision: nothing to round, no exception."""
    wide = any(op.cls in ("R64", "M64") for op in ops)
    return bool(EXACT.match(name)) and not (wide and name.endswith("SI2SD"))


def _value_element(variant: Variant, name: str) -> str:
    """Element type that decides which values the form's operands should hold."""
    element = element_of(variant.info.memory_size) if variant.info.memory_size else ""
    if element.startswith(("f", "bf")):
        return element
    suffix = re.search(r"(PS|SS|PD|SD|PH|SH)$", name)
    vector = any(k.startswith(("XMM", "YMM", "ZMM")) for k in variant.kinds)
    if suffix and vector and not element:
        return {"S": "f32", "D": "f64", "H": "f16"}[suffix[1][1]]
    if suffix and vector and re.match(r"V?(CVT|MOV|BLEND|SHUF|UNPCK|PERM|GATHER)", name):
        return {"S": "f32", "D": "f64", "H": "f16"}[suffix[1][1]]
    return element or "int"


def _merge_rules(variant: Variant, name: str, ops: list[Op]) -> None:
    for op in ops:
        partial = op.kind == "register" and op.cls in ("R8l", "R8h", "R16")
        if partial and op.write:
            op.read = True  # 8- and 16-bit writes keep the rest of the register
    if name == "INSERTQ":
        ops[0].read = True
    if name in FALSELY_WRITTEN:
        ops.append(Op("[RAX]", "memory", "M512", 512, write=True, implicit=True, fixed="RAX"))
    if BLEND.match(name):
        _blend_rule(variant, ops)
    elif variant.mask == "merge" and ops[0].cls != "K" and ops[0].write:
        ops[0].read |= ops[0].kind == "register"
        ops[0].conditional = True


def _blend_rule(variant: Variant, ops: list[Op]) -> None:
    """The mask selects between two sources: the target is only written."""
    if variant.mask == "zero":
        ops[2].read = False  # zero is selected instead


def _short_branch(variant: Variant, flow: str, ops: list[Op]) -> bool:
    """Near branches, calls and returns with 16-bit operands."""
    if any(k.startswith("BR16") or k == "BRDISP_2" for k in variant.kinds):
        return True
    if flow == "RETURN":
        return any(op.fixed == "RSP" and op.kind == "memory" and op.width == 16 for op in ops)
    return flow in ("INDIRECT_CALL", "INDIRECT_BRANCH") and ops[0].width == 16


def _attributes(variant: Variant, ins: Instruction, name: str, ops: list[Op]) -> set[str]:
    info = variant.info
    flow = FLOW[ins.flow_control]
    kinds = " ".join(variant.kinds)
    wanted = {
        ENCODING[info.encoding].lower(): True,
        variant.prefix: bool(variant.prefix),
        "masked": bool(variant.mask),
        "zeroing": variant.mask == "zero",
        "broadcast": variant.broadcast,
        "rounding": variant.rounding == "er",
        "sae": variant.rounding == "sae",
        "high_byte": bool(variant.high),
        "vsib": "VSIB" in kinds,
        "x87": name.startswith("F") and info.encoding == EncodingKind.LEGACY and "3DNOW" not in kinds
        and name not in ("FEMMS", "FXSAVE", "FXSAVE64", "FXRSTOR", "FXRSTOR64"),
        "mmx": "MM_" in kinds.replace("XMM_", "").replace("YMM_", "").replace("ZMM_", ""),
        "branch": flow in ("UNCONDITIONAL_BRANCH", "CONDITIONAL_BRANCH", "INDIRECT_BRANCH"),
        "conditional_branch": flow == "CONDITIONAL_BRANCH",
        "call": flow in ("CALL", "INDIRECT_CALL"),
        "return": flow == "RETURN",
        "indirect": flow in ("INDIRECT_CALL", "INDIRECT_BRANCH"),
        "interrupt": flow in ("INTERRUPT", "EXCEPTION", "XBEGIN_XABORT_XEND"),
        "far": ins.is_call_far or ins.is_jmp_far or ins.is_call_far_indirect
        or ins.is_jmp_far_indirect or name in ("RETF", "IRET", "IRETD", "IRETQ"),
        "nontemporal": info.is_non_temporal,
        "stack": ins.is_stack_instruction,
        "string": ins.is_string_instruction,
        "state_save": ins.is_save_restore_instruction,
        "io": info.is_input_output,
        "serializing": info.is_serializing_intel or info.is_serializing_amd,
        "unique_registers": info.requires_unique_reg_nums or info.requires_unique_dest_reg_num,
        "nop": info.is_nop or info.is_reserved_nop,
        "lea": bool(variant.lea),
        "operand16": _short_branch(variant, flow, ops),
        "x87_control": name in X87_CONTROL,
    }  # fmt: skip
    attributes = {key for key, value in wanted.items() if value and key}
    if "string" in attributes and not any(op.name.startswith("[") for op in ops):
        attributes.discard("string")
    return attributes


def facts(variant: Variant, ins: Instruction) -> Facts:
    """Operands, flags and attributes of one variant."""
    name = MNEMONIC[ins.mnemonic]
    explicit = _explicit(variant, ins)
    _name_operands(variant, explicit)
    ops = [op for _, op in explicit] + _implicit(ins, explicit)
    _merge_rules(variant, name, ops)
    pushes = ins.fpu_stack_increment_info().increment == -1
    if pushes and not any(op.fixed == "ST0" and op.write for op in ops):
        ops.append(Op("ST0", "register", "ST", 80, write=True, implicit=True, fixed="ST0"))
    element = _value_element(variant, name)
    attributes = _attributes(variant, ins, name, ops)
    if _uses_mxcsr(name, element, variant) and not _is_exact(name, ops):
        attributes.add("mxcsr")
    written = _flags(ins.rflags_written | ins.rflags_cleared | ins.rflags_set)
    undefined = _flags(ins.rflags_undefined)
    read = set(_flags(ins.rflags_read))
    by_register = any(op.fixed == "CL" for op in ops) and COUNTED.match(name)
    if by_register or (attributes & {"rep", "repne"} and written):
        read |= set(written) | set(undefined)  # a count of zero leaves the flags alone
        attributes.add("conditional_flags")
    order = [f for f in FLAG_BITS if f in read]
    return Facts(ops, order, written, undefined, attributes, element)
