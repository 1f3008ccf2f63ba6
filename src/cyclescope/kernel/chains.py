"""Latency chains: kernels whose critical path runs from one operand to another.

For a pair (source, target) the chain is: break what else the form reads and writes; the form; a link
from the target back to the source. Where source and target can be the same place there is no link
(self chain), or two instances pass the value to and fro (swap). `links` are the keys of the links on
the way, `count` how often the pair's latency occurs in one period.
"""

from __future__ import annotations

import msgspec

from cyclescope.isa.dataflow import Node, Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain, register_number
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import UNROLLED
from cyclescope.kernel.links import CONDITIONS, Helpers, Place
from cyclescope.kernel.registers import (
    ALIAS,
    TEMPORARY,
    VECTOR_CONSTANT,
    VECTOR_INDICES,
    VECTOR_ONES,
    VECTOR_ZERO,
    Roles,
    physical,
)

MASK_CONSTANT = VECTOR_ONES
ADDRESS_REGISTERS = {"RSI", "RDI", "RBX", "RAX"}  # of string instructions, XLAT, CLZERO, ...
ROTATION = 16  # places of read-modify-write chains, so that no load follows its own store
MEMORY_WIDTHS = (8, 16, 32, 64, 128, 256, 512)


class Use(msgspec.Struct, frozen=True):
    """The form under test with values; becomes an Instruction of each form of a signature."""

    registers: tuple[int, ...]
    displacement: int = 0
    index: int | None = None
    immediates: tuple[int, ...] | None = None


class Chain(msgspec.Struct, frozen=True):
    """Plan of one latency kernel."""

    source: str
    target: str
    variant: str
    items: tuple[Use | Instruction, ...]
    links: tuple[str, ...]
    count: int
    flags: int = 0
    note: str = ""


class Unmeasurable(Exception):
    """Why a pair has no chain (data, not an error: it is recorded with the pair)."""


def is_vector_mask(form: InstructionForm, op: Operand) -> bool:
    """Whether a vector operand selects elements by its sign bits, so that it has to be all ones.

    The mask of AVX2 gathers and of VMASKMOV, VPMASKMOV and MASKMOVDQU.
    """
    if not op.is_register or op.cls not in ("XMM", "YMM"):
        return False
    if "vsib" in form.attributes:
        return "vex" in form.attributes and op.name == "op3"
    return "MASKMOV" in form.mnemonic and op.name == "op2"


