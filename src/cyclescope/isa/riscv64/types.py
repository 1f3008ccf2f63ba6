"""What code says of VTYPE: which instructions set it, which leave it unknown, and which have a mask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from cyclescope.isa.fields import BitEncoding
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.riscv64.configuration import RISCV64

_SETTINGS = ("VSETVLI", "VSETIVLI", "VSETVL")
_LINKING, _CALLING = ("JAL", "JALR"), ("ECALL", "C_JALR")  # calls where they leave the way back in ra; always
_NO_CALL = ("C_EBREAK",)  # which C_JALR would be with another register


def sets_type(code: bytes) -> bool:
    """Whether an instruction sets VTYPE."""
    return _is_any_of(code, _SETTINGS)


def forgets_type(code: bytes) -> bool:
    """Whether an instruction is a call, of a function or of the system: neither keeps VTYPE."""
    if _is_any_of(code, _LINKING):
        return int.from_bytes(code, "little") >> 7 & 31 == 1
    return _is_any_of(code, _CALLING) and not _is_any_of(code, _NO_CALL)


def is_masked(form: InstructionForm, code: bytes) -> bool:
    """Whether an instruction of a form works under a mask."""
    fields = form.bits.fields if form.bits is not None else ()
    bits = (one.positions[0] for one in fields if form.operands[one.operand].cls == "VMaskOp")
    return any(not int.from_bytes(code, "little") >> bit & 1 for bit in bits)


def _is_any_of(code: bytes, forms: Sequence[str]) -> bool:
    word = int.from_bytes(code, "little")
    return any(len(code) == bits.length and word & bits.mask == bits.base for bits in map(_bits, forms))


@cache
def _bits(form: str) -> BitEncoding:
    from cyclescope.isa.table import load_table

    found = load_table(RISCV64)[form].bits
    assert found is not None
    return found
