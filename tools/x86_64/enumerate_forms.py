"""Enumerate the user-mode 64-bit x86 instruction forms that iced-x86 knows.

A *variant* is one way of filling an iced opcode: register or memory operand, broadcast, mask,
rounding, high-byte registers, prefix, address components (LEA) or a special immediate. Each
variant becomes one instruction form with one concrete example instruction.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from iced_x86 import (
    Code,
    EncodingKind,
    Instruction,
    OpCodeInfo,
    OpCodeOperandKind,
    OpKind,
    Register,
    RoundingControl,
)


def enum_names(enum: object) -> dict[int, str]:
    """Value -> name of one of iced's enumerations."""
    items = ((getattr(enum, n), n) for n in dir(enum) if not n.startswith("_"))
    return {v: n for v, n in items if isinstance(v, int)}


CODE = enum_names(Code)
KIND = enum_names(OpCodeOperandKind)
REG = enum_names(Register)

REG_OR_MEM = {
    "R8_OR_MEM": "R8l", "R16_OR_MEM": "R16", "R32_OR_MEM": "R32", "R64_OR_MEM": "R64",
    "R32_OR_MEM_MPX": "R32", "R64_OR_MEM_MPX": "R64", "MM_OR_MEM": "MM", "XMM_OR_MEM": "XMM",
    "YMM_OR_MEM": "YMM", "ZMM_OR_MEM": "ZMM", "K_OR_MEM": "K", "BND_OR_MEM_MPX": "BND",
}  # fmt: skip
REGISTER_KINDS = {
    "R8_REG": "R8l", "R8_OPCODE": "R8l", "R16_REG": "R16", "R16_RM": "R16", "R16_OPCODE": "R16",
    "R32_REG": "R32", "R32_RM": "R32", "R32_OPCODE": "R32", "R32_VVVV": "R32", "R64_REG": "R64",
    "R64_RM": "R64", "R64_OPCODE": "R64", "R64_VVVV": "R64", "SEG_REG": "SEG", "K_REG": "K",
    "K_RM": "K", "K_VVVV": "K", "KP1_REG": "K", "MM_REG": "MM", "MM_RM": "MM", "XMM_REG": "XMM",
    "XMM_RM": "XMM", "XMM_VVVV": "XMM", "XMMP3_VVVV": "XMM", "XMM_IS4": "XMM", "XMM_IS5": "XMM",
    "YMM_REG": "YMM", "YMM_RM": "YMM", "YMM_VVVV": "YMM", "YMM_IS4": "YMM", "YMM_IS5": "YMM",
    "ZMM_REG": "ZMM", "ZMM_RM": "ZMM", "ZMM_VVVV": "ZMM", "ZMMP3_VVVV": "ZMM", "BND_REG": "BND",
    "TMM_REG": "TMM", "TMM_RM": "TMM", "TMM_VVVV": "TMM", "STI_OPCODE": "ST",
    "CR_REG": "CR", "DR_REG": "DR",
    # a register that holds an address (ENQCMD, MOVDIR64B, UMONITOR...)
    "R16_REG_MEM": "R16", "R32_REG_MEM": "R32", "R64_REG_MEM": "R64",
}  # fmt: skip
BLOCK_KINDS = {"XMMP3_VVVV", "ZMMP3_VVVV"}  # four consecutive registers
PAIR_KINDS = {"KP1_REG"}  # two consecutive registers
FIXED = {
    "AL": Register.AL, "CL": Register.CL, "AX": Register.AX, "DX": Register.DX,
    "EAX": Register.EAX, "RAX": Register.RAX, "ES": Register.ES, "CS": Register.CS,
    "SS": Register.SS, "DS": Register.DS, "FS": Register.FS, "GS": Register.GS,
    "ST0": Register.ST0,
}  # fmt: skip
IMMEDIATES = {
    "IMM4_M2Z": ("IMMEDIATE8", "I8", 1), "IMM8": ("IMMEDIATE8", "I8", 3),
    "IMM8_CONST_1": ("IMMEDIATE8", "1", 1), "IMM8SEX16": ("IMMEDIATE8TO16", "I8", 3),
    "IMM8SEX32": ("IMMEDIATE8TO32", "I8", 3), "IMM8SEX64": ("IMMEDIATE8TO64", "I8", 3),
    "IMM16": ("IMMEDIATE16", "I16", 0x103), "IMM32": ("IMMEDIATE32", "I32", 0x10003),
    "IMM32SEX64": ("IMMEDIATE32TO64", "I32", 0x10003),
    "IMM64": ("IMMEDIATE64", "I64", 0x100000003),
}  # fmt: skip
BRANCHES = {
    "BR16_1": ("NEAR_BRANCH16", "Rel8"), "BR32_1": ("NEAR_BRANCH32", "Rel8"),
    "BR64_1": ("NEAR_BRANCH64", "Rel8"), "BR16_2": ("NEAR_BRANCH16", "Rel16"),
    "BR32_4": ("NEAR_BRANCH32", "Rel32"), "BR64_4": ("NEAR_BRANCH64", "Rel32"),
    "XBEGIN_2": ("NEAR_BRANCH32", "Rel16"), "XBEGIN_4": ("NEAR_BRANCH64", "Rel32"),
    "BRDISP_2": ("NEAR_BRANCH16", "Rel16"), "BRDISP_4": ("NEAR_BRANCH32", "Rel32"),
}  # fmt: skip
VSIB_INDEX = {
    "MEM_VSIB32X": ("XMM", 32), "MEM_VSIB64X": ("XMM", 64), "MEM_VSIB32Y": ("YMM", 32),
    "MEM_VSIB64Y": ("YMM", 64), "MEM_VSIB32Z": ("ZMM", 32), "MEM_VSIB64Z": ("ZMM", 64),
}  # fmt: skip
PLAIN_MEMORY = {"MEM", "MEM_MPX", "MEM_MIB", "SIBMEM"}
STRING_MEMORY = {
    "SEG_RSI": OpKind.MEMORY_SEG_RSI, "SEG_RDI": OpKind.MEMORY_SEG_RDI,
    "ES_RDI": OpKind.MEMORY_ESRDI,
}  # fmt: skip

