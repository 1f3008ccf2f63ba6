"""What renamers of drawn cores do besides what forms cost: which moves and idioms they execute themselves.

`draw_machine` gives all moves of a register file one answer, and zero idioms to the same mnemonics always.
Real cores differ by width and by mnemonic; these are drawn on top. What only loads or stores costs no more
than the plain moves do, and computes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec

from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import domain
from cyclescope.isa.registry import instruction_set
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.simulate.front_end import FrontEnd

_OFTEN = 0.5
_MAY_BE_RENAMED = {"MOV", "MOVAPS", "MOVDQA", "MOVZX", "MOVSXD"}
_TRANSFERS = {"MOV", "MOVZX", "MOVSXD", "MOVSS", "MOVQ", "MOVUPS", "PUSH", "POP"}
_MAY_BE_IDIOMS = ("XOR", "SUB", "AND", "PXOR", "PXORD", "PSUB", "PAND", "PCMP", "PADDD")  # begin so
_WIDEST = 512  # bits of a vector, or of what it is loaded from
_SHORTENED = 2.0  # cycles: a latency is at least one


def with_drawn_renamer(machine: MachineModel, forms: Iterable[InstructionForm], seed: int) -> MachineModel:
    """The machine with elimination drawn per mnemonic and width, idioms per mnemonic and width."""
    costs = dict(machine.forms)
    for form in forms:
        if _is_transfer(form):
            costs[form.id] = _transferred(machine, form)
        elif _is_renamed(form):
            costs[form.id] = _moved(machine, form, _draw(seed, "move", _key(form)).random() < 0.5)
        elif _stem(form).startswith(_MAY_BE_IDIOMS) and form.memory < 0:
            kind = _draw(seed, "idiom", _key(form)).choice(("", "zero", "breaking"))
            costs[form.id] = msgspec.structs.replace(costs[form.id], idiom=kind)
    return msgspec.structs.replace(machine, forms=costs)


def with_drawn_scheduler(
    machine: MachineModel, forms: Iterable[InstructionForm], seed: int, share: float = _OFTEN
) -> MachineModel:
    """The machine with some mnemonics whose results come a cycle earlier while the scheduler has room."""
    costs = dict(machine.forms)
    for form in forms:
        cost = costs[form.id]
        if form.memory < 0 and not cost.eliminated and _draw(seed, "room", _stem(form)).random() < share:
            later = {pair: cycles for pair, cycles in cost.latencies.items() if cycles >= _SHORTENED}
            ranges = {pair: (cycles - 1, cycles) for pair, cycles in later.items()}
            room = {pair: cycles - 1 for pair, cycles in later.items()}
            costs[form.id] = msgspec.structs.replace(cost, with_room=room, ranges=ranges)
    return msgspec.structs.replace(machine, forms=costs)


def with_narrow_units(machine: MachineModel, forms: Iterable[InstructionForm]) -> MachineModel:
    """The machine with units half as wide as the widest vectors, for which these take two turns of a port.

    So do accesses to as much memory; what comes from general registers is no wider than those.
    """
    widest = instruction_set(machine.isa).blocking.widest
    costs = dict(machine.forms)
    for form in forms:
        files = {domain(op.cls) for op in form.operands if op.is_register}
        if any(op.cls == widest for op in form.operands) and files.isdisjoint(("r", "h")):
            narrow = any(op.is_memory and op.width < _WIDEST for op in form.operands)
            spared = _accesses(machine) if narrow else frozenset()
            operations = [_twice(op, spared) for op in costs[form.id].operations or ()]
            costs[form.id] = msgspec.structs.replace(costs[form.id], operations=tuple(operations))
    return msgspec.structs.replace(machine, forms=costs)


def _accesses(machine: MachineModel) -> frozenset[int]:
    """Ports of the plain load and the plain store."""
    roles = instruction_set(machine.isa).roles
    plain = (machine.forms[name] for name in (roles.load, roles.store) if name in machine.forms)
    return frozenset(port for cost in plain for op in cost.operations or () for port in op.ports)


def _twice(op: Operation, spared: frozenset[int]) -> Operation:
    """A micro-operation that keeps its port twice as long, unless that is one of some ports."""
    return op if spared.issuperset(op.ports) else msgspec.structs.replace(op, cycles=2 * op.cycles)


def _is_renamed(form: InstructionForm) -> bool:
    """Whether a core may do a form by renaming, as a move between registers of a file."""
    both = len(form.operands) == 2 and all(op.is_register for op in form.operands)
    return both and _stem(form) in _MAY_BE_RENAMED and len({domain(op.cls) for op in form.operands}) == 1


def _is_transfer(form: InstructionForm) -> bool:
    memory = [op for op in form.operands if op.is_memory]
    return len(memory) == 1 and _stem(form) in _TRANSFERS


def _transferred(machine: MachineModel, form: InstructionForm) -> FormCost:
    """What loads or stores and does nothing else costs what the plain moves do."""
    core = machine.core
    loads = any(op.is_memory and op.read for op in form.operands)
    roles = instruction_set(machine.isa).roles
    plain = machine.forms[roles.load if loads else roles.store]
    cycles = core.load_latency if loads else core.forward_latency - core.load_latency
    merged = ("register", "register")  # of a load, which keeps a part of its target
    latencies = {
        f"{p.source.name}->{p.target.name}": 1.0 if (p.source.part, p.target.part) == merged else cycles
        for p in pairs(form) if not p.excluded
    }  # fmt: skip
    return FormCost(1.0, plain.operations, latencies)


def _stem(form: InstructionForm) -> str:
    return form.mnemonic.removeprefix("V") if form.is_vex else form.mnemonic


def _key(form: InstructionForm) -> str:
    return f"{_stem(form)} {form.operands[0].width} {form.operands[-1].width}"


def _draw(*key: object) -> random.Random:
    return random.Random(" ".join(map(str, key)))


def _moved(machine: MachineModel, form: InstructionForm, eliminated: bool) -> FormCost:
    cycles = 0.0 if eliminated else 1.0
    latencies = {f"{p.source.name}->{p.target.name}": cycles for p in pairs(form) if not p.excluded}
    work = () if eliminated else _simple_work(machine, form)
    return FormCost(1.0, work, latencies, eliminated=eliminated)


def _simple_work(machine: MachineModel, form: InstructionForm) -> tuple[Operation, ...]:
    """The ports of an addition in the same register file."""
    plain = "ADD_01 (R64, R64)" if domain(form.operands[0].cls) == "r" else "PADDD (XMM, XMM)"
    return machine.forms[plain].operations or ()


def draw_front_end(seed: int, firsts: Iterable[str], branches: Iterable[str]) -> FrontEnd:
    """A front end that fuses some mnemonics with some branches, and perhaps moves with what works on them."""
    conditions = [name for name in branches if _draw(seed, "condition", name).random() < _OFTEN]
    some = [name for name in firsts if _draw(seed, "fused", name).random() < _OFTEN]
    fused = frozenset((first, branch) for first in some for branch in conditions)
    return FrontEnd(fuses=_draw(seed, "moves").random() < _OFTEN, branches=fused)
