"""How does a core schedule operations? The way that makes its readings likeliest.

Every way of the simulated core predicts the kernels of the probe `scheduler` with the model that was
measured: when ports are chosen, how many operations each gets in a cycle, how many results it writes,
whether vector units send it some, whether results are announced before they are sure, and on which
ports. The likelihood of the readings chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

import msgspec

from cyclescope.errors import UnsupportedInstruction, UsageError
from cyclescope.infer.copies import by_copies, possible_copies
from cyclescope.isa.table import Table
from cyclescope.kernel.kernel import Kernel
from cyclescope.model import limits
from cyclescope.model.calibration import NEAR
from cyclescope.model.facts import SCHEDULER, Fact
from cyclescope.model.machine import BINDINGS, IDEAL, Core, MachineModel, Scheduler, Wakeup, Writeback
from cyclescope.model.ports import even_throughput, port_throughput
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

Made = dict[Scheduling, dict[str, float]]  # cycles of the probe's kernels, by way


def predicted(
    machine: MachineModel, table: Table, way: Scheduling, cases: Cases = scheduler_cases
) -> dict[str, float]:
    """Cycles of the probe's kernels by subject, as far as the model knows their instructions."""
    from cyclescope.simulate.simulator import Simulator  # loads the engine

    simulator = Simulator(msgspec.structs.replace(machine, core=way.of(machine.core)), way.binding)
    found: dict[str, float] = {}
    for subject, kernel in _kernels(table, cases):
        if all(simulator.knows(one.form) for one in kernel.body):
            found[subject] = simulator.run(kernel.body, kernel.state).cycles
    return found


@lru_cache(maxsize=2)  # of two kinds of cases, by all ways
def _kernels(table: Table, cases: Cases) -> list[tuple[str, Kernel]]:
    assembler = Assembler(table)
    return [(subject, assembler.kernel(point.lines, point.flags)) for subject, point in cases(table.isa)]


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
    made: Made = {}
    try:
        early = {subject: fact for subject, fact in sure.items() if not subject.startswith(MADE_LATE)}
        told = _likeliest(machine, early, table, ways(machine, table.isa), made)
        found = told or Scheduling(IDEAL)
        for others in 2 * (with_blur, with_clusters):  # each hides what the other is
            tried = others(found, machine)
            found = _likeliest(machine, early, table, tried, made) or tried[0]
        found = _likeliest(machine, sure, table, [found, *with_one_result(found)], made) or found
        leading = [way for one in with_leading(found) for way in with_blur(one, machine)]
        found = _likeliest(machine, sure, table, [found, *leading], made) or found
        writing = [found, *with_writeback(found, _of_additions(machine, table.isa))]
        found = _likeliest(machine, sure, table, writing, made) or found
        found = _likeliest(machine, sure, table, [found, *with_crossing(found)], made) or found
        if len(vectors) < _FEWEST:
            return found if told else NOT_TOLD
        turns = [found, *with_turns(found, machine, table.isa), *with_dealt(found, machine, table.isa)]
        dealt = _likeliest(machine, vectors, table, turns, {}, vector_cases)
        if dealt is not None and dealt.binding == IDEAL:
            return with_evenness(dealt, machine, vectors, table)
        return dealt or (found if told else NOT_TOLD)
    except (UnsupportedInstruction, UsageError):
        return NOT_TOLD


def _likeliest(
    machine: MachineModel,
    read: Mapping[str, Fact],
    table: Table,
    tried: Sequence[Scheduling],
    made: Made,
    *cases: Cases,
) -> Scheduling | None:
    """The way that is plainly likelier than the first, the simplest; None where there is none.

    What each way predicts is added to what was `made` of these cases before.
    """
    copies, left = possible_copies(), [way for way in dict.fromkeys(tried) if way not in made]
    others = [number for number in range(len(left)) if number % (copies + 1)]

    def cycles_of(number: int) -> dict[str, float]:
        return predicted(machine, table, left[number], *cases)

    with by_copies(cycles_of, others, copies) as elsewhere:
        for number, way in enumerate(left):
            made[way] = elsewhere(number) or cycles_of(number)
    nats = {way: _nats(read, made[way]) for way in tried}
    likeliest = min(nats, key=nats.__getitem__)
    known = len(read.keys() & made[tried[0]].keys())
    return likeliest if known >= _FEWEST and nats[likeliest] + _CLEAR <= nats[tried[0]] else None


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


def with_evenness(
    way: Scheduling, machine: MachineModel, read: Mapping[str, Fact], table: Table
) -> Scheduling:
    """The way with how far rounds of vectors are from the best use of their ports to an even one.

    The least squares of all of them: those whose ports may be used in one way alone tell nothing.
    """
    assembler, squares, product = Assembler(table), 0.0, 0.0
    for subject, point in vector_cases(table.isa):
        kernel = assembler.kernel(point.lines, point.flags)
        costs = [machine.forms[one.form.id] for one in kernel.body if one.form.id in machine.forms]
        if subject not in read or len(costs) < len(kernel.body):
            continue
        operations = [op for cost in costs for op in cost.operations or ()]
        least, even = port_throughput(operations), even_throughput(operations)
        squares += (even - least) ** 2
        product += (even - least) * ((read[subject].value or least) - least)
    if way.writeback is None or not squares:
        return way
    evenness = min(max(product / squares, limits.EVENNESS.least), limits.EVENNESS.most)
    return msgspec.structs.replace(way, writeback=msgspec.structs.replace(way.writeback, evenness=evenness))


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
