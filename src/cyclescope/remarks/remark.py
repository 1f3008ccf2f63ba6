"""A remark: what is said, with the values in it; and its sentence."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec


class Meaning(Enum):
    """What can be said of a subject: a member is a meaning, its value the words, with braces for values."""

    __hash__ = object.__hash__  # Enum's own is a function in Python, and members are looked up often

    def of(self, *values: object) -> Remark:
        """The remark with these values, remarks among them."""
        return Remark(self, values)


class Remark(msgspec.Struct, frozen=True):
    """What is said, and the values in it; nothing without a meaning."""

    meaning: Meaning | None = None
    values: tuple[object, ...] = ()

    def __bool__(self) -> bool:
        return self.meaning is not None

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The sentence, "" where nothing is said."""
        return "" if self.meaning is None else str(self.meaning.value).format(*self.values)


NOTHING = Remark()
LISTED = 8  # things of any number that a message or a note has: as many as are read at a glance


def together(remarks: Iterable[Remark | str]) -> str:
    """The sentences of several remarks in one line, each once."""
    return "; ".join(dict.fromkeys(text for one in remarks if (text := str(one))))


def listed(remarks: Iterable[Remark]) -> str:
    """The words of several remarks that are parts of another."""
    return ", ".join(one.text for one in remarks if one)
