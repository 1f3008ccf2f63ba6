"""Mixes of a store: they are read again and again while more come, and sought among all that it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from cyclescope.measure.plan import Key
from cyclescope.measure.record import Record
from cyclescope.measure.store import Store


class HasRecords(Protocol):
    """A store, or what was read of one."""

    def records_of(self, quantities: Sequence[str], /) -> Iterable[Record]:
        """Records of quantities."""


class ReadOnce:
    """Records of a store from which none is taken out meanwhile: each is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: dict[Key, Record] = {}
        self._next = 0

    def records_of(self, quantities: Sequence[str]) -> Iterable[Record]:
        """Records of quantities, always of the same; the later of one experiment counts."""
        for record in self._store.records_of(quantities, since=self._next):
            self._found.pop(record.key, None)
            self._found[record.key] = record
            self._next = max(self._next, record.id + 1)
        return self._found.values()
