"""Reading tables of instructions whose encodings are fields of bits, as AArch64's and RISC-V's.

What forms have in common stands once in a table, and forms have its number. An operand of a signature is its
name, kind, class, width in bits, access, fixed register, element and role; of the access, bit 0 is read, 1
written, 2 conditionally, 3 not in the text, 4 written before all is read. A field is the operand, the number
of its values and its positions in the instruction, the lowest bit first. `free` are bits that no operand has
and no CPU looks at. Notations are as `Notation` takes them (`isa/fields.py`).
"""

from __future__ import annotations

import msgspec

from cyclescope.isa.fields import BitEncoding, Field, FieldValues, Notation, Syntax
from cyclescope.isa.form import ALL_FLAGS, InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import file_of, units

_Signature = list[tuple[str, str, str, int, int, str, str, str]]


class _RawForm(msgspec.Struct, array_like=True):
    name: str
    text: str
    places: int
    signature: int
    flags: tuple[list[str], list[str]]
    features: int
    attributes: int
    element: str
    base: str
    free: int
    length: int
    layout: int


class _RawTable(msgspec.Struct):
    schema_version: int
    isa: str
    source: dict[str, str]
    signatures: list[_Signature]
    features: list[tuple[str, ...]]
    attributes: list[list[str]]
    values: list[tuple[list[object], tuple[str, ...]]]
    notations: list[tuple[object, ...]]
    fields: list[list[int]]
    layouts: list[list[int]]
    places: list[list[tuple[int, int]]]
    forms: list[_RawForm]


def read_forms(data: bytes) -> tuple[dict[str, str], list[InstructionForm]]:
    """Source and forms of a table."""
    raw = msgspec.json.decode(data, type=_RawTable)
    return raw.source, _Reader(raw).forms()


class _Reader:
    """Makes forms; what they have in common is made once."""

    def __init__(self, raw: _RawTable) -> None:
        self.raw = raw
        values = [_Shared(*pair) for pair in raw.values]
        self.fields = [Field(f[0], tuple(f[2:]), values[f[1]].of(len(f) - 2)) for f in raw.fields]
        self.layouts = [tuple(self.fields[n] for n in layout) for layout in raw.layouts]
        self.attributes = [frozenset(a) for a in raw.attributes]
        self.signatures: dict[int, tuple[Operand, ...]] = {}
        self.places: dict[tuple[int, int], tuple[tuple[int, Notation], ...]] = {}
        self.notations: dict[tuple[int, int], Notation] = {}

    def forms(self) -> list[InstructionForm]:
        """All forms of the table."""
        return [self._form(f) for f in self.raw.forms]

    def _form(self, f: _RawForm) -> InstructionForm:
        fields = self.layouts[f.layout]
        read, written = (sum(1 << ALL_FLAGS.index(name) for name in names) for names in f.flags)
        return InstructionForm(
            f.name,
            f.text.partition(" ")[0].partition("{")[0].rstrip(".").upper(),
            self._operands(f.signature, fields),
            read,
            written,
            0,
            self.raw.features[f.features],
            self.attributes[f.attributes],
            f.element,
            f.name,
            "",
            "",
            None,
            f.signature,
            _encoding(f, fields),
            Syntax(f.text, self._places(f.places, f.layout)),
            isa=self.raw.isa,
        )

    def _operands(self, number: int, fields: tuple[Field, ...]) -> tuple[Operand, ...]:
        if number not in self.signatures:
            names = {field.operand: field.values.registers for field in fields}
            self.signatures[number] = tuple(
                _operand(record, names.get(position, ()), self.raw.isa)
                for position, record in enumerate(self.raw.signatures[number])
            )
        return self.signatures[number]

    def _places(self, number: int, layout: int) -> tuple[tuple[int, Notation], ...]:
        key = number, layout
        if key not in self.places:
            fields = self.layouts[layout]
            self.places[key] = tuple(
                (field, self._notation(notation, len(fields[field].positions)))
                for field, notation in self.raw.places[number]
            )
        return self.places[key]

    def _notation(self, number: int, width: int) -> Notation:
        key = number, width
        if key not in self.notations:
            self.notations[key] = Notation(width, self.raw.notations[number])
        return self.notations[key]


class _Shared:
    """Values of fields by their width."""

    def __init__(self, rule: list[object], registers: tuple[str, ...]) -> None:
        self._rule = tuple(rule)
        self._registers = registers
        self._known: dict[int, FieldValues] = {}

    def of(self, width: int) -> FieldValues:
        """The values of a field of so many bits."""
        if width not in self._known:
            self._known[width] = FieldValues(width, self._rule, self._registers)
        return self._known[width]


def _operand(
    record: tuple[str, str, str, int, int, str, str, str], registers: tuple[str, ...], isa: str
) -> Operand:
    name, kind, cls, width, access, fixed, element, role = record
    file = file_of(registers or (fixed,)) if kind == "register" else ""
    read, write, conditional, implicit, early = (bool(access >> bit & 1) for bit in range(5))
    group = max((len(units(register, isa)) for register in registers if register), default=1)
    return Operand(
        name, kind, cls, width, read, write, conditional, implicit, fixed, element, role, file, early, group
    )


def _encoding(f: _RawForm, fields: tuple[Field, ...]) -> BitEncoding:
    free = f.free
    for field in fields:
        for position in field.positions:
            free |= 1 << position
    return BitEncoding(int(f.base, 16), ((1 << 8 * f.length) - 1) & ~free, f.length, fields)
