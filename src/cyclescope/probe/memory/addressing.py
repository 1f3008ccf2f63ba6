"""Does an instruction need more of the front end, or of the units, for what its address is made of?

A few instances stand among many instructions that need a slot each and nothing else, or among additions
that keep all units busy. If an address with an index, or with the stack pointer, needs more than one with a
base alone, the loop takes longer. By how much one more slot, or addition, per instance lengthens it says
whether they need one. Where NOPs share slots, instructions of several units are what needs a slot each
(`probe.slots`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from cyclescope.model.facts import (
    ADDRESSING,
    CONSTANT_BITS,
    Addressed,
    More,
    addressed_subject,
    stacked_constant,
)
from cyclescope.probe.code import NUMBERS, Setting, written
from cyclescope.probe.levels import ADDRESSED_SO, AMONG_OTHERS, places_taken
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.probe.slots import FILLERS, LIKE, in_turn, nops_share, rate_of_units, slot_points
from cyclescope.remarks.probing import NotAsked, UnclearCore

_INDEX = "o"
_ISA = "x86-64"
_NOP, _ADDITION = FILLERS[_ISA].nop, "LEA_B_D8 (R64): @ p +8"
_UNITS = ", among units"  # behind a part
_INDEXED: Mapping[Addressed, str] = {
    Addressed.STORE: "MOV (M64, R64): p a {} +{}",
    Addressed.OPERATION: "CMP (R64, M64): a p {} +{}",
    Addressed.UPDATE: "ADD (M64, R64): p a {} +{}",
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa != _ISA:
        return
    for which in _INDEXED:
        for more in More:
            yield _case(addressed_subject(which, more), more, *_texts(which))
    for bits in CONSTANT_BITS:
        text = f"MOV (M{bits}, I{min(bits, 32)}): {{}} #7 +{{}}"
        subject = addressed_subject(stacked_constant(bits), More.ADDITIONS)
        yield _case(subject, More.ADDITIONS, text.replace("{}", "s", 1), text.replace("{}", "p", 1))


def _texts(which: Addressed) -> tuple[str, str]:
    """What is asked about by a base with an index, and by a base."""
    text = _INDEXED[which]
    return text.replace("{}", f"*{_INDEX}", 1), text.replace("{}", "", 1)


def _case(subject: str, more: More, asked: str, plain: str) -> ProbeCase:
    """The instructions by both addresses, and by the plain one among more of what is beside them."""
    if more is More.SLOTS:
        nops = _among(asked, plain, [_NOP])
        return ProbeCase(subject, (*nops, *slot_points(_ISA)))
    points = _among(asked, plain, [_ADDITION])
    return ProbeCase(subject, (*points, _point("wider", plain, [_ADDITION], AMONG_OTHERS, ADDRESSED_SO)))


def _among(asked: str, plain: str, others: Sequence[str], behind: str = "") -> tuple[Point, ...]:
    """Both among others, and the plain one among more of them."""
    return (
        _point(f"asked{behind}", asked, others, AMONG_OTHERS),
        _point(f"plain{behind}", plain, others, AMONG_OTHERS),
        _point(f"more{behind}", plain, others, AMONG_OTHERS + ADDRESSED_SO),
    )


def _point(part: str, text: str, others: Sequence[str], count: int, nops: int = 0) -> Point:
    """A body of what is asked about, each in front of as many others, which are in turn."""
    rest = iter(in_turn(others, count))
    texts = []
    for n in range(ADDRESSED_SO):
        texts += [
            text.format(64 + 8 * n),
            *[_NOP] * (nops // ADDRESSED_SO),
            *islice(rest, count // ADDRESSED_SO),
        ]
    setting = Setting(numbers=((NUMBERS[_ISA][_INDEX], 0),))
    return parallel(part, *written(_ISA, *texts), setting=setting, count=ADDRESSED_SO)


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Others than NOPs, where these share slots."""
    if case.subject.endswith(More.SLOTS) and nops_share(readings):
        which = next(one for one in _INDEXED if case.subject == addressed_subject(one, More.SLOTS))
        asked, plain = _texts(which)
        yield from _among(asked, plain, FILLERS[_ISA].units, _UNITS)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if case.subject.endswith(More.ADDITIONS):
        return places_taken(readings, True, UnclearCore.NOT_SLOTS.of())
    if not nops_share(readings):
        return places_taken(readings, False, UnclearCore.NOT_SLOTS.of())
    parts = {(part, 0): readings.get(f"{part}{_UNITS}") for part in ("asked", "plain", "more")}
    slot = rate_of_units(_ISA, readings).inverse()
    if abs((parts["more", 0] - parts["plain", 0]).value - slot.value) > LIKE * slot.value:
        raise Unresolved(UnclearCore.NOT_SLOTS.of())
    return places_taken(Readings(parts, {}), False, UnclearCore.NOT_SLOTS.of())


PROBE = Probe(
    ADDRESSING,
    "Does an instruction need more slots, or units, for what its address is made of?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("AMD, Software Optimization Guide for Family 19h (56665), 2.9.3", "Agner Fog, microarchitecture"),
    dict.fromkeys(("aarch64", "riscv64"), NotAsked.NO_SUCH_STORES.of()),
    more=_more,
)
