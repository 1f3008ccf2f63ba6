"""Drawn cores whose queues have sizes of their own, and what a probe has to find."""

from __future__ import annotations

import random

import msgspec

from cyclescope.model.facts import KINDS_IN_TURN, InFlight
from cyclescope.probe.catalogue import PROBES
from tests.support.made.probed import drawn

PROBE = PROBES["in-flight"]
ADDRESS = ("CVTTSD2SI (R64, XMM)", "SHR (R64, I8)", "ADD_01 (R64, R64)")  # of the load before loads
SIZES = {"NOPs": "reorder_buffer", "loads": "load_buffer", "stores": "store_buffer"}
KINDS = "instructions of several kinds"
_FORMS = {
    InFlight.ADDITIONS: "LEA_B_I (R64)", InFlight.VECTORS: "PADDD (XMM, XMM)",
    InFlight.LOADS: "MOV (R64, M64)",
}  # fmt: skip


def draw(seed):
    """A core with sizes of its own, and square roots that can overlap."""
    size = random.Random(seed)
    machine = drawn([PROBE], seed)
    queues = tuple(msgspec.structs.replace(queue, entries=128) for queue in machine.core.schedulers)
    core = msgspec.structs.replace(
        machine.core, reorder_buffer=size.randint(90, 600), load_buffer=size.randint(24, 160),
        store_buffer=size.randint(20, 100), schedulers=queues,
    )  # fmt: skip
    return msgspec.structs.replace(machine, core=core)


def expected(machine, subject):
    """Entries of the structure, or what is left in the reorder buffer: the least and the most."""
    if subject == KINDS:
        return _of_kinds(machine)
    form = {"NOPs": "NOP_90", "loads": "MOV (R64, M64)", "stores": "MOV (M64, R64)"}[subject]
    core, slow = machine.core, machine.forms["SQRTPD (XMM, XMM)"].slots
    size, room = getattr(core, SIZES[subject]), core.reorder_buffer / machine.forms[form].slots
    others = 3 * slow + (sum(machine.forms[name].slots for name in ADDRESS) if subject == "loads" else 0)
    if subject == "NOPs" or size < room - others:
        return min(size, room), min(size, room)
    return min(size, room - others), min(size, room)  # operations of the chain are in there, too


def _of_kinds(machine):
    """How many of several kinds are in before the first of these structures is full."""
    slots = [machine.forms[_FORMS[kind]].slots for kind in KINDS_IN_TURN]
    core, turn = machine.core, len(KINDS_IN_TURN)
    per = (core.reorder_buffer, sum(slots)), (core.load_buffer, KINDS_IN_TURN.count(InFlight.LOADS))
    turns = min(size / own for size, own in per)
    others = 3 * machine.forms["SQRTPD (XMM, XMM)"].slots / min(slots)
    return turns * turn - others - turn, turns * turn + turn
