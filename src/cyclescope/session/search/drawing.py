"""Blocks drawn at random: of instructions that compilers use and others, with few registers, to depend."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import msgspec

from cyclescope.errors import UsageError
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import domain
from cyclescope.isa.registry import instruction_set, mnemonics, unfit
from cyclescope.isa.table import Table
from cyclescope.kernel.instruction import Instruction
from cyclescope.model.machine import Core, FormCost, MachineModel
from cyclescope.model.ports import issue_throughput
from cyclescope.session.blocks import decoded

Drawn = tuple[Instruction, ...]

_LONGEST = 7  # instructions of a block: more hide each other
_USUAL = 0.7  # of the instructions are of forms that compilers use
_SLOWEST = 8.0  # cycles of a form alone: slower ones hide what is beside them
_MOST_SLOTS = 2.0  # of a form: microcode is a world of its own
_DATA = {"r": (0, 1, 2, 3, 8, 9), "h": (0, 1, 2, 3), "v": (0, 1, 2, 3, 4, 5), "k": (1, 2, 3), "m": (0, 1, 2)}
_BASES = (6, 7, 13, 14)  # registers that no drawn instruction writes, so that addresses stay what they are
_PLACES = 4  # of a base that accesses go to
_LEGACY, _VEX = "legacy", "vex"  # kinds of vector instructions, which compilers do not mix
_SIDES = (*4 * (_LEGACY, _VEX), "")  # which a block has none of: one of nine mixes them
_TRIES = 40  # draws until a form can be encoded with registers that it is given
_LEFT_OUT = frozenset(
    ("branch", "conditional_branch", "call", "return", "stack", "string", "x87", "serializing")
)


class BlockDraw:
    """Draws blocks of forms that a machine knows. `usual` are the ids of forms that compilers use."""

    def __init__(self, table: Table, machine: MachineModel, usual: Iterable[str], seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a sample
        known = [form for form in table if _is_drawn(form, machine.forms.get(form.id), machine.core)]
        if not known:
            raise UsageError(f"{machine.name} has no quick instruction whose throughput or ports are known")
        often = set(usual)
        self._usual = _by_side([form for form in known if form.id in often])
        self._all = _by_side(known)
        self._like: dict[object, list[InstructionForm]] = {}
        for form in known:
            self._like.setdefault(_kind(form, machine.forms[form.id]), []).append(form)
        self._machine = machine

    def blocks(self, count: int) -> list[Drawn]:
        """So many blocks, each another one."""
        found: dict[bytes, Drawn] = {}
        for _ in range(_TRIES * count):
            if len(found) == count:
                break
            left_out = self._random.choice(_SIDES)
            block = tuple(self._instruction(left_out) for _ in range(self._random.randint(1, _LONGEST)))
            found.setdefault(code_of(block), block)
        return list(found.values())

    def _instruction(self, left_out: str) -> Instruction:
        pools = self._all[left_out] or self._all[""]
        if self._usual[left_out] and self._random.random() < _USUAL:
            pools = self._usual[left_out]
        for _ in range(_TRIES):
            form = self._random.choice(pools[self._random.choice(list(pools))])
            made = self._with_registers(form)
            if made is not None:
                return made
        raise AssertionError("no form can be encoded")

    def _with_registers(self, form: InstructionForm) -> Instruction | None:
        encoding = form.encoding
        assert encoding is not None
        numbers = tuple(self._random.choice(_choices(form, n)) for n in range(len(encoding.slots)))
        scale = encoding.displacement[2] if encoding.displacement else 0
        made = Instruction(form, numbers, self._random.randrange(_PLACES) * max(scale, 8) if scale else 0)
        return made if _is_read_as_written(made) else None

    def like(self, one: Instruction, most: int) -> list[Instruction]:
        """The same with other forms that the model has the same costs of, a mnemonic each."""
        cost = self._machine.forms[one.form.id]
        others = [f for f in self._like[_kind(one.form, cost)] if f.mnemonic != one.form.mnemonic]
        self._random.shuffle(others)
        found: dict[str, Instruction] = {}
        for form in others:
            made = msgspec.structs.replace(one, form=form)
            if _is_read_as_written(made):
                found.setdefault(form.mnemonic, made)
            if len(found) == most:
                break
        return list(found.values())


def _is_read_as_written(one: Instruction) -> bool:
    """Whether it can be encoded, and its code is of no other form: reserved NOPs are those of MPX, too."""
    try:
        code = one.code
    except ValueError:
        return False
    return [read.form and read.form.id for read in decoded(code)] == [one.form.id]


def _by_side(forms: Sequence[InstructionForm]) -> dict[str, dict[str, list[InstructionForm]]]:
    """Forms by mnemonic, without those of each side, and all."""
    return {
        side: _by_mnemonic(form for form in forms if not side or _side(form) != side) for side in set(_SIDES)
    }


def _by_mnemonic(forms: Iterable[InstructionForm]) -> dict[str, list[InstructionForm]]:
    found: dict[str, list[InstructionForm]] = {}
    for form in forms:
        found.setdefault(form.mnemonic, []).append(form)
    return found


def _is_drawn(form: InstructionForm, cost: FormCost | None, core: Core) -> bool:
    """Whether a form is known, quick, and does nothing but compute, load and store."""
    if cost is None or form.encoding is None or cost.microcoded:
        return False
    throughput = _throughput(cost, core)
    if throughput is None or throughput > _SLOWEST:
        return False
    if form.mnemonic in mnemonics("exchanges"):  # whose registers are no sources of others alone
        return False
    if any(op.is_memory and (op.implicit or op.cls.startswith("VSIB")) for op in form.operands):
        return False  # by a register that others write; or one that may not be that of the result
    if unfit(form) or _LEFT_OUT & form.attributes or "locked" in form.attributes:
        return False
    if any(op.fixed and op.is_register and domain(op.cls) == "r" and op.write for op in form.operands):
        return False  # RDX of a multiplication and the like may be an address of another
    return (cost.slots or 1) <= _MOST_SLOTS


def _throughput(cost: FormCost, core: Core) -> float | None:
    """As measured, or what the ports of a model that was not measured allow."""
    if cost.throughput is not None:
        return cost.throughput
    allowed = issue_throughput(cost, core)
    return None if allowed is None else allowed[0]


def _side(form: InstructionForm) -> str:
    """Whether a form is of the vector instructions before AVX or since; "" for what has no vectors.

    Those of masks are of the latter: who uses masks has set the upper halves of vectors, too.
    """
    masks = any(op.is_register and domain(op.cls) == "k" for op in form.operands)
    if not form.vector_width and not masks:
        return ""
    return _VEX if {"vex", "evex"} & form.attributes else _LEGACY


def _kind(form: InstructionForm, cost: FormCost) -> object:
    """What is equal of forms that stand for each other: operands, ports, latencies."""
    operands = tuple((op.cls, op.read, op.write) for op in form.operands)
    return operands, cost.operations, tuple(sorted(cost.latencies.items())), cost.eliminated, cost.idiom


def _choices(form: InstructionForm, slot: int) -> Sequence[int]:
    assert form.encoding is not None
    where = form.encoding.slots[slot]
    if where.part:
        return _BASES
    op = form.operands[where.operand]
    return _DATA.get(op.file or domain(op.cls), (0, 1))


def code_of(block: Drawn) -> bytes:
    """The machine code of a block."""
    return b"".join(one.code for one in block)


def text_of_drawn(block: Drawn) -> str:
    """The block in one line."""
    return "; ".join(one.text for one in block)


def usual_forms(codes: Iterable[bytes], isa: str) -> set[str]:
    """Ids of the forms in machine code."""
    from cyclescope.session.blocks import decoded  # slow to import

    return {one.form.id for code in codes for one in decoded(code, isa) if one.form is not None}


# --- variants --------------------------------------------------------------------------------------


def padded(block: Drawn, least: int) -> Drawn:
    """The block with no instruction of fewer bytes: prefixes that say nothing are added."""
    return tuple(msgspec.structs.replace(one, padding=max(least - len(one.code), 0)) for one in block)


def apart(block: Drawn) -> Drawn | None:
    """The block without an instruction that reads what another writes; None where registers are too few."""
    free = {file: list(numbers) for file, numbers in _DATA.items()}
    read_only = {file: numbers.pop() for file, numbers in free.items()}
    made = []
    for one in block:
        assert one.form.encoding is not None
        numbers = []
        for number, slot in zip(one.registers, one.form.encoding.slots, strict=True):
            op = one.form.operands[slot.operand]
            file = op.file or domain(op.cls)
            if slot.part or file not in free:
                numbers.append(number)
            elif not op.write:
                numbers.append(read_only[file])
            elif free[file]:
                numbers.append(free[file].pop(0))
            else:
                return None
        made.append(msgspec.structs.replace(one, registers=tuple(numbers)))
    try:
        code_of(tuple(made))
    except ValueError:
        return None
    return tuple(made)


def elsewhere(block: Drawn) -> Drawn:
    """The block with accesses to memory that are all of another place: no load reads what was stored."""
    made, at = [], 0
    for one in block:
        encoding = one.form.encoding
        assert encoding is not None
        if encoding.displacement and any(op.is_memory for op in one.form.operands):
            changed = msgspec.structs.replace(one, displacement=at * max(encoding.displacement[2], 8))
            at += 1
            try:
                _ = changed.code  # raises where there is none
                made.append(changed)
                continue
            except ValueError:
                pass
        made.append(one)
    return tuple(made)


def is_fit(isa: str) -> bool:
    """Whether blocks of an instruction set can be drawn."""
    return not instruction_set(isa).fixed_width
