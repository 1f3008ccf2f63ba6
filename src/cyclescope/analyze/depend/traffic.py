"""What the loads and stores of an iteration keep busy: banks and lines of the cache, chunks of stores.

Unknown parts of addresses are taken to be aligned; pointers that move on visit places in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil, gcd
from operator import itemgetter

import msgspec

from cyclescope.analyze.decode.values import Value
from cyclescope.model.behaviour.published import LineCrossing, LoadBanks, StoreChunks


class MemoryAccess(msgspec.Struct, frozen=True):
    """One memory operand in one round."""

    place: tuple[int, int]
    address: Value
    size: int
    write: bool

    @property
    def own_bytes(self) -> range:
        """The constant parts of the addresses of its bytes."""
        return range(self.address.constant, self.address.constant + self.size)


class MovingAccess(msgspec.Struct, frozen=True):
    """An access with the bytes by which it moves on in an iteration, None where it is not followed."""

    access: MemoryAccess
    step: int | None

    def at(self, number: int) -> int:
        """The constant part of its address some iterations later."""
        return self.access.address.constant + number * (self.step or 0)

    def blocks(self, number: int, size: int) -> range:
        """The aligned blocks of so many bytes that it has bytes in, some iterations later."""
        first = self.at(number)
        return range(first // size, (first + self.access.size - 1) // size + 1)

    def period(self, size: int) -> int:
        """Iterations after which it is at the same place in an aligned block of so many bytes."""
        return size // gcd(self.step or 0, size)


def moving(last: Sequence[MemoryAccess], before: Sequence[MemoryAccess], write: bool) -> list[MovingAccess]:
    """Loads, or stores, of an iteration with how they move, by those of the iteration before."""
    old = {access.place: access.address for access in before if access.write == write}
    return [MovingAccess(one, _step(one.address, old[one.place])) for one in last if one.write == write]


def _step(new: Value, old: Value) -> int | None:
    return new.constant - old.constant if new.terms == old.terms else None


def cycles_of_chunks(stores: Sequence[MovingAccess], chunks: StoreChunks) -> float:
    """Cycles per iteration in which stores leave.

    Those of one chunk that follow each other leave as many at a time as the core does, and a chunk with an
    odd one among them takes the cycle all the same.
    """
    period = max(store.period(chunks.size) for store in stores)
    rounds = range(-period, 2 * period)  # what begins in a period may go on in the next
    visited = [(n, place) for n in rounds for store in stores for place in _visited(store, n, chunks.size)]
    runs = [[number for number, _ in run] for _, run in groupby(visited, key=itemgetter(1))]
    if len(runs) == 1:
        return len(visited) / len(rounds) / chunks.most if chunks.most < chunks.size else 0.0
    begun = [len(run) for run in runs if 0 <= run[0] < period]
    return sum(ceil(run / chunks.most) for run in begun) / period


def _visited(store: MovingAccess, number: int, size: int) -> list[tuple[object, int]]:
    """The chunks that a store goes to in an iteration; one that is not followed goes to another in each."""
    access = store.access
    if store.step is None:
        return [((access.address.terms, number), 0)]
    places = store.blocks(number, size)
    if len(places) == 1:
        return [(access.address.terms, places[0])]
    return [((access.address.terms, access.place, number), at) for at in places]  # together with no other


def cycles_of_banks(loads: Sequence[MovingAccess], banks: LoadBanks) -> float:
    """Cycles of the bank with most loads; a load is in every bank that it has bytes in."""
    used = [0.0] * (banks.period // banks.width)
    for load in loads:
        spread = load if load.step is not None else MovingAccess(load.access, banks.width)  # in all, in turn
        rounds = spread.period(banks.period)
        for number in range(rounds):
            for place in spread.blocks(number, banks.width)[: len(used)]:
                used[place % len(used)] += 1 / rounds
    return max(used) / banks.most


def cycles_of_crossing(accesses: Sequence[MovingAccess], crossing: LineCrossing) -> float:
    """Cycles of all loads, or stores, 0 where none is in two lines; what is not followed is in one."""
    share = sum(_share_across(one, crossing.line) for one in accesses if one.step is not None)
    return len(accesses) * crossing.each + share * crossing.extra if share else 0.0


def _share_across(access: MovingAccess, line: int) -> float:
    """The share of iterations in which an access has bytes in two lines."""
    rounds = access.period(line)
    return sum(len(access.blocks(number, line)) > 1 for number in range(rounds)) / rounds
