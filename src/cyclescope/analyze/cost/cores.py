"""How long loads take, and what is taken for a core where its model does not say."""

from __future__ import annotations

from cyclescope.isa.registry import instruction_set
from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.machine import MachineModel

STORES_IN_FLIGHT = 64  # where the model has no store buffer
TAKEN_BRANCHES = 1.0  # per cycle


def load_latency(machine: MachineModel) -> float:
    """Cycles from the address to a general register: of the plain load, else what the core says, else 0."""
    plain = machine.forms.get(instruction_set(machine.isa).roles.load)
    known = plain.latencies if plain else {}
    found = known.get("op2.address->op1") or known.get("op2->op1")  # x86-64; others have a register for it
    return found or machine.core.load_latency


def forward_latency(machine: MachineModel) -> float:
    """Cycles from stored data to the register that loads them."""
    return machine.core.forward_latency or load_latency(machine) + behaviour_of(machine).forward_extra
