"""Limits of machine models, far beyond any core: within them all computations stay fast and finite.

The comment at each says the most that the models extracted from LLVM 22 have.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cyclescope.model.machine import FormCost, MachineModel, Operation

FILE_BYTES = 24 << 20  # of JSON; 5.4 MB, measured ones 8 MB. In memory it is up to twenty times that
UNPACKING_BYTES = 128 << 20  # memory for a compressed file; `xz -9` asks for 65 MiB
PORTS = 64  # 32; the simulated core has its sets of ports in 64 bits
SCHEDULERS = 64  # 17; as many queues has the simulated core
CLUSTERS = 8  # 2; the simulated core has room for as many
RESOURCES = 1024  # measured models have up to about 100
FORMS = 1 << 16  # 16 879; no instruction table has so many, RISC-V's under every VTYPE included
OPERATIONS = 64  # 9 kinds of micro-operations in one form; the simulated core holds 256 operations
PORT_SETS = 256  # 21 different ones in all forms; bindings are looked for over all of a block's
ALL_OPERATIONS = 1 << 18  # 34 219 kinds in all forms together
NAME = 400  # characters of a name; a set of all 32 ports by name has 200
TEXT = 20_000  # characters of a note
NOTES = 1000


class Range(msgspec.Struct, frozen=True):
    """The least and the most of a number, both included."""

    least: float
    most: float

    def has(self, value: float) -> bool:
        """Whether a number is in the range; infinities and what is no number are in none."""
        return self.least <= value <= self.most


WIDTH = Range(0.125, 64)  # slots per cycle; 14
FETCH = Range(1, 4096)  # bytes of code per cycle, 64 on the cores of today; 0 where it is no limit
LENGTH = Range(1, 15)  # bytes of an instruction of x86-64, which has the longest
LENGTHS = 15  # of instructions
EVENNESS = Range(0, 1)  # share of a way; 1/8 on a Zen 4
NOPS = Range(0, 16)  # in a slot: 2
BESIDE = Range(0, 64)  # slots of others; 3 on a Zen 5
PATIENCE = Range(0, 7)  # cycles, 4 on a Zen 4: longer than results of operations that are dealt out are apart
BLUR = Range(0, 64)  # instructions or operations of a part, of which 16 on a Zen 5: some cycles off
QUEUE = Range(8, 128)  # in front of vector ports: of half of them 32 on a Zen 4, of one 16 on a Zen 5
CYCLES = Range(0, 1e6)  # 4103; what takes a quarter of a millisecond is no instruction but a trap
BUSY = Range(1e-6, 1e6)  # cycles, micro-operations, and both multiplied; 0 is none
SLOTS = Range(0, 1e6)  # 156; of microcode
REORDER_BUFFER = Range(0, 1 << 13)  # 792 entries; the simulated core has room for the operations of each
ENTRIES = Range(0, 1 << 20)  # of other buffers; as many has one without a limit
CAPACITY = Range(1e-3, 1e3)  # cycles per cycle that a shared resource offers
WORK = Range(1e-6, 1e9)  # units of work in an iteration
DATABASE = b"SQLite format 3\x00"  # a file that begins so is a store of measurements, and no model


# --- forms, of which there are many, and mostly nothing is wrong ---------------------------------------


def no_form_is_wrong(model: MachineModel, pairs: Mapping[str, Set[str]]) -> bool:
    """Whether the check of single forms would find nothing; `pairs` are those that each may have."""
    costs = list(model.forms.values())
    known = ((pairs.get(name), cost) for name, cost in model.forms.items())
    return (
        all(own is not None and _has_pairs(own, cost) for own, cost in known)
        and _is_sound_work([op for cost in costs for op in cost.operations or ()], len(model.ports))
        and all(len(cost.operations or ()) <= OPERATIONS for cost in costs)
        and model.resources.keys() >= {name for cost in costs for name in cost.resources}
        and {cost.idiom for cost in costs} <= {"", "zero", "breaking"}
        and _are_short({cost.confidence for cost in costs}, NAME)
        and _are_short({text for cost in costs for text in (cost.note, *cost.alternatives)}, TEXT)
        and _are_in_range(costs)
    )


def _has_pairs(known: Set[str], cost: FormCost) -> bool:
    return known >= cost.latencies.keys() and known >= cost.ranges.keys() and known >= cost.with_room.keys()


def _is_sound_work(work: list[Operation], ports: int) -> bool:
    sets, there = {op.ports for op in work}, range(ports)
    return (
        all(0 < len(some) == len(set(some)) and set(some).issubset(there) for some in sets)
        and all(map(BUSY.has, {n for op in work for n in (op.count, op.cycles)}))
        and all(map(BUSY.has, {op.count * op.cycles for op in work}))
    )


def _are_short(texts: set[str], most: int) -> bool:
    return all(len(text) <= most and text.isprintable() for text in texts)


def _are_in_range(costs: list[FormCost]) -> bool:
    cycles = {n for cost in costs for by in (cost.latencies, cost.resources) for n in by.values()}
    ends = {both for cost in costs for both in cost.ranges.values()}
    slots = {n for cost in costs for n in (cost.slots, *(cost.slot_range or ())) if n is not None}
    busy = {
        n for cost in costs for n in (
            cost.throughput, cost.throughput_most, cost.indexed_throughput, cost.throughput_error or None
        ) if n is not None
    }  # fmt: skip
    room = [(n, cost.latencies.get(pair, 0)) for cost in costs for pair, n in cost.with_room.items()]
    return (
        all(map(CYCLES.has, cycles))
        and all(CYCLES.least <= least <= most <= CYCLES.most for least, most in ends)
        and all(map(SLOTS.has, slots))
        and all(map(BUSY.has, busy))
        and all(CYCLES.least <= n <= most for n, most in room)
    )
