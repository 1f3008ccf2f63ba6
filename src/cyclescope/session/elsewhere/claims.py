"""What a backend says that one instance of a form is made of: micro-operations, slots, cycles of ports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cyclescope.backend.base import Backend
from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.instruction import Instruction
from cyclescope.measure.plan import Planner
from cyclescope.model.comparison.agreement import operation_count
from cyclescope.model.machine import EXTRACTED, FormCost, MachineModel
from cyclescope.remarks.elsewhere import Counts, NotCompared


class Claim(msgspec.Struct, frozen=True):
    """What is said of one instance of a form; None for what is not.

    `pressure` has cycles by the name of the port; with `is_even`, those of each operation are spread evenly
    over its ports. `units` is how many ports one instance takes.
    """

    operations: float | None
    slots: float | None
    pressure: Mapping[str, float] | None
    units: float
    is_even: bool = True


class Claims(msgspec.Struct, frozen=True):
    """Claims by form, the names of all ports, why forms have none, and in words what is counted."""

    of: Mapping[str, Claim]
    ports: tuple[str, ...]
    left_out: Mapping[str, int]
    about: str


def claimed(backend: Backend, forms: Sequence[str], table: Table) -> Claims:
    """What a backend says of some forms: nothing, where it is not known to have a model."""
    if isinstance(backend, LlvmMcaBackend):
        return _of_mca(backend, forms, table)
    if isinstance(backend, SimulatedBackend):
        return _of_model(backend.machine, forms)
    left_out = {NotCompared.TIMES_ALONE.value: len(forms)} if forms else {}
    return Claims({}, (), left_out, Counts.NOTHING.of().text)


def even_pressure(cost: FormCost, ports: Sequence[str]) -> dict[str, float] | None:
    """Cycles by port, each operation's spread evenly over its ports; None where they are not known."""
    if cost.operations is None:
        return None
    found: dict[str, float] = defaultdict(float)
    for one in cost.operations:
        for port in one.ports:
            found[ports[port]] += one.count * one.cycles / len(one.ports)
    return dict(found)


def _of_model(machine: MachineModel, forms: Sequence[str]) -> Claims:
    found = {}
    for name in forms:
        if (cost := machine.forms.get(name)) is not None:
            count = operation_count(cost)
            found[name] = Claim(count, cost.slots, even_pressure(cost, machine.ports), count or 0)
    absent = len(forms) - len(found)
    left_out = {NotCompared.NO_COST.value: absent} if absent else {}
    about = Counts.EXTRACTED if machine.provenance.kind == EXTRACTED else Counts.MODEL
    return Claims(found, machine.ports, left_out, about.of().text)


def _of_mca(backend: LlvmMcaBackend, forms: Sequence[str], table: Table) -> Claims:
    instances = dict(_instances(forms, table))
    stated = backend.stated(list(instances.values()))
    pressures = backend.pressures(list(instances.values()))
    names = backend.capabilities().counters
    found: dict[str, Claim] = {}
    for form, said, cycles in zip(instances, stated, pressures, strict=True):
        if said is not None and cycles is not None:
            taken = {name: value for name, value in zip(names, cycles, strict=True) if value > 0}
            found[form] = Claim(said.operations, said.operations, taken, said.resources, False)
    left_out = Counter({NotCompared.NOT_TAKEN.value: len(instances) - len(found),
                        NotCompared.UNPLANNED.value: len(forms) - len(instances)})  # fmt: skip
    return Claims(found, names, +left_out, Counts.MCA.of().text)


def _instances(forms: Sequence[str], table: Table) -> Iterator[tuple[str, Instruction]]:
    """An instance of each form, as its throughput is measured: different registers for all operands."""
    known = set(forms)
    planner = Planner(table, lambda form: form.id in known)
    for name in forms:
        form = table.get(name)
        if form is not None and (instance := _instance(planner, form)) is not None:
            yield name, instance


def _instance(planner: Planner, form: InstructionForm) -> Instruction | None:
    bodies = (experiment.kernel.body for experiment in planner.throughput(form))
    return next((one for body in bodies for one in body if one.form.id == form.id), None)
