"""Latencies of links in a store."""

from __future__ import annotations

import math

import msgspec

from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.measure.store import Store


def stored_links(store: Store) -> dict[str, LinkLatency]:
    """Latencies of the links that a store has, but for those that are no latencies.

    An emulator's times can come out below zero: then a link has no latency, and no row is damaged.
    """
    found = {}
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
    return found


def is_latency(link: LinkLatency) -> bool:
    """Whether the cycles of a link can be a latency."""
    return all(0 <= cycles < math.inf for cycles in (link.value, link.least, link.most))
