"""Forms of RISC-V that user space cannot measure, and why."""

from __future__ import annotations

import re

from cyclescope.isa.form import InstructionForm

_SYSTEM = re.compile(
    r"ECALL|EBREAK|C\.EBREAK|[MSUD]N?RET|MNRET|WFI|WRS\.|SFENCE|HFENCE|SINVAL|HINVAL|HLVX?\.|HSV\.|SCTRCLR"
)
_STACKS = re.compile(r"(QC\.)?CM\.(PUSH|POP|JALT|JT|MV)")
_SHADOW = re.compile(r"SS(PUSH|POPCHK|RDP|AMOSWAP)|C\.SSPUSH|C\.SSPOPCHK")


def unmeasurable(form: InstructionForm) -> str:
    """Why user space cannot measure a form, or ""."""
    name = form.mnemonic
    if is_32_bit_only(form):
        return "an instruction of RV32, whose code means another one here"
    if _SYSTEM.match(name) or "trap" in form.attributes:
        return "a system instruction: it enters the kernel, waits, or changes machine state"
    if _STACKS.match(name):
        return "moves several registers to the stack or through a table of jumps"
    if _SHADOW.match(name):
        return "works on a shadow stack that user space has to be granted"
    if any(op.file == "t" for op in form.operands):
        return "matrix registers need state that user space has to be granted"
    return ""


def is_32_bit_only(form: InstructionForm) -> bool:
    """Whether a form is of 32-bit machines."""
    return "RV32" in form.features


unfit = unmeasurable  # copies of what can be measured can be run
