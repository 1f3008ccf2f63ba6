"""Instruction tables: generated data, read once."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, partial
from importlib import resources
from typing import cast, overload

import msgspec

from cyclescope.errors import UsageError
from cyclescope.isa.form import Encoding, InstructionForm, Slot
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set, isa_names

_Scatter = tuple[tuple[int, ...], ...]
_Signature = list[tuple[str, str, str, int, int, str, str]]


class _RawForm(msgspec.Struct, array_like=True, gc=False):
    id: str
    mnemonic: str
    signature: int
    flags: tuple[int, int, int]
    features: int
    attributes: int
    element: str
    names: tuple[str, str, str]
    encoding: msgspec.Raw  # most are never asked for


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
    signatures: list[_Signature]
    features: list[tuple[str, ...]]
    attributes: list[list[str]]
    layouts: list[list[list[int]]]
    forms: list[_RawForm]


class Table:
    """All instruction forms of one ISA.

    Vector instructions of RISC-V are forms under every configuration too, made when asked for by id
    (`VADD_VV@e32,m1`), those of AArch64 with shifted and extended operands (`ADDXrs@lsl4`); only those
    without are gone through.
    """

    def __init__(self, isa: str, source: dict[str, str], forms: Sequence[InstructionForm]) -> None:
        self.isa = isa
        self.source = source
        self.forms = forms
        ids = forms.ids if isinstance(forms, _FormsWhenAsked) else [form.id for form in forms]
        self._by_id = {name: number for number, name in enumerate(ids)}

    def __iter__(self) -> Iterator[InstructionForm]:
        return iter(self.forms)

    def __len__(self) -> int:
        return len(self.forms)

    def __contains__(self, form_id: object) -> bool:
        return isinstance(form_id, str) and self.get(form_id) is not None

    def __getitem__(self, form_id: str) -> InstructionForm:
        form = self.get(form_id)
        if form is None:
            raise KeyError(form_id)
        return form

    def get(self, form_id: str) -> InstructionForm | None:
        """The form with this id, or None."""
        number = self._by_id.get(form_id)
        if number is None:
            return self._variant(form_id) if "@" in form_id else None
        return self.forms[number]

    def kind(self, form_id: str) -> object | None:
        """What decides which pairs of sources and targets a form has; None for one that is not there."""
        number = self._by_id.get(form_id)
        if number is not None and isinstance(self.forms, _FormsWhenAsked):
            return self.forms.kind(number)
        form = self.get(form_id)
        return None if form is None else (form.signature, form.flags_read, form.flags_written)

    def of_code(self, code: str) -> list[InstructionForm]:
        """The forms that one of iced-x86's codes stands for."""
        return [self.forms[number] for number in self._by_code.get(code, ())]

    def of_opcode(self, opcode: str) -> list[InstructionForm]:
        """The forms that one of LLVM's opcodes stands for, in the table's order."""
        found, opcodes, last = [], self._opcodes, -1
        for _ in range(opcodes.count(opcode)):
            last = opcodes.index(opcode, last + 1)
            found.append(self.forms[last])
        return found

    @cached_property
    def _by_code(self) -> dict[str, list[int]]:
        forms = self.forms
        codes = forms.codes if isinstance(forms, _FormsWhenAsked) else [form.code for form in forms]
        found: dict[str, list[int]] = {}
        for number, code in enumerate(codes):
            found.setdefault(code, []).append(number)
        return found

    @cached_property
    def _opcodes(self) -> list[str]:
        forms = self.forms
        return forms.opcodes if isinstance(forms, _FormsWhenAsked) else [form.llvm for form in forms]

    def _variant(self, form_id: str) -> InstructionForm | None:
        plain, _, text = form_id.partition("@")
        number, variants = self._by_id.get(plain), instruction_set(self.isa).variants
        form = None if number is None else self.forms[number]
        found = variants.named(form, text) if form and variants else None
        return found if found and found.id == form_id else None


def _operands(raw: _Signature) -> tuple[Operand, ...]:
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


class _Rules(msgspec.Struct, frozen=True):
    """What decides which register numbers would mean something else."""

    masked: bool
    vector_index: bool
    displaced: bool

    def forbids(self, slot: Slot, indexed: bool, number: int) -> bool:
        """Whether the number is an escape: k0 is no mask, 4 a SIB byte or no index, 5 no base."""
        if slot.part == 0:
            return self.masked and slot.operand == 1 and number == 0
        if slot.part == 2:
            return number == 4 and not self.vector_index
        return (number & 7 == 4 and not indexed) or (number & 7 == 5 and not self.displaced)


