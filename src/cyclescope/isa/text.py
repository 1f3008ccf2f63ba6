"""Assembly text (Intel syntax) of a form with register numbers."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.isa.encode import default_immediates
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import register_name

_SIZES = {
    8: "byte", 16: "word", 32: "dword", 64: "qword", 80: "tbyte", 128: "xmmword", 256: "ymmword",
    512: "zmmword",
}  # fmt: skip
_PREFIXES = {"lock": "lock ", "rep": "rep ", "repne": "repne "}


def assembly(
    form: InstructionForm,
    registers: Sequence[int],
    displacement: int = 0,
    immediates: Sequence[int] | None = None,
    index: int | None = None,
) -> str:
    """One line of Intel-syntax assembly; arguments as for `encode`."""
    writer = _Writer(form, registers, displacement, immediates, index)
    return writer.line()


class _Writer:
    def __init__(
        self,
        form: InstructionForm,
        registers: Sequence[int],
        displacement: int,
        immediates: Sequence[int] | None,
        index: int | None,
    ) -> None:
        self.form = form
        self.displacement = displacement
        self.index = index
        values = default_immediates(form) if immediates is None else immediates
        self.immediates = iter(values)
        slots = form.encoding.slots if form.encoding else ()
        self.numbers = {(s.operand, s.part): n for s, n in zip(slots, registers, strict=False)}

    def line(self) -> str:
        form = self.form
        prefix = next((text for a, text in _PREFIXES.items() if a in form.attributes), "")
        texts = [
            self._operand(i, op)
            for i, op in enumerate(form.operands)
            if not op.implicit and not self._is_write_mask(i, op)
        ]
        if texts:
            texts[0] += self._mask()
        if "rounding" in form.attributes:
            texts.append("{rn-sae}")
        elif "sae" in form.attributes:
            texts.append("{sae}")
        return f"{prefix}{form.mnemonic.lower()} {', '.join(texts)}".rstrip()

    def _is_write_mask(self, position: int, op: Operand) -> bool:
        return position == 1 and op.cls == "K" and "masked" in self.form.attributes

    def _mask(self) -> str:
        if "masked" not in self.form.attributes:
            return ""
        zero = "{z}" if "zeroing" in self.form.attributes else ""
        return f"{{k{self.numbers.get((1, 0), 1)}}}{zero}"

    def _operand(self, position: int, op: Operand) -> str:
        if op.kind == "immediate":
            return "1" if op.cls == "1" else str(next(self.immediates, 0))
        if op.kind == "branch":
            return f".{next(self.immediates, 0):+d}"
        if op.is_register:
            return self._register(position, op)
        return self._address(position, op)

    def _register(self, position: int, op: Operand) -> str:
        number = self.numbers.get((position, 0))
        return (op.fixed if number is None else register_name(op.cls, number)).lower()

    def _address(self, position: int, op: Operand) -> str:
        parts = []
        base = self.numbers.get((position, 1))
        vector = self.numbers.get((position, 2))
        if base is not None:
            parts.append(register_name("R64", base).lower())
        if vector is not None:
            cls = op.cls[5:] if op.cls.startswith("VSIB_") else "R64"
            scale = "*2" if op.cls.startswith("LEA") and "IS" in op.cls else ""
            parts.append(register_name(cls, vector).lower() + scale)
        if self.index is not None:
            parts.append(register_name("R64", self.index).lower())
        text = "+".join(parts)
        if self.displacement or not parts:
            text += f"{self.displacement:+d}" if parts else f"{self.displacement:#x}"
        size = f"{_SIZES[op.width]} ptr " if op.is_memory and op.width in _SIZES else ""
        broadcast = f"{{{op.cls.split('_')[1]}}}" if "_1to" in op.cls else ""
        return f"{size}[{text}]{broadcast}"
