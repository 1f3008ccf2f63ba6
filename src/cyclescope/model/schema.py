"""Machine models as JSON: reading, writing, and saying what is wrong with one."""

from __future__ import annotations

import lzma
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from cyclescope.errors import CyclescopeError, UsageError
from cyclescope.isa.dataflow import sources, targets
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import ISAS, load_table
from cyclescope.model.machine import (
    DRAWN,
    EXTRACTED,
    MEASURED,
    PUBLISHED,
    SCHEMA_VERSION,
    Core,
    FormCost,
    MachineModel,
    Operation,
)


class ModelError(CyclescopeError):
    """A file that is no machine model this version can read."""


class _Version(msgspec.Struct):
    schema_version: int = SCHEMA_VERSION


def encode(model: MachineModel) -> bytes:
    """A model as JSON."""
    return msgspec.json.format(msgspec.json.encode(model), indent=1)


def decode(data: bytes) -> MachineModel:
    """The model in JSON data. Raises ModelError."""
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version <= SCHEMA_VERSION:
            return msgspec.json.decode(data, type=MachineModel)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"no machine model: {error}") from None
    raise ModelError(f"a machine model of schema version {version}", f"this one reads up to {SCHEMA_VERSION}")


def read_model(path: Path) -> MachineModel:
    """The model in a file, which may be compressed (.xz). Raises ModelError and UsageError."""
    try:
        data = path.read_bytes()
        return decode(lzma.decompress(data) if path.suffix == ".xz" else data)
    except FileNotFoundError:
        raise UsageError(
            f"{path}: no such file", "`cyclescope machines list` lists the shipped models"
        ) from None
    except (ModelError, lzma.LZMAError) as error:
        raise ModelError(f"{path}: {error}") from None


def write_model(model: MachineModel, path: Path) -> None:
    """Write a model as JSON, compressed where the name ends in .xz."""
    data = encode(model)
    path.write_bytes(lzma.compress(data) if path.suffix == ".xz" else data)


def problems(model: MachineModel) -> Iterator[str]:
    """One line for everything that is wrong with a model."""
    yield from _head_problems(model)
    yield from _core_problems(model.core, len(model.ports))
    for name, capacity in model.resources.items():
        if not _positive(capacity):
            yield f"resource {name}: capacity {capacity:g} is not positive"
    known = _pairs_by_form(model)
    for form, cost in model.forms.items():
        if known is not None and form not in known:
            yield f"{form}: not in the instruction table of {model.isa}"
        else:
            yield from (f"{form}: {what}" for what in _form_problems(model, cost))
            yield from (f"{form}: {what}" for what in _latency_problems(cost, known[form] if known else None))


def _head_problems(model: MachineModel) -> Iterator[str]:
    if not model.name.strip():
        yield "the machine has no name"
    if model.isa not in ISAS:
        yield f"unknown ISA {model.isa!r}; there are {', '.join(ISAS)}"
    origin = model.provenance
    if origin.kind not in (MEASURED, EXTRACTED, PUBLISHED, DRAWN):
        yield f"provenance: unknown kind {origin.kind!r}"
    if origin.kind == EXTRACTED:
        for field in ("source", "version", "licence"):
            if not getattr(origin, field):
                yield f"provenance: an extracted model needs a {field}"
    for port in sorted({p for p in model.ports if model.ports.count(p) > 1 or not p}):
        yield f"port {port!r} exists {model.ports.count(port)} times" if port else "a port has no name"


def _core_problems(core: Core, port_count: int) -> Iterator[str]:
    if not _positive(core.width):
        yield f"core: width {core.width:g} is not positive"
    for field in ("reorder_buffer", "load_buffer", "store_buffer", "load_latency", "forward_latency",
                  "mispredict_penalty"):  # fmt: skip
        value = getattr(core, field)
        if not _at_least_zero(value):
            yield f"core: {field} {value:g} is negative"
    for scheduler in core.schedulers:
        if scheduler.entries < 0:
            yield f"scheduler {scheduler.name}: {scheduler.entries} entries"
        yield from (
            f"scheduler {scheduler.name}: {what}" for what in _port_problems(scheduler.ports, port_count)
        )


def _port_problems(ports: Sequence[int], count: int) -> Iterator[str]:
    if not ports:
        yield "no ports"
    if len(set(ports)) != len(ports):
        yield f"ports {list(ports)} repeat"
    missing = [port for port in ports if not 0 <= port < count]
    if missing:
        yield f"ports {missing} do not exist"


def _form_problems(model: MachineModel, cost: FormCost) -> Iterator[str]:
    if cost.slots is not None and not _at_least_zero(cost.slots):
        yield f"{cost.slots:g} slots"
    if cost.throughput is not None and not _positive(cost.throughput):
        yield f"throughput {cost.throughput:g} is not positive"
    if cost.idiom not in ("", "zero", "breaking"):
        yield f"unknown idiom {cost.idiom!r}"
    for operation in cost.operations or ():
        yield from _operation_problems(operation, len(model.ports))
    for name, cycles in cost.resources.items():
        if name not in model.resources:
            yield f"resource {name} does not exist"
        if not _at_least_zero(cycles):
            yield f"resource {name}: {cycles:g} cycles"


def _operation_problems(operation: Operation, port_count: int) -> Iterator[str]:
    yield from _port_problems(operation.ports, port_count)
    if not _positive(operation.count):
        yield f"{operation.count:g} micro-operations"
    if not _positive(operation.cycles):
        yield f"a port busy for {operation.cycles:g} cycles"


def _latency_problems(cost: FormCost, known: set[str] | None) -> Iterator[str]:
    for pair in dict.fromkeys((*cost.latencies, *cost.ranges)):
        source, arrow, target = pair.partition("->")
        if not (source and arrow and target):
            yield f"latency {pair!r} is not of the form source->target"
        elif known is not None and pair not in known:
            yield f"latency {pair}: the form has no such pair"
    for pair, cycles in cost.latencies.items():
        if not _at_least_zero(cycles):
            yield f"latency {pair}: {cycles:g} cycles"
    for pair, (least, most) in cost.ranges.items():
        if not (_at_least_zero(least) and _at_least_zero(most) and least <= most):
            yield f"latency {pair}: from {least:g} to {most:g} cycles"


def _pairs_by_form(model: MachineModel) -> dict[str, set[str]] | None:
    """Pairs of the forms that the table knows; None where there is no table."""
    if model.isa not in ISAS:
        return None
    table = load_table(model.isa)
    by_signature: dict[object, set[str]] = {}

    def pairs(name: str) -> set[str]:
        form = table.get(name)
        if form is None:
            return set()
        known = by_signature.setdefault(_key(form), set())
        if not known:
            known |= {f"{s.name}->{t.name}" for s in sources(form) for t in targets(form)}
        return known

    found = {}
    for name in model.forms:
        plain, at, _ = name.partition("@")
        form = table.get(plain) or table.get(name)
        if form is not None:  # under a VTYPE, a form may have the pairs of the plain one
            found[name] = pairs(name) | pairs(plain) if at else pairs(name)
    return found


def _key(form: InstructionForm) -> object:
    """Forms with equal keys have equal pairs."""
    slots = () if form.encoding is None else (form.encoding.slots, form.encoding.modrm >= 0)
    return form.signature, form.flags_read, form.flags_written, slots


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _at_least_zero(value: float) -> bool:
    return math.isfinite(value) and value >= 0
