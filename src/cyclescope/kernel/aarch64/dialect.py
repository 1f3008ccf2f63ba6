"""Kernels of AArch64 as the planner wants them."""

from __future__ import annotations

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.aarch64.links import AArch64Links
from cyclescope.kernel.aarch64.special import AArch64Branches, unmeasurable
from cyclescope.kernel.dialect import Executes
from cyclescope.kernel.fixed_width.branches import BranchBuilder
from cyclescope.kernel.fixed_width.dialect import FixedWidthDialect
from cyclescope.kernel.fixed_width.links import SCALABLE
from cyclescope.kernel.place import Place


class AArch64Dialect(FixedWidthDialect):
    """See `kernel.dialect.Dialect`."""

    helpers: AArch64Links

    def __init__(self, table: Table, executes: Executes) -> None:
        super().__init__(AArch64Links(table, executes))

    def unmeasurable(self, form: InstructionForm) -> str:
        """See `special.unmeasurable`."""
        return unmeasurable(form)

    def branches(self, form: InstructionForm) -> BranchBuilder:
        """Sequences of branches."""
        return AArch64Branches(form, self.helpers)

    def places(self) -> tuple[Place, ...]:
        """A place in every register file that there are links of."""
        places = [Place("r", 1, 64)]
        if self.helpers.has("FMOVXDr"):
            places.append(Place("v", 1, 128))
        if self.helpers.sve:
            places += [Place("v", 2, SCALABLE), Place("p", 1)]
        return tuple(places)

    def reference(self) -> str:
        """A form whose state suits every link."""
        if self.helpers.sve:
            return "CNTP_XPP_B"
        return "ANDv16i8" if self.helpers.has("FMOVXDr") else "EORXrs"
