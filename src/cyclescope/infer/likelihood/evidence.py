"""What readings of two classes of blocking instructions say about how many ports both have together.

The fewer ports they have, the longer both take together; a few instances of one slow the other only if the
other has all of their ports. Both may take longer than their ports allow, but never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from cyclescope.infer.likelihood.arrays import np
from cyclescope.infer.likelihood.noise import MOST_TRIED, Look, Scatter, Tail, alike
from cyclescope.infer.likelihood.structure import CLEAR, OPEN, SIDES_APART
from cyclescope.infer.likelihood.unions import UnionEvidence

SEEN = 5.0  # nats by which it is likelier that a class has ports of others than that it has none
FULL = 0.8  # of the front end's slots: fuller loops are slowed down by how slots and ports are dealt out
_MEMORY = frozenset("m")  # accesses are dealt out to units before any of these is known to be free
# Readings of pairs, in times of one class alone, and of single instances, in micro-operations; the tails
# are wide where loops are full and where a core has a choice of ports.
_PAIRS, _PAIRS_NEAR = alike(Tail(0.05, 0.05)), alike(Tail(0.3, 0.15))
_SINGLE, _SINGLE_NEAR, _FULL = alike(Tail(0.05, 0.1)), alike(Tail(0.3, 0.3)), alike(Tail(0.5, 1.0))


class Class(NamedTuple):
    """A class by its representative: ports, and the sides of the core that its register files are of.

    `more` are slots that it takes in a cycle beyond one for each instance.
    """

    name: str
    width: int
    sides: frozenset[str]
    more: int = 0


class ClassPair(NamedTuple):
    """Two classes: the time together, and what instances of each cost the other.

    `turns` are those of a port that an instance of one may cost the other, whose results come sooner. `knees`
    are times of so many instances of both in a cycle as they may have ports together, `backlogs` times of as
    many as each class alone does in a cycle, once they gathered in the scheduler: the front end hides none.
    """

    first: Class
    second: Class
    together: Look | None
    first_in_second: Sequence[Look]
    second_in_first: Sequence[Look]
    turns: float = 1.0
    knees: Mapping[int, Look] = MappingProxyType({})
    backlogs: Sequence[Look] = ()


def filling(one: Class, other: Class, found: UnionEvidence, slots: float) -> Iterator[tuple[int, int]]:
    """Instances of two classes in a cycle that fill all ports which they have if they share some, not all.

    Of both as many as they have would take longer even where ports are dealt out well, and a core that deals
    them out badly takes longer still: that tells one number of ports from the next worst.
    """
    for size in found.sizes(CLEAR) if not one.more + other.more else ():
        if max(one.width, other.width) < size < one.width + other.width and size < FULL * slots:
            yield from {(one.width, size - one.width), (size - other.width, other.width)}


def is_hidden(found: UnionEvidence, slots: float) -> bool:
    """Whether loops leave open how many ports two classes of a side have together, for want of slots."""
    sizes = found.sizes(OPEN) if found.asked and not found.sides and not found.third else []
    return len(sizes) > 1 and max(sizes) > FULL * slots


def evidence_of(pairs: Sequence[ClassPair], slots: float) -> list[UnionEvidence]:
    """Nats against every size of every union on a core of so many slots per cycle."""
    return [_across(pair, _measured(pair, slots)) for pair in pairs]


def _across(pair: ClassPair, one: UnionEvidence) -> UnionEvidence:
    """That sides share ports has a price; for memory in each pair, as its accesses wait for much else."""
    sides, apart = pair.first.sides | pair.second.sides, pair.first.width + pair.second.width
    if pair.first.sides == pair.second.sides:
        return one
    if "m" not in sides:
        return msgspec.structs.replace(one, across=True, sides=sides)
    nats = {size: nats + SIDES_APART * (size < apart) for size, nats in one.nats.items()}
    return msgspec.structs.replace(one, nats=nats, sides=sides)


def are_seen_to_share(pairs: Sequence[ClassPair], slots: float) -> bool:
    """Whether a class clearly has ports of others: all pairs of it together say so, none against another."""
    return sum(_for_sharing(_measured(pair, slots)) for pair in pairs) > SEEN


def _for_sharing(one: UnionEvidence) -> float:
    """Nats by which fewer ports than two classes have apart are likelier, if they are."""
    *fewer, apart = (one.nats[size] for size in sorted(one.nats))
    return max(0.0, apart - min(fewer)) if fewer else 0.0


def keeps_twice(pairs: Sequence[ClassPair], slots: float) -> bool:
    """Whether the first class of all pairs clearly has twice as many ports as it seems, and keeps them twice.

    Of these a micro-operation that needs one of them takes half of what an instance takes. What nearly fills
    the front end tells nothing.
    """
    some = [pair._replace(knees={}) for pair in pairs if pair.second.width <= FULL * slots]
    return sum(_measured(p, slots).best - _measured(_kept_twice(p), slots).best for p in some) > SEEN


def _kept_twice(pair: ClassPair) -> ClassPair:
    """The pair if instances of its first class keep one of twice as many ports for two turns."""
    name, width, sides, more = pair.first
    looks = [Look(2 * look.value, 2 * look.error) for look in pair.second_in_first]
    return pair._replace(first=Class(name, 2 * width, sides, more - width), second_in_first=looks)


def _measured(pair: ClassPair, slots: float) -> UnionEvidence:
    one, other = pair.first, pair.second
    sizes = range(max(one.width, other.width), one.width + other.width + 1)
    asked = pair.together is not None or bool(pair.first_in_second or pair.second_in_first)
    nats = {size: _nats(pair, size, slots) for size in sizes}
    return UnionEvidence(one.name, other.name, nats, asked, hidden=slots)


def _nats(pair: ClassPair, size: int, slots: float) -> float:
    """Nats of all readings of two classes with so many ports together."""
    one, other = pair.first, pair.second
    total, both = 0.0, one.width + other.width
    if pair.together is not None:
        taken = both + one.more + other.more
        expected = max(1.0, both / size, taken / slots)
        near = taken > FULL * slots * expected or size < both or one.sides == other.sides == _MEMORY
        total += _cost(_PAIRS_NEAR if near else _PAIRS, [pair.together], expected)
    for count, look in pair.knees.items():
        expected = max(1.0, count / size, count / slots)
        total += _cost(_PAIRS_NEAR if size <= count else _PAIRS, [look], expected)
    for look in pair.backlogs:
        total += _cost(_PAIRS_NEAR if size < both else _PAIRS, [look], max(1.0, both / size))
    for inner, outer, looks in ((one, other, pair.first_in_second), (other, one, pair.second_in_first)):
        if looks:
            fills = outer.width + outer.more > FULL * slots
            noise = _FULL if fills else _SINGLE_NEAR if size < both else _SINGLE
            inside = size == outer.width and inner.width < size
            total += _cost(noise, looks, pair.turns if inside else float(size == outer.width == inner.width))
    return total


def shared_cost(look: Look, expected: float) -> float:
    """Nats of a time of classes that share ports."""
    return _cost(_PAIRS_NEAR, [look], expected)


def count_of(looks: Sequence[Look], full: bool) -> int:
    """The likeliest number of micro-operations of readings among more of the same class."""
    noise = _FULL if full else _SINGLE
    return min(range(MOST_TRIED + 1), key=lambda number: _cost(noise, looks, float(number)))


def _cost(noise: Scatter, looks: Sequence[Look], expected: float) -> float:
    values = np.array([look.value for look in looks])
    errors = np.array([look.error for look in looks])
    return float(noise.costs(values, errors, np.array([expected]), np.array([0])).mean())


def sides_of(files: frozenset[str], sides: Mapping[str, str]) -> frozenset[str]:
    """Sides of a core that register files are of: all that are not named are vectors'."""
    return frozenset(sides.get(file, "v") for file in files)
