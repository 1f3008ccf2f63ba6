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
from cyclescope.kernel.fixed_width.numbers import has_vectors, is_integer_division
from cyclescope.kernel.fixed_width.streams import StreamBuilder
from cyclescope.kernel.fixed_width.values import (
    division_values,
    integer_values,
    with_divisions,
    with_integers,
)
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


class VectorDivision(ChainBuilder):
    """A division of vectors or floating-point numbers, or a root, whose sources keep slow or fast values."""

    def __init__(self, form: InstructionForm, helpers: Helpers, speed: str) -> None:
        super().__init__(form, helpers)
        self.speed = speed

    def chains(self, pair: Pair) -> list[Chain]:
        """One chain: the source is brought back to its value."""
        if pair.excluded or "register" not in (pair.source.part, pair.target.part):
            raise Unmeasurable(pair.excluded or "no chain that keeps the values of a division")
        if self.form.operands[pair.source.operand].role == "mask":
            chain = self._linked(pair)
            items, keys = list(chain.items), chain.links
        elif pair.source.domain == "r":
            items, keys = self._through_general(pair)
        else:
            items, keys = self._restored(pair)
        return [chain_of(pair, self.speed, items, keys, 1)]

    def _through_general(self, pair: Pair) -> tuple[list[Use | Instruction], tuple[str, ...]]:
        """A general register keeps its value: the result is XORed onto it twice."""
        back, keys = self.to_general(pair)
        twice = [self.helpers.xor(self.place(pair.source).number, self.pools.temporary)] * 2
        return [*self.breakers(pair.source), self.use(), *back, *twice], (*keys, "xor", "xor")

    def _restored(self, pair: Pair) -> tuple[list[Use | Instruction], tuple[str, ...]]:
        source, target = self.place(pair.source), self.place(pair.target)
        if source.kind != target.kind or source.kind not in ("v", "f"):
            raise Unmeasurable("no chain that keeps the values of a division")
        first, second = operands_of(self.form)
        is_second = pair.source.operand == second != first
        value = self.pools.scratch if is_second else self.pools.value
        back, keys = self.helpers.again(target, source, value)
        cut = [] if pair.source.operand == pair.target.operand else self._restored_target(pair)
        return [*cut, self.use(), *back], keys

    def _restored_target(self, pair: Pair) -> list[Instruction]:
        """A target that is read is the other operand: it has to have its value again, too."""
        return (
            self.helpers.cut(self.place(pair.target)) if self.form.operands[pair.target.operand].read else []
        )

    def unbroken(self, pair: Pair) -> Chain | None:
        """None: what is cut keeps its value."""
        return None

    def state(self, start: MachineState) -> MachineState:
        """With the class's values in all registers."""
        values = division_values(self.form, self.speed)
        first, second = operands_of(self.form)
        registers = () if first == second else self.registers(second)
        kind = "v" if has_vectors(self.form) else "f"
        return with_divisions(start, self.form, {*registers, (kind, self.pools.scratch)}, *values)


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
        if is_integer_division(self.form):
            numbers = (values[first][0][1], values[second][0][1])
            return with_integers(start, numbers, integer_values(self.form, self.speed))
        registers = () if first == second else values[second]
        return with_divisions(start, self.form, registers, *division_values(self.form, self.speed))
