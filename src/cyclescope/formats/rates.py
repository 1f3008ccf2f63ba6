"""Rates that no port explains, on ports of their own, for tools that know nothing of a core but ports.

Loads, stores and branches whose ports are not known have their throughput on `LD`, `ST` or `BR`. Divisions
and roots that take longer than their ports say keep a port `DV` busy that long: the names that OSACA's
own models have for dividers end so. PUSH and POP take the ports of a plain store and load.
"""

from __future__ import annotations

import msgspec

from cyclescope.analyze.cost.traits import is_division
from cyclescope.formats.exchange import Item
from cyclescope.formats.spelled import KINDS
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import load_table
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.model.ports import issue_throughput

DIVIDER = "DV"
EXPLAINED = 1.25  # of what the ports allow: readings of one core scatter by less, dividers take far longer
_OWN = "its ports are not known: its throughput is on a port of its own"
_LIMITED = "it takes longer than its ports allow, and what else limits it is not known"
_STACK = {"PUSH": "store", "POP": "load"}


def with_rates(model: MachineModel, left: list[Item]) -> MachineModel:
    """The model with a port for every rate that its ports do not explain; `left` is told which."""
    forms, ports = dict(model.forms), list(model.ports)
    for form in load_table(model.isa):
        cost = model.forms.get(form.id)
        if cost is None:
            continue
        operations = _stack_operations(form, cost, model)
        name = "" if operations is not None else _rate_name(form, cost, model)
        if name:
            ports += [name] if name not in ports else []
            rate = Operation((ports.index(name),), 1, cost.throughput or 0.0)
            operations = (*(cost.operations or ()), rate)
            left.append(Item(form.id, _divided(cost) if name == DIVIDER else _OWN, name))
        elif is_slower(cost, model) and not is_division(form):
            left.append(Item(form.id, _LIMITED, f"{cost.throughput:g} cycles"))
        if operations is not None:
            forms[form.id] = msgspec.structs.replace(cost, operations=operations)
    return msgspec.structs.replace(model, forms=forms, ports=tuple(ports))


def _divided(cost: FormCost) -> str:
    if cost.operations is None:
        return "its ports are not known: its throughput is on a divider of its own"
    return "what its ports do not explain is on a divider of its own"


def _rate_name(form: InstructionForm, cost: FormCost, model: MachineModel) -> str:
    """The port that stands for a rate that forms share, empty where none is needed."""
    if not cost.throughput:
        return ""
    if is_division(form):
        return DIVIDER if cost.operations is None or is_slower(cost, model) else ""
    if cost.operations is not None:
        return ""
    if "branch" in form.attributes:
        return "BR"
    return next((name for load, name in ((True, "LD"), (False, "ST")) if moved(form, load) is not None), "")


def is_slower(cost: FormCost, model: MachineModel) -> bool:
    """Whether a form takes longer than its ports and the front end explain."""
    explained = issue_throughput(cost, model.core)
    return explained is not None and (cost.throughput or 0.0) > explained[0] * EXPLAINED


def _stack_operations(
    form: InstructionForm, cost: FormCost, model: MachineModel
) -> tuple[Operation, ...] | None:
    """The ports that PUSH and POP need at least, where theirs are not known."""
    role = _STACK.get(form.mnemonic)
    if role is None or cost.operations is not None:
        return None
    move = model.forms.get(getattr(instruction_set(model.isa).roles, role))
    return None if move is None else move.operations


def moved(form: InstructionForm, load: bool) -> Operand | None:
    """The register of a form that only loads or stores, None for other forms."""
    if "MOV" not in form.mnemonic or [op.is_memory for op in form.operands] != [not load, load]:
        return None
    register, memory = form.operands if load else reversed(form.operands)
    whole = register.is_register and not memory.implicit and register.cls in KINDS
    return register if whole and register.read != load else None
