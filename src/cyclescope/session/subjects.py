"""Machines to be reported on: the model, and of a store also every result with the store it is in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from cyclescope.formats.exchange import Item
from cyclescope.infer.api import default_store
from cyclescope.infer.copies import possible_copies
from cyclescope.infer.machine_model import model_of, refuse_emulated
from cyclescope.infer.native import this_machine
from cyclescope.infer.ports.named import known_machine
from cyclescope.infer.progress import Progress, tell
from cyclescope.infer.readout import Readout
from cyclescope.infer.timing.results import FormTiming
from cyclescope.infer.workload import MODEL
from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel
from cyclescope.model.names import NATIVE
from cyclescope.session.sources import is_store, source


class Subject(msgspec.Struct, frozen=True):
    """A machine; `timings` and `sessions` are those of the store at `path`, empty where there is none.

    `refused` is what of another tool's file could not be taken.
    """

    model: MachineModel
    timings: Mapping[str, FormTiming] = {}
    sessions: tuple[dict[str, object], ...] = ()
    path: Path | None = None
    refused: tuple[Item, ...] = ()


def subject(text: str) -> Subject:
    """What a text names (`session.sources`), with all results where that is a store.

    Raises UsageError, FormatError, StoreError.
    """
    path = _store_of(text)
    if path is not None:
        return of_store(path)
    found = source(text)
    return Subject(found.model, refused=found.refused)


def _store_of(text: str) -> Path | None:
    """The store that a text names."""
    if text.lower() == NATIVE:
        found = default_store(this_machine().machine)
        return found if found.is_file() else None
    return Path(text) if is_store(Path(text)) else None


def of_store(path: Path) -> Subject:
    """A store with everything that it tells. Raises StoreError."""
    with closing(Store(path, readonly=True)) as store:
        refuse_emulated(store)
        readout = Readout(store, load_table(store.isa), known_machine(store.machine))
        found = list(readout.each(_tell, possible_copies()))
        model = model_of(readout, found)
        return Subject(model, {one.id: one for one, _ in found}, tuple(store.sessions()), path)


def _tell(done: int, total: int) -> None:
    tell(Progress(MODEL, done, total))


def narrowed(one: Subject, patterns: tuple[str, ...]) -> Subject:
    """Only the forms that match patterns. Raises UsageError where none does."""
    if not patterns:
        return one
    chosen = {form.id for form in select(load_table(one.model.isa), patterns)}
    model = msgspec.structs.replace(
        one.model, forms={k: v for k, v in one.model.forms.items() if k in chosen}
    )
    timings = {name: timing for name, timing in one.timings.items() if name in chosen}
    return msgspec.structs.replace(one, model=model, timings=timings)


def digest(path: Path) -> str:
    """SHA-256 of a file, to tell whether it is the one that a report was made of."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()