class ChainBuilder:
    """Builds the chains of one form; forms with the same signature share them."""

    def __init__(self, form: InstructionForm, helpers: Helpers) -> None:
        self.form = form
        self.helpers = helpers
        self.roles = Roles(form)
        self.slots = form.encoding.slots if form.encoding else ()
        self.registers = self._assign()
        self._rotates = False

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
        return Use(registers, 0, self.roles.index if index else None)

    # --- places ----------------------------------------------------------------------------------

    def place(self, node: Node, numbers: dict[tuple[int, int], int] | None = None) -> Place:
        """Where the value of a register, flag or data node is."""
        if node.part == "flag":
            return Place("flag", flag=node.flag)
        op = self.form.operands[node.operand]
        if node.part == "data":
            if op.width not in MEMORY_WIDTHS:
                raise Unmeasurable(f"no load or store of {op.width} bits to link {node.name}")
            return Place("mem", width=op.width)
        number = (numbers or self.registers).get((node.operand, 0))
        if number is None:
            number = register_number(op.fixed)[1] if op.fixed else 0
        kind = domain(op.cls)
        if kind == "h":
            number -= 4
        if kind == "x":
            number = self._x87_place(node, op)
        return Place(kind, number, op.width)

    def _x87_place(self, node: Node, op: Operand) -> int:
        """Only ST(0) has links; 1 where the form has pushed it, or popped the old one."""
        if op.fixed != "ST0":
            raise Unmeasurable(f"no link to x87 register {op.name}")
        moves = [int(a[3:]) for a in self.form.attributes if a.startswith(("x87+", "x87-"))]
        if moves and abs(moves[0]) > 1:
            raise Unmeasurable("the form pops twice")
        return 1 if moves else 0

    # --- breaking --------------------------------------------------------------------------------

    def breakers(self, source: Node, skip: Node | None = None) -> list[Instruction]:
        """Instructions that cut every dependency of the form but the one on `source`."""
        cut: list[Instruction] = []
        for position, op in enumerate(self.form.operands):
            if not (op.read and op.write) or position == source.operand:
                continue
            if skip is not None and position == skip.operand:
                continue
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
            return [self.helpers.vector_constant(place.number, constant, op.width)]
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

    def _is_address(self, op: Operand) -> bool:
        return any(o.is_memory and o.implicit and o.fixed == op.fixed for o in self.form.operands)

    def _break_memory(self, op: Operand) -> list[Instruction]:
        if op.implicit or self._rotates or op.width not in MEMORY_WIDTHS:
            return []
        return self.helpers.store_constant(op.width)

    # --- chains ----------------------------------------------------------------------------------

    def chains(self, pair: Pair) -> list[Chain]:
        """The chains of a pair, the best first. Raises Unmeasurable with the reason."""
        if pair.excluded:
            raise Unmeasurable(pair.excluded)
        if self.form.mnemonic in ("LEAVE", "ENTER"):
            raise Unmeasurable("a chain would move the stack pointer away")
        if pair.source.part in ("address", "index"):
            return [self._address_chain(pair)]
        chain = self._self_chain(pair) or self._same_register(pair) or self._swap(pair)
        if chain is None:
            return [self._linked(pair)]
        return [chain, *self._bypass(pair, chain)]

    def _chain(
        self, pair: Pair, variant: str, items: list[Use | Instruction], links: tuple[str, ...], count: int
    ) -> Chain:
        flags = UNROLLED if pair.source.part == "flag" and not links else 0
        return Chain(pair.source.name, pair.target.name, variant, tuple(items), links, count, flags)

    def _self_chain(self, pair: Pair) -> Chain | None:
        """Source and target are the same place already."""
        if pair.source != pair.target:
            return None
        return self._chain(pair, "self", [*self.breakers(pair.source), self.use()], (), 1)

    def _slot(self, node: Node) -> tuple[int, int] | None:
        key = (node.operand, 0)
        return key if key in self.registers else None

    def _compatible(self, pair: Pair) -> bool:
        """Whether source and target may be one register."""
        s, t = pair.source, pair.target
        if s.part != "register" or t.part != "register" or s.domain != t.domain:
            return False
        if "unique_registers" in self.form.attributes:
            return False
        a, b = self.form.operands[s.operand], self.form.operands[t.operand]
        return a.cls == b.cls or s.domain == "v" or (s.domain == "r" and not self.roles.narrow)

    def _is_move(self) -> bool:
        return self.form.mnemonic.startswith(("MOV", "VMOV", "KMOV", "XCHG"))

    def _same_register(self, pair: Pair) -> Chain | None:
        """One register for a read source and a written-only target."""
        s, t = pair.source, pair.target
        if not self._compatible(pair) or self.form.operands[t.operand].read or self._is_move():
            return None
        if self.form.operands[s.operand].write:
            return None
        slot, other = self._slot(s), self._slot(t)
        if slot is not None and other is not None:
            changes = {slot: self.registers[other]}
        elif slot is not None:
            changes = {slot: self.place(t).number}
        elif other is not None:
            changes = {other: self.place(s).number}
        else:
            return None
        if not self._allowed(changes):
            return None
        return self._chain(pair, "same register", [*self.breakers(s), self.use(changes)], (), 1)

    def _allowed(self, changes: dict[tuple[int, int], int]) -> bool:
        for (operand, part), number in changes.items():
            op = self.form.operands[operand]
            if part == 0 and op.cls == "R8l" and self.roles.narrow and number > 3:
                return False
            if op.fixed in ("block4", "pair"):
                return False
        return True

    def _swap(self, pair: Pair) -> Chain | None:
        """Two instances with source and target exchanged, the target's old value broken."""
        s, t = pair.source, pair.target
        slot, other = self._slot(s), self._slot(t)
        if not self._compatible(pair) or slot is None or other is None:
            return None
        if self.form.operands[s.operand].cls != self.form.operands[t.operand].cls:
            return None
        if self.form.operands[s.operand].write:
            return None
        forward, back = self.registers[slot], self.registers[other]
        if self.roles.narrow and forward == 3 and self.roles.pool(self.form.operands[t.operand], "chain"):
            forward = next(n for n in (0, 1, 2) if n != back)
        first = {slot: forward, other: back}
        second = {slot: back, other: forward}
        items: list[Use | Instruction] = []
        for changes in (first, second):
            items += self._break_target(pair, changes[other])
            items += self.breakers(s, skip=t)
            items.append(self.use(changes))
        return self._chain(pair, "swap", items, (), 2)

    def _break_target(self, pair: Pair, number: int) -> list[Instruction]:
        op = self.form.operands[pair.target.operand]
        if not op.read:
            return []
        kind = domain(op.cls)
        if kind == "h":
            return [self.helpers.constant(number - 4)]
        if kind == "r":
            return [self.helpers.constant(number)]
        if kind == "v":
            return [self.helpers.vector_constant(number, VECTOR_CONSTANT, op.width)]
        return [self.helpers.mask_constant(number)] if kind == "k" else []

    def _bypass(self, pair: Pair, chain: Chain) -> list[Chain]:
        """The same chain with an integer and with a floating-point identity behind the form."""
        op = self.form.operands[pair.target.operand] if pair.target.operand >= 0 else None
        plain = self.form.attributes.isdisjoint(("masked", "memory", "rounding", "sae", "broadcast"))
        if op is None or pair.target.domain != "v" or not plain or chain.count != 1:
            return []
        if not self.helpers.has_bypass(op.width):
            return []
        place = self.place(pair.target)
        return [
            msgspec.structs.replace(
                chain,
                variant=f"{kind} link",
                items=(*chain.items, self.helpers.bypass(place.number, op.width, kind)),
                links=(f"bypass.{kind}.{op.width}",),
            )
            for kind in ("integer", "fp")
        ]

    def _linked(self, pair: Pair) -> Chain:
        """Through a link from the target's place to the source's."""
        s, t = pair.source, pair.target
        target, source = self.place(t), self.place(s)
        if self._needs_value(s):
            return self._restoring(pair)
        if target.kind == "r" and source.kind == "r" and target.number == source.number:
            raise Unmeasurable("source and target are parts of one register")
        if target.flag == "AF" and self._uses_rax(s):
            raise Unmeasurable("AF is only readable through AH, and the form needs RAX")
        step = self.helpers.path(target, source)
        if step is None:
            raise Unmeasurable(f"no instruction carries a value from {t.name} back to {s.name}")
        instructions = list(step.instructions)
        if self._is_vector_mask(s.operand):
            instructions = [*instructions[:-1], self._onto_ones(target, source)]
        items: list[Use | Instruction] = [*self.breakers(s), self.use(), *instructions]
        if s.part == "flag":  # the loop counter destroys flags: they must not cross the body's end
            items = [instructions[-1], *self.breakers(s), self.use(), *instructions[:-1]]
        return self._chain(pair, "link", items, step.keys, 1)

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

    def _onto_ones(self, target: Place, source: Place) -> Instruction:
        """The mask again: all ones, depending on the result."""
        if target.kind != "v" or not self.helpers.avx:
            raise Unmeasurable("no vector to make a mask of")
        name = "VORPS (YMM, YMM, YMM)" if source.width == 256 else "VPOR (XMM, XMM, XMM)"
        return self.helpers.make(name, source.number, target.number, MASK_CONSTANT)

    # --- chains longer than the throughput -------------------------------------------------------

    def filled(self, pair: Pair, count: int) -> Chain:
        """The pair's chain with `count` one-cycle instructions on its way.

        Needed where a form's throughput is longer than its latency: then the chain alone runs at
        the throughput. Raises Unmeasurable where nothing can be put in.
        """
        s = pair.source
        at_end = (s.part == "register" and s.domain in ("r", "v", "k")) or s.domain == "v"
        if at_end and not self._needs_value(s):
            return self._filled_at_end(pair, count)
        filling = [self._fill(Place("r", TEMPORARY, 64))] * count
        back, keys = self.to_general(pair)
        explicit = s.part == "index" and (s.operand, 2) not in self.registers
        use = self.use(index=explicit)
        items: list[Use | Instruction] = [*self.breakers(s), use, *back, *filling]
        keys = (*keys, *["r>r"] * count)
        if s.part in ("address", "index") or self._needs_value(s):
            number = self._address_register(s) if s.part != "register" else self.place(s).number
            if s.part == "register" and self.form.operands[s.operand].write:
                items.append(self._general_constant(self.form.operands[s.operand], self.place(s)))
            items += self._xor_twice(number)
            return self._chain(pair, "filled", items, (*keys, "xor", "xor"), 1)
        step = self.helpers.path(Place("r", TEMPORARY, 64), self.place(s))
        if step is None:
            raise Unmeasurable(f"no instruction carries a value back to {s.name}")
        if s.part == "flag":
            items = [step.instructions[-1], *self.breakers(s), self.use(), *back, *filling]
            items += step.instructions[:-1]
        else:
            items += step.instructions
        return self._chain(pair, "filled", items, (*keys, *step.keys), 1)

    def _filled_at_end(self, pair: Pair, count: int) -> Chain:
        chain = self.chains(pair)[0]
        if chain.count > 1:
            raise Unmeasurable("a swapped chain is not filled")
        place = self.place(pair.source if chain.links or pair.source.part == "index" else pair.target)
        fill, key = self._fill_with_key(place)
        items = (*chain.items, *[fill] * count)
        return msgspec.structs.replace(
            chain, variant="filled", items=items, links=(*chain.links, *[key] * count)
        )

    def _fill_with_key(self, place: Place) -> tuple[Instruction, str]:
        return self._fill(place), {"r": "r>r", "k": "k>k"}.get(
            place.kind, f"bypass.integer.{max(place.width, 128)}"
        )

    def _fill(self, place: Place) -> Instruction:
        n = place.number
        if place.kind == "r":
            return self.helpers.make("MOVSXD (R64, R32)", n, n)
        if place.kind == "k":
            return self.helpers.make("KORQ (K, K, K)", n, n, n)
        if place.kind == "v":
            return self.helpers.bypass(n, max(place.width, 128), "integer")
        raise Unmeasurable(f"nothing fills a chain through {place.kind}")

    # --- sources whose value must not change -----------------------------------------------------

    def _needs_value(self, node: Node) -> bool:
        if node.part != "register" or node.domain != "r":
            return False
        op = self.form.operands[node.operand]
        if op.fixed and self._is_address(op):
            return True
        bit_string = self.form.mnemonic in ("BT", "BTS", "BTR", "BTC") and self.form.memory >= 0
        count = op.fixed in ("RCX", "ECX") and not self.form.attributes.isdisjoint(("rep", "repne"))
        insists = self.form.mnemonic in ("XLATB", "MOVDIR64B", "ENQCMD", "XGETBV", "RDPRU")
        return bit_string or count or insists

    def to_general(self, pair: Pair, offset: int = 0) -> tuple[list[Instruction], tuple[str, ...]]:
        """Instructions that bring the target into TEMPORARY, and their link keys."""
        temporary = Place("r", TEMPORARY, 64)
        target = msgspec.structs.replace(self.place(pair.target), offset=offset)
        step = self.helpers.path(target, temporary)
        if step is None:
            raise Unmeasurable(f"no instruction brings {pair.target.name} to a general register")
        return list(step.instructions), step.keys

    def _xor_twice(self, number: int) -> list[Instruction]:
        return [self.helpers.make("XOR_31 (R64, R64)", number, TEMPORARY)] * 2

    def _restoring(self, pair: Pair) -> Chain:
        """The source keeps its value: XORed twice with the target."""
        source = self.place(pair.source)
        op = self.form.operands[pair.source.operand]
        back, keys = self.to_general(pair)
        items: list[Use | Instruction] = [*self.breakers(pair.source), self.use(), *back]
        if op.write:
            items.append(self._general_constant(op, source))
        items += self._xor_twice(source.number)
        return self._chain(pair, "link", items, (*keys, "xor", "xor"), 1)

    # --- addresses -------------------------------------------------------------------------------

    def _address_chain(self, pair: Pair) -> Chain:
        s = pair.source
        if s.part == "index" and s.domain == "v":
            return self._vector_index(pair)
        op = self.form.operands[s.operand]
        self._rotates = op.read and op.write and not op.implicit
        copies = self._places() if self._rotates else 1
        items: list[Use | Instruction] = []
        links: tuple[str, ...] = ()
        for position in range(copies):
            found, links = self._one_address(pair, position * self._stride())
            items += found
        self._rotates = False
        return self._chain(pair, "link", items, links * copies, copies)

    def _stride(self) -> int:
        """Distance of the places that a read-modify-write instruction works on in turn."""
        encoding = self.form.encoding
        width = max(self.form.operands[self.form.memory].width // 8, 8)
        return encoding.displacement[2] * width if encoding and encoding.displacement else 0

    def _places(self) -> int:
        """As many places as an 8-bit displacement reaches."""
        encoding = self.form.encoding
        if encoding is None or encoding.displacement is None:
            return 1
        return min(ROTATION, 128 * encoding.displacement[2] // self._stride())

    def _one_address(self, pair: Pair, offset: int) -> tuple[list[Use | Instruction], tuple[str, ...]]:
        s, t = pair.source, pair.target
        number = self._address_register(s)
        explicit = s.part == "index" and (s.operand, 2) not in self.registers
        use = msgspec.structs.replace(self.use(index=explicit), displacement=offset)
        items: list[Use | Instruction] = [*self.breakers(s), use]
        if t.flag and t.flag != "AF":
            name = f"CMOV{CONDITIONS[t.flag]} (R64, R64)"
            return [*items, self.helpers.make(name, number, number)], (f"flag>r.{t.flag}",)
        if t.flag and self._uses_rax(s):
            raise Unmeasurable("AF is only readable through AH, and the form needs RAX")
        back, keys = self.to_general(pair, offset)
        if t.part == "data" and s.part != "register" and s.operand == t.operand:
            back = [self._same_address(i, number if explicit else None) for i in back]
        return [*items, *back, *self._xor_twice(number)], (*keys, "xor", "xor")

    def _same_address(self, load: Instruction, index: int | None) -> Instruction:
        """A load from the form's own address: it cannot overtake the store and be repeated."""
        form = load.form
        if form.memory < 0 or form.encoding is None:
            return load
        registers = tuple(
            self.roles.base if slot.part == 1 else n
            for slot, n in zip(form.encoding.slots, load.registers, strict=True)
        )
        return msgspec.structs.replace(load, registers=registers, index=index)

    def _address_register(self, node: Node) -> int:
        if node.part == "address":
            return self.registers[node.operand, 1]
        return self.registers.get((node.operand, 2), self.roles.index)

    def _vector_index(self, pair: Pair) -> Chain:
        """VSIB: index := result AND 0."""
        op = self.form.operands[pair.source.operand]
        width = {"VSIB_XMM": 128, "VSIB_YMM": 256, "VSIB_ZMM": 512}[op.cls]
        number = self.registers[pair.source.operand, 2]
        target = self.place(pair.target)
        middle = Place("v", 8, width)
        to_vector = self.helpers.path(target, middle) if target.kind != "v" else None
        if target.kind != "v" and to_vector is None:
            raise Unmeasurable(f"no instruction makes a vector index of {pair.target.name}")
        link = self.helpers.step(target if to_vector is None else middle, Place("v", number, width))
        if link is None:
            raise Unmeasurable(f"no vector link of {width} bits")
        items: list[Use | Instruction] = [*self.breakers(pair.source), self.use()]
        items += to_vector.instructions if to_vector else ()
        items += [
            msgspec.structs.replace(i, registers=(*i.registers[:-1], VECTOR_ZERO)) for i in link.instructions
        ]
        keys = (to_vector.keys if to_vector else ()) + link.keys
        return self._chain(pair, "link", items, keys, 1)
