"""Measuring instructions of a block whose costs the model of this host lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from cyclescope.analyze.decode.block import Block
from cyclescope.errors import UsageError
from cyclescope.infer.api import conditions, open_backend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.host_model import native_model
from cyclescope.infer.ports.naming import known_machine
from cyclescope.infer.progress import Progress, nobody
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.table import load_table
from cyclescope.measure.database import default_store
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Planner
from cyclescope.measure.ports import PORTS
from cyclescope.measure.record import FAILED
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel


def measure_missing(block: Block, report: Callable[[Progress], None] = nobody) -> MachineModel:
    """The model of this host after measuring the forms of a block that it has no cost of.

    They go into the default store: throughput and latency, ports where the store has ports. What was tried
    before, what this CPU does not execute and what cannot be measured stays without a cost. Raises UsageError
    for code of another ISA, StoreError where nothing was measured yet, BackendUnavailable, MeasurementError.
    """
    model = native_model()
    if block.isa != model.isa:
        raise UsageError(f"code of {block.isa} cannot be measured here", f"this host executes {model.isa}")
    table = load_table(block.isa)  # analysis has other forms of instructions on system registers
    found = [
        one.form if one.form.configuration else table[model_form_id(one.form)] for one in block if one.form
    ]
    forms = {form.id: form for form in found}
    path = default_store(model.name)
    with closing(Store(path, readonly=True)) as store:
        wanted = tuple(_untried(store, list(forms.values())))
        quantities = frozenset((THROUGHPUT, LATENCY, PORTS) if store.has(PORTS) else (THROUGHPUT, LATENCY))
    if not wanted:
        return model
    _measure(path, Request(wanted, quantities), report)
    return native_model()


def _untried(store: Store, forms: Sequence[InstructionForm]) -> Iterator[InstructionForm]:
    """Forms that can be measured and whose throughput or latency was not tried, not even without success.

    A run that was stopped may have left a throughput alone.
    """
    legality = store.legality()
    tried: dict[str, set[str]] = {}
    for record in store.records([form.id for form in forms]):
        tried.setdefault(record.form, set()).add(FAILED if record.verdict == FAILED else record.quantity)
    planner = Planner(load_table(store.isa), lambda form: legality.get(form.id) == "ok")
    for form in forms:
        known = tried.get(form.id, set())
        open_latency = not known & {LATENCY, FAILED} and bool(planner.latency(form))
        executes = legality.get(form.id, "ok") == "ok"
        if executes and (open_latency or not known) and planner.throughput(form):
            yield form


def _measure(path: Path, request: Request, report: Callable[[Progress], None]) -> None:
    backend, identity = open_backend()
    with closing(backend), closing(Store(path, identity.machine)) as store:
        campaign = Campaign(load_table(store.isa), backend, store, report, known=known_machine(store.machine))
        campaign.run(request, conditions(backend, identity))
