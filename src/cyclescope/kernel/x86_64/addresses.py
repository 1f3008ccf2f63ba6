"""Chains whose source has to keep its value: addresses, counts, dividends.

The result is brought to a general register and XORed twice onto the source.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cyclescope.isa.dataflow import Node, Pair
from cyclescope.kernel.chain import Chain, Unmeasurable, Use, chain_of
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place
from cyclescope.kernel.x86_64.helpers.links import CONDITIONS
from cyclescope.kernel.x86_64.operands import X86FormOperands
from cyclescope.kernel.x86_64.registers import TEMPORARY, VECTOR_ZERO

ROTATION = 16  # places of read-modify-write chains, so that no load follows its own store


class AddressChains(X86FormOperands):
    """Chains from an address, or another register that keeps its value, to a result."""

    def to_general(self, pair: Pair) -> tuple[list[Instruction], tuple[str, ...]]:
        """Instructions that bring the target into TEMPORARY, and their link keys."""
        step = self.helpers.path(self.place(pair.target), Place("r", TEMPORARY, 64))
        if step is None:
            raise Unmeasurable(f"no instruction brings {pair.target.name} to a general register")
        return list(step.instructions), step.keys

    def _xor_twice(self, number: int) -> list[Instruction]:
        return [self.helpers.make("XOR_31 (R64, R64)", number, TEMPORARY)] * 2

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

    def _restoring(self, pair: Pair) -> Chain:
        """The source keeps its value: XORed twice with the target."""
        source = self.place(pair.source)
        op = self.form.operands[pair.source.operand]
        back, keys = self.to_general(pair)
        items: list[Use | Instruction] = [*self.breakers(pair.source), self.use(), *back]
        if op.write:
            items.append(self._general_constant(op, source))
        items += self._xor_twice(source.number)
        return chain_of(pair, "link", items, (*keys, "xor", "xor"), 1)

    # --- addresses -------------------------------------------------------------------------------

    def _address_chain(self, pair: Pair) -> Chain:
        s = pair.source
        if s.part == "index" and s.domain == "v":
            return self._vector_index(pair)
        op = self.form.operands[s.operand]
        if op.read and op.write and not op.implicit:
            return self.in_turn(pair, self._places(), lambda: self._one_address(pair))
        return self._one_address(pair)

    def in_turn(self, pair: Pair, copies: int, one: Callable[[], Chain]) -> Chain:
        """A chain whose instances update so many places in turn, and in which nothing cuts memory."""
        offsets = [position * self._stride() for position in range(copies)]
        through = "data" in (pair.source.part, pair.target.part)  # then links go to each place, too
        self._rotates = True
        try:
            found = [self._with_offset(one, n) for n in offsets] if through else [one()]
        finally:
            self._rotates, self._offset = False, 0
        if not through:
            found = [_moved(found[0], n) for n in offsets]
        items = tuple(item for chain in found for item in chain.items)
        links = tuple(key for chain in found for key in chain.links)
        count = sum(chain.count for chain in found)
        return msgspec.structs.replace(found[0], items=items, links=links, count=count)

    def _with_offset(self, one: Callable[[], Chain], offset: int) -> Chain:
        self._offset = offset
        return one()

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

    def _one_address(self, pair: Pair) -> Chain:
        s, t = pair.source, pair.target
        number = self._address_register(s)
        explicit = s.part == "index" and (s.operand, 2) not in self.registers
        items: list[Use | Instruction] = [*self.breakers(s), self.use(index=explicit)]
        if t.flag and t.flag != "AF":
            name = f"CMOV{CONDITIONS[t.flag]} (R64, R64)"
            items.append(self.helpers.make(name, number, number))
            return chain_of(pair, "link", items, (f"flag>r.{t.flag}",), 1)
        if t.flag and self._uses_rax(s):
            raise Unmeasurable("AF is only readable through AH, and the form needs RAX")
        back, keys = self.to_general(pair)
        if t.part == "data" and s.part != "register" and s.operand == t.operand:
            back = [self._same_address(i, number if explicit else None) for i in back]
        items += [*back, *self._xor_twice(number)]
        return chain_of(pair, "link", items, (*keys, "xor", "xor"), 1)

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
        """VSIB: index := (result AND 0) OR 0, since what was loaded is no index."""
        op = self.form.operands[pair.source.operand]
        width = {"VSIB_XMM": 128, "VSIB_YMM": 256, "VSIB_ZMM": 512}[op.cls]
        number = self.registers[pair.source.operand, 2]
        target = self.place(pair.target)
        middle = Place("v", 8, width)
        to_vector = self.helpers.path(target, middle) if target.kind != "v" else None
        if target.kind != "v" and to_vector is None:
            raise Unmeasurable(f"no instruction makes a vector index of {pair.target.name}")
        last = target if to_vector is None else middle
        items: list[Use | Instruction] = [*self.breakers(pair.source), self.use()]
        items += to_vector.instructions if to_vector else ()
        items += self.helpers.again(last.number, number, VECTOR_ZERO, width)
        keys = (*(to_vector.keys if to_vector else ()), f"restore.{width}")
        return chain_of(pair, "link", items, keys, 1)


def _moved(chain: Chain, offset: int) -> Chain:
    """The chain with its instances at another place."""
    items = tuple(
        msgspec.structs.replace(item, displacement=offset) if isinstance(item, Use) else item
        for item in chain.items
    )
    return msgspec.structs.replace(chain, items=items)
