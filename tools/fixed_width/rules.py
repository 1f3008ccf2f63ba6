"""What LLVM's tables say wrongly or not at all, by named rules."""

from __future__ import annotations

import re

from .operands import Op
from .records import Record

NZCV = ("N", "Z", "C", "V")
WHOLE = set(NZCV)
# Flags that are read and written, where that is not all of them.
READ_FLAGS = {
    "adc": "C", "adcs": "C", "sbc": "C", "sbcs": "C", "cfinv": "C", "setf8": "C", "setf16": "C",
    "axflag": "ZCV", "xaflag": "ZC",
}  # fmt: skip
WRITTEN_FLAGS = {"cfinv": "C", "setf8": "NZV", "setf16": "NZV", "ctermeq": "NV", "ctermne": "NV"}
KEPT_FLAGS = {"setf8", "setf16", "cfinv", "rmif", "ctermeq", "ctermne"}
ATOMIC = re.compile(
    r"^(?:ldt?(?:add|clr|set)p?|ld(?:eor|[su]max|[su]min)|(?:ld|st)b?f(?:add|maxnm|max|minnm|min)|swpt?p?|casp?"
    r"|rcws?(?:cas|clr|set|swp)p?)(al|a|l)?t?[bh]?$"
)
EXCLUSIVE = re.compile(r"^(?:ld|st)([al])?t?x[rp][bh]?$")
ORDERED = re.compile(r"^(?:ld|st)(ap|a|l)(?:r|ur|p|1)")
JUMPS = {
    "jal": {"branch", "call"}, "c.jal": {"branch", "call"}, "c.j": {"branch"}, "jalr": {"branch", "indirect"},
    "c.jr": {"branch", "indirect"}, "c.jalr": {"branch", "call", "indirect"},
}  # fmt: skip
BITWISE = {"and", "bcax", "bic", "bif", "bit", "bsl", "eor", "eor3", "mov", "mvn", "not", "orn", "orr"}
NAMED_BASES = {"sspush": "SSP", "sspopchk": "SSP", "c.sspush": "SSP", "c.sspopchk": "SSP"}


class Rules:
    """Corrections of one ISA; `applied` counts the forms that each changed."""

    def __init__(self, isa: str) -> None:
        self.isa = isa
        self.applied: dict[str, int] = {}

    def apply(self, record: Record, mnemonic: str, ops: list[Op]) -> set[str]:
        """Correct the operands; gives the flags of the library, corrected."""
        flags = set(record.description["flags"])
        for rule in RULES[self.isa]:
            before = [op.record() for op in ops], set(flags), record.base
            rule(record, mnemonic, ops, flags)
            if before != ([op.record() for op in ops], flags, record.base):
                self.applied[rule.__name__] = self.applied.get(rule.__name__, 0) + 1
        return flags


