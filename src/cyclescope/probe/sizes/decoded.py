"""How many instructions does the core keep decoded, and how many does it decode in a cycle?

Loops of so many instructions that do nothing, of several lengths: those that are kept decoded run as fast as
the shortest, whatever their number. What ends at the same number of instructions, short or long, is no cache
of code, which would end at the same number of bytes. Where instructions of a line of code share places, some
lengths leave some of each empty: loops of somewhat more, with other numbers of them in each line, have to be
slower. Nothing is told where NOPs share slots: they may share places as well, and others do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise

from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.sizes import LEAST_CODE
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import KernelLine, instruction, written
from cyclescope.probe.edges import inside
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import precise
from cyclescope.probe.plateaus import FAR_BEYOND, SAME_LEVEL, SOFT, WALKED, levels_of, steady_places
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
from cyclescope.probe.slots import nops_share, slot_points
from cyclescope.remarks.probing import NotAsked, Read, Unclear, UnclearSize

CODE_PER_OCTAVE = 4  # numbers that are asked first
MOST_CODE = 64000  # bytes of a kernel
LENGTHS_APART = 1.4  # times as long: then the end of a cache of code is at clearly fewer
SAME_END = 0.03  # of a number that two lengths show: they differ by less; what places hold may, by a tenth
SAME_BYTES = 0.1  # of what a byte takes: shorter and longer instructions that wait for bytes differ by less
DECODING = 1.15  # times as long as what is kept: what is decoded takes more
MORE_IN_LINES = (
    1.08  # times the number that two lengths show: so many are not kept, however they lie in lines
)
BEYOND_END = 1.2  # times the end: from there on nothing is kept
_LINE = 64  # bytes of code that places may be of
_INSTRUCTIONS, _DECODED, _EACH, _IN_A_LINE = (
    "instructions",
    "bytes each, decoded",
    " bytes each",
    " in a line",
)
_KINDS: Mapping[str, tuple[str, ...]] = {
    "x86-64": ("NOP_90", "NOP (R64): a", "NOP (M64): p +64", "LEA_B_D32 (R64): c p"),
    "riscv64": ("C_NOP", "ADDI: z z #0"),
}
# Texts by length, and numbers of instructions in a line.
_LENGTHS: Mapping[str, Mapping[int, str]] = {
    "x86-64": {2: "NOP_90", 4: "NOP (R64): a", 5: "NOP (M64): p +64"},
    "riscv64": {2: "C_NOP", 4: "ADDI: z z #0"},
}
IN_LINES: Mapping[str, tuple[int, ...]] = {
    "x86-64": (6, 7, 9, 10, 11, 12, 14, 18, 20, 24),
    "riscv64": (18, 20, 22, 24, 28),
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
    return len(instruction(load_table(isa), written(isa, text)[0]).code)


def numbers(isa: str, text: str) -> list[int]:
    """Numbers of an instruction that are asked first."""
    every = [round(LEAST_CODE * 2 ** (n / CODE_PER_OCTAVE)) for n in range(CODE_PER_OCTAVE * 7)]
    return [n for n in every if n * length(isa, text) <= MOST_CODE]


def loop(isa: str, text: str, count: int) -> Point:
    """So many of an instruction."""
    return parallel(_part(length(isa, text)), *written(isa, text) * count, x=count, count=count)


def _others_in_lines(isa: str, least: int) -> Iterator[Point]:
    """Somewhat more instructions than are kept, with other numbers in a line, and clearly more of them."""
    for each in IN_LINES[isa]:
        most = min(FAR_BEYOND * least, MOST_CODE // _LINE * each)
        if most >= BEYOND_END * least:
            yield from (in_lines(isa, each, count) for count in (least, most))


def in_lines(isa: str, each: int, least: int) -> Point:
    """At least so many instructions in whole lines, with so many in each line."""
    lines = -(-least // each)
    step = instruction_set(isa).step
    begins = [n * _LINE // each // step * step for n in range(each + 1)]  # so that halves of a line are alike
    line = [_of_bytes(isa, end - begin) for begin, end in pairwise(begins)]
    return parallel(f"{each}{_IN_A_LINE}", *line * lines, x=lines * each, count=lines * each)


def _of_bytes(isa: str, size: int) -> KernelLine:
    """An instruction that does nothing, of so many bytes: longer ones have prefixes that say nothing."""
    known = max(one for one in _LENGTHS[isa] if one <= size)
    return written(isa, _LENGTHS[isa][known])[0]._replace(padding=size - known)


def _part(size: int) -> str:
    return f"{size}{_EACH}"


def of_length(readings: Readings, part: str) -> Readings:
    """Readings of one length, as those of a walk."""
    found = {(WALKED, place): readings.get(part, place) for place in readings.places(part)}
    return Readings(found, {})


def _parts(case: ProbeCase) -> dict[str, int]:
    """Bytes of an instruction by the part of a case that has it."""
    return {point.part: int(point.part.split()[0]) for point in case.points if point.part.endswith(_EACH)}


def _isa_of(case: ProbeCase) -> str:
    return next(isa for isa, kinds in _KINDS.items() if case.points[0].lines[0] == written(isa, kinds[0])[0])


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    number, each = _number(case, readings)
    if case.subject.endswith(_DECODED):
        return _decoded(case, readings, number)
    others = [of_length(readings, f"{some}{_IN_A_LINE}") for some in IN_LINES[_isa_of(case)]]
    if not any(own.places(WALKED) for own in others):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    if nops_share(readings):
        raise Unresolved(UnclearSize.SHARED_SLOTS.of())
    for own in others:
        _check_lines(own, DECODING * each.high, BEYOND_END * MORE_IN_LINES * number.high)
    return ProbeVerdict(CoreAnswer.VALUE, number.with_error(SAME_END))


def _check_lines(own: Readings, decoding: float, beyond: float) -> None:
    """Raise Unresolved where somewhat more instructions in such lines are kept, or may be.

    Where not even many more are slower, decoding is as fast, and they say nothing.
    """
    every = {place: own.get(WALKED, place) for place in own.places(WALKED)}
    few = [(place, taken) for place, taken in every.items() if place < beyond]
    many = [taken for place, taken in every.items() if place >= beyond]
    if not few or any(taken.high < decoding for taken in many):
        return
    if not any(taken.low >= decoding for taken in many):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    if fast := [place for place, taken in few if taken.high < decoding]:
        raise Unresolved(UnclearSize.KEEPS_MORE.of(), Read.UP_TO.of(max(fast)))
    if not any(taken.low >= decoding for _, taken in few):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())


def _number(case: ProbeCase, readings: Readings) -> tuple[Interval, Interval]:
    """How many are kept by what two lengths show, of which none keeps more, and what each takes.

    Raises Unresolved.
    """
    found, part = _shown_twice(case, readings)
    most = max(_last_before_end(of_length(readings, one)) for one in _parts(case))
    if most > (1 + SAME_END) * found.high:
        raise Unresolved(UnclearSize.KEEPS_MORE.of(), Read.UP_TO.of(most))
    return found, _kept(of_length(readings, part))[0]


def _last_before_end(own: Readings) -> float:
    """The last number that is surely kept, 0 where that is not clear, or where any number is as fast."""
    with suppress(Unresolved):
        return _end(own).low
    return 0.0


def _shown_twice(case: ProbeCase, readings: Readings) -> tuple[Interval, str]:
    """The number that two lengths show, and one of them. Raises Unresolved."""
    shown: list[tuple[int, Interval]] = []
    for part, size in _parts(case).items():
        try:
            end = _end(of_length(readings, part))
        except Unresolved:
            continue
        for other, known in shown:
            if size >= LENGTHS_APART * other and _is_same(end, known):
                return known.hull(end), part
        shown.append((size, end))
    if len(shown) < 2:
        raise Unresolved(UnclearSize.NO_LENGTHS.of())
    raise Unresolved(UnclearSize.LENGTHS_DIFFER.of())


def _is_same(end: Interval, known: Interval) -> bool:
    return abs(end.value - known.value) <= SAME_END * known.low


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


def _decoded(case: ProbeCase, readings: Readings, number: Interval) -> ProbeVerdict:
    """How many are decoded in a cycle: of numbers beyond the end of what is kept decoded. Raises Unresolved.

    Where shorter ones come to more bytes a cycle, lines of code are what the core waits for.
    """
    size = int(case.subject.split()[0])
    taken = _beyond(of_length(readings, _part(size)), number)
    shorter = list(_shorter(case, readings, number, size))
    if not shorter and size > min(_parts(case).values()):
        raise Unresolved(UnclearSize.NO_LENGTHS.of())
    if any(each / other < (1 - SAME_BYTES) * taken.low / size for other, each in shorter):
        raise Unresolved(UnclearSize.LINES_LIMIT.of())
    code = BEYOND_END * number.low * size
    parts = {other: of_length(readings, part) for part, other in _parts(case).items() if other < size}
    if any(_waits_for_lines(own, other, code) for other, own in parts.items()):
        raise Unresolved(UnclearSize.LINES_LIMIT.of())
    return ProbeVerdict(CoreAnswer.VALUE, taken.inverse(), unit="per cycle")


def _waits_for_lines(own: Readings, size: int, code: float) -> bool:
    """Whether what is decoded anyway takes longer where it is about so many bytes of code, or less."""
    try:
        least = BEYOND_END * _end(own).low
    except Unresolved:
        return False
    decoded = {n * size: one for n, one in steady_places(own).items() if n >= least}
    some = [one for at, one in decoded.items() if at <= FAR_BEYOND * code]
    return bool(some) and max(one.low for one in some) > (1 + SAME_LEVEL) * min(one.high for one in some)


def _shorter(case: ProbeCase, readings: Readings, number: Interval, size: int) -> Iterator[tuple[int, float]]:
    """Shorter lengths, and the most that each of them takes."""
    for other in _parts(case).values():
        with suppress(Unresolved):
            if other < size:
                yield other, _beyond(of_length(readings, _part(other)), number).high


def _beyond(own: Readings, number: Interval) -> Interval:
    """What each takes of numbers soon beyond the end of what is kept decoded. Raises Unresolved."""
    end = _end(own)
    if not _is_same(end, number):
        raise Unresolved(UnclearSize.OTHER_END.of())
    least = BEYOND_END * end.low
    beyond = [one for n, one in steady_places(own).items() if least <= n <= FAR_BEYOND * least]
    if not beyond:
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return precise(Interval(min(one.low for one in beyond), max(one.high for one in beyond)))


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Numbers between the last that is kept and the next, of every length; then more, otherwise in lines."""
    isa = _isa_of(case)
    for text in _KINDS[isa] if case.subject == _INSTRUCTIONS else ():
        own = of_length(readings, _part(length(isa, text)))
        with suppress(Unresolved):
            _, last = _kept(own)
            for count in inside(last, next((n for n in steady_places(own) if n > last), last)):
                yield loop(isa, text, count)
    if case.subject == _INSTRUCTIONS:
        with suppress(Unresolved):
            number, _ = _number(case, readings)
            if number.error <= SAME_END * number.value:
                yield from _others_in_lines(isa, round(MORE_IN_LINES * number.value))
                yield from slot_points(isa)


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
    events=("L1-icache-load-misses",),
    axis="instructions",
)
