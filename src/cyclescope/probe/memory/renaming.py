"""When does a load get the value of a store without waiting for memory?

A register is stored, loaded again, and multiplied: what that takes longer than the multiplication alone is
the way through memory. It is no shorter than a load from the cache, unless the core knows without looking at
the address that it is the same: then it is next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from cyclescope.kernel.kernel import CANARY, LONG, WATCHED
from cyclescope.model.behaviour.passing import DISTANCES
from cyclescope.model.facts import (
    ASKED_UPDATE,
    LOOPED,
    OF_GENERAL,
    RENAMING,
    STACKED,
    TRIP_ADDITIONS,
    TRIP_NOPS,
    CoreAnswer,
    LoadWork,
    MemoryWay,
    distance_subject,
    forwarding_subject,
    transfer_subject,
    trip_subject,
    update_subject,
    worked_subject,
)
from cyclescope.probe.code import DEPENDENT, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.memory.transfers import (
    PLAIN_TRANSFERS,
    Transfer,
    at,
    extra,
    groups,
    load_latency,
    with_register,
)
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import UnclearMemory

# Pairs of a body, more than a core learns as it learns those of a short loop: 24 pairs of a Zen 3 are renamed
# at times, 48 never.
MANY_PAIRS = 64
_APART, _PLACES = "p +120", 15  # where no other store goes: they are in so many places before
_NOTHING = Interval(0.0, 0.0)
_WORKED = "asked, worked"  # the part that tells what an operation on the loaded data takes, of itself
_LEARNED = (MemoryWay.REWRITTEN_SHORT, MemoryWay.OTHER_SHORT)  # where a core may know pairs, or not yet
_HERE, _THERE = "p +64", "q +64"  # two registers with the same address
_STACK, _STACK_APART = "s +16", "s +120"  # the latter at no place of a page that other stores have


class Way(NamedTuple):
    """A way through memory: where it is stored and loaded, and what is done in between.

    In a `short` loop the same few instructions are the pairs of all rounds: a core may learn them. `besides`
    is what is done to the loaded data, and takes its time without the load, too. `works` takes as long as
    what a load does that is no more than a load otherwise: that is part of the way.
    """

    subject: str
    store: str
    load: str
    link: str
    between: tuple[str, ...] = ()
    quick: bool = True
    setting: Setting = Setting()
    short: bool = False
    besides: str = ""
    works: str = ""


_NO_INDEX = Setting(numbers=((5, 0),))
_REWRITE: Mapping[str, tuple[str, str]] = {
    "x86-64": ("ADD (R64, I8): p #0", "MOV_89 (R64, R64): q p"),
    "aarch64": ("ADDXri: p p #0", "ADDXri: q p #0"),
    "riscv64": ("ADDI: p p #0", "ADDI: q p #0"),
}  # the base onto itself, and a copy of it
_COPIED_BACK: Mapping[str, tuple[str, ...]] = {
    "x86-64": ("MOV_89 (R64, R64): q s", "MOV_89 (R64, R64): s q"),
}  # the stack pointer, as where a frame is left


def _ways(isa: str) -> Iterator[Way]:
    if isa not in PLAIN_TRANSFERS:
        return
    whole = PLAIN_TRANSFERS[isa][-1]
    rewrite, copy = _REWRITE[isa]
    yield _way(MemoryWay.BASE, whole)
    yield _way(MemoryWay.REWRITTEN, whole, between=(rewrite,))
    yield _way(MemoryWay.OTHER, whole, load=_THERE)
    yield _way(MemoryWay.COPIED, whole, load=_THERE, between=(copy,))
    yield _way(MemoryWay.REWRITTEN_SHORT, whole, between=(rewrite,))._replace(short=True)
    yield _way(MemoryWay.OTHER_SHORT, whole, load=_THERE)._replace(short=True)
    yield from _in_short_loops(isa)
    yield from _KINDS[isa]
    yield from _worked(isa)
    for kind, group in groups(isa).items():
        for one in group:
            if one is not whole:
                yield _way(transfer_subject(one.bits, kind), one, quick=one.bits in (32, 128))
    yield from _on_stack(isa)


def _in_short_loops(isa: str) -> Iterator[Way]:
    """Ways by one base in short loops, which some cores rename there and nowhere else."""
    for one in PLAIN_TRANSFERS[isa]:
        yield _way(transfer_subject(one.bits, LOOPED), one, quick=False)._replace(short=True)
    for way in _worked(isa, LOOPED):
        yield way._replace(short=True)


def _on_stack(isa: str) -> Iterator[Way]:
    """Ways by the stack pointer, which some cores rename and no others; parts by both."""
    plain = PLAIN_TRANSFERS[isa]
    for one in plain:
        yield _way(transfer_subject(one.bits, STACKED), one, _STACK, _STACK, quick=one.bits in (32, 64))
    if isa in _COPIED_BACK:
        yield _way(MemoryWay.STACK_OVERWRITTEN, plain[-1], _STACK, _STACK, between=_COPIED_BACK[isa])
    for kind, place in ((OF_GENERAL, _HERE), (STACKED, _STACK)):
        yield _way(*_part(isa, kind), place, place, quick=False)
    yield from _worked(isa, STACKED, _STACK)


def _worked(isa: str, kind: str = OF_GENERAL, place: str = _HERE) -> Iterator[Way]:
    """Ways on which something is made of what is loaded, of all and of the first part of what was stored.

    A Zen 5 renames narrow loads that an operation goes with, and none of those that only load. Of parts that
    is asked of one kind.
    """
    for work, loads in _WORKS.get(isa, {}).items():
        added = work is LoadWork.ADDED
        alone = (_ADDITION[isa], "") if added else ("", _ADDITION[isa])
        for loaded, load in loads.items():
            for one in PLAIN_TRANSFERS[isa]:
                if one.bits == loaded or (one.bits > loaded and not kind):
                    subject = worked_subject(work, one.bits, loaded, kind)
                    way = _way(subject, one._replace(load=load), place, place, quick=subject == work)
                    yield way._replace(besides=alone[0], works=alone[1])


def _part(isa: str, kind: str) -> tuple[str, Transfer]:
    """A load of half of what was stored, by a kind of base."""
    half, whole = PLAIN_TRANSFERS[isa][-2:]
    return forwarding_subject(whole.bits, half.bits, 0, kind), whole._replace(load=half.load)


def _way(
    subject: str, one: Transfer, store: str = _HERE, load: str = _HERE, between: tuple[str, ...] = (),
    quick: bool = True,
) -> Way:  # fmt: skip
    return Way(subject, one.store.replace("@", store), one.load.replace("@", load), one.link, between, quick)


_KINDS: Mapping[str, tuple[Way, ...]] = {
    "x86-64": (
        Way(MemoryWay.STACK, "PUSH (R64): a", "POP (R64): a", "IMUL (R64, R64, I8): a a #3"),
        Way(MemoryWay.INDEXED, "MOV (M64, R64): p a *o +64", "MOV (R64, M64): a p *o +64",
            "IMUL (R64, R64, I8): a a #3", setting=_NO_INDEX),
    ),
    "aarch64": (
        Way(MemoryWay.STACK, "STRXui: a s +16", "LDRXui: a s +16", "MADDXrrr: a a e z"),
    ),
    "riscv64": (
        Way(MemoryWay.STACK, "SD: a s +16", "LD: a s +16", "MUL: a a e"),
        Way("32 bits, zero extended", "SW: a p +64", "LWU: a p +64", "MUL: a a e", quick=False),
    ),
}  # fmt: skip


_ADDITION: Mapping[str, str] = {"x86-64": "ADD (R64, I8): a #1", "aarch64": "ADDXri: a a #1"}
# Loads that make something of what they load, by how many bits that is.
_WORKS: Mapping[str, Mapping[LoadWork, Mapping[int, str]]] = {
    "x86-64": {
        LoadWork.SIGNED: {
            8: "MOVSX (R32, M8): a @", 16: "MOVSX (R32, M16): a @", 32: "MOVSXD (R64, M32): a @",
        },
        LoadWork.MERGED: {8: "MOV (R8l, M8): a @", 16: "MOV (R16, M16): a @"},
        LoadWork.ADDED: {
            8: "ADD (R8l, M8): a @", 16: "ADD (R16, M16): a @", 32: "ADD (R32, M32): a @",
            64: "ADD (R64, M64): a @",
        },
    },
    "aarch64": {
        LoadWork.SIGNED: {8: "LDRSBXui: a @", 16: "LDRSHXui: a @", 32: "LDRSWui: a @"},
    },
}  # fmt: skip

_NOP = "NOP (M32): p +8"
# What an instruction does to memory at a base, and the same to a register.
_UPDATES: Mapping[str, tuple[str, str]] = {"x86-64": (f"{ASKED_UPDATE}: @ #1", "ADD (R64, I8): a #1")}


def _updated(isa: str) -> Iterator[ProbeCase]:
    """What reads and writes memory, by a base that is written in between, and by the stack pointer."""
    for name, (update, alone) in _UPDATES.items():
        if name == isa:
            cut = parallel("asked, cut", *written(isa, alone))
            for subject, place, between in (
                (MemoryWay.UPDATED, _HERE, (_REWRITE[isa][0],)),
                (MemoryWay.STACK_UPDATED, _STACK, ()),
            ):
                asked = parallel("asked", *written(isa, *between, update.replace("@", place)))
                yield ProbeCase(subject, (asked, cut, load_latency(isa)))


def _trips(isa: str) -> Iterator[ProbeCase]:
    """What is stored, loaded and added to, and updates of one place with NOPs in between."""
    for name, (update, alone) in _UPDATES.items():
        if name != isa:
            continue
        whole = PLAIN_TRANSFERS[isa][-1]
        store, load = (text.replace("@", _HERE) for text in (whole.store, whole.load))
        for count in TRIP_ADDITIONS:
            link = written(isa, *[alone] * count)
            lines = (
                written(isa, store),
                (*written(isa, load), *link),
                (*written(isa, with_register(load, "b")), *link),
            )
            yield ProbeCase(trip_subject(count), (*_points(*lines, Setting()), load_latency(isa)))
        for count in TRIP_NOPS:
            nops = (_NOP,) * count
            asked = parallel("asked", *written(isa, update.replace("@", _HERE), *nops))
            cut = parallel("asked, cut", *written(isa, alone, *nops))
            yield ProbeCase(update_subject(count), (asked, cut, load_latency(isa)))


def _cases(isa: str) -> Iterator[ProbeCase]:
    yield from _updated(isa)
    yield from _trips(isa)
    for way in _ways(isa):
        points = _points(*_lines(isa, way, way.besides), way.setting, way.short)
        if way.works:
            _, worked = _points(*_lines(isa, way, way.works), way.setting, way.short)
            points = (*points, msgspec.structs.replace(worked, part=_WORKED))
        yield ProbeCase(way.subject, (*points, load_latency(isa)), way.quick)
    for count in DISTANCES if isa in PLAIN_TRANSFERS else ():
        yield _distance(isa, distance_subject(count), count, _APART)
        yield _distance(isa, distance_subject(count, LOOPED), count, _APART)
        yield _distance(isa, distance_subject(count, STACKED), count, _STACK_APART)


def _lines(
    isa: str, way: Way, done: str
) -> tuple[tuple[KernelLine, ...], tuple[KernelLine, ...], tuple[KernelLine, ...]]:
    """What comes before the load, the load, and the load that nothing waits for, each with the link.

    With the last something is `done` to the data.
    """
    link = written(isa, way.link)
    before = (*written(isa, way.store), *written(isa, *way.between))
    besides = written(isa, done) if done else ()
    other = written(isa, with_register(way.load, "b"))
    return before, (*written(isa, way.load), *link), (*other, *besides, *link)


def _points(
    before: tuple[KernelLine, ...],
    load: tuple[KernelLine, ...],
    other: tuple[KernelLine, ...],
    setting: Setting,
    short: bool = False,
) -> tuple[Point, ...]:
    flags = DEPENDENT | WATCHED if short else PARALLEL
    return (
        Point("asked", (*before, *load), 0, flags, setting),
        Point("asked, cut", (*before, *other), 0, flags, setting),
    )


def _distance(isa: str, subject: str, count: int, place: str) -> ProbeCase:
    """So many stores to other addresses in between, hidden behind as many multiplications.

    A body has more pairs than a core learns, whatever the distance, or one in a short loop.
    """
    one = PLAIN_TRANSFERS[isa][-1]
    other_store = with_register(one.store, "h").replace("@", "q")  # nor does it wait for what is stored
    others = tuple(f"{other_store} +{8 * (n % _PLACES)}" for n in range(count))
    before = (*at(isa, one.store, place), *written(isa, *others))
    link = written(isa, *[one.link] * count)
    load, other = (*at(isa, one.load, place), *link), (*at(isa, with_register(one.load, "b"), place), *link)
    parts = (("asked", (*before, *load)), ("asked, cut", (*before, *other)))
    short = subject == distance_subject(count, LOOPED)
    pairs, flags = (1, DEPENDENT | WATCHED) if short else (MANY_PAIRS, CANARY | LONG)
    points = (Point(part, lines * pairs, flags=flags, count=pairs) for part, lines in parts)
    return ProbeCase(subject, (*points, load_latency(isa)), count in (4, 16) and not short)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    way, load = extra(readings), readings.get("load")
    level = extra(readings, without=_WORKED) if any(p.part == _WORKED for p in case.points) else way
    answer = CoreAnswer.FORWARDED if is_higher(level, _NOTHING, load) else CoreAnswer.RENAMED
    may_learn = case.subject in _LEARNED or case.subject.endswith(LOOPED)
    if answer is CoreAnswer.FORWARDED and may_learn and not steady(way):
        raise Unresolved(UnclearMemory.MAY_LEARN.of())
    return ProbeVerdict(answer, way, steady(way, load))


PROBE = Probe(
    RENAMING,
    "When does a load get the value of a store without waiting for memory?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, memory_mirror",),
)
