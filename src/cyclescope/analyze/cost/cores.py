"""How long loads take, and what is assumed of a core where its model does not say."""

from __future__ import annotations

from cyclescope.isa.registry import instruction_set
from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.machine import MachineModel

STORES_IN_FLIGHT = 64  # where the model has no store buffer


def load_latency(machine: MachineModel) -> float:
    """Cycles from the address to a general register: of the plain load, else what the core says, else 0."""
    return _loaded(machine, instruction_set(machine.isa).roles.load) or machine.core.load_latency


def vector_load_latency(machine: MachineModel) -> float:
    """The same to a vector register; as to a general one where the model has no plain load of that kind."""
    found = (_loaded(machine, form) for form in instruction_set(machine.isa).roles.loads)
    return next(filter(None, found), 0.0) or load_latency(machine)


def _loaded(machine: MachineModel, form: str) -> float | None:
    """Cycles from the address to what a plain load loads."""
    plain = machine.forms.get(form)
    known = plain.latencies if plain else {}
    return known.get("op2.address->op1") or known.get("op2->op1")  # x86-64; others have a register for it


def forward_latency(machine: MachineModel) -> float:
    """Cycles from stored data to the register that loads them."""
    return machine.core.forward_latency or load_latency(machine) + behaviour_of(machine).forward_extra
