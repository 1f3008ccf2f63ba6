"""Instruction sets by the names that `uname -m` has for them."""

from __future__ import annotations

import platform

from cyclescope.isa.registry import DEFAULT, instruction_sets


def isa_of_machine(name: str) -> str:
    """The instruction set that `uname -m` names, "" for one that nothing here knows."""
    return next((record.name for record in instruction_sets() if name.lower() in record.machines), "")


def host_isa() -> str:
    """The instruction set of this machine; of one that nothing here knows, that of most machines."""
    return isa_of_machine(platform.machine()) or DEFAULT
