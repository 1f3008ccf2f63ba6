"""Encodings of fixed-width instruction sets: fixed bits, and fields that hold the operands.

AArch64 and RISC-V encode an operand as a number in a few bits, wherever these are. What the number means (a
register, a count, a shift) is data too: which numbers are legal, which registers they are, how an assembler
writes them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import cache, cached_property
from typing import cast

import msgspec

from cyclescope.isa.notation import FUNCTIONS

_Rule = tuple[object, ...]


_NUMBER = re.compile(r"(?<![\w.])-?(?:0x[0-9a-f]+|\d+\.\d+(?:e[-+]?\d+)?|\d+)(?![\w.])")

_MASKS: dict[object, int] = {"bit_mask_32": 32, "bit_mask_64": 64}


def normal(text: str) -> str:
    """Assembly without what assemblers write in several ways: letters small, numbers plain, no `#`."""
    return _NUMBER.sub(_plain, text.lower().replace("#", ""))


def _plain(match: re.Match[str]) -> str:
    text = match[0]
    return str(int(text, 16)) if "x" in text else repr(float(text)) if "." in text else str(int(text))


class FieldValues(msgspec.Struct, frozen=True, dict=True, eq=False):
    """What the values of a field are.

    `legal` is the table's rule: empty for all, else a kind and its arguments. `registers` has LLVM's name of
    the register for each value, empty where the value is none; it is empty for what is no register.
    """

    width: int
    rule: _Rule
    registers: tuple[str, ...]

    @cached_property
    def legal(self) -> Sequence[int]:
        """All legal values in ascending order."""
        every = range(1 << self.width)
        if not self.rule:
            return every
        kind, *arguments = self.rule
        if kind == "range":
            return range(int(str(arguments[0])), int(str(arguments[1])) + 1)
        if kind == "bits":
            bits = int(str(arguments[0]), 16)
            return tuple(value for value in every if bits >> value & 1)
        return tuple(value for value in every if _means_something(str(arguments[0]), value))

    @cached_property
    def allowed(self) -> Container[int]:
        """The legal values, for quick look-up."""
        return self.legal if isinstance(self.legal, range) else frozenset(self.legal)


def _means_something(function: str, value: int) -> bool:
    try:
        FUNCTIONS[function](value)
    except ValueError:
        return False
    return True


class Notation(msgspec.Struct, frozen=True, dict=True, eq=False):
    """How the values of a field are written."""

    width: int
    rule: _Rule

    @cached_property
    def _exceptions(self) -> dict[int, str]:
        return dict(cast("list[tuple[int, str]]", self.rule[-1] if self.rule[0] != "list" else []))

    def text(self, value: int) -> str:
        """A value as an assembler writes it."""
        kind, first, *rest = self.rule
        if kind == "list":
            return str(first[value])  # type: ignore[index]
        if value in self._exceptions:
            return self._exceptions[value]
        return FUNCTIONS[str(first)](value) if kind == "function" else self._number(str(first), rest, value)

    @cached_property
    def _known(self) -> dict[str, int]:
        """Values by text, of all that no rule of numbers gives."""
        if self.rule[0] == "number":
            return {normal(text): value for value, text in self._exceptions.items()}
        known: dict[str, int] = {}
        for value in range(1 << self.width):
            if self.rule[0] == "list" or _means_something(str(self.rule[1]), value):
                known.setdefault(normal(self.text(value)), value)
        return known

    @cached_property
    def _around(self) -> tuple[str, str]:
        """What stands before and behind the number."""
        return normal(str(self.rule[1])), normal(str(self.rule[2]))

    @cached_property
    def pattern(self) -> str:
        """A regular expression of all texts, and of a few others."""
        kind = self.rule[0]
        if kind == "function":
            return ".+?"
        texts = [re.escape(text) for text in sorted(self._known, key=len, reverse=True)]
        if kind == "number":
            texts.append("-?\\w+".join(map(re.escape, self._around)))
        return "|".join(texts)

    def read(self, text: str) -> int:
        """The value behind a text, however assemblers spell it. Raises ValueError where there is none."""
        text = normal(text)
        if text in self._known:
            return self._known[text]
        if text.startswith("-") and (width := _MASKS.get(self.rule[1])):  # as the bits that it has
            return self.read(str(int(text) & (1 << width) - 1))
        if self.rule[0] == "number":
            _, _, _, scale, bias, *_ = self.rule
            before, after = self._around
            inside = text.removeprefix(before).removesuffix(after)
            value, rest = divmod(int(inside) - int(str(bias)), int(str(scale)))
            value &= (1 << self.width) - 1
            if not rest and normal(self.text(value)) == f"{before}{inside}{after}" == text:
                return value
        raise ValueError(f"{text!r} is nothing that can be written there")

    def _number(self, before: str, rest: list[object], value: int) -> str:
        after, scale, bias, signed, base = rest[:5]
        number = (value - (1 << self.width) if signed and value >> self.width - 1 else value) * int(
            str(scale)
        )
        number += int(str(bias))
        return f"{before}{number:#x}{after}" if base == 16 else f"{before}{number}{after}"


class Field(msgspec.Struct, frozen=True, dict=True, eq=False):
    """Bits that hold an operand: bit k of its value is at `positions[k]` of the instruction."""

    operand: int
    positions: tuple[int, ...]
    values: FieldValues

    @property
    def is_register(self) -> bool:
        """Whether values are registers."""
        return bool(self.values.registers)

    @cached_property
    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """(position, mask, place in the value) of each run of neighbouring bits."""
        runs: list[tuple[int, int, int]] = []
        for place, position in enumerate(self.positions):
            if runs and position - place == runs[-1][0] - runs[-1][2]:
                start, mask, first = runs[-1]
                runs[-1] = start, mask << 1 | 1, first
            else:
                runs.append((position, 1, place))
        return tuple(runs)

    def extract(self, word: int) -> int:
        """The field's value in an instruction."""
        value = 0
        for position, mask, place in self.runs:
            value |= (word >> position & mask) << place
        return value

    def insert(self, value: int) -> int:
        """The value at its place, all other bits 0."""
        word = 0
        for position, mask, place in self.runs:
            word |= (value >> place & mask) << position
        return word


