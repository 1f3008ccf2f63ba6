"""What do instructions take of which several get ready at once?

A core that chooses ports when operations start gives each a free one. One that chooses them before, when
nobody knows what will be ready when, sends some to ports that are busy, and a chain waits for what only hangs
on it. So chains of one-cycle operations are asked with others that read what they write, fewer than fill the
ports; a model says what each policy makes of that (`infer.scheduler`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cyclescope.model.facts import SCHEDULER, CoreAnswer
from cyclescope.probe.code import written
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, parallel

_ADD, _READ, _SHIFT, _SHIFTED = "chained", "reading", "chained shift", "shift reading"
_TEXTS: Mapping[str, Mapping[str, str]] = {
    "x86-64": {
        _ADD: "ADD_01 (R64, R64): {} h", _READ: "CMP_39 (R64, R64): {} h",
        _SHIFT: "SHL (R64, I8): {} #1", _SHIFTED: "RORX (R64, R64, I8): f {} #1",
    },
    "aarch64": {
        _ADD: "ADDXrs: {0} {0} h #0", _READ: "ADDXrs: f {0} h #0",
        _SHIFT: "LSLVXr: {0} {0} h", _SHIFTED: "LSLVXr: f {0} h",
    },
    "riscv64": {
        _ADD: "ADD: {0} {0} h", _READ: "ADD: f {0} h", _SHIFT: "SLL: {0} {0} h", _SHIFTED: "SLL: f {0} h",
    },
}  # fmt: skip
# Per round, in the order of the program: operations, and the register of the chain that they are of or read.
_ROUNDS: tuple[tuple[tuple[str, str], ...], ...] = (
    ((_ADD, "a"), (_READ, "a")),
    ((_ADD, "a"), (_READ, "a"), (_READ, "a")),
    ((_ADD, "a"), (_READ, "a"), (_READ, "a"), (_READ, "a")),
    ((_ADD, "a"), (_ADD, "b"), (_READ, "a")),
    ((_ADD, "a"), (_ADD, "b"), (_READ, "a"), (_READ, "b")),
    ((_ADD, "a"), (_ADD, "b"), (_ADD, "c")),
    ((_ADD, "a"), (_ADD, "b"), (_ADD, "c"), (_READ, "a")),
    ((_ADD, "a"), (_ADD, "a"), (_READ, "a"), (_READ, "a"), (_READ, "a")),
    ((_SHIFT, "a"), (_READ, "a"), (_READ, "a")),
    ((_SHIFT, "a"), (_SHIFTED, "a")),
    ((_SHIFT, "a"), (_SHIFTED, "a"), (_READ, "a")),
    ((_SHIFT, "a"), (_ADD, "a"), (_READ, "a"), (_SHIFTED, "a")),
)


def scheduler_cases(isa: str) -> Iterator[tuple[str, Point]]:
    """Subjects with their kernels, whose rounds are one instance each."""
    texts = _TEXTS.get(isa)
    for one in _ROUNDS if texts else ():
        subject = ", ".join(f"{what} {chain}".strip() for what, chain in one)
        lines = written(isa, *(texts[what].format(chain) for what, chain in one if texts))
        yield subject, parallel("asked", *lines)


def _cases(isa: str) -> Iterator[ProbeCase]:
    for subject, point in scheduler_cases(isa):
        yield ProbeCase(subject, (point,))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    return ProbeVerdict(CoreAnswer.VALUE, readings.get("asked"))


PROBE = Probe(
    SCHEDULER,
    "What do instructions take of which several get ready at once?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Abel and Reineke, uiCA (2022), section 4.2",),
)
