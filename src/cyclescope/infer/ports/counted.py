"""Facts of port experiments where performance counters say which ports executed micro-operations.

The experiments are the same as without counters. What the counters add: the ports of a blocking
instruction are read off instead of inferred, and what is confined to them is counted instead of timed
(uops.info's Algorithm 1, Abel and Reineke 2019), so that no port is too wide for the front end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.candidates import files_of
from cyclescope.infer.ports.facts import ERROR, PortFacts
from cyclescope.isa.table import Table
from cyclescope.measure.ports import ALONE, INSTANCES, PAIRS, PORTS, blocked
from cyclescope.measure.record import FrontEndReadings, Record

BUSY = 0.9  # of the cycles: a port that a blocking instruction fills
SEEN = 0.05  # micro-operations of an instance: no stray event
SINGLE = (0.9, 1.1)  # micro-operations of a blocking instruction


def ports_of(event: str) -> tuple[str, ...]:
    """Ports that an event counts: `p0` one, `p2+3` two; none where it counts something else."""
    return tuple(event[1:].split("+")) if event.startswith("p") else ()


class Counters:
    """What is read off counters; `events` are the names of what the records count."""

    def __init__(self, records: Iterable[Record], events: Sequence[str]) -> None:
        named = [(place, frozenset(ports_of(name))) for place, name in enumerate(events)]
        self._events = [(place, ports) for place, ports in named if ports]
        self._records = [r for r in records if r.counters]
        self._alone = {r.form: r for r in self._records if r.quantity == ALONE}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the ports."""
        return tuple(sorted(port for _, ports in self._events for port in ports))

    def count(self, record: Record, ports: frozenset[str]) -> float:
        """Micro-operations of a record on some ports, by their names."""
        return sum(record.counters[place] for place, some in self._events if some <= ports)

    @cached_property
    def filled(self) -> dict[str, tuple[frozenset[str], float]]:
        """Ports that each blocking instruction fills among more of itself, with how many it uses."""
        found = {}
        for r in self._records:
            if r.quantity == PAIRS and r.form == r.source:
                busy = {
                    ports: r.counters[place] for place, ports in self._events
                    if r.counters[place] > BUSY * len(ports) * r.cycles
                }  # fmt: skip
                found[r.form] = frozenset().union(*busy), sum(busy.values()) / blocked(r.variant)
        return found

    def total(self, form: str, ports: Iterable[int]) -> float | None:
        """Micro-operations of a form on some ports with nothing around it; None where none were counted."""
        record = self._alone.get(form)
        names = frozenset(self.labels[p] for p in ports)
        return None if record is None else self.count(record, names) / INSTANCES

    def was_seen_on(self, form: str, ports: Iterable[int]) -> bool:
        """Whether a form alone was counted on some of the ports."""
        return (self.total(form, ports) or 0.0) > SEEN

    @cached_property
    def _used(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for r in self._records:
            if r.quantity in (ALONE, PORTS):
                own, _ = self.filled.get(r.source, (frozenset(), 0.0))
                some = [ports for place, ports in self._events if r.counters[place] > SEEN * INSTANCES]
                found.setdefault(r.form, set()).update(*[ports for ports in some if not ports <= own])
        return {form: frozenset(ports) for form, ports in found.items()}

    def unused(self, form: str, ports: Iterable[int]) -> tuple[int, ...]:
        """Ports on which a form was never counted, neither alone nor where others were blocked."""
        return tuple(p for p in ports if self.labels[p] not in self._used.get(form, ()))


class CountedFacts(PortFacts):
    """Facts with counters; `events` are the names of what the records count.

    Records without counters are left out.
    """

    def __init__(
        self,
        table: Table,
        throughputs: Mapping[str, float],
        records: Iterable[Record],
        readings: FrontEndReadings,
        events: Sequence[str],
    ) -> None:
        super().__init__(table, throughputs, records, readings)
        self._counters = Counters(self._records, events)

    @property
    def counters(self) -> Counters:
        """What was counted."""
        return self._counters

    @property
    def widest(self) -> float:
        """Ports of a blocking instruction need not leave slots to others."""
        return self.width + 1

    @cached_property
    def grouped(self) -> tuple[dict[str, list[str]], list[tuple[str, str, int]]]:
        """One candidate per set of ports that it fills, and those that have not been looked at."""
        candidates = {name: width for (_, width), group in self.blockers.items() for name in group}
        filled = self.counters.filled
        heads: dict[tuple[frozenset[str], frozenset[str]], str] = {}
        found: dict[str, list[str]] = {}
        missing = [(name, name, width) for name, width in candidates.items() if name not in filled]
        for name, width in candidates.items():
            ports, count = filled.get(name, (frozenset(), 0.0))
            files = frozenset(files_of(self.table[name]))
            if len(files) > 1 or len(ports) != width or not SINGLE[0] < count / (2 * width) < SINGLE[1]:
                continue
            found.setdefault(heads.setdefault((files, ports), name), []).append(name)
        for (files, ports), name in heads.items():
            near = [other for some, other in heads if some == files]
            if candidates[name] >= self.width and not all(ports >= other for other in near):
                del found[name]  # it may have more ports than the front end can fill
        return found, missing

    @property
    def units(self) -> dict[str, str]:
        """None: what is not one micro-operation on as many ports as run per cycle is no class here."""
        return {}

    @cached_property
    def structure(self) -> Structure:
        """The ports, as the counters name them."""
        labels = self.counters.labels
        place = {name: n for n, name in enumerate(labels)}
        filled = self.counters.filled
        sets = {name: tuple(sorted(place[p] for p in filled[name][0])) for name in self.classes}
        return Structure(len(labels), sets)

    @property
    def sure(self) -> dict[str, float]:
        """All is certain: the counters name the ports."""
        return {}

    @cached_property
    def confined(self) -> dict[str, dict[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""
        found: dict[str, dict[str, float]] = {}
        for r in self._records:
            if r.quantity == PORTS and r.source in self.widths and r.counters:
                blocking = blocked(r.variant) * self.widths[r.source]
                counted = self.counters.count(r, self.counters.filled[r.source][0])
                value = (counted - blocking) / INSTANCES
                some = found.setdefault(r.form, {})
                some[r.source] = min(value, some.get(r.source, value))
        return found

    def looks(self, form: str) -> dict[str, Sequence[Look]]:
        """What was counted of a form, by representative."""
        return {name: (Look(value, ERROR),) for name, value in self.confined.get(form, {}).items()}
