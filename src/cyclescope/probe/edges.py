"""Where a sweep begins to cost a wrong prediction more than its control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Unresolved
from cyclescope.remarks.probing import Read, Unclear
from cyclescope.remarks.remark import Remark

WRONG = 0.5  # of what a wrong prediction takes: less is none
TWICE = 2  # times the edge: what is further may be slow for other reasons, too
FURTHER = 8  # places behind the last without one: there it takes as long at least
FEWER = 8  # parts of a range that is looked at more closely
MOST_DOUBT = 2  # places that noise leaves open


def edge(longer: Mapping[int, Interval], wrong: Interval, least: int, none: Remark) -> tuple[int, int]:
    """The last place without a wrong prediction, or `least`, and the first that surely has one.

    `longer` is what each place takes longer than its control, `wrong` what a wrong prediction takes. Raises
    Unresolved, with the reason `none` where no place has one.
    """
    high = next((place for place, more in longer.items() if more.low > WRONG * wrong.high), None)
    if high is None:
        if any(more.high > WRONG * wrong.low for more in longer.values()):
            raise Unresolved(Unclear.LOOKS_DIFFER.of())
        raise Unresolved(none, Read.UP_TO.of(max(longer)))
    known = [place for place, more in longer.items() if place < high and more.high < WRONG * wrong.low]
    return max([least, *known]), high


def check_edge(longer: Mapping[int, Interval], wrong: Interval, low: int, high: int, again: Remark) -> None:
    """Raise Unresolved where places beyond an edge have no wrong prediction, or noise leaves its place open.

    `again` is the reason where places beyond it are as fast as those before.
    """
    behind = [place for place in longer if high <= place <= TWICE * high]
    if any(longer[place].high < WRONG * wrong.low for place in behind):
        raise Unresolved(again)
    far = next((place for place in behind if place >= low + FURTHER), None)
    if far is None or longer[far].low < WRONG * wrong.high or high - low - 1 > MOST_DOUBT:
        raise Unresolved(Unclear.LOOKS_DIFFER.of())


def inside(low: int, high: int) -> Iterator[int]:
    """Places of a range that say more about an edge in it."""
    step = max((high - low) // FEWER, 1)
    yield from range(low + step, high, step)
