"""What instructions need in addition because of their addresses, or of the stack pointer.

The costs of a form are those with a base register alone. The probe `addressing` found what other addresses
need in addition, and operations on the stack pointer; it measured general registers only, so nothing is known
of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.decode.block import Address, BlockInstruction
from cyclescope.analyze.decode.locations import STACK_POINTER, location_of
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set, mnemonics
from cyclescope.model.behaviour.published import Addressing, MoreWork
from cyclescope.model.facts import Addressed, AddressMade

_NOTHING = MoreWork()


def more_work(
    instruction: BlockInstruction, placed: PlacedCost, addressing: Addressing, loads: Set[tuple[int, ...]]
) -> MoreWork:
    """What an instruction of general registers needs more, nothing where nobody found that it does.

    `loads` are the ports, each a set, of what only loads.
    """
    if placed.form.vector_width:
        return _NOTHING
    if Addressed.POINTED in addressing.indexed and computes_with_stack_pointer(instruction):
        return addressing.indexed[Addressed.POINTED]
    for op, address in accessed(instruction):
        constant = op.write and not op.read and _has_constant(placed)
        stored = addressing.stored.get(op.width) if constant and address.base and not op.implicit else None
        if address.base and address.index:
            kind = _kind(op, placed, loads)
            more = addressing.indexed.get(kind, _NOTHING) if kind is not None else _NOTHING
            return more._replace(stored=stored is not None)
        if constant:
            more = addressing.constants.get(op.width, _NOTHING) if _is_stacked(op, address) else _NOTHING
            return more if stored is None else stored._replace(additions=stored.additions + more.additions)
    return _NOTHING


def later_by_address(instruction: BlockInstruction, addressing: Addressing) -> tuple[int, int]:
    """Cycles that results come later from its base, and from its index, than the form's own."""
    for op, at in accessed(instruction):
        if at.base and at.index and instruction.form and not op.cls.startswith("VSIB_"):
            always = at.base[1] in instruction_set(instruction.form.isa).registers.displaced
            return addressing.later.get(_made(at, always or at.is_moved), (0, 0))
    return 0, 0


def _made(at: Address, displaced: bool) -> AddressMade:
    if at.scale > 1:
        return AddressMade.SCALED_DISPLACED if displaced else AddressMade.SCALED
    return AddressMade.DISPLACED if displaced else AddressMade.INDEXED


def computes_with_stack_pointer(instruction: BlockInstruction) -> bool:
    """Whether the stack pointer is an operand, and not what an address is made of or what a move copies."""
    form = instruction.form
    if STACK_POINTER not in map(location_of, instruction.registers):
        return False
    if form is None or (form.memory < 0 and form.mnemonic in mnemonics("copies")):
        return False
    pairs = zip(form.operands, instruction.registers, strict=True)
    read = (register for op, register in pairs if op.is_register and op.read and not op.implicit)
    return any(location_of(register) == STACK_POINTER for register in read)


def has_index(instruction: BlockInstruction) -> bool:
    """Whether an address in memory is made of a base and an index."""
    return any(bool(address.base and address.index) for _, address in accessed(instruction))


def stores_by_index(instruction: BlockInstruction) -> bool:
    """Whether it stores to an address with an index."""
    return any(op.write and bool(address.index) for op, address in accessed(instruction))


def accessed(instruction: BlockInstruction) -> Iterator[tuple[Operand, Address]]:
    """Operands in memory with their addresses."""
    operands = instruction.form.operands if instruction.form is not None else ()
    for op, address in zip(operands, instruction.memory, strict=False):
        if op.is_memory and address is not None:
            yield op, address


def _kind(op: Operand, placed: PlacedCost, loads: Set[tuple[int, ...]]) -> Addressed | None:
    """What an instruction does to its operand in memory, None of one that only loads."""
    if op.write:
        return Addressed.UPDATE if op.read else Addressed.STORE
    works = any(one.ports and one.ports not in loads for one in placed.operations)
    return Addressed.OPERATION if works else None


def _is_stacked(op: Operand, address: Address) -> bool:
    return op.implicit or location_of(address.base) == STACK_POINTER


def _has_constant(placed: PlacedCost) -> bool:
    """Whether a form stores a constant: it reads no register that could be stored."""
    return any(op.kind == "immediate" for op in placed.form.operands)
