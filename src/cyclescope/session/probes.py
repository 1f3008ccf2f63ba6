"""Asking a core, real or simulated, and keeping what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from pathlib import Path

from cyclescope.backend.base import Backend
from cyclescope.backend.link import Link
from cyclescope.backend.meeting import meeting
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import UsageError
from cyclescope.host.identity import Hypervisor
from cyclescope.host.spent import cpu_seconds
from cyclescope.host.topology import Topology, read_topology
from cyclescope.infer.api import calibrated, conditions, open_backend
from cyclescope.infer.host_model import facts_alone
from cyclescope.isa.registry import DEFAULT
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.database import default_store
from cyclescope.measure.sessions import PROBE
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel
from cyclescope.probe.code import instruction
from cyclescope.probe.pairs import CpuPair, CpuPairs, OtherCpu
from cyclescope.probe.question import Probe
from cyclescope.probe.run import Asked, ask
from cyclescope.remarks.probing import NoPairs, Placing
from cyclescope.remarks.remark import NOTHING
from cyclescope.remarks.run import Counting
from cyclescope.session.counting.beside import count_named
from cyclescope.session.machines import load_model
from cyclescope.simulate.draw import draw_machine

_DRAWN = "drawn:"  # before the seed of a drawn core
_LARGEST = 2**31 - 1
_DOUBTS = {
    Hypervisor.NONE: NOTHING,
    Hypervisor.THERE: Placing.GUEST.of(),
    Hypervisor.UNTOLD: Placing.UNTOLD.of(),
}
MOST_PAIRS = 28  # all of 8 CPUs: of more, the first one with others, which takes some minutes as well


def simulated_core(name: str, probes: Sequence[Probe]) -> MachineModel:
    """A machine to be simulated: a model by name or file, or `drawn:SEED`, which has the forms of the probes.

    Raises UsageError.
    """
    if not name.startswith(_DRAWN):
        return load_model(name)
    seed = name.removeprefix(_DRAWN)
    if not seed.isdecimal() or int(seed) > _LARGEST:
        raise UsageError(f"{name!r} is no drawn core", f"{_DRAWN} and a number, such as {_DRAWN}7")
    table = load_table(DEFAULT)
    forms = {
        instruction(table, text).form.id
        for probe in probes
        for case in probe.cases(table.isa)
        for point in case.points
        for text in point.lines
    }
    return draw_machine(int(seed), [table[form] for form in sorted(forms)])


class Session:
    """Probes on one core, and pairs of its machine: its name, and whether its cycles mean anything.

    `uncounted` are the events of the probes, each with the reason why it is not counted, or "".
    """

    def __init__(
        self, backend: Backend, machine: str, path: Path | None, told: dict[str, object], pairs: CpuPairs,
        uncounted: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.backend, self.machine, self.path, self._told = backend, machine, path, told
        self._pairs, self.uncounted = pairs, uncounted
        self.table: Table = load_table(backend.capabilities().isa)
        self.emulated = backend.capabilities().emulated

    @property
    def conditions(self) -> Mapping[str, object]:
        """What probes are measured under, empty where nothing is measured."""
        return self._told

    def run(self, probes: Sequence[Probe], quick: bool) -> Iterator[Asked]:
        """Ask probes; what is found is kept as it comes, not always in their order.

        A store that cannot be written is known before anything is asked.
        """
        if self.path is None:
            return self._ask(probes, quick)
        return self._kept(Store(self.path, self.machine, isa=self.table.isa), probes, quick)

    def _kept(self, kept: Store, probes: Sequence[Probe], quick: bool) -> Iterator[Asked]:
        with closing(kept) as store, facts_alone(store):
            asked = {"what": [PROBE], "forms": [probe.name for probe in probes]}
            started = datetime.now(UTC).isoformat(timespec="seconds")
            store.begin_session(started, self._told | {"asked": asked, "finished": True})
            for found in self._ask(probes, quick):
                known = [fact for fact in found.facts if not fact.unfinished]  # it replaces no answer
                store.write_probe(found.probe.name, known, found.measured)
                yield found

    def _ask(self, probes: Sequence[Probe], quick: bool) -> Iterator[Asked]:
        return ask(probes, self.backend, self.table, quick, pairs=self._pairs)


def open_session(
    link: Link, cpu: int | None, store: Path | None, core: MachineModel | None, probes: Sequence[Probe]
) -> Session:
    """A session on a runner, or on a simulated core: that one is kept only where a store is named."""
    events = list(dict.fromkeys(event for probe in probes for event in probe.events))
    if core is not None:
        backend = SimulatedBackend(core, counters=True)
        unknown = [event for event in events if event not in backend.capabilities().counters]
        uncounted = dict.fromkeys(events, "") | dict.fromkeys(unknown, Counting.SIMULATED.of().text)
        brand = f"simulated {core.name}"
        told: dict[str, object] = {"machine": core.name, "real_time": False, "brand": brand}
        return Session(backend, core.name, store, told, CpuPairs((), NoPairs.SIMULATED.of()), uncounted)
    runner, identity = open_backend(cpu, link)
    try:
        uncounted = count_named(runner, events)
        told = conditions(runner, identity)
    except BaseException:
        runner.close()
        raise
    elsewhere = CpuPairs((), NoPairs.ELSEWHERE.of())
    pairs = elsewhere if link.remote else pairs_of(read_topology(), identity.hypervisor)
    path = store or default_store(identity.machine)
    return Session(runner, identity.machine, path, told, pairs, uncounted)


# --- pairs of CPUs --------------------------------------------------------------------------------------


def pairs_of(topology: Topology, hypervisor: Hypervisor) -> CpuPairs:
    """The pairs of CPUs that this program may use."""
    if len(topology.usable) < 2:
        return CpuPairs((), NoPairs.ALLOWED_ONE.of())
    every = [CpuPair(*pair, partial(_opened, *pair)) for pair in chosen_pairs(topology)]
    return CpuPairs(every, doubt=_DOUBTS[hypervisor])


def chosen_pairs(topology: Topology) -> list[tuple[int, int]]:
    """Two that Linux says share a core, the two farthest apart by their numbers, then the others.

    Of too many, those of the first CPU with others at equal steps.
    """
    usable = topology.usable
    every = list(combinations(usable, 2))
    sharing = [pair for pair in every if pair[1] in topology.siblings.get(pair[0], ())]
    if len(every) > MOST_PAIRS:
        others = usable[1:]
        count = min(len(others), MOST_PAIRS)
        every = [(usable[0], others[n * len(others) // count]) for n in range(count)]
    return list(dict.fromkeys([*sharing[:1], (usable[0], usable[-1]), *every]))[:MOST_PAIRS]


@contextmanager
def _opened(one: int, other: int) -> Iterator[tuple[Backend, OtherCpu]]:
    """Runners on two CPUs, whose kernels see the same memory."""
    with meeting() as link, ExitStack() as opened:
        backends = []
        for cpu in (one, other):
            backend, identity = open_backend(cpu, link)
            opened.enter_context(closing(backend))
            calibrated(backend, identity)
            backends.append(backend)
        yield backends[0], OtherCpu(backends[1], partial(cpu_seconds, link.started[-1]))