# Example registers, in operand order; r14 is the base, r11 where every bit has to be flipped.
EXAMPLES = {
    "R8l": [Register.R8L, Register.R9L, Register.R10L],
    "R8h": [Register.BH, Register.DH, Register.CH],
    "R8low": [Register.BL, Register.DL, Register.CL],
    "R16": [Register.R9W, Register.R10W, Register.R8W],
    "R32": [Register.R9D, Register.R10D, Register.R8D, Register.R12D],
    "R64": [Register.R9, Register.R10, Register.R8, Register.R12],
    "SEG": [Register.ES],
    "K": [Register.K2, Register.K3, Register.K4],
    "MM": [Register.MM1, Register.MM2, Register.MM3],
    "XMM": [Register.XMM1, Register.XMM2, Register.XMM3, Register.XMM4, Register.XMM5],
    "YMM": [Register.YMM1, Register.YMM2, Register.YMM3, Register.YMM4, Register.YMM5],
    "ZMM": [Register.ZMM1, Register.ZMM2, Register.ZMM3, Register.ZMM4, Register.ZMM5],
    "BND": [Register.BND1, Register.BND2],
    "TMM": [Register.TMM1, Register.TMM2, Register.TMM3],
    "ST": [Register.ST3, Register.ST4],
    "CR": [Register.CR3],
    "DR": [Register.DR3],
}
# No single flipped bit makes two of these equal: for forms whose registers must differ.
SPREAD = {
    "XMM": [Register.XMM1, Register.XMM6, Register.XMM8, Register.XMM15],
    "YMM": [Register.YMM1, Register.YMM6, Register.YMM8, Register.YMM15],
    "ZMM": [Register.ZMM1, Register.ZMM6, Register.ZMM8, Register.ZMM15],
    "TMM": [Register.TMM1, Register.TMM2, Register.TMM4],
}
BLOCK_EXAMPLE = {"XMM": Register.XMM8, "ZMM": Register.ZMM8}
INDEX_EXAMPLE = {"XMM": Register.XMM11, "YMM": Register.YMM11, "ZMM": Register.ZMM11}
CODE_ADDRESS = 0x10000000
TARGET = CODE_ADDRESS + 0x40
ABSOLUTE = 0x20008000
DISPLACEMENT = 0x40

