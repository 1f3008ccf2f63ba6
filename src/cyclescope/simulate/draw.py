"""Machines drawn at random: plausible, and known to the last port.

A drawn machine has groups of ports as real ones have (integer, vector, loads, stores; the first two
apart or shared), a few classes of port sets within each, and forms that take one to three operations of
their classes. Forms with the same mnemonic on the same register files cost the same, with or without
VEX; memory operands add loads and stores. Inference is tested on such machines.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from cyclescope.isa.dataflow import overwritten, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.record import CostClasses
from cyclescope.isa.register import domain
from cyclescope.isa.registry import DEFAULT, instruction_set
from cyclescope.model.machine import (
    DRAWN,
    Core,
    FormCost,
    MachineModel,
    Operation,
    Provenance,
    Scheduler,
)

Ports = tuple[int, ...]
_WAITING = 0.06  # share of the mnemonics with a false dependency: real cores have none to some dozens
_MICROCODE = ("rep", "repne", "lock", "vsib", "serializing", "state_save", "far", "interrupt", "system")


class DrawnPorts(msgspec.Struct, frozen=True, dict=True):
    """The ports of a machine by what they are for, and the classes of port sets in each group.

    `integer` and `vector` begin with the whole group; `dividers` are the unpipelined units, integer
    and floating-point, which are ports of their own. `crossing` takes values from one file to another.
    """

    width: int
    integer: tuple[Ports, ...]
    vector: tuple[Ports, ...]
    crossing: tuple[Ports, Ports]
    loads: Ports
    store_addresses: Ports
    store_data: Ports
    dividers: Ports
    count: int

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the ports: hexadecimal digits, so that port usage reads as usual."""
        return tuple(f"{n:X}" for n in range(self.count))


def draw_machine(
    seed: int,
    forms: Iterable[InstructionForm],
    *,
    width: int | None = None,
    ports: int | None = None,
    isa: str = DEFAULT,
) -> MachineModel:
    """A machine that executes `forms`. Equal seeds draw equal machines, and equal costs per form.

    `width` (4 to 8 slots per cycle) and `ports` (4 to 12, dividers apart) are drawn where not given.
    """
    draw = random.Random(f"machine {seed}")  # noqa: S311 - no secret
    shape = draw_shape(draw, width or draw.randint(4, 8), ports or draw.randint(4, 12))
    core = _core(draw, shape)
    kinds = instruction_set(isa).arithmetic.costs
    costs = {form.id: _cost(seed, shape, core, form, kinds) for form in forms}
    provenance = Provenance(DRAWN, source="cyclescope.simulate.draw", version=str(seed))
    return MachineModel(f"drawn-{seed}", isa, provenance, core, shape.names, costs)


def draw_shape(draw: random.Random, width: int, ports: int) -> DrawnPorts:
    """Ports and classes. With few ports, groups share them."""
    stores = 1 if ports < 10 else draw.randint(1, 2)
    loads = draw.randint(1, 2) if ports < 8 else draw.randint(2, 3)
    rest = max(ports - loads - stores, 2)
    apart = rest >= 5 and draw.random() < 0.5
    whole = tuple(range(rest))
    split = draw.randint(2, rest - 2) if apart else rest
    integer = whole[:split]
    vector = (
        whole[split:] if apart else tuple(sorted(draw.sample(whole, max(2, min(rest, draw.randint(2, 4))))))
    )
    agu = tuple(range(rest, rest + loads))
    data = tuple(range(rest + loads, rest + loads + stores))
    addresses = agu if draw.random() < 0.6 or len(data) < 2 else data[:1]
    count = rest + loads + stores
    crossing = ((draw.choice(vector),), (draw.choice(integer),))
    return DrawnPorts(
        width, _classes(draw, integer), _classes(draw, vector), crossing, agu, addresses, data[-1:],
        (count, count + 1), count + 2,
    )  # fmt: skip


