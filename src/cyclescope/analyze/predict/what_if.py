"""What a loop would take after a change of the core or the code: changes as people write them.

`port=ALU0` gives the core one more port like it, `width=10` another front end, `latency=7:2` makes the
results of the instruction of line 7 take two cycles, `load=7:14` what it loads, `load=7:L2` as long as a load
from that cache. Changes with commas between them are made together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from cyclescope.analyze.cost.changes import unexplained
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.errors import UsageError, shortened
from cyclescope.model.facts import CACHES, level_subject
from cyclescope.model.limits import WIDTH
from cyclescope.model.machine import Core, FormCost, MachineModel, Operation
from cyclescope.model.ports import resource_ports

CHANGE_FORMS = "port=NAME, width=SLOTS, latency=LINE:CYCLES, load=LINE:CYCLES or load=LINE:L2"
_NUMBER = re.compile(r"\d{1,6}(\.\d{1,6})?")
_LEVEL = re.compile(r"L[23]")


class ChangedSetting(msgspec.Struct, frozen=True):
    """A machine and a block, which changes make others of."""

    machine: MachineModel
    block: Block


def changed(setting: ChangedSetting, what: str) -> ChangedSetting:
    """The setting with all changes of a text. Raises UsageError for what is none."""
    for part in what.split(","):
        kind, _, value = part.strip().partition("=")
        change = _CHANGES.get(kind)
        if change is None or not value:
            raise UsageError(f"no change: {shortened(part.strip())!r}", f"write {CHANGE_FORMS}")
        setting = change(setting, value.strip())
    return setting


def _another_port(setting: ChangedSetting, name: str) -> ChangedSetting:
    machine = setting.machine
    if name not in machine.ports:
        raise UsageError(
            f"{machine.name} has no port {shortened(name)!r}", f"its ports are {', '.join(machine.ports)}"
        )
    port, twin = machine.ports.index(name), len(machine.ports)
    core = msgspec.structs.replace(
        machine.core,
        schedulers=tuple(
            msgspec.structs.replace(one, ports=_joined(one.ports, port, twin))
            for one in machine.core.schedulers
        ),
        wakeup=machine.core.wakeup and msgspec.structs.replace(
            machine.core.wakeup,
            ports=_joined(machine.core.wakeup.ports, port, twin),
            clusters=tuple(_joined(some, port, twin) for some in machine.core.wakeup.clusters),
        ),
        single=_joined(machine.core.single, port, twin),
        writeback=machine.core.writeback and msgspec.structs.replace(
            machine.core.writeback, ports=_joined(machine.core.writeback.ports, port, twin)
        ),
        rotating=_joined(machine.core.rotating, port, twin),
    )  # fmt: skip
    forms = {form: _with_twin(cost, port, twin, machine.core) for form, cost in machine.forms.items()}
    ports = (*machine.ports, _free_name(machine.ports, name))
    resources = {
        one: offered + (port in resource_ports(one, machine.ports))
        for one, offered in machine.resources.items()
    }
    more = msgspec.structs.replace(machine, ports=ports, forms=forms, core=core, resources=resources)
    return msgspec.structs.replace(setting, machine=more)


def _free_name(ports: tuple[str, ...], name: str) -> str:
    return next(f"{name}.{n}" for n in range(2, len(ports) + 3) if f"{name}.{n}" not in ports)


def _joined(ports: tuple[int, ...], port: int, twin: int) -> tuple[int, ...]:
    return (*ports, twin) if port in ports else ports


def _with_twin(cost: FormCost, port: int, twin: int, core: Core) -> FormCost:
    """The cost where a port is there twice; a throughput that its ports explain becomes what these allow."""
    if not any(port in op.ports for op in cost.operations or ()):
        return cost
    if not unexplained(cost, core):
        cost = msgspec.structs.replace(cost, throughput=None, throughput_most=None)
    operations = tuple(
        Operation(_joined(op.ports, port, twin), op.count, op.cycles) for op in cost.operations or ()
    )
    return msgspec.structs.replace(cost, operations=operations)


def _other_width(setting: ChangedSetting, value: str) -> ChangedSetting:
    slots = _number(value, "slots")
    if not 0 < slots <= WIDTH.most:
        raise UsageError(f"no front end of {value} slots", f"give a number up to {WIDTH.most:g}")
    core = msgspec.structs.replace(setting.machine.core, width=slots, fetch=0, lengths=())
    return msgspec.structs.replace(setting, machine=msgspec.structs.replace(setting.machine, core=core))


def _other_latency(setting: ChangedSetting, value: str) -> ChangedSetting:
    place, _, cycles = value.rpartition(":")
    taken = _number(cycles, "cycles")
    return _with_instructions(setting, place, lambda one: msgspec.structs.replace(one, latency=taken))


def _other_load(setting: ChangedSetting, value: str) -> ChangedSetting:
    place, _, cycles = value.rpartition(":")
    machine = setting.machine
    usual = machine.core.load_latency
    taken = _from_level(machine, cycles) if _LEVEL.fullmatch(cycles) else _number(cycles, "cycles")

    def slower(one: BlockInstruction) -> BlockInstruction:
        loads = one.form is not None and any(op.is_memory and op.read for op in one.form.operands)
        if not loads:
            raise UsageError(f"{shortened(one.text)} loads nothing", "name the line of a load")
        return msgspec.structs.replace(one, later=taken - usual)

    return _with_instructions(setting, place, slower)


def _from_level(machine: MachineModel, level: str) -> float:
    """Cycles of a load from a cache, as the probe found them."""
    for fact in machine.facts:
        if fact.probe == CACHES and fact.subject == level_subject(int(level[1:])) and fact.value is not None:
            return fact.value
    raise UsageError(
        f"{machine.name} does not say how long a load from {level} takes",
        f"`cyclescope probe {CACHES}` asks this machine; or give the cycles",
    )


def _with_instructions(
    setting: ChangedSetting, place: str, change: Callable[[BlockInstruction], BlockInstruction]
) -> ChangedSetting:
    """The block with another instruction where one is at a line or an address."""
    found = [n for n, one in enumerate(setting.block) if place in (_place(one), str(one.line or ""))]
    if not found:
        places = ", ".join(dict.fromkeys(map(_place, setting.block)))
        raise UsageError(f"no instruction at {shortened(place)!r}", f"there are some at {shortened(places)}")
    rows = tuple(change(one) if n in found else one for n, one in enumerate(setting.block))
    return msgspec.structs.replace(setting, block=msgspec.structs.replace(setting.block, instructions=rows))


def _place(one: BlockInstruction) -> str:
    return str(one.line) if one.line else f"{one.address:#x}"


def _number(text: str, what: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"{shortened(text)!r} is no number of {what}", f"write {CHANGE_FORMS}")
    return float(text)


_CHANGES: Mapping[str, Callable[[ChangedSetting, str], ChangedSetting]] = {
    "port": _another_port, "width": _other_width, "latency": _other_latency, "load": _other_load,
}  # fmt: skip
