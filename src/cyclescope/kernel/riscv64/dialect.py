"""Kernels of RISC-V as the planner wants them."""

from __future__ import annotations

import re
from fractions import Fraction

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration
from cyclescope.isa.riscv64.configuration import LMULS, SEWS, setup_code
from cyclescope.isa.riscv64.unmeasurable import is_32_bit_only, unmeasurable
from cyclescope.isa.table import Table
from cyclescope.kernel.cycle import Cycle
from cyclescope.kernel.dialect import Dialect, Executes, Items
from cyclescope.kernel.fixed_width.branches import BranchBuilder
from cyclescope.kernel.fixed_width.cycles import CycleBuilder
from cyclescope.kernel.fixed_width.dialect import FixedWidthDialect
from cyclescope.kernel.fixed_width.links import SCALABLE, Helpers
from cyclescope.kernel.fixed_width.values import start_state
from cyclescope.kernel.place import Place
from cyclescope.kernel.riscv64.links import USUAL_CONFIGURATION, RiscV64Links
from cyclescope.kernel.riscv64.special import RiscV64Branches
from cyclescope.kernel.state import MachineState

_WHOLE = re.compile(r"V(?:L|S|MV)([1248])R")  # instructions of whole registers
_MOVES = {64: "FMV_D_X", 32: "FMV_W_X", 16: "FMV_H_X"}  # to floating-point registers, by bits


class RiscV64Dialect(FixedWidthDialect):
    """See `kernel.dialect.Dialect`."""

    helpers: RiscV64Links

    def __init__(self, table: Table, executes: Executes) -> None:
        super().__init__(RiscV64Links(table, executes))
        self._table, self._executes = table, executes
        self._configured: dict[Configuration, RiscV64Links] = {USUAL_CONFIGURATION: self.helpers}

    def helpers_of(self, form: InstructionForm) -> Helpers:
        """Links that work on vectors as the form does."""
        configuration = self._configuration(form)
        return self._under(configuration) if configuration else self.helpers

    def _configuration(self, form: InstructionForm) -> Configuration | None:
        """Under what a form's kernels run: those of whole registers under groups of as many."""
        whole = _WHOLE.match(form.mnemonic)
        return (
            Configuration(USUAL_CONFIGURATION.sew, Fraction(int(whole[1]))) if whole else form.configuration
        )

    def _under(self, configuration: Configuration) -> RiscV64Links:
        if configuration not in self._configured:
            self._configured[configuration] = RiscV64Links(self._table, self._executes, configuration)
        return self._configured[configuration]

    def unmeasurable(self, form: InstructionForm) -> str:
        """See `unmeasurable.unmeasurable`."""
        return unmeasurable(form)

    def branches(self, form: InstructionForm) -> BranchBuilder:
        """Sequences of branches."""
        return RiscV64Branches(form, self.helpers)

    def probe(self, form: InstructionForm) -> tuple[Items, MachineState] | None:
        """One instance; None for instructions of RV32, whose code means another one."""
        return None if is_32_bit_only(form) else super().probe(form)

    def setup(self, form: InstructionForm, state: MachineState) -> bytes:
        """The form's vector configuration."""
        configuration = self._configuration(form)
        return setup_code(configuration) if configuration else b""

    def places(self) -> tuple[Place, ...]:
        """A place in every register file that there are links of but vectors'."""
        widths = [width for width, move in _MOVES.items() if self.helpers.has(move)]
        return Place("r", 10, 64), *[Place("f", 10, width) for width in widths]

    def reference(self) -> str:
        """A form whose state suits every link."""
        if self.helpers.vectors:
            return "VAND_VI"
        widest = next((width for width, move in _MOVES.items() if self.helpers.has(move)), 0)
        return {64: "FSGNJ_D", 32: "FSGNJ_S"}.get(widest, "XOR")

    def cycles(self) -> list[tuple[Cycle, MachineState, bytes]]:
        """Closed chains of all links; those of vectors for every length of them."""
        found = super().cycles()
        known = {cycle.name for cycle, _, _ in found}
        state = start_state(self.helpers.form(self.reference()), self.helpers, found[0][1].vector_level)
        for lmul in LMULS if self.helpers.vectors else ():
            configuration = Configuration(self._widest(lmul), lmul)
            if configuration.sew < SEWS[0]:
                continue  # so short a vector is there only for wider elements
            helpers = self._under(configuration)
            places = (*self.places(), Place("v", 8, SCALABLE))
            for cycle in CycleBuilder(helpers, places).cycles():
                if cycle.name not in known:
                    found.append((_named(cycle, configuration), state, setup_code(configuration)))
        return found

    def _widest(self, lmul: Fraction) -> int:
        """The widest elements that this CPU has in so short a vector."""
        whole = 64 if self.helpers.has("VAND_VI@e64,m1") else 32
        return int(whole * min(lmul, Fraction(1)))


def _named(cycle: Cycle, configuration: Configuration) -> Cycle:
    name = f"{cycle.name} {str(configuration).split(',')[1]}"
    return Cycle(name, cycle.items, cycle.keys, cycle.cut, cycle.at)


def dialect(table: Table, executes: Executes) -> Dialect:
    """See `kernel.dialect.dialect_of`."""
    return RiscV64Dialect(table, executes)
