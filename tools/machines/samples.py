"""x86-64: an example of every form for LLVM to decode, and where its operands are in LLVM's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cyclescope.isa.dataflow import Node, pairs
from cyclescope.isa.encode import encode
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import BLOCKS
from cyclescope.isa.register import domain, register_name, register_number
from cyclescope.isa.table import load_table

# Numbers to take, by register file: none that is fixed in some form, high bytes of other registers.
NUMBERS = {"r": (3, 6, 7, 2), "h": (5, 4), "v": (1, 2, 3, 9), "k": (1, 2, 3), "m": (1, 2, 3), "x": (1, 2, 3)}
_NEVER_LATE = [-1]  # number of a read that no class names
FALLBACKS = ((3, 2, 1, 0), (3, 3, 3, 3), (1, 2, 1, 2))  # where an encoding has less room


def _file_of(form: InstructionForm, operand: int, part: int) -> str:
    cls = form.operands[operand].cls
    if part:
        return "v" if part == 2 and cls.startswith("VSIB_") else "r"
    return domain(cls)


def _choice(form: InstructionForm, general: tuple[int, ...]) -> list[int]:
    """A register number per slot of the encoding, different ones in each register file."""
    assert form.encoding is not None
    taken: dict[str, int] = {}
    result = []
    for slot, patterns in zip(form.encoding.slots, form.encoding.scatter, strict=True):
        file = _file_of(form, slot.operand, slot.part)
        pool = general if file == "r" else NUMBERS.get(file, (1, 2, 3))
        pool = pool if len(patterns) > 1 else (0,)
        number = pool[taken.get(file, 0) % len(pool)]
        taken[file] = taken.get(file, 0) + 1
        block = form.operands[slot.operand].fixed in BLOCKS and not slot.part
        result.append(4 * number if block else number)
    return result


class Sample:
    """Machine code of a form and the registers in it."""

    def __init__(self, form: InstructionForm) -> None:
        for general in (NUMBERS["r"], *FALLBACKS):
            self.form, self.numbers = form, _choice(form, general)
            try:
                self.code = encode(form, self.numbers)
            except ValueError:
                continue
            return
        raise ValueError(f"{form.id} cannot be encoded")

    def register(self, node: Node) -> str:
        """LLVM's name of the widest register around the one of a source or target."""
        if node.part == "flag":
            return "DF" if node.flag == "DF" else "EFLAGS"
        assert self.form.encoding is not None
        part = {"address": 1, "index": 2}.get(node.part, 0)
        for slot, number in zip(self.form.encoding.slots, self.numbers, strict=True):
            if (slot.operand, slot.part) == (node.operand, part):
                return _widest(_file_of(self.form, slot.operand, part), number)
        op = self.form.operands[node.operand]
        try:
            cls, number = register_number(op.fixed or op.name)
        except KeyError:
            return ""
        return _widest(domain(cls), number)


def _widest(file: str, number: int) -> str:
    if file == "h":
        return register_name("R64", number - 4)
    cls = {"r": "R64", "v": "ZMM", "k": "K", "m": "MM"}.get(file)
    return register_name(cls, number) if cls else f"ST{number}"


def samples() -> Iterator[Sample]:
    """One per form that can be encoded."""
    for form in load_table("x86-64"):
        if form.encoding is not None:
            yield Sample(form)


def places(sample: Sample, record: dict[str, Any]) -> list[tuple[str, int, list[int]]]:
    """(`source->target`, number of the write, numbers of the reads) of the pairs that LLVM knows.

    The x87 stack is no operand in LLVM's instructions: the first write, of the status word, has the latency.
    """
    uses, defs = _reads(record), _writes(record)
    result = []
    for pair in pairs(sample.form):
        if pair.excluded or "data" in (pair.source.part, pair.target.part):
            continue
        stack = "x" in (pair.source.domain, pair.target.domain)
        written = 0 if pair.target.domain == "x" else defs.get(sample.register(pair.target))
        read = _reading(sample, pair.source, uses) or _NEVER_LATE * stack
        if written is not None and read:
            result.append((f"{pair.source.name}->{pair.target.name}", written, read))
    return result


def _reading(sample: Sample, source: Node, uses: dict[str, list[int]]) -> list[int]:
    """Reads of a source; an index, which samples have in gathers alone, is two operands after its base."""
    if source.part == "index" and source.domain == "r":
        base = Node("", "address", "r", source.operand)
        return [use + 2 for use in uses.get(sample.register(base), ())]
    return uses.get(sample.register(source), [])


def _reads(record: dict[str, Any]) -> dict[str, list[int]]:
    """Numbers of the reads by register: explicit operands that are no results, then implicit ones."""
    found: dict[str, list[int]] = {}
    for number, register in enumerate(record["operands"][record["defs"] :]):
        if register:
            found.setdefault(register, []).append(number)
    for number, register in enumerate(record["reads"], record["explicit"]):
        found.setdefault(register, []).append(number)
    return found


def _writes(record: dict[str, Any]) -> dict[str, int]:
    """Number of the write by register."""
    written = [*record["operands"][: record["defs"]], *record["writes"]]
    return {register: number for number, register in reversed(list(enumerate(written))) if register}
