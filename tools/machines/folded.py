"""x86-64: what LLVM's latencies of forms that load say of their other operands, set right.

An operand that is not loaded waits for the operation, not for the load: what it takes is what it takes in the
form that has a register in place of the memory. On a measured core (Zen 5) 98 of 100 such pairs are equal.
LLVM says so by reads that come late, for some operands of some classes, with cycles that are the same for all
loads: in the models of Zen 1 and 4, of Sandy Bridge and others that makes operands of folded forms faster
than those of registers, and where a read has no such mark they wait for a load they do not need.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.table import load_table

_ENCODING = {"masked", "zeroing", "evex", "vex", "legacy", "xop", "lock"}  # attributes
_COUNTS = re.compile(r"V?PS(LL|RL|RA)[WDQ]")  # by a vector: LLVM has one latency for the count and the data
_BITS = re.compile(r"BT[SRC]?")  # by a register, which is a part of the address of memory
_X87 = re.compile(r"FI?(ADD|SUBR?|MUL|DIVR?)")
Latencies = Mapping[str, int]  # cycles by pair


class Register(NamedTuple):
    """The form with a register in place of the memory.

    `pair_names` has the pairs of the folded form by their names there. With `only_less`, its latencies are
    the most that those of the folded form can be, not the least. `writes` tells that the result goes to
    memory.
    """

    name: str
    pair_names: Mapping[str, str]
    only_less: bool
    writes: bool


def registers() -> dict[str, Register]:
    """The register form of every form that loads one of its operands and has one."""
    table = load_table("x86-64")
    by_name: dict[str, list[InstructionForm]] = defaultdict(list)
    for form in table:
        by_name[form.mnemonic].append(form)
    return {form.id: found for form in table if (found := _register(form, by_name))}


def _register(form: InstructionForm, by_name: Mapping[str, list[InstructionForm]]) -> Register | None:
    place = form.memory
    if place < 0 or not form.operands[place].read or form.operands[place].cls.startswith("VSIB_"):
        return None
    stack = _X87.fullmatch(form.mnemonic)
    if stack and "x87" in form.attributes:
        return Register(f"F{stack[1]} (ST0, STi)", {"ST0->ST0": "op1->op1"}, False, False)
    explicit = [op for op in form.operands if not op.implicit]
    if _BITS.fullmatch(form.mnemonic) and explicit[-1].is_register:
        return None
    other = next((g for g in by_name[form.mnemonic] if _is_register_form(form, g)), None)
    if other is None:
        return None
    counts = _COUNTS.fullmatch(form.mnemonic) is not None and explicit[-1].is_memory
    return Register(other.id, {}, counts, form.operands[place].write)


def _is_register_form(form: InstructionForm, other: InstructionForm) -> bool:
    """Whether a form differs by a register in place of memory only."""
    if other.memory >= 0 or len(other.operands) != len(form.operands):
        return False
    if form.attributes & _ENCODING != other.attributes & _ENCODING:
        return False
    pairs = zip(form.operands, other.operands, strict=True)
    return all(
        _fits(a, b) if place == form.memory else _signature(a) == _signature(b)
        for place, (a, b) in enumerate(pairs)
    )


def _fits(memory: Operand, register: Operand) -> bool:
    general = register.cls in ("R8l", "R16", "R32", "R64")
    return register.is_register and register.cls != "R8h" and (not general or register.width == memory.width)


def _signature(op: Operand) -> tuple[object, ...]:
    return op.kind, op.cls, op.implicit, op.read, op.write


def settled(
    names: Sequence[str], own: Iterable[int], known: Latencies, register: Register, load: int, in_order: bool
) -> list[int]:
    """Latencies of a folded form's pairs, given those of the register form in the same model.

    Where the folded form's class is faster altogether the two are not made of each other: LLVM's stay. `load`
    is the latency of a load; results of a form that writes to memory do not wait until that is written. A
    core that executes in order takes all operands at once: they may be slower than in the register form. Of
    one that does not, no result is there before the load (LLVM leaves it out of XADD on Alder Lake).
    """
    if not known:
        return list(own)
    largest = max(known.values())
    cycles = [
        load + largest if _is_loaded(name) and given < load and not in_order else given
        for name, given in zip(names, own, strict=True)
    ]
    if max(cycles, default=0) < largest:
        return cycles
    found = []
    for name, given in zip(names, cycles, strict=True):
        plain = known.get(register.pair_names.get(name, name))
        if _is_loaded(name):
            found.append(min(given, load + largest) if register.writes else given)
        elif plain is None:
            found.append(given)
        else:
            least, most = (0 if register.only_less else plain), (given if in_order else plain)
            found.append(max(min(given, most), least, 1))
    return found


def _is_loaded(pair: str) -> bool:
    return pair.partition("->")[0].endswith((".address", ".index"))
