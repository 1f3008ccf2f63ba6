"""What does it take to go from VEX instructions of 256 bits to legacy SSE and back?

SSE keeps the upper halves of registers. Some cores save and restore all of them when instructions of the two
kinds come in turn; others merge each result with the upper half that was there, for which it has to wait.
That is told apart by chains of both kinds side by side, with one and with eight of each in turn, compared
with the same all in VEX; and by SSE alone, behind upper halves that were set and behind VZEROUPPER. Those of
512 bits may matter where those of 256 do not: a Zen 4 executes half as many SSE operations a cycle then.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import (
    ASKED_IN_A_ROW,
    CLEARING,
    SSE_IN_A_ROW,
    SSE_SIDE_BY_SIDE,
    UPPER_HALVES,
    VECTOR_STATES,
    CoreAnswer,
)
from cyclescope.probe.code import PARALLEL, KernelLine, written
from cyclescope.probe.levels import is_higher, precise, steady
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    parallel,
)
from cyclescope.remarks.probing import NotAsked

IN_A_ROW = 8  # of a kind: what each of them takes longer is eight times as much, and a transition is one
LEAST_CYCLES = 0.25  # so large an error may be, however small the value is
_ASKED, _BESIDE = "asked", "beside"  # a reading, and what it is longer than
_WAITS, _FREE = "waits", "free"
_ISA, _CLEAR = "x86-64", CLEARING
_SSE, _VEX_128 = f"{ASKED_IN_A_ROW}: @ c", "VADDPS (XMM, XMM, XMM): @ @ c"
_WIDE = {128: _VEX_128, 256: "VADDPS (YMM, YMM, YMM): @ @ c", 512: "VADDPS (ZMM, ZMM, ZMM): @ @ c"}
_SET, _SET_512 = "VMOVUPS (YMM, M256): @ p", "VMOVUPS (ZMM, M512): @ p"  # the upper half as well
_SLOW, _WRITE = "MULPS (XMM, XMM): @ c", "CVTDQ2PS (XMM, XMM): @ c"  # the second does not read the register
_TARGETS = "abefghAB"  # of operations that do not wait for each other; c holds a number


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa == _ISA:
        yield from _mixed()
        yield from _alone()


def _mixed() -> Iterator[ProbeCase]:
    """Chains of both kinds in one kernel: one in register a, the other in b."""
    for bits in _WIDE:
        subject = f"VEX of {bits} bits and SSE in turn"
        yield _longer(subject, _turns(bits, _SSE), _turns(bits, _VEX_128), bits == 256)
    subject = f"VEX of 256 bits and SSE in turn, {IN_A_ROW} of each"
    yield _longer(subject, _turns(256, _SSE, IN_A_ROW), _turns(256, _VEX_128, IN_A_ROW))
    cleared = _turns(256, _VEX_128, between=_CLEAR)
    subject = f"VEX of 256 bits, {_CLEAR} and SSE in turn"
    yield _longer(subject, _turns(256, _SSE, between=_CLEAR), cleared)
    yield _longer(_CLEAR, cleared, _turns(256, _VEX_128))


def _longer(
    subject: str, asked: tuple[KernelLine, ...], beside: tuple[KernelLine, ...], quick: bool = True
) -> ProbeCase:
    return ProbeCase(subject, (parallel(_ASKED, *asked), parallel(_BESIDE, *beside)), quick)


def _turns(bits: int, narrow: str, count: int = 1, between: str = "") -> tuple[KernelLine, ...]:
    """Wide operations on a, and then narrow ones on b."""
    wide = [_WIDE[bits].replace("@", "a")] * count
    return written(_ISA, *wide, *([between] if between else []), *[narrow.replace("@", "b")] * count)


def _alone() -> Iterator[ProbeCase]:
    """SSE without VEX but before it begins."""
    for bits, before in ((256, _SET), (512, _SET_512)):
        for how, targets in ((SSE_IN_A_ROW, "a"), (SSE_SIDE_BY_SIDE, _TARGETS)):
            lines = _at(targets, _SSE)
            points = (
                _behind(_ASKED, lines, _at(targets, before)),
                _behind(_BESIDE, lines, written(_ISA, _CLEAR)),
            )
            yield ProbeCase(f"{how}, {UPPER_HALVES[bits]}", points)
    for subject, before in (
        ("write by SSE, upper half set", _SET.replace("@", "a")),
        ("write by SSE, upper half cleared", _CLEAR),
    ):
        clear, pairs = written(_ISA, _CLEAR), [_SLOW, _WRITE]
        asked = _behind(_ASKED, _at("a", *pairs), written(_ISA, before))
        waits = _behind(_WAITS, _at("a", _SLOW), clear)
        free = _behind(_FREE, _at(_TARGETS, *pairs), clear, len(_TARGETS))
        yield ProbeCase(subject, (asked, waits, free))


def _at(targets: str, *texts: str) -> tuple[KernelLine, ...]:
    """Lines for each of some registers."""
    return written(_ISA, *[text.replace("@", target) for target in targets for text in texts])


def _behind(part: str, lines: tuple[KernelLine, ...], setup: tuple[KernelLine, ...], count: int = 1) -> Point:
    """Lines with something that is executed once before."""
    return Point(part, lines, 0, PARALLEL, count=count, setup=setup)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    asked = readings.get(_ASKED)
    if any(point.part == _WAITS for point in case.points):
        waits, free = readings.get(_WAITS), readings.get(_FREE)
        answer = CoreAnswer.MERGED if is_higher(asked, free, waits) else CoreAnswer.APART
        return ProbeVerdict(answer, None, steady(asked, waits, free))
    return ProbeVerdict(CoreAnswer.VALUE, precise(asked - readings.get(_BESIDE), LEAST_CYCLES))


PROBE = Probe(
    VECTOR_STATES,
    "What does it take to go from VEX instructions of 256 bits to legacy SSE and back?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, AVX_states", "Intel, optimization manual, mixing AVX code with SSE code"),
    {
        "aarch64": NotAsked.VECTORS_CLEAR.of(),
        "riscv64": NotAsked.KEEPS_NO_PART.of(),
    },
)
