"""What three classes together say about ports that all of them have, where each two of them share some.

Of three classes each two may share ports, and nothing that two of them do together tells whether these are
the same ports. The fewer ports all three have together, the longer their instances take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations, pairwise, product
from typing import NamedTuple, TypeVar

from cyclescope.infer.likelihood.evidence import shared_cost
from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.unions import UnionEvidence

Ports = tuple[int, ...]
T = TypeVar("T")
Counts = tuple[int, ...]  # instances of each of three classes in a cycle


class Three(NamedTuple):
    """Three classes: the ports of each by the structure at hand, and how many all may have together."""

    names: tuple[str, ...]
    ports: tuple[Ports, ...]
    sizes: range

    def telling(self, slots: float, error: float) -> Counts | None:
        """Instances in a cycle whose time tells sizes apart best; None where an error hides that."""
        widths = tuple(map(len, self.ports))
        unions = {pair: len({*one, *other}) for pair, (one, other) in _pairs(self.ports)}
        best, most = None, error
        for counts in product(*(range(width, 0, -1) for width in widths)):
            times = [cycles(counts, widths, unions, size, slots) for size in self.sizes]
            apart = min(one - other for one, other in pairwise(times))
            if apart > most:
                best, most = counts, apart
        return best


def cycles(
    counts: Counts, widths: Counts, unions: Mapping[tuple[int, int], int], size: int, slots: float
) -> float:
    """Cycles of so many instances of three classes that have so many ports together, two by two and all."""
    alone = (count / width for count, width in zip(counts, widths, strict=True))
    pairs = ((counts[one] + counts[other]) / union for (one, other), union in unions.items())
    return max(*alone, *pairs, sum(counts) / size, sum(counts) / slots)


def _pairs(some: Sequence[T]) -> Iterator[tuple[tuple[int, int], tuple[T, T]]]:
    """All pairs of three, with their places."""
    yield from zip(combinations(range(3), 2), combinations(some, 2), strict=True)


def open_threes(sets: Mapping[str, Ports], asked: Set[frozenset[str]]) -> Iterator[Three]:
    """Classes by threes of which the ports that each two share leave open how many all have in common.

    Of classes with the same ports that were `asked` together one stands for all.
    """
    names: list[str] = []
    for name in sorted(sets):
        if not any(sets[other] == sets[name] and frozenset((name, other)) in asked for other in names):
            names.append(name)
    for some in combinations(names, 3):
        ports = tuple(sets[name] for name in some)
        sizes = _sizes(*map(frozenset, ports))
        if len(sizes) > 1 and all(frozenset(pair) in asked for pair in combinations(some, 2)):
            yield Three(some, ports, sizes)


def _sizes(*sets: frozenset[int]) -> range:
    """How many ports three sets may have together, by how many each has and each two share."""
    one, other, third = (len(mine & theirs) for mine, theirs in combinations(sets, 2))
    inside = zip((one + other, one + third, other + third), map(len, sets), strict=True)
    least = max(0, *(both - width for both, width in inside))
    apart = sum(map(len, sets)) - (one + other + third)
    return range(apart + least, apart + min(one, other, third) + 1)


def asked_of(evidence: Iterable[UnionEvidence]) -> set[frozenset[str]]:
    """Pairs of classes of which something tells what they share."""
    return {e.classes for e in evidence if e.asked and not e.third}


def told_by_three(
    sets: Mapping[str, Ports], evidence: Sequence[UnionEvidence], slots: float, error: float
) -> Iterator[tuple[tuple[str, ...], Counts]]:
    """Three classes each, with instances in a cycle that would tell how many ports all of them have."""
    for three in open_threes(sets, asked_of(evidence)):
        if counts := three.telling(slots, error):
            yield three.names, counts


def evidence_of_threes(
    found: Mapping[tuple[str, ...], Mapping[Counts, float]],
    widths: Mapping[str, int],
    pairs: Sequence[UnionEvidence],
    slots: float,
    error: float,
) -> Iterator[UnionEvidence]:
    """Nats against every size of the union of three classes, by cycles of so many instances in a cycle.

    What each two of them have together is taken to be what is likeliest.
    """
    likely = {e.classes: min(e.nats, key=e.nats.__getitem__) for e in pairs}
    for names, times in found.items():
        unions = {place: likely.get(frozenset(pair)) for place, pair in _pairs(names)}
        known = {place: size for place, size in unions.items() if size is not None}
        if len(known) == len(unions):  # else one of them is no set of ports
            some = tuple(widths[name] for name in names)
            nats = {
                size: sum(
                    shared_cost(Look(time, error), cycles(counts, some, known, size, slots))
                    for counts, time in times.items()
                )
                for size in range(max(some), sum(some) + 1)
            }
            one, other, third = names
            yield UnionEvidence(one, other, nats, hidden=slots, third=third)
