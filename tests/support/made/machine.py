"""A made-up machine for the commands: its CPUID leaves, its identity, and a simulated core."""

from __future__ import annotations

import msgspec

from cyclescope.backend.base import Capabilities
from cyclescope.host.identity import Hypervisor, Identity
from cyclescope.host.x86_64 import BITS
from tests.support.made.simulated import SimulatedBackend
from tests.support.made.truth import Truth

LACKS = ("XOP", "TBM", "AVX512_FP16")
FORMS = ("IMUL (R64, R64)", "ADD_01 (R64, R64)", "VPADDD (XMM, XMM, XMM)")  # some that it executes
IDENTITY = Identity("MadeByHand", "Simulated core", 6, 1, 0, "", Hypervisor.NONE)


def leaves(without: tuple[str, ...] = LACKS) -> tuple[tuple[int, int, int, int, int, int], ...]:
    """CPUID of a machine that announces everything but these features."""
    found: dict[tuple[int, int], list[int]] = {}
    for name, (leaf, sub, register, bit) in BITS.items():
        values = found.setdefault((leaf, sub), [0, 0, 0, 0])
        values[register] |= (name not in without) << bit
    return tuple((*where, *values) for where, values in found.items())


class Machine(SimulatedBackend):
    """A simulated core that says of itself what a real one does."""

    def __init__(self, **more: object) -> None:
        super().__init__(Truth(1, missing=LACKS), **more)  # type: ignore[arg-type]

    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(super().capabilities(), leaves=leaves())


def simulate(patch, **more):
    """Let the commands find a simulated machine; the backends they opened."""
    opened = []

    def open_backend(cpu=None, link=None):
        opened.append(Machine(**more))
        return opened[-1], IDENTITY

    patch.setattr("cyclescope.infer.api.open_backend", open_backend)
    return opened
