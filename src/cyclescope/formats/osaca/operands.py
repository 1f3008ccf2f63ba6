"""What OSACA sees of a form: kinds of operands, names in AT&T's syntax, one latency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from cyclescope.formats.spelled import KINDS
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.model.machine import FormCost

ANY = "*"
ADDRESS = {"base": ANY, "offset": ANY, "index": ANY, "scale": ANY}
EXTENDING = {"MOVZX": "movz", "MOVSX": "movs", "MOVSXD": "movs"}
SUFFIXES = {8: "b", 16: "w", 32: "l", 64: "q"}
SOURCES = ("register", "address", "index")  # whose latencies count, the first that are known
NARROW = (8, 16)  # bits: OSACA has one kind of general register, whose moves are those of 32 and 64
Described = Mapping[str, object]
Pattern = tuple[str, tuple[str, ...]]


class Entry(msgspec.Struct, frozen=True):
    """A form with what it costs and what OSACA sees of its operands."""

    form: InstructionForm
    cost: FormCost
    operands: tuple[Described, ...]


def pattern(name: str, operands: Iterable[Described]) -> Pattern:
    """What forms have in common that look alike."""
    return name, tuple(map(str, operands))


def described(form: InstructionForm) -> tuple[Described, ...] | None:
    """What OSACA sees of a form, in AT&T's order; None where it has no words."""
    if not form.attributes.isdisjoint(("masked", "string", "lock", "rep", "repne", "rounding", "sae")):
        return None
    shown = [_described(op) for op in reversed(form.operands) if not op.implicit]
    return None if None in shown else tuple(op for op in shown if op is not None)


def _described(op: Operand) -> Described | None:
    if op.is_register:
        return {"class": "register", "name": KINDS[op.cls]} if op.cls in KINDS else None
    if op.kind == "immediate":
        return {"class": "immediate", "imd": "int"}
    if op.kind == "branch":
        return {"class": "identifier"}
    if op.kind == "address":
        return _address(op.cls)
    plain = op.is_memory and op.cls.removeprefix("M").isdecimal()
    return {"class": "memory", **ADDRESS} if plain else None


def _address(cls: str) -> Described | None:
    """The address of LEA, whose parts matter: `LEA_B_I_D8` has a base, an index and a displacement."""
    parts = cls.split("_")[1:]
    if "R" in parts:
        return None
    scaled = any(part.startswith("IS") for part in parts)
    return {
        "class": "memory",
        "base": "gpr" if "B" in parts else None,
        "offset": "imd" if any(part.startswith("D") for part in parts) else None,
        "index": "gpr" if scaled or "I" in parts else None,
        "scale": ANY if scaled else 1,
    }


def names(form: InstructionForm) -> list[str]:
    """The mnemonics of a form in AT&T's syntax: `movzbl`; also uops.info's (`jne`, `jnz`)."""
    if form.mnemonic in EXTENDING:
        target, source = form.operands[:2]
        return [f"{EXTENDING[form.mnemonic]}{SUFFIXES[source.width]}{SUFFIXES[target.width]}"]
    other = form.uops_info.partition(" ")[0]
    return list(dict.fromkeys([form.mnemonic.lower(), *([other.lower()] if other.isalnum() else [])]))


def latency(form: InstructionForm, cost: FormCost) -> float | None:
    """The most of all latencies from registers to a register, of a range its most.

    Those from an address only where no register is read: OSACA would add the load to every chain through a
    register. 0 where no register is written, None where nothing is known.
    """
    most = {**{name: high for name, (_, high) in cost.ranges.items()}, **cost.latencies}
    ends = [
        (pair.source.part, f"{pair.source.name}->{pair.target.name}")
        for pair in pairs(form)
        if pair.target.part == "register" and pair.source.part in SOURCES
    ]
    if not ends:
        return 0.0
    for part in SOURCES:
        found = [most[name] for source, name in ends if source == part and name in most]
        if found:
            return max(found)
    return None
