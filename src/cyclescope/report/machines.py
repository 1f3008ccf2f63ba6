"""Machine models as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from textwrap import wrap

import msgspec

from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.model.library import Summary
from cyclescope.model.machine import ASSUMED, Core, FormCost, MachineModel, Provenance
from cyclescope.model.ports import issue_throughput, notation, port_set
from cyclescope.report.tables import LINE_WIDTH, aligned
from cyclescope.report.words import (
    BINDING_TEXTS,
    borrowing,
    calibration_lines,
    counted,
    halves_text,
    narrow_text,
    rotating_text,
    single_text,
    wakeup_text,
    writeback_text,
)

SCHEMA_VERSION = 1
_LENT = "cores without a model of their own, by the machine whose costs and ports stand in for theirs:"
_MOST_RESOURCES = 10  # of a machine that are shown: two in three forms take no others
_MOST_TAKEN = 4  # of a form: the tightest
_MOST_ALTERNATIVES = 3
_MOST_SUBJECTS = 6  # of a probe with one answer
_LIMITED = 1.05  # cycles instead of one: less is what readings differ by


def list_text(machines: Iterable[Summary]) -> str:
    """One line per machine, and where they come from."""
    found = list(machines)
    rows = [("name", "isa", "ports", "width", "order", "forms", "from")]
    rows += [
        (m.name, m.isa, str(len(m.ports)), f"{m.core.width:g}", _order(m.core), str(m.form_count),
         _origin(m.provenance))
        for m in found
    ]  # fmt: skip
    lines = aligned(rows, (0, 1, 4, 6))
    lent = [f"  {m.name}: {', '.join(m.lends_to)}" for m in found if m.lends_to]
    lines += [_LENT, *lent] if lent else []
    return "\n".join([*lines, counted(len(found), "machine")])


def list_json(machines: Iterable[Summary]) -> str:
    """The same, with aliases, the core and the names of the ports."""
    data = {"schema_version": SCHEMA_VERSION, "machines": list(machines)}
    return msgspec.json.encode(data).decode()


def _order(core: Core) -> str:
    return "in" if core.in_order else "out"


def _origin(provenance: Provenance) -> str:
    return " ".join(filter(None, (provenance.source or provenance.kind, provenance.version)))


def machine_text(model: MachineModel, everything: bool = False) -> str:
    """Core, ports, schedulers, and the resources that most forms take; all of them on request."""
    rows = [
        ("from", ", ".join(filter(None, (_origin(model.provenance), model.provenance.licence)))),
        ("core", ", ".join(_core(model))),
        *((("width", f"{model.width.kind}: {model.width.source}"),) if model.core.width_kind else ()),
        *_front_end(model),
        ("ports", f"{len(model.ports)}: {' '.join(model.ports)}" if model.ports else "not known"),
        *(("scheduler", _scheduler(model, *s)) for s in _schedulers(model.core)),
        *_resources(model, len(model.resources) if everything else _MOST_RESOURCES),
        *_facts(model, everything),
        ("forms", str(len(model.forms))),
        *(("calibration", line) for line in calibration_lines(model.calibration)),
        *(("missing", note) for note in model.provenance.missing),
        *(("note", note) for note in model.provenance.notes),
    ]
    borrowed = f"   {borrowing(model.borrowed)}" if model.borrowed else ""
    head = f"{model.name}   {model.isa}{borrowed}"
    return "\n".join([head, *chain.from_iterable(_folded(*row) for row in rows), ""])


def _folded(what: str, text: str) -> list[str]:
    """A line, or as many as the width of a terminal asks for."""
    head = f"  {what:11} "
    return wrap(
        text, LINE_WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    ) or [head.rstrip()]


def head_lines(model: MachineModel) -> list[str]:
    """What has to be said before any number of the model: whose it is, where that is another core."""
    return [f"{model.name}: {borrowing(model.borrowed)}", ""] if model.borrowed else []


def _front_end(model: MachineModel) -> Iterable[tuple[str, str]]:
    """What limits the front end besides its width, and how operations are scheduled, as far as is known."""
    core = model.core
    if core.lengths:
        limit = f"{core.fetch:g} bytes per cycle" if core.fetch else "no limit by bytes"
        slow = [f"{cycles:.2f} of {size}" for size, cycles in core.lengths if cycles > _LIMITED]
        longer = f"; cycles of as many slots with instructions of so many bytes: {', '.join(slow)}"
        yield "fetch", limit + (longer if slow else f", of {core.lengths[0][0]} to {core.lengths[-1][0]}")
    if core.narrow:
        yield "fewer", narrow_text(core.narrow)
    if core.binding:
        yield "scheduler", BINDING_TEXTS[core.binding]
    if core.wakeup:
        yield "", wakeup_text(core.wakeup, model.ports)
    yield from _dealing(core, model.ports)
    if core.nops != 1:
        shared = f"{core.nops} next to each other share a slot" if core.nops else "take no slot"
        yield "NOPs", shared


def _dealing(core: Core, names: Sequence[str]) -> Iterable[tuple[str, str]]:
    """How operations get their ports, beside what is said of all."""
    if core.single:
        yield "", single_text(core.single, names, core.ahead)
    if core.writeback:
        yield "", writeback_text(core.writeback, names)
    if core.rotating:
        yield "", rotating_text(core.rotating, names)
    for ports in core.in_turn:
        yield "", f"{port_set(ports, names)} are dealt out in turn to what has just these ports"
    if core.halves:
        yield "", halves_text(core.halves, names)
    if core.evenness:
        yield "mixes", f"{core.evenness:.1%} of the way from the best use of their ports to an even one"


def _core(model: MachineModel) -> Iterable[str]:
    core = model.core
    yield f"{core.width:g} slots per cycle{' (assumed)' if model.width.kind == ASSUMED else ''}"
    if core.whole:
        yield "those of an instruction in one cycle"
    yield f"{_order(core)} of order" if not core.in_order else "in order"
    named = {
        "reorder buffer": core.reorder_buffer,
        "load buffer": core.load_buffer,
        "store buffer": core.store_buffer,
        "load latency": core.load_latency,
        "forwarding latency": core.forward_latency,
        "misprediction": core.mispredict_penalty,
    }
    yield from (f"{name} {value:g}" for name, value in named.items() if value)


def _schedulers(core: Core) -> Iterable[tuple[str, tuple[int, ...], int]]:
    return ((s.name, s.ports, s.entries) for s in core.schedulers)


def _scheduler(model: MachineModel, name: str, ports: tuple[int, ...], entries: int) -> str:
    size = f" ({entries} entries)" if entries else ""
    return f"{name}{size}: {' '.join(model.ports[p] for p in ports)}"


def _resources(model: MachineModel, most: int) -> Iterable[tuple[str, str]]:
    """What forms share besides ports, the most used first."""
    if not model.resources:
        return
    used = Counter(name for cost in model.forms.values() for name in cost.resources)
    order = sorted(model.resources, key=lambda name: -used[name])
    yield "resources", f"{len(order)}: cycles they have per cycle, and how many forms take some"
    rows = [(name, f"{model.resources[name]:g}", str(used[name])) for name in order[:most]]
    yield from (("", line) for line in aligned(rows, (0,)))
    if rest := order[most:]:
        yield "", f"and {len(rest)} that at most {counted(used[rest[0]], 'form')} take: --all lists them"


def cost_card(model: MachineModel, form: str, cost: FormCost, everything: bool = False) -> str:
    """What one form costs; of many resources and alternatives the first, or all on request."""
    lines = [form]
    if cost.slots is not None:
        behind = f", {cost.spare:g} more free behind" if cost.spare else ""
        lines.append(f"  slots       {cost.slots:g}{behind}{'  microcoded' if cost.microcoded else ''}")
    elif cost.slot_range is not None:
        least, most = cost.slot_range
        lines.append(f"  slots       {least:g} to {most:g}{'  microcoded' if cost.microcoded else ''}")
    if cost.operations is not None:
        sure = f"  {cost.confidence} confidence" if cost.confidence else ""
        lines.append(f"  ports       {notation(cost.operations, model.ports)}{sure}")
    most = len(cost.alternatives) if everything else _MOST_ALTERNATIVES
    lines += [f"  {'':11} or {other}" for other in _some(cost.alternatives, most, "more, --all lists them")]
    lines += _throughput(model, cost)
    if cost.resources:
        lines.append(f"  resources   {_taken(model, cost, everything)}")
    lines += _latencies(cost)
    if cost.eliminated:
        lines.append("  eliminated  the renamer executes it")
    if cost.idiom:
        what = {"zero": "zero idiom: no execution unit", "breaking": "dependency-breaking"}[cost.idiom]
        lines.append(f"  idiom       with one register for all sources, {what}")
    lines += [f"  note        {cost.note}"] if cost.note else []
    return "\n".join([*lines, ""])


def _facts(model: MachineModel, everything: bool) -> Iterable[tuple[str, str]]:
    """What probes found, by probe and answer; of many subjects the first, or all on request."""
    groups: dict[str, dict[str, list[str]]] = {}
    for fact in model.facts:
        groups.setdefault(fact.probe, {}).setdefault(fact.answer, []).append(fact.subject + _value(fact))
    for probe, answers in groups.items():
        for answer, subjects in answers.items():
            most = len(subjects) if everything else _MOST_SUBJECTS
            told = "; ".join(_some(subjects, most, "more, --all lists them"))
            yield "facts", f"{probe}: {told if answer == CoreAnswer.VALUE else f'{answer}: {told}'}"


def _value(fact: Fact) -> str:
    if fact.answer is not CoreAnswer.VALUE or fact.value is None:
        return ""
    error = f" ± {fact.error:.2g}" if fact.error else ""
    return f" {round(fact.value, 3) or 0:.4g}{error} {fact.unit}"


def _taken(model: MachineModel, cost: FormCost, everything: bool) -> str:
    """Cycles of resources, first those that let the fewest instructions pass."""
    tightest = sorted(
        cost.resources, key=lambda name: -cost.resources[name] / (model.resources.get(name) or 1)
    )
    most = len(tightest) if everything else _MOST_TAKEN
    used = [f"{name} {cost.resources[name]:g}" for name in tightest]
    return ", ".join(_some(used, most, "that bind less, --all lists them"))


def _some(texts: Sequence[str], most: int, rest: str) -> list[str]:
    """The first, and how many more there are."""
    return [*texts[:most], *([f"{len(texts) - most} {rest}"] if len(texts) > most else [])]


def _throughput(model: MachineModel, cost: FormCost) -> list[str]:
    error = f" ± {cost.throughput_error:.2g}" if cost.throughput_error else ""
    lines = [f"  throughput  {cost.throughput:.2f}{error}  measured"] if cost.throughput is not None else []
    if cost.throughput is None and cost.throughput_most is not None:
        lines.append(f"  throughput  at most {cost.throughput_most:.2f}  measured beside other instructions")
    if cost.indexed_throughput is not None:
        lines.append(f"  throughput  {cost.indexed_throughput:.2f}  measured with an index in the address")
    computed = issue_throughput(cost, model.core)
    if computed is not None:
        lines.append(f"  throughput  {computed[0]:.2f}  from the {computed[1]}")
    return lines


def _latencies(cost: FormCost) -> list[str]:
    """Pairs by latency; flags with the same latency from one source together."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for pair in dict.fromkeys((*cost.latencies, *cost.ranges)):
        source, _, target = pair.partition("->")
        head, _, flag = target.partition(".")
        key = (source, head if head == "flags" else target, _cycles(cost, pair))
        groups.setdefault(key, []).append(flag)
    rows = [
        (f"{source} -> {target}{'.' + ' '.join(flags) if target == 'flags' else ''}", cycles)
        for (source, target, cycles), flags in groups.items()
    ]
    return [
        f"  {'latency' if not number else '':11} {line}" for number, line in enumerate(aligned(rows, (0, 1)))
    ]


def _cycles(cost: FormCost, pair: str) -> str:
    """The value, what is proved of it, or both."""
    value = cost.latencies.get(pair)
    if pair not in cost.ranges:
        return f"{value:g}"
    if pair in cost.with_room:
        return f"{cost.with_room[pair]:g} where the scheduler is not full, {value:g} in a chain alone"
    proved = "{:g} to {:g}".format(*cost.ranges[pair])
    return proved if value is None else f"{value:g}  (proved: {proved})"


def machine_json(model: MachineModel, forms: Mapping[str, FormCost]) -> str:
    """The model with these forms, readable as a model again, and what follows from its ports."""
    part = msgspec.structs.replace(model, forms=forms)
    data = msgspec.to_builtins(part) | {
        "derived": {form: _derived(model, cost) for form, cost in forms.items()}
    }
    return msgspec.json.encode(data).decode()


def _derived(model: MachineModel, cost: FormCost) -> dict[str, object]:
    computed = issue_throughput(cost, model.core)
    found = {} if computed is None else {"throughput": computed[0], "bound": computed[1]}
    usage = None if cost.operations is None else notation(cost.operations, model.ports)
    return {"ports": usage, **found}
