"""Operands of a form in the terms of our tables, from LLVM's operands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .records import McOperand, Record
from .samples import Sample
from .text import Texts

_REFERENCE = re.compile(r"\$\{?(\w+)\}?")
_WIDTHS = {
    "W": 32, "X": 64, "B": 8, "H": 16, "S": 32, "D": 64, "Q": 128, "FP": 64, "LR": 64, "SP": 64, "WSP": 32,
    "NZCV": 32,
}  # fmt: skip
_WIDTHS_RISCV = {"_H": 16, "_F": 32, "_W": 32, "_D": 64, "_Q": 128}


@dataclass
class Op:
    """One operand; see `cyclescope.isa.operand.Operand`."""

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
    role: str = ""
    early_clobber: bool = False
    index: int = -1  # LLVM's number, -1 for what has none
    relative: bool = False  # to the program counter

    def record(self) -> list[object]:
        """As in the table: name, kind, class, width, access bits, fixed register, element type, role."""
        access = self.read | self.write << 1 | self.conditional << 2 | self.implicit << 3
        access |= self.early_clobber << 4
        return [self.name, self.kind, self.cls, self.width, access, self.fixed, self.element, self.role]


def explicit(isa: str, record: Record, sample: Sample, names: list[Texts]) -> list[Op]:
    """Operands by LLVM's number; one tied to a result is the result. `names` are registers by field."""
    ops: dict[int, Op] = {}
    for mc in record.operands:
        number = record.canonical(mc.index)
        op = ops.setdefault(number, _operand(isa, record, mc, number, sample, names))
        op.write |= mc.written
        op.read |= op.kind == "register" and not mc.written
        op.early_clobber |= mc.index in record.description["early"]
    roles = address_roles(record)
    for op in ops.values():
        op.role = roles.get(op.index, op.role)
    return list(ops.values())


def _operand(isa: str, record: Record, mc: McOperand, number: int, sample: Sample, names: list[Texts]) -> Op:
    kind = "branch" if mc.relative and _jumps(record) else "register" if mc.register else "immediate"
    op = Op(f"op{number + 1}", kind, mc.cls, index=number, relative=mc.relative)
    place = next((k for k, f in enumerate(record.fields) if f.operand == number), -1)
    if kind != "register":
        op.width = record.fields[place].width if place >= 0 else 0
        return op
    if place < 0:
        op.fixed = sample.answer.operands[number]
    known = [op.fixed] if place < 0 else [name for name in names[place].values() if name]
    op.width = register_width(isa, known[0]) if known else 0
    op.role = "mask" if mc.cls.startswith(("PPR3b", "VMaskOp", "PNRAny_p8to15")) else ""
    return op


def _jumps(record: Record) -> bool:
    return not {"branch", "call"}.isdisjoint(record.description["flags"])


def register_width(isa: str, name: str) -> int:
    """Bits of a register or tuple by LLVM's name; 0 for what scales, and for state."""
    if isa == "riscv64":
        suffix = re.search(r"_[A-Z]$", name)
        if suffix:
            return _WIDTHS_RISCV[suffix[0]]
        return 64 * len(name.split("_")) if name.startswith("X") else 0
    parts = [re.sub(r"\d+$", "", part) for part in name.split("_")]
    return sum(_WIDTHS.get(part.replace("XZR", "X").replace("WZR", "W"), 0) for part in parts)


def implicit(isa: str, record: Record) -> list[Op]:
    """Registers that are used without being named, in order of LLVM's lists."""
    reads, writes = record.description["reads"], record.description["writes"]
    return [
        Op(
            name,
            "register",
            name,
            register_width(isa, name),
            name in reads,
            name in writes,
            False,
            True,
            name,
        )
        for name in dict.fromkeys([*reads, *writes])
    ]


def address_roles(record: Record) -> dict[int, str]:
    """`base`, `index` and `offset` by LLVM's number of the operands of an address."""
    roles: dict[int, str] = {}
    for text in re.findall(r"(?<=[\s,])\[([^\]]*)\]", record.text):
        _add_roles(record, _REFERENCE.findall(text), roles)
    for before, inside in re.findall(r"(?:\$\{?(\w+)\}?\s*)?\(\$\{?(\w+)\}?\)", record.text):
        _add_roles(record, [inside, *filter(None, [before])], roles)
    for op in record.operands:
        if "Mem" in op.cls or op.cls == "GPRMemZeroOffset":
            roles.setdefault(record.canonical(op.index), "base")
    _add_unwritten(record, roles)
    return roles


def _add_roles(record: Record, names: list[str], roles: dict[int, str]) -> None:
    for name in names:
        for part in record.groups.get(name, [name]):
            op = next((op for op in record.operands if op.var == part), None)
            if op is None:
                continue
            number = record.canonical(op.index)
            first = "base" not in roles.values()
            roles.setdefault(number, ("base" if first else "index") if op.register else "offset")


def _add_unwritten(record: Record, roles: dict[int, str]) -> None:
    """RISC-V: indices of vectors, strides, and loads of vendors that write no address."""
    flags = set(record.description["flags"])
    by_var = {op.var: record.canonical(op.index) for op in record.operands if not op.written}
    if record.text.startswith(("vlux", "vlox", "vsux", "vsox")):
        roles[by_var["vs2"]] = "index"
    if record.text.startswith(("vlse", "vsse", "vlsseg", "vssseg")) and "rs2" in by_var:
        roles[by_var["rs2"]] = "index"
    if record.text.startswith(("th.", "cv.")) and {"load", "store"} & flags and "base" not in roles.values():
        roles[by_var["rs1"]] = "base"
        roles.update({by_var["rs2"]: "index"} if "rs2" in by_var else {})
