"""Chains and sequences of divisions and square roots, whose time depends on the values.

The operands are brought back to the dividend and divisor before every instance, depending on the
previous result: (result AND 0) OR value for vectors, value XOR result XOR result for registers.
"""

from __future__ import annotations

from cyclescope.isa.dataflow import Node, Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain
from cyclescope.kernel.chain import Chain, Unmeasurable, Use, chain_of
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY
from cyclescope.kernel.place import Place
from cyclescope.kernel.stream import Stream
from cyclescope.kernel.x86_64.chains import X86ChainBuilder
from cyclescope.kernel.x86_64.helpers.links import X86Helpers
from cyclescope.kernel.x86_64.registers import TEMPORARY, VECTOR_CONSTANT
from cyclescope.kernel.x86_64.streams import X86StreamBuilder
from cyclescope.kernel.x86_64.values import DIVISOR, DIVISOR_CONSTANT, DIVISOR_VECTOR, HIGH_HALF, LOW_HALF


class SlowDivision(X86ChainBuilder):
    """Vector division or root with slow values."""

    def _pick(self, op: Operand, part: int, taken: set[tuple[str, int]]) -> int:
        if part == 0 and domain(op.cls) == "v" and not op.write:
            reads = [o for o in self.form.operands if domain(o.cls) == "v" and o.is_register and not o.write]
            if op is reads[-1] and self.form.memory < 0:
                return DIVISOR_VECTOR
            return 11
        return super()._pick(op, part, taken)

    def _value(self, node: Node) -> int:
        """The register that holds what `node` has to hold."""
        number = self.registers.get((node.operand, 0))
        if node.part == "data" or number == DIVISOR_VECTOR:
            return DIVISOR_CONSTANT
        return VECTOR_CONSTANT

    def chains(self, pair: Pair) -> list[Chain]:
        """One chain with slow values; nothing for pairs whose source is not a vector."""
        if pair.excluded:
            raise Unmeasurable(pair.excluded)
        s, t = pair.source, pair.target
        if s.part in ("address", "index"):
            return [self._slow(self._address_chain(pair))]
        if t.domain != "v" or s.domain not in ("v", "mem", "k"):
            raise Unmeasurable("no chain that keeps the slow values")
        if s.domain == "k":
            return [self._slow(self._linked(pair))]
        return [self._slow(self.restored(pair, self._value(s)))]

    def _slow(self, chain: Chain) -> Chain:
        return Chain(chain.source, chain.target, "slow", chain.items, chain.links, chain.count, chain.flags)


class X86IntegerDivision(X86ChainBuilder):
    """DIV and IDIV: dividend and divisor are restored for every instance."""

    def __init__(self, form: InstructionForm, helpers: X86Helpers, speed: str) -> None:
        super().__init__(form, helpers)
        self.speed = speed

    def _pick(self, op: Operand, part: int, taken: set[tuple[str, int]]) -> int:
        return self.roles.pool(op, "chain")[0]  # holds the divisor

    def _general_constant(self, op: Operand, place: Place) -> Instruction:
        return self.helpers.constant_from(
            place.number, {0: LOW_HALF, 2: HIGH_HALF}.get(place.number, DIVISOR)
        )

    def chains(self, pair: Pair) -> list[Chain]:
        """One chain per pair and class of values."""
        if pair.excluded:
            raise Unmeasurable(pair.excluded)
        if pair.source.part in ("address", "index"):
            chain = self._address_chain(pair)
        elif pair.source.part == "data":
            chain = self._memory_divisor(pair)
        else:
            chain = self._restoring(pair)
        return [Chain(chain.source, chain.target, self.speed, chain.items, chain.links, chain.count)]

    def _memory_divisor(self, pair: Pair) -> Chain:
        back, keys = self.to_general(pair)
        width = self.form.operands[pair.source.operand].width
        other = 8
        store = self.helpers.step(Place("r", other, 64), Place("mem", width=width))
        if store is None:
            raise Unmeasurable("no store of this width")
        items: list[Use | Instruction] = [*self.breakers(pair.source), self.use(), *back]
        items += [self.helpers.constant_from(other, DIVISOR), *self._xor_twice(other)]
        items += store.instructions
        return chain_of(pair, "link", items, (*keys, "xor", "xor", *store.keys), 1)

    def to_general(self, pair: Pair) -> tuple[list[Instruction], tuple[str, ...]]:
        """The quotient or remainder in TEMPORARY."""
        target = self.place(pair.target)
        step = self.helpers.step(target, Place("r", TEMPORARY, 64))
        if step is None:
            raise Unmeasurable("the result is in no general register")
        return list(step.instructions), step.keys


class X86DivisionStreams(X86StreamBuilder):
    """Throughput with fast and slow values."""

    def __init__(self, form: InstructionForm, helpers: X86Helpers, speed: str) -> None:
        super().__init__(form, helpers)
        self.speed = speed

    def streams(self) -> list[Stream]:
        """One sequence per class of values, the operands restored before every instance."""
        uses = self.instances(8)
        items: list[Use | Instruction] = []
        for use in uses:
            items += [*self._restore(use), use]
        return [Stream(self.speed, len(uses), tuple(items), len(uses), CANARY)]

    def _restore(self, use: Use) -> list[Instruction]:
        if self.form.mnemonic in ("DIV", "IDIV"):
            high = [] if self.form.operands[0].width == 8 else [self.helpers.constant_from(2, HIGH_HALF)]
            return [self.helpers.constant_from(0, LOW_HALF), *high]
        result = []
        for slot, number in zip(self.slots, use.registers, strict=True):
            op = self.form.operands[slot.operand]
            if slot.part == 0 and op.read and op.write and domain(op.cls) == "v":
                result.append(self.helpers.vector_constant(number, self._dividend(), op.width))
        return result

    def _dividend(self) -> int:
        return self.roles.vector_sources[1]
