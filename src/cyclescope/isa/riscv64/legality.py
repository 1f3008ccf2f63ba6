"""Which vector configurations an instruction of RISC-V has, and what a CPU needs for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration
from cyclescope.isa.riscv64.configuration import LMULS, SEWS
from cyclescope.isa.riscv64.shapes import RegisterShape, element_widths, shapes, takes_configuration

_ELEN = 64
_EMUL = (Fraction(1, 8), Fraction(8))
_WIDTHS = {"i": (8, 64), "f": (16, 64), "b": (16, 16), "q": (8, 8), "m": (1, 1)}  # least and most
_DEFAULT_LMULS = tuple(Fraction(n) for n in ("1/2", "2", "4", "8"))
_DEFAULT_SEW = 32
INSERTS = ("VMV.S.X", "VFMV.S.F")  # write one element: others are tail
_WHOLE = r"VMV\dR\.V"  # of no elements

_IMPLIED = {
    "V": {"ZVE64D", "ZVE64F", "ZVE64X", "ZVE32F", "ZVE32X"},
    "ZVE64D": {"ZVE64F", "ZVE64X", "ZVE32F", "ZVE32X"},
    "ZVE64F": {"ZVE64X", "ZVE32F", "ZVE32X"},
    "ZVE64X": {"ZVE32X"},
    "ZVE32F": {"ZVE32X"},
    "ZVFH": {"ZVFHMIN", "ZVE32F", "ZVE32X"},
    "ZVFHMIN": {"ZVE32F", "ZVE32X"},
    "ZVFBFMIN": {"ZVE32F", "ZVE32X"},
    "ZVFBFWMA": {"ZVFBFMIN", "ZVE32F", "ZVE32X"},
}
_CHOICES = {  # between extensions, by SEW
    ("ZVBC|ZVBC32E", 64): "ZVBC",
    ("ZVBC|ZVBC32E", 32): "ZVBC32E",
    ("ZVKNHA|ZVKNHB", 64): "ZVKNHB",
    ("ZVFBFMIN|ZVFOFP8MIN", 16): "ZVFBFMIN",
}
FEATURES = frozenset(("V", "ZVE64D", "ZVE64F", "ZVE64X", "ZVE32F", "ZVFH", "ZVFHMIN", *_CHOICES.values()))
_NOT_EMBEDDED = r"VMULH.*|VSMUL.*"  # of 64 bits are in V, not in the extensions for embedded processors
ELEMENT_GROUPS = r"V(AES|SM[34]|SHA2|GHSH|GMUL).*"  # 128 bits or more: fractions need longer registers
_MINIMAL_HALF = r"VFWCVT\.F\.F\.V|VFNCVT\.F\.F\.W"  # all that ZVFHMIN has


def illegal(form: InstructionForm, configuration: Configuration) -> str:
    """Why an instruction of the table does not exist under a configuration, or ""."""
    sew, lmul = configuration.sew, configuration.lmul
    if not takes_configuration(form):
        return f"{form.id} has no vector configuration"
    if configuration.masked and not any(op.cls == "VMaskOp" for op in form.operands):
        return f"{form.id} has no masked variant"
    if configuration.mask_undisturbed and not configuration.masked:
        return "mu is about masked instructions: masked,mu"
    undisturbed = configuration.tail_undisturbed or configuration.mask_undisturbed
    if undisturbed and not any(op.write and op.file == "v" for op in form.operands):
        return f"{form.id} writes no vector: no policy applies"
    if lmul * _ELEN < sew:
        return f"{configuration}: LMUL is at least SEW/{_ELEN}"
    if sew not in element_widths(form):
        return f"{form.id} is defined for {' and '.join(f'e{n}' for n in element_widths(form))}"
    if configuration.vl % _per_group(form):
        return f"{form.id} works on groups of {_per_group(form)} elements: VL is a multiple"
    if sew == SEWS[0] and any(op.file == "f" for op in form.operands):
        return f"{form.id}@{configuration}: floating-point operands have 16 bits or more"
    reasons = (_impossible(shape, sew, lmul) for shape in shapes(form).values())
    return next((f"{form.id}@{configuration}: {reason}" for reason in reasons if reason), "")


def applicable(form: InstructionForm, configuration: Configuration) -> Configuration:
    """A configuration as a form sees it: without policies of what it does not write.

    Code sets both policies for all that follows; elements are masked off where there is a mask, and only a
    result that is a vector has a tail.
    """
    writes = any(op.write and op.file == "v" for op in form.operands)
    return msgspec.structs.replace(
        configuration,
        tail_undisturbed=writes and configuration.tail_undisturbed,
        mask_undisturbed=writes and configuration.masked and configuration.mask_undisturbed,
    )


def _per_group(form: InstructionForm) -> int:
    """Elements that belong together; VL is a multiple of them."""
    if re.fullmatch(ELEMENT_GROUPS, form.mnemonic):
        return 8 if form.mnemonic.startswith("VSM3") else 4
    return 1


def _impossible(shape: RegisterShape, sew: int, lmul: Fraction) -> str:
    width, emul = shape.width(sew), shape.emul(sew, lmul)
    least, most = _WIDTHS[shape.kind]
    if not least <= width <= most:
        kind = "" if shape.kind == "i" else "floating-point "
        return f"an operand would have {kind}elements of {width} bits"
    if not _EMUL[0] <= emul <= _EMUL[1]:
        return f"an operand would have {emul} registers; 1/8 to 8 are possible"
    if shape.count * emul > _EMUL[1]:
        return f"{shape.count} groups of {emul} registers are more than 8"
    return ""


def all_configurations(form: InstructionForm) -> Iterator[Configuration]:
    """Every legal one with agnostic policies and the longest vectors, the masked ones last."""
    for masked, sew, lmul in product((False, True), SEWS, LMULS):
        configuration = Configuration(sew, lmul, masked=masked)
        if not illegal(form, configuration):
            yield configuration


@cache
def configurations(form: InstructionForm) -> tuple[Configuration, ...]:
    """The configurations that are measured where none is asked for, empty where a form has none.

    Each SEW with LMUL 1, the other LMULs with one SEW, and the first of these masked; undisturbed tails only
    where one element is written. Loads and stores have
    the SEW of their elements, instructions on masks SEW 8.
    """
    if not takes_configuration(form):
        return ()
    sews = _sews(form)
    main = _DEFAULT_SEW if _DEFAULT_SEW in sews else sews[-1]
    wanted = [Configuration(sew, Fraction(1)) for sew in sews]
    if _depends_on_lmul(form):
        fractions = not re.fullmatch(ELEMENT_GROUPS, form.mnemonic)
        wanted += [Configuration(main, lmul) for lmul in _DEFAULT_LMULS if fractions or lmul > 1]
    wanted.append(Configuration(main, Fraction(1), masked=True))
    if form.mnemonic in INSERTS:  # the other elements stay, or are of no interest
        wanted.append(Configuration(main, Fraction(1), tail_undisturbed=True))
    return tuple(configuration for configuration in wanted if not illegal(form, configuration))


def _sews(form: InstructionForm) -> tuple[int, ...]:
    """The values of SEW to measure."""
    own = shapes(form)
    fixed = [shape.eew for shape in own.values() if shape.eew > 1]
    if form.memory >= 0 or "memory" in form.attributes:
        indexed = any(op.role == "index" and op.file == "v" for op in form.operands)
        segments = any(shape.count > 1 for shape in own.values())
        if fixed and not (indexed and not segments):
            return (fixed[0],)
    if re.fullmatch(_WHOLE, form.mnemonic):
        return (_DEFAULT_SEW,)
    if all(shape.kind == "m" for shape in own.values()):
        return (8,)
    legal = [sew for sew in SEWS if not illegal(form, Configuration(sew, Fraction(1)))]
    return tuple(legal)


def _depends_on_lmul(form: InstructionForm) -> bool:
    """Whether there is more to do in longer vectors: not for single elements and whole registers."""
    return any(not shape.single for shape in shapes(form).values())


def features(form: InstructionForm, configuration: Configuration) -> tuple[str, ...]:
    """The extensions that a form of the table needs under a configuration, without implied ones."""
    own = [_CHOICES.get((name, configuration.sew), name) for name in form.features]
    needed = [*own, *_by_types(form, configuration)]
    if {"ZVE32F", "ZVE64X"} <= set(needed):
        needed.append("ZVE64F")
    implied = set().union(*(_IMPLIED.get(name, ()) for name in needed))
    return tuple(name for name in dict.fromkeys(needed) if name not in implied)


def _by_types(form: InstructionForm, configuration: Configuration) -> Iterable[str]:
    sew = configuration.sew
    widths = {(shape.kind, int(shape.width(sew))) for shape in shapes(form).values()}
    if ("f", 64) in widths:
        yield "ZVE64D"
    if ("f", 32) in widths:
        yield "ZVE32F"
    if ("f", 16) in widths and "BF16" not in form.mnemonic:
        yield "ZVFHMIN" if re.fullmatch(_MINIMAL_HALF, form.mnemonic) else "ZVFH"
    if sew == _ELEN and re.fullmatch(_NOT_EMBEDDED, form.mnemonic):
        yield "V"
    if sew == _ELEN or ("i", 64) in widths or configuration.lmul * 32 < sew:
        yield "ZVE64X"
