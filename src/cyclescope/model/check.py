"""What is wrong with a machine model: one line for each defect, with its place in the file.

`problems` is what `cyclescope machines check` prints, and `checked` what every model passes that is not
shipped: whatever is computed from it afterwards is finite and ends soon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from cyclescope.errors import CyclescopeError
from cyclescope.isa.dataflow import pairs_by_form
from cyclescope.isa.registry import isa_names
from cyclescope.model import limits
from cyclescope.model.limits import Range
from cyclescope.model.machine import (
    BINDINGS,
    DRAWN,
    EXTRACTED,
    IDEAL,
    MEASURED,
    PUBLISHED,
    WIDTH_KINDS,
    Core,
    FormCost,
    MachineModel,
    Operation,
    Provenance,
    Wakeup,
)

TOLD = 3  # defects in an error of one line
_SHOWN = 60  # characters of a text that may be anything


class ModelError(CyclescopeError):
    """A file that is no machine model, or a model that no machine can be."""


def checked(model: MachineModel, where: str = "") -> MachineModel:
    """The model itself. Raises ModelError with the first defects and the number of the others.

    `where` is the file or the name that the model was asked by.
    """
    found = problems(model)
    first = list(islice(found, TOLD))
    if not first:
        return model
    rest = sum(1 for _ in found)
    lines = "; ".join(first) + (f"; and {rest} more" if rest else "")
    where = where or shown(model.name) or "the model"
    remedy = "`cyclescope machines check` lists all" if rest else "correct it"
    raise ModelError(f"{where}: no machine can be so: {lines}", remedy)


def problems(model: MachineModel) -> Iterator[str]:
    """One line for everything that is wrong with a model; of sizes that are out of range, only these."""
    if sizes := list(_size_problems(model)):
        yield from sizes
        return
    yield from _head_problems(model)
    yield from _provenance_problems(model.provenance)
    yield from _core_problems(model.core, len(model.ports))
    for name, capacity in model.resources.items():
        yield from _name_problems("resources", name)
        yield from _outside(f"resources: {shown(name)}", capacity, limits.CAPACITY)
    yield from _forms_problems(model)


def impossible_forms(model: MachineModel) -> dict[str, str]:
    """The first defect of each form that has one, of those that a measurement can make."""
    first = ((form, next(_cost_problems(shown(form), cost, model), "")) for form, cost in model.forms.items())
    return {form: defect for form, defect in first if defect}


def shown(text: str) -> str:
    """A text of a file as it can be printed: what is no printable character escaped, long ones cut."""
    plain = text if text.isprintable() else text.encode("unicode_escape").decode()
    return plain if len(plain) <= _SHOWN else f"{plain[: _SHOWN - 3]}..."


# --- numbers and texts -------------------------------------------------------------------------------


def _outside(place: str, value: float, allowed: Range) -> Iterator[str]:
    if not allowed.has(value):
        yield f"{place}: {_number(value)} is not from {allowed.least:.15g} to {allowed.most:.15g}"


def _float(value: float) -> float:
    """Whole numbers in JSON can be too large for one."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _number(value: float) -> str:
    return f"{_float(value):g}"


def _name_problems(place: str, name: str) -> Iterator[str]:
    yield from _text_problems(place, name, limits.NAME)
    if not name.strip():
        yield f"{place}: a name is empty"


def _text_problems(place: str, text: str, most: int = limits.TEXT) -> Iterator[str]:
    if len(text) > most:
        yield f"{place}: {shown(text)!r} has {len(text)} characters, more than {most}"
    elif not text.isprintable():
        yield f"{place}: '{shown(text)}' has characters that cannot be printed"


# --- the machine -------------------------------------------------------------------------------------


def _size_problems(model: MachineModel) -> Iterator[str]:
    sizes = (
        ("ports", model.ports, limits.PORTS),
        ("core.schedulers", model.core.schedulers, limits.SCHEDULERS),
        ("resources", model.resources, limits.RESOURCES),
        ("forms", model.forms, limits.FORMS),
        ("provenance.notes", model.provenance.notes, limits.NOTES),
    )
    for place, items, most in sizes:
        if len(items) > most:
            yield f"{place}: {len(items)}, more than {most}"


