"""Readings of cores that a test draws, and what a probe makes of them."""

from __future__ import annotations

import random

from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved


class DrawnCore:
    """A core of which `take(part, x)` are the times; a share of `steady` is made longer by no neighbour."""

    probe = None
    error, scatter = 0.01, 0.002  # of a time, relative

    def __init__(self, seed, steady):
        self.seed, self.draw, self.steady = seed, random.Random(seed), steady

    def read(self, value):
        """A time as it is read."""
        value *= self.draw.gauss(1, self.scatter)
        if self.draw.random() > self.steady:
            return Interval(value * 0.9, value * self.draw.uniform(1, 2), is_steady=False)
        return Interval(value * (1 - self.error), value * (1 + self.error))

    def judged(self, case):
        """The value that the probe tells."""
        return self.verdict(case).value

    def verdict(self, case):
        """What the probe says, which asks again in as many stages as it has."""
        self.found = {(point.part, point.x): self.take(point.part, point.x) for point in case.points}
        for _ in range(self.probe.stages - 1):
            for key in sorted(wanted(self.probe, case, self.found) - set(self.found)):
                self.found[key] = self.take(*key)
        return self.probe.judge(case, Readings(self.found, {}))


def wanted(probe, case, found):
    """Places that the readings ask for, none where they say nothing."""
    try:
        return {(point.part, point.x) for point in probe.more(case, Readings(found, {}))}
    except Unresolved:
        return set()


def answers(cores, judged):
    """Those of the cores that have an answer, with it."""
    found = []
    for core in cores:
        try:
            found.append((core, judged(core)))
        except Unresolved:
            continue
    return found
