"""The decoder of AArch64 and RISC-V: machine code to forms and the values of their operands.

It knows what the instruction table says and nothing else. Forms are found by a tree of look-ups: most of them
differ in a few bits that nearly all have fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, reduce
from operator import and_, or_

import msgspec

from cyclescope.errors import UnsupportedInstruction, UsageError
from cyclescope.isa.form import InstructionForm, flag_names
from cyclescope.isa.register import units
from cyclescope.isa.registry import instruction_set, instruction_sets, isa_names
from cyclescope.isa.table import Table, load_table

_SMALL = 4  # forms that are compared one by one
_MOST = 0.7  # of the forms have a bit fixed that tells them apart
_BITS = 8  # to look up at a time

_CONDITION = "ccode"  # LLVM's class of AArch64's conditions
_CONDITION_FLAGS = ("Z", "C", "N", "V", "ZC", "NV", "NZV", "")  # of EQ and NE, CS and CC, ..., AL


class Decoded(msgspec.Struct, frozen=True):
    """An instruction: its form and a value for every field of its encoding.

    `length` is in bytes; `isa` names registers.
    """

    form: InstructionForm
    values: tuple[int, ...]
    isa: str

    @property
    def length(self) -> int:
        """Bytes of machine code."""
        assert self.form.bits is not None
        return self.form.bits.length

    @property
    def text(self) -> str:
        """Assembly."""
        assert self.form.syntax is not None
        return self.form.syntax.text(self.values)

    def value(self, operand: int) -> int | None:
        """The value of the operand at a position, None where no field holds it."""
        assert self.form.bits is not None
        pairs = zip(self.form.bits.fields, self.values, strict=True)
        return next((value for field, value in pairs if field.operand == operand), None)

    def register(self, operand: int) -> str:
        """LLVM's name of the register at an operand's position, empty where it is none."""
        assert self.form.bits is not None
        for field, value in zip(self.form.bits.fields, self.values, strict=True):
            if field.operand == operand and field.is_register:
                return field.values.registers[value]
        return self.form.operands[operand].fixed

    def units(self, operand: int) -> tuple[str, ...]:
        """The registers at an operand's position; see `cyclescope.isa.register.units`."""
        return units(self.register(operand), self.isa)

    @property
    def sources(self) -> tuple[str, ...]:
        """Registers that are read, each once; tied and implicit ones too."""
        return self._all(op.is_register and op.read for op in self.form.operands)

    @property
    def targets(self) -> tuple[str, ...]:
        """Registers that are written, each once."""
        return self._all(op.is_register and op.write for op in self.form.operands)

    @property
    def flags_read(self) -> tuple[str, ...]:
        """Flags that are read; of NZCV those that the condition is about, where there is one."""
        found = flag_names(self.form.flags_read)
        for position, op in enumerate(self.form.operands):
            if op.cls == _CONDITION:
                wanted = _CONDITION_FLAGS[(self.value(position) or 0) >> 1]
                return tuple(name for name in found if name in wanted)
        return found

    def _all(self, chosen: Iterable[bool]) -> tuple[str, ...]:
        found = [unit for position, yes in enumerate(chosen) if yes for unit in self.units(position)]
        return tuple(dict.fromkeys(found))


class _Node:
    """Forms, told apart when first looked at: by bits that most have fixed, down to a few forms."""

    __slots__ = ("_children", "_forms", "_mask", "_used")

    def __init__(self, forms: list[InstructionForm], used: int) -> None:
        self._forms = forms
        self._used = used
        self._mask = 0
        self._children: dict[int, _Node] | None = None

    def candidates(self, word: int) -> Sequence[InstructionForm]:
        """The forms that an instruction may be, the most specific first."""
        node: _Node | None = self
        while node is not None:
            children = node._split() if node._children is None else node._children
            if not children:
                return node._forms
            node = children.get(word & node._mask)
        return ()

    def _split(self) -> dict[int, _Node]:
        bits = _telling(self._forms, self._used) if len(self._forms) > _SMALL else []
        self._mask = sum(1 << bit for bit in bits)
        groups: dict[int, list[InstructionForm]] = {}
        for form in self._forms:
            for key in _keys(form, self._mask):
                groups.setdefault(key, []).append(form)
        if not bits or max(map(len, groups.values())) == len(self._forms):
            self._forms = sorted(self._forms, key=lambda form: -_encoding(form)[1].bit_count())
            groups = {}
        self._children = {key: _Node(group, self._used | self._mask) for key, group in groups.items()}
        return self._children