def _head_problems(model: MachineModel) -> Iterator[str]:
    yield from _name_problems("name", model.name)
    if model.isa not in isa_names():
        yield f"isa: unknown {shown(model.isa)!r}; there are {', '.join(isa_names())}"
    for port in dict.fromkeys(model.ports):
        yield from _name_problems("ports", port)
        if model.ports.count(port) > 1:
            yield f"ports: {shown(port)!r} exists {model.ports.count(port)} times"
    if model.borrowed is not None:
        yield from _name_problems("borrowed.core", model.borrowed.core)
        texts = (model.borrowed.source, *model.borrowed.what, *model.borrowed.forms)
        yield from (line for text in texts for line in _text_problems("borrowed", text))


def _provenance_problems(origin: Provenance) -> Iterator[str]:
    if origin.kind not in (MEASURED, EXTRACTED, PUBLISHED, DRAWN):
        yield f"provenance.kind: unknown {shown(origin.kind)!r}"
    for field in ("source", "version", "licence", "date"):
        yield from _text_problems(f"provenance.{field}", getattr(origin, field))
    for note in origin.notes:
        yield from _text_problems("provenance.notes", note)
    if origin.kind == EXTRACTED:
        for field in ("source", "version", "licence"):
            if not getattr(origin, field):
                yield f"provenance.{field}: missing, an extracted model needs one"


def _core_problems(core: Core, port_count: int) -> Iterator[str]:
    numbers = {
        "width": limits.WIDTH, "reorder_buffer": limits.REORDER_BUFFER, "load_buffer": limits.ENTRIES,
        "store_buffer": limits.ENTRIES, "load_latency": limits.CYCLES, "forward_latency": limits.CYCLES,
        "mispredict_penalty": limits.CYCLES, "nops": limits.NOPS, "evenness": limits.EVENNESS,
        **({"fetch": limits.FETCH} if core.fetch else {}),
    }  # fmt: skip
    yield from _length_problems(core.lengths)
    for field, allowed in numbers.items():
        yield from _outside(f"core.{field}", getattr(core, field), allowed)
    if core.width_kind not in ("", *WIDTH_KINDS):
        yield f"core.width_kind: unknown {shown(core.width_kind)!r}; there are {', '.join(WIDTH_KINDS)}"
    if core.width_kind == PUBLISHED and not core.width_source:
        yield "core.width_source: missing, a published width needs one"
    yield from _text_problems("core.width_source", core.width_source)
    if (few := core.narrow) is not None:
        yield from _outside("core.narrow: slots", few.slots, limits.WIDTH)
        yield from _outside("core.narrow: beside", few.beside, limits.BESIDE)
        for text in (*few.files, few.source):
            yield from _text_problems("core.narrow", text)
    if core.binding not in ("", *BINDINGS):
        yield f"core.binding: unknown {shown(core.binding)!r}; there are {', '.join(BINDINGS)}"
    yield from _wakeup_problems(core.wakeup, port_count) if core.wakeup is not None else ()
    yield from _dealt_problems(core, port_count)
    for scheduler in core.schedulers:
        place = f"core.schedulers: {shown(scheduler.name)}"
        yield from _name_problems("core.schedulers", scheduler.name)
        yield from _outside(f"{place}: entries", scheduler.entries, limits.ENTRIES)
        yield from _port_problems(f"{place}: ports", scheduler.ports, port_count)


def _dealt_problems(core: Core, port_count: int) -> Iterator[str]:
    yield from ("core.ahead: needs core.single",) if core.ahead and not core.single else ()
    if (wb := core.writeback) is not None:
        yield from _port_problems("core.writeback", wb.ports, port_count)
        yield from () if core.binding else ("core.writeback: needs a binding of ports, not ''",)
        yield from _outside("core.writeback: patience", wb.patience, limits.PATIENCE)
        yield from _outside("core.writeback: entries", wb.entries or limits.QUEUE.least, limits.QUEUE)
    for field, ports in (("single", core.single), ("rotating", core.rotating)):
        yield from _port_problems(f"core.{field}", ports, port_count) if ports else ()
        if ports and core.binding in ("", IDEAL):
            yield f"core.{field}: needs a binding of ports at dispatch, not {shown(core.binding)!r}"
    if (many := len(core.in_turn)) > limits.PORTS:
        yield f"core.in_turn: {many}, more than {limits.PORTS}"
    yield from (line for some in core.in_turn for line in _port_problems("core.in_turn", some, port_count))
    if core.halves is not None:
        yield from _outside("core.halves: astray", core.halves.astray, limits.EVENNESS)
        yield from _outside("core.halves: late", core.halves.late, limits.PATIENCE)
        for some in (core.halves.first, core.halves.second, core.halves.both):
            yield from _port_problems("core.halves", some, port_count)


