"""How many instructions does the core keep decoded, and how many does it decode in a cycle?

Loops of so many instructions that do nothing, of several lengths: those that are kept decoded run as fast as
the shortest, whatever their number. What ends at the same number of instructions, short or long, is no cache
of code, which would end at the same number of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache

from cyclescope.isa.table import load_table
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import instruction, written
from cyclescope.probe.edges import inside
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import precise
from cyclescope.probe.plateaus import FAR_BEYOND, SOFT, WALKED, levels_of, steady_places
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
from cyclescope.remarks.probing import NotAsked, UnclearSize

LEAST_CODE, CODE_PER_OCTAVE = 512, 4  # instructions of the shortest loop; numbers that are asked first
MOST_CODE = 64000  # bytes of a kernel
LENGTHS_APART = 1.4  # times as long: then the end of a cache of code is at clearly fewer
SAME_END = 0.1  # of a number that two lengths show: they differ by less
DECODING = 1.15  # times as long as what is kept: what is decoded takes more
BEYOND_END = 1.2  # times the end: from there on nothing is kept
_INSTRUCTIONS, _DECODED = "instructions", "bytes each, decoded"
_KINDS: Mapping[str, tuple[str, ...]] = {
    "x86-64": ("NOP_90", "NOP (R64): a", "NOP (M64): p +64", "LEA_B_D32 (R64): c p"),
    "riscv64": ("C_NOP", "ADDI: z z #0"),
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    points = tuple(loop(isa, text, n) for text in _KINDS.get(isa, ()) for n in numbers(isa, text))
    if points:
        yield ProbeCase(_INSTRUCTIONS, points)
    for text in _KINDS.get(isa, ()):
        yield ProbeCase(f"{length(isa, text)} {_DECODED}", points, is_quick=False)


@cache
def length(isa: str, text: str) -> int:
    """Bytes of an instruction."""
    return len(instruction(load_table(isa), written(isa, text)[0]).code())


def numbers(isa: str, text: str) -> list[int]:
    """Numbers of an instruction that are asked first."""
    every = [round(LEAST_CODE * 2 ** (n / CODE_PER_OCTAVE)) for n in range(CODE_PER_OCTAVE * 7)]
    return [n for n in every if n * length(isa, text) <= MOST_CODE]


def loop(isa: str, text: str, count: int) -> Point:
    """So many of an instruction."""
    return parallel(_part(length(isa, text)), *written(isa, text) * count, x=count, count=count)


def _part(size: int) -> str:
    return f"{size} bytes each"


def of_length(readings: Readings, part: str) -> Readings:
    """Readings of one length, as those of a walk."""
    found = {(WALKED, place): readings.get(part, place) for place in readings.places(part)}
    return Readings(found, {})


def _parts(case: ProbeCase) -> dict[str, int]:
    """Bytes of an instruction by the part of a case that has it."""
    return {point.part: int(point.part.split()[0]) for point in case.points}


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if case.subject.endswith(_DECODED):
        return _decoded(of_length(readings, _part(int(case.subject.split()[0]))))
    shown: list[tuple[int, Interval]] = []
    for part, size in _parts(case).items():
        try:
            end = _end(of_length(readings, part))
        except Unresolved:
            continue
        for other, known in shown:
            if size >= LENGTHS_APART * other and abs(end.value - known.value) <= SAME_END * known.low:
                return ProbeVerdict(CoreAnswer.VALUE, known.hull(end))
        shown.append((size, end))
    if len(shown) < 2:
        raise Unresolved(UnclearSize.NO_LENGTHS.of())
    raise Unresolved(UnclearSize.LENGTHS_DIFFER.of())


def _end(own: Readings) -> Interval:
    """The last number that is kept, up to before the first that is surely not. Raises Unresolved."""
    kept, last = _kept(own)
    behind = {n: one for n, one in steady_places(own).items() if n > last}
    close = [n for n, one in behind.items() if one.low < DECODING * kept.high]
    beyond = [n for n in behind if n > max(close, default=last)]
    if not beyond or beyond[-1] < BEYOND_END * last:
        raise Unresolved(UnclearSize.MORE_AS_FAST.of())
    if beyond[0] > (1 + SOFT) * last:
        raise Unresolved(UnclearSize.SOFT_EDGE.of())
    return Interval(last, beyond[0] - 1)


def _kept(own: Readings) -> tuple[Interval, int]:
    """What each takes that is surely kept, and the last number of them. Raises Unresolved.

    An edge may begin softly, with less than what readings of a level differ by.
    """
    known, levels = steady_places(own), levels_of(own)
    places = levels[0].places if levels else ()
    sure = [known[n] for n in places if n in known and n <= places[-1] / FAR_BEYOND]
    if not sure or places[0] > own.places(WALKED)[CODE_PER_OCTAVE]:
        raise Unresolved(UnclearSize.SMALLEST_DIFFER.of())
    kept = Interval(min(one.low for one in sure), max(one.high for one in sure))
    return kept, max(n for n in places if n in known and known[n].low <= kept.high)


def _decoded(own: Readings) -> ProbeVerdict:
    """How many are decoded in a cycle: of numbers beyond the end. Raises Unresolved."""
    end = _end(own)
    beyond = [one for n, one in steady_places(own).items() if n >= BEYOND_END * end.low]
    taken = Interval(min(one.low for one in beyond), max(one.high for one in beyond))
    return ProbeVerdict(CoreAnswer.VALUE, precise(taken).inverse(), unit="per cycle")


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Numbers between the last that is kept decoded and the next, of every length."""
    isa = next(isa for isa, kinds in _KINDS.items() if case.points[0].lines[0] == written(isa, kinds[0])[0])
    for text in _KINDS[isa] if case.subject == _INSTRUCTIONS else ():
        own = of_length(readings, _part(length(isa, text)))
        with suppress(Unresolved):
            _, last = _kept(own)
            for count in inside(last, next((n for n in steady_places(own) if n > last), last)):
                yield loop(isa, text, count)


PROBE = Probe(
    "decoded",
    "How many instructions does the core keep decoded, and how many does it decode in a cycle?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, loop_size, ucache_size and decode_nops",),
    why_not={"aarch64": NotAsked.ONE_LENGTH.of()},
    unit="instructions",
    more=_more,
)
