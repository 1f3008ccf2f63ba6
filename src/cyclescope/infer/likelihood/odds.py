"""How sure the ports of classes are: the odds of structures in which a union has another size that is open.

A search that ends without an answer proves nothing: what it leaves open counts as likely as it may be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from cyclescope.infer.likelihood.structure import (
    CLEAR,
    OPEN,
    PortSolution,
    Search,
    Structure,
    cases_of,
    is_shared,
    parts_of,
    searched,
    weighed,
)
from cyclescope.infer.likelihood.unions import UnionEvidence


class _Doubt(NamedTuple):
    """Classes whose ports may be others, and nats by which these are less likely at least."""

    classes: frozenset[str]
    nats: float


def sureness(structure: Structure, evidence: Sequence[UnionEvidence]) -> dict[str, float]:
    """Shares of the odds that the ports of classes have, by all other structures together.

    Others are those in which a union has another size that is open. What is certain has no share. That two
    sides of a core, which share no port where that would show, share one where nothing would show it is none.
    """
    widths = {name: len(ports) for name, ports in structure.sets.items()}
    inside = [e for e in evidence if e.first in widths and e.second in widths]
    best = _as_found(structure, inside)
    rivals = list(_rivals(widths, inside, best))
    doubts = [one for one in rivals if isinstance(one, _Doubt)]
    found_others = (one for one in rivals if isinstance(one, PortSolution))
    others = {
        frozenset(one.atoms.items()): one for one in found_others if not _crosses_unseen(best, one, inside)
    }
    found: dict[str, float] = {}
    for name in widths:
        asked = _asked_with(name, inside)
        mine = best.shared(name, asked)
        against = [one.nats - best.nats for one in others.values() if one.shared(name, asked) != mine]
        against += [doubt.nats for doubt in doubts if name in doubt.classes]
        if against:
            found[name] = 1 / (1 + math.fsum(math.exp(min(-more, OPEN)) for more in against))
    return found


def _as_found(structure: Structure, evidence: Sequence[UnionEvidence]) -> PortSolution:
    """The solution that a structure is."""
    kinds: dict[int, set[str]] = {}
    for name, ports in structure.sets.items():
        for port in ports:
            kinds.setdefault(port, set()).add(name)
    return weighed(Counter(frozenset(some) for some in kinds.values()), (), evidence)


def _rivals(
    widths: Mapping[str, int], evidence: Sequence[UnionEvidence], best: PortSolution
) -> Iterator[PortSolution | _Doubt]:
    """The likeliest structures in which two classes have another size together that is open."""
    for tried in cases_of(evidence):
        parts = [(some, inside, searched(some, inside)) for some, inside in parts_of(widths, tried)]
        usual = [search.best for _, _, search in parts]
        yield from _joined(usual, evidence)
        for place, (some, inside, search) in enumerate(parts):
            yield from _left_open(some, search, search)
            for pair in filter(lambda pair: pair.asked, inside):
                others = {size: pair.nats[size] for size in pair.sizes(OPEN) if size != best.union(pair)}
                if others:
                    forced = [msgspec.structs.replace(e, nats=others) if e is pair else e for e in inside]
                    other = searched(some, forced)
                    yield from _joined([*usual[:place], other.best, *usual[place + 1 :]], evidence)
                    yield from _left_open((pair.first, pair.second), other, search)


def _left_open(classes: Iterable[str], search: Search, usual: Search) -> Iterator[_Doubt]:
    """What a search that found nothing, or was not through, leaves open of some classes.

    Where none has sizes that are tried, a structure of other sizes is worse by as much at least for one pair.
    """
    if usual.best is None:
        yield _Doubt(frozenset(classes), 0.0)
    elif search.bound < math.inf:
        yield _Doubt(frozenset(classes), search.bound - usual.best.nats)
    elif search.best is None:
        yield _Doubt(frozenset(classes), CLEAR - usual.best.missed)


def _joined(
    parts: Sequence[PortSolution | None], evidence: Sequence[UnionEvidence]
) -> Iterator[PortSolution]:
    """The solution that those of all parts make, nothing where one has none."""
    if all(parts):
        atoms = {atom: count for part in parts if part is not None for atom, count in part.atoms.items()}
        yield weighed(atoms, (), evidence)


def _crosses_unseen(best: PortSolution, other: PortSolution, evidence: Sequence[UnionEvidence]) -> bool:
    """Whether two sides share ports in another structure alone, in unions that fill the front end."""
    for sides in {e.sides for e in evidence if e.sides}:
        between = [e for e in evidence if e.sides == sides]
        shared = [e for e in between if is_shared(other, e)]
        seen = any(other.union(e) < e.hidden for e in shared) or any(is_shared(best, e) for e in between)
        if shared and not seen:
            return True
    return False


def _asked_with(name: str, evidence: Sequence[UnionEvidence]) -> frozenset[str]:
    """The classes of which something tells what they share with one."""
    return frozenset(
        n for e in evidence if e.asked and name in (e.first, e.second) for n in (e.first, e.second)
    )
