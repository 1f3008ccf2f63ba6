"""Machine models that ship, by name.

One archive per ISA holds what its machines share: the forms, and the rows of forms that cost the same
on every machine. `tools/machines` generates them.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from cyclescope.errors import UsageError
from cyclescope.isa.registry import isa_names
from cyclescope.model.behaviour.published import CORES, corrected
from cyclescope.model.machine import (
    BORROWED_PORTS,
    BUFFERS,
    COSTS,
    WIDTH,
    Borrowed,
    Core,
    FormCost,
    MachineModel,
    Operation,
    Provenance,
)
from cyclescope.model.names import NATIVE, OTHER_NAMES, is_same_core, near
from cyclescope.model.widths import WIDTHS

_made: dict[int, MachineModel] = {}  # the models that were read from the archives, by their ids
_ELIMINATED, _BREAKING, _ZERO = 1, 2, 4


class Summary(msgspec.Struct, frozen=True):
    """A machine without its forms.

    `aliases` are other names of the same core, `lends_to` other cores whose names stand for this model, since
    there is none of them.
    """

    name: str
    isa: str
    aliases: tuple[str, ...]
    lends_to: tuple[str, ...]
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


def _isas() -> Iterator[str]:
    """Instruction sets that models ship of."""
    return (isa for isa in isa_names() if _file(isa).is_file())


def _file(isa: str) -> Traversable:
    return resources.files("cyclescope.model").joinpath(f"machines/{isa}.json.xz")


@cache
def _archive(isa: str) -> _Archive:
    return msgspec.json.decode(lzma.decompress(_file(isa).read_bytes()), type=_Archive)


def summaries() -> Iterator[Summary]:
    """All shipped machines, without reading their forms."""
    for isa in _isas():
        archive = _archive(isa)
        for name, m in archive.machines.items():
            same = tuple(other for other in m.aliases if is_same_core(other))
            others = tuple(other for other in m.aliases if not is_same_core(other))
            also = tuple(other for other, known in OTHER_NAMES.items() if known in (name, *same))
            core = _with_published(name, m.core)
            yield Summary(name, isa, (*same, *also), others, m.ports, core, m.forms, archive.provenance)


def summary(model: MachineModel, aliases: tuple[str, ...] = ()) -> Summary:
    """A model without its forms."""
    return Summary(
        model.name, model.isa, aliases, (), model.ports, model.core, len(model.forms), model.provenance
    )


def names() -> frozenset[str]:
    """Every name that a shipped machine is known by."""
    return frozenset(OTHER_NAMES).union(*((m.name, *m.aliases, *m.lends_to) for m in summaries()))


def shipped(name: str) -> MachineModel:
    """A shipped machine by LLVM's, OSACA's or uops.info's name of it, in any case.

    A core that LLVM takes another one's model for has its own name, and what it has from the other one in
    `borrowed`. Raises UsageError for unknown names.
    """
    word = name.lower()
    word = OTHER_NAMES.get(word, word)
    place = _place(word)
    if place is None:
        raise _unknown(name)
    isa, known = place
    return _shipped(isa, known) if word == known or is_same_core(word) else _borrower(word, isa, known)


def llvm_model(name: str) -> MachineModel:
    """A shipped machine as LLVM has it, its issue width included: to compare with LLVM's programs."""
    model = shipped(name)
    lender = model.borrowed.core if model.borrowed else model.name
    archive = _archive(model.isa)
    return msgspec.structs.replace(model, core=archive.machines[lender].core, forms=_forms(archive, lender))


def sound(model: MachineModel, where: str = "") -> MachineModel:
    """The model itself: of those that ship it is known, others are checked. Raises ModelError."""
    if _made.get(id(model)) is model:
        return model
    from cyclescope.model.check import checked  # those that ship need none

    return checked(model, where)


def _unknown(name: str) -> UsageError:
    from cyclescope.model.check import shown

    close = near(name, (*names(), NATIVE))
    if close:
        return UsageError(f"no machine model {shown(name)!r}", f"did you mean {', '.join(close)}?")
    remedy = "`cyclescope machines list` lists them; files have a slash or end in .json or .xz"
    return UsageError(f"no machine model {shown(name)!r}", remedy)


@cache
def _place(name: str) -> tuple[str, str] | None:
    """ISA and name of the model by any of LLVM's names."""
    for isa in _isas():  # an archive is read when it is needed
        for known, machine in _archive(isa).machines.items():
            if name == known or name in machine.aliases:
                return isa, known
    return None


@cache
def _shipped(isa: str, name: str) -> MachineModel:
    archive = _archive(isa)
    machine = archive.machines[name]
    provenance = archive.provenance
    if machine.aliases:
        note = f"LLVM uses this model for {', '.join(machine.aliases)} too"
        provenance = msgspec.structs.replace(provenance, notes=(*provenance.notes, note))
    known = CORES.get(name)
    if known is not None and known.corrections:
        note = f"costs of {known.corrected_names} are corrected after {known.sources[0]}"
        provenance = msgspec.structs.replace(provenance, notes=(*provenance.notes, note))
    if known is not None and known.registers:
        note = f"moves, idioms, additions and divisions are corrected after {known.sources[0]}"
        provenance = msgspec.structs.replace(provenance, notes=(*provenance.notes, note))
    core = _with_published(name, machine.core)
    forms = corrected(name, _forms(archive, name), machine.ports)
    return _kept(MachineModel(name, isa, provenance, core, machine.ports, forms))


@cache
def _borrower(name: str, isa: str, lender: str) -> MachineModel:
    model = _shipped(isa, lender)
    core = _with_published(name, _archive(isa).machines[lender].core)
    what = (COSTS, BORROWED_PORTS, BUFFERS, *(() if name in WIDTHS else (WIDTH,)))
    origin = _archive(isa).provenance
    source = f"{origin.source} {origin.version}"
    borrowed = Borrowed(lender, source, what)
    return _kept(msgspec.structs.replace(model, name=name, provenance=origin, core=core, borrowed=borrowed))


def _kept(model: MachineModel) -> MachineModel:
    _made[id(model)] = model
    return model


def _with_published(name: str, core: Core) -> Core:
    """The core with the width that somebody else than LLVM knows of it."""
    width = WIDTHS.get(name)
    if width is None:
        return core
    return msgspec.structs.replace(core, width=width.slots, width_kind=width.kind, width_source=width.source)


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
