"""How much of a run is done: its stages by the time that they usually take."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from cyclescope.measure.plan import LATENCY
from cyclescope.measure.ports import PORTS

TRYING, LINKS, MEASURING, SECOND = "forms that run", "links", "measuring", "second look"
THROUGHPUTS, ALONE, ORDER, PAIRED = "throughputs for ports", "forms alone", "order of issue", "pairs"
WIDTHS, SLOTS, SECOND_SLOTS = "front end", "front-end slots", "front-end slots, second look"
CLASSES, BETWEEN = "classes", "classes against each other"
AMONG, MEMORY, AGAIN = "ports", "ports for memory", "ports, second look"
HIDDEN, MODEL = "hidden resources", "model of this machine"
CORE_FACTS = "facts of the core"
FRESH, DOUBTED, CHECKED = "fresh mixes", "fresh mixes, second look", "calibration"

_FIRST, _OF_LATENCIES, _LAST = (TRYING, LINKS, MEASURING), (SECOND,), (MODEL,)
_OF_PORTS = (THROUGHPUTS, ALONE, ORDER, WIDTHS, SLOTS, SECOND_SLOTS, CLASSES, BETWEEN, AMONG, MEMORY, AGAIN,
             HIDDEN, FRESH, DOUBTED, CHECKED)  # fmt: skip
# Seconds of the long stages of a full run beside other programs, by the samples that they took times their
# length. Only the ratios count; on a quiet machine second looks are shorter: it ends sooner than told.
_LONG = {
    MEASURING: 60.0,
    SECOND: 45.0,
    SLOTS: 16.0,
    SECOND_SLOTS: 8.0,
    AMONG: 24.0,
    AGAIN: 43.0,
    CORE_FACTS: 10.0,
}
_SHORT = 1.5  # seconds of any other stage, as they take on average


class Workload:
    """The stages of a run that measures some quantities, and `facts` of the core."""

    def __init__(self, quantities: AbstractSet[str], facts: bool = False) -> None:
        latencies = _OF_LATENCIES if LATENCY in quantities else ()
        ports = _OF_PORTS if PORTS in quantities else ()
        stages = (*_FIRST, *latencies, *ports, *((CORE_FACTS,) if facts else ()), *_LAST)
        self._seconds = {stage: _LONG.get(stage, _SHORT) for stage in stages}
        self._share = 0.0

    def share(self, stage: str, done: int, total: int) -> float:
        """How much of all is done when so much of a stage is: never less than before.

        A stage of another name, as that of cores that issue in order, tells nothing.
        """
        names = list(self._seconds)
        if stage in self._seconds:
            before = sum(self._seconds[name] for name in names[: names.index(stage)])
            now = before + self._seconds[stage] * min(done / max(total, 1), 1.0)
            self._share = max(self._share, now / sum(self._seconds.values()))
        return self._share
