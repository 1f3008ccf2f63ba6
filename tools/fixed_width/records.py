"""Instructions as LLVM's TableGen files say them.

The files are in LLVM's source only. What `llvm-tblgen` makes of them as JSON is read here, and merged with
what the library says (probe.cpp `describe`): how operands are tied, and whether memory is accessed.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TARGETS = {"aarch64": "AArch64", "riscv64": "RISCV"}
APART = ("apart_vs2", "apart_vs1", "apart_mask")
SAME = {"offset": "imm4"}  # LDR and STR of ZA write one field twice
Json = dict[str, Any]


@dataclass
class McOperand:
    """One operand of TableGen's lists; `index` is its number in LLVM, from 0."""

    var: str
    cls: str
    index: int
    register: bool
    written: bool
    relative: bool = False  # to the program counter


@dataclass
class Field:
    """Bits of the encoding that hold an operand: `positions[k]` is where bit k of the value is."""

    var: str
    cls: str  # LLVM's class
    operand: int  # LLVM's number, of the result where tied
    register: bool
    positions: list[int]

    @property
    def width(self) -> int:
        """Bits of the value."""
        return len(self.positions)


@dataclass
class Record:
    """One instruction."""

    name: str
    text: str  # LLVM's template
    length: int
    base: int = 0
    free: int = 0  # bits that say nothing
    operands: list[McOperand] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)  # names in the text of several operands
    fields: list[Field] = field(default_factory=list)
    alternatives: list[list[str]] = field(default_factory=list)  # LLVM's features, any of these lists
    description: Json = field(default_factory=dict)  # of the library
    apart: list[str] = field(default_factory=list)  # RISC-V: what a vector result does not overlap

    def canonical(self, index: int) -> int:
        """Number of the result that an operand is tied to, or its own."""
        tied: int = self.description["tied"][index]
        return tied if tied >= 0 else index

    def field_of(self, var: str) -> int:
        """Position of the field that holds an operand, by the operand's name; -1 where none does."""
        wanted = [self.canonical(op.index) for op in self.operands if op.var in (var, SAME.get(var))]
        return next((k for k, f in enumerate(self.fields) if f.operand in wanted), -1)


def dump(source: Path, target: Path, isa: str) -> Path:
    """Run llvm-tblgen on LLVM's source; a dump that is there already is taken. RISC-V takes 10 GB."""
    name = TARGETS[isa]
    output = target / f"{name}.json"
    if not output.exists():
        files = source / "llvm/lib/Target" / name
        folders = ["-I", str(source / "llvm/include"), "-I", str(files)]
        command = ["llvm-tblgen-22", *folders, str(files / f"{name}.td"), "--dump-json", "-o", str(output)]
        subprocess.run(command, check=True)
    return output


def read(path: Path, descriptions: list[Json]) -> list[Record]:
    """All instructions that have an encoding, in alphabetical order."""
    data = json.loads(path.read_text())
    known = {d["name"]: d for d in descriptions}
    return [_record(data, name, known[name]) for name in sorted(_real(data))]


def _real(data: Json) -> Iterator[str]:
    for name in data["!instanceof"]["Instruction"]:
        entry = data[name]
        if not entry.get("isPseudo") and not entry.get("isCodeGenOnly") and entry.get("Inst"):
            yield name


def _record(data: Json, name: str, description: Json) -> Record:
    entry = data[name]
    record = Record(name, first_variant(entry["AsmString"]), entry["Size"], description=description)
    for key, written in (("OutOperandList", True), ("InOperandList", False)):
        for argument in entry[key]["args"]:
            _add_operands(data, record, argument, written)
    if len(description["tied"]) != sum(_parts(data, op.cls) for op in record.operands):
        raise ValueError(f"{name}: TableGen and the library disagree about the operands")
    _add_bits(record, entry["Inst"])
    record.alternatives = _features(data, [_name(p) for p in entry["Predicates"]])
    if "RVVConstraint" in entry:
        bits = data[_name(entry["RVVConstraint"])]["Value"]
        record.apart = [name for name, bit in zip(APART, bits, strict=True) if bit]
    return record


def first_variant(text: str) -> str:
    """LLVM's template without its second assembler dialect: `{a|b}` is a, `\\{` a brace."""
    text = re.sub(r"(?<![\\$])\{((?:\$\{\w+\}|[^|{}\\])*)(?:\|[^}]*)?\}", r"\1", text)
    return text.replace("\\{", "{").replace("\\}", "}")


def _name(value: Any) -> str:
    return str(value["def"])


def _parts(data: Json, cls: str) -> int:
    info = data[cls].get("MIOperandInfo")
    return len(info["args"]) or 1 if isinstance(info, dict) else 1


def _is_register(data: Json, cls: str) -> bool:
    return any("Register" in name for name in data[cls]["!superclasses"])


def _add_operands(data: Json, record: Record, argument: Any, written: bool) -> None:
    """One argument of the operand lists, which can stand for several operands with names."""
    value, var = argument
    start = sum(_parts(data, op.cls) for op in record.operands)
    if value["kind"] != "dag":
        cls = _name(value)
        relative = data[cls].get("OperandType") == "OPERAND_PCREL"
        record.operands.append(McOperand(var, cls, start, _is_register(data, cls), written, relative))
        return
    info = data[_name(value["operator"])]["MIOperandInfo"]["args"]
    record.groups[var] = [name for _, name in value["args"]]
    for (cls, _), (_, part) in zip(info, value["args"], strict=True):
        start = sum(_parts(data, op.cls) for op in record.operands)
        known = _name(cls)
        record.operands.append(McOperand(part, known, start, _is_register(data, known), written))


def _add_bits(record: Record, bits: list[Any]) -> None:
    """Fixed bits, and the bits of each operand in the order of their numbers."""
    places: dict[str, dict[int, int]] = {}
    for position, bit in enumerate(bits):
        if isinstance(bit, int):
            record.base |= bit << position
        elif bit is None:
            record.free |= 1 << position
        else:
            places.setdefault(bit["var"], {})[bit.get("index", 0)] = position
    for var, found in places.items():
        number = record.canonical(next(op.index for op in record.operands if op.var == var))
        op = next(op for op in record.operands if op.index == number)
        record.fields.append(Field(var, op.cls, number, op.register, [found[k] for k in sorted(found)]))
    record.fields.sort(key=lambda f: f.operand)


def _features(data: Json, predicates: list[str]) -> list[list[str]]:
    """Alternatives of what the predicates ask for; `-` before what must not be there."""
    result: list[list[str]] = [[]]
    for predicate in predicates:
        condition = data[predicate].get("AssemblerCondDag")
        choices = _choices(data, condition) if isinstance(condition, dict) else [[]]
        result = [have + [c for c in new if c not in have] for have in result for new in choices]
    return result


def _choices(data: Json, dag: Any) -> list[list[str]]:
    if dag["kind"] == "def":
        return [[data[_name(dag)]["Name"]]]
    operator = _name(dag["operator"])
    parts = [a for a, _ in dag["args"] if not (a["kind"] == "def" and _name(a) == "FeatureAll")]
    if operator == "any_of":
        return [choice for part in parts for choice in _choices(data, part)]
    if operator == "not":
        ((only,),) = _choices(data, parts[0])
        return [["-" + only]]
    result: list[list[str]] = [[]]
    for part in parts:
        result = [have + new for have in result for new in _choices(data, part)]
    return result
