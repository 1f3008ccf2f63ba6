"""Chains and sequences of divisions and roots on AArch64 and RISC-V, whose time depends on the values.

The operands keep their values: a general register by XORing the result onto it twice, a vector by (result
AND 0) OR value.
"""

from __future__ import annotations

from cyclescope.isa.dataflow import Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.chain import Chain, Unmeasurable, Use, chain_of
from cyclescope.kernel.fixed_width.chains import ChainBuilder
from cyclescope.kernel.fixed_width.links import SCALABLE, Helpers
from cyclescope.kernel.fixed_width.streams import StreamBuilder
from cyclescope.kernel.fixed_width.values import integer_values, slow_values, with_integers, with_vectors
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY
from cyclescope.kernel.place import Place
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.stream import Stream


def operands_of(form: InstructionForm) -> tuple[int, int]:
    """Positions of dividend and divisor; the same where there is one source."""
    sources = [n for n, op in enumerate(form.operands) if op.is_register and op.read and not op.fixed]
    sources = [n for n in sources if form.operands[n].role != "mask"]
    return sources[0], sources[-1]


class IntegerDivision(ChainBuilder):
    """A division of general registers with fast or slow values."""

    def __init__(self, form: InstructionForm, helpers: Helpers, speed: str) -> None:
        super().__init__(form, helpers)
        self.speed = speed

    def chains(self, pair: Pair) -> list[Chain]:
        """One chain: both sources keep their value."""
        if pair.excluded:
            raise Unmeasurable(pair.excluded)
        source, target = self.place(pair.source), self.place(pair.target)
        if source.kind != "r" or target.kind != "r" or pair.source == pair.target:
            raise Unmeasurable("a division's operand that no value can be kept in")
        twice = [self.helpers.xor(source.number, target.number)] * 2
        items: list[Use | Instruction] = [*self.breakers(pair.source), self.use(), *twice]
        return [chain_of(pair, self.speed, items, ("xor", "xor"), 1)]

    def unbroken(self, pair: Pair) -> Chain | None:
        """None: what is cut keeps its value."""
        return None

    def state(self, start: MachineState) -> MachineState:
        """With the class's values."""
        numbers = tuple(self.registers(n)[0][1] for n in operands_of(self.form))
        return with_integers(start, (numbers[0], numbers[-1]), integer_values(self.form, self.speed))


class SlowDivision(ChainBuilder):
    """A floating-point division or root with slow values."""

    def chains(self, pair: Pair) -> list[Chain]:
        """One chain: the source is brought back to its value."""
        if pair.excluded or pair.source.part != "register" or pair.target.part != "register":
            raise Unmeasurable(pair.excluded or "no chain with slow values")
        source, target = self.place(pair.source), self.place(pair.target)
        if source.kind != target.kind or source.kind not in ("v", "f"):
            raise Unmeasurable("no chain with slow values")
        dividend, divisor = operands_of(self.form)
        second = pair.source.operand == divisor != dividend
        back, keys = self.helpers.again(target, source, self.pools.scratch if second else self.pools.value)
        cut = [] if pair.source.operand == pair.target.operand else self._restored_target(pair)
        return [chain_of(pair, "slow", [*cut, self.use(), *back], keys, 1)]

    def _restored_target(self, pair: Pair) -> list[Instruction]:
        """A target that is read is the other operand: it has to have its value again, too."""
        return (
            self.helpers.cut(self.place(pair.target)) if self.form.operands[pair.target.operand].read else []
        )

    def unbroken(self, pair: Pair) -> Chain | None:
        """None: what is cut keeps its value."""
        return None

    def state(self, start: MachineState) -> MachineState:
        """With slow values in all registers."""
        dividend, divisor = slow_values(self.form)
        first, second = operands_of(self.form)
        numbers = () if first == second else tuple(n for _, n in self.registers(second))
        return with_vectors(start, self.form, (*numbers, self.pools.scratch), dividend, divisor)


class DivisionStreams(StreamBuilder):
    """Sequences with fast or slow values; operands that are written get theirs again."""

    def __init__(self, form: InstructionForm, helpers: Helpers, speed: str) -> None:
        super().__init__(form, helpers)
        self.speed = speed

    def streams(self) -> list[Stream]:
        """One sequence."""
        uses = self.instances(12)
        items: list[Use | Instruction] = []
        for use in uses:
            items += [*self._restored(use), use]
        return [Stream(self.speed, len(uses), tuple(items), len(uses), CANARY)]

    def _restored(self, use: Use) -> list[Instruction]:
        result: list[Instruction] = []
        for (operand, field), value in zip(self.fields, use.registers, strict=True):
            op = self.form.operands[operand]
            if op.read and op.write:
                kind, number = self.found(field)[value][0]
                result += self.helpers.cut(Place(kind, number, op.width or SCALABLE))
        return result

    def state(self, start: MachineState) -> MachineState:
        """With the class's values in what is only read."""
        use = self.instances(1)[0]
        values = {operand: self.found(field)[value] for (operand, field), value in
                  zip(self.fields, use.registers, strict=True)}  # fmt: skip
        first, second = operands_of(self.form)
        if values.get(first, (("", 0),))[0][0] == "r":
            numbers = (values[first][0][1], values[second][0][1])
            return with_integers(start, numbers, integer_values(self.form, self.speed))
        if self.speed == "fast":
            return start
        dividend, divisor = slow_values(self.form)
        divisors = () if first == second else tuple(n for _, n in values[second])
        return with_vectors(start, self.form, divisors, dividend, divisor)
