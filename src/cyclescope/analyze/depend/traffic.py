"""What the loads and stores of an iteration keep busy: banks and lines of the cache, chunks of stores.

Unknown parts of addresses are taken to be aligned; pointers that move on visit places in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil, gcd, inf
from operator import attrgetter
from typing import NamedTuple

import msgspec

from cyclescope.analyze.decode.known_values import Value
from cyclescope.model.behaviour.published import LineCrossing, LoadBanks, PartialWords, StoreChunks
from cyclescope.model.behaviour.store_lines import StoreLines


class MemoryAccess(msgspec.Struct, frozen=True, gc=False):
    """One memory operand in one round."""

    place: tuple[int, int]
    address: Value
    size: int
    write: bool

    @property
    def own_bytes(self) -> range:
        """The constant parts of the addresses of its bytes."""
        return range(self.address.constant, self.address.constant + self.size)


class MovingAccess(msgspec.Struct, frozen=True, gc=False):
    """An access with the bytes by which it moves on in an iteration, None where it is not followed.

    `in_table` is one of those at a base that stays, with an index that is not followed.
    """

    access: MemoryAccess
    step: int | None
    in_table: bool = False

    def at(self, number: int) -> int:
        """The constant part of its address some iterations later."""
        return self.access.address.constant + number * (self.step or 0)

    def blocks(self, number: int, size: int) -> range:
        """The aligned blocks of so many bytes that it has bytes in, some iterations later."""
        first = self.at(number)
        return range(first // size, (first + self.access.size - 1) // size + 1)

    @property
    def is_halved(self) -> bool:
        """Whether it begins at a multiple of half its size, in every iteration."""
        half = self.access.size // 2
        return not (self.access.address.constant % half or (self.step or 0) % half)

    def period(self, size: int) -> int:
        """Iterations after which it is at the same place in an aligned block of so many bytes."""
        return size // gcd(self.step or 0, size)


def moving(last: Sequence[MemoryAccess], before: Sequence[MemoryAccess], write: bool) -> list[MovingAccess]:
    """Loads, or stores, of an iteration with how they move, by those of the iteration before."""
    old = {access.place: access.address for access in before if access.write == write}
    return [_moved(one, old[one.place]) for one in last if one.write == write]


def _moved(access: MemoryAccess, old: Value) -> MovingAccess:
    new = access.address
    if new.terms == old.terms:
        return MovingAccess(access, new.constant - old.constant)
    return MovingAccess(access, None, not set(new.terms).isdisjoint(old.terms))


class _Visit(NamedTuple):
    """What a store writes to one chunk in an iteration, and the bytes by which it moves on to the next."""

    number: int
    chunk: tuple[object, int]
    terms: object
    own_bytes: range
    step: int
    in_table: bool = False


class _Word(NamedTuple):
    terms: object
    number: int
    moves: int  # on in a turn, by so many


def cycles_of_chunks(stores: Sequence[MovingAccess], chunks: StoreChunks) -> float:
    """Cycles per iteration in which stores leave.

    Those of one chunk that follow each other leave as many at a time as the core does, and a chunk with an
    odd one among them takes the cycle all the same.
    """
    period = max(store.period(chunks.size) for store in stores)
    rounds = range(-period, 2 * period)  # what begins in a period may go on in the next
    visited = [one for number in rounds for store in stores for one in _visited(store, number, chunks)]
    runs = [list(run) for _, run in groupby(visited, key=attrgetter("chunk"))]
    if len(runs) == 1:
        return len(visited) / len(rounds) / chunks.most if chunks.most < chunks.size else 0.0
    begun = [run for run in runs if 0 <= run[0].number < period]
    cycles = [float(ceil(len(run) / chunks.most)) for run in begun]
    if chunks.partial is None or all(_is_whole(store, chunks.partial.size) for store in stores):
        return sum(cycles) / period
    return (
        _with_parts([_words(run, chunks.partial.size, period) for run in begun], cycles, chunks.partial)
        / period
    )


def cycles_of_lines(stores: Sequence[MovingAccess], lines: StoreLines) -> float:
    """Cycles per iteration of stores to more lines in turn than are gathered, 0 where all of them are.

    A line takes longer by the stores to it and to the line before it, both of which are new: others were
    stored to since. One of a table, of which nobody knows how large it is, is so now and then: it takes no
    more than the whole cycles in which it leaves by itself.
    """
    period = max(store.period(lines.size) for store in stores)
    chunks = StoreChunks(lines.size, 1, joins=True)
    visited = [
        one for number in range(-2 * period, 2 * period) for store in stores
        for one in _visited(store, number, chunks)
    ]  # fmt: skip
    runs = [list(run) for _, run in groupby(visited, key=attrgetter("chunk"))]
    taken, longer, before, latest = 0.0, 0.0, 0, list[tuple[object, int]]()
    for run in runs:
        chunk, is_new = run[0].chunk, run[0].chunk not in latest
        if 0 <= run[0].number < period:
            taken += len(run) * lines.each
            if is_new and before:
                is_whole = len({at for one in run for at in one.own_bytes}) == lines.size
                more = lines.whole if is_whole else lines.longer(before, len(run))
                alone = max(0.0, lines.alone - len(run) * lines.each)
                longer += min(more, alone) if run[0].in_table else more
        latest = [*(one for one in latest if one != chunk), chunk][1 - lines.many :]
        before = len(run) if is_new else 0
    return (taken + longer) / period if longer else 0.0


def _is_whole(store: MovingAccess, size: int) -> bool:
    """Whether a store writes nothing but whole words of so many bytes, or is not followed."""
    access = store.access
    return store.step is None or not (access.address.constant | access.size | store.step) % size


def _visited(store: MovingAccess, number: int, chunks: StoreChunks) -> Iterator[_Visit]:
    """The chunks that a store goes to in an iteration; one that is not followed goes to another in each."""
    access, first = store.access, store.at(number)
    if store.step is None:
        yield _Visit(number, ((access.address.terms, number), 0), None, range(0), 0, store.in_table)
        return
    places = store.blocks(number, chunks.size)
    alone = (access.place, number) if len(places) > 1 and not chunks.joins else None
    for at in places:
        part = range(max(first, at * chunks.size), min(first + access.size, (at + 1) * chunks.size))
        yield _Visit(number, ((access.address.terms, alone), at), access.address.terms, part, store.step)


def _words(run: Sequence[_Visit], size: int, period: int) -> dict[_Word, bool]:
    """The words that the visits of a run write, and whether they write a part of it alone."""
    written = {(one.terms, byte) for one in run for byte in one.own_bytes}
    return {
        _Word(one.terms, byte // size, one.step * period // size): any(
            (one.terms, at) not in written for at in range(byte // size * size, (byte // size + 1) * size)
        )
        for one in run for byte in one.own_bytes
    }  # fmt: skip


def _with_parts(
    runs: Sequence[Mapping[_Word, bool]], cycles: Sequence[float], partial: PartialWords
) -> float:
    """Cycles in which runs leave, where a part of a word waits for what was written to that word before.

    One turn follows the other until a turn begins as another one did.
    """
    if not any(any(words.values()) for words in runs):
        return sum(cycles)
    now, turn, written = 0.0, 0, dict[_Word, float]()
    began: dict[frozenset[tuple[_Word, float]], tuple[int, float]] = {}
    while True:
        written = {
            word._replace(number=word.number - word.moves): at for word, at in written.items()
            if now - at < partial.within
        }  # fmt: skip
        state = frozenset((word, now - at) for word, at in written.items())
        if state in began:
            first, since = began[state]
            return (now - since) / (turn - first)
        began[state] = turn, now
        for words, each in zip(runs, cycles, strict=True):
            waits = (now - written.get(word, -inf) for word, part in words.items() if part)
            now += partial.longer if min(waits, default=inf) < partial.within else 0.0
            written |= dict.fromkeys(words, now)
            now += each
        turn += 1


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
    """Cycles of all loads, or stores, 0 where none is in two lines; what is not followed is in one.

    The wide ones among them take no less than they do by themselves.
    """
    share = wide = 0.0
    sizes = {one.size: one for one in crossing.wide}
    for one in accesses:
        across = _share_across(one, crossing.line) if one.step is not None else 0.0
        share += across
        if size := sizes.get(one.access.size):
            halves = one.step is not None and one.is_halved
            wide += size.inside + across * ((size.halves if halves else size.across) - size.inside)
    return max(len(accesses) * crossing.each + share * crossing.extra, wide) if share else 0.0


def longer_across(loads: Sequence[MovingAccess], crossing: LineCrossing) -> float:
    """By how many cycles loads take longer for bytes in two lines."""
    longer, sizes = 0.0, {one.size: one for one in crossing.wide}
    for one in loads:
        if one.step is None:
            continue
        size, extra = sizes.get(one.access.size), crossing.extra
        if size:
            extra = (size.halves if one.is_halved else size.across) - size.inside
        longer += _share_across(one, crossing.line) * extra
    return longer


def _share_across(access: MovingAccess, line: int) -> float:
    """The share of iterations in which an access has bytes in two lines."""
    rounds = access.period(line)
    return sum(len(access.blocks(number, line)) > 1 for number in range(rounds)) / rounds
