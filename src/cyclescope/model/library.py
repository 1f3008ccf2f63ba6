"""Machine models that ship, by name, and models in files.

One archive per ISA holds what its machines share: the forms, and the rows of forms that cost the same
on every machine. `tools/machines` generates them.
"""

from __future__ import annotations

import difflib
import lzma
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from cyclescope.errors import UsageError
from cyclescope.isa.table import ISAS
from cyclescope.model.machine import Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.model.schema import read_model

_ELIMINATED, _BREAKING, _ZERO = 1, 2, 4


class Summary(msgspec.Struct, frozen=True):
    """A machine without its forms; `aliases` are CPUs that LLVM models alike."""

    name: str
    isa: str
    aliases: tuple[str, ...]
    ports: tuple[str, ...]
    core: Core
    form_count: int
    provenance: Provenance


class _Cost(msgspec.Struct, array_like=True, frozen=True):
    """`operations` is an index; `latencies` one number where all pairs are equal."""

    slots: int
    operations: int
    latencies: int | tuple[int, ...]
    flags: int


class _Machine(msgspec.Struct, frozen=True):
    aliases: tuple[str, ...]
    ports: tuple[str, ...]
    core: Core
    operations: tuple[tuple[Operation, ...], ...]
    costs: tuple[_Cost, ...]
    forms: int


class _Archive(msgspec.Struct, frozen=True):
    """`rows` have a shape (pairs of latencies) and the number of a cost per machine, 0 for none."""

    isa: str
    provenance: Provenance
    forms: msgspec.Raw
    form_rows: msgspec.Raw
    shapes: tuple[str, ...]
    rows: msgspec.Raw
    machines: dict[str, _Machine]


@cache
def _archive(isa: str) -> _Archive:
    data = resources.files("cyclescope.model").joinpath(f"machines/{isa}.json.xz").read_bytes()
    return msgspec.json.decode(lzma.decompress(data), type=_Archive)


def summaries() -> Iterator[Summary]:
    """All shipped machines, without reading their forms."""
    for isa in ISAS:
        archive = _archive(isa)
        for name, m in archive.machines.items():
            yield Summary(name, isa, m.aliases, m.ports, m.core, m.forms, archive.provenance)


def summary(model: MachineModel, aliases: tuple[str, ...] = ()) -> Summary:
    """A model without its forms."""
    return Summary(
        model.name, model.isa, aliases, model.ports, model.core, len(model.forms), model.provenance
    )


def load_model(name: str) -> MachineModel:
    """A shipped machine by name or alias in any case, or the model in a file.

    What contains a slash or ends in `.json` or `.xz` is a file. Raises UsageError for unknown names.
    """
    if "/" in name or name.endswith((".json", ".xz")):
        return read_model(Path(name))
    for isa in ISAS:
        for known, machine in _archive(isa).machines.items():
            if name.lower() in (known, *machine.aliases):
                return _shipped(isa, known)
    raise UsageError(f"no machine model {name!r}", _nearest(name))


def _nearest(name: str) -> str:
    known = {n for isa in ISAS for m, found in _archive(isa).machines.items() for n in (m, *found.aliases)}
    word = name.lower()
    close = [n for n in sorted(known) if word and n.startswith(word)][:3]
    close = close or difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    if close:
        return f"did you mean {', '.join(close)}?"
    return "`cyclescope machines list` lists them; files have a slash or end in .json or .xz"


@cache
def _shipped(isa: str, name: str) -> MachineModel:
    archive = _archive(isa)
    machine = archive.machines[name]
    provenance = archive.provenance
    if machine.aliases:
        note = f"LLVM uses this model for {', '.join(machine.aliases)} too"
        provenance = msgspec.structs.replace(provenance, notes=(*provenance.notes, note))
    return MachineModel(name, isa, provenance, machine.core, machine.ports, _forms(archive, name))


def _forms(archive: _Archive, name: str) -> Mapping[str, FormCost]:
    machine = archive.machines[name]
    column = 1 + list(archive.machines).index(name)
    shapes = [shape.split() for shape in archive.shapes]
    costs: list[FormCost | None] = [
        _cost(machine, machine.costs[row[column] - 1], shapes[row[0]]) if row[column] else None
        for row in msgspec.json.decode(archive.rows, type=list[tuple[int, ...]])
    ]
    ids = msgspec.json.decode(archive.forms, type=list[str])
    rows = msgspec.json.decode(archive.form_rows, type=list[int])
    known = ((form, costs[row]) for form, row in zip(ids, rows, strict=True))
    return {form: cost for form, cost in known if cost is not None}


def _cost(machine: _Machine, cost: _Cost, pairs: list[str]) -> FormCost:
    cycles = (cost.latencies,) * len(pairs) if isinstance(cost.latencies, int) else cost.latencies
    return FormCost(
        slots=cost.slots,
        operations=machine.operations[cost.operations],
        latencies=dict(zip(pairs, cycles, strict=True)),
        eliminated=bool(cost.flags & _ELIMINATED),
        idiom="zero" if cost.flags & _ZERO else "breaking" if cost.flags & _BREAKING else "",
    )