class BitEncoding(msgspec.Struct, frozen=True, dict=True, eq=False):
    """A fixed-width instruction: `base` where `mask` is set, else fields and bits that say nothing.

    `base` also has what those bits should be. `length` is in bytes.
    """

    base: int
    mask: int
    length: int
    fields: tuple[Field, ...]

    def encode(self, values: Sequence[int]) -> bytes:
        """Machine code with these values, one per field. Raises ValueError for one that is not legal."""
        word = self.base
        for field, value in zip(self.fields, values, strict=True):
            if value not in field.values.allowed:
                raise ValueError(f"{value} is no legal value of operand {field.operand + 1}")
            word |= field.insert(value)
        return word.to_bytes(self.length, "little")

    def matches(self, word: int) -> bool:
        """Whether an instruction is this one, with legal values in every field."""
        return word & self.mask == self.fixed and all(
            field.extract(word) in field.values.allowed for field in self._restricted
        )

    @cached_property
    def fixed(self) -> int:
        """The bits that make it this instruction."""
        return self.base & self.mask

    @cached_property
    def _restricted(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.values.rule)

    def extract(self, word: int) -> tuple[int, ...]:
        """Values of the fields in an instruction."""
        return tuple(field.extract(word) for field in self.fields)


class Syntax(msgspec.Struct, frozen=True, dict=True, eq=False):
    """Assembly: a template, and for each place of it the field that is written there, and how."""

    template: str
    places: tuple[tuple[int, Notation], ...]

    def text(self, values: Sequence[int]) -> str:
        """One line, with these values of the fields."""
        parts = (notation.text(values[field]) for field, notation in self.places)
        return self.template.format(*parts).rstrip()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"\{\d+\}", self.template)
        literals = [re.escape(normal(piece.replace("{{", "{").replace("}}", "}"))) for piece in pieces]
        operands = (f"({notation.pattern})" for _, notation in self.places)
        parts = (operand + literal for operand, literal in zip(operands, literals[1:], strict=True))
        return re.compile(literals[0] + "".join(parts))

    def read(self, text: str, count: int) -> tuple[int, ...]:
        """Values of the `count` fields in a line with single blanks. Raises ValueError for another form's."""
        match = self._pattern.fullmatch(normal(text))
        if match is None:
            raise ValueError(f"{text!r} does not fit {self.template}")
        found: dict[int, int] = {}
        for (field, notation), part in zip(self.places, match.groups(), strict=True):
            value = notation.read(part)
            if found.setdefault(field, value) != value:
                raise ValueError(f"{text!r} has different values for one field")
        if len(found) != count:
            raise ValueError(f"{text!r} does not say everything")
        return tuple(found[field] for field in range(count))


@cache
def default_value(field: Field, role: str) -> int:
    """A plain value of a field that is no register: no shift, no offset; 1 for a number where legal."""
    wanted = 0 if role == "offset" or field.values.width in (2, 8) else 1
    return wanted if wanted in field.values.allowed else field.values.legal[0]
