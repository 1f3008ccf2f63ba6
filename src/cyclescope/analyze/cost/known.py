"""Finding the cost of a form in a model: by its own name, under a VTYPE, without a prefix, or borrowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import load_table
from cyclescope.isa.variants import VectorTypes
from cyclescope.model.machine import Core, FormCost, MachineModel, Operation
from cyclescope.model.ports import issue_throughput, port_throughput
from cyclescope.simulate.cost import Ends

_SIMPLE = 2  # slots


def known_cost(form: InstructionForm, machine: MachineModel) -> FormCost | None:
    """What a machine knows of a form, by its id or LLVM's name of it."""
    names = (*_measured_names(form), *_configured_names(form), form.llvm)
    found = next((machine.forms[name] for name in names if name in machine.forms), None)
    if form.x87_pops > 0 and (found is None or found.operations is None):
        found = _unpopped(form, found, machine.forms)
    if found is not None and form.configuration is None:
        types = instruction_set(machine.isa).vector_types
        return found if types is None else _largest(form, found, machine, types)
    return _unlocked(form, machine.forms, machine.isa) if found is None and is_locked(form) else found


def _unpopped(
    form: InstructionForm, found: FormCost | None, forms: Mapping[str, FormCost]
) -> FormCost | None:
    """The cost of what leaves the x87 stack where it is: what pops can be measured with what pushes alone."""
    name, operands = form.id.split(" ", 1) if " " in form.id else (form.id, "")
    twin = forms.get(f"{name.removesuffix('P')} {operands}")
    if twin is None or twin.operations is None or not name.endswith("P"):
        return found
    if found is None or not (found.latencies or found.ranges):
        return twin
    return msgspec.structs.replace(twin, latencies=found.latencies, ranges=found.ranges)


def _largest(form: InstructionForm, cost: FormCost, machine: MachineModel, types: VectorTypes) -> FormCost:
    """The largest cost of a form whatever is set: that of nothing is not always LLVM's worst."""
    names = sorted(types.all_cost_names(form) & machine.forms.keys())
    return max((cost, *(machine.forms[name] for name in names)), key=_extent)


def _extent(cost: FormCost) -> tuple[float, float]:
    return port_throughput(cost.operations or ()), max(cost.latencies.values(), default=0.0)


def _measured_names(form: InstructionForm) -> tuple[str, ...]:
    """Names of a measured cost, the agnostic form's last: policies change what a result waits for alone.

    With an immediate of 0 it costs as with any, for those who do not tell these apart.
    """
    seen = form.configuration
    if seen is None or not (seen.tail_undisturbed or seen.mask_undisturbed):
        return form.id, form.id.replace(", 0)", ", I8)")
    agnostic = msgspec.structs.replace(seen, tail_undisturbed=False, mask_undisturbed=False)
    return form.id, f"{form.id.partition('@')[0]}@{agnostic}"


def _configured_names(form: InstructionForm) -> tuple[str, ...]:
    types = instruction_set(form.isa).vector_types if form.configuration else None
    return () if types is None else types.cost_names(form)


def borrowed_cost(form: InstructionForm, cost: FormCost, core: Core, machine: MachineModel) -> FormCost:
    """A cost without the ports, which are another model's.

    Simple forms load and store on the ports of this machine's plain moves; what the ports of others allow is
    the throughput of a unit.
    """
    allowed = issue_throughput(cost, core)
    simple = not cost.microcoded and (cost.slots or 0) <= _SIMPLE
    return FormCost(
        cost.slots, _moves(form, machine) if simple else None, cost.latencies,
        None if simple or allowed is None else allowed[0],
        microcoded=cost.microcoded, eliminated=cost.eliminated, idiom=cost.idiom,
    )  # fmt: skip


def not_before_loads(form: InstructionForm, latencies: Mapping[str, float], load: float) -> dict[str, float]:
    """Latencies without those from an address to what is loaded there that are less than any load's.

    LLVM has one cycle for the frame pointer of LEAVE.
    """
    ends = Ends(form)
    addresses = [source.name for source in ends.sources if ends.is_address(source)]
    results = [target.name for target in ends.targets if not ends.is_pointer(target)]
    loaded = {f"{source}->{target}" for source in addresses for target in results}
    return {pair: cycles for pair, cycles in latencies.items() if cycles >= load or pair not in loaded}


def _moves(form: InstructionForm, machine: MachineModel) -> tuple[Operation, ...] | None:
    """The operations of plain moves from and to memory, for a form that does so; None where not known."""
    memory = [op for op in form.operands if op.is_memory]
    roles = instruction_set(machine.isa).roles
    both = zip((roles.load, roles.store), _directions(memory), strict=True)
    names = [name for name, does in both if does]
    found = [machine.forms[name].operations for name in names if name in machine.forms]
    if not names or len(found) < len(names) or None in found:
        return None
    return tuple(op for operations in found for op in operations or ())


def _directions(memory: Sequence[Operand]) -> tuple[bool, bool]:
    return any(op.read for op in memory), any(op.write for op in memory)


def is_locked(form: InstructionForm) -> bool:
    """Whether the instruction has a LOCK prefix."""
    return "lock" in form.attributes


def _unlocked(form: InstructionForm, forms: Mapping[str, FormCost], isa: str) -> FormCost | None:
    """The cost of the same LLVM opcode on the same operands without the prefix."""
    signature = [(op.kind, op.cls, op.implicit) for op in form.operands]
    for other in load_table(isa).of_opcode(form.llvm):
        if other.id in forms and [(op.kind, op.cls, op.implicit) for op in other.operands] == signature:
            return forms[other.id]
    return None
