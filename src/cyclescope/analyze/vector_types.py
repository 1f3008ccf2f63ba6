"""RISC-V's vector instructions under the VTYPE that the code sets: groups of registers, and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from cyclescope.errors import UsageError
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.riscv64.configuration import LMULS, SEWS, Configuration
from cyclescope.isa.riscv64.shapes import shapes, takes_configuration
from cyclescope.isa.riscv64.vector import configured

_CODES = {power & 7: lmul for power, lmul in zip(range(-3, 4), LMULS, strict=True)}
_SETTING, _UNMASKED = 0x7057, 1 << 25  # bits of a word


def is_setting(code: bytes) -> bool:
    """Whether an instruction sets VTYPE."""
    return len(code) == 4 and int.from_bytes(code, "little") & 0x707F == _SETTING


def setting(code: bytes) -> Configuration | None:
    """What an instruction sets VTYPE to, None where a register says it or where it is nothing legal."""
    word = int.from_bytes(code, "little")
    if word >> 31 and not word >> 30 & 1:  # VSETVL
        return None
    vtype = word >> 20 & (0x3FF if word >> 31 else 0x7FF)
    sew, lmul = 8 << (vtype >> 3 & 7), _CODES.get(vtype & 7)
    if lmul is None or sew not in SEWS or vtype >> 8:
        return None
    return Configuration(sew, lmul, not vtype >> 6 & 1, not vtype >> 7 & 1)


def types(codes: Sequence[bytes], start: Configuration | None) -> Iterator[Configuration | None]:
    """The VTYPE that each instruction sees."""
    current = start
    for code in codes:
        yield current
        if is_setting(code):
            current = setting(code)


def form_under(form: InstructionForm, code: bytes, seen: Configuration | None) -> InstructionForm:
    """The form of an instruction under a VTYPE; as it is where that makes no difference or is not known."""
    if seen is None or form.configuration is not None or not takes_configuration(form):
        return form
    maskable = any(op.cls == "VMaskOp" for op in form.operands)
    masked = maskable and not int.from_bytes(code, "little") & _UNMASKED
    try:
        return configured(
            form, Configuration(seen.sew, seen.lmul, seen.tail_undisturbed, seen.mask_undisturbed, masked)
        )
    except UsageError:  # reserved: the instruction traps
        return form


def cost_names(form: InstructionForm) -> tuple[str, ...]:
    """Names that LLVM's models have for the cost of a form under its VTYPE, the most specific first.

    They end with the multiplier of the registers, in front of it the width of elements where that matters,
    behind it that of the index of an access; with the ratio of both for masks.
    """
    seen = form.configuration
    if not isinstance(seen, Configuration):
        return ()
    groups = {shape.place: shape.emul(seen.sew, seen.lmul) for shape in shapes(_plain(form)).values()}
    access = any(op.is_memory for op in form.operands)
    data = _length(groups.get(0, seen.lmul) if access else seen.lmul)
    index = _length(groups.get(1, seen.lmul))
    ends = (data, f"{data}/{index}", f"b{Fraction(seen.sew) / seen.lmul}")
    return tuple(f"{form.llvm}@{width}{end}" for end in ends for width in (f"e{seen.sew},", ""))


def _plain(form: InstructionForm) -> InstructionForm:
    from cyclescope.isa.table import load_table

    return load_table("riscv64")[form.id.partition("@")[0]]


def _length(lmul: Fraction) -> str:
    return f"m{lmul}" if lmul >= 1 else f"mf{1 / lmul}"
