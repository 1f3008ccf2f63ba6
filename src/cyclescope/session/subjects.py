"""Machines to be reported on: the model, and of a store also every result with the store it is in."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from cyclescope.errors import UsageError
from cyclescope.formats.exchange import Item
from cyclescope.infer.host_model import stored_results, this_machine
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.find.pattern import select
from cyclescope.isa.registry import DEFAULT
from cyclescope.isa.table import load_table
from cyclescope.measure.database import default_store
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


def subject(text: str, isa: str = DEFAULT) -> Subject:
    """What a text names (`session.sources`), with all results where that is a store.

    `isa` is that of files which do not say it. Raises UsageError, FormatError, StoreError.
    """
    path = _store_of(text)
    if path is not None:
        return of_store(path)
    found = source(text, isa=isa)
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
        found, model = stored_results(store)
        return Subject(model, {one.id: one for one in found}, tuple(store.sessions()), path)


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


def beside(texts: Sequence[str]) -> list[Subject]:
    """What several texts name: files that do not say their instruction set have that of the first.

    Raises what `subject` does, and UsageError for machines of several instruction sets.
    """
    first = subject(texts[0])
    found = [first, *(subject(text, first.model.isa) for text in texts[1:])]
    check_isa([one.model for one in found])
    return _told_apart(found, texts)


def _told_apart(found: Sequence[Subject], texts: Sequence[str]) -> list[Subject]:
    """Machines of one name have their files' behind it: two runs of one machine are to be told apart."""
    names = Counter(one.model.name for one in found)
    return [
        _renamed(one, f"{one.model.name}, {Path(text).name}") if names[one.model.name] > 1 else one
        for one, text in zip(found, texts, strict=True)
    ]


def _renamed(one: Subject, name: str) -> Subject:
    return msgspec.structs.replace(one, model=msgspec.structs.replace(one.model, name=name))


def check_isa(models: Sequence[MachineModel]) -> None:
    """Raise UsageError for machines of several instruction sets, whose forms are no each other's."""
    isas = sorted({model.isa for model in models})
    if len(isas) > 1:
        raise UsageError(f"machines of several instruction sets ({', '.join(isas)})", "compare those of one")
