"""How long does a load take that reads what was just stored, and when is it not forwarded?

As for memory renaming, with loads that are narrower than the store, begin elsewhere in it, or go beyond it,
by another register. A load of as much as was stored is forwarded; one that begins in the middle of a store
and goes beyond it cannot be had from it. What is nearer to the second has to wait for the cache as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import FORWARDING, CoreAnswer, forwarding_subject
from cyclescope.probe.code import NUMBERS, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import steady
from cyclescope.probe.memory.transfers import Transfer, groups, load_latency
from cyclescope.probe.question import (
    GridPlace,
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import Unclear, UnclearMemory

PLACE = 64  # bytes from the pointer: the beginning of a line
LONGER = 1.5  # times as long as what is forwarded: what cannot be had from a store takes longer than that
_SAME, _BEYOND, _ASKED, _LINK = "same", "beyond", "asked", "link"


def _cases(isa: str) -> Iterator[ProbeCase]:
    for kind, group in groups(isa).items():
        whole = next(one for one in group if one.bits == 64)
        for stored in group:
            for loaded in group:
                yield from _pair(isa, stored, loaded, kind, whole)


def _pair(isa: str, stored: Transfer, loaded: Transfer, kind: str, whole: Transfer) -> Iterator[ProbeCase]:
    beyond = whole.bits // 16
    controls = (
        _point(isa, _SAME, whole, whole, 0),
        _point(isa, _BEYOND, whole, whole, beyond),
        _link(isa, f"{_SAME} {_LINK}", whole, whole),
        _link(isa, f"{_ASKED} {_LINK}", stored, loaded),
        load_latency(isa),
    )
    for offset in _offsets(stored.bits // 8, loaded.bits // 8):
        subject = forwarding_subject(stored.bits, loaded.bits, offset, kind)
        points = (*controls, _point(isa, _ASKED, stored, loaded, offset))
        place = GridPlace(kind or "general", f"{stored.bits} bits", f"{loaded.bits} at +{offset}")
        yield ProbeCase(subject, points, offset == 0 and stored.bits == 64, place)


def _offsets(stored: int, loaded: int) -> list[int]:
    """Bytes from the beginning of a store: its beginning, the next byte, the middle, the end, and beyond."""
    inside = {0, 1, stored // 2, stored - loaded} if loaded < stored else {0}
    return sorted(at for at in inside if at >= 0) + ([stored // 2] if loaded >= stored > 1 else [])


def _point(isa: str, part: str, stored: Transfer, loaded: Transfer, offset: int) -> Point:
    store, load = f"{stored.store.replace('@', 'p')} +{PLACE}", loaded.load.replace("@", "o")
    setting = Setting(pointers=((NUMBERS[isa]["o"], PLACE + offset),))
    return parallel(part, *written(isa, store, load, loaded.link), setting=setting)


def _link(isa: str, part: str, stored: Transfer, loaded: Transfer) -> Point:
    """The store and the operation that the value goes through, without the load."""
    return parallel(part, *written(isa, f"{stored.store.replace('@', 'p')} +{PLACE}", loaded.link))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    whole, link = readings.get(f"{_SAME} {_LINK}"), readings.get(f"{_ASKED} {_LINK}")
    asked = readings.get(_ASKED) - link
    if not asked.is_steady:
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    forwarded = _later(readings.get(_SAME) - whole, readings.get("load"))
    failed = readings.get(_BEYOND) - whole
    if failed.low < LONGER * forwarded.high:
        raise Unresolved(UnclearMemory.REFUSED_AS_FAST.of())
    half = (forwarded + failed).scaled(0.5)
    if asked.high > half.low and asked.low < half.high:
        raise Unresolved(UnclearMemory.HALF_FORWARDED.of())
    answer = CoreAnswer.FAILED if asked.low >= half.high else CoreAnswer.FORWARDED
    return ProbeVerdict(answer, asked, steady(forwarded, failed, asked))


def _later(one: Interval, other: Interval) -> Interval:
    """The longer of two: a load that is renamed is no measure of those that are not."""
    return max(one, other, key=lambda interval: interval.value)


PROBE = Probe(
    FORWARDING,
    "How long does a load take that reads what was just stored, and when is it not forwarded?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, store_forwarding", "T. Downs, uarch-bench, store-fwd"),
)
