"""Port usage of a form from how much it slows blocking instructions down.

Among blocking instructions that fill the ports of a class, a form costs as many port cycles as it has
micro-operations that can go nowhere else. Which multiset of micro-operations fits all these numbers,
the form's reciprocal throughput and its front-end slots best is found by trying them all: few sets of
ports exist, and few micro-operations are in a form. The counts follow uops.info's Algorithm 1 (Abel
and Reineke 2019), solved jointly instead of class by class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations_with_replacement

import msgspec

from cyclescope.infer.timing.results import HIGH, LOW, MEDIUM
from cyclescope.model.machine import Operation
from cyclescope.model.ports import port_throughput

Ports = tuple[int, ...]

MOST = 4  # micro-operations of a form in one group of ports
CLEAR, ROUGH = 0.25, 0.45  # micro-operations by which the best explanation misses a class
EQUAL = 0.12  # explanations closer than this cannot be told apart
TIED = 0.06  # and of those closer than this another run may prefer the other
_EACH, _BEYOND = 0.05, 0.2  # of a micro-operation more, of one more than front-end slots
_CROWDED = 0.4  # weight of a micro-operation too many where an uneven distribution explains it
_UNUSUAL = 0.3  # and of one that forms of the same ports cost there, and this one does not
_OTHERS = 0.1  # of what classes are missed by beside the one that is missed most
_KINDS = 0.04  # of another set of ports
_UNPAIRED = 0.15  # of one micro-operation where slots bring two
_STEALS, _NEARLY = 0.2, 0.15  # micro-operations, or of its ports: so near to all of a class's is a cycle
_SHARED = 0.1  # of a set of ports that is no class by itself
_SLOWER, _UNEXPLAINED = 0.85, 0.05  # running slower than its ports allow is one more thing to explain
_TOO_FAST = 1.05  # times the measured throughput: less than this for its ports is refuted


class Usage(msgspec.Struct, frozen=True):
    """Micro-operations with their ports (None if no set of them fits), how well, and what fits as well."""

    operations: tuple[Operation, ...] | None
    residual: float
    confidence: str
    alternatives: tuple[tuple[Operation, ...], ...] = ()
    note: str = ""


class UsageSolver:
    """Explains confinements on one group of ports that no class leads out of.

    `blockers` are the classes' ports; `sets` the ports that a micro-operation may have. `usual` is what
    forms of each class cost among the blocking instructions of the others, in micro-operations: more than
    the ports explain where a core chooses among them unevenly.
    """

    def __init__(
        self,
        blockers: Mapping[str, Ports],
        sets: Sequence[Ports],
        usual: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self.blockers = dict(blockers)
        uneven = {ports: (usual or {}).get(name, {}) for name, ports in self.blockers.items()}
        explanations = [_Explanation(some, self.blockers, uneven) for some in _multisets(sets)]
        self.explanations = sorted(explanations, key=lambda explanation: explanation.simple)
        self._ordered: dict[tuple[float, int], list[_Costed]] = {}

    def solve(
        self,
        confined: Mapping[str, float],
        throughput: float,
        slots: float,
        total: float | None = None,
        elsewhere: float = 0.0,
        per_slot: int = 1,
    ) -> Usage:
        """The best explanation of the micro-operations confined to each class.

        `throughput` is the measured reciprocal throughput in cycles, infinite if unknown; `slots` the
        micro-operations that the front-end slots let expect, `per_slot` of them for each; `total` all
        micro-operations on these ports where they were counted; `elsewhere` the reciprocal throughput
        that other ports explain.
        """
        most = max((*confined.values(), total or 0.0), default=0.0)
        if most > MOST + 0.5:
            return self._many(confined, throughput, total)
        scored: list[tuple[float, int, float, _Explanation]] = []
        fastest = _TOO_FAST * throughput + 0.02
        slow = _SLOWER * throughput
        unexplained = slow < math.inf and not explains_slowness(throughput, elsewhere)
        measured = tuple(confined.items())
        enough = math.inf
        for alone, place, cycles, explanation in self._by_cost(slots if total is None else MOST, per_slot):
            if alone > enough:  # likely ones first: they tell which others can be better
                break
            if cycles > fastest:
                continue
            cost = alone + _UNEXPLAINED if unexplained and cycles < slow else alone
            if cost > enough:
                continue
            misfit = explanation.misfit(measured, total, enough - cost)
            if misfit < math.inf:
                enough = min(enough, misfit + cost + EQUAL)
                scored.append((misfit + cost, place, misfit, explanation))
        scored.sort(key=lambda item: item[:2])
        score, _, misfit, best = scored[0]
        others = [e for s, _, _, e in scored[1:] if s - score < EQUAL]
        if total is None and self._is_stall(confined, slots):
            return _conflict(most, misfit)
        confidence = HIGH if misfit <= CLEAR else MEDIUM if misfit <= ROUGH else LOW
        if others:
            tied = scored[1][0] - score < TIED
            confidence = LOW if tied else MEDIUM if confidence == HIGH else confidence
        return Usage(best.operations, misfit, confidence, tuple(e.operations for e in others[:3]))

    def _by_cost(self, slots: float, per_slot: int) -> list[_Costed]:
        """Explanations by what makes each less likely than a simpler one, for so many slots.

        With their places among all: of those that fit equally well the simplest comes first.
        """
        key = slots, per_slot
        if key not in self._ordered:
            costed = (
                (e.cost(slots, per_slot), place, e.throughput, e) for place, e in enumerate(self.explanations)
            )
            self._ordered[key] = sorted(costed, key=lambda item: item[:2])
        return self._ordered[key]

    def _many(self, confined: Mapping[str, float], throughput: float, total: float | None) -> Usage:
        """More micro-operations than can be tried: what smaller sets of ports leave to larger ones.

        Exact as long as every micro-operation may use the ports of a class.
        """
        counts: dict[Ports, int] = {}
        misfit = 0.0
        for name in sorted(confined, key=lambda name: (len(self.blockers[name]), self.blockers[name])):
            ports = self.blockers[name]
            left = confined[name] - sum(n for some, n in counts.items() if set(some) <= set(ports))
            misfit = max(misfit, abs(left - max(round(left), 0)))
            counts[ports] = counts.get(ports, 0) + max(round(left), 0)
        if total is not None:
            misfit = max(misfit, abs(total - sum(counts.values())))
        operations = tuple(Operation(ports, float(count)) for ports, count in counts.items() if count)
        fits = misfit <= CLEAR and port_throughput(operations) <= _TOO_FAST * throughput + 0.02
        if not fits:
            return _conflict(max(confined.values(), default=0.0), misfit)
        return Usage(operations, misfit, MEDIUM if total is None else HIGH)

    def _is_stall(self, confined: Mapping[str, float], slots: float) -> bool:
        """Whether whole cycles of every class concerned are lost, as no micro-operation does it."""
        held = {name: value for name, value in confined.items() if value > _STEALS}
        sizes = {name: len(self.blockers[name]) for name in held}
        full = all(abs(v - sizes[name]) < max(_STEALS, _NEARLY * sizes[name]) for name, v in held.items())
        return len(held) > 1 and max(sizes.values()) > max(2.0, slots + 0.5) and full


def explains_slowness(throughput: float, elsewhere: float) -> bool:
    """Whether other ports explain why a form runs slower than some allow, so that these need not."""
    return elsewhere >= _SLOWER * throughput


def _conflict(most: float, misfit: float) -> Usage:
    return Usage(None, misfit, LOW, (), f"conflict: it holds ports for {most:.1f} port cycles")


class _Explanation:
    """A multiset of micro-operations, and what it does to each class."""

    def __init__(
        self,
        ports: tuple[Ports, ...],
        blockers: Mapping[str, Ports],
        uneven: Mapping[Ports, Mapping[str, float]],
    ) -> None:
        self.ports = ports
        counts: dict[Ports, int] = {}
        for one in ports:
            counts[one] = counts.get(one, 0) + 1
        self.operations = tuple(Operation(one, float(count)) for one, count in counts.items())
        self.throughput = port_throughput(self.operations)
        self.confined = {name: sum(set(one) <= set(wide) for one in ports) for name, wide in blockers.items()}
        self.crowded = {
            name for name, wide in blockers.items()
            if any(one != wide and not set(one).isdisjoint(wide) for one in ports)
        }  # fmt: skip
        self.usual = {
            name: sum(max(set(one) <= set(wide), uneven.get(one, {}).get(name, 0.0)) for one in ports)
            for name, wide in blockers.items()
        }
        shared = sum(one not in blockers.values() for one in ports)
        self.simple = _KINDS * len(self.operations) + _EACH * len(ports) + _SHARED * shared

    def cost(self, slots: float, per_slot: int) -> float:
        """What makes the explanation less likely than a simpler one that fits as well."""
        beyond = max(0.0, len(self.ports) - max(1.0, slots))
        return self.simple + _BEYOND * beyond + _UNPAIRED * (len(self.ports) % per_slot)

    @cached_property
    def expected(self) -> Mapping[str, tuple[int, float, float]]:
        """What it costs each class at least, what as a rule, and the weight of what is more."""
        return {
            name: (least, self.usual[name], _CROWDED if name in self.crowded else 1.0)
            for name, least in self.confined.items()
        }

    def misfit(self, measured: Sequence[tuple[str, float]], total: float | None, most: float) -> float:
        """Micro-operations too many or too few, mostly where most are; infinite above `most`.

        `measured` are classes with what was measured for them.

        A core that binds micro-operations to ports before it knows which will be free makes a class
        slower than its confined micro-operations do: too many measured count less where others of its
        ports' micro-operations may be in the way. Where they were counted, as `total` was, nothing is.
        """
        worst = every = abs(total - len(self.ports)) if total is not None else 0.0
        if worst > most:
            return math.inf
        expected = self.expected
        for name, value in measured:
            least, usual, weight = expected[name]
            if value > usual:
                miss = (value - usual) * (weight if total is None else 1.0)
            elif value < least:
                miss = (least - value) + _UNUSUAL * (usual - least)
            else:
                miss = _UNUSUAL * (usual - value)
            every += miss
            if miss > worst:
                if miss > most:
                    return math.inf
                worst = miss
        return worst + _OTHERS * (every - worst)


_Costed = tuple[float, int, float, _Explanation]


def _multisets(sets: Sequence[Ports]) -> list[tuple[Ports, ...]]:
    return [some for count in range(MOST + 1) for some in combinations_with_replacement(sets, count)]
