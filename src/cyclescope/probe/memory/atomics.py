"""What do atomic operations and fences take, one after the other, side by side, and behind stores?

Each operation is timed at one place over and over, at places in four lines in turn, and after eight stores
to other lines, which it may have to wait for (how much longer that takes than the stores alone). Fences
have no place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import NUMBERS, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.levels import precise
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings

STORES_BEFORE = 8  # in front: in as many lines
LINE_COUNT = 4  # lines in turn
# Cycles: so large an error may be, however small the value is. Behind stores that take a cycle each, what
# processes differ by is within it, or within a tenth of the value.
LEAST_ERROR = 0.6
_ASKED, _STORES = "asked", "stores alone"
BY_ITSELF, ONE_PLACE, LINES, BEHIND = (
    "by itself", "at one place", "in four lines in turn", "behind eight stores, longer than these"
)  # fmt: skip


class Primitive(NamedTuple):
    """An atomic operation or a fence: texts, with @ for the pointer and its place, if it has one."""

    name: str
    texts: tuple[str, ...]
    quick: bool = False

    @property
    def has_place(self) -> bool:
        """Whether it is about a place in memory."""
        return any("@" in text for text in self.texts)


class AtomicWay(NamedTuple):
    """Primitives and a plain store of an instruction set; four places of the first and eight of the other.

    `pointers` are in bytes from the data, by letter.
    """

    store: str
    places: tuple[str, ...]
    stored: tuple[str, ...]
    pointers: tuple[tuple[str, int], ...]
    primitives: tuple[Primitive, ...]


# Of what a kernel takes: MFENCE of a Zen 5 takes 76.4 to 78.9 cycles by itself, by process, and 78.4 to
# 81.2 more behind stores; XCHG at one place of a Zen 4 7.50 to 7.67, LOCK CMPXCHG
# with eight stores in front 8.99 to 9.33.
_RUNS_DIFFER = 0.04
_NEAR = (0, 64, -64, -128)  # bytes that a short address reaches
_AHEAD = tuple(f"q {64 * n:+d}" for n in range(STORES_BEFORE))
_FOUR = (*((letter, 64 * n) for n, letter in enumerate("ABCD")), ("q", 1024))
_WAYS: Mapping[str, AtomicWay] = {
    "x86-64": AtomicWay(
        "MOV (M64, R64): @ b", tuple(f"p {at:+d}" for at in _NEAR),
        tuple(f"{base} {at:+d}" for base in "qD" for at in _NEAR), (("q", 512), ("D", 1024)),
        (
            Primitive("LOCK ADD", ("ADD_LOCK (M64, R64): @ c",), quick=True),
            Primitive("LOCK XADD", ("XADD_LOCK (M64, R64): @ c",)),
            Primitive("XCHG", ("XCHG (M64, R64): @ c",), quick=True),
            Primitive("LOCK CMPXCHG", ("CMPXCHG_LOCK (M64, R64): @ a",), quick=True),
            Primitive("CMPXCHG without LOCK", ("CMPXCHG (M64, R64): @ a",)),
            Primitive("ADD without LOCK", ("ADD (M64, R64): @ c",)),
            Primitive("MFENCE", ("MFENCE",), quick=True),
            Primitive("LFENCE", ("LFENCE",), quick=True),
            Primitive("SFENCE", ("SFENCE",), quick=True),
        ),
    ),
    "aarch64": AtomicWay(
        "STRXui: b @", ("A", "B", "C", "D"), _AHEAD, _FOUR,
        (
            Primitive("LDADD", ("LDADDX: d c @",), quick=True),
            Primitive("LDADDAL", ("LDADDALX: d c @",)),
            Primitive("SWPAL", ("SWPALX: d c @",)),
            Primitive("CASAL", ("CASALX: a a @",), quick=True),
            Primitive("LDXR, STXR", ("LDXRX: d @", "STXRX: e d @"), quick=True),
            Primitive("DMB ISH", ("DMB: #11",), quick=True),
            Primitive("DMB ISHST", ("DMB: #10",)),
            Primitive("DSB ISH", ("DSB: #11",)),
            Primitive("ISB", ("ISB: #15",)),
        ),
    ),
    "riscv64": AtomicWay(
        "SD: b @", ("A", "B", "C", "D"), _AHEAD, _FOUR,
        (
            Primitive("AMOADD", ("AMOADD_D: d c @",), quick=True),
            Primitive("AMOADD.AQRL", ("AMOADD_D_AQRL: d c @",)),
            Primitive("AMOSWAP.AQRL", ("AMOSWAP_D_AQRL: d c @",)),
            Primitive("LR, SC", ("LR_D: d @", "SC_D: e d @"), quick=True),
            Primitive("FENCE RW, RW", ("FENCE: #3 #3",), quick=True),
            Primitive("FENCE W, W", ("FENCE: #1 #1",)),
            Primitive("FENCE.I", ("FENCE_I",)),
        ),
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa not in _WAYS:
        return
    way = _WAYS[isa]
    for one in way.primitives:
        lines = _made(isa, one, way.places[:1])
        yield _case(one, ONE_PLACE if one.has_place else BY_ITSELF, _point(isa, _ASKED, lines))
        if one.has_place:
            yield _case(one, LINES, _point(isa, _ASKED, _made(isa, one, way.places), LINE_COUNT))
        stores = written(isa, *[way.store.replace("@", place) for place in way.stored])
        points = _point(isa, _ASKED, (*stores, *lines)), _point(isa, _STORES, stores)
        yield _case(one, BEHIND, *points)


def _made(isa: str, one: Primitive, places: Sequence[str]) -> tuple[KernelLine, ...]:
    """A primitive at places in turn."""
    return written(isa, *[text.replace("@", place) for place in places for text in one.texts])


def _case(one: Primitive, where: str, *points: Point) -> ProbeCase:
    return ProbeCase(f"{one.name}, {where}", points, one.quick)


def _point(isa: str, part: str, lines: tuple[KernelLine, ...], count: int = 1) -> Point:
    numbers = NUMBERS[isa]
    pointers = tuple((numbers[letter], at) for letter, at in _WAYS[isa].pointers)
    return Point(part, lines, flags=PARALLEL, setting=Setting(pointers=pointers), count=count)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    taken = readings.get(_ASKED).with_error(_RUNS_DIFFER)
    if case.subject.endswith(BEHIND):
        taken = taken - readings.get(_STORES)
    return ProbeVerdict(CoreAnswer.VALUE, precise(taken, LEAST_ERROR))


PROBE = Probe(
    "atomics",
    "What do atomic operations and fences take, at one place, at several, and behind stores?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, instruction tables, locked instructions", "Intel and Arm, memory ordering"),
)
