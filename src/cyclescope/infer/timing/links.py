"""Latencies of links in a store."""

from __future__ import annotations

import math

import msgspec

from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.measure.store import Store


def stored_links(store: Store) -> dict[str, LinkLatency]:
    """Latencies of the links that a store has, but for those that are no latencies."""
    found = {}
    for key, value in store.links().items():
        try:
            link = msgspec.json.decode(value, type=LinkLatency)
        except (msgspec.DecodeError, RecursionError) as error:
            store.leave_out("link", key, str(error))
            continue
        if all(0 <= cycles < math.inf for cycles in (link.value, link.least, link.most)):
            found[key] = link
        else:
            store.leave_out("link", key, "no latency")
    return found
