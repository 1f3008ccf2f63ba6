"""Asking a core, real or simulated, and keeping what it answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from cyclescope.backend.base import Backend
from cyclescope.backend.link import Link
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import UsageError
from cyclescope.infer.api import conditions, default_store, open_backend
from cyclescope.isa.registry import DEFAULT
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel
from cyclescope.probe.code import instruction
from cyclescope.probe.question import Probe
from cyclescope.probe.run import Asked, ask
from cyclescope.session.machines import load_model
from cyclescope.simulate.draw import draw_machine

_DRAWN = "drawn:"  # before the seed of a drawn core
_LARGEST = 2**31 - 1


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
    """Probes on one core: its name, and whether its cycles mean anything."""

    def __init__(self, backend: Backend, machine: str, path: Path | None, told: dict[str, object]) -> None:
        self.backend, self.machine, self.path, self._told = backend, machine, path, told
        self.table: Table = load_table(backend.capabilities().isa)
        self.emulated = backend.capabilities().emulated

    def run(self, probes: Sequence[Probe], quick: bool) -> Iterator[Asked]:
        """Ask one probe after the other; what is found is kept as it comes."""
        if self.path is None:
            yield from ask(probes, self.backend, self.table, quick)
            return
        with closing(Store(self.path, self.machine, isa=self.table.isa)) as store:
            asked = {"what": ["probe"], "forms": [probe.name for probe in probes]}
            started = time.strftime("%Y-%m-%dT%H:%M:%S")
            store.begin_session(started, self._told | {"asked": asked, "finished": True})
            for found in ask(probes, self.backend, self.table, quick):
                store.write_probe(found.probe.name, found.facts, found.measured)
                yield found


def open_session(link: Link, cpu: int | None, store: Path | None, core: MachineModel | None) -> Session:
    """A session on a runner, or on a simulated core: that one is kept only where a store is named."""
    if core is not None:
        backend = SimulatedBackend(core)
        brand = f"simulated {core.name}"
        told: dict[str, object] = {"machine": core.name, "real_time": False, "brand": brand}
        return Session(backend, core.name, store, told)
    runner, identity = open_backend(cpu, link)
    try:
        told = conditions(runner, identity)
    except BaseException:
        runner.close()
        raise
    return Session(runner, identity.machine, store or default_store(identity.machine), told)