def _wakeup_problems(wakeup: Wakeup, port_count: int) -> Iterator[str]:
    yield from _port_problems("core.wakeup: ports", wakeup.ports, port_count)
    if len(wakeup.clusters) > limits.CLUSTERS:
        yield f"core.wakeup: clusters: {len(wakeup.clusters)}, more than {limits.CLUSTERS}"
        return
    for cluster in (*wakeup.clusters, wakeup.leading or wakeup.ports):
        yield from _port_problems("core.wakeup: clusters", cluster, port_count)
    yield from _outside("core.wakeup: blur", wakeup.blur, limits.BLUR)
    if wakeup.clusters and sorted(sum(wakeup.clusters, ())) != sorted(wakeup.ports):
        yield "core.wakeup: clusters: every one of its ports has to be in one of them"


def _length_problems(lengths: Sequence[tuple[int, float]]) -> Iterator[str]:
    if len(lengths) > limits.LENGTHS:
        yield f"core.lengths: {len(lengths)}, more than {limits.LENGTHS}"
        return
    for size, cycles in lengths:
        yield from _outside("core.lengths: bytes", size, limits.LENGTH)
        yield from _outside("core.lengths: cycles", cycles, limits.CYCLES)


def _port_problems(place: str, ports: Sequence[int], count: int) -> Iterator[str]:
    if not ports:
        yield f"{place}: none"
    if len(ports) > limits.PORTS:
        yield f"{place}: {len(ports)}, more than {limits.PORTS}"
    elif len(set(ports)) != len(ports):
        yield f"{place}: {_listed(ports)} repeat"
    missing = [port for port in ports[: limits.PORTS] if not 0 <= port < count]
    if missing:
        yield f"{place}: {_listed(missing)} do not exist, there are {count}"


def _listed(ports: Iterable[int]) -> str:
    return shown(f"[{', '.join(map(_number, ports))}]")


# --- forms -------------------------------------------------------------------------------------------


def _forms_problems(model: MachineModel) -> Iterator[str]:
    known = pairs_by_form(model.isa, model.forms) if model.isa in isa_names() else None
    every = [op.ports for cost in model.forms.values() for op in cost.operations or ()]
    if len(every) > limits.ALL_OPERATIONS:
        yield f"forms: {len(every)} operations together, more than {limits.ALL_OPERATIONS}"
        return
    sets = set(every)
    if len(sets) > limits.PORT_SETS:
        yield f"forms: {len(sets)} different sets of ports in operations, more than {limits.PORT_SETS}"
    if known is not None and limits.no_form_is_wrong(model, known):
        return
    for form, cost in model.forms.items():
        place = f"forms: {shown(form)}"
        if known is not None and form not in known:
            yield f"{place}: not in the instruction table of {model.isa}"
            continue
        yield from _cost_problems(place, cost, model, known[form] if known else None)


def _cost_problems(
    place: str, cost: FormCost, model: MachineModel, known: set[str] | None = None
) -> Iterator[str]:
    yield from _number_problems(place, cost)
    yield from _operations_problems(place, cost.operations or (), len(model.ports))
    yield from _resource_problems(place, cost.resources, model.resources)
    yield from _latency_problems(place, cost, known)
    yield from _room_problems(place, cost)
    yield from _word_problems(place, cost)


