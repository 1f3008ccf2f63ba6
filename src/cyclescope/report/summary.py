"""Summaries of a run and of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import msgspec

from cyclescope.infer.results import FormTiming
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.links import Helpers
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Experiment, Missing, Planner
from cyclescope.measure.store import Store
from cyclescope.report.words import counted

SCHEMA_VERSION = 1


def summary_text(store: Store, timings: Sequence[FormTiming], finished: bool, named: Path | None) -> str:
    """What a run found, in a few lines; `named` is the store's file where a user named it."""
    executed = [t for t in timings if t.status == "ok"]
    valued = [t for t in executed if t.throughput is not None and t.throughput.value is not None]
    pairs = [latency for timing in executed for latency in timing.latencies]
    kinds = Counter(latency.kind or "missing" for latency in pairs)
    executions = f"{len(executed)} executed by this CPU, {len(valued)} with a throughput"
    lines = [
        f"{counted(len(timings), 'form')}: {executions}",
        f"{len(pairs)} operand pairs: {kinds['exact']} exact, {kinds['interval']} intervals, "
        f"{kinds['upper_bound']} upper bounds, {kinds['missing']} without a value",
        f"store: {store.path}",
    ]
    if not finished:
        lines.append("stopped by the time budget: the same command goes on from here")
    elif valued:
        example = valued[0].id.partition(" ")[0].split("_")[0].lower()
        option = f" --store {quote(str(named))}" if named else ""
        lines.append(f"look at results with: cyclescope show {example}{option}")
    return "\n".join(lines)


def dry_run_text(table: Table, forms: Sequence[InstructionForm], quantities: frozenset[str]) -> str:
    """Every kernel that would be measured if the CPU executed all forms."""
    planner = Planner(Helpers(table, lambda form: True))
    lines = []
    for form in forms:
        lines += [_experiment(e) for e in _experiments(planner, form, quantities)]
        for missing in _missing(planner, form, quantities):
            where = f"{missing.source} -> {missing.target}" if missing.source else THROUGHPUT
            lines.append(f"{form.id}, {where}: no kernel ({missing.reason})")
    counts = f"{counted(len(forms), 'form')}, {counted(len(lines), 'line')}"
    return "\n".join([*lines, f"{counts}, nothing measured"])


def dry_run_json(table: Table, forms: Sequence[InstructionForm], quantities: frozenset[str]) -> str:
    """The same as JSON."""
    planner = Planner(Helpers(table, lambda form: True))
    kernels, without = [], []
    for form in forms:
        kernels += [_kernel(e) for e in _experiments(planner, form, quantities)]
        for missing in _missing(planner, form, quantities):
            where = {"form": form.id, "quantity": LATENCY if missing.source else THROUGHPUT}
            without.append(where | msgspec.to_builtins(missing))
    data = {"schema_version": SCHEMA_VERSION, "kernels": kernels, "missing": without}
    return msgspec.json.encode(data).decode()


def _kernel(experiment: Experiment) -> dict[str, object]:
    names = ("form", "quantity", "source", "target", "variant")
    question = dict(zip(names, experiment.key, strict=True))
    return question | {"count": experiment.count, "assembly": experiment.kernel.text()}


def _missing(planner: Planner, form: InstructionForm, quantities: frozenset[str]) -> Iterator[Missing]:
    for missing in planner.plan(form).missing:
        if (LATENCY if missing.source else THROUGHPUT) in quantities:
            yield missing


def _experiments(planner: Planner, form: InstructionForm, quantities: frozenset[str]) -> Iterator[Experiment]:
    if THROUGHPUT in quantities:
        yield from planner.throughput(form)
    if LATENCY in quantities:
        yield from planner.latency(form)


def _experiment(experiment: Experiment) -> str:
    where = f" {experiment.source} -> {experiment.target}" if experiment.source else ""
    text = experiment.kernel.text().replace("\n", "; ")
    return f"{experiment.form}, {experiment.quantity}{where}, {experiment.variant}: {text}"


def store_text(store: Store) -> str:
    """What a store holds."""
    legality = Counter(outcome.split(" at ")[0] for outcome in store.legality().values())
    outcomes = ", ".join(f"{n} {name}" for name, n in legality.most_common())
    lines = [
        f"machine: {store.machine}",
        f"measurements: {store.count()}",
        f"forms run once: {outcomes or 'none'}",
    ]
    lines += [
        f"session {s['started']}: CPU {s.get('cpu')}, {s.get('clock')}, load {s.get('load')}"
        for s in store.sessions()
    ]
    return "\n".join(lines)


def store_json(store: Store) -> str:
    """The same as JSON."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": store.machine,
        "measurements": store.count(),
        "forms": store.legality(),
        "sessions": store.sessions(),
    }
    return msgspec.json.encode(data).decode()
