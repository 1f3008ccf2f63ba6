"""Summaries of a run and of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.infer.results import FormTiming
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.links import Helpers
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Experiment, Planner
from cyclescope.measure.store import Store


def summary_text(store: Store, timings: Sequence[FormTiming], finished: bool) -> str:
    """What a run found, in a few lines."""
    executed = [t for t in timings if t.status == "ok"]
    valued = [t for t in executed if t.throughput is not None and t.throughput.value is not None]
    pairs = [latency for timing in executed for latency in timing.latencies]
    kinds = Counter(latency.kind or "missing" for latency in pairs)
    lines = [
        f"{len(timings)} forms: {len(executed)} executed by this CPU, {len(valued)} with a throughput",
        f"{len(pairs)} operand pairs: {kinds['exact']} exact, {kinds['interval']} intervals, "
        f"{kinds['upper_bound']} upper bounds, {kinds['missing']} without a value",
        f"store: {store.path}",
    ]
    if not finished:
        lines.append("stopped by the time budget: the same command goes on from here")
    elif valued:
        example = valued[0].id.partition(" ")[0]
        lines.append(f"look at results with: cyclescope show {example.split('_')[0].lower()}")
    return "\n".join(lines)


def dry_run_text(table: Table, forms: Sequence[InstructionForm], quantities: frozenset[str]) -> str:
    """Every kernel that would be measured if the CPU executed all forms."""
    planner = Planner(Helpers(table, lambda form: True))
    lines = []
    for form in forms:
        lines += [_experiment(e) for e in _experiments(planner, form, quantities)]
        for missing in planner.plan(form).missing:
            where = f"{missing.source} -> {missing.target}" if missing.source else THROUGHPUT
            lines.append(f"{form.id}, {where}: no kernel ({missing.reason})")
    return "\n".join([*lines, f"{len(forms)} forms, {len(lines)} lines, nothing measured"])


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
        "schema_version": 1,
        "machine": store.machine,
        "measurements": store.count(),
        "forms": store.legality(),
        "sessions": store.sessions(),
    }
    return msgspec.json.encode(data).decode()
