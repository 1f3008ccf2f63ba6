"""What the operands of a form are in a latency chain: registers, places, and how to cut them off."""

from __future__ import annotations

from cyclescope.isa.dataflow import Node
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain, register_number
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place
from cyclescope.kernel.state import FIRST_WINDOW, SECOND_WINDOW
from cyclescope.kernel.x86_64.helpers.breakers import CONSTANT_VALUE
from cyclescope.kernel.x86_64.helpers.links import X86Helpers
from cyclescope.kernel.x86_64.registers import (
    ALIAS,
    VECTOR_CONSTANT,
    VECTOR_INDICES,
    VECTOR_ONES,
    X86RegisterRoles,
    physical,
)

ADDRESS_REGISTERS = {"RSI", "RDI", "RBX", "RAX"}  # of string instructions, XLAT, CLZERO, ...
MEMORY_WIDTHS = (8, 16, 32, 64, 128, 256, 512)


def is_vector_mask(form: InstructionForm, op: Operand) -> bool:
    """Whether a vector operand selects elements by its sign bits, so that it has to be all ones.

    The mask of AVX2 gathers and of VMASKMOV, VPMASKMOV and MASKMOVDQU.
    """
    if not op.is_register or op.cls not in ("XMM", "YMM"):
        return False
    if "vsib" in form.attributes:
        return "vex" in form.attributes and op.name == "op3"
    return "MASKMOV" in form.mnemonic and op.name == "op2"


