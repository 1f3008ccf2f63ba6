"""RISC-V's vector instructions under the VTYPE that the code sets: groups of registers, and costs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product, starmap

from cyclescope.errors import UsageError
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration
from cyclescope.isa.riscv64.configuration import LMULS, RISCV64, SEWS, setup_code, vtype
from cyclescope.isa.riscv64.legality import all_configurations, applicable, configurations
from cyclescope.isa.riscv64.shapes import shapes, takes_configuration
from cyclescope.isa.riscv64.types import forgets_type, is_masked, sets_type
from cyclescope.isa.riscv64.vector import configured

_POLICIES = (False, True)
_BY_VTYPE = {vtype(one): one for one in starmap(Configuration, product(SEWS, LMULS, _POLICIES, _POLICIES))}
__all__ = (  # see `isa.variants.VectorTypes`
    "all_cost_names", "configurations", "cost_names", "first_form", "form_under", "has_own_cost", "last_type",
    "needs_type", "setting", "settings_in", "setup_code", "takes_configuration", "types",
)  # fmt: skip


def setting(code: bytes) -> Configuration | None:
    """What an instruction sets VTYPE to, None where a register says it or where it is nothing legal."""
    word = int.from_bytes(code, "little")
    if word >> 31 and not word >> 30 & 1:  # VSETVL
        return None
    return _BY_VTYPE.get(word >> 20 & (0x3FF if word >> 31 else 0x7FF))


def settings_in(codes: Sequence[bytes]) -> list[int]:
    """Which of some instructions set VTYPE, by number."""
    return [number for number, code in enumerate(codes) if sets_type(code)]


def types(codes: Sequence[bytes], start: Configuration | None) -> Iterator[Configuration | None]:
    """The VTYPE that each instruction sees."""
    current = start
    for code in codes:
        yield current
        if sets_type(code):
            current = setting(code)
        elif forgets_type(code):
            current = None


def last_type(codes: Sequence[bytes]) -> Configuration | None:
    """The VTYPE behind some instructions, None where it is not known."""
    last = next((code for code in reversed(codes) if sets_type(code) or forgets_type(code)), None)
    return setting(last) if last is not None and sets_type(last) else None


def form_under(form: InstructionForm, code: bytes, seen: Configuration | None) -> InstructionForm:
    """The form of an instruction under a VTYPE; as it is where that makes no difference or is not known."""
    if seen is None or form.configuration is not None or not takes_configuration(form):
        return form
    masked = is_masked(form, code)
    own = Configuration(seen.sew, seen.lmul, seen.tail_undisturbed, seen.mask_undisturbed, masked)
    try:
        return configured(form, applicable(form, own))
    except UsageError:  # reserved: the instruction traps
        return form


def first_form(form: InstructionForm, code: bytes, sew: int, lmul: Fraction) -> InstructionForm:
    """The form under the first configuration that is legal, as it is where none is; SEW 0 is any."""
    choices = (Configuration(width, lmul) for width in ((sew,) if sew else SEWS))
    under = (form_under(form, code, choice) for choice in choices)
    return next((found for found in under if found is not form), form)


def needs_type(form: InstructionForm) -> bool:
    """Whether a cost depends on VTYPE: not that of single elements and whole registers."""
    plain = _plain(form)
    return takes_configuration(plain) and any(not shape.single for shape in shapes(plain).values())


def has_own_cost(form: InstructionForm, known: Container[str]) -> bool:
    """Whether a model knows the cost of a form under its VTYPE, or that is the largest anyway."""
    seen = form.configuration
    if seen is None or seen.lmul == LMULS[-1] or form.llvm not in known:
        return True
    return form.id in known or any(name in known for name in cost_names(form))


@cache
def all_cost_names(form: InstructionForm) -> frozenset[str]:
    """Names of the costs of a form without VTYPE under every one that there is."""
    seen = all_configurations(form) if takes_configuration(form) else ()
    return frozenset(name for each in seen for name in cost_names(configured(form, each)))


def cost_names(form: InstructionForm) -> tuple[str, ...]:
    """Names that LLVM's models have for the cost of a form under its VTYPE, the most specific first.

    They end with the multiplier of the registers, in front of it the width of elements where that matters,
    behind it that of the index of an access or of a gather; with the ratio of both for masks.
    """
    seen = form.configuration
    if seen is None:
        return ()
    groups = {shape.place: shape.emul(seen.sew, seen.lmul) for shape in shapes(_plain(form)).values()}
    access = any(op.is_memory for op in form.operands)
    data = _length(groups.get(0, seen.lmul) if access else seen.lmul)
    index = _length(groups.get(1 if access else 2, seen.lmul))
    ends = (data, f"{data}/{index}", f"b{Fraction(seen.sew) / seen.lmul}")
    return tuple(f"{form.llvm}@{width}{end}" for end in ends for width in (f"e{seen.sew},", ""))


def _plain(form: InstructionForm) -> InstructionForm:
    from cyclescope.isa.table import load_table

    return load_table(RISCV64)[form.id.partition("@")[0]]


def _length(lmul: Fraction) -> str:
    return f"m{lmul}" if lmul >= 1 else f"mf{1 / lmul}"
