"""How many bytes a cycle does a copy move, by method and size, and how much longer is it unaligned?

The same bytes are copied over and over. Loads and stores of registers are in no loop of their own: what a
call, a loop and its end take comes on top, while REP has all that it takes in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from cyclescope.kernel.state import CHAIN_BASE, FIRST_WINDOW
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import CHAIN_PLACE, NUMBERS, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import precise
from cyclescope.probe.memory.bandwidth import WALKS
from cyclescope.probe.memory.caches import KIB, SPACING
from cyclescope.probe.question import (
    GridPlace,
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
)
from cyclescope.remarks.probing import Unclear

COPY_SIZES = tuple(64 << 2 * n for n in range(6))  # bytes: powers of two, to which a place is cut
CHUNK = 64  # bytes that readings are per: of the least size
STEP_BYTES = 256  # that a short displacement reaches
BODY_BYTES = 1024  # of a body: how it goes on hides behind it, and the runner's loop has several, of which it
# takes fewer or more to see that their number makes no difference
DISTANCE_BYTES = 2 * COPY_SIZES[-1]  # from the source to the pages of the destination, which it never reaches
AWAY = 2816  # bytes of a page that the destination is ahead: no store of the last KiB is at a load's place of
# its page; of larger copies one is, but is as long ago as it can be
ALIGNED_SIZE = KIB  # of what is compared with an aligned copy: a body; less than AWAY and the rest of a page
AS_LONG = "times as long"
_COPIED, _ASKED, _IN_LINES = "copied", "asked", "aligned"
_DATA = "bABC"  # registers that are loaded before their stores: cores that issue in order would wait for one


class CopyMethod(NamedTuple):
    """A way to copy `bytes` at once by registers, with @ for the address and # for the registers.

    `string` is an instruction that repeats itself instead, so many bytes each. `compared` says whether it is
    asked where things are not aligned. `least` is the least size: streaming stores go to memory, and what is
    written there over and over is no copy.
    """

    name: str
    load: str
    store: str
    bytes: int
    string: str = ""
    compared: bool = False
    quick: bool = False
    least: int = 0


_SSE = "MOVUPS (XMM, M128): # @"
METHODS: Mapping[str, tuple[CopyMethod, ...]] = {
    "x86-64": (
        CopyMethod("REP MOVSB", "", "", 1, "MOVSB_REPE", compared=True, quick=True),
        CopyMethod("REP MOVSQ", "", "", 8, "MOVSQ_REPE"),
        CopyMethod("64 bits", "MOV (R64, M64): # @", "MOV (M64, R64): @ #", 8, compared=True),
        CopyMethod("SSE of 128 bits", _SSE, "MOVUPS (M128, XMM): @ #", 16),
        CopyMethod(
            "VEX of 256 bits", "VMOVUPS (YMM, M256): # @", "VMOVUPS (M256, YMM): @ #", 32,
            compared=True, quick=True,
        ),
        CopyMethod("EVEX of 512 bits", "VMOVUPS (ZMM, M512): # @", "VMOVUPS (M512, ZMM): @ #", 64),
        CopyMethod("streaming stores of 128 bits", _SSE, "MOVNTDQ (M128, XMM): @ #", 16, least=4 * KIB),
    ),
    "aarch64": (
        CopyMethod("LDP and STP of 64 bits", "LDPXi: # @", "STPXi: # @", 16, compared=True),
        CopyMethod("LDP and STP of 128 bits", "LDPQi: # @", "STPQi: # @", 32, compared=True, quick=True),
    ),
    "riscv64": (CopyMethod("LD and SD", "LD: # @", "SD: # @", 8, compared=True, quick=True),),
}  # fmt: skip
_PAIRS = {"aarch64"}  # where an instruction has two registers


class Alignment(NamedTuple):
    """Where source and destination begin, in bytes from a page; `in_line` says how far into lines."""

    name: str
    source: int
    destination: int
    quick: bool = False
    in_line: tuple[int, int] | None = None


BEHIND_SOURCE = "behind the source's place of a page"  # loads come soon after a store to theirs
TAKEN_FOR_THE_SAME = 0.13  # of the time: a Zen 5 takes 1.00 or 1.12 times as long, as pages lie
# Of the time of the largest copies, which have no first cache for both places: REP of a Zen 5 moves 64 KiB
# at 30.2 bytes a cycle in one process, at 31.3 in another, as pages lie.
PLACES_DIFFER = 0.04
# Of the time of the least copies, which are over as soon as REP has begun: a Zen 3 moves 64 bytes at 2.67
# bytes a cycle in most processes, at 2.92 in one of fifteen.
BEGINNING_DIFFERS = 0.05
IN_LINES = Alignment("", 0, AWAY)
LINE_PLACES = (0, 1, 16, 32, 48)  # bytes into a line that source and destination begin at, each with each


def _into_line(source: int, destination: int) -> Alignment:
    """A copy that begins so many bytes into lines, at places of a page that are far from each other."""
    told = [f"{at} byte{'s' if at > 1 else ''}" for at in (source, destination)]
    if source == destination:
        name = f"both {told[0]} into a line"
    else:
        places = zip(("source", "destination"), told, (source, destination), strict=True)
        name = f"{' and '.join(f'{what} {text}' for what, text, at in places if at)} into a line"
    is_quick = (source, destination) in ((0, 1), (1, 0))
    return Alignment(name, source, AWAY + destination, is_quick, (source, destination))


ALIGNMENTS = (
    *(_into_line(*both) for both in product(LINE_PLACES, repeat=2) if any(both)),
    Alignment("destination at the source's place of a page", 0, 0),
    Alignment(f"destination 16 bytes {BEHIND_SOURCE}", 0, 16),
    Alignment(f"destination 64 bytes {BEHIND_SOURCE}", 0, 64, quick=True),
    Alignment(f"destination 256 bytes {BEHIND_SOURCE}", 0, 256),
    Alignment("destination 64 bytes before the source's place of a page", 64, 0),
)
_STEPS_ASKED = {"riscv64": 8}  # bytes: what is not aligned may be emulated there, for thousands of cycles


def _cases(isa: str) -> Iterator[ProbeCase]:
    for method in METHODS.get(isa, ()):
        sizes = [size for size in COPY_SIZES if size >= method.least]
        points = tuple(copied(isa, method, size) for size in sizes)
        for size in sizes:
            yield ProbeCase(f"{method.name}, {_named(size)}", points, method.quick)
    for method in METHODS.get(isa, ()):
        for place in ALIGNMENTS if method.compared else ():
            if (place.source | place.destination) % _STEPS_ASKED.get(isa, 1) == 0:
                yield _compared(isa, method, place)


def _named(size: int) -> str:
    return f"{size // KIB} KiB" if size >= KIB else f"{size} bytes"


def _compared(isa: str, method: CopyMethod, place: Alignment) -> ProbeCase:
    asked = copied(isa, method, ALIGNED_SIZE, place, _ASKED)
    aligned = copied(isa, method, ALIGNED_SIZE, part=_IN_LINES)
    subject = f"{method.name}, {_named(ALIGNED_SIZE)}, {place.name}"
    return ProbeCase(subject, (asked, aligned), method.quick and place.quick, _grid_place(method, place))


def _grid_place(method: CopyMethod, place: Alignment) -> GridPlace | None:
    """Where it is among all beginnings in lines."""
    if place.in_line is None:
        return None
    source, destination = place.in_line
    title = f"{method.name}, {_named(ALIGNED_SIZE)}: times as long as both at the beginning of a line"
    return GridPlace(title, f"source + {source}", f"destination + {destination}")


def copied(
    isa: str, method: CopyMethod, size: int, place: Alignment = IN_LINES, part: str = _COPIED
) -> Point:
    """A copy of so many bytes; of one that takes several bodies each goes on where the last one has ended."""
    numbers, begin = NUMBERS[isa], CHAIN_BASE - FIRST_WINDOW
    if method.string:
        lines, moved, reach = _repeated(isa, method, size), size, 0
    else:
        lines, moved, reach = _moved(isa, method, size), min(size, BODY_BYTES), WALKS[isa].reach
    setting = Setting(
        numbers=((numbers["a"], 0), (numbers["e"], size - 1), (numbers["f"], STEP_BYTES)),
        pointers=(
            (numbers["g"], begin + place.source + reach),
            (numbers["h"], begin + DISTANCE_BYTES + place.destination + reach),
        ),
        chain=(2 * DISTANCE_BYTES // SPACING, SPACING),
    )
    goes_on = not method.string and size > BODY_BYTES
    setup = written(isa, _kept(WALKS[isa].begin), WALKS[isa].cut) if goes_on else ()
    x = size if part == _COPIED else 0
    return Point(part, lines, x, PARALLEL, setting, moved // CHUNK, setup)


def _repeated(isa: str, method: CopyMethod, size: int) -> tuple[KernelLine, ...]:
    """An instruction that repeats itself, behind what sets its pointers and its count."""
    source, destination = "MOV_89 (R64, R64): p g", "MOV_89 (R64, R64): q h"
    return written(isa, source, destination, f"MOV (R32, I32): b #{size // method.bytes}", method.string)


def _moved(isa: str, method: CopyMethod, size: int) -> tuple[KernelLine, ...]:
    """Loads and stores of registers, in steps that their addresses reach."""
    if size <= STEP_BYTES:
        return _step(isa, method, size, "g", "h")
    way = WALKS[isa]
    lines: list[KernelLine] = []
    for _ in range(0, min(size, BODY_BYTES), STEP_BYTES):
        lines += written(isa, *[way.address.replace("@", to).replace("#", base) for to, base in ("cg", "dh")])
        lines += _step(isa, method, STEP_BYTES, "c", "d")
        lines += written(isa, way.step)
    lines += written(isa, way.cut)
    return (*lines, *(written(isa, _kept(way.end)) if size > BODY_BYTES else ()))


def _step(isa: str, method: CopyMethod, size: int, source: str, destination: str) -> tuple[KernelLine, ...]:
    """Bytes of a source and a destination that their displacements reach."""
    registers = list(_DATA)
    if isa in _PAIRS:
        registers = [" ".join(registers[n : n + 2]) for n in range(0, len(registers), 2)]
    texts: list[str] = []
    group = method.bytes * len(registers)
    for begin in range(0, size, group):
        places = [at - WALKS[isa].reach for at in range(begin, min(begin + group, size), method.bytes)]
        for text, base in ((method.load, source), (method.store, destination)):
            for register, at in zip(registers, places, strict=False):
                texts.append(f"{text.replace('@', base).replace('#', register)} {at:+d}")
    return written(isa, *texts)


def _kept(text: str) -> str:
    """A load or store of where a copy has come to."""
    return f"{text} +{CHAIN_PLACE}"


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if case.points[0].part == _COPIED:
        (size,) = (size for size in COPY_SIZES if case.subject.endswith(f", {_named(size)}"))
        taken = _taken(readings, _COPIED, size)
        differs = {max(COPY_SIZES): PLACES_DIFFER, min(COPY_SIZES): BEGINNING_DIFFERS}.get(size, 0.0)
        taken = taken.with_error(differs)
        return ProbeVerdict(CoreAnswer.VALUE, taken.inverse().scaled(CHUNK))
    asked, aligned = _taken(readings, _ASKED), _taken(readings, _IN_LINES)
    times = Interval(asked.low / aligned.high, asked.high / aligned.low)
    precise(times)
    if case.subject.endswith(BEHIND_SOURCE):
        times = times.with_error(TAKEN_FOR_THE_SAME)
    return ProbeVerdict(CoreAnswer.VALUE, times, unit=AS_LONG)


def _taken(readings: Readings, part: str, x: int = 0) -> Interval:
    """What a copy takes, where that is known well. Raises Unresolved."""
    taken = precise(readings.get(part, x))
    if taken.low <= 0:
        raise Unresolved(Unclear.NO_TIME_TAKEN.of())
    return taken


PROBE = Probe(
    "copies",
    "How many bytes a cycle does a copy move, by method and size, and how much longer is it unaligned?",
    Model.RATIO,
    _cases,
    _judge,
    ("Agner Fog, test programs, memcpy and testmemcpyalign", "Intel, optimization manual, REP MOVSB"),
    unit="bytes per cycle",
    axis="bytes",
)
