"""The one place that knows machines by the names people use.

A name is LLVM's, OSACA's or uops.info's of a CPU, in any case, with or without `llvm:` in front; `native`,
the machine that was measured here; or a file: a path, or what contains a slash or ends in .json or .xz. Every
command and function that takes a machine asks here. Models that do not ship are checked here, once, whichever
way they come in.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cyclescope.errors import BackendUnavailable, StoreError, UsageError
from cyclescope.garbage import uncollected
from cyclescope.host.uname import host_isa
from cyclescope.isa.registry import DEFAULT, instruction_set
from cyclescope.model import library
from cyclescope.model.machine import MEASURED, MachineModel
from cyclescope.model.names import LLVM, NATIVE

if TYPE_CHECKING:
    from cyclescope.host.identity import Identity

_AMD = ("znver", "bdver", "btver", "zen")


def load_model(name: str | Path) -> MachineModel:
    """A machine model, sound, by a name or in a file.

    `native` is the model of this host's store, where `cyclescope measure` keeps it. A core that only has
    another one's model says so in `borrowed`. Raises UsageError for unknown names, ModelError for what is
    no model or no machine can be, and of `native` StoreError where nothing was measured here and
    BackendUnavailable where nothing tells what this host is.
    """
    with uncollected():
        return library.sound(read_machine(name), str(name))


def read_machine(name: str | Path) -> MachineModel:
    """The same, unchecked: for those who want to say what is wrong with it."""
    if is_file(name):
        from cyclescope.model.schema import read_model  # what ships has a format of its own

        return read_model(Path(name))
    name = str(name)
    if is_llvm(name):
        return _of_llvm(name[len(LLVM) :])
    if name.lower() == NATIVE:
        from cyclescope.infer.host_model import native_model  # slow to import

        return native_model()
    return library.shipped(name)


def _of_llvm(name: str) -> MachineModel:
    if name.lower() == NATIVE:
        raise UsageError(
            f"{LLVM}{name}: what was measured here is not LLVM's", f"name a core, as in {LLVM}znver4"
        )
    return library.shipped(name)


def is_llvm(name: str) -> bool:
    """Whether a name asks for LLVM's model, also where a file has it."""
    return name.lower().startswith(LLVM)


def is_file(name: str | Path) -> bool:
    """Whether a machine is given as a file."""
    if isinstance(name, Path):
        return True
    return not is_llvm(name) and ("/" in name or name.lower().endswith((".json", ".xz")))


def host_machine(isa: str = DEFAULT) -> MachineModel | None:
    """This host: its measured model where it has ports, else LLVM's of its microarchitecture.

    None where it does not execute the ISA, or LLVM has no model of it.
    """
    identity = this_host() if isa == host_isa() else None
    if identity is None:
        return None
    measured = _measured(identity.machine)
    if measured is not None and measured.ports:
        return measured
    return _shipped(identity.llvm)


def default_machine(isa: str = DEFAULT) -> MachineModel:
    """This host (`host_machine`), else always the same machine of the ISA."""
    return host_machine(isa) or load_model(instruction_set(isa).default_machine)


def _measured(machine: str) -> MachineModel | None:
    from cyclescope.measure.database import default_store  # slow to import

    try:
        return load_model(NATIVE) if default_store(machine).is_file() else None
    except (StoreError, BackendUnavailable):
        return None


def _shipped(name: str) -> MachineModel | None:
    """A shipped machine, None for a CPU that LLVM knows but has no model of."""
    try:
        return library.shipped(name) if name else None
    except UsageError:
        return None


@cache
def this_host() -> Identity | None:
    """What this CPU is, None where nothing can run on it."""
    from cyclescope.backend.native import NativeBackend

    try:
        with closing(NativeBackend()) as backend:
            return backend.capabilities().identity
    except BackendUnavailable:
        return None


def vendor_of(machine: str) -> str:
    """`amd` for machines that read 16-bit branches as AMD does, else ""."""
    words = machine.lower().replace("-", " ").split()
    return "amd" if any(word.startswith(_AMD) for word in words) else ""


def stand_in_for(model: MachineModel) -> MachineModel | None:
    """The shipped model for the core that a model was measured on: some forms cannot be measured.

    It may be another core's itself (`borrowed`).
    """
    if model.provenance.kind != MEASURED:
        return None
    found = _shipped(model.name.rpartition(" ")[2])
    return found if found is not None and found.isa == model.isa else None
