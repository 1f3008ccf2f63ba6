"""How many loads and stores does a cycle take, alone and mixed?

Loads into registers that nothing waits for, and stores next to each other in one line, in several
proportions. The rate is the number of accesses divided by the cycles of all.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import ACCESSES
from cyclescope.probe.code import PARALLEL, SOME, written
from cyclescope.probe.levels import MOST_ERROR
from cyclescope.probe.memory.transfers import Transfer, groups, per_cycle, with_register
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings

PATTERNS = ("L", "S", "LS", "LLS", "LLLS", "LSS")
_TIMES = 4  # a pattern in a body
_LINE = 64  # bytes that are loaded; stores go to as many behind them
_NAMES = {"L": "loads", "S": "stores"}


def _cases(isa: str) -> Iterator[ProbeCase]:
    for kind, group in groups(isa).items():
        for one in group:
            if one.bits >= 32:
                for pattern in PATTERNS:
                    quick = pattern in ("L", "S", "LS") and one.bits in (64, 128)
                    yield ProbeCase(_subject(one, kind, pattern), (_point(isa, one, pattern),), quick)


def _subject(one: Transfer, file: str, pattern: str) -> str:
    counts = [f"{pattern.count(kind)} {name}" for kind, name in _NAMES.items() if kind in pattern]
    what = " to ".join(counts) if len(counts) > 1 else _NAMES[pattern]
    return f"{what} of {one.bits} bits{f', {file}' if file else ''}"


def _point(isa: str, one: Transfer, pattern: str) -> Point:
    """Loads from one line, stores to the next, both from its beginning on."""
    size, texts = one.bits // 8, []
    for number, kind in enumerate(pattern * _TIMES):
        place = number * size % _LINE
        if kind == "L":
            load = with_register(one.load.replace("@", "p"), SOME[number % len(SOME)])
            texts.append(f"{load} +{place}")
        else:
            texts.append(f"{with_register(one.store.replace('@', 'q'), 'a')} +{_LINE + place}")
    return Point("accesses", written(isa, *texts), flags=PARALLEL, count=len(texts))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    return per_cycle(readings, MOST_ERROR)


PROBE = Probe(
    ACCESSES,
    "How many loads and stores does a cycle take, alone and mixed?",
    Model.RATIO,
    _cases,
    _judge,
    ("Agner Fog, test programs, read_write_bandwidth",),
    unit="per cycle",
)
