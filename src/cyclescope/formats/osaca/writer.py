"""OSACA's machine models (YAML) of x86-64 cores, as OSACA 0.7 reads them.

OSACA knows registers by kind and not by width, one latency per form, and no front end: of forms that look
alike to it the widest general register is written, and of EVEX and VEX the latter; a latency is the most of
all pairs that end in a register, or 0 where a form only stores. Where the ports of moves from and to memory
and of branches are not known, these have their throughput on a port of their own, `LD`, `ST` or `BR`: a rate
that they share, and no place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from cyclescope.formats.exchange import Exported, FormatError, Item
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.table import load_table
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.model.ports import port_throughput

KINDS = {
    "R8l": "gpr", "R8h": "gpr", "R16": "gpr", "R32": "gpr", "R64": "gpr", "MM": "mm", "XMM": "xmm",
    "YMM": "ymm", "ZMM": "zmm", "K": "k",
}  # fmt: skip
ANY = "*"
ADDRESS = {"base": ANY, "offset": ANY, "index": ANY, "scale": ANY}
VERSION = "0.7.0"
ALIKE = "OSACA has one entry for all forms that look alike to it"
EXTENDING = {"MOVZX": "movz", "MOVSX": "movs", "MOVSXD": "movs"}
SUFFIXES = {8: "b", 16: "w", 32: "l", 64: "q"}
NARROW = (8, 16)  # bits: OSACA has one kind of general register, whose moves are those of 32 and 64
_PLAIN = {"MOV", "MOVQ", "MOVUPS", "VMOVUPS"}
Pattern = tuple[str, tuple[str, ...]]


class _Entry(msgspec.Struct, frozen=True):
    form: InstructionForm
    cost: FormCost
    operands: tuple[dict[str, object], ...]


def write(model: MachineModel) -> Exported:
    """A model for OSACA. Raises FormatError for other instruction sets and for machines without ports."""
    if model.isa != "x86-64":
        raise FormatError("OSACA models are written of x86-64 machines only", f"{model.name} is {model.isa}")
    if not model.ports:
        raise FormatError(f"{model.name} has no ports", "OSACA predicts from nothing else")
    left: list[Item] = []
    model = _with_rates(model, left)
    chosen = _chosen(model, left)
    data = _head(model, chosen) | {"instruction_forms": [_written(model, e) for e in chosen.values()]}
    return Exported(_yaml(data), tuple(left))


def _yaml(data: object) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(data, Dumper=dumper, sort_keys=False, default_flow_style=None, width=120)
    return text


def _chosen(model: MachineModel, left: list[Item]) -> Mapping[Pattern, _Entry]:
    """One entry for all forms that look alike to OSACA."""
    found: dict[Pattern, _Entry] = {}
    for form in load_table(model.isa):
        cost = model.forms.get(form.id)
        if cost is None:
            continue
        operands = described(form)
        why = _why_not(cost) if operands is not None else "OSACA has no words for its operands"
        if why or operands is None:
            left.append(Item(form.id, why))
            continue
        key = names(form)[0], tuple(map(str, operands))
        if key in found and _rank(found[key].form) >= _rank(form):
            left.append(Item(form.id, ALIKE, found[key].form.id))
            continue
        if key in found:
            left.append(Item(found[key].form.id, ALIKE, form.id))
        found[key] = _Entry(form, cost, operands)
    return found


def _why_not(cost: FormCost) -> str:
    return "its ports are not known" if cost.operations is None else ""


def _rank(form: InstructionForm) -> tuple[int, int]:
    """What is written of forms that look alike: not EVEX, and wide."""
    width = max((op.width for op in form.operands if not op.fixed and KINDS.get(op.cls) == "gpr"), default=0)
    return ("evex" not in form.attributes), width


# --- operands ----------------------------------------------------------------------------------------


def described(form: InstructionForm) -> tuple[dict[str, object], ...] | None:
    """What OSACA sees of a form, in AT&T's order; None where it has no words."""
    if not form.attributes.isdisjoint(("masked", "string", "lock", "rep", "repne", "rounding", "sae")):
        return None
    shown = [_described(op) for op in reversed(form.operands) if not op.implicit]
    return None if None in shown else tuple(op for op in shown if op is not None)


def _described(op: Operand) -> dict[str, object] | None:
    if op.is_register:
        return {"class": "register", "name": KINDS[op.cls]} if op.cls in KINDS else None
    if op.kind == "immediate":
        return {"class": "immediate", "imd": "int"}
    if op.kind == "branch":
        return {"class": "identifier"}
    if op.kind == "address":
        return _address(op.cls)
    plain = op.is_memory and op.cls.removeprefix("M").isdecimal()
    return {"class": "memory", **ADDRESS} if plain else None


def _address(cls: str) -> dict[str, object] | None:
    """The address of LEA, whose parts matter: `LEA_B_I_D8` has a base, an index and a displacement."""
    parts = cls.split("_")[1:]
    if "R" in parts:
        return None
    scaled = any(part.startswith("IS") for part in parts)
    return {
        "class": "memory",
        "base": "gpr" if "B" in parts else None,
        "offset": "imd" if any(part.startswith("D") for part in parts) else None,
        "index": "gpr" if scaled or "I" in parts else None,
        "scale": ANY if scaled else 1,
    }


