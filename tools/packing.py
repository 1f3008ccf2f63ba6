"""What the generators of all tables share: values by index, and small files."""

from __future__ import annotations

import json
import lzma
from typing import Any

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


class Interner:
    """Distinct values in order of appearance, referred to by index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._index: dict[str, int] = {}

    def __call__(self, value: Any) -> int:
        """Index of a value, new or known."""
        key = json.dumps(value)
        if key not in self._index:
            self._index[key] = len(self.values)
            self.values.append(value)
        return self._index[key]


def packed(data: Any) -> bytes:
    """Data as JSON, packed as small as can be."""
    return lzma.compress(json.dumps(data, separators=(",", ":")).encode(), filters=_FILTERS)
