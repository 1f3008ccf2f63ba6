"""Kernels of AArch64 as the planner wants them."""

from __future__ import annotations

import msgspec

from cyclescope.isa.aarch64.unmeasurable import unmeasurable
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.aarch64.links import AArch64Links
from cyclescope.kernel.aarch64.special import AArch64Branches, is_check, is_streaming
from cyclescope.kernel.dialect import Dialect, Executes
from cyclescope.kernel.fixed_width.branches import BranchBuilder
from cyclescope.kernel.fixed_width.dialect import FixedWidthDialect
from cyclescope.kernel.fixed_width.links import SCALABLE
from cyclescope.kernel.place import Place
from cyclescope.kernel.state import VECTOR_SCALABLE, MachineState


class AArch64Dialect(FixedWidthDialect):
    """See `kernel.dialect.Dialect`."""

    helpers: AArch64Links

    def __init__(self, table: Table, executes: Executes) -> None:
        super().__init__(AArch64Links(table, executes))

    def unmeasurable(self, form: InstructionForm) -> str:
        """See `unmeasurable.unmeasurable`."""
        return unmeasurable(form)

    def stream_state(self, form: InstructionForm, speed: str) -> MachineState:
        """In streaming mode where the form needs it."""
        return _in_mode(form, super().stream_state(form, speed))

    def chain_state(self, form: InstructionForm, speed: str) -> MachineState:
        """In streaming mode where the form needs it."""
        return _in_mode(form, super().chain_state(form, speed))

    def branches(self, form: InstructionForm) -> BranchBuilder:
        """Sequences of branches."""
        return AArch64Branches(form, self.helpers)

    def is_special(self, form: InstructionForm) -> bool:
        """What checks a signature needs one."""
        return is_check(form)

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


def _in_mode(form: InstructionForm, state: MachineState) -> MachineState:
    if not is_streaming(form):
        return state
    return msgspec.structs.replace(state, streaming=True, vector_level=VECTOR_SCALABLE)


def dialect(table: Table, executes: Executes) -> Dialect:
    """See `kernel.dialect.dialect_of`."""
    return AArch64Dialect(table, executes)
