"""Assembly text (on x86-64 in Intel syntax) of a form with register numbers.

The text of a form is a template with a place per encoding slot; filling it is cheap, because every
measurement is stored with its assembly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from operator import getitem

from cyclescope.isa.encode import default_immediates, field_values
from cyclescope.isa.fields import Field
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import register_name

SIZES = {
    8: "byte", 16: "word", 32: "dword", 48: "fword", 64: "qword", 80: "tbyte", 128: "xmmword",
    256: "ymmword", 512: "zmmword",
}  # fmt: skip
ONE_OPERAND = {"FCOM", "FCOMP", "FUCOM", "FUCOMP", "FXCH"}  # assemblers want the top of the stack unsaid
_PREFIXES = {"lock": "lock ", "rep": "rep ", "repne": "repne "}
Names = tuple[tuple[str, ...], ...]


def assembly(
    form: InstructionForm,
    registers: Sequence[int],
    displacement: int = 0,
    immediates: Sequence[int] | None = None,
    index: int | None = None,
    scale: int = 1,
) -> str:
    """One line of assembly; arguments as for `encode`, with what the index is multiplied by."""
    if form.syntax is not None:
        return form.syntax.text(field_values(form, registers, displacement, immediates, index))
    template, names, ahead = _template(form, displacement != 0, index, scale)
    values = default_immediates(form) if immediates is None else immediates
    if ahead:
        values = [value + ahead for value in values]
    return template.format(*map(getitem, names, registers), *values, d=displacement)


def example(form: InstructionForm) -> str:
    """An AArch64 or RISC-V form with different registers and plain values; empty for an x86-64 form."""
    if form.bits is None:
        return ""
    taken: set[int] = set()
    registers = []
    for field in form.bits.fields:
        if field.is_register:
            group = form.operands[field.operand].group if form.configuration else 1
            registers.append(_free_register(field, taken, group))
            taken.update(range(registers[-1], registers[-1] + group))
    return assembly(form, registers)


def _free_register(field: Field, taken: set[int], group: int) -> int:
    """RISC-V's first registers are not for data: a0 and up are taken of 32. No mask where that can be."""
    names, legal = field.values.registers, field.values.legal
    if len(legal) == 2 and not names[legal[1]]:
        return legal[1]
    first = 10 if names[30:31] == ("X30",) else 1
    ahead = [number for number in legal if number >= first and names[number]]
    free = (number for number in ahead or legal if taken.isdisjoint(range(number, number + group)))
    return next(free, legal[0])


@lru_cache(1 << 15)  # all of a run, which goes over all forms ten times: 10 MB
def _template(
    form: InstructionForm, displaced: bool, index: int | None, scale: int
) -> tuple[str, Names, int]:
    """Format string with the registers first, then the immediates, and a name table per register.

    The number is what a branch's distance is short of: it counts from the instruction's end, the
    text from its beginning.
    """
    writer = _Writer(form, displaced, index, scale)
    branch = form.encoding is not None and any(op.kind == "branch" for op in form.operands)
    return writer.line(), writer.names(), form.encoding.length if branch and form.encoding else 0


class _Writer:
    def __init__(self, form: InstructionForm, displaced: bool, index: int | None, scale: int) -> None:
        self.form = form
        self.displaced = displaced
        self.index = index
        self.scale = f"*{scale}" if scale > 1 else ""
        self.slots = form.encoding.slots if form.encoding else ()
        self.places = {(s.operand, s.part): f"{{{n}}}" for n, s in enumerate(self.slots)}
        self.immediates = len(self.slots)

    def names(self) -> Names:
        """Lower-case register names by number, per slot."""
        return tuple(_names(self._class(s.operand, s.part)) for s in self.slots)

    def _class(self, operand: int, part: int) -> str:
        op = self.form.operands[operand]
        if part == 0:
            return op.cls
        return op.cls[5:] if part == 2 and op.cls.startswith("VSIB_") else "R64"

    def line(self) -> str:
        form = self.form
        prefix = next((text for a, text in _PREFIXES.items() if a in form.attributes), "")
        texts = [
            self._operand(i, op)
            for i, op in enumerate(form.operands)
            if not op.implicit and not self._is_write_mask(i, op)
        ]
        if form.mnemonic in ONE_OPERAND and len(texts) > 1:
            del texts[0]
        if texts:
            texts[0] += self._mask()
        self._add_rounding(texts)
        return f"{prefix}{form.mnemonic.lower()} {', '.join(texts)}".rstrip()

    def _add_rounding(self, texts: list[str]) -> None:
        found = self.form.attributes & {"rounding", "sae"}
        if found:
            immediate = any(op.kind == "immediate" for op in self.form.operands)
            texts.insert(len(texts) - immediate, "{{rn-sae}}" if "rounding" in found else "{{sae}}")

    def _is_write_mask(self, position: int, op: Operand) -> bool:
        return position == 1 and op.cls == "K" and "masked" in self.form.attributes

    def _mask(self) -> str:
        if "masked" not in self.form.attributes:
            return ""
        zero = "{{z}}" if "zeroing" in self.form.attributes else ""
        return f"{{{{{self.places.get((1, 0), 'k1')}}}}}{zero}"

    def _immediate(self) -> str:
        self.immediates += 1
        return str(self.immediates - 1)

    def _operand(self, position: int, op: Operand) -> str:
        if op.kind == "immediate":
            return "1" if op.cls == "1" else f"{{{self._immediate()}}}"
        if op.kind == "branch":
            return f".{{{self._immediate()}:+d}}"
        if op.is_register:
            return self.places.get((position, 0), "st" if op.fixed == "ST0" else op.fixed.lower())
        return f"{self._size(op)}[{self._address(position, op)}]{self._broadcast(op)}"

    def _size(self, op: Operand) -> str:
        whole_block = op.width == 512 and "evex" not in self.form.attributes  # MOVDIR64B, LDTILECFG
        return f"{SIZES[op.width]} ptr " if op.is_memory and op.width in SIZES and not whole_block else ""

    def _broadcast(self, op: Operand) -> str:
        return f"{{{{{op.cls.split('_')[1]}}}}}" if "_1to" in op.cls else ""

    def _address(self, position: int, op: Operand) -> str:
        scale = {"LEA_I_D32": "*1"}.get(op.cls, "*2" if "_IS" in op.cls else "")
        if op.cls == "LEA_R_D32":
            return "rip{d:+d}"
        parts = [self.places[position, 1]] if (position, 1) in self.places else []
        if (position, 2) in self.places:
            parts.append(self.places[position, 2] + scale)
        if self.index is not None:
            parts.append(register_name("R64", self.index).lower() + self.scale)
        text = "+".join(parts)
        if self.displaced or not parts:
            text += "{d:+d}" if parts else "{d:#x}"
        return text


@cache
def _names(cls: str) -> tuple[str, ...]:
    """Names by number; high bytes have the numbers 4 to 7."""
    counts = {"XMM": 32, "YMM": 32, "ZMM": 32, "K": 8, "MM": 8, "ST": 8, "SEG": 6, "BND": 4, "TMM": 8}
    if cls == "R8h":
        return ("", "", "", "", *(register_name(cls, n).lower() for n in range(4, 8)))
    return tuple(register_name(cls, n).lower() for n in range(counts.get(cls, 16)))
