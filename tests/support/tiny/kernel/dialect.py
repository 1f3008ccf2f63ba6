"""Kernels of the tiny instruction set."""

from __future__ import annotations

from functools import cached_property

from tiny.kernel.registers import POOLS

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.dialect import Dialect, Executes
from cyclescope.kernel.fixed_width.branches import BRANCH_SPACING, BranchBuilder
from cyclescope.kernel.fixed_width.dialect import FixedWidthDialect
from cyclescope.kernel.fixed_width.links import CONSTANT_VALUE, Helpers
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.paths import Edges
from cyclescope.kernel.place import Place
from cyclescope.kernel.state import VECTOR_NONE
from cyclescope.kernel.stream import Stream


class TinyLinks(Helpers):
    """Links between general registers and memory."""

    pools = POOLS
    routes = ((), (Place("r", POOLS.temporary, 64),))
    stores = {("r", 64): "ST"}
    loads = {("r", 64): "LD"}

    @cached_property
    def edges(self) -> Edges:
        return {
            ("r", "r"): ("r>r", lambda s, t: [self.make("ADDI", t.number, s.number, 0)]),
            ("r", "mem"): ("r>mem", lambda s, t: [self._memory(self.stores, s, t)]),
            ("mem", "r"): ("mem>r", lambda s, t: [self._memory(self.loads, t, s)]),
        }

    def nop(self) -> Instruction:
        return self.make("NOP")

    def constant(self, number: int) -> Instruction:
        return self.make("SET", number, CONSTANT_VALUE)

    def copy(self, number: int, source: int) -> Instruction:
        return self.make("ADDI", number, source, 0)

    def xor(self, number: int, source: int) -> Instruction:
        return self.make("XOR", number, number, source)

    def cut(self, place: Place) -> list[Instruction]:
        if place.kind == "r":
            return [self.constant(place.number)]
        return [self._memory(self.stores, Place("r", POOLS.constant, 64), place)]

    def again(self, source: Place, target: Place, value: int) -> tuple[list[Instruction], tuple[str, ...]]:
        raise NotImplementedError("there are no vectors")

    def level(self, form: InstructionForm) -> int:
        return VECTOR_NONE


class TinyBranches(BranchBuilder):
    """BNZ, taken or not."""

    def streams(self) -> list[Stream] | None:
        if "branch" not in self.form.attributes:
            return None
        taken = self.branch(BRANCH_SPACING, {0: self.numbered(0, POOLS.constant)})
        return self.conditional(taken, self.branch(self.length, {0: self.numbered(0, POOLS.zero)}))

    def filler(self) -> Instruction:
        return self.helpers.nop()


class TinyDialect(FixedWidthDialect):
    """See `kernel.dialect.Dialect`."""

    def unmeasurable(self, form: InstructionForm) -> str:
        return ""

    def branches(self, form: InstructionForm) -> BranchBuilder:
        return TinyBranches(form, self.helpers)

    def places(self) -> tuple[Place, ...]:
        return (Place("r", 10, 64),)

    def reference(self) -> str:
        return "XOR"


def dialect(table: Table, executes: Executes) -> Dialect:
    """See `kernel.dialect.dialect_of`."""
    return TinyDialect(TinyLinks(table, executes))