def _number_problems(place: str, cost: FormCost) -> Iterator[str]:
    if cost.slots is not None:
        yield from _outside(f"{place}: slots", cost.slots, limits.SLOTS)
    for slots in cost.slot_range or ():
        yield from _outside(f"{place}: slot_range", slots, limits.SLOTS)
    if cost.throughput is not None:
        yield from _outside(f"{place}: throughput", cost.throughput, limits.BUSY)
    if cost.throughput_most is not None:
        yield from _outside(f"{place}: throughput_most", cost.throughput_most, limits.BUSY)
    if cost.indexed_throughput is not None:
        yield from _outside(f"{place}: indexed_throughput", cost.indexed_throughput, limits.BUSY)
    if cost.throughput_error:
        yield from _outside(f"{place}: throughput_error", cost.throughput_error, limits.BUSY)


def _operations_problems(place: str, operations: Sequence[Operation], port_count: int) -> Iterator[str]:
    if len(operations) > limits.OPERATIONS:
        yield f"{place}: operations: {len(operations)}, more than {limits.OPERATIONS}"
        return
    for number, operation in enumerate(operations):
        if _is_sound(operation, port_count):
            continue
        here = f"{place}: operations[{number}]"
        yield from _port_problems(f"{here}: ports", operation.ports, port_count)
        numbers = {"count": operation.count, "cycles": operation.cycles}
        wrong = [line for name, n in numbers.items() for line in _outside(f"{here}: {name}", n, limits.BUSY)]
        yield from wrong
        if not wrong:
            busy = operation.count * operation.cycles
            yield from _outside(f"{here}: count times cycles", busy, limits.BUSY)


def _is_sound(operation: Operation, port_count: int) -> bool:
    """Whether nothing is wrong with an operation: there are many, and mostly nothing is."""
    ports, busy = operation.ports, limits.BUSY
    return (
        0 < len(ports) == len(set(ports))
        and min(ports) >= 0
        and max(ports) < port_count
        and busy.has(operation.count)
        and busy.has(operation.cycles)
        and busy.has(operation.count * operation.cycles)
    )


def _resource_problems(place: str, used: Mapping[str, float], known: Mapping[str, float]) -> Iterator[str]:
    for name, cycles in used.items():
        if name not in known:
            yield f"{place}: resources: {shown(name)} does not exist"
        yield from _outside(f"{place}: resources: {shown(name)}", cycles, limits.CYCLES)


def _latency_problems(place: str, cost: FormCost, known: set[str] | None) -> Iterator[str]:
    for pair in dict.fromkeys((*cost.latencies, *cost.ranges, *cost.with_room)):
        source, arrow, target = pair.partition("->")
        if not (source and arrow and target):
            yield f"{place}: latencies: {shown(pair)!r} is not of the form source->target"
        elif known is not None and pair not in known:
            yield f"{place}: latencies: {shown(pair)}: the form has no such pair"
    for pair, cycles in cost.latencies.items():
        if not limits.CYCLES.has(cycles):
            yield from _outside(f"{place}: latencies: {shown(pair)}", cycles, limits.CYCLES)
    for pair, (least, most) in cost.ranges.items():
        if limits.CYCLES.least <= least <= most <= limits.CYCLES.most:
            continue
        here = f"{place}: ranges: {shown(pair)}"
        wrong = [line for end in (least, most) for line in _outside(here, end, limits.CYCLES)]
        yield from wrong
        if not wrong and least > most:
            yield f"{here}: from {least:g} to {most:g}"


def _room_problems(place: str, cost: FormCost) -> Iterator[str]:
    for pair, cycles in cost.with_room.items():
        here = f"{place}: with_room: {shown(pair)}"
        if not limits.CYCLES.has(cycles):
            yield from _outside(here, cycles, limits.CYCLES)
        elif cycles > cost.latencies.get(pair, 0.0):
            yield f"{here}: {cycles:g} cycles are more than those of a chain alone"


def _word_problems(place: str, cost: FormCost) -> Iterator[str]:
    if cost.idiom not in ("", "zero", "breaking"):
        yield f"{place}: idiom: unknown {shown(cost.idiom)!r}"
    yield from _text_problems(f"{place}: confidence", cost.confidence, limits.NAME)
    yield from _text_problems(f"{place}: note", cost.note)
    for other in cost.alternatives:
        yield from _text_problems(f"{place}: alternatives", other)
