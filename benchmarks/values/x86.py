"""Where operands of x86-64 are, for `kernel.locations`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from cyclescope.isa.dataflow import Node, sources, targets
from cyclescope.isa.form import FLAGS, InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain, register_number
from cyclescope.kernel.block import Register
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import FIRST_WINDOW, SECOND_WINDOW, STACK_TOP
from cyclescope.kernel.x86_64.locations import X86
from cyclescope.kernel.x86_64.registers import (
    ALIAS,
    BASE,
    CONSTANT,
    MASK_ONES,
    VECTOR_CONSTANT,
    VECTOR_ONES,
    VECTOR_ZERO,
)
from cyclescope.measure.plan import Planner

_FIRST, _SECOND, _STACK = range(3)
_VECTORS = (X86.XMM, X86.YMM, X86.ZMM)
_OTHER = {"k": 6, "m": 6, "h": 7, "x": 6}  # registers that kernels rarely use
_NEAR = 0x1000  # bytes
_POINTERS = (1, 6, 7)  # RCX, RSI and RDI
_SIZES = {"block4": 4, "pair": 2}  # registers of operands that are several


class X86Places:
    """See `places.Places`."""

    isa = "x86-64"

    def __init__(self, planner: Planner) -> None:
        self._dialect = planner.dialect

    # --- places ------------------------------------------------------------------------------------

    def of(
        self, instruction: Instruction, node: Node, general: tuple[int, ...], written: bool
    ) -> Iterator[int]:
        """Locations of a node of an instruction."""
        if node.part == "flag":
            yield X86.FLAGS + FLAGS.index(node.flag)
            return
        op = instruction.form.operands[node.operand]
        if node.part == "data":
            yield self._area(op, general)
        elif node.part == "register":
            for register in self._registers(instruction, node.operand):
                yield from self._locations(register)
        else:
            yield from self._locations(self._of_address(instruction, node))

    def _of_address(self, instruction: Instruction, node: Node) -> Register:
        part = 1 if node.part == "address" else 2
        number = self._numbers(instruction).get((node.operand, part))
        kind = "v" if node.domain == "v" else "r"
        return kind, instruction.index or 0 if number is None else number

    def _area(self, op: Operand, general: tuple[int, ...]) -> int:
        pointer = general[register_number(op.fixed)[1]] if op.implicit and op.fixed else FIRST_WINDOW
        if abs(pointer - STACK_TOP) < _NEAR:
            return _STACK
        return _SECOND if abs(pointer - SECOND_WINDOW) < _NEAR else _FIRST

    def _numbers(self, instruction: Instruction) -> dict[tuple[int, int], int]:
        slots = instruction.form.encoding.slots if instruction.form.encoding else ()
        return {(slot.operand, slot.part): n for slot, n in zip(slots, instruction.registers, strict=True)}

    def _registers(self, instruction: Instruction, position: int) -> list[Register]:
        op = instruction.form.operands[position]
        number = self._numbers(instruction).get((position, 0))
        if number is None:
            number = register_number(op.fixed)[1]
        kind = domain(op.cls)
        if kind == "h":
            return [("r", number - 4)]
        return [(kind, number + n) for n in range(_SIZES.get(op.fixed, 1))]

    def _locations(self, register: Register) -> Iterator[int]:
        kind, number = register
        if kind == "v":
            yield from (first + number for first in _VECTORS)
        first = {"r": X86.GENERAL, "k": X86.MASK, "m": X86.X87, "x": X86.X87}.get(kind)
        if first is not None:
            yield first + number

    def element(self, form: InstructionForm) -> str:
        """The type of the values that a form works on."""
        return form.element

    def data(self, form: InstructionForm) -> tuple[list[Node], list[Node]]:
        """Sources that are data, and targets, of instances of a form."""

        def is_data(node: Node) -> bool:
            return node.part in ("data", "flag") or (
                node.part == "register" and node.domain in "rvkmhx" and not self._is_mask(form, node.operand)
            )

        return [n for n in sources(form) if is_data(n)], [n for n in targets(form) if is_data(n)]

    def _is_mask(self, form: InstructionForm, position: int) -> bool:
        return "masked" in form.attributes and form.operands[position].cls == "K" and position == 1

    # --- what has to stay --------------------------------------------------------------------------

    def steady(
        self, tested: Instruction, body: Sequence[Instruction], general: tuple[int, ...]
    ) -> Iterator[int]:
        """Masks, and registers that kernels take for constants."""
        form = tested.form
        for position, op in enumerate(form.operands):
            mask = self._is_mask(form, position) or ("vsib" in form.attributes and op.cls == "K")
            if mask and op.is_register:
                for register in self._registers(tested, position):
                    yield from self._locations(register)
        roles = [("r", n) for n in (ALIAS, BASE, CONSTANT)]
        roles += [("v", n) for n in (VECTOR_ONES, VECTOR_ZERO, VECTOR_CONSTANT)] + [("k", MASK_ONES)]
        reads = set().union(*[self._dialect.read(i.form, i.registers) for i in body if i.form is not form])
        for register in roles:
            if register in reads:
                yield from list(self._locations(register))[:1]

    def kept(self, tested: Instruction) -> Iterator[int]:
        """Registers of addresses, and fixed ones, which count or point: other values lead nowhere."""
        form = tested.form
        for slot, number in zip(form.encoding.slots if form.encoding else (), tested.registers, strict=True):
            if slot.part:
                vector = form.operands[slot.operand].cls.startswith("VSIB_") and slot.part == 2
                yield from self._locations(("v" if vector else "r", number))
        if tested.index is not None:
            yield from self._locations(("r", tested.index))
        if not form.attributes.isdisjoint(("rep", "repne")):
            yield from (X86.GENERAL + number for number in _POINTERS)

    def numbers(
        self, tested: Instruction, general: tuple[int, ...]
    ) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Element type, locations and bytes of every number that an instance reads from registers."""
        form = tested.form
        for position, op in enumerate(form.operands):
            wanted = op.is_register and op.read and domain(op.cls) in ("r", "v") and op.width
            if wanted and not self._is_mask(form, position) and not (op.write and form.element != op.element):
                found = tuple(
                    n for register in self._registers(tested, position) for n in self._locations(register)
                )
                element = op.element or (form.element if domain(op.cls) == "v" else "")
                yield element, tuple(sorted(found)), op.width // 8

    # --- kernels -----------------------------------------------------------------------------------

    def setup(self, kernel: Kernel) -> bytes:
        """What runs once before."""
        return kernel.setup

    def memory(self, body: Sequence[Instruction]) -> bool:
        """Whether a kernel may touch memory."""
        return any(op.is_memory for made in body for op in made.form.operands)

    def alternates(self, helper: Instruction, body: Sequence[Instruction]) -> tuple[bytes, ...]:
        """A helper instruction's code with one other register or constant each."""
        form, found = helper.form, []
        slots = form.encoding.slots if form.encoding else ()
        for place, slot in enumerate(slots):
            op = form.operands[slot.operand]
            if slot.part or op.write:
                continue
            others = list(helper.registers)
            others[place] = _OTHER.get(domain(op.cls), 8)
            with suppress(ValueError):  # a register that the form cannot have
                found.append(msgspec.structs.replace(helper, registers=tuple(others)).code)
        values = helper.immediates or ()
        for place in range(len(values)):
            changed = (*values[:place], values[place] ^ 3, *values[place + 1 :])
            found.append(msgspec.structs.replace(helper, immediates=changed).code)
        return tuple(code for code in found if len(code) == len(helper.code))
