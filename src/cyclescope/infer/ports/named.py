"""Port usage with the names that ports have on a known machine of the same microarchitecture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import PortBuilder
from cyclescope.infer.ports.facts import PortFacts
from cyclescope.infer.ports.naming import port_names
from cyclescope.model.library import names, shipped
from cyclescope.model.machine import MachineModel


def known_machine(machine: str) -> MachineModel | None:
    """The shipped machine of a store's microarchitecture, whose LLVM name ends the store's `machine`."""
    name = machine.rpartition(" ")[2]
    return shipped(name) if name in names() else None


class NamedPorts(PortBuilder):
    """Port usage with the names of a known machine, its ports in their order, neutral ones last."""

    def __init__(self, facts: PortFacts, known: MachineModel | None) -> None:
        super().__init__(facts)
        self.known = known
        if facts.labels:  # counters know the names
            self._names = facts.labels
            return
        found = facts.structure
        names = port_names(found.ports, found.sets, facts.classes, known)
        places = known.ports if known else ()
        order = sorted(range(found.ports), key=lambda p: _place(names[p], places))
        facts.structure = Structure(
            found.ports, {n: tuple(sorted(map(order.index, ports))) for n, ports in found.sets.items()},
            found.left_out,
        )  # fmt: skip
        self._names = tuple(names[port] for port in order)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the ports."""
        return self._names


def _place(name: str, places: Sequence[str]) -> int:
    return places.index(name) if name in places else len(places)
