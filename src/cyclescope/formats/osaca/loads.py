"""What an OSACA model says of forms with memory by its tables of loads and stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cyclescope.formats.exchange import Draft, cycles, operation
from cyclescope.formats.osaca.composed import Composer
from cyclescope.formats.osaca.operands import Entry, Pattern, described, names, pattern
from cyclescope.isa.dataflow import pairs
from cyclescope.model.machine import FormCost, Operation
from cyclescope.model.ports import port_throughput

Pressure = list[tuple[float, str | list[str]]]
_DEFAULT = "gpr"  # a transfer that names no kind of register


def add_composed(
    draft: Draft, loads: Sequence[Mapping[str, Any]], stores: Sequence[Mapping[str, Any]],
    latencies: Mapping[str, Any],
) -> None:  # fmt: skip
    """Forms with memory that the file has no entry of, made up of those with a register."""
    entries = _entries(draft)
    if not entries:
        return
    some = next(iter(entries.values()))
    tables = (loads, "dst"), (stores, "src")
    read, written = (dict(_transfers(draft, some, table, end)) for table, end in tables)
    if not read or not written:
        return
    composer = Composer(entries, read, written)
    for form in draft.table:
        operands = described(form)
        if operands is not None and not draft.has(form):
            _add(draft, composer, Entry(form, FormCost(), operands), latencies)


def _entries(draft: Draft) -> dict[Pattern, Entry]:
    """What the file has entries of, the first of forms that look alike."""
    found: dict[Pattern, Entry] = {}
    for form in draft.table:
        operands, cost = described(form), draft.cost(form)
        if operands is not None and cost is not None:
            found.setdefault(pattern(names(form)[0], operands), Entry(form, cost, operands))
    return found


def _add(draft: Draft, composer: Composer, entry: Entry, latencies: Mapping[str, Any]) -> None:
    made = composer.made(entry)
    if made is None:
        return
    kind, twin, operations = made
    rate = max(port_throughput(operations), twin.cost.throughput or 0.0)
    draft.add(entry.form, operations=operations, throughput=rate or None)
    _add_latencies(draft, entry, twin.cost, _cycles(latencies.get(kind)))


def _transfers(
    draft: Draft, entry: Entry, some: Sequence[Mapping[str, Any]], end: str
) -> Iterator[tuple[str, Entry]]:
    """The first load or store of every kind of register."""
    seen = set()
    for number, raw in enumerate(some, 1):
        kind = str(raw.get(end) or _DEFAULT)
        if kind in seen:
            continue
        try:
            pressure = msgspec.convert(raw.get("port_pressure"), Pressure)
            operations = tuple(pressed(draft, pressure))
        except (msgspec.ValidationError, ValueError) as error:
            draft.refuse(f"{'load' if end == 'dst' else 'store'} {number}", str(error))
            continue
        seen.add(kind)
        yield kind, msgspec.structs.replace(entry, cost=FormCost(operations=operations))


def pressed(draft: Draft, pressure: Pressure) -> Iterator[Operation]:
    """What keeps ports busy; names written as one string have one character each."""
    for busy, ports in pressure:
        unknown = [name for name in ports if name not in draft.ports]
        if unknown or not ports:
            raise ValueError(f"port {unknown[0]!r} does not exist" if unknown else "no ports")
        if cycles(busy) > 0:
            count, time = (busy, 1.0) if busy % 1 == 0 else (1, busy)
            yield operation(ports, count, draft, time)


def _cycles(value: object) -> float | None:
    try:
        return cycles(value)
    except ValueError:
        return None


def _add_latencies(draft: Draft, entry: Entry, twin: FormCost, load: float | None) -> None:
    """The other form's latency between registers, and with the load from an address."""
    known = max(twin.latencies.values(), default=None)
    for pair in pairs(entry.form):
        if pair.target.part != "register" or known is None:
            continue
        name = f"{pair.source.name}->{pair.target.name}"
        if pair.source.part == "register":
            draft.latency(entry.form, name, known, known)
        elif pair.source.part in ("address", "index") and load is not None:
            draft.latency(entry.form, name, known + load, known + load)