def _guarded(slots: tuple[Slot, ...], scatter: _Scatter, rules: _Rules) -> _Scatter:
    """The patterns, with one beyond the longest instruction, for `encode` to fail on, where forbidden."""
    indexed = any(slot.part == 2 for slot in slots)
    return tuple(
        tuple(
            1 << 128 + place if rules.forbids(slot, indexed, number) else pattern
            for number, pattern in enumerate(patterns)
        )
        for place, (slot, patterns) in enumerate(zip(slots, scatter, strict=True))
    )


def _layout(raw: list[list[int]]) -> tuple[tuple[Slot, ...], _Scatter]:
    slots = tuple(Slot(field[0], field[1]) for field in raw)
    return slots, tuple(_scatter(field[2:]) for field in raw)


class _Encodings:
    """Makes encodings when they are asked for; forms with the same rules share their patterns."""

    def __init__(self, raw: _RawTable) -> None:
        self._raw = raw
        self._read = msgspec.json.Decoder(_RawEncoding | None).decode
        self._slots = cache(self._slots_of)

    def of(self, form: _RawForm) -> Encoding | None:
        """The encoding of one form, None where it has none."""
        found = self._read(form.encoding)
        if found is None:
            return None
        rules = _Rules(
            "masked" in self._raw.attributes[form.attributes],
            any(record[2].startswith("VSIB_") for record in self._raw.signatures[form.signature]),
            found.displacement is not None,
        )
        slots, scatter = self._slots(found.layout, rules)
        return Encoding(
            int(found.base, 16),
            found.length,
            slots,
            scatter,
            found.displacement,
            found.immediates,
            found.modrm,
        )

    def kind(self, form: _RawForm) -> tuple[int, bool] | None:
        """Where registers and addresses are in the encoding of a form, None where it has none."""
        found = self._read(form.encoding)
        return None if found is None else (found.layout, found.modrm >= 0)

    def _slots_of(self, layout: int, rules: _Rules) -> tuple[tuple[Slot, ...], _Scatter]:
        slots, scatter = _layout(self._raw.layouts[layout])
        return slots, _guarded(slots, scatter, rules)


class _FormsWhenAsked(Sequence[InstructionForm]):
    """Forms, each made when it is first asked for: most commands look at a few of ten thousand."""

    def __init__(self, raw: _RawTable) -> None:
        self._raw = raw
        self._operands = cache(lambda number: _operands(raw.signatures[number]))
        self._attributes = [frozenset(a) for a in raw.attributes]
        self._encodings = _Encodings(raw)
        self._made: list[InstructionForm | None] = [None] * len(raw.forms)

    @property
    def ids(self) -> list[str]:
        """Ids of all, without making any."""
        return [form.id for form in self._raw.forms]

    @property
    def opcodes(self) -> list[str]:
        """LLVM's opcode of each, without making any."""
        return [form.names[0] for form in self._raw.forms]

    @property
    def codes(self) -> list[str]:
        """What iced-x86 calls each, without making any."""
        return [form.names[-1] for form in self._raw.forms]

    def kind(self, number: int) -> object:
        """What decides which pairs of sources and targets a form has, without making it."""
        form = self._raw.forms[number]
        return form.signature, form.flags[:2], self._encodings.kind(form)

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[InstructionForm]:
        if None in self._made:
            made, form = self._made, self._form
            pairs = zip(made, self._raw.forms, strict=True)
            self._made = [form(raw) if one is None else one for one, raw in pairs]
        return iter(cast("list[InstructionForm]", self._made))

    @overload
    def __getitem__(self, number: int) -> InstructionForm: ...
    @overload
    def __getitem__(self, number: slice) -> list[InstructionForm]: ...
    def __getitem__(self, number: int | slice) -> InstructionForm | list[InstructionForm]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        form = self._made[number]
        if form is None:
            form = self._made[number] = self._form(self._raw.forms[number])
        return form

    def _form(self, raw: _RawForm) -> InstructionForm:
        return InstructionForm(
            raw.id,
            raw.mnemonic,
            self._operands(raw.signature),
            *raw.flags,
            self._raw.features[raw.features],
            self._attributes[raw.attributes],
            raw.element,
            *raw.names,
            partial(self._encodings.of, raw),
            raw.signature,
            isa=self._raw.isa,
        )


@cache
def load_table(isa: str) -> Table:
    """The instruction table of an ISA. Raises UsageError where none ships."""
    if isa not in isa_names():
        raise UsageError(f"no instruction table for {isa}", f"this version knows {', '.join(isa_names())}")
    record = instruction_set(isa)
    data = lzma.decompress(resources.files(record.tables).joinpath("tables/forms.json.xz").read_bytes())
    if record.fixed_width:
        from cyclescope.isa.fixed_width import read_forms

        return Table(isa, *read_forms(data))
    raw = msgspec.json.decode(data, type=_RawTable)
    return Table(raw.isa, raw.source, _FormsWhenAsked(raw))
