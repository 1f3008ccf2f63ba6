"""Does what stands behind a barrier wait until all before it has ended, and what does it take then?

A barrier with a chain of multiplications behind it, of integers or of vectors, as against the chain alone.
Where the chain goes on while the barrier waits, the longer of both takes the time; where it waits for the
barrier, and the next barrier for it, they take their times one after the other, and some cycles more. A chain
twice as long takes as much more then as it does alone: a barrier that hides the chain does not tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import BARRIERS, VECTOR, CoreAnswer, barrier_subject
from cyclescope.probe.code import written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import Model, Probe, ProbeCase, ProbeVerdict, Readings, chain

_LENGTHS = (16, 32)  # multiplications: longer than what MFENCE of a Zen 5 hides of a chain, 24 cycles
_BEGINS = 1.0  # cycles behind a barrier until what waits for it is executed, at least
_ALONE, _BEHIND = "alone", "behind"
_MULTIPLIED = {
    "x86-64": ("IMUL (R64, R64): a e", "MULPS (XMM, XMM): a c"),
    "aarch64": ("MADDXrrr: a a e f", "FMULv4f32: a a c"),
    "riscv64": ("MUL: a a e", "FMUL_D: a a c"),
}  # integers, and vectors or floats
_BARRIERS = {
    "x86-64": {"LFENCE": "LFENCE", "MFENCE": "MFENCE"},
    "aarch64": {"DMB": "DMB: #11", "DSB": "DSB: #11", "ISB": "ISB: #15"},
    "riscv64": {"FENCE": "FENCE: #3 #3", "FENCE.I": "FENCE_I"},
}  # by mnemonic: reads and writes of all CPUs wait


def _cases(isa: str) -> Iterator[ProbeCase]:
    for mnemonic, text in _BARRIERS.get(isa, {}).items():
        for of, multiplied in zip(("", VECTOR), _MULTIPLIED[isa], strict=True):
            points = (
                chain(part, *written(isa, *before, *[multiplied] * length), x=length)
                for part, before in ((_ALONE, ()), (_BEHIND, (text,)))
                for length in _LENGTHS
            )
            yield ProbeCase(barrier_subject(mnemonic, of), tuple(points), mnemonic == "LFENCE")


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    alone, behind = ([readings.get(part, length) for length in _LENGTHS] for part in (_ALONE, _BEHIND))
    longer, grown = behind[-1] - alone[-1], behind[-1] - behind[0]
    is_steady = steady(*alone, *behind)
    if longer.high < _BEGINS or not is_higher(grown, Interval(0.0, 0.0), alone[-1] - alone[0]):
        return ProbeVerdict(CoreAnswer.ABSENT, None, is_steady)
    return ProbeVerdict(CoreAnswer.PRESENT, longer, is_steady)


PROBE = Probe(
    BARRIERS,
    "Does what stands behind a barrier wait until all before it has ended?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Intel and AMD, software developer's manuals, LFENCE",),
)
