"""What does an access cost that is in two lines, or in two pages?

Eight bytes at places from a page's beginning on: in the middle of a line, across 16, 32 and 64 bytes, across
the page. Loads are chained, as pointers to themselves, and side by side; stores are side by side. Vectors
are loaded side by side inside a line, across the end of one, and with a half on either side: a core that
does every half by itself takes no longer there.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.behaviour.found import LINE_SIZES, WIDE_BITS
from cyclescope.model.facts import CROSSING, CoreAnswer, WideLoad, loads_across, stores_across, wide_loads
from cyclescope.probe.code import SOME, Setting, written
from cyclescope.probe.levels import steady
from cyclescope.probe.memory.transfers import (
    CHASE,
    EMULATED_IF_UNALIGNED,
    PLAIN_TRANSFERS,
    VECTOR_TRANSFERS,
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
from cyclescope.remarks.probing import Unclear

# Where accesses begin, in bytes from a page: the last is across its beginning.
PLACES = {"16 bytes": 12, "32 bytes": 28, "64 bytes": 60, "page": -4}
_INSIDE = 0
_ALONE = "asked"


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa in EMULATED_IF_UNALIGNED or isa not in CHASE:
        return
    for name, place in PLACES.items():
        for subject, make in (
            (f"load latency across {name}", _latency),
            (loads_across(name), _loads),
            (stores_across(name), _stores),
        ):
            points = (make(isa, "inside", _INSIDE), make(isa, "across", place))
            yield ProbeCase(subject, points, name in ("64 bytes", "page"))
    yield from _wide_cases(isa)


def _wide_cases(isa: str) -> Iterator[ProbeCase]:
    """Loads of vectors, of each size the last kind that there is."""
    loads = {one.bits: one.load for kind in VECTOR_TRANSFERS[isa].values() for one in kind}
    for bits in WIDE_BITS:
        if bits in loads:
            texts = [with_register(loads[bits].replace("@", "o"), letter) for letter in SOME]
            for where, place in _wide_places(bits).items():
                yield ProbeCase(wide_loads(bits, where), (_aside(isa, _ALONE, texts, place),), False)


def _wide_places(bits: int) -> dict[WideLoad, int]:
    line = max(LINE_SIZES)
    half = line - bits // 16
    return {WideLoad.INSIDE: _INSIDE, WideLoad.ACROSS: PLACES[f"{line} bytes"], WideLoad.HALVES: half}


def _latency(isa: str, part: str, place: int) -> Point:
    (text,) = written(isa, CHASE[isa])
    setting = Setting(pointers=((text.registers[0], place),), stored=((place, place),))
    return parallel(part, text, setting=setting)


def _loads(isa: str, part: str, place: int) -> Point:
    texts = [with_register(_whole(isa)[1], letter) for letter in SOME]
    return _aside(isa, part, texts, place)


def _stores(isa: str, part: str, place: int) -> Point:
    return _aside(isa, part, [_whole(isa)[0]] * len(SOME), place)


def _whole(isa: str) -> tuple[str, str]:
    """A store and a load of 64 bits by a pointer of their own."""
    one = PLAIN_TRANSFERS[isa][-1]
    return one.store.replace("@", "o"), one.load.replace("@", "o")


def _aside(isa: str, part: str, texts: list[str], place: int) -> Point:
    lines = written(isa, *texts)
    (base,) = written(isa, CHASE[isa])
    setting = Setting(pointers=((base.registers[0], place),))
    return parallel(part, *lines, setting=setting, count=len(lines))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if case.points[0].part == _ALONE:
        return ProbeVerdict(CoreAnswer.VALUE, readings.get(_ALONE))
    inside, across = readings.get("inside"), readings.get("across")
    if not steady(inside, across):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return ProbeVerdict(CoreAnswer.VALUE, across - inside)


PROBE = Probe(
    CROSSING,
    "How many cycles longer does an access take that is in two lines, or in two pages?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, unaligned_mem",),
    EMULATED_IF_UNALIGNED,
)
