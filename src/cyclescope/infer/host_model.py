"""The machine `native`: the model made from this host's measurements, kept beside their store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cyclescope import __version__
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable, CyclescopeError, StoreError
from cyclescope.garbage import uncollected
from cyclescope.host.identity import Identity
from cyclescope.host.uname import host_isa
from cyclescope.infer.copies import possible_copies
from cyclescope.infer.kept import (
    is_current,
    keep,
    keep_results,
    kept_results,
    program,
    renew_results,
    results_file,
    state_of,
)
from cyclescope.infer.progress import Progress, tell
from cyclescope.infer.timing.results import FormTiming
from cyclescope.infer.workload import MODEL
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.measure.database import default_store
from cyclescope.measure.plan import LATENCY, LINK, THROUGHPUT
from cyclescope.measure.ports import PORTS
from cyclescope.measure.store import Store
from cyclescope.model.library import Summary
from cyclescope.model.machine import MEASURED, Core, MachineModel, Provenance
from cyclescope.model.names import NATIVE
from cyclescope.model.schema import SummaryOnly, read_model, read_summary, write_model
from cyclescope.remarks.model import Origin

if TYPE_CHECKING:  # slow to import: commands that only read what is kept do without
    from cyclescope.infer.campaign import Campaign, Request
    from cyclescope.infer.readout import Found, Readout


def this_machine() -> Identity:
    """What this host is. Raises BackendUnavailable."""
    with closing(NativeBackend()) as backend:
        return backend.capabilities().identity


def native_model() -> MachineModel:
    """The model of this host's store, built again where the store has changed since."""
    path = default_store(this_machine().machine)
    if not path.is_file():
        raise StoreError(f"nothing was measured on this machine ({path} is missing)", "run {measure}")
    return stored_model(path)


def why_unused() -> str:
    """Why what was measured on this host makes no model with ports, as the command line says it.

    "" where it does, or nothing was.
    """
    try:
        path = default_store(this_machine().machine)
        return "" if not path.is_file() or stored_model(path).ports else Origin.WITHOUT_PORTS.of().text
    except (BackendUnavailable, StoreError) as error:
        return error.told


def native_summary() -> Summary | None:
    """What `machines list` shows of this host, as far as it is kept: nothing is built.

    None where nothing was measured or nothing can run.
    """
    try:
        machine = this_machine()
    except BackendUnavailable:
        return None
    path = default_store(machine.machine)
    if not path.is_file():
        return None
    try:
        found = read_summary(_kept_file(path))
    except CyclescopeError:
        unknown = Provenance(MEASURED, Origin.NO_MODEL.of().text)
        return Summary(NATIVE, host_isa(), (machine.machine,), (), (), Core(0), 0, unknown)
    return _listed(found, is_current(_kept_file(path), path))


def _listed(found: SummaryOnly, current: bool) -> Summary:
    """A kept model as it is listed, by the name that is used."""
    origin = found.provenance
    if current and origin.version == program():
        origin = msgspec.structs.replace(origin, version=__version__)
    else:
        origin = msgspec.structs.replace(origin, source=Origin.OUTDATED.of(origin.source).text, version="")
    names = (found.name,)
    return Summary(NATIVE, found.isa, names, (), found.ports, found.core, len(found.forms), origin)


# --- building and keeping ----------------------------------------------------------------------------


def stored_model(path: Path) -> MachineModel:
    """The model of a store, kept in a file beside it while the store stays the same. Raises StoreError.

    Whoever wants to know (`told_to`) is told how far it is where it has to be built.
    """
    kept = _kept_file(path)
    if is_current(kept, path):
        with suppress(CyclescopeError):  # of another program, or damaged: it is made again
            model = read_model(kept)
            if model.provenance.version == program():
                return _of_version(model, __version__)
    state = state_of(path)
    model = build_file(path)
    _keep(model, path, state)
    return model


def build_file(path: Path) -> MachineModel:
    """The model of a store in a file, beside which the results are kept. Raises StoreError."""
    with closing(Store(path, readonly=True)) as store:
        return _made(store)[1]


def stored_results(store: Store) -> tuple[list[FormTiming], MachineModel]:
    """The results of all forms of a store, and its model, as they are kept or made. Raises StoreError."""
    from cyclescope.infer.machine_model import refuse_emulated

    refuse_emulated(store)
    kept = kept_results(store.path, [form.id for form in load_table(store.isa)])
    if kept is not None:
        return kept, stored_model(store.path)
    state = state_of(store.path)
    found, model = _made(store)
    _keep(model, store.path, state)
    return found, model


def _made(store: Store) -> tuple[list[FormTiming], MachineModel]:
    """The results of all forms, which are kept where they made a model, and the model."""
    with uncollected():  # what is read of a store stays until the model is made: a fifth of the time
        return _results_of_all(store)