class X86FormOperands:
    """Registers, places and dependency breaking of one form's operands in latency chains."""

    def __init__(self, form: InstructionForm, helpers: X86Helpers) -> None:
        self.form = form
        self.helpers = helpers
        self.roles = X86RegisterRoles(form)
        self.slots = form.encoding.slots if form.encoding else ()
        self.registers = self._assign()
        self._cuts = True
        self._rotates = False
        self._offset = 0  # bytes to the place that an instance updates, where instances rotate

    # --- registers -------------------------------------------------------------------------------

    def _assign(self) -> dict[tuple[int, int], int]:
        """A register for every slot: distinct, written ones from the chain pool."""
        numbers: dict[tuple[int, int], int] = {}
        taken: set[tuple[str, int]] = set()
        for slot in self.slots:
            op = self.form.operands[slot.operand]
            if slot.part == 1:
                numbers[slot.operand, 1] = self.roles.base
                continue
            if slot.part == 2 and not op.cls.startswith("VSIB_"):
                numbers[slot.operand, 2] = self.roles.index
                continue
            number = self._pick(op, slot.part, taken)
            numbers[slot.operand, slot.part] = number
            taken.add(self._physical(op, slot.part, number))
        return numbers

    def _physical(self, op: Operand, part: int, number: int) -> tuple[str, int]:
        return ("v", number) if part == 2 else physical(op, number)

    def _pick(self, op: Operand, part: int, taken: set[tuple[str, int]]) -> int:
        if part == 0 and not op.write and is_vector_mask(self.form, op):
            return VECTOR_ONES
        if part == 2:
            pool = [n for n in VECTOR_INDICES if ("v", n) not in taken]
        else:
            pools = self.roles.pool(op, "chain" if op.write else "chain_source")
            pool = pools + self.roles.pool(op, "chain")
        for number in pool:
            if self._physical(op, part, number) not in taken:
                return number
        raise Unmeasurable(f"no register left for {op.name}")

    def use(self, changes: dict[tuple[int, int], int] | None = None, index: bool = False) -> Use:
        """The form with the assigned registers, some of them changed."""
        numbers = self.registers | (changes or {})
        registers = tuple(numbers[s.operand, s.part] for s in self.slots)
        return Use(registers, self._offset, self.roles.index if index else None)

    # --- places ----------------------------------------------------------------------------------

    def place(self, node: Node, numbers: dict[tuple[int, int], int] | None = None) -> Place:
        """Where the value of a register, flag or data node is."""
        if node.part == "flag":
            return Place("flag", flag=node.flag)
        op = self.form.operands[node.operand]
        if node.part == "data":
            if op.width not in MEMORY_WIDTHS:
                raise Unmeasurable(f"no load or store of {op.width} bits to link {node.name}")
            indexed = self.form.mnemonic == "XLATB"  # by AL, which is a constant then
            offset = self._offset if node.operand == self.form.memory else 0
            return Place("mem", width=op.width, offset=CONSTANT_VALUE if indexed else offset)
        number = (numbers or self.registers).get((node.operand, 0))
        if number is None:
            number = register_number(op.fixed)[1] if op.fixed else 0
        kind = domain(op.cls)
        if kind == "h":
            number -= 4
        if kind == "x":
            number = self._x87_place(node, op)
        return Place(kind, number, min(op.width, self.helpers.widest) if kind == "v" else op.width)

    def _x87_place(self, node: Node, op: Operand) -> int:
        """Only ST(0) has links; 1 where the form has pushed it, or popped the old one."""
        if op.fixed != "ST0":
            raise Unmeasurable(f"no link to x87 register {op.name}")
        if self.form.x87_pops > 1:
            raise Unmeasurable("the form pops twice")
        return 1 if self.form.x87_pops else 0

    # --- breaking --------------------------------------------------------------------------------

    def breakers(self, source: Node, skip: Node | None = None) -> list[Instruction]:
        """Instructions that cut every dependency of the form but the one on `source`."""
        cut: list[Instruction] = []
        if not self._cuts:
            return cut
        for position, op in enumerate(self.form.operands):
            if not (op.read and op.write) or position == source.operand:
                continue
            if skip is not None and position == skip.operand:
                continue
            if op.is_register and self._is_other(op, source):
                cut.append(self._elsewhere(op))
            elif source.part == "data" and self._counts_loads(op):
                cut.append(self.helpers.make("MOV (R32, I32)", register_number(op.fixed)[1], immediates=(1,)))
            else:
                cut += self._break_operand(position, op)
        if self.form.flags_read and source.part != "flag":
            cut.append(self.helpers.flags_constant())
        return cut

    def _break_operand(self, position: int, op: Operand) -> list[Instruction]:
        if op.is_memory:
            return self._break_memory(op)
        if not op.is_register or op.name == "RSP":
            return []
        place = self.place(Node(op.name, "register", domain(op.cls), position))
        if place.kind in ("r", "h"):
            return [self._general_constant(op, place)]
        if place.kind == "v":
            constant = VECTOR_ONES if self._is_vector_mask(position) else VECTOR_CONSTANT
            return [self.helpers.vector_constant(place.number, constant, place.width)]
        if place.kind == "k":
            return [self.helpers.mask_constant(place.number)]
        return []

    def _is_vector_mask(self, position: int) -> bool:
        """Whether an operand is a vector that selects elements by their sign bits."""
        if position < 0:
            return False
        return is_vector_mask(self.form, self.form.operands[position])

    def _general_constant(self, op: Operand, place: Place) -> Instruction:
        if op.name in ADDRESS_REGISTERS and self._is_address(op):
            return self.helpers.constant_from(place.number, ALIAS)
        return self.helpers.constant(place.number)

    def _counts_loads(self, op: Operand) -> bool:
        """Whether an operand is how often the form loads, of which the last value stays: REP LODS."""
        repeats = not self.form.attributes.isdisjoint(("rep", "repne"))
        return repeats and self.form.mnemonic.startswith("LODS") and op.fixed in ("RCX", "ECX")

    def _is_other(self, op: Operand, source: Node) -> bool:
        """Whether a pointer leads to what is only read beside the source, or beside what a pointer leads to.

        In one place with it, the same would be compared with itself, or what is stored be loaded again.
        """
        memory = [o for o in self.form.operands if o.is_memory and o.implicit]
        if len(memory) < 2 or not (source.part == "data" or any(o.write for o in memory)):
            return False
        own = self.form.operands[source.operand] if source.operand >= 0 else None
        return any(o.fixed == op.fixed for o in memory if o is not own and not o.write)

    def _elsewhere(self, op: Operand) -> Instruction:
        """A pointer to the second window."""
        number = register_number(op.fixed)[1]
        distance = SECOND_WINDOW - FIRST_WINDOW
        return self.helpers.make("LEA_B_D32 (R64)", number, ALIAS, displacement=distance)

    def _is_address(self, op: Operand) -> bool:
        number = register_number(op.fixed)
        addresses = [o.fixed for o in self.form.operands if o.is_memory and o.implicit]
        return any(register_number(name)[1] == number[1] for name in addresses if name)

    def _break_memory(self, op: Operand) -> list[Instruction]:
        if op.implicit or self._rotates or op.width not in MEMORY_WIDTHS:
            return []
        return self.helpers.store_constant(op.width)

    def _uses_rax(self, source: Node) -> bool:
        """Whether RAX holds an operand other than the source, which the link overwrites."""
        in_slots = any(
            physical(self.form.operands[operand], number) == ("r", 0) and operand != source.operand
            for (operand, part), number in self.registers.items()
            if part == 0
        )
        return in_slots or any(
            op.fixed in ("RAX", "EAX", "AX", "AL", "AH") and position != source.operand
            for position, op in enumerate(self.form.operands)
        )