# Addressing forms of LEA, by uops.info's suffixes: base, index, scale > 1, displacement bytes.
LEA_ADDRESSES = {
    "B": (True, False, False, 0), "B_D8": (True, False, False, 1),
    "B_D32": (True, False, False, 4), "B_I": (True, True, False, 0),
    "B_I_D8": (True, True, False, 1), "B_I_D32": (True, True, False, 4),
    "B_IS": (True, True, True, 0), "B_IS_D8": (True, True, True, 1),
    "B_IS_D32": (True, True, True, 4), "I_D32": (False, True, False, 4),
    "IS_D32": (False, True, True, 4), "D32": (False, False, False, 4), "R_D32": (False,) * 3 + (8,),
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """One way of filling an opcode."""

    code: int
    kinds: tuple[str, ...]
    memory: bool = False
    broadcast: bool = False
    mask: str = ""  # "", "merge" or "zero"
    rounding: str = ""  # "", "er" or "sae"
    high: tuple[int, ...] = ()  # operands that are AH, BH, CH or DH
    prefix: str = ""  # "", "lock", "rep" or "repne"
    lea: str = ""
    zero_immediate: bool = False
    info: OpCodeInfo = field(compare=False, default=None)


def _masks(info: OpCodeInfo, kinds: tuple[str, ...], memory: bool) -> list[str]:
    if not info.can_use_op_mask_register:
        return [""]
    masks = [] if info.require_op_mask_register else [""]
    masks.append("merge")
    if info.can_use_zeroing_masking and not (memory and kinds[0] in REG_OR_MEM):
        masks.append("zero")
    return masks


def _roundings(info: OpCodeInfo, memory: bool) -> list[str]:
    if not memory and info.can_use_rounding_control:
        return ["", "er"]
    if not memory and info.can_suppress_all_exceptions:
        return ["", "sae"]
    return [""]


def _high_bytes(info: OpCodeInfo, kinds: tuple[str, ...], memory: bool) -> list[tuple[int, ...]]:
    byte_ops = [
        i for i, k in enumerate(kinds) if k in ("R8_REG", "R8_OPCODE") or (k == "R8_OR_MEM" and not memory)
    ]
    needs_rex = any(k.startswith("R64") for k in kinds)
    if info.encoding != EncodingKind.LEGACY or needs_rex:
        return [()]
    counts = range(len(byte_ops) + 1)
    return [c for n in counts for c in itertools.combinations(byte_ops, n)]


def _prefixes(info: OpCodeInfo, kinds: tuple[str, ...], memory: bool) -> list[str]:
    prefixes = [""]
    if info.can_use_lock_prefix and memory and (kinds[0] in REG_OR_MEM or kinds[0] == "MEM"):
        prefixes.append("lock")
    if info.can_use_rep_prefix:
        prefixes.append("rep")
    if info.can_use_repne_prefix and not info.can_use_bnd_prefix:
        prefixes.append("repne")
    return prefixes


def _takes_zero_immediate(info: OpCodeInfo, kinds: tuple[str, ...]) -> bool:
    """Legacy integer forms whose immediate 0 may be special (shift by 0, SBB r,0, MOV r,0)."""
    integer = all(k.startswith(("R8", "R16", "R32", "R64", "AL", "IMM")) for k in kinds)
    last = kinds[-1] if kinds else ""
    mov = last in ("IMM8", "IMM16", "IMM32") and "MOV" in CODE[info.code]
    small = last.startswith("IMM8") and last != "IMM8_CONST_1"
    return info.encoding == EncodingKind.LEGACY and integer and len(kinds) > 1 and (small or mov)


def _may_stay_in_place(info: OpCodeInfo, memory: bool) -> bool:
    """Whether a lane of a register is copied to the start of another one: lane 0 has that place already."""
    copies = re.match(r"E?VEX_VEXTRACT[FI]\d", CODE[info.code])
    return copies is not None and not memory


def variants(code: int, info: OpCodeInfo) -> Iterator[Variant]:
    """Every variant of an opcode."""
    kinds = tuple(KIND[info.op_kind(i)] for i in range(info.op_count))
    if kinds[1:] == ("MEM",) and CODE[code].startswith("LEA_"):
        yield from (Variant(code, kinds, lea=s, info=info) for s in LEA_ADDRESSES)
        return
    switchable = any(k in REG_OR_MEM for k in kinds)
    only = any(k in PLAIN_MEMORY or k in VSIB_INDEX or k in STRING_MEMORY for k in kinds)
    for memory in [False, True] if switchable else [only]:
        zero = _takes_zero_immediate(info, kinds) or _may_stay_in_place(info, memory)
        for broadcast in [False, True] if memory and info.can_broadcast else [False]:
            parts = itertools.product(
                _masks(info, kinds, memory),
                _roundings(info, memory),
                _high_bytes(info, kinds, memory),
                _prefixes(info, kinds, memory),
                [False, True] if zero else [False],
            )
            for mask, rounding, high, prefix, value in parts:
                yield Variant(code, kinds, memory, broadcast, mask, rounding, high, prefix, "", value, info)


def user_mode_variants() -> Iterator[Variant]:
    """Variants of every opcode that a 64-bit user-mode program may contain."""
    for code in sorted(CODE):
        info = OpCodeInfo(code)
        other_machine = info.encoding == EncodingKind.MVEX or "_KNC_" in CODE[code]
        user = info.is_instruction and info.mode64 and not other_machine
        privileged = info.is_privileged or info.must_be_cpl0
        if user and not privileged and not info.fwait:  # FSTCW is FWAIT and FNSTCW: two instructions
            yield from variants(code, info)


def is_register(variant: Variant, index: int) -> bool:
    """Whether operand `index` of the variant is a register chosen by the encoding."""
    kind = variant.kinds[index]
    return kind in REGISTER_KINDS or (kind in REG_OR_MEM and not variant.memory)


def register_class(variant: Variant, index: int) -> str:
    """Class name of an encodable register operand."""
    kind = variant.kinds[index]
    name = REGISTER_KINDS.get(kind) or REG_OR_MEM[kind]
    return "R8h" if index in variant.high else name


class Builder:
    """Fills an iced `Instruction` for one variant."""

    def __init__(self, variant: Variant, base: int | None = None) -> None:
        self.variant = variant
        self.ins = Instruction()
        self.ins.code = variant.code
        default = Register.RDI if variant.high else Register.R14
        self.base = base if base is not None and not variant.high else default
        self.used: dict[str, int] = {}
        self.immediates = 0

    def build(self) -> Instruction:
        """The example instruction. Raises ValueError for an unknown operand kind."""
        for index, kind in enumerate(self.variant.kinds):
            self._operand(index, kind)
        self._decorate()
        return self.ins

    def _operand(self, index: int, kind: str) -> None:
        if is_register(self.variant, index):
            self._set_register(index, self._pick(index, kind))
        elif kind in FIXED:
            self._set_register(index, FIXED[kind])
        elif kind in IMMEDIATES:
            self._immediate(index, kind)
        elif kind in BRANCHES:
            self._branch(index, kind)
        else:
            self._memory(index, kind)

    def _pick(self, index: int, kind: str) -> int:
        cls = register_class(self.variant, index)
        pool = cls
        if self.variant.high and cls == "R8l":
            pool = "R8low"
        group = "v" if cls in ("XMM", "YMM", "ZMM") else "r" if cls[0] == "R" else cls
        position = self.used.get(group, 0)
        self.used[group] = position + 1
        if kind in BLOCK_KINDS:
            return BLOCK_EXAMPLE[cls]
        if kind in PAIR_KINDS:
            return (Register.K2, Register.K4)[position]
        if self.variant.high and cls in ("R16", "R32"):  # no REX prefix allowed
            return {"R16": Register.SI, "R32": Register.ESI}[cls]
        info = self.variant.info
        unique = info.requires_unique_reg_nums or info.requires_unique_dest_reg_num
        return (SPREAD if unique and pool in SPREAD else EXAMPLES)[pool][position]

    def _set_register(self, index: int, register: int) -> None:
        self.ins.set_op_kind(index, OpKind.REGISTER)
        self.ins.set_op_register(index, register)

    def _immediate(self, index: int, kind: str) -> None:
        name, _, value = IMMEDIATES[kind]
        value = 0 if self.variant.zero_immediate else value
        if name == "IMMEDIATE8" and self.immediates:
            name = "IMMEDIATE8_2ND"
        self.immediates += 1
        self.ins.set_op_kind(index, getattr(OpKind, name))
        if name == "IMMEDIATE64":
            self.ins.set_immediate_u64(index, value)
        else:
            self.ins.set_immediate_i32(index, value)

    def _branch(self, index: int, kind: str) -> None:
        name = BRANCHES[kind][0]
        self.ins.set_op_kind(index, getattr(OpKind, name))
        if "16" in name:
            self.ins.near_branch16 = TARGET & 0xFFFF
        elif "32" in name:
            self.ins.near_branch32 = TARGET
        else:
            self.ins.near_branch64 = TARGET

    def _memory(self, index: int, kind: str) -> None:
        ins = self.ins
        ins.set_op_kind(index, STRING_MEMORY.get(kind, OpKind.MEMORY))
        if kind in STRING_MEMORY:
            return
        if kind == "SEG_RBX_AL":
            ins.memory_base, ins.memory_index = Register.RBX, Register.AL
        elif kind == "MEM_OFFS":
            ins.memory_displ_size, ins.memory_displacement = 8, ABSOLUTE
        elif self.variant.lea:
            self._lea_address()
        elif kind in REG_OR_MEM or kind in PLAIN_MEMORY or kind in VSIB_INDEX:
            ins.memory_base, ins.memory_displ_size = self.base, 1
            ins.memory_displacement = DISPLACEMENT
            if kind == "SIBMEM":
                ins.memory_index = Register.RCX
            if kind in VSIB_INDEX:
                ins.memory_index = INDEX_EXAMPLE[VSIB_INDEX[kind][0]]
                ins.memory_index_scale = 1
        else:
            raise ValueError(f"operand kind {kind}")

    def _lea_address(self) -> None:
        ins = self.ins
        base, index, scaled, size = LEA_ADDRESSES[self.variant.lea]
        if size == 8:
            ins.memory_base, ins.memory_displ_size = Register.RIP, 8
            ins.memory_displacement = CODE_ADDRESS + 0x1000
            return
        if base:
            ins.memory_base = self.base
        if index:
            ins.memory_index = Register.R8
            ins.memory_index_scale = 2 if scaled else 1
        ins.memory_displ_size = {0: 0, 1: 1, 4: 8}[size]  # iced: 8 is a 32-bit displacement
        ins.memory_displacement = {0: 0, 1: DISPLACEMENT, 4: 0x12340}[size]

    def _decorate(self) -> None:
        variant, ins = self.variant, self.ins
        ins.is_broadcast = variant.broadcast
        if variant.mask:
            ins.op_mask = Register.K7  # every bit can be flipped without reaching k0
            ins.zeroing_masking = variant.mask == "zero"
        if variant.rounding == "er":
            ins.rounding_control = RoundingControl.ROUND_TO_NEAREST
        ins.suppress_all_exceptions = variant.rounding == "sae"
        ins.has_lock_prefix = variant.prefix == "lock"
        ins.has_rep_prefix = variant.prefix == "rep"
        ins.has_repne_prefix = variant.prefix == "repne"
