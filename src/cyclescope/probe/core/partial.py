"""Does a write of a part of a register wait for the rest of it?

A narrow operation on a register alternates with a narrow write to it that does not need its value. If the
write is merged, both make one chain, as with a second operation that reads the old value; if parts are
renamed separately, the loop is as short as with a write of the whole register. Flags: an instruction that
writes all flags but the carry stands in a chain of additions with carry, and either lengthens it or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import written
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import Model, Probe, ProbeCase, ProbeVerdict, Readings, chain, parallel
from cyclescope.remarks.probing import NotAsked


class Part(NamedTuple):
    """A part of a register: a write of it, a read and write, a write of the whole, and a narrow operation.

    Where no read and write takes as little as merging may, it is none: the operation alone waits for itself.
    """

    subject: str
    write: str
    modify: str
    whole: str
    narrow: str


_PARTS: Mapping[str, tuple[Part, ...]] = {
    "x86-64": (
        Part("8 bits", "MOV_88 (R8l, R8l): a c", "ADD_00 (R8l, R8l): a c", "MOVZX (R32, R8l): a c",
             "SHL (R8l, I8): a #3"),
        Part("16 bits", "MOV_89 (R16, R16): a c", "ADD_01 (R16, R16): a c", "MOVZX (R32, R16): a c",
             "SHL (R16, I8): a #3"),
        Part("low 32 bits of XMM", "MOVSS_0F10 (XMM, XMM): a c", "",
             "MOVAPS_0F28 (XMM, XMM): a c", "MULSS (XMM, XMM): a d"),
        Part("flags but the carry", "INC (R64): e", "ADC_11 (R64, R64): e d", "LEA_B_D32 (R64): e d",
             "ADC_11 (R64, R64): a d"),
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    for part in _PARTS.get(isa, ()):
        points = (
            parallel("asked", *written(isa, part.narrow, part.write)),
            chain("waits", *written(isa, *filter(None, (part.narrow, part.modify)))),
            parallel("free", *written(isa, part.narrow, part.whole)),
        )
        yield ProbeCase(part.subject, points)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    asked, waits, free = (readings.get(part) for part in ("asked", "waits", "free"))
    answer = CoreAnswer.MERGED if is_higher(asked, free, waits) else CoreAnswer.APART
    return ProbeVerdict(answer, None, steady(asked, waits, free))


PROBE = Probe(
    "partial-registers",
    "Does a write of a part of a register wait for the rest of it?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, partial_register_stall",),
    dict.fromkeys(("aarch64", "riscv64"), NotAsked.NARROW_CLEARS.of()),
    events=("uops",),
)
