"""Summaries of a run and of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

import msgspec

from cyclescope.backend.base import without_address
from cyclescope.infer.gaps import Gaps
from cyclescope.infer.refute.calibration import stored_verdicts
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Experiment, Missing, Planner
from cyclescope.measure.ports import PORTS
from cyclescope.measure.sessions import PROBE
from cyclescope.measure.store import Store
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.remarks.ports import NoPorts
from cyclescope.remarks.remark import LISTED
from cyclescope.report.card import EMULATED
from cyclescope.report.words import calibration_lines, counted

SCHEMA_VERSION = 1


class Tally:
    """What is counted of timings that go by: how forms ended, kinds of their pairs, confidence of throughputs
    and of ports.
    """

    def __init__(self, timings: Iterable[FormTiming]) -> None:
        self.outcomes: Counter[str] = Counter()
        self.pairs: Counter[str] = Counter()
        self.ports: Counter[str] = Counter()
        self.throughputs: Counter[str] = Counter()
        self.gaps = Gaps()
        self.valued = 0
        self.example = ""
        for timing in timings:
            self._add(timing)

    def _add(self, timing: FormTiming) -> None:
        self.gaps.add(timing)
        self.outcomes[timing.status] += 1
        if timing.status != "ok":
            return
        self.pairs.update(latency.kind or "missing" for latency in timing.latencies)
        if timing.ports is not None:
            self.ports[timing.ports_confidence] += 1
        if timing.throughput is not None and timing.throughput.value is not None:
            self.valued += 1
            self.throughputs[timing.throughput.confidence] += 1
            self.example = self.example or timing.id


def summary_text(
    store: Store,
    tally: Tally,
    finished: bool,
    named: Path | None,
    notes: Sequence[str] = (),
    disturbed: int = 0,
) -> str:
    """What a run found, in a few lines; `named` is the store's file where `show` has to be told, `disturbed`
    how many readings the same command would measure again.
    """
    executions = f"{tally.outcomes['ok']} executed by this CPU, {tally.valued} with a throughput"
    kinds = tally.pairs
    lines = [
        f"{counted(tally.outcomes.total(), 'form')}: {executions}",
        f"{kinds.total()} operand pairs: {kinds['exact']} exact, {kinds['interval']} intervals, "
        f"{kinds['upper_bound']} upper bounds, {kinds['missing']} without a value",
    ]
    if tally.throughputs:
        lines.append(f"throughputs: confidence {_levels(tally.throughputs)}")
    if tally.ports:
        told = counted(tally.ports.total(), "form")
        lines.append(f"port usage of {told}: confidence {_levels(tally.ports)}")
        lines += calibration_lines(verdicts.calibration if (verdicts := stored_verdicts(store)) else None)
    elif finished and _asked_for_ports(store) and not store.has(PORTS) and not store.emulated:
        lines.append(f"note: no port usage: {NoPorts.NO_FILLER.of()}")
    without = [tally.gaps.without_ports] if tally.ports else []
    lines += [f"note: {note}" for note in (*notes, *filter(None, without), *tally.gaps.notes(store))]
    if finished and disturbed:
        share = f"{disturbed} of {counted(store.count(), 'reading')}"
        lines.append(f"note: {share} disturbed by other programs: the same command measures them again")
    lines += [EMULATED] if store.emulated else []
    lines.append(f"store: {store.path}")
    if not finished:
        lines.append("stopped by the time budget: the same command goes on from here")
    elif tally.valued:
        example = tally.example.partition(" ")[0].split("_")[0].lower()
        option = f" --store {quote(str(named))}" if named else ""
        lines.append(f"look at results with: cyclescope show {example}{option}")
    return "\n".join(lines)


def _levels(found: Mapping[str, int]) -> str:
    return ", ".join(f"{found.get(level, 0)} {level}" for level in (HIGH, MEDIUM, LOW))


def _asked_for_ports(store: Store) -> bool:
    asked = [None, *[session.get("asked") for session in store.sessions()]][-1]
    return isinstance(asked, dict) and PORTS in asked.get("what", ())


def dry_run_text(table: Table, forms: Sequence[InstructionForm], quantities: frozenset[str]) -> str:
    """Every kernel that would be measured if the CPU executed all forms."""
    planner = Planner(table, lambda form: True)
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
    planner = Planner(table, lambda form: True)
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
    legality = Counter(without_address(outcome) for outcome in store.legality().values())
    outcomes = ", ".join(f"{n} {name}" for name, n in legality.most_common())
    lines = [
        f"machine: {store.machine}",
        f"instruction set: {store.isa}",
        f"measurements: {store.count()}",
        f"forms run once: {outcomes or 'none'}",
    ]
    lines += [
        f"session {s['started']}: {_asked(s)}CPU {s.get('cpu')}, {s.get('clock')}, load {s.get('load')}"
        + (", emulated" if s.get("emulated") else "")
        + (", stopped" if "asked" in s and not s.get("finished") else "")
        for s in store.sessions()
    ]
    return "\n".join([*lines, *_damage(store)])


def _asked(session: Mapping[str, object]) -> str:
    """What a session was to find out: quantities of forms, or probes; nothing where it does not say."""
    asked = session.get("asked")
    if not isinstance(asked, dict) or not isinstance(what := asked.get("what"), list):
        return ""
    forms = asked.get("forms")
    probes = [str(name) for name in forms] if what == [PROBE] and isinstance(forms, list) else []
    more = f" {', '.join(probes)}" if len(probes) <= LISTED else f" {len(probes)} questions"
    return f"{', '.join(map(str, what))}{more if probes else ''}, "


def _damage(store: Store) -> list[str]:
    """What cannot be read of a store."""
    damaged = store.damaged()
    measurements = [f"{counted(damaged, 'damaged measurement')}, left out everywhere"] if damaged else []
    return measurements + [f"damaged {row.what} {row.key}: {row.reason}" for row in store.unreadable]


def store_json(store: Store) -> str:
    """The same as JSON."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": store.machine,
        "isa": store.isa,
        "measurements": store.count(),
        "damaged": store.damaged(),
        "stopped": store.stopped(),
        "forms": store.legality(),
        "sessions": store.sessions(),
    }
    return msgspec.json.encode(data).decode()
