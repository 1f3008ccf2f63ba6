"""One latency out of several, of classes of values, and what pairs of one form say of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cyclescope.infer.timing.results import EXACT, HALF, INTERVAL, UPPER_BOUND, Latency
from cyclescope.isa.dataflow import Pair
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.remarks.remark import Remark, together
from cyclescope.remarks.timing import Timing, cause_of

REPEATED = Timing.REPEATED.of()
FLAGS_TOGETHER = "flags"  # the convention that flags which one instruction writes are there at once
_APART = 2.0  # cycles: an index takes that much longer than a base at most
_ADJUST = "flags.AF"


def with_repeated_loads(latencies: Sequence[Latency], every: Sequence[Pair]) -> tuple[Latency, ...]:
    """The law that base and index reach a store alike: what takes much longer is a bound only."""
    least: dict[tuple[str, str], float] = {}
    keys = [(pair.source.name.rpartition(".")[0], pair.target.name) for pair in every]
    stores = [pair.source.part in ("address", "index") and pair.target.part == "data" for pair in every]
    for key, lat, is_address in zip(keys, latencies, stores, strict=True):
        if lat.max is not None and is_address:
            least[key] = min(lat.max, least.get(key, lat.max))
    return tuple(
        msgspec.structs.replace(lat, kind=UPPER_BOUND, min=0.0, note=REPEATED.text, cause=cause_of(REPEATED))
        if is_address and (lat.max or 0.0) > least.get(key, 0.0) + _APART
        else lat
        for key, lat, is_address in zip(keys, latencies, stores, strict=True)
    )


def with_flags_together(latencies: Sequence[Latency]) -> tuple[Latency, ...]:
    """AF by the other flags that are written from the same source, where these agree and nothing says else.

    Only LAHF reads it, with four others, so that its own chains give no more than a bound.
    """
    others: dict[str, list[Latency]] = {}
    for latency in latencies:
        if latency.target.startswith("flags.") and latency.target != _ADJUST:
            others.setdefault(latency.source, []).append(latency)
    return tuple(
        _like_others(latency, others.get(latency.source, ())) if latency.target == _ADJUST else latency
        for latency in latencies
    )


def _like_others(latency: Latency, others: Sequence[Latency]) -> Latency:
    cycles = {other.max if other.kind == EXACT and other.min == other.max else None for other in others}
    if latency.kind != UPPER_BOUND or latency.max is None or len(cycles) != 1:
        return latency
    (value,) = cycles
    if value is None or not 1 <= value < latency.max + HALF:
        return latency
    names = {n for one in (latency, *others) for n in one.convention.split(", ") if n}
    surest = max(others, key=lambda other: other.confidence == HIGH)
    return msgspec.structs.replace(
        latency, kind=EXACT, min=value, max=value, convention=", ".join(sorted(names | {FLAGS_TOGETHER})),
        bounds=(0.0, max(latency.max, value)), note="", confidence=surest.confidence,
    )  # fmt: skip


def over_values(found: Mapping[str, Latency]) -> Latency:
    """One latency from those of several classes of values; an upper bound if one of them is, and as sure as
    the least sure.
    """
    first = next(iter(found.values()))
    values = {name: lat.max for name, lat in found.items() if lat.max is not None}
    if not values:
        return first
    bound = next((lat for lat in found.values() if lat.kind == UPPER_BOUND), None)
    least = min(lat.min or 0.0 for lat in found.values())
    shown = first if bound is None else bound
    told = [lat.confidence for lat in found.values() if lat.max is not None]
    ranges = [lat.bounds for lat in found.values() if lat.bounds]
    bounds = (min(r[0] for r in ranges), max(r[1] for r in ranges)) if len(ranges) == len(found) else None
    return msgspec.structs.replace(
        first, min=least, max=max(values.values()), values=values, kind=shown.kind, note=shown.note,
        cause=shown.cause, bounds=bounds, convention=first.convention if bounds else "",
        confidence=min(told, key=(LOW, MEDIUM, HIGH).index),
    )  # fmt: skip


def doubted(latency: Latency, why: Remark | None) -> Latency:
    """Less sure where another chain of the pair says otherwise: the core is in another state there."""
    if why is None or latency.kind not in (EXACT, INTERVAL) or not latency.max:
        return latency
    trust = MEDIUM if latency.confidence == HIGH else latency.confidence
    return msgspec.structs.replace(latency, note=together((latency.note, why)), confidence=trust)
