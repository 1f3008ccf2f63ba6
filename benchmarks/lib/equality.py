"""Whether two runs say the same of what both are sure of, quantity by quantity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from benchmarks.lib.agreement import GRAIN, close
from benchmarks.lib.common import Check, at_least
from benchmarks.lib.results import Key, read
from benchmarks.measuring.repeat import QUIET
from cyclescope.infer.timing.results import EXACT, FormTiming
from cyclescope.model.facts import HIGH

SPREADS = 2.0  # of 100 readings 95 are within so many spreads
WITHIN = 0.95  # of the pairs, therefore
PORTS = 0.98  # of the usages, as in the benchmark of ports

Values = Mapping[Key, tuple[float, float]]


def throughputs(found: Iterable[FormTiming]) -> Values:
    """Exact throughputs of high confidence, with their spreads."""
    return {
        (t.id, "", ""): (tp.value, tp.spread or 0.0)
        for t in found
        if (tp := t.throughput) and tp.value is not None and tp.kind == EXACT and tp.confidence == HIGH
    }


def latencies(found: Iterable[FormTiming]) -> Values:
    """Exact latencies of high confidence, with their spreads."""
    return {
        (t.id, lat.source, lat.target): (lat.max, lat.spread or 0.0)
        for t in found
        for lat in t.latencies
        if lat.max is not None and lat.min == lat.max and lat.kind == EXACT and lat.confidence == HIGH
    }


def usages(found: Iterable[FormTiming]) -> dict[str, tuple[str, float | None]]:
    """Ports and slots of the forms whose usage is of high confidence."""
    return {t.id: (t.ports, t.slots) for t in found if t.ports is not None and t.ports_confidence == HIGH}


def within_spreads(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two values differ by no more than their spreads let expect."""
    expected = SPREADS * math.hypot(one[1], other[1])
    return abs(one[0] - other[0]) <= max(expected, GRAIN) + 1e-9


def equality(first: Path, second: Path) -> list[Check]:
    """Throughputs, latencies, ports and slots that are sure in both stores."""
    one, two = read(first), read(second)
    checks = [*_equal("throughputs", throughputs(one), throughputs(two))]
    checks += _equal("latencies", latencies(one), latencies(two))
    ports = usages(one), usages(two)
    both = ports[0].keys() & ports[1].keys()
    for place, what in enumerate(("ports", "slots")):
        same = sum(ports[0][form][place] == ports[1][form][place] for form in both)
        checks.append(_share(f"{what} that are the same", same, len(both), PORTS))
    return checks


def _equal(what: str, one: Values, two: Values) -> Iterator[Check]:
    both = one.keys() & two.keys()
    tolerance, least = QUIET
    near = sum(close(one[key][0], two[key][0], tolerance) for key in both)
    spread = sum(within_spreads(one[key], two[key]) for key in both)
    yield Check(f"{what} that are sure", f"{len(one)} and {len(two)}, {len(both)} in both")
    yield _share(f"{what} within {tolerance:.0%}", near, len(both), least)
    yield _share(f"{what} within their spreads", spread, len(both), WITHIN)


def _share(name: str, part: int, whole: int, least: float) -> Check:
    """A share; without a target where nothing is sure in both, as beside neighbours that never rest."""
    return at_least(name, part, whole, least) if whole else Check(name, "nothing to count")
