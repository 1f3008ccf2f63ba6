"""Records of a store: measurements with what they prove and how."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Sequence
from enum import StrEnum
from statistics import NormalDist
from typing import NamedTuple

import msgspec

from cyclescope.kernel.variant import Kind, Variant, variant_of

STABLE, UNSTABLE, NOISY, FAILED = "ok", "unstable", "noisy", "failed"
LESS_THAN_NOTHING = -1.0  # cycles of a body: honest readings of nothing scatter by a tenth of that
ERRORS = 2.0  # times the spread of a reading: 95 of 100 independent ones are within
HALF_WITHIN = NormalDist().inv_cdf(0.75)  # standard deviations of a normal distribution: half of it is nearer
NOISE_KEPT, NOISE_NEW = 1000, 50  # differences that say how noisy a session is; of them new ones
TIMES_KNOWN = 100  # differences between two times that tell more than chance: the last five are the error
FROM_BEST = (STABLE, UNSTABLE, NOISY, FAILED)  # each verdict is worse than those before


class Unsettled(StrEnum):
    """Why rounds tell no stable value, in the words that stores have and users see."""

    PLACED = "it depends on the length and place of the loop"
    DISAGREE = "rounds disagree"
    DISTURBED = "the core was disturbed all the time"
    NO_SAMPLE = "no sample at all"
    TWO_RATES = "it runs at one of two rates until it is left"


class Record(msgspec.Struct, frozen=True):
    """One measured kernel of a form, as a store holds it.

    `cycles` are core cycles per unit of the body, which holds `count` instances of the form (for a
    latency: on the critical path); `links` are the keys of the links to subtract; `counters` are events per
    unit of the body, in the order of the session's events; `rounds` the cycles of each round; `instructions`
    is how many the body has, those beside the form's instances too (0: not said).
    """

    form: str
    quantity: str
    source: str
    target: str
    variant: str
    cycles: float
    spread: float
    verdict: str
    count: int
    links: tuple[str, ...]
    exceptions: int = 0
    error: str = ""
    id: int = 0
    counters: tuple[float, ...] = ()
    rounds: tuple[float, ...] = ()
    instructions: int = 0

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """That of the experiment."""
        return self.form, self.quantity, self.source, self.target, self.variant

    @property
    def look(self) -> Variant:
        """What its kernel did about dependencies, and whether it was a second look."""
        return variant_of(self.variant)

    @property
    def kind(self) -> Kind:
        """What its kernel did about dependencies."""
        return variant_of(self.variant).kind

    @property
    def per_instance(self) -> float:
        """Cycles per instance of the form."""
        return self.cycles / self.count

    @property
    def has_others(self) -> bool:
        """Whether the body has instructions beside the form's instances."""
        return self.instructions > self.count


class FrontEndReadings(NamedTuple):
    """What front-end experiments took: those for slots, for the width, for the length of encodings, and for
    instructions of which a cycle takes fewer.
    """

    slots: Sequence[Reading] = ()
    widths: Sequence[Reading] = ()
    lengths: Sequence[Reading] = ()
    narrow: Sequence[Reading] = ()


class Reading(NamedTuple):
    """What a front-end experiment took: `cycles` of a body with some instances of the form.

    `source` and `target` are what stands beside the form, `spread` is how far off the cycles may be.
    """

    form: str
    source: str
    target: str
    variant: str
    cycles: float
    spread: float
    instances: int
    verdict: str = STABLE


class RoundNoise:
    """What two rounds of the same kernel differ by, relative, learned from those of a session: at one time,
    and at two. `error` is what they may differ by until that is known.
    """

    def __init__(self, error: float) -> None:
        self._rounds: deque[float] = deque(maxlen=NOISE_KEPT)
        self._times: deque[float] = deque(maxlen=NOISE_KEPT)
        self._new = 0
        self._error = error

    def note_rounds(self, apart: float) -> None:
        """Learn from two rounds of a first visit to a kernel."""
        self._rounds.append(apart)
        self._new += 1

    def note_times(self, apart: float, rounds: int) -> None:
        """Learn from means of so many rounds of a kernel at two times."""
        self._times.append(apart * math.sqrt(rounds))

    @property
    def error(self) -> float:
        """What two rounds differ by at most in 95 of 100 cases: at one time, or at two where that is more."""
        if self._new >= NOISE_NEW:
            self._new = 0
            times = _usual(self._times) if len(self._times) >= TIMES_KNOWN else 0.0
            self._error = max(_usual(self._rounds), times)
        return self._error


def _usual(apart: Collection[float]) -> float:
    """What 95 of 100 do not exceed, nor the next one in 95 of 100 cases."""
    place = min(math.ceil(0.95 * (len(apart) + 1)), len(apart))
    return sorted(apart)[place - 1]
