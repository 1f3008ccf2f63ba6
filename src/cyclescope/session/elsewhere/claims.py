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

_MCA_COUNT = (
    "llvm-mca has one number, NumMicroOpcodes, which is what its scheduling model dispatches: of AMD's cores "
    "a load and its operation are one, of Intel's two. It is held against both of the store's numbers. "
    "Ports are its pressure per resource; resources are more than ports."
)
_MODEL_COUNT = "The numbers and ports are those of the machine model that is simulated"
_EXTRACTED_COUNT = (
    f"{_MODEL_COUNT}: uses of LLVM's resources, of which a load can take several (an address unit and a load "
    "unit)."
)


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
    """What a backend that has a model says of some forms."""
    if isinstance(backend, LlvmMcaBackend):
        return _of_mca(backend, forms, table)
    assert isinstance(backend, SimulatedBackend)
    return _of_model(backend.machine, forms)


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
    left_out = {"the model has no cost of it": absent} if absent else {}
    about = _EXTRACTED_COUNT if machine.provenance.kind == EXTRACTED else f"{_MODEL_COUNT}."
    return Claims(found, machine.ports, left_out, about)


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
    left_out = Counter({"llvm-mca does not take it": len(instances) - len(found),
                        "no instance of it is planned today": len(forms) - len(instances)})  # fmt: skip
    return Claims(found, names, +left_out, _MCA_COUNT)


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
