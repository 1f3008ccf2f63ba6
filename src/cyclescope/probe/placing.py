"""Where the CPUs of a pair are: what they answer holds for the cores that they were on.

The host of a virtual machine moves its CPUs between cores, none of which a program sees; between two moves
all looks agree. So pairs are asked at two times with everything else in between, and where a host may be
below, what they answer keeps no confidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cyclescope.model.facts import LOW, CoreAnswer, Fact
from cyclescope.probe.interval import Interval
from cyclescope.remarks.probing import Read, UnclearPair
from cyclescope.remarks.remark import Remark


def agreed(first: Sequence[Fact], last: Sequence[Fact]) -> tuple[Fact, ...]:
    """What two times say together: what both leave open, or no answer where they differ."""
    before = {fact.subject: fact for fact in first}
    return tuple(_together(before.get(fact.subject, fact), fact) for fact in last)


def _together(first: Fact, last: Fact) -> Fact:
    if not first.is_resolved or not last.is_resolved:
        return last if last.is_resolved else first
    one, other = _interval(first), _interval(last)
    if one is None or other is None:
        return last
    both = one.hull(other)
    if one.meets(other):
        value, error = round(both.value, 3), round(both.error, 3)
        return msgspec.structs.replace(last, value=value, error=error)
    reason, detail = UnclearPair.CHANGED.of().text, Read.RANGE.of(max(both.low, 0), both.high).text
    return Fact(last.probe, last.subject, reason=reason, detail=detail)


def _interval(fact: Fact) -> Interval | None:
    """What a value leaves open, None of answers that are none."""
    if fact.answer is not CoreAnswer.VALUE or fact.value is None:
        return None
    error = fact.error or 0.0
    return Interval(fact.value - error, fact.value + error)


def doubted(facts: Iterable[Fact], doubt: Remark) -> tuple[Fact, ...]:
    """Answers without confidence, and why; those of CPUs that surely stay are as they were."""
    if not doubt:
        return tuple(facts)
    return tuple(
        msgspec.structs.replace(fact, confidence=LOW, reason=doubt.text) if fact.is_resolved else fact
        for fact in facts
    )
