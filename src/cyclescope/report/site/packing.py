"""Data in pages: JSON, deflated, in base 85. A browser inflates it itself (DecompressionStream)."""

from __future__ import annotations

import base64
import zlib

import msgspec

FORMS = 128  # per part: what opening one card unpacks; more would be packed hardly better


_OPENING, _INSTEAD = "<", ","  # of Python's alphabet, one character would begin an element


def packed(data: object) -> str:
    """What `inflate` of the page's script reads."""
    return base64.b85encode(zlib.compress(msgspec.json.encode(data), 9)).decode().replace(_OPENING, _INSTEAD)


def unpacked(text: str) -> object:
    """The same back again."""
    found: object = msgspec.json.decode(zlib.decompress(base64.b85decode(text.replace(_INSTEAD, _OPENING))))
    return found


class Words:
    """Texts that are said often, each once: what refers to one has its number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, from 0 on."""
        return self.numbers.setdefault(text, len(self.numbers))

    @property
    def texts(self) -> list[str]:
        """Every text in the order of the numbers."""
        return list(self.numbers)
