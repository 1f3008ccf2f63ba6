"""Cards of measured forms, and their JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

import msgspec

from cyclescope.infer.gaps import Gaps
from cyclescope.infer.refute.calibration import stored_verdicts
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND, FormTiming, Latency, Throughput
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.record import Record
from cyclescope.measure.rows import Evidence
from cyclescope.measure.store import Store
from cyclescope.report.tables import aligned

SCHEMA_VERSION = 1
EMULATED = "emulated: no meaning (what runs and what depends on what is real, the cycles are an emulator's)"
_SAME = 0.5  # cycles: what crossing between domains costs is a whole number


def timings_json(store: Store, timings: Sequence[FormTiming]) -> str:
    """The documented JSON of `show` and `measure`."""
    head = {"schema_version": SCHEMA_VERSION, "machine": store.machine, "isa": store.isa}
    note = {"emulated": True, "note": EMULATED} if store.emulated else {"emulated": False}
    told: dict[str, object] = (
        {"notes": notes} if (notes := [note.text for note in Gaps(timings).notes(store)]) else {}
    )
    if verdicts := stored_verdicts(store):
        told["calibration"] = verdicts.calibration
    return msgspec.json.encode(head | note | told | {"forms": list(map(documented, timings))}).decode()


def documented(timing: FormTiming) -> dict[str, object]:
    """A timing without causes and what the CPU lacks: their sentences are in it."""
    found = msgspec.structs.asdict(timing)
    del found["lacks"], found["ports_unfinished"]
    found["throughput"] = timing.throughput and _without_cause(timing.throughput)
    found["latencies"] = [_without_cause(latency) for latency in timing.latencies]
    return found


def _without_cause(part: Throughput | Latency) -> dict[str, object]:
    found = msgspec.structs.asdict(part)
    del found["cause"]
    return found


def card(form: InstructionForm, timing: FormTiming) -> str:
    """What is known of one form, as text."""
    known = [name for name in (form.llvm, form.uops_info) if name and name != form.id]
    lines = [f"{form.id}   {'+'.join(form.features)}" + (f"   ({', '.join(known)})" if known else "")]
    if timing.status == "not run":
        return "\n".join([*lines, f'  not measured yet: cyclescope measure "{form.id}"', ""])
    if timing.status != "ok":
        refused = timing.status == "SIGILL" or timing.lacks
        how = "not executed by this CPU" if refused else "cannot be run alone"
        return "\n".join([*lines, f"  {how}: {timing.status}", ""])
    if timing.throughput is not None:
        lines += _throughput(timing.throughput)
    lines += _ports(timing)
    lines += _latencies(timing.latencies)
    lines += [f"  idiom: with one register twice it is a {timing.idiom}"] if timing.idiom else []
    lines += [f"  note: {note}" for note in timing.notes]
    return "\n".join([*lines, ""])


def _throughput(throughput: Throughput) -> list[str]:
    if throughput.value is None:
        return [f"  throughput  -      {throughput.reason}"]
    bound = "<=" if throughput.kind == UPPER_BOUND else "  "
    details = ", ".join(f"{name} {value:.2f}" for name, value in throughput.variants.items())
    line = f"  throughput  {bound}{throughput.value:.2f} +-{throughput.spread:.2f}  {throughput.confidence}"
    note = f"  ({throughput.note})" if throughput.note else ""
    return [line + note, f"              {details}"]


def _ports(timing: FormTiming) -> list[str]:
    if timing.ports is None:
        return [f"  ports       -      {timing.ports_note}"] if timing.ports_note else []
    slots = _slots(timing)
    allowed = (
        "" if timing.ports_throughput is None else f", {timing.ports_throughput:.2f} cycles by its ports"
    )
    lines = [f"  ports       {timing.ports}  {timing.ports_confidence}  ({slots}{allowed})"]
    if timing.ports_alternatives:
        lines.append(f"              or {', '.join(timing.ports_alternatives)}")
    return lines + ([f"              {timing.ports_note}"] if timing.ports_note else [])


def _slots(timing: FormTiming) -> str:
    if timing.slots is not None:
        return _slot_count(timing.slots)
    if timing.slot_range is None:
        return "slots unknown"
    least, most = timing.slot_range
    return f"probably {_slot_count(least)}" if least == most else f"{least:g} to {_slot_count(most)}"


def _slot_count(slots: float) -> str:
    return f"{slots:g} front-end slot{'' if slots == 1 else 's'}"


def _latencies(latencies: Sequence[Latency]) -> list[str]:
    if not latencies:
        return []
    rows = [_row(group) for group in _groups(latencies)]
    lines = ["  latency", *aligned(rows, range(5), "    ")]
    if any(latency.convention for latency in latencies):
        names = sorted({n for lat in latencies for n in lat.convention.split(", ") if n})
        lines.append(f"    * rests on the conventions: {', '.join(names)} (docs: method/conventions)")
    return lines


def _groups(latencies: Sequence[Latency]) -> Iterable[list[Latency]]:
    """Flags with the same latency from one source share a line."""
    groups: dict[tuple[object, ...], list[Latency]] = {}
    for latency in latencies:
        flag = latency.target.startswith("flags.")
        where = "flags" if flag else latency.target
        key = (latency.source, where, _value(latency), latency.note, latency.reason, latency.confidence)
        groups.setdefault(key, []).append(latency)
    return groups.values()


def _value(latency: Latency) -> str:
    if latency.max is None or latency.min is None:
        return "-"
    if latency.values:
        return " ".join(f"{name} {value:.2f}" for name, value in latency.values.items())
    mark = "*" if latency.convention else ""
    if latency.kind == UPPER_BOUND:
        return f"<= {latency.max:.2f}{mark}"
    if latency.with_room is not None:
        return f"{latency.with_room:.2f} or {latency.max:.2f}"
    if latency.min != latency.max:
        return f"{latency.min:.2f} to {latency.max:.2f}{mark}"
    return f"{latency.max:.2f}{mark}"


def _row(group: list[Latency]) -> tuple[str, str, str, str, str]:
    first = group[0]
    target = first.target
    if len(group) > 1:
        target = "flags." + " ".join(latency.target.removeprefix("flags.") for latency in group)
    spread = f"+-{max(lat.spread or 0.0 for lat in group):.2f}" if first.max is not None else ""
    remarks = [first.note, first.reason]
    remarks += [f"to {name} {_consumed(first, value):.2f}" for name, value in first.bypass.items()]
    if first.confidence != "high" and first.max is not None:
        remarks.append(f"{first.confidence} confidence")
    text = "; ".join(r for r in remarks if r)
    return first.source, f"-> {target}", _value(first), spread, text


def _consumed(latency: Latency, value: float) -> float:
    """The latency to another consumer: the latency itself where it is not half a cycle off."""
    if latency.kind != EXACT or latency.max is None or abs(value - latency.max) >= _SAME:
        return value
    return latency.max


def evidence_text(evidence: Sequence[Evidence], store: Path) -> str:
    """The kernels behind a card, with the command that runs each again."""
    lines = []
    for item in evidence:
        record = item.record
        what = _question(record)
        per = f" / {record.count} instances" if record.count > 1 else ""
        lines.append(
            f"  [{record.id}] {what}, {record.variant}: {record.cycles:.3f} cycles{per} ({record.verdict})"
        )
        if record.error:
            lines.append(f"      {record.error}")
        if record.links:
            lines.append(f"      minus links {_counted(record.links)}")
        rounds = " ".join(f"{value:.3f}" for value in item.rounds)
        lines.append(f"      rounds {rounds}; {item.accepted} samples accepted, {item.rejected} rejected")
        lines += [f"        {line}" for line in item.text.splitlines()]
        lines.append(f"      code {item.code.hex()}")
        lines.append(f"      again: cyclescope bench --rerun {record.id} --store {quote(str(store))}")
    return "\n".join([*lines, ""])


def _question(record: Record) -> str:
    """What a kernel was measured for."""
    if record.target:
        return f"latency {record.source} -> {record.target}"
    return f"{record.quantity} beside {record.source}" if record.source else record.quantity


def _counted(keys: Sequence[str]) -> str:
    counts: dict[str, int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return ", ".join(f"{n} x {key}" if n > 1 else key for key, n in counts.items())
