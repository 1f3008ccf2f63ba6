"""How much of a run is done: its stages by the time that they usually take."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from cyclescope.measure.plan import LATENCY
from cyclescope.measure.ports import PORTS

TRYING, LINKS, MEASURING, TIMED_AGAIN = "forms that run", "links", "measuring", "second look"
THROUGHPUTS, FORMS_ALONE, ORDER, PAIRED = "throughputs for ports", "forms alone", "order of issue", "pairs"
FRONT_END_WIDTH, FRONT_END_NARROW, FRONT_END_SLOTS, SECOND_SLOTS = (
    "front end",
    "front end, fewer of a kind",
    "front-end slots",
    "front-end slots, second look",
)
CLASSES, BETWEEN = "classes", "classes against each other"
AMONG, MEMORY, PORTS_AGAIN = "ports", "ports for memory", "ports, second look"
HIDDEN_RESOURCES, MODEL = "hidden resources", "model of this machine"
CORE_FACTS = "facts of the core"
FRESH, DOUBTED, CALIBRATING = "fresh mixes", "fresh mixes, second look", "calibration"

_FIRST, _OF_LATENCIES, _LAST = (TRYING, LINKS, MEASURING), (TIMED_AGAIN,), (MODEL,)
_OF_PORTS = (THROUGHPUTS, FORMS_ALONE, ORDER, FRONT_END_WIDTH, FRONT_END_NARROW, FRONT_END_SLOTS,
             SECOND_SLOTS, CLASSES, BETWEEN, AMONG, MEMORY, PORTS_AGAIN, HIDDEN_RESOURCES,
             FRESH, DOUBTED, CALIBRATING)  # fmt: skip
# Times as long as a short stage takes. Stages of one group differ by less than they do from core to core:
# what is told of full runs is off by less than a tenth of all.
_LONG = dict.fromkeys((MEASURING, TIMED_AGAIN, PORTS_AGAIN), 30.0) | dict.fromkeys(
    (FRONT_END_SLOTS, AMONG, FRESH, DOUBTED, CORE_FACTS), 5.0
)


class Workload:
    """The stages of a run that measures some quantities, and `facts` of the core."""

    def __init__(self, quantities: AbstractSet[str], facts: bool = False) -> None:
        latencies = _OF_LATENCIES if LATENCY in quantities else ()
        ports = _OF_PORTS if PORTS in quantities else ()
        stages = (*_FIRST, *latencies, *ports, *((CORE_FACTS,) if facts else ()), *_LAST)
        self._times = {stage: _LONG.get(stage, 1.0) for stage in stages}
        self._share = 0.0

    def share(self, stage: str, done: int, total: int) -> float:
        """How much of all is done when so much of a stage is: never less than before.

        A stage of another name, as that of cores that issue in order, tells nothing.
        """
        names = list(self._times)
        if stage in self._times:
            before = sum(self._times[name] for name in names[: names.index(stage)])
            now = before + self._times[stage] * min(done / max(total, 1), 1.0)
            self._share = max(self._share, now / sum(self._times.values()))
        return self._share
