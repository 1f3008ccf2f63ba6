"""Does an instruction need more of the front end, the units, or time for what its address is made of?

A few instances stand among many instructions that need a slot each and nothing else, or among additions
that keep all units busy. If an address with an index, or with the stack pointer, needs more than one with a
base alone, a comparison of the stack pointer more than one of another register, or a constant that is stored
more than a register, the loop takes longer. By how much one more slot, or addition, per instance lengthens it
says whether they need one. Slots are asked for among fewer and more others: what has to be the first, or the
last, of those that are dispatched in a cycle loses more by where it stands, so that the least counts, and is
less sure where it is more elsewhere. Where NOPs share slots, instructions of several units are what needs a
slot each (`probe.slots`). Constants are stored with nothing beside them, too, where they may come less often
than registers do. Loads in a row, each from where the one before says, show by how many cycles later they
come by an address with an index than by a base alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from cyclescope.kernel.state import FIRST_WINDOW
from cyclescope.model.facts import (
    ADDRESS_ENDS,
    ADDRESSING,
    CONSTANT_BITS,
    Addressed,
    AddressMade,
    CoreAnswer,
    More,
    addressed_subject,
    constants_alone,
    later_subject,
    stacked_constant,
    stored_constant,
)
from cyclescope.probe.code import CHAIN_PLACE, NUMBERS, Setting, written
from cyclescope.probe.levels import ADDRESSED_SO, AMONG_OTHERS, places_taken, steady
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    chain,
    parallel,
)
from cyclescope.probe.slots import (
    FILLERS,
    LIKE,
    among,
    ending,
    fillers_named,
    filling,
    in_turn,
    nops_share,
    rate_of_slots,
    slot_points,
)
from cyclescope.remarks.probing import NotAsked, UnclearCore

_INDEX = "o"
_ISA = "x86-64"
_NOP, _ADDITION = FILLERS[_ISA].nop, "LEA_B_D8 (R64): @ p +8"
_REGISTERS: Mapping[int, str] = {8: "R8l", 16: "R16", 32: "R32", 64: "R64"}
# Behind these, or `AMONG_OTHERS`, two more for each fill whole cycles of 4, 5, 6, 8 and 10 slots.
_OTHER_NUMBERS = (80, 112)
SAME_SLOTS = 0.5  # slots: half of the least that two numbers of them differ by
_ASKED: Mapping[Addressed, str] = {
    Addressed.STORE: "MOV (M64, R64): p a {} +{}",
    Addressed.OPERATION: "CMP (R64, M64): a p {} +{}",
    Addressed.UPDATE: "ADD (M64, R64): p a {} +{}",
    Addressed.POINTED: "CMP_39 (R64, R64): {} a",
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa != _ISA:
        return
    for which in _ASKED:
        for more in More:
            yield _case(addressed_subject(which, more), more, *_texts(which))
    for bits in CONSTANT_BITS:
        text = f"MOV (M{bits}, I{min(bits, 32)}): {{}} #7 +{{}}"
        subject = addressed_subject(stacked_constant(bits), More.ADDITIONS)
        constant, register = text.replace("{}", "p", 1), f"MOV (M{bits}, {_REGISTERS[bits]}): p a +{{}}"
        yield _case(subject, More.ADDITIONS, text.replace("{}", "s", 1), constant)
        subject = addressed_subject(stored_constant(bits), More.ADDITIONS)
        yield _case(subject, More.ADDITIONS, constant, register)
        lines = written(_ISA, *(constant.format(64 + 8 * n) for n in range(ADDRESSED_SO)))  # of one line
        yield ProbeCase(constants_alone(bits), (parallel("asked", *lines, count=ADDRESSED_SO),))
    for made in AddressMade:
        for end in ADDRESS_ENDS:
            yield _later_case(end, made)


def _later_case(end: str, made: AddressMade) -> ProbeCase:
    """Loads of the same pointer in a row, by a base alone and by an address with an index.

    An addition in between makes the pointer, as some cores have a shorter way from load to load.
    """
    numbers, is_short = NUMBERS[_ISA], made in (AddressMade.INDEXED, AddressMade.SCALED)
    scale = 1 if made in (AddressMade.INDEXED, AddressMade.DISPLACED) else 2
    other = CHAIN_PLACE if is_short else 0
    if end == "base":
        address, other = f"p *{scale}b", other // scale
    else:
        address, other = f"b *{scale}p", (other - (scale - 1) * FIRST_WINDOW) % (1 << 64)
    setting = Setting(
        numbers=((numbers["b"], other), (numbers["d"], 0)), stored=((CHAIN_PLACE, 0),),
        pointers=((numbers["p"], 0),),
    )  # fmt: skip
    more = "~" if is_short else f"+{CHAIN_PLACE}"
    points = (
        chain(part, *written(_ISA, f"MOV (R64, M64): p {text}", "ADD_01 (R64, R64): p d"), setting=setting)
        for part, text in (("asked", f"{address} {more}"), ("plain", f"p +{CHAIN_PLACE}"))
    )
    return ProbeCase(later_subject(end, made), tuple(points))


def _texts(which: Addressed) -> tuple[str, str]:
    """What is asked about by a base with an index, and by a base; or on the stack pointer, and another."""
    asked, plain = ("s", "p") if which is Addressed.POINTED else (f"*{_INDEX}", "")
    return _ASKED[which].replace("{}", asked, 1), _ASKED[which].replace("{}", plain, 1)


def _case(subject: str, more: More, asked: str, plain: str) -> ProbeCase:
    """The instructions by both addresses, and by the plain one among more of what is beside them."""
    if more is More.SLOTS:
        return ProbeCase(subject, (*_among_slots(asked, plain, [_NOP]), *slot_points(_ISA)))
    points = _among(asked, plain, [_ADDITION])
    return ProbeCase(subject, (*points, _point("wider", plain, [_ADDITION], AMONG_OTHERS, ADDRESSED_SO)))


def _among_slots(asked: str, plain: str, others: Sequence[str], behind: str = "") -> Iterator[Point]:
    """Both among others, the plain one among more of them, and both among other numbers of them."""
    yield from _among(asked, plain, others, behind)
    for count in _OTHER_NUMBERS:
        for part, text in (("asked", asked), ("plain", plain)):
            yield _point(f"{part} among {count}{behind}", text, others, count)


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
    if case.subject.endswith(More.SLOTS):
        which = next(one for one in _ASKED if case.subject == addressed_subject(one, More.SLOTS))
        asked, plain = _texts(which)
        yield from among(
            _ISA,
            readings,
            lambda name: _among_slots(asked, plain, fillers_named(_ISA, name), ending(name)),
        )


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if case.subject in (later_subject(end, made) for made in AddressMade for end in ADDRESS_ENDS):
        asked, plain = readings.get("asked"), readings.get("plain")
        return ProbeVerdict(CoreAnswer.VALUE, asked - plain, steady(asked, plain), "cycles")
    if case.subject in map(constants_alone, CONSTANT_BITS):
        asked = readings.get("asked")
        return ProbeVerdict(CoreAnswer.VALUE, asked, steady(asked), "cycles")
    if case.subject.endswith(More.ADDITIONS):
        return places_taken(readings, UnclearCore.NOT_SLOTS.of())
    others = filling(_ISA, readings) if nops_share(readings) else ""
    behind = ending(others)
    step = readings.get(f"more{behind}") - readings.get(f"plain{behind}")
    if others:
        slot = rate_of_slots(_ISA, readings, others).inverse()
        if abs(step.value - slot.value) > LIKE * slot.value:
            raise Unresolved(UnclearCore.NOT_SLOTS.of())
    if step.low <= 0:
        raise Unresolved(UnclearCore.NOT_SLOTS.of())
    among = ["", *(f" among {count}" for count in _OTHER_NUMBERS)]
    pairs = [[readings.get(f"{part}{some}{behind}") for part in ("asked", "plain")] for some in among]
    taken = [(asked - plain).scaled(1 / step.value) for asked, plain in pairs]
    least = min(taken, key=lambda one: one.value)
    same = all(one.value - least.value <= SAME_SLOTS for one in taken)
    return ProbeVerdict(CoreAnswer.VALUE, least, same and steady(step, *taken), "each")


PROBE = Probe(
    ADDRESSING,
    "Does an instruction need more slots, units or cycles for what its address, or operand, is made of?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("AMD, Software Optimization Guide for Family 19h (56665), 2.9.3", "Agner Fog, microarchitecture"),
    dict.fromkeys(("aarch64", "riscv64"), NotAsked.NO_SUCH_STORES.of()),
    more=_more,
)
