"""Instruction tables: generated data, read once."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from functools import cache
from importlib import resources

import msgspec

from cyclescope.errors import UsageError
from cyclescope.isa.form import Encoding, InstructionForm, Slot
from cyclescope.isa.operand import Operand

ISAS = ("x86-64", "aarch64", "riscv64")
_PACKAGES = {"x86-64": "cyclescope.isa.x86_64"}


class _RawForm(msgspec.Struct, array_like=True):
    id: str
    mnemonic: str
    signature: int
    flags: tuple[int, int, int]
    features: int
    attributes: int
    element: str
    names: tuple[str, str, str]
    encoding: _RawEncoding | None


class _RawEncoding(msgspec.Struct, array_like=True):
    base: str
    length: int
    layout: int
    displacement: tuple[int, int, int] | None
    immediates: tuple[tuple[int, int], ...]
    modrm: int


class _RawTable(msgspec.Struct):
    schema_version: int
    isa: str
    source: dict[str, str]
    signatures: list[list[tuple[str, str, str, int, int, str, str]]]
    features: list[tuple[str, ...]]
    attributes: list[list[str]]
    layouts: list[list[list[int]]]
    forms: list[_RawForm]


class Table:
    """All instruction forms of one ISA."""

    def __init__(self, isa: str, source: dict[str, str], forms: list[InstructionForm]) -> None:
        self.isa = isa
        self.source = source
        self.forms = forms
        self._by_id = {form.id: form for form in forms}

    def __iter__(self) -> Iterator[InstructionForm]:
        return iter(self.forms)

    def __len__(self) -> int:
        return len(self.forms)

    def __getitem__(self, form_id: str) -> InstructionForm:
        return self._by_id[form_id]

    def get(self, form_id: str) -> InstructionForm | None:
        """The form with this id, or None."""
        return self._by_id.get(form_id)


def _operands(raw: list[tuple[str, str, str, int, int, str, str]]) -> tuple[Operand, ...]:
    return tuple(
        Operand(name, kind, cls, width, bool(a & 1), bool(a & 2), bool(a & 4), bool(a & 8), fixed, element)
        for name, kind, cls, width, a, fixed, element in raw
    )


def _scatter(positions: list[int]) -> tuple[int, ...]:
    """XOR pattern per register number; bit -1 does not exist in this encoding.

    A field without bits (a segment register) encodes number 0 only.
    """
    if not positions:
        return (0,)
    masks = [1 << p if p >= 0 else 0 for p in positions]
    patterns = []
    for number in range(max(8, 1 << len(positions))):  # AH to BH are 4 to 7 in two bits
        pattern = 0
        for bit, mask in enumerate(masks):
            if number >> bit & 1:
                pattern ^= mask
        patterns.append(pattern)
    return tuple(patterns)


def _layout(raw: list[list[int]]) -> tuple[tuple[Slot, ...], tuple[tuple[int, ...], ...]]:
    slots = tuple(Slot(field[0], field[1]) for field in raw)
    return slots, tuple(_scatter(field[2:]) for field in raw)


def _build(raw: _RawTable) -> Table:
    signatures = [_operands(s) for s in raw.signatures]
    attributes = [frozenset(a) for a in raw.attributes]
    layouts = [_layout(layout) for layout in raw.layouts]
    forms = []
    for f in raw.forms:
        e = f.encoding
        encoding = None
        if e is not None:
            encoding = Encoding(
                int(e.base, 16), e.length, *layouts[e.layout], e.displacement, e.immediates, e.modrm
            )
        forms.append(
            InstructionForm(
                f.id,
                f.mnemonic,
                signatures[f.signature],
                *f.flags,
                raw.features[f.features],
                attributes[f.attributes],
                f.element,
                *f.names,
                encoding,
                f.signature,
            )
        )
    return Table(raw.isa, raw.source, forms)


@cache
def load_table(isa: str) -> Table:
    """The instruction table of an ISA. Raises UsageError where none ships."""
    if isa not in _PACKAGES:
        raise UsageError(f"no instruction table for {isa}", f"this version knows {', '.join(_PACKAGES)}")
    data = resources.files(_PACKAGES[isa]).joinpath("tables/forms.json.xz").read_bytes()
    return _build(msgspec.json.decode(lzma.decompress(data), type=_RawTable))
