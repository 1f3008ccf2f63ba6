"""How far a prediction may be off: the interval that the uncertainty of a model's data leaves.

Of extracted models, LLVM's costs of a Zen 4 were compared with what was measured there: by how much 8 of 10
forms are off (`benchmarks/predicting/spread.py`). Of measured models, what 8 to 9 of 10 blocks and
compiled loops are off by (`cyclescope validate`): few are faster than their bounds, so that the least is
nearer. Chains of latencies are nearer than that, and what the scheduler is simulated to lose is further off.
What holds of one core is taken to hold of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from cyclescope.analyze.predict.effects import Data, effect_named
from cyclescope.analyze.predict.prediction import (
    FRONT_END,
    IN_ORDER,
    LOOP_CARRIED,
    NO_BOUNDS,
    SCHEDULED,
)
from cyclescope.model.machine import EXTRACTED, MEASURED

_Factors = tuple[float, float]  # least and most of what a value may be, by what the model says
_EXACT: _Factors = (1.0, 1.0)


class Spread(msgspec.Struct, frozen=True):
    """Factors between which 8 of 10 values of a model are: throughputs, front-end slots, latencies.

    `scheduled` are those of simulated cycles. What is assumed was found out on the core itself where it was
    `asked`: the least counts it then.
    """

    throughput: _Factors = _EXACT
    slots: _Factors = _EXACT
    latency: _Factors = _EXACT
    scheduled: _Factors = _EXACT
    asked: bool = False

    def of(self, bound: str) -> _Factors:
        """The factors of a bound."""
        effect = effect_named(bound)
        if effect is not None:
            return {Data.NONE: _EXACT, Data.LATENCY: self.latency, Data.THROUGHPUT: self.throughput}[
                effect.data
            ]
        if bound == LOOP_CARRIED:
            return self.latency
        if bound == IN_ORDER:
            return min(self.throughput[0], self.latency[0]), max(self.throughput[1], self.latency[1])
        if bound == SCHEDULED:
            return self.scheduled
        return self.slots if bound == FRONT_END else self.throughput


def _either_way(factor: float) -> _Factors:
    return min(factor, 1 / factor), max(factor, 1 / factor)


_LLVM, _READ = 1.5, (0.99, 1.03)
SPREADS = {
    EXTRACTED: Spread(_either_way(_LLVM), (min(_EXACT), _LLVM), _either_way(_LLVM), _either_way(_LLVM)),
    MEASURED: Spread(_READ, _EXACT, _either_way(min(_READ)), _either_way(max(_READ)), asked=True),
}


_NO_SPREAD = Spread()


@cache
def factors(kind: str, bound: str) -> _Factors:
    """The factors of a bound on a model of some kind of provenance."""
    return SPREADS.get(kind, _NO_SPREAD).of(bound)


def interval(
    kind: str,
    bounds: Mapping[str, float],
    sure: Mapping[str, tuple[float, float]],
    lower: float,
    upper: float,
) -> tuple[float, float]:
    """Least and most cycles of a block on a model of some kind of provenance.

    `sure` has the least and the most of bounds that are no single number: the loop-carried dependency with
    the latencies that are proved, the front end with a width that is only assumed. `lower` and `upper` are
    what the block takes if the model is right.
    """
    spread = SPREADS.get(kind, _NO_SPREAD)
    least, most = [], [upper]
    for name, cycles in bounds.items():
        if name not in NO_BOUNDS:
            low, high = sure.get(name, (cycles, cycles))
            smaller, greater = factors(kind, name)
            least.append(low * smaller)
            most.append(high * greater)
    return max(least) if spread.asked else min(max(least), lower), max(most)
