"""Instructions on system registers, as forms that read and write what they name.

The table has one form for all registers. Those that other instructions of a loop go by (VL, FRM, NZCV) have
the names of its operands there; every other one is a location of its own.
"""

from __future__ import annotations

from functools import cache

import msgspec

from cyclescope.isa.decode import Decoded
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set

STICKY = ("FPSR", "FFLAGS", "VXSAT")  # what arithmetic adds to: no instruction of the table writes them

_MOVES = {"MRS": (True, False), "MRRS": (True, False), "MSR": (False, True), "MSRR": (False, True)}
_NUMBERS = ("csr_sysreg", "mrs_sysreg_op", "msr_sysreg_op")  # classes of operands


def with_state(found: Decoded) -> Decoded:
    """A decoded instruction as a form that reads and writes the registers that it names."""
    form = found.form
    if form.mnemonic.endswith("FF.V") and form.configuration is None:
        return msgspec.structs.replace(found, form=_shortening(form))
    if form.id.startswith("MSRpstate"):
        return msgspec.structs.replace(
            found, form=_form(form, "pstate", (), ())
        )  # LLVM: NZCV, whatever it is
    number = next((found.value(k) for k, op in enumerate(form.operands) if op.cls in _NUMBERS), None)
    if number is None:
        return found
    registers = instruction_set(found.isa).registers
    names = registers.system.get(number, (f"{registers.system_prefix}{number}",))
    if not names:
        return found
    reads, writes = _directions(found)
    chosen = _form(form, "+".join(names).lower(), names if reads else (), names if writes else ())
    return msgspec.structs.replace(found, form=chosen)


def _directions(found: Decoded) -> tuple[bool, bool]:
    """Whether an instruction reads and whether it writes the register that it names."""
    mnemonic = found.form.mnemonic
    if mnemonic in _MOVES:
        return _MOVES[mnemonic]
    if mnemonic in ("CSRRW", "CSRRWI"):
        return found.register(0) != "X0", True
    given = found.value(2) or 0  # the mask, or the register that has it: x0 changes nothing
    return True, given != 0


@cache
def _form(
    form: InstructionForm, name: str, reads: tuple[str, ...], writes: tuple[str, ...]
) -> InstructionForm:
    kept = tuple(op for op in form.operands if not op.implicit)
    names = dict.fromkeys((*reads, *writes))
    state = tuple(_operand(each, each in reads, each in writes) for each in names)
    flags = "NZCV" in names
    return msgspec.structs.replace(
        form,
        id=f"{form.id}@{name}",
        operands=kept + state,
        flags_read=form.flags_read if flags and reads else 0,
        flags_written=form.flags_written if flags and writes else 0,
    )


def _operand(name: str, read: bool, write: bool) -> Operand:
    return Operand(name, "register", name, 64, read, write, False, True, name, "", file="?")


@cache
def _shortening(form: InstructionForm) -> InstructionForm:
    """A load that sets VL to what it could load, where its VTYPE is not known."""
    operands = tuple(msgspec.structs.replace(op, write=op.write or op.fixed == "VL") for op in form.operands)
    return msgspec.structs.replace(form, id=f"{form.id}@ff", operands=operands)