def _results_of_all(store: Store) -> tuple[list[FormTiming], MachineModel]:
    """The same; what they are made of goes with this function, before garbage is looked for again."""
    from cyclescope.infer.machine_model import model_of, refuse_emulated
    from cyclescope.infer.ports.naming import known_machine
    from cyclescope.infer.readout import Readout

    refuse_emulated(store)
    state = state_of(store.path)
    readout = Readout(store, load_table(store.isa), known_machine(store.machine))
    found = list(readout.each(_tell, possible_copies()))
    model = model_of(readout, found)
    return _results(readout, found, state), model


def _results(readout: Readout, found: Sequence[Found], state: int) -> list[FormTiming]:
    """Results of all forms: they are kept, unless rows of the store were left out, which is to be said."""
    from cyclescope.infer.readout import ground_of

    store, timings = readout.store, [timing for timing, _ in found]
    ground = ground_of(store, readout.table, readout.evidence)
    if not store.unreadable:
        keep_results(store.path, state, ground, timings)
    return timings


def results_of(campaign: Campaign, request: Request, whole: bool = True) -> list[FormTiming]:
    """Timings of the forms that a campaign measured.

    A run that measured ports, or whose store has none, makes the results of all forms and the model. Another
    makes results of its forms alone: those that are kept of others stay, where nothing has changed that they
    rest on, and whoever asks for the model makes it. Where ports have to be told anew, which takes seconds,
    they are left out if results need not be `whole`.
    """
    store = campaign.store
    if PORTS in request.quantities or not store.has(PORTS):
        return results_and_model(campaign, request.forms)
    store.settle()
    _renew(campaign)
    kept = kept_results(store.path, [form.id for form in request.forms])
    if kept is not None:
        return kept
    return list(campaign.results(request.forms) if whole else campaign.readout(request.forms).without_ports())


def _renew(campaign: Campaign) -> None:
    """Bring what is kept up to date, where a run has changed nothing but readings of some forms."""
    from cyclescope.infer.readout import ground_of

    store, table = campaign.store, campaign.table
    if not campaign.found_kept or store.changes is None or is_current(results_file(store.path), store.path):
        return
    changed = store.changes.measured
    if any(quantity not in (THROUGHPUT, LATENCY, LINK) for _, quantity in changed):
        return
    forms = [form for form in table if not {(form.id, THROUGHPUT), (form.id, LATENCY)}.isdisjoint(changed)]
    state, ground = state_of(store.path), ground_of(store, table)
    made = list(campaign.readout(forms).without_ports())
    if not store.unreadable:
        renew_results(store.path, state, ground, made)


@contextmanager
def facts_alone(store: Store) -> Iterator[None]:
    """While nothing but facts, and the readings that they rest on, is written into a store.

    What is kept beside it stays as it was: results rest on no fact, and the model gets the new ones.
    """
    kept = _has_kept(store.path) and is_current(results_file(store.path), store.path)
    yield
    if kept:
        _renew_facts(store)


def _renew_facts(store: Store) -> None:
    from cyclescope.infer.machine_model import with_facts

    store.settle()
    state = state_of(store.path)
    with suppress(CyclescopeError, OSError):  # else it is made anew by whoever wants it
        model = with_facts(read_model(_kept_file(store.path)), store.facts(), load_table(store.isa))
        _keep(model, store.path, state)
        os.utime(results_file(store.path), ns=(state, state))


def results_and_model(campaign: Campaign, forms: Sequence[InstructionForm]) -> list[FormTiming]:
    """Timings of the forms that a campaign measured, and the model of all that its store has.

    The model is kept beside the store, unless it is there and nothing was measured since. A store that makes
    none, as of a single latency, has none.
    """
    from cyclescope.infer.machine_model import model_of, refuse_emulated

    store = campaign.store
    store.settle()
    wanted = [form.id for form in forms]
    if not set(wanted) <= {form.id for form in campaign.table}:
        return [timing for timing, _ in campaign.readout(forms).each(campaign.tell)]
    if _has_kept(store.path):
        return kept_results(store.path, wanted) or list(campaign.results(forms))
    state = state_of(store.path)
    readout = campaign.readout()
    with uncollected():
        found = list(readout.each(campaign.tell, possible_copies()))
        by_id = {timing.id: timing for timing in _results(readout, found, state)}
        with suppress(StoreError):
            refuse_emulated(store)
            _keep(model_of(readout, found), store.path, state)
    return [by_id[name] for name in wanted]


def _tell(done: int, total: int) -> None:
    tell(Progress(MODEL, done, total))


def _kept_file(store: Path) -> Path:
    return store.with_suffix(".model.json")


def _has_kept(store: Path) -> bool:
    """Whether the model that is kept is of the store as it is, and this program's."""
    with suppress(CyclescopeError):
        return (
            is_current(_kept_file(store), store)
            and read_summary(_kept_file(store)).provenance.version == program()
        )
    return False


def _of_version(model: MachineModel, version: str) -> MachineModel:
    return msgspec.structs.replace(
        model, provenance=msgspec.structs.replace(model.provenance, version=version)
    )


def _keep(model: MachineModel, store: Path, state: int) -> None:
    """Keep a model with what made it."""
    keep(_kept_file(store), state, lambda part: write_model(_of_version(model, program()), part))
