"""How many constants a line of code has room for, as the probe `code-lines` found it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import msgspec

from cyclescope.model.facts import BESIDE_CONSTANTS, WITH_CONSTANTS, Constants, loop_of, loop_with

_STEP = 0.6  # cycles: an instruction more takes half a cycle on two ports, one more look a whole one
_FLAT = 0.2  # cycles by which trips of as many looks differ

Read = tuple[float, float]  # what was read less its error, and what was read: neighbours only add


class ConstantRoom(msgspec.Struct, frozen=True):
    """A look at a line of code gets what has `room` places at most.

    An instruction takes `each`, as many as it leaves to constants where it is missing; a comparison with its
    branch is one. A constant takes one place, one of more than 32 bits `wide`, two of an instruction `two`.
    """

    room: int
    each: int
    wide: int = 1
    two: int = 1

    def looks(self, instructions: float, places: float) -> int:
        """At a line that has so many instructions, and constants that take so many places."""
        return ceil((self.each * instructions + places) / self.room)

    def places(self, narrow: int, wide: int) -> int:
        """Those of an instruction's constants, of 32 bits at most and of more."""
        return (self.two if narrow > 1 else narrow) + self.wide * wide


def constant_room(read: Mapping[str, Read], nop: int) -> ConstantRoom | None:
    """What explains the readings by their subjects; None where nothing was asked, or no line is ever full.

    A loop's branch has a constant, too: of others one less fits. NOPs of `nop` bytes have none.
    """
    fewer, more = BESIDE_CONSTANTS
    bare = {among: read.get(loop_of(among, nop)) for among in BESIDE_CONSTANTS}
    most = _full(read, bare, Constants.ONE, more)
    by_twos, beside_fewer = (_full(read, bare, Constants.TWO, among) for among in (more, fewer))
    if not most or not beside_fewer:
        return None
    two = 2 if by_twos == most else 1
    each = ceil(beside_fewer * two / 2) - most
    long = _full(read, bare, Constants.WIDE, more)
    wide = (most - 1) // long + 1 if long else 1
    return ConstantRoom(most + each * (more + 1), each, wide, two) if each >= 0 else None


def _full(read: Mapping[str, Read], bare: Mapping[int, Read | None], what: Constants, among: int) -> int:
    """With how many constants a trip takes a look more than without; 0 if it never does.

    What takes still longer with a few more lacks ports for them.
    """
    counts = WITH_CONSTANTS[what, among]
    some = [bare[among], *(read.get(loop_with(count, what, among)) for count in counts)]
    known = [one for one in some if one is not None]
    if len(known) < len(some):
        return 0
    first = next((n for n, one in enumerate(known) if one[0] - known[0][1] > _STEP), 0)
    if not first:
        return 0
    full = counts[first - 1]
    again = max(2 * full - 1, full + 2)  # constants that may need one look more
    after = [one for count, one in zip(counts, known[1:], strict=True) if full <= count < again]
    return full if _is_flat(known[:first]) and _is_flat(after) else 0


def _is_flat(some: Sequence[Read]) -> bool:
    """Whether all may be the same."""
    return max(low for low, _ in some) - min(value for _, value in some) < _FLAT