# --- values ------------------------------------------------------------------------------------------


def _written(model: MachineModel, entry: _Entry) -> dict[str, object]:
    cost = entry.cost
    operations = cost.operations or ()
    return {
        "name": found if len(found := names(entry.form)) > 1 else found[0],
        "operands": list(entry.operands),
        "latency": latency(entry.form, cost),
        "port_pressure": _pressure(operations, model.ports),
        "throughput": port_throughput(operations) if cost.throughput is None else cost.throughput,
        "uops": sum(op.count for op in operations),
    }


def names(form: InstructionForm) -> list[str]:
    """The mnemonics of a form in AT&T's syntax: `movzbl`; also uops.info's (`jne`, `jnz`)."""
    if form.mnemonic in EXTENDING:
        target, source = form.operands[:2]
        return [f"{EXTENDING[form.mnemonic]}{SUFFIXES[source.width]}{SUFFIXES[target.width]}"]
    other = form.uops_info.partition(" ")[0]
    return list(dict.fromkeys([form.mnemonic.lower(), *([other.lower()] if other.isalnum() else [])]))


def latency(form: InstructionForm, cost: FormCost) -> float:
    """The most of all latencies that end in a register, of a range its most; 0 where there is none."""
    most = {**{name: high for name, (_, high) in cost.ranges.items()}, **cost.latencies}
    found = [
        most[name]
        for pair in pairs(form)
        if pair.target.part == "register" and pair.source.part in ("register", "address")
        and (name := f"{pair.source.name}->{pair.target.name}") in most
    ]  # fmt: skip
    return max(found, default=0.0)


def _pressure(operations: Sequence[Operation], ports: Sequence[str]) -> list[object]:
    return [[op.count * op.cycles, [ports[p] for p in op.ports]] for op in operations]


# --- the machine -------------------------------------------------------------------------------------


def _head(model: MachineModel, chosen: Mapping[Pattern, _Entry]) -> dict[str, object]:
    loads = dict(_moves(chosen.values(), load=True))
    stores = dict(_moves(chosen.values(), load=False))
    if not loads or not stores:
        missing = "load" if not loads else "store"
        raise FormatError(
            f"{model.name} has no ports of a plain {missing}", "OSACA needs them for every form"
        )
    return {
        "osaca_version": VERSION,
        "micro_architecture": model.name,
        "arch_code": model.name.split()[-1].upper(),
        "isa": "x86",
        "ROB_size": model.core.reorder_buffer or None,
        "retired_uOps_per_cycle": None,
        "scheduler_size": None,
        "hidden_loads": False,
        "load_latency": {kind: latency(e.form, e.cost) for kind, e in loads.items()},
        "load_throughput": [_transfer("dst", kind, e, model) for kind, e in loads.items()],
        "load_throughput_default": _pressure(_first(loads).cost.operations or (), model.ports),
        "store_throughput": [_transfer("src", kind, e, model) for kind, e in stores.items()],
        "store_throughput_default": _pressure(_first(stores).cost.operations or (), model.ports),
        "store_to_load_forward_latency": model.core.forward_latency,
        "ports": list(model.ports),
        "port_model_scheme": None,
    }


def _first(found: Mapping[str, _Entry]) -> _Entry:
    return found.get("gpr") or next(iter(found.values()))


def _transfer(end: str, kind: str, entry: _Entry, model: MachineModel) -> dict[str, object]:
    return {end: kind, **ADDRESS, "port_pressure": _pressure(entry.cost.operations or (), model.ports)}


def _moves(entries: Iterable[_Entry], load: bool) -> Iterator[tuple[str, _Entry]]:
    """The plain load or store of every kind of register."""
    for entry in entries:
        register = _moved(entry.form, load)
        if register is not None and entry.form.mnemonic in _PLAIN and register.width not in NARROW:
            yield KINDS[register.cls], entry


def _moved(form: InstructionForm, load: bool) -> Operand | None:
    """The register of a form that only loads or stores, None for other forms."""
    if "MOV" not in form.mnemonic or [op.is_memory for op in form.operands] != [not load, load]:
        return None
    register, memory = form.operands if load else reversed(form.operands)
    whole = register.is_register and not memory.implicit and register.cls in KINDS
    return register if whole and register.read != load else None


def _rate_of(form: InstructionForm) -> str:
    """The port that stands for a rate that forms share, for those whose ports are not known."""
    if "branch" in form.attributes:
        return "BR"
    return next((name for load, name in ((True, "LD"), (False, "ST")) if _moved(form, load) is not None), "")


def _with_rates(model: MachineModel, left: list[Item]) -> MachineModel:
    """The model with ports `LD`, `ST` and `BR` for loads, stores and branches whose ports are not known."""
    forms, ports = dict(model.forms), list(model.ports)
    for form in load_table(model.isa):
        cost, name = model.forms.get(form.id), _rate_of(form)
        if cost is None or cost.operations is not None or not cost.throughput or not name:
            continue
        ports += [name] if name not in ports else []
        rate = Operation((ports.index(name),), 1, cost.throughput)
        forms[form.id] = msgspec.structs.replace(cost, operations=(rate,))
        left.append(Item(form.id, "its ports are not known: its throughput is on a port of its own", name))
    return msgspec.structs.replace(model, forms=forms, ports=tuple(ports))
