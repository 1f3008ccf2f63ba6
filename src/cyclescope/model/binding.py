"""Binding micro-operations to ports: the least that any binding takes, and the most even one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

Loads = dict[int, float]  # cycles by set of ports, the sets as bits
MOST_UNIONS = 4096  # of sets of ports that are looked at one by one; blocks on real cores have some hundred
_ROUNDS, _PRECISION = 200, 1e-7


def port_bound(loads: Mapping[int, float]) -> tuple[float, int]:
    """Least cycles that any binding to ports needs, and the set of ports that is full.

    The maximum, over unions of port sets, of the cycles confined to the union divided by its size: exact,
    by linear programming duality. Unions of sets that share no port are never fuller than their parts. Where
    there are more unions than can be looked at, those count that the most even binding fills.
    """
    best, where, every = 0.0, 0, [*loads.values()]
    for union, confined in _confined(tuple(loads), MOST_UNIONS) or _sets_within(loads, _fullest(loads)):
        cycles = sum([every[n] for n in confined]) / union.bit_count()
        if cycles > best + _PRECISION:
            best, where = cycles, union
    return best, where


@lru_cache(4096)  # sets of ports that occur together in blocks, of which there are few
def _confined(sets: tuple[int, ...], most: int) -> list[tuple[int, list[int]]]:
    """Every union of sets, with the positions of those that it has; none where they are more than `most`."""
    return _sets_within(sets, _unions(sets, most))


def _sets_within(sets: Iterable[int], unions: Iterable[int]) -> list[tuple[int, list[int]]]:
    """Unions with the positions of the sets that each of them has."""
    return [(union, [n for n, ports in enumerate(sets) if ports | union == union]) for union in unions]


def _unions(sets: Iterable[int], most: int) -> set[int]:
    """Unions of sets that hang together; none where they are more than can be looked at."""
    single = list(sets)
    found = set(single)
    work = list(single)
    while work:
        union = work.pop()
        for ports in single:
            if ports & union and ports | union not in found:
                found.add(ports | union)
                work.append(ports | union)
        if len(found) > most:
            return set()
    return found


def _fullest(loads: Mapping[int, float]) -> list[int]:
    """The fullest port of the most even binding, the two fullest, and so on: one of these sets is the bound.

    What fills the fullest ports cannot go elsewhere, or the binding were not the most even.
    """
    ports = max(loads, default=0).bit_length()
    busy = total(balanced(loads, ports), ports)
    found, union = [], 0
    for port in sorted(range(ports), key=lambda port: -busy[port]):
        union |= 1 << port
        found.append(union)
    return found


@lru_cache(4096)
def members_of(ports: int) -> tuple[int, ...]:
    """The ports of a set."""
    return tuple(port for port in range(ports.bit_length()) if ports >> port & 1)


def balanced(loads: Mapping[int, float], ports: int) -> dict[int, list[float]]:
    """Cycles per port of each set in the most even binding: the fullest port as empty as it can be.

    Each set in turn fills the emptiest of its ports, until nothing changes: the sum of squares falls, and
    its only minimum has the least maximum too.
    """
    split = {
        members: [cycles / members.bit_count() if members >> p & 1 else 0.0 for p in range(ports)]
        for members, cycles in loads.items()
    }
    busy = [sum(column) for column in zip(*split.values(), strict=True)] if split else [0.0] * ports
    for _ in range(_ROUNDS):
        moved = 0.0
        for members, shares in split.items():
            moved = max(moved, _pour(members_of(members), shares, busy, loads[members]))
        if moved < _PRECISION:
            break
    return split


def _pour(members: Sequence[int], shares: list[float], busy: list[float], cycles: float) -> float:
    """Bind one set anew, given the others; returns the largest change of a port."""
    others = sorted((busy[p] - shares[p], p) for p in members)
    level, rest = _level([other for other, _ in others], cycles), 0.0
    for other, port in others:
        new = max(level - other, 0.0)
        rest = max(rest, abs(new - shares[port]))
        busy[port] += new - shares[port]
        shares[port] = new
    return rest


def _level(heights: Sequence[float], amount: float) -> float:
    """How high an amount stands, poured over columns of these heights (sorted)."""
    total = amount
    for count, height in enumerate(heights, 1):
        total += height
        level = total / count
        if count == len(heights) or level <= heights[count]:
            return level
    return 0.0


def total(split: Mapping[int, Sequence[float]], ports: int) -> list[float]:
    """Cycles per port of all sets together."""
    return [sum(column) for column in zip(*split.values(), strict=True)] if split else [0.0] * ports
