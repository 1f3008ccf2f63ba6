"""Latencies of links in a store, and what several of them take together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.measure.store import Store


class LinksInARow(NamedTuple):
    """Links in a row: cycles and conventions of those that are known, and the keys of others."""

    value: float
    least: float
    most: float
    convention: str
    lost: tuple[str, ...]


class KnownLinks(dict[str, LinkLatency]):
    """Latencies of links by key. Many chains have the same links, which are added up once."""

    def __init__(self, links: Mapping[str, LinkLatency]) -> None:
        super().__init__(links)
        self._paths: dict[tuple[str, ...], LinksInARow] = {}

    def along(self, keys: tuple[str, ...]) -> LinksInARow:
        """All of some links."""
        found = self._paths.get(keys)
        if found is None:
            found = self._paths[keys] = self._path(keys)
        return found

    def _path(self, keys: tuple[str, ...]) -> LinksInARow:
        known = [self[key] for key in keys if key in self]
        names = sorted({name for link in known for name in link.convention.split(", ") if name})
        return LinksInARow(
            sum(link.value for link in known), sum(link.least for link in known),
            sum(link.most for link in known), ", ".join(names), tuple(key for key in keys if key not in self),
        )  # fmt: skip


def stored_links(store: Store) -> KnownLinks:
    """Latencies of the links that a store has, but for those that are no latencies.

    An emulator's times can come out below zero: then a link has no latency, and no row is damaged.
    """
    found: dict[str, LinkLatency] = {}
    for key, value in store.links().items():
        try:
            link = msgspec.json.decode(value, type=LinkLatency)
        except (msgspec.DecodeError, RecursionError) as error:
            store.leave_out("link", key, str(error))
            continue
        if is_latency(link):
            found[key] = link
        elif not store.emulated:
            store.leave_out("link", key, "no latency")
    return KnownLinks(found)


def is_latency(link: LinkLatency) -> bool:
    """Whether the cycles of a link can be a latency."""
    return all(0 <= cycles < math.inf for cycles in (link.value, link.least, link.most))