class TableDecoder:
    """Decoder of one ISA.

    RISC-V's optional extensions (vendors', drafts, those for 32 bits) use the same encodings; `features`
    names the ones to decode.
    """

    def __init__(self, table: Table, features: Collection[str] = ()) -> None:
        self.isa = table.isa
        wanted = set(features)
        chosen = [
            form
            for form in table
            if form.bits and ("optional" not in form.attributes or wanted.issuperset(form.features))
        ]
        lengths = {form.bits.length for form in chosen if form.bits}
        self._trees = {
            length: _Node([form for form in chosen if form.bits and form.bits.length == length], 0)
            for length in lengths
        }

    def find(self, word: int, length: int = 4) -> InstructionForm | None:
        """The form of an instruction of `length` bytes, as a little-endian number."""
        node = self._trees.get(length)
        for form in node.candidates(word) if node else ():
            if form.bits and form.bits.matches(word):
                return form
        return None

    def decode(self, code: bytes, at: int = 0) -> Decoded | None:
        """The instruction at an offset; None where the table has none such, or the code ends within it."""
        length = self.length(code, at)
        word = int.from_bytes(code[at : at + length], "little")
        form = self.find(word, length) if at + length <= len(code) else None
        if form is None or form.bits is None:
            return None
        return Decoded(form, form.bits.extract(word), self.isa)

    def length(self, code: bytes, at: int = 0) -> int:
        """Bytes of the instruction at an offset."""
        record = instruction_set(self.isa)
        return record.length(code[at]) if at < len(code) else record.step

    def decode_all(self, code: bytes) -> Iterator[Decoded]:
        """All instructions of a piece of code. Raises UnsupportedInstruction for anything else."""
        at = 0
        while at < len(code):
            found = self.decode(code, at)
            if found is None:
                word = code[at : at + self.length(code, at)].hex()
                raise UnsupportedInstruction(f"{word} at byte {at} is no {self.isa} instruction of the table")
            yield found
            at += found.length


@cache
def decoder(isa: str) -> TableDecoder:
    """The decoder of a table of fields, without optional extensions. Raises UsageError for another ISA."""
    if isa not in isa_names() or not instruction_set(isa).fixed_width:
        known = (record.name for record in instruction_sets() if record.fixed_width)
        raise UsageError(f"no decoder for {isa}", f"there is one for {' and one for '.join(known)}")
    return TableDecoder(load_table(isa))


def _encoding(form: InstructionForm) -> tuple[int, int]:
    assert form.bits is not None
    return form.bits.base & form.bits.mask, form.bits.mask  # few need `fixed` to be kept


def _telling(forms: list[InstructionForm], used: int) -> list[int]:
    """Bits that are fixed in most forms, and not alike in all."""
    encodings = [_encoding(form) for form in forms]
    masks = Counter(mask for _, mask in encodings)
    ones = reduce(or_, (base for base, _ in encodings))
    varying = ones & ~reduce(and_, (base for base, _ in encodings))
    counts = []
    for bit in range(reduce(or_, masks).bit_length()):
        fixed = sum(count for mask, count in masks.items() if mask >> bit & 1)
        told = fixed < len(forms) or varying >> bit & 1
        if told and fixed >= _MOST * len(forms) and not used >> bit & 1:
            counts.append((-fixed, bit))
    return [bit for _, bit in sorted(counts)[:_BITS]]


def _keys(form: InstructionForm, bits: int) -> list[int]:
    """Values of some bits that a form can have."""
    base, mask = _encoding(form)
    keys = [base & bits]
    free = bits & ~mask
    while free:
        bit = free & -free
        keys += [key | bit for key in keys]
        free ^= bit
    return keys
