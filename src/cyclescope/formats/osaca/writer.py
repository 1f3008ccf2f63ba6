"""OSACA's machine models (YAML) of x86-64 cores, as OSACA 0.7 reads them.

OSACA knows registers by kind and not by width, one latency per form, and no front end: of forms that look
alike to it the widest general register is written, of immediates the shortest, and of EVEX and VEX the
latter. What it makes of the form with a register and a load or store by itself is left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from cyclescope.formats.exchange import Exported, FormatError, Item
from cyclescope.formats.osaca.composed import RATES, Composer
from cyclescope.formats.osaca.operands import (
    ADDRESS,
    NARROW,
    Entry,
    Pattern,
    described,
    latency,
    names,
    pattern,
)
from cyclescope.formats.rates import moved, with_rates
from cyclescope.formats.spelled import KINDS
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.sizes import with_sizes
from cyclescope.model.machine import MachineModel, Operation
from cyclescope.model.ports import port_throughput

VERSION = "0.7.0"
ALIKE = "OSACA has one entry for all forms that look alike to it"
_PLAIN = {"MOV", "MOVQ", "MOVUPS", "VMOVUPS"}


def write(model: MachineModel) -> Exported:
    """A model for OSACA. Raises FormatError for other instruction sets and for machines without ports."""
    if model.isa != "x86-64":
        raise FormatError("OSACA models are written of x86-64 machines only", f"{model.name} is {model.isa}")
    if not model.ports:
        raise FormatError(f"{model.name} has no ports", "OSACA predicts from nothing else")
    left: list[Item] = []
    model = with_rates(model, left)
    every = _chosen(model, left)
    loads, stores = (dict(_moves(every.values(), load)) for load in (True, False))
    _check_moves(model, loads, stores)
    composer = Composer(every, loads, stores, model.ports)
    chosen = [kept for one in every.values() if (kept := composer.entry(one, left)) is not None]
    model = msgspec.structs.replace(model, ports=tuple(composer.ports))
    data = _head(model, loads, stores)
    data["instruction_forms"] = [_written(model, entry) for entry in chosen]
    return Exported(_yaml(data), tuple(left))


def _yaml(data: object) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(data, Dumper=dumper, sort_keys=False, default_flow_style=None, width=120)
    return text


def _chosen(model: MachineModel, left: list[Item]) -> Mapping[Pattern, Entry]:
    """One entry for all forms that look alike to OSACA."""
    found: dict[Pattern, Entry] = {}
    for form in load_table(model.isa):
        cost = model.forms.get(form.id)
        if cost is None:
            continue
        operands = described(form)
        if operands is None:
            left.append(Item(form.id, "OSACA has no words for its operands"))
            continue
        entry, key = Entry(form, cost, operands), pattern(names(form)[0], operands)
        other = found.get(key)
        kept, dropped = (entry, other) if other is None or _rank(other) < _rank(entry) else (other, entry)
        found[key] = kept
        if dropped is not None:
            left.append(Item(dropped.form.id, ALIKE, kept.form.id))
    return found


def _rank(entry: Entry) -> tuple[bool, bool, bool, int, int]:
    """What is written of forms that look alike: any immediate, ports, not EVEX, wide, a short immediate.

    Immediates that are one number come last: RCL by 1 is ten times as fast as by others.
    """
    form = entry.form
    one = any(op.kind == "immediate" and op.cls.isdigit() for op in form.operands)
    width = max((op.width for op in form.operands if not op.fixed and KINDS.get(op.cls) == "gpr"), default=0)
    longest = max((op.width for op in form.operands if op.kind == "immediate"), default=0)
    return not one, entry.cost.operations is not None, "evex" not in form.attributes, width, -longest


# --- values ------------------------------------------------------------------------------------------


def _written(model: MachineModel, entry: Entry) -> dict[str, object]:
    cost = entry.cost
    operations = cost.operations or ()
    uops = [op.count for op in operations if not any(model.ports[p] in RATES for p in op.ports)]
    return {
        "name": found if len(found := names(entry.form)) > 1 else found[0],
        "operands": list(entry.operands),
        "latency": latency(entry.form, cost),
        "port_pressure": _pressure(operations, model.ports),
        "throughput": port_throughput(operations) if cost.throughput is None else cost.throughput,
        "uops": None if cost.operations is None or (operations and not uops) else sum(uops),
        **({"x_confidence": cost.confidence} if cost.confidence else {}),
    }


def _pressure(operations: Sequence[Operation], ports: Sequence[str]) -> list[object]:
    return [[op.count * op.cycles, [ports[p] for p in op.ports]] for op in operations]


# --- the machine -------------------------------------------------------------------------------------


def _check_moves(model: MachineModel, loads: Mapping[str, Entry], stores: Mapping[str, Entry]) -> None:
    for what, found in (("load", loads), ("store", stores)):
        if not found:
            raise FormatError(
                f"{model.name} has no ports of a plain {what}", "OSACA needs them for every form"
            )


def _head(model: MachineModel, loads: Mapping[str, Entry], stores: Mapping[str, Entry]) -> dict[str, object]:
    return {
        "osaca_version": VERSION,
        "micro_architecture": model.name,
        "arch_code": model.name.split()[-1].upper(),
        "isa": "x86",
        "ROB_size": with_sizes(model.core, model.facts).reorder_buffer or None,
        "retired_uOps_per_cycle": None,
        "scheduler_size": None,
        "hidden_loads": False,
        "load_latency": {kind: _load_latency(e, model) for kind, e in loads.items()},
        "load_throughput": [_transfer("dst", kind, e, model) for kind, e in loads.items()],
        "load_throughput_default": _pressure(_first(loads).cost.operations or (), model.ports),
        "store_throughput": [_transfer("src", kind, e, model) for kind, e in stores.items()],
        "store_throughput_default": _pressure(_first(stores).cost.operations or (), model.ports),
        **_forwarding(model),
        "ports": list(model.ports),
        "port_model_scheme": None,
    }


def _load_latency(entry: Entry, model: MachineModel) -> float:
    known = latency(entry.form, entry.cost)
    return model.core.load_latency if known is None else known


def _forwarding(model: MachineModel) -> dict[str, float]:
    """Nothing where it is not known: 0 would be a number."""
    found = model.core.forward_latency
    return {"store_to_load_forward_latency": found} if found else {}


def _first(found: Mapping[str, Entry]) -> Entry:
    return found.get("gpr") or next(iter(found.values()))


def _transfer(end: str, kind: str, entry: Entry, model: MachineModel) -> dict[str, object]:
    return {end: kind, **ADDRESS, "port_pressure": _pressure(entry.cost.operations or (), model.ports)}


def _moves(entries: Iterable[Entry], load: bool) -> Iterator[tuple[str, Entry]]:
    """The plain load or store of every kind of register."""
    for entry in entries:
        register = moved(entry.form, load)
        plain = register is not None and entry.form.mnemonic in _PLAIN and register.width not in NARROW
        if register is not None and plain and entry.cost.operations is not None:
            yield KINDS[register.cls], entry
