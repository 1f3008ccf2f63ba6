"""How does a core schedule operations? The way that makes its readings likeliest.

Every way of the simulated core predicts the kernels of the probe `scheduler` with the model that was
measured: when ports are chosen, how many operations each gets in a cycle, how many results it writes,
whether vector units send it some, whether results are announced before they are sure, and on which
ports. The likelihood of the readings chooses.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import combinations
from queue import Empty, SimpleQueue
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

from cyclescope.errors import UnsupportedInstruction, UsageError
from cyclescope.infer.copies import MOST_COPIES
from cyclescope.isa.table import Table
from cyclescope.kernel.kernel import Kernel
from cyclescope.model import limits
from cyclescope.model.calibration import NEAR
from cyclescope.model.facts import SCHEDULER, Fact
from cyclescope.model.machine import BINDINGS, IDEAL, Core, MachineModel, Scheduler, Wakeup, Writeback
from cyclescope.probe.code import Assembler
from cyclescope.probe.core.scheduler import (
    CHAINED,
    MADE_LATE,
    VECTOR_ADDED,
    of_form,
    scheduler_cases,
    vector_cases,
)
from cyclescope.probe.question import Point

if TYPE_CHECKING:
    from cyclescope.simulate.simulator import Simulator

_FAR = 8.0  # nats: readings that no way comes near tell of something else
_CLEAR = 3.0  # nats by which a way has to be likelier than ports chosen at the start: odds of 20 : 1
_FEWEST = 4  # readings: fewer are explained by chance

Ports = tuple[int, ...]
Cases = Callable[[str], Iterable[tuple[str, Point]]]


class Scheduling(msgspec.Struct, frozen=True):
    """When operations get their ports, and how results are announced: fields of `Core`; "" for not known."""

    binding: str
    wakeup: Wakeup | None = None
    single: Ports = ()
    writeback: Writeback | None = None
    ahead: bool = False
    rotating: Ports = ()
    schedulers: tuple[Scheduler, ...] = ()

    def of(self, core: Core) -> Core:
        """A core that schedules so; the schedulers that it has in front of other ports stay."""
        others = tuple(one for one in core.schedulers if not {*one.ports} <= {*self.rotating})
        told = {**msgspec.structs.asdict(self), "schedulers": (*others, *self.schedulers)}
        return msgspec.structs.replace(core, **told)


NOT_TOLD = Scheduling("")


class Predictions:
    """What ways predict of the kernels of a probe, in cycles, each kernel when it is asked for.

    The engine is no Python: threads run kernels of a way at once, each on a simulator of its own.
    """

    def __init__(self, machine: MachineModel, table: Table, cases: Cases = scheduler_cases) -> None:
        from cyclescope.simulate.cost import cost_of
        from cyclescope.simulate.units import Forms

        assembler = Assembler(table)
        every = {subject: assembler.kernel(p.lines, p.flags) for subject, p in cases(table.isa)}
        known = {s: k for s, k in every.items() if all(cost_of(machine, one.form) for one in k.body)}
        self.kernels: Mapping[str, Kernel] = known  # whose instructions the model has
        self.made: dict[Scheduling, dict[str, float]] = {}
        self._machine, self._forms = machine, Forms(machine.forms)
        self._threads = min(len(os.sched_getaffinity(0)), 1 + MOST_COPIES)
        self._simulators: dict[Scheduling, list[Simulator]] = {}

    @property
    def at_once(self) -> int:
        """Kernels by which no thread has nothing to do for long."""
        return 1 if self._threads == 1 else 2 * self._threads

    def of(self, way: Scheduling) -> Mapping[str, float]:
        """What a way was asked for by now."""
        return self.made.get(way, {})

    def add(self, way: Scheduling, subjects: Iterable[str]) -> None:
        """Predict those that were not. Raises UnsupportedInstruction, UsageError, BackendUnavailable."""
        made, left = self.made.setdefault(way, {}), SimpleQueue[str]()
        for subject in subjects:
            if subject not in made:
                left.put(subject)
        if left.empty():
            return

        def run(simulator: Simulator) -> None:
            with suppress(Empty):
                while True:
                    subject = left.get_nowait()
                    kernel = self.kernels[subject]
                    made[subject] = simulator.run(kernel.body, kernel.state).cycles

        simulators = self._simulators_of(way)[: left.qsize()]
        if len(simulators) > 1:
            with ThreadPoolExecutor(len(simulators)) as pool:
                deque(pool.map(run, simulators), 0)
        else:
            run(simulators[0])

    def _simulators_of(self, way: Scheduling) -> list[Simulator]:
        from cyclescope.simulate.simulator import Simulator  # loads the engine

        if way not in self._simulators:
            machine = msgspec.structs.replace(self._machine, core=way.of(self._machine.core))
            self._simulators[way] = [
                Simulator(machine, way.binding, told=self._forms) for _ in range(self._threads)
            ]
        return self._simulators[way]


def scheduling_of(machine: MachineModel, facts: Iterable[Fact], table: Table) -> Scheduling:
    """The way that the readings of the probe speak for, `NOT_TOLD` where they speak for none.

    A reading that is less sure than predictions are tells nothing: beside neighbours all take longer.
    Where none is plainly likelier than ports that are chosen when operations start, nothing is said.
    Raises BackendUnavailable where there is no simulated core.
    """
    sure = {f.subject: f for f in facts if f.probe == SCHEDULER and _is_sure(f)}
    vectors = {subject: sure.pop(subject) for subject, _ in vector_cases(table.isa) if subject in sure}
    if len(sure) < _FEWEST or not machine.ports:
        return NOT_TOLD
    try:
        made = Predictions(machine, table)
        early = {subject: fact for subject, fact in sure.items() if not subject.startswith(MADE_LATE)}
        told = _likeliest(made, early, ways(machine, table.isa))
        found = told or Scheduling(IDEAL)
        for others in 2 * (with_blur, with_clusters):  # each hides what the other is
            tried = others(found, machine)
            found = _likeliest(made, early, tried) or tried[0]
        found = _likeliest(made, sure, [found, *with_one_result(found)]) or found
        leading = [way for one in with_leading(found) for way in with_blur(one, machine)]
        found = _likeliest(made, sure, [found, *leading]) or found
        writing = [found, *with_writeback(found, _of_additions(machine, table.isa))]
        found = _likeliest(made, sure, writing) or found
        found = _likeliest(made, sure, [found, *with_crossing(found)]) or found
        if len(vectors) < _FEWEST:
            return found if told else NOT_TOLD
        turns = [found, *with_turns(found, machine, table.isa), *with_dealt(found, machine, table.isa)]
        dealt = _likeliest(Predictions(machine, table, vector_cases), vectors, turns)
        return dealt or (found if told else NOT_TOLD)
    except (UnsupportedInstruction, UsageError):
        return NOT_TOLD


def _likeliest(made: Predictions, read: Mapping[str, Fact], tried: Sequence[Scheduling]) -> Scheduling | None:
    """The way that is plainly likelier than the first, the simplest; None where there is none.

    Each reading speaks against a way, or tells nothing: the one against which least was found by now is
    looked at further, and none that readings already speak against more than all do against another.
    """
    first, known = tried[0], [subject for subject in read if subject in made.kernels]
    if len(known) < _FEWEST or len(tried) == 1:
        return None
    made.add(first, known)
    nats = {way: _nats(read, made.of(way)) for way in tried}
    telling = sorted(known, key=lambda subject: -_told_by(read[subject], made))
    while True:
        way = min(nats, key=nats.__getitem__)
        if nats[way] + _CLEAR > nats[first]:
            return None
        left = [subject for subject in telling if subject not in made.of(way)]
        if not left:
            return way
        made.add(way, left[: made.at_once])
        nats[way] = _nats(read, made.of(way))


def _told_by(fact: Fact, made: Predictions) -> float:
    """Nats that a reading speaks with against the ways that it was compared with, on average."""
    every = [cycles[fact.subject] for cycles in made.made.values() if fact.subject in cycles]
    return fmean(min(_against(fact, cycles), _FAR) for cycles in every)


def with_writeback(way: Scheduling, ports: Ports) -> list[Scheduling]:
    """A way with one result in a cycle on some ports, and so many cycles in which what waits is passed."""
    if way.binding == IDEAL or not ports:
        return []
    patience = range(int(limits.PATIENCE.least), int(limits.PATIENCE.most) + 1)
    return [msgspec.structs.replace(way, writeback=Writeback(ports, cycles)) for cycles in patience]


def with_crossing(way: Scheduling) -> list[Scheduling]:
    """A way whose ports write what vector units send, too; none where ports write any number of results."""
    if way.writeback is None:
        return []
    return [msgspec.structs.replace(way, writeback=msgspec.structs.replace(way.writeback, crossing=True))]


def with_blur(way: Scheduling, machine: MachineModel) -> list[Scheduling]:
    """A way that wakes up readers early and knows which operations are the oldest, or does not know exactly.

    What is dispatched in a cycle is alike at the least.
    """
    powers = (1 << bits for bits in range(int(limits.BLUR.most).bit_length()))
    return _waking(way, "blur", [0, *(power for power in powers if power >= machine.core.width)])


def with_clusters(way: Scheduling, machine: MachineModel) -> list[Scheduling]:
    """A way that wakes up readers early with one scheduler, or one in front of each half of the ports."""
    parts = _unlike_halves(machine, way.wakeup.ports) if way.wakeup else ()
    return _waking(way, "clusters", [(), *parts])


def _waking(way: Scheduling, name: str, values: Iterable[object]) -> list[Scheduling]:
    """A way with each value of a field of its early wake-up; the way alone where it has none."""
    if (wakeup := way.wakeup) is None:
        return [way]
    some = [msgspec.structs.replace(wakeup, **{name: value}) for value in values]
    return [msgspec.structs.replace(way, wakeup=one) for one in some]


def with_one_result(way: Scheduling) -> list[Scheduling]:
    """A way whose ports are got in vain by what would write a second result in a cycle."""
    return _waking(way, "one_result", [True]) if way.wakeup else []


def with_leading(way: Scheduling) -> list[Scheduling]:
    """A way that deals the ports of several parts at dispatch, those of one part first.

    Then only operations of a part are ordered with each other, of which it knows the oldest anew.
    """
    if way.wakeup is None:
        return []
    some = (msgspec.structs.replace(way.wakeup, leading=part) for part in way.wakeup.clusters)
    return [msgspec.structs.replace(way, wakeup=wakeup) for wakeup in some]


def with_turns(way: Scheduling, machine: MachineModel, isa: str) -> list[Scheduling]:
    """A way whose vector ports take operations in turn, with a scheduler in front of each half of them.

    None where ports are chosen when operations start, or where operations on general registers use the ports.
    """
    ports = _of_plain(machine, isa, VECTOR_ADDED)
    if way.binding in ("", IDEAL) or not ports or not {*ports}.isdisjoint(_of_additions(machine, isa)):
        return []
    return [
        msgspec.structs.replace(
            way, rotating=ports,
            schedulers=tuple(Scheduler(f"vector {n}", part, size) for n, part in enumerate(parts)),
        )
        for parts in _unlike_halves(machine, ports)
        for size in _sizes()
    ]  # fmt: skip


def _sizes() -> Iterator[int]:
    """Entries of a queue in front of vector ports, in steps that readings tell from each other."""
    least, most = (int(end).bit_length() for end in (limits.QUEUE.least, limits.QUEUE.most))
    return (1 << bits - 1 for bits in range(least, most + 1))


def with_dealt(way: Scheduling, machine: MachineModel, isa: str) -> list[Scheduling]:
    """A way that chooses the other ports at the start, and whose vector ports are got at dispatch.

    They write one result in a cycle, or so many operations at most wait in front of each. None where
    operations on general registers use these ports.
    """
    ports = _of_plain(machine, isa, VECTOR_ADDED)
    if way.binding != IDEAL or not ports or not {*ports}.isdisjoint(_of_additions(machine, isa)):
        return []
    patience = (1 << n >> 1 for n in range(int(limits.PATIENCE.most).bit_length() + 1))  # 0, 1, 2, 4
    some = (*(Writeback(ports, n) for n in patience), *(Writeback(ports, entries=n) for n in _sizes()))
    return [msgspec.structs.replace(way, writeback=one) for one in some]


def ways(machine: MachineModel, isa: str) -> list[Scheduling]:
    """All ways that are tried before results are looked at, the simplest first."""
    ports = _of_additions(machine, isa)
    early = [Scheduling(IDEAL, Wakeup(ports))] if ports else []
    single = [Scheduling(binding, single=ports) for binding in BINDINGS if binding != IDEAL and ports]
    ahead = [msgspec.structs.replace(way, ahead=True) for way in single]
    return [*map(Scheduling, BINDINGS), *early, *single, *ahead]


def _of_additions(machine: MachineModel, isa: str) -> Ports:
    """The ports of plain additions, none where they are not known, or one alone."""
    return _of_plain(machine, isa, CHAINED)


def _of_plain(machine: MachineModel, isa: str, what: str) -> Ports:
    cost = machine.forms.get(of_form(isa, what))
    operations = cost.operations if cost is not None and cost.operations is not None else ()
    if len(operations) != 1 or len(operations[0].ports) < 2:
        return ()
    return tuple(sorted(operations[0].ports))


def _unlike_halves(machine: MachineModel, ports: Ports) -> Iterator[tuple[Ports, Ports]]:
    """The halves of ports that differ in what else uses them."""
    kinds, seen = _kinds(machine, ports), set()
    for parts in _halves(ports):
        alike = tuple(sorted(tuple(sorted(kinds[port] for port in part)) for part in parts))
        if alike not in seen:
            seen.add(alike)
            yield parts


def _kinds(machine: MachineModel, ports: Collection[int]) -> dict[int, int]:
    """Ports that the same sets of ports have are of one kind: one stands for the other."""
    costs = machine.forms.values()
    sets = sorted({op.ports for cost in costs for op in cost.operations or ()})
    member = {port: tuple(port in one for one in sets) for port in ports}
    numbers = {one: n for n, one in enumerate(sorted(set(member.values())))}
    return {port: numbers[one] for port, one in member.items()}


def _halves(ports: Ports) -> Iterator[tuple[Ports, Ports]]:
    """All ways to divide ports into two equal parts; none of an odd number of ports."""
    half = len(ports) // 2
    for others in combinations(ports[1:], half - 1) if len(ports) % 2 == 0 else ():
        one = (ports[0], *others)
        yield one, tuple(port for port in ports if port not in one)


def _is_sure(fact: Fact) -> bool:
    return fact.value is not None and (fact.error or 0.0) <= NEAR * fact.value


def _nats(read: Mapping[str, Fact], made: Mapping[str, float]) -> float:
    """Nats against the readings where a way takes so many cycles; one that is far off counts once."""
    against = (_against(fact, made[name]) for name, fact in read.items() if name in made)
    return math.fsum(min(nats, _FAR) for nats in against)


def _against(fact: Fact, cycles: float) -> float:
    value = fact.value or 0.0
    width = math.hypot(fact.error or 0.0, NEAR * value)
    return 0.5 * ((cycles - value) / width) ** 2
