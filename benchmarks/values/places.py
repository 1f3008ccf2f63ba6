"""Where operands are: locations of registers, flags and memory for `kernel.locations`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.lib.taint import Marks
from benchmarks.values.x86 import X86Places
from cyclescope.isa.dataflow import Node, sources, targets
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.table import load_table
from cyclescope.kernel.aarch64.locations import A64
from cyclescope.kernel.block import Register
from cyclescope.kernel.differential import differential_of
from cyclescope.kernel.fixed_width.numbers import keeps_numbers
from cyclescope.kernel.fixed_width.registers import choices, holds_flags
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import FIRST_WINDOW, STACK_TOP
from cyclescope.measure.plan import Planner

_WINDOW = 0x1000
_VSETVLI_E8_M1 = 0x0C007FD7.to_bytes(4, "little")  # as the runner leaves it: e8, m1, the largest VL
_ALL_FLAGS = 15
FIRST, SECOND, STACK = range(3)


class Places:
    """Places of AArch64 and RISC-V."""

    def __init__(self, planner: Planner) -> None:
        self.pools = planner.dialect.helpers.pools  # type: ignore[attr-defined]
        self.isa = self.pools.isa
        self._differential = differential_of(load_table(self.isa))
        self._marks = Marks(self.pools, tuple(range(32)))

    # --- places ------------------------------------------------------------------------------------

    def of(
        self, instruction: Instruction, node: Node, general: tuple[int, ...], written: bool
    ) -> Iterator[int]:
        """Locations of a node of an instruction."""
        op = instruction.form.operands[node.operand]
        marks = Marks(self.pools, (*general, *[0] * 32)[:32])
        for kind, number in marks.places(instruction, node):
            if kind == "memory":
                yield _area(number)
            elif holds_flags(op, self.isa):
                yield from range(A64.FLAGS, A64.FLAGS + 4)
            else:
                yield from self._location((kind, number), op, written)

    def _location(self, register: Register, op: Operand | None, written: bool) -> Iterator[int]:
        yield from self._differential.locations(register, op, written)  # type: ignore[attr-defined]

    def data(self, form: InstructionForm) -> tuple[list[Node], list[Node]]:
        """Sources that are data, and targets, of instances of a form."""

        def is_data(node: Node) -> bool:
            op = form.operands[node.operand]
            plain = node.part in ("register", "data") and op.role != "mask" and op.file != "?"
            return plain or holds_flags(op, self.isa)

        found = [node for node in sources(form) if is_data(node)]
        return found, [node for node in targets(form) if is_data(node)]

    def element(self, form: InstructionForm) -> str:
        """The type of the values that a form works on."""
        return str(self._differential.element(form))  # type: ignore[attr-defined]

    # --- what has to stay --------------------------------------------------------------------------

    def steady(
        self, tested: Instruction, body: Sequence[Instruction], general: tuple[int, ...]
    ) -> Iterator[int]:
        """Masks, and registers that kernels take for constants."""
        pools = self.pools
        roles: list[Register] = [
            *[("r", n) for n in (pools.base, pools.alias, pools.zero, pools.constant)],
            *[("v", n) for n in (pools.ones, pools.nought, pools.value) if pools.ones >= 0],
        ]
        if pools.isa == "aarch64":
            roles += [("p", number) for number in pools.truths]
        else:
            roles += [("r", 26), ("f", 27)]
        reads = {r for i in body for r in self._all(i, False)}
        for register in roles:
            if register in reads:
                yield from self._location(register, None, True)
        for position, op in enumerate(tested.form.operands):
            if op.role == "mask" and not op.write:
                node = Node(op.name, "register", op.file, position)
                yield from self.of(tested, node, general, True)

    def _all(self, instruction: Instruction, written: bool) -> Iterator[Register]:
        for position, op in enumerate(instruction.form.operands):
            if op.is_register and (op.write if written else op.read):
                yield from self._marks.places(instruction, Node(op.name, "register", op.file, position))

    def kept(self, tested: Instruction) -> Iterator[int]:
        """Vectors of indices: other values lead nowhere."""
        for position, op in enumerate(tested.form.operands):
            if op.role in ("index", "base") and op.is_register:
                for register in self._marks.places(tested, Node(op.name, "register", op.file, position)):
                    yield from self._location(register, op, True)

    def numbers(
        self, tested: Instruction, general: tuple[int, ...]
    ) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Element type, locations and bytes of every number that an instance reads from registers."""
        form = tested.form
        for position, op in enumerate(form.operands):
            if (
                op.is_register
                and op.read
                and op.role not in ("mask", "base", "index")
                and op.file in ("r", "v", "f")
                and (not op.write or keeps_numbers(form))
                and "CVTF" not in form.mnemonic  # integers, and what a number is merged into
            ):
                node = Node(op.name, "register", op.file, position)
                found = tuple(sorted(set(self.of(tested, node, general, False))))
                if found:
                    yield (
                        op.element or (self.element(form) if op.file in ("v", "f") else ""),
                        found,
                        op.width // 8,
                    )

    # --- kernels -----------------------------------------------------------------------------------

    def setup(self, kernel: Kernel) -> bytes:
        """What runs once before: RISC-V's runner sets a configuration itself."""
        vectors = self.isa == "riscv64" and kernel.state.vector_level > 1
        return (_VSETVLI_E8_M1 if vectors else b"") + kernel.setup

    def memory(self, body: Sequence[Instruction]) -> bool:
        """Whether a kernel may touch memory."""
        return any(op.is_memory for made in body for op in made.form.operands)

    def alternates(self, helper: Instruction, body: Sequence[Instruction]) -> tuple[bytes, ...]:
        """A helper instruction's code with one other field each."""
        taken = {r for i in body for w in (True, False) for r in self._all(i, w)} | self.pools.reserved
        fields = helper.form.bits.fields if helper.form.bits else ()
        registers, immediates = list(helper.registers), list(helper.immediates or ())
        found: list[bytes] = []
        counts = {True: 0, False: 0}
        for field in fields:
            place, counts[field.is_register] = counts[field.is_register], counts[field.is_register] + 1
            op = helper.form.operands[field.operand]
            if op.write or op.role in ("base", "offset"):
                continue
            if field.is_register:
                known = choices(field, self.isa)
                value = next((v for v, rs in known.items() if rs and taken.isdisjoint(rs)), None)
            else:
                value = next(
                    (v for v in (3, 1, 5) if v in field.values.allowed and v != immediates[place]), None
                )
            if value is None:
                continue
            values = registers if field.is_register else immediates
            kept, values[place] = values[place], value
            found.append(msgspec.structs.replace(
                helper, registers=tuple(registers), immediates=tuple(immediates)).code)  # fmt: skip
            values[place] = kept
        return tuple(found)


AnyPlaces = Places | X86Places


def places_of(planner: Planner) -> AnyPlaces:
    """The places of a planner's instruction set."""
    return Places(planner) if hasattr(planner.dialect.helpers, "pools") else X86Places(planner)  # type: ignore[attr-defined]


def _area(address: int) -> int:
    if abs(address - STACK_TOP) < _WINDOW:
        return STACK
    return FIRST if abs(address - FIRST_WINDOW) < _WINDOW else SECOND
