"""Which loads, and which stores, of the same cycle are in each other's way?

Two places in turn, so many bytes apart, many times over, into registers that nothing waits for. A cache with
banks is read less often at one place than at two in different banks, and less often again where the banks
repeat. Stores leave for the cache one place after the other where they cannot go together; three by three
they show whether an odd one takes a cycle for itself. Loads of half a register next to each other show
whether banks are as narrow as that.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.behaviour.found import SPACINGS
from cyclescope.model.facts import BANKS, NARROW, NARROW_LOADS, THREES, loads_apart, stores_apart
from cyclescope.probe.code import NUMBERS, PARALLEL, SOME, Setting, written
from cyclescope.probe.memory.transfers import PLAIN_TRANSFERS, per_cycle, with_register
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings

_MOST = 0.05  # relative error: more would not tell 3 accesses a cycle from 2.5
_QUICK = (0, 8, 32, 64)


def _cases(isa: str) -> Iterator[ProbeCase]:
    for distance in SPACINGS if isa in PLAIN_TRANSFERS else ():
        for name, letters, is_load in ((loads_apart, SOME, True), (stores_apart, "a" * len(SOME), False)):
            point = _point(isa, distance, "po" * (len(letters) // 2), letters, is_load)
            yield ProbeCase(name(distance), (point,), distance in _QUICK)
    if isa in PLAIN_TRANSFERS:
        yield ProbeCase(THREES, (_point(isa, SPACINGS[-1], "pppooo" * 2, "a" * 12, False),))
        yield ProbeCase(NARROW_LOADS, (_point(isa, NARROW, "po" * (len(SOME) // 2), SOME, True, 8 * NARROW),))


def _point(isa: str, distance: int, places: str, letters: str, is_load: bool, bits: int = 64) -> Point:
    """Accesses with registers by letters at places by letters: o is so many bytes behind p."""
    whole = next(one for one in PLAIN_TRANSFERS[isa] if one.bits == bits)
    text = whole.load if is_load else whole.store
    texts = [with_register(text.replace("@", at), one) for at, one in zip(places, letters, strict=True)]
    setting = Setting(pointers=((NUMBERS[isa]["o"], distance),))
    return Point("accesses", written(isa, *texts), 0, PARALLEL, setting, len(texts))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    return per_cycle(readings, _MOST)


PROBE = Probe(
    BANKS,
    "How many accesses does a cycle take that go to two places in turn, so many bytes apart?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_banks", "T. Downs, uarch-bench"),
    unit="per cycle",
)
