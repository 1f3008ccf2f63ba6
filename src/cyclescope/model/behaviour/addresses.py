"""What addresses and constants that are stored need more of, as the probe `addressing` found it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyclescope.model.behaviour.published import Addressing, MoreWork
from cyclescope.model.facts import (
    ADDRESS_ENDS,
    ADDRESSING,
    CONSTANT_BITS,
    Addressed,
    AddressMade,
    Fact,
    More,
    addressed_subject,
    constants_alone,
    later_subject,
    stacked_constant,
    stored_constant,
)

ONE_MORE = 0.5  # slots, or additions, that are needed more: half of one


def addressing_of(facts: Sequence[Fact], longest: float) -> Addressing:
    """What is needed more by what addresses are made of; where that is not clear, nothing.

    `longest` are the most cycles of each store of a register with nothing beside it, 0 where nobody knows.
    """
    known = {fact.subject: fact for fact in facts if fact.probe == ADDRESSING and fact.value is not None}

    def more(which: str) -> MoreWork:
        slots, additions = (_count(known.get(addressed_subject(which, kind))) for kind in More)
        return MoreWork(slots, additions)

    indexed = {which: more(which) for which in Addressed}
    constants = {bits: more(stacked_constant(bits)) for bits in CONSTANT_BITS}
    stored = {bits: _stored(known, bits, longest) for bits in CONSTANT_BITS}
    return Addressing(
        {which: work for which, work in indexed.items() if any(work)},
        {bits: work for bits, work in constants.items() if any(work)},
        {bits: work for bits, work in stored.items() if work.additions},
        _later(known),
    )


def _later(known: Mapping[str, Fact]) -> Mapping[AddressMade, tuple[int, int]]:
    """Cycles more than a form's own from the base, and from the index; nothing where one is not known.

    Forms have their own by a base alone, and from the index by an address with a displacement, too.
    """
    cycles = {
        made: [_whole(known.get(later_subject(end, made))) for end in ADDRESS_ENDS] for made in AddressMade
    }
    own = cycles[AddressMade.DISPLACED][1]
    found = {}
    for made, (from_base, from_index) in cycles.items():
        if from_base is not None and from_index is not None and own is not None:
            found[made] = from_base, from_index - own
    return {made: later for made, later in found.items() if any(later)}


def _whole(fact: Fact | None) -> int | None:
    """The whole number of cycles, where its error leaves one."""
    if fact is None or fact.value is None or (fact.error or 0.0) >= ONE_MORE:
        return None
    return round(fact.value)


def _stored(known: Mapping[str, Fact], bits: int, longest: float) -> MoreWork:
    """What a constant needs that a register does not."""
    additions = _count(known.get(addressed_subject(stored_constant(bits), More.ADDITIONS)))
    alone = known.get(constants_alone(bits))
    return MoreWork(additions=additions, stored=True, alone=_longer(alone, longest))


def _longer(alone: Fact | None, longest: float) -> float:
    """Cycles of each constant where they are clearly more than those of registers; else 0."""
    if alone is None or alone.value is None or not longest:
        return 0.0
    return alone.value if alone.value - (alone.error or 0.0) > longest else 0.0


def _count(fact: Fact | None) -> int:
    """The whole number of what is needed more, 0 where that may be less than a half."""
    if fact is None or fact.value is None or fact.value - (fact.error or 0.0) <= ONE_MORE:
        return 0
    return max(round(fact.value), 1)
