"""How many bytes a cycle do loads and stores move that walk through as much memory?

Accesses go from the first byte to the last and start again at the first. Each run continues where the last
one ended, so that all of the memory is touched over and over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from cyclescope.kernel.state import CHAIN_BASE, FIRST_WINDOW
from cyclescope.model.facts import OF_GENERAL, VECTOR, VEX, CoreAnswer
from cyclescope.probe.code import CHAIN_PLACE, NUMBERS, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.levels import precise
from cyclescope.probe.memory.caches import KIB, SPACING
from cyclescope.probe.memory.transfers import Transfer, groups, with_register
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Unclear

WALK_SIZES = tuple(4 * KIB << n for n in range(11))  # bytes: powers of two, to which a place is cut
SHARED_FROM = KIB * KIB  # bytes: from here on caches are shared with others, or hold what pages lie where
MEMORY_DIFFERS = 0.1  # of the time: 4 MiB of a Zen 5 are loaded at 25.2 bytes a cycle by one process, at
# 29.7 by another
# Of the time: 16 KiB of a Zen 4 are loaded at 60.6 bytes a cycle in one run, at 64.1 in another, as a body
# takes a cycle more or not by how its run begins.
RUNS_DIFFER = 0.03
TOLD_SIZES = tuple(16 * KIB << 2 * n for n in range(5))  # of these, those that are told
BODY_BYTES = 1024  # of a body: less than the least size, and more than what it takes to go on hides
_WIDTHS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "x86-64": ((OF_GENERAL, 64), (VEX, 256), (VEX, 512)),
    "aarch64": ((OF_GENERAL, 64), (VECTOR, 128)),
    "riscv64": ((OF_GENERAL, 64),),
}
"""Kinds of loads and stores with their bits: those that programs have most, and the widest."""
_ADDRESSES, _BASES = "CcdD", "ghAB"  # of quarters of a body
_PART = "walk"
_LOADS, _STORES = "loads", "stores"


class Walking(NamedTuple):
    """How a walk goes on: where it has come to is a, which e cuts to the size; f is a body's bytes.

    `address` is made of a base for # and a in a register for @. `reach` are the bytes that the addresses of
    a body's quarters lie behind its beginnings, since an address may reach as far before as behind.
    """

    begin: str
    cut: str
    step: str
    address: str
    end: str
    reach: int = 0


WALKS: Mapping[str, Walking] = {
    "x86-64": Walking(
        "MOV (R64, M64): a p", "AND_21 (R64, R64): a e", "ADD_01 (R64, R64): a f", "LEA_B_I (R64): @ a #",
        "MOV (M64, R64): p a", 128,
    ),
    "aarch64": Walking(
        "LDRXui: a p", "ANDXrs: a a e #0", "ADDXrs: a a f #0", "ADDXrs: @ # a #0", "STRXui: a p",
    ),
    "riscv64": Walking("LD: a p", "AND: a a e", "ADD: a a f", "ADD: @ # a", "SD: a p"),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    for kind, bits in _WIDTHS.get(isa, ()):
        one = next(one for one in groups(isa)[kind] if one.bits == bits)
        for what in (_LOADS, _STORES):
            points = tuple(walked(isa, one, what, size) for size in WALK_SIZES)
            for size in TOLD_SIZES:
                is_quick = what == _LOADS and (kind, bits) in (_WIDTHS[isa][1:] or _WIDTHS[isa])
                yield ProbeCase(f"{what} of {bits} bits, {size // KIB} KiB", points, is_quick)


def walked(isa: str, one: Transfer, what: str, size: int) -> Point:
    """A walk through so many bytes, that goes on where the one before has ended."""
    way, numbers = WALKS[isa], NUMBERS[isa]
    lines: list[KernelLine] = []
    for quarter, address in enumerate(_ADDRESSES):
        lines += written(isa, way.address.replace("@", address).replace("#", _BASES[quarter]))
    for place in range(0, BODY_BYTES, one.bits // 8):
        lines += written(isa, _access(one, what, way.reach, place))
    lines += written(isa, way.step, way.cut, f"{way.end} +{CHAIN_PLACE}")
    begin = CHAIN_BASE - FIRST_WINDOW + way.reach
    quarters = BODY_BYTES // len(_BASES)
    setting = Setting(
        numbers=((numbers["e"], (size - 1) & -BODY_BYTES), (numbers["f"], BODY_BYTES)),
        pointers=tuple((numbers[base], begin + quarters * n) for n, base in enumerate(_BASES)),
        chain=(size // SPACING, SPACING),
    )
    setup = written(isa, f"{way.begin} +{CHAIN_PLACE}", way.cut)
    return Point(_PART, tuple(lines), size, PARALLEL, setting, 1, setup)


def _access(one: Transfer, what: str, reach: int, place: int) -> str:
    """A load or store of a place of the body, by the address of its quarter."""
    quarter, offset = divmod(place, BODY_BYTES // len(_ADDRESSES))
    text = one.load if what == _LOADS else one.store
    return f"{with_register(text, 'b').replace('@', _ADDRESSES[quarter])} {offset - reach:+d}"


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    size = int(case.subject.rpartition(", ")[2].removesuffix(" KiB")) * KIB
    taken = precise(readings.get(_PART, size))
    if taken.low <= 0:
        raise Unresolved(Unclear.NO_TIME_TAKEN.of())
    taken = taken.with_error(RUNS_DIFFER)
    if size >= SHARED_FROM:
        taken = msgspec.structs.replace(taken.with_error(MEMORY_DIFFERS), is_steady=False)
    return ProbeVerdict(CoreAnswer.VALUE, taken.inverse().scaled(BODY_BYTES))


PROBE = Probe(
    "bandwidth",
    "How many bytes a cycle do loads and stores move that walk through as much memory?",
    Model.RATIO,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_throughput", "LIKWID, bench"),
    unit="bytes per cycle",
    events=("L1-dcache-load-misses",),
    axis="bytes",
)
