"""What do instructions take of which several get ready at once?

A core that chooses ports when operations start gives each a free one. One that chooses them before, when
nobody knows what will be ready when, sends some to ports that are busy, and a chain waits for what only hangs
on it. One that wakes up the readers of a result when the operation asks for a port, not when it gets one,
loses ports to readers that are too early. One whose ports write one result in a cycle makes short operations
wait for longer ones. So one-cycle operations are asked with others that read what they write, near and far,
few and many, and with slower ones on their ports. Of operations on vectors some need ports that others take,
too; and of chains of them as many overlap as there is room for in front of the ports. A model says what each
way to schedule makes of all that (`infer.scheduler`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cyclescope.model.facts import IDLING, MAKING, READ_APART, READING, SCHEDULER, CoreAnswer
from cyclescope.probe.code import written
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, parallel

CHAINED, VECTOR_ADDED, MADE_LATE = "chained", "adding vectors", "late making"
_READ, _MAKE, _IDLE, _PASS = READING, MAKING, IDLING, "passing"
_SHIFT, _SHIFTED, _SHIFT_MAKE, _SLOW = "chained shift", "shift reading", "making shift", "slow making"
_CHOOSE, _BRING = "choosing", "bringing"
_SHIFT_ALL, _MIX, _ADD_REAL, _TIMES = "shifting vectors", "shuffling", "adding reals", "multiplying"
_TEXTS: Mapping[str, Mapping[str, str]] = {
    "x86-64": {
        CHAINED: "ADD_01 (R64, R64): {} h", _READ: "CMP_39 (R64, R64): {} h",
        _MAKE: "LEA_B_D8 (R64): {} h +8", _IDLE: "CMP_39 (R64, R64): g h",
        _PASS: "LEA_B_D8 (R64): {1} {0} +8",
        _SHIFT: "SHL (R64, I8): {} #1", _SHIFTED: "RORX (R64, R64, I8): f {} #1",
        _SHIFT_MAKE: "RORX (R64, R64, I8): {} h #1", _SLOW: "IMUL (R64, R64, I8): {} h #3",
        _CHOOSE: "CMOVZ (R64, R64): {} h", _BRING: "PMOVMSKB (R64, XMM): {} h",
        MADE_LATE: "PDEP (R64, R64, R64): {} h h",
        VECTOR_ADDED: "VPADDD (YMM, YMM, YMM): {1} {0} h", _SHIFT_ALL: "VPSLLD (YMM, YMM, I8): {1} {0} #3",
        _MIX: "VPSHUFD (YMM, YMM, I8): {1} {0} #1", _ADD_REAL: "VADDPS (YMM, YMM, YMM): {1} {0} h",
        _TIMES: "VMULPS (YMM, YMM, YMM): {1} {0} h",
    },
    "aarch64": {
        CHAINED: "ADDXrs: {0} {0} h #0", _READ: "ADDXrs: f {0} h #0",
        _MAKE: "ADDXrs: {0} h h #0", _IDLE: "ADDXrs: f h h #0", _PASS: "ADDXrs: {1} {0} h #0",
        _SHIFT: "LSLVXr: {0} {0} h", _SHIFTED: "LSLVXr: f {0} h",
        _SHIFT_MAKE: "LSLVXr: {0} h h", _SLOW: "MADDXrrr: {0} h h z",
        VECTOR_ADDED: "ADDv4i32: {1} {0} h", _SHIFT_ALL: "SHLv4i32_shift: {1} {0}",
        _MIX: "ZIP1v4i32: {1} {0} h", _ADD_REAL: "FADDv4f32: {1} {0} h", _TIMES: "FMULv4f32: {1} {0} h",
    },
    "riscv64": {
        CHAINED: "ADD: {0} {0} h", _READ: "ADD: f {0} h", _MAKE: "ADD: {0} h h", _IDLE: "ADD: f h h",
        _PASS: "ADD: {1} {0} h",
        _SHIFT: "SLL: {0} {0} h", _SHIFTED: "SLL: f {0} h",
        _SHIFT_MAKE: "SLL: {0} h h", _SLOW: "MUL: {0} h h",
    },
}  # fmt: skip
# Per round, in the order of the program: operations, and the registers that they read or write.
_ROUNDS: tuple[tuple[tuple[str, str], ...], ...] = (
    ((CHAINED, "a"), (_READ, "a")),
    ((CHAINED, "a"), (_READ, "a"), (_READ, "a")),
    ((CHAINED, "a"), (_READ, "a"), (_READ, "a"), (_READ, "a")),
    ((CHAINED, "a"), (CHAINED, "b"), (_READ, "a")),
    ((CHAINED, "a"), (CHAINED, "b"), (_READ, "a"), (_READ, "b")),
    ((CHAINED, "a"), (CHAINED, "a"), (_READ, "a"), (_READ, "a"), (_READ, "a")),
    ((CHAINED, "a"), (CHAINED, "b"), (CHAINED, "c"), (_READ, "a")),
    ((_SHIFT, "a"), (_READ, "a"), (_READ, "a")),
    ((_SHIFT, "a"), (_SHIFTED, "a")),
    ((_SHIFT, "a"), (_SHIFTED, "a"), (_READ, "a")),
    ((_SHIFT, "a"), (CHAINED, "a"), (_READ, "a"), (_SHIFTED, "a")),
    *(tuple((CHAINED, name) for name in "abcdefgh"[:many]) for many in range(3, 7)),
    *(((CHAINED, "a"), *many * ((_IDLE, ""),)) for many in (1, 2, 3, 4)),
    *(((CHAINED, "a"), (_READ, "a"), *many * ((_IDLE, ""),)) for many in (1, 2, 3)),
    ((CHAINED, "a"), (CHAINED, "b"), (_IDLE, "")),
    ((CHAINED, "a"), (CHAINED, "b"), (_IDLE, ""), (_IDLE, "")),
    ((CHAINED, "a"), (_MAKE, "b"), (_READ, "b")),
    ((CHAINED, "a"), (_READ, "a"), (_MAKE, "b"), (_READ, "b")),
    ((CHAINED, "a"), (_MAKE, "b"), (_READ, "b"), (_IDLE, "")),
    ((CHAINED, "a"), (_SHIFTED, "a"), (_READ, "a")),
    ((CHAINED, "a"), (_READ, "a"), (_SHIFT_MAKE, "b"), (_READ, "b")),
    *(((_MAKE, "a"), *many * ((_READ, "a"),)) for many in (1, 2, 3)),
    *(((_MAKE, "a"), *apart * ((_IDLE, ""),), (_READ, "a")) for apart in READ_APART if apart),
    ((_MAKE, "a"), (_MAKE, "b"), (_READ, "a"), (_READ, "b")),
    ((_MAKE, "a"), (_MAKE, "b"), (_MAKE, "c"), (_READ, "a"), (_READ, "b"), (_READ, "c")),
    ((_MAKE, "a"), (CHAINED, "a"), (_READ, "a")),
    ((_MAKE, "a"), (CHAINED, "a"), (CHAINED, "a"), (CHAINED, "a"), (_READ, "a")),
    ((_MAKE, "a"), (_MAKE, "b"), (_MAKE, "c"), (_MAKE, "d"), (_READ, "a")),
    ((_MAKE, "a"), (_SHIFTED, "a")),
    ((_MAKE, "a"), (_SHIFTED, "a"), (_READ, "a"), (_IDLE, "")),
    ((_SHIFT_MAKE, "a"), (_READ, "a")),
    ((_SHIFT_MAKE, "a"), (_READ, "a"), (_READ, "a")),
    ((_SHIFT_MAKE, "a"), (_SHIFTED, "a")),
    ((CHAINED, "a"), (_PASS, "ab"), (_READ, "b")),
    ((CHAINED, "a"), (_PASS, "ab"), (_PASS, "bc"), (_READ, "c")),
    ((CHAINED, "a"), (_PASS, "ab"), (_PASS, "bc")),
    ((CHAINED, "a"), (_PASS, "ab"), (_READ, "a"), (_READ, "b")),
    *(  # more next to each other than get ports in a cycle, where each port gets one
        (*((_SHIFT_MAKE, name) for name in "abcda"[:shifts]), *((_MAKE, name) for name in "efgef"[:others]))
        for shifts, others in ((3, 2), (3, 3), (3, 4), (4, 2), (4, 4), (5, 3), (5, 5))
    ),
    ((_SLOW, "a"), (_READ, "a")),
    ((_SLOW, "a"), (_READ, "a"), (_READ, "a"), (_IDLE, "")),
    *(  # of which some find no port in a cycle where others got those that these need
        tuple(zip(many, "abcdef", strict=True))
        for many in (
            (_MAKE, _CHOOSE, _CHOOSE, _MAKE, _SHIFT_MAKE, _SHIFT_MAKE),
            (_MAKE, _MAKE, _CHOOSE, _MAKE, _SHIFT_MAKE, _SHIFT_MAKE),
            (_MAKE, _CHOOSE, _MAKE, _SHIFT_MAKE, _SHIFT_MAKE, _CHOOSE),
        )
    ),
    *(  # results of one port that come together, if short operations start when they are ready
        tuple(zip(many, "abcdefgB", strict=False))
        for many in (
            (_SLOW, _SHIFT_MAKE, _SHIFT_MAKE),
            (_MAKE, _SHIFT_MAKE, _SLOW, _SHIFT_MAKE),
            (*3 * (_SLOW,), *3 * (_SHIFT_MAKE,)),
            (*4 * (_SHIFT_MAKE,), *3 * (_SLOW,)),
            (*4 * (_SLOW,), *4 * (_SHIFT_MAKE,)),
        )
    ),
    *(  # which of their ports get those that can use some of several parts of all
        (
            *zip(many * (_SLOW,), "ab", strict=False),
            *zip(3 * (_SHIFT_MAKE,), "cde", strict=True),
            *zip((5 - many) * (VECTOR_ADDED,), ("ha", "hb", "hc", "hd"), strict=False),
        )
        for many in (1, 2)
    ),
    *(  # the same of operations with the ports of shifts
        ((MADE_LATE, "a"), *zip(many, "bcdef", strict=False))
        for many in (
            (_SHIFT_MAKE,),
            2 * (_SHIFT_MAKE,),
            3 * (_SHIFT_MAKE,),
            (MADE_LATE, _SHIFT_MAKE),
            *(many * (_MAKE,) for many in (1, 2, 3, 5)),
        )
    ),
    *(  # what vector units send to the ports of operations that were dealt without it
        ((_BRING, "a"), *zip(many, "bcde", strict=False))
        for many in (2 * (_MAKE,), 3 * (_MAKE,), 4 * (_MAKE,), 3 * (_SHIFT_MAKE,), (_SLOW,), 2 * (_SLOW,))
    ),
)
_WIDE = "wide"  # the same in the widest registers, which some cores take in two parts
_OVER = "habcdefgABCDE"  # registers of a chain, of which each is made of the one before


def _one_after_the_other(kinds: Sequence[str], many: int) -> tuple[tuple[str, str], ...]:
    return tuple((kinds[n % len(kinds)], _OVER[n : n + 2]) for n in range(many))


_VECTOR_ROUNDS: tuple[tuple[tuple[str, str], ...], ...] = (
    # chains: as many rounds overlap as find room in front of the ports
    *(_one_after_the_other((_TIMES, _ADD_REAL), many) for many in (4, 8, 12)),
    *(_one_after_the_other((_TIMES, VECTOR_ADDED), many) for many in (4, 8, 12)),
    # some that need certain ports, beside others that take these, too
    (*((_SHIFT_ALL, p) for p in ("ha", "hb", "hc")), *((VECTOR_ADDED, p) for p in ("ad", "be", "cf"))),
    ((_MIX, "ha"), (VECTOR_ADDED, "hb"), (_MIX, "hc"), (VECTOR_ADDED, "hd"), (_TIMES, "he")),
    (*((VECTOR_ADDED, f"h{name}") for name in "abc"), (_ADD_REAL, "hd"), (_SHIFT_ALL, "he"), (_MIX, "hf")),
    (
        (_ADD_REAL, "ha"), (VECTOR_ADDED, "ab"), (VECTOR_ADDED, "bc"), (_MIX, "ad"), (_SHIFT_ALL, "ce"),
        (_ADD_REAL, "cf"), (_ADD_REAL, "fg"), (_MIX, "fA"),
    ),
    (
        (_SHIFT_ALL, "ha"), (_SHIFT_ALL, "ab"), (_ADD_REAL, "ac"), (VECTOR_ADDED, "bd"), (_TIMES, "de"),
        (_TIMES, "df"), (_ADD_REAL, "hg"), (VECTOR_ADDED, "eA"), (VECTOR_ADDED, "AB"), (_ADD_REAL, "BC"),
    ),
    (
        (_MIX, "ha"), (_ADD_REAL, "ab"), (VECTOR_ADDED, "ac"), (_SHIFT_ALL, "cd"), (VECTOR_ADDED, "ce"),
        (_SHIFT_ALL, "df"), (_ADD_REAL, "hg"), (VECTOR_ADDED, "eA"), (_MIX, "gB"),
    ),
)  # fmt: skip


def of_form(isa: str, what: str) -> str:
    """The form of an operation of the kernels, "" where the instruction set has none."""
    return _TEXTS[isa].get(what, "").partition(": ")[0]


def scheduler_cases(isa: str) -> Iterator[tuple[str, Point]]:
    """Subjects with their kernels, whose rounds are one instance each."""
    texts = _TEXTS.get(isa)
    known = (one for one in _ROUNDS if texts and {what for what, _ in one} <= texts.keys())
    for one in known:
        subject = ", ".join(f"{what} {chain}".strip() for what, chain in one)
        lines = written(isa, *(texts[what].format(*chain) for what, chain in one if texts))
        yield subject, parallel("asked", *lines)


def vector_cases(isa: str) -> Iterator[tuple[str, Point]]:
    """The same of operations on vectors, in both widths where a register file has two."""
    texts = _TEXTS.get(isa, {})
    for wide in (False, True) if VECTOR_ADDED in texts else ():
        for one in _VECTOR_ROUNDS:
            lines = [texts[what].format(*chain) for what, chain in one]
            if wide:
                lines = [line.replace("YMM", "ZMM") for line in lines if "YMM" in line]
            if lines:
                width = f", {_WIDE}" if wide else ""
                subject = ", ".join(f"{what} {chain}" for what, chain in one)
                yield subject + width, parallel("asked", *written(isa, *lines))


def _cases(isa: str) -> Iterator[ProbeCase]:
    for subject, point in (*scheduler_cases(isa), *vector_cases(isa)):
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