def _classes(draw: random.Random, group: Ports) -> tuple[Ports, ...]:
    """The group, two overlapping or disjoint halves, and one port of the first half."""
    found = [group]
    if len(group) > 2:
        size = draw.randint(2, max(len(group) // 2, 2))
        found += [tuple(sorted(draw.sample(group, size))) for _ in range(2)]
    found.append((draw.choice(found[-1]),))
    return tuple(dict.fromkeys(found))


def _core(draw: random.Random, shape: DrawnPorts) -> Core:
    load = float(draw.randint(3, 5))
    queues: tuple[Scheduler, ...]
    compute = tuple(sorted({*shape.integer[0], *shape.vector[0]}))
    memory = tuple(n for n in range(shape.count) if n not in compute)
    if draw.random() < 0.5:
        queues = (Scheduler("compute", compute, draw.choice((60, 96, 128))),)
    else:
        queues = tuple(Scheduler(f"port {n}", (n,), draw.choice((16, 24, 32))) for n in compute)
    queues += (Scheduler("memory", memory, draw.choice((32, 48, 64))),)
    return Core(
        width=shape.width, reorder_buffer=draw.choice((128, 224, 256, 320, 512)),
        load_buffer=draw.choice((48, 72, 128)), store_buffer=draw.choice((42, 56, 64)),
        load_latency=load, forward_latency=load + draw.randint(1, 3), mispredict_penalty=15.0,
        schedulers=queues,
    )  # fmt: skip


# --- one form --------------------------------------------------------------------------------------


class _Recipe(msgspec.Struct, frozen=True):
    """What computing costs, memory operands apart."""

    operations: tuple[Operation, ...]
    latency: float
    slots: int


def _cost(seed: int, shape: DrawnPorts, core: Core, form: InstructionForm, kinds: CostClasses) -> FormCost:
    stem = _stem(form)
    if "nop" in form.attributes:
        return FormCost(slots=1.0, operations=())
    if stem in kinds.microcoded or not form.attributes.isdisjoint(_MICROCODE):
        return _microcoded(_draw(seed, "microcode", stem), shape, core, form)
    plain = _is_plain_move(form, kinds)
    if plain and all(op.is_register for op in form.operands):
        return _move(seed, shape, core, form)
    files = "".join(sorted({domain(op.cls) for op in form.operands if op.is_register}))
    recipe = _Recipe((), 0.0, 0)
    if not plain:
        recipe = _recipe(_draw(seed, stem, files), shape, form, stem, kinds)
    memory = _memory(shape, form)
    fused = _draw(seed, "fusion").random() < 0.5
    slots = max(recipe.slots + (0 if fused and recipe.slots else bool(memory)), 1)
    idiom = "zero" if stem in kinds.zero_idioms and not memory else ""
    return FormCost(
        float(slots),
        _merged((*recipe.operations, *memory)),
        _latencies(form, recipe.latency, core) | _from_old(seed, form, stem, recipe.latency),
        idiom=idiom,
    )


def _from_old(seed: int, form: InstructionForm, stem: str, latency: float) -> dict[str, float]:
    """False dependencies: some mnemonics wait for what the register that they write held before."""
    draw = _draw(seed, "old value", stem)
    if latency < 1 or draw.random() >= _WAITING:
        return {}
    cycles = draw.choice((1.0, latency))
    return {f"{pair.source.name}->{pair.target.name}": cycles for pair in overwritten(form)}


def _draw(*key: object) -> random.Random:
    return random.Random(" ".join(map(str, key)))  # noqa: S311 - no secret


def _stem(form: InstructionForm) -> str:
    """The mnemonic without the VEX letter."""
    name = form.mnemonic
    return name[1:] if form.is_vex and name.startswith("V") else name


def _is_plain_move(form: InstructionForm, kinds: CostClasses) -> bool:
    files = {domain(op.cls) for op in form.operands if op.is_register}
    return _stem(form) in kinds.moves and len(files) == 1 and "masked" not in form.attributes


def _move(seed: int, shape: DrawnPorts, core: Core, form: InstructionForm) -> FormCost:
    """Register moves: eliminated in some machines, when they write whole registers."""
    file = domain(form.operands[0].cls)
    whole = not any(op.cls in ("R8l", "R8h", "R16") for op in form.operands)
    eliminated = whole and file in ("r", "v") and _draw(seed, "elimination", file).random() < 0.5
    if eliminated and len(form.operands) > 1 and form.operands[1].is_register:
        return FormCost(slots=1.0, operations=(), latencies=_latencies(form, 0.0, core), eliminated=True)
    group = shape.integer if file in ("r", "h") else shape.vector
    return FormCost(1.0, (Operation(group[0]),), _latencies(form, 1.0, core))


def _recipe(
    draw: random.Random, shape: DrawnPorts, form: InstructionForm, stem: str, kinds: CostClasses
) -> _Recipe:
    files = {domain(op.cls) for op in form.operands if op.is_register} - {"?"}
    general, vector = files & {"r", "h"}, files - {"r", "h"}
    if stem.startswith(kinds.divisions):
        return _division(draw, shape, bool(vector))
    if general and vector:
        return _crossing(draw, shape, form)
    classes = shape.vector if vector else shape.integer
    if stem.startswith(kinds.multiplications):
        return _Recipe((Operation(classes[-1]),), float(draw.randint(3, 5)), 1)
    if stem in kinds.simple:
        return _Recipe((Operation(classes[0]),), 1.0, 1)
    count = draw.choices((1, 2, 3), (0.75, 0.18, 0.07))[0]
    chosen = [Operation(draw.choice(classes)) for _ in range(count)]
    latency = draw.randint(1, 4) if vector else draw.choices((1, 2, 3), (0.8, 0.12, 0.08))[0]
    return _Recipe(tuple(chosen), float(latency + count - 1), count)


def _division(draw: random.Random, shape: DrawnPorts, vector: bool) -> _Recipe:
    """An operation on a port and the divider, which is busy for most of the latency."""
    latency = draw.randint(8, 20)
    classes = shape.vector if vector else shape.integer
    divider = Operation((shape.dividers[vector],), 1, float(draw.randint(4, latency - 2)))
    return _Recipe((Operation(classes[-1]), divider), float(latency), draw.randint(1, 2))


def _crossing(draw: random.Random, shape: DrawnPorts, form: InstructionForm) -> _Recipe:
    to_vector = form.operands[0].is_register and domain(form.operands[0].cls) not in ("r", "h")
    operations = [Operation(shape.crossing[0 if to_vector else 1])]
    if draw.random() < 0.5:
        operations.append(Operation(draw.choice(shape.vector)))
    return _Recipe(tuple(operations), float(draw.randint(2, 4)), len(operations))


def _microcoded(draw: random.Random, shape: DrawnPorts, core: Core, form: InstructionForm) -> FormCost:
    classes = (*shape.integer, *(shape.vector if form.vector_width else ()))
    operations = [Operation(draw.choice(classes), draw.randint(1, 4)) for _ in range(3)]
    operations += _memory(shape, form)
    slots = sum(op.count for op in operations) + draw.randint(2, 8)
    latencies = _latencies(form, float(draw.randint(5, 15)), core)
    return FormCost(float(slots), _merged(operations), latencies, microcoded=True)


def _memory(shape: DrawnPorts, form: InstructionForm) -> tuple[Operation, ...]:
    """One load per operand read, an address and a datum per operand written."""
    found: list[Operation] = []
    for op in form.operands:
        if op.is_memory and op.read:
            found.append(Operation(shape.loads))
        if op.is_memory and op.write:
            found += [Operation(shape.store_addresses), Operation(shape.store_data)]
    return tuple(found)


def _merged(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Equal operations counted together."""
    counts: dict[tuple[Ports, float], float] = {}
    for op in operations:
        counts[op.ports, op.cycles] = counts.get((op.ports, op.cycles), 0.0) + op.count
    return tuple(Operation(ports, count, cycles) for (ports, cycles), count in counts.items())


def _latencies(form: InstructionForm, latency: float, core: Core) -> dict[str, float]:
    """Cycles for every pair: loading, computing, storing."""
    found = {}
    for pair in pairs(form):
        if pair.excluded:
            continue
        source, target = pair.source, pair.target
        loaded = source.operand >= 0 and form.operands[source.operand].is_memory
        cycles = latency + (core.load_latency if loaded else 0.0)
        if target.part == "data":
            cycles += core.forward_latency - core.load_latency
        found[f"{source.name}->{target.name}"] = cycles
    return found