def insert_reads_the_rest(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """FMOV to the upper half of a vector keeps the lower one."""
    if record.name == "FMOVXDHighr":
        ops[0].read = True


def system_register_may_be_nzcv(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """MRS reads NZCV, where LLVM says it writes them, and MSR writes them; if the operand says so."""
    if record.name in ("MRS", "MSR"):
        ops[:] = [op for op in ops if op.name != "NZCV"]
        ops.append(Op("NZCV", "register", "NZCV", 32, True, record.name == "MSR", True, True, "NZCV"))


def partly_written_flags_are_read(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """What is not written stays."""
    for op in ops:
        if op.name == "NZCV" and mnemonic in KEPT_FLAGS:
            op.read = True


def unprivileged_atomics_access_memory(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """LLVM gives them no flags."""
    if mnemonic.startswith(("ldtadd", "ldtclr", "ldtset", "swpt", "ldtxr", "gcsst")):
        flags |= {"store"} if mnemonic.startswith("gcsst") else {"load"}
        flags |= set() if mnemonic == "ldtxr" else {"store"}


def no_address_no_memory(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """Conversions, barriers and moves between matrices and vectors access no memory."""
    addressed = any(op.role == "base" for op in ops) or mnemonic.startswith("gcs")
    if not addressed and record.name[-1:] != "l":  # LDRXl and its like are relative to PC
        flags -= {"load", "store"}


def exclusive_accesses_are_one_way(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """A load-exclusive stores nothing, a store-exclusive loads nothing; LLVM orders them by saying both."""
    if EXCLUSIVE.match(mnemonic):
        flags -= {"store"} if mnemonic.startswith("ld") else {"load"}


def prefetches_store_nothing(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """LLVM keeps them by saying so."""
    if mnemonic.startswith(("prf", "prefetch.")):
        flags -= {"store"}


def masked_or_tail_elements_stay(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """Under the undisturbed policies, and where VL ends a vector early, the target's old elements stay."""
    whole = re.match(r"vset|vmv\dr", mnemonic)
    vector = any(op.name == "VTYPE" for op in ops) and not whole
    for op in ops:
        if vector and op.write and op.cls.startswith("VR") and not op.read:
            op.read = op.conditional = True


def jumps_are_branches(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """LLVM tells jumps from calls by their operands, and gives neither flag to the instruction."""
    if mnemonic in JUMPS:
        flags |= JUMPS[mnemonic]
        for op in ops:
            if op.kind == "immediate" and op.relative:
                op.kind = "branch"


def calls_by_register_are_indirect(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """LLVM says so of jumps only."""
    if mnemonic.startswith("blr"):
        flags.add("indirect")


def indirect_jumps_access_no_memory(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """JALR writes its operands like an address."""
    for op in ops:
        if mnemonic == "jalr" and op.role:
            op.role = ""


def exclusive_stores_have_ones(record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> None:
    """The field of a second register, which these lack, should be ones; LLVM's encoder fills it in."""
    if mnemonic.startswith(("stxr", "stlxr")):
        record.base |= record.free


RULES = {
    "aarch64": (
        insert_reads_the_rest, system_register_may_be_nzcv, partly_written_flags_are_read,
        unprivileged_atomics_access_memory, no_address_no_memory, exclusive_stores_have_ones,
        calls_by_register_are_indirect, exclusive_accesses_are_one_way, prefetches_store_nothing,
    ),
    "riscv64": (
        jumps_are_branches, masked_or_tail_elements_stay, indirect_jumps_access_no_memory,
        prefetches_store_nothing,
    ),
}  # fmt: skip


# --- what LLVM does not say -----------------------------------------------------------------------


def flag_sets(mnemonic: str, ops: list[Op]) -> tuple[list[str], list[str]]:
    """Flags of NZCV that are read and written. Conditions and masks of operands choose among them."""
    nzcv = next((op for op in ops if op.name == "NZCV"), None)
    if nzcv is None:
        return [], []
    written = WRITTEN_FLAGS.get(mnemonic, "NZCV") if nzcv.write else ""
    read = READ_FLAGS.get(mnemonic, "NZCV") if nzcv.read else ""
    return list(read), list(written)


def memory(isa: str, mnemonic: str, ops: list[Op], flags: set[str]) -> Op | None:
    """The memory that is accessed, named by the base register of its address."""
    if not flags & {"load", "store"}:
        return None
    base = next((op for op in ops if op.role == "base"), None)
    other = NAMED_BASES.get(
        mnemonic, "GCSPR" if mnemonic.startswith("gcs") else "PC" if isa == "aarch64" else ""
    )
    implied = other or next((op.name for op in ops if op.implicit and op.name in ("SP", "X2")), "X3")
    width = _memory_width(isa, mnemonic, ops, flags)
    name = (base.fixed or base.name) if base else implied
    return Op(f"[{name}]", "memory", f"M{width}", width, "load" in flags, "store" in flags, implicit=True)


def _memory_width(isa: str, mnemonic: str, ops: list[Op], flags: set[str]) -> int:
    """Bits accessed; 0 where that depends on vector length, or is not known."""
    data = [op for op in ops if op.kind == "register" and not (op.role or op.implicit)]
    if not data or any(op.cls.startswith(("Z", "P", "VR", "Matrix", "Tile")) for op in data):
        return 0
    if isa == "riscv64":
        size = re.match(r"^(?:c\.|th\.|cv\.)?(?:f?[ls]|amo\w+\.|lr\.|sc\.|ssamoswap\.)([bhwdq])", mnemonic)
        return {"b": 8, "h": 16, "w": 32, "d": 64, "q": 128}[size[1]] if size else 0
    structure = re.match(r"VecList(One|Two|Three|Four)(\d*)([bhsd])$", data[0].cls)
    if structure:
        whole = structure[2] and not mnemonic.endswith("r")
        count = ("One", "Two", "Three", "Four").index(structure[1]) + 1
        return data[0].width if whole else count * {"b": 8, "h": 16, "s": 32, "d": 64}[structure[3]]
    if mnemonic.startswith(("cpy", "set", "ldg", "stg", "st2g", "dc")):
        return 0
    count = 2 if _is_pair(data, flags) else 1
    narrow = re.match(r"^(?:(?:ld|st)(?!64)|cas|swp|rcw)\w*?(sw|[bh])$", mnemonic)
    if narrow and all(op.cls.startswith("GPR") for op in data):
        return {"b": 8, "h": 16, "sw": 32}[narrow[1]] * count
    return data[-1].width * count


def _is_pair(data: list[Op], flags: set[str]) -> bool:
    """Whether two registers are stored, or loaded, or in exchange for memory both."""
    accesses = [(op.read or "store" not in flags) and (op.write or "load" not in flags) for op in data]
    same = {op.cls for op, access in zip(data, accesses, strict=True) if access}
    return sum(accesses) == 2 and len(same) == 1


def attributes(isa: str, record: Record, mnemonic: str, ops: list[Op], flags: set[str]) -> set[str]:
    """What else holds for a form."""
    found = flags - {"load", "store"}
    found |= {"memory"} if any(op.kind == "memory" for op in ops) else set()
    if any(op.role == "base" and op.write for op in ops):
        found.add("writeback")
    if any(op.role == "mask" for op in ops):
        found.add("predicated")
    if record.length == 2:
        found.add("compressed")
    found |= {"unique_registers"} if isa == "aarch64" and _must_differ(mnemonic, ops) else set()
    found |= set(record.apart)
    found |= {word for sign, word in (("/m", "merging"), ("/z", "zeroing")) if sign in record.text}
    return found | (_orderings(mnemonic) if isa == "aarch64" else _orderings_riscv(mnemonic))


def _must_differ(mnemonic: str, ops: list[Op]) -> bool:
    """Whether a status, or a base that is written back, must be another register than the data."""
    data = any(op.cls.startswith("GPR") and not op.role for op in ops)
    writeback = any(op.role == "base" and op.write for op in ops)
    return mnemonic.startswith(("stxr", "stlxr", "stxp", "stlxp")) or (data and writeback)


def _orderings(mnemonic: str) -> set[str]:
    """Of AArch64: which atomic or exclusive access, and its acquire and release semantics."""
    match = ATOMIC.match(mnemonic)
    if match:
        return {"atomic"} | _order(match[1])
    match = EXCLUSIVE.match(mnemonic)
    if match:
        return {"exclusive"} | _order(match[1])
    match = ORDERED.match(mnemonic)
    return _order(match[1][0]) if match else set()


def _order(letters: str | None) -> set[str]:
    names = {"a": "acquire", "l": "release"}
    return {names[letter] for letter in letters or ""}


def _orderings_riscv(mnemonic: str) -> set[str]:
    match = re.match(r"^(amo|lr\.|sc\.|ssamoswap)", mnemonic)
    if not match:
        return set()
    kind = "exclusive" if match[1] in ("lr.", "sc.") else "atomic"
    order = mnemonic.rpartition(".")[2]
    return {kind} | ({"acquire"} if "aq" in order else set()) | ({"release"} if "rl" in order else set())


def optional(features: list[str]) -> bool:
    """Whether RISC-V features are a vendor's, for 32 bits, a draft, or use the encodings of common ones."""
    return any(
        name.startswith(("X", "ZCM", "!", "P-")) or "INX" in name or name in ("RV32", "P", "ZCLSD", "ZIBI")
        for name in features
    )


def element(isa: str, mnemonic: str, template: str, ops: list[Op]) -> str:
    """Type of the values a form works on: `f64`, `i8`, ...; `int` where only that is known."""
    registers = [op for op in ops if op.kind == "register" and not (op.role or op.implicit)]
    if isa == "riscv64":
        size = re.match(r"^c?\.?f(?!ence)\w*\.([hsdq])(?:\.|$)", mnemonic)
        return {"h": "f16", "s": "f32", "d": "f64", "q": "f128"}[size[1]] if size else "int"
    lane = re.search(r"\.(?:\d+)?([bhsdq])\b", template)
    bits = {"b": 8, "h": 16, "s": 32, "d": 64, "q": 128}[lane[1]] if lane else 0
    bits = bits or next((op.width for op in registers if op.cls.startswith("FPR")), 0)
    if mnemonic.startswith("bf"):
        return "bf16" if bits else "int"
    if not bits:
        return "int"
    if mnemonic in BITWISE and re.search(r"\.(8|16)b\b", template):  # written as bytes, but of no elements
        return f"i{registers[0].width}"
    return f"f{bits}" if mnemonic.startswith("f") and bits > 8 else f"i{bits}"
