"""The machine `native`: the model that this host's measurements make, kept beside their store."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from cyclescope import __version__
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable, CyclescopeError, StoreError
from cyclescope.host.identity import Identity
from cyclescope.infer.api import default_store
from cyclescope.infer.machine_model import build_model
from cyclescope.infer.named_ports import known_machine
from cyclescope.isa.table import load_table
from cyclescope.measure.store import Store
from cyclescope.model import library
from cyclescope.model.library import Summary, summary
from cyclescope.model.machine import MachineModel
from cyclescope.model.schema import read_model, write_model

NATIVE = "native"


def load_model(name: str) -> MachineModel:
    """A machine model: `native`, a shipped machine by name in any case, or the model in a file.

    `native` is the model of this host's store, where `cyclescope measure` keeps it. Raises UsageError
    for unknown names, StoreError where this host has no store, BackendUnavailable where nothing tells
    what this host is.
    """
    return native_model() if name.lower() == NATIVE else library.load_model(name)


def this_machine() -> Identity:
    """What this host is. Raises BackendUnavailable."""
    with closing(NativeBackend()) as backend:
        return backend.capabilities().identity


def native_model() -> MachineModel:
    """The model of this host's store, built again where the store has changed since."""
    path = default_store(this_machine().machine)
    if not path.is_file():
        raise StoreError(
            f"nothing was measured on this machine ({path} is missing)", "run `cyclescope measure`"
        )
    return stored_model(path)


def native_summary() -> Summary | None:
    """What `machines list` shows of this host, None where nothing was measured or nothing can run."""
    try:
        model = native_model()
    except (BackendUnavailable, StoreError):
        return None
    return summary(msgspec.structs.replace(model, name=NATIVE), (model.name,))


def stored_model(path: Path) -> MachineModel:
    """The model of a store, kept in a file beside it while the store stays the same."""
    kept = path.with_suffix(".model.json")
    state = _state(path)
    if state and _state(kept) == state:
        with suppress(CyclescopeError):  # an older version's, or damaged: it is made again
            model = read_model(kept)
            if model.provenance.version == __version__:
                return model
    model = build_file(path)
    _keep(model, kept, state)
    return model


def build_file(path: Path) -> MachineModel:
    """The model of a store in a file. Raises StoreError."""
    with closing(Store(path, readonly=True)) as store:
        return build_model(store, load_table(store.isa), known_machine(store.machine))


def _state(path: Path) -> int:
    """When a store was written last in nanoseconds, changes that are still in its log included."""
    log = path.with_name(f"{path.name}-wal")
    found = [file.stat() for file in (path, log) if file.is_file()]
    return max((stat.st_mtime_ns for stat in found if stat.st_size), default=0)


def _keep(model: MachineModel, path: Path, state: int) -> None:
    """Keep a model with the time of its store; where nothing can be written, it is made every time."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        try:
            write_model(model, part)
            os.utime(part, ns=(state, state))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
