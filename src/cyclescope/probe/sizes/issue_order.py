"""Does an instruction begin before older ones that have to wait?

Two chains of operations that do not wait for each other, a few of one and then a few of the other: a core
that issues in order begins the second when the last of the first begins; any other works on both at once.
Controls are the same operations by turns, of which all cores work on both, and all of them in one chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import written
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import Model, Probe, ProbeCase, ProbeVerdict, Readings, parallel

RUN = 8  # of each chain: in order all but the last are waited for; any scheduler holds as many
_ASKED, _TURNS, _ONE = "one after the other", "by turns", "in one chain"
_KINDS: Mapping[str, Mapping[str, str]] = {
    "x86-64": {"multiplications": "IMUL (R64, R64): @ d", "vector additions": "ADDPS (XMM, XMM): @ d"},
    "aarch64": {"multiplications": "MADDXrrr: @ @ d z", "vector additions": "FADDDrr: @ @ d"},
    "riscv64": {"multiplications": "MUL: @ @ d", "additions of doubles": "FADD_D: @ @ d"},
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    for subject, text in _KINDS.get(isa, {}).items():
        first, second = (written(isa, text.replace("@", number)) for number in "ab")
        points = (
            parallel(_ASKED, *first * RUN, *second * RUN),
            parallel(_TURNS, *(*first, *second) * RUN),
            parallel(_ONE, *first * 2 * RUN),
        )
        yield ProbeCase(subject, points)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    asked, turns, one = (readings.get(part) for part in (_ASKED, _TURNS, _ONE))
    answer = CoreAnswer.IN_ORDER if is_higher(asked, turns, one) else CoreAnswer.OUT_OF_ORDER
    return ProbeVerdict(answer, None, steady(asked, turns, one))


PROBE = Probe(
    "issue-order",
    "Does an instruction begin before older ones that have to wait?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, out_of_order",),
)
