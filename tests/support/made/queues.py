"""Drawn cores whose queues have sizes of their own, and what a probe has to find."""

from __future__ import annotations

import random

import msgspec

from cyclescope.model.facts import InFlight
from cyclescope.probe.catalogue import PROBES
from tests.support.made.probed import drawn

PROBE = PROBES["in-flight"]
ADDRESS = ("CVTTSD2SI (R64, XMM)", "SHR (R64, I8)", "ADD_01 (R64, R64)")  # of the load before loads
SIZES = {"NOPs": "reorder_buffer", "loads": "load_buffer", "stores": "store_buffer"}
ANY = str(InFlight.ANY)
_FORMS = ("LEA_B_I (R64)", "PADDD (XMM, XMM)", "MOV (R64, M64)", "MOV (M64, R64)")


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
    if subject == ANY:
        return _of_any_kind(machine)
    form = {"NOPs": "NOP_90", "loads": "MOV (R64, M64)", "stores": "MOV (M64, R64)"}[subject]
    core, slow = machine.core, machine.forms["SQRTPD (XMM, XMM)"].slots
    size, room = getattr(core, SIZES[subject]), core.reorder_buffer / machine.forms[form].slots
    others = 3 * slow + (sum(machine.forms[name].slots for name in ADDRESS) if subject == "loads" else 0)
    if subject == "NOPs" or size < room - others:
        return min(size, room), min(size, room)
    return min(size, room - others), min(size, room)  # operations of the chain are in there, too


def _of_any_kind(machine):
    """What the reorder buffer has room for, in instructions that may be of several slots."""
    slots = [machine.forms[name].slots for name in _FORMS]
    others = 3 * (machine.forms["SQRTPD (XMM, XMM)"].slots - min(slots))
    size = machine.core.reorder_buffer
    return size / max(slots) - others, size / min(slots)
