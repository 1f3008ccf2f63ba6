"""Backends by name that a store's experiments are compared with. Help names them: they load when opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cyclescope.errors import UsageError
from cyclescope.model.names import OTHER_NAMES

if TYPE_CHECKING:
    from cyclescope.backend.base import Backend

SAMPLE = 200  # kernels: a share of one in ten is known within a twentieth


class NamedBackend(NamedTuple):
    """A backend that experiments are compared with: what stands behind its name, as in `mca:CPU`.

    `opened` takes that and the instruction set. Raises UsageError, BackendUnavailable.
    """

    of: str
    opened: Callable[[str, str], Backend]


def _mca(cpu: str, isa: str) -> Backend:
    from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend

    return LlvmMcaBackend(OTHER_NAMES.get(cpu.lower(), cpu), isa=isa)


def _simulated(machine: str, isa: str) -> Backend:
    from cyclescope.backend.simulated import SimulatedBackend
    from cyclescope.session.machines import load_model

    model = load_model(machine)
    if model.isa != isa:
        raise UsageError(f"{machine} is a machine of {model.isa}", f"name one of {isa}")
    return SimulatedBackend(model)


BACKENDS: Mapping[str, NamedBackend] = {
    "mca": NamedBackend("CPU", _mca),
    "simulated": NamedBackend("MACHINE", _simulated),
}
SPELLED = " or ".join(f"{name}:{one.of}" for name, one in BACKENDS.items())


def is_backend(name: str) -> bool:
    """Whether a name is that of something that runs kernels: `mca:znver4`, `simulated:znver4`."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in BACKENDS


def open_model(name: str, isa: str) -> Backend:
    """The backend that a name names. Raises UsageError, BackendUnavailable."""
    kind, _, what = name.partition(":")
    if not what:
        raise UsageError(f"{name!r} names nothing", f"write {kind}:{BACKENDS[kind].of}")
    return BACKENDS[kind].opened(what, isa)
