"""Instruction sets by the names that `uname -m` has for them."""

from __future__ import annotations

import platform

ISAS = {
    "x86_64": "x86-64",
    "amd64": "x86-64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "riscv64": "riscv64",
}


def isa_of_machine(name: str) -> str:
    """The instruction set that `uname -m` names, "" for one that nothing here knows."""
    return ISAS.get(name.lower(), "")


def host_isa() -> str:
    """The instruction set of this machine; of one that nothing here knows, that of most machines."""
    return isa_of_machine(platform.machine()) or "x86-64"
