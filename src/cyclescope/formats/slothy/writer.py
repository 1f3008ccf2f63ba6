"""A target module of SLOTHY: Python that says units, cycles that a unit is busy, and latency of instructions.

SLOTHY's own targets go by its classes of instructions; this one by what an instruction looks like
(`src.write()`), so that it knows as many as were measured. An instruction that it does not know is an error
in SLOTHY, and no guess.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, product

import msgspec

from cyclescope.formats.exchange import Exported, FormatError, Item
from cyclescope.formats.slothy import spelling as spelled
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.isa.text import example
from cyclescope.model.machine import FormCost, MachineModel, Operation

ISA = "aarch64"
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
CHOICES = 64  # of units for one instruction: SLOTHY makes a variable of each
MARK = "COSTS = json.loads(r'''"
END = "''')"


class Known(msgspec.Struct, frozen=True, array_like=True):
    """An instruction: choices of unit names that it takes together, their busy cycles, and the latency."""

    units: tuple[tuple[str, ...], ...]
    busy: int
    latency: int


def write(model: MachineModel) -> Exported:
    """The module. Raises FormatError for other instruction sets and for machines without ports."""
    if model.isa != ISA:
        raise FormatError(
            f"SLOTHY's targets are written of {ISA} machines only", f"{model.name} is {model.isa}"
        )
    if not model.ports or model.core.width <= 0:
        raise FormatError(f"{model.name} has no ports", "SLOTHY asks for them")
    left: list[Item] = []
    costs: dict[str, Known] = {}
    met: dict[str, str] = {}
    for form in load_table(model.isa):
        cost = model.forms.get(form.id)
        if cost is None:
            continue
        key, known = spelled.spelling(example(form)), _known(form, cost, model.ports)
        if known is None or key in met:
            why = _why_not(cost) if known is None else "another form looks the same to SLOTHY"
            left.append(Item(form.id, why, met.get(key, "")))
            continue
        met[key], costs[key] = form.id, known
    if not costs:
        raise FormatError(f"{model.name} has no form whose ports are known", "")
    return Exported(_module(model, costs), tuple(left))


def _known(form: InstructionForm, cost: FormCost, ports: Sequence[str]) -> Known | None:
    latency = _latency(form, cost)
    if not cost.operations or latency is None:
        return None
    busy = max(math.ceil(op.count / len(op.ports)) * math.ceil(op.cycles) for op in cost.operations)
    return Known(tuple(_choices(cost.operations, ports)), busy, latency)


def _why_not(cost: FormCost) -> str:
    if cost.operations is None:
        return "its ports are not known"
    return "its latency is not known" if cost.operations else "it takes no unit, which SLOTHY has no word for"


def _choices(operations: Sequence[Operation], ports: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Units that are taken together: as many of every set as there are operations for it."""
    each = (combinations(op.ports, min(math.ceil(op.count), len(op.ports))) for op in operations)
    found = (tuple(sorted({port for some in one for port in some})) for one in product(*each))
    yield from islice(dict.fromkeys(tuple(unit(ports[port]) for port in one) for one in found), CHOICES)


def unit(port: str) -> str:
    """A port as a name of Python."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in port)
    return f"P_{plain}"


def _latency(form: InstructionForm, cost: FormCost) -> int | None:
    """The most of all pairs that end in a register, 1 where none is written, None where nothing is known."""
    most = {**{name: high for name, (_, high) in cost.ranges.items()}, **cost.latencies}
    ends = [(p.source.name, p.target.name) for p in pairs(form) if p.target.part in ("register", "flag")]
    names = [f"{source}->{target}" for source, target in ends if not is_old(source)]
    known = [most[name] for name in names if name in most]
    return round(max(known)) if known else (None if names else 1)


# --- text --------------------------------------------------------------------------------------------


def _module(model: MachineModel, costs: dict[str, Known]) -> str:
    units = "\n".join(f"    {unit(port)} = {number}" for number, port in enumerate(model.ports))
    table = ",\n".join(
        f"{msgspec.json.encode(key).decode()}: {msgspec.json.encode(known).decode()}"
        for key, known in costs.items()
    )
    source = inspect.getsource(spelled).partition("import re\n")[2].strip()
    return _TEMPLATE.format(
        rate=max(round(model.core.width), 1), units=units, mark=MARK, end=END, table=table, source=source,
        name=_PLAIN.sub("_", model.name.split()[-1]),
    )  # fmt: skip


_TEMPLATE = '''"""A target of SLOTHY: the machine {name}."""

import json
import re
from enum import Enum

issue_rate = {rate}
llvm_mca_target = "{name}"


class ExecutionUnit(Enum):
{units}

    def __repr__(self):
        return self.name


# What an instruction looks like: units that it takes together, cycles that they are busy, latency.
{mark}{{
{table}
}}{end}

{source}


def _known(instruction):
    key = spelling(instruction.write())
    if key not in COSTS:
        raise KeyError(f"no cost of {{key!r}} is known")
    return COSTS[key]


def add_further_constraints(slothy):
    """None: what is known of the front end is the issue rate."""


def has_min_max_objective(config):
    return False


def get_min_max_objective(slothy):
    """None."""


def get_latency(src, out_idx, dst):
    return _known(src)[2]


def get_units(src):
    found = [[ExecutionUnit[name] for name in choice] for choice in _known(src)[0]]
    return [choice[0] if len(choice) == 1 else choice for choice in found]


def get_inverse_throughput(src):
    return _known(src)[1]
'''
