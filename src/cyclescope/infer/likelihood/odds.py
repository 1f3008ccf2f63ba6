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
    SIDES_APART,
    PortSolution,
    Search,
    Structure,
    cases_of,
    is_shared,
    parts_of,
    searched,
    weighed,
)
from cyclescope.infer.likelihood.threes import asked_of, open_threes
from cyclescope.infer.likelihood.unions import UnionEvidence


class _Doubt(NamedTuple):
    """Classes whose ports may be others, and nats by which these are less likely at least."""

    classes: frozenset[str]
    nats: float


def sureness(structure: Structure, evidence: Sequence[UnionEvidence]) -> dict[str, float]:
    """Shares of the odds that the ports of classes have, by all other structures together.

    Others are those in which a union has another size that is open. What is certain has no share. That two
    sides of a core, which share no port where that would show, share one where nothing would show it is no
    surprise: it has nothing against it.
    """
    widths = {name: len(ports) for name, ports in structure.sets.items()}
    inside = [e for e in evidence if e.classes <= widths.keys()]
    best = _as_found(structure, inside)
    threes = _threes(structure, inside)
    rivals = list(_rivals(widths, inside, best, threes))
    doubts = [one for one in rivals if isinstance(one, _Doubt)]
    found_others = (one for one in rivals if isinstance(one, PortSolution))
    others = {frozenset(one.atoms.items()): _believed(best, one, inside) for one in found_others}
    found: dict[str, float] = {}
    for name in widths:
        asked = _asked_with(name, inside)
        near = [e for e in threes if any(structure.sets[n] == structure.sets[name] for n in e.classes)]
        mine = _claim(best, name, asked, near)
        against = [one.nats - best.nats for one in others.values() if _claim(one, name, asked, near) != mine]
        against += [doubt.nats for doubt in doubts if name in doubt.classes]
        if against:
            found[name] = 1 / (1 + math.fsum(math.exp(min(-more, OPEN)) for more in against))
    return found


def _claim(
    found: PortSolution, name: str, asked: frozenset[str], threes: Sequence[UnionEvidence]
) -> tuple[dict[str, int], list[int]]:
    """What a structure says of a class: ports that it shares with each other one, and with each two."""
    return found.shared(name, asked), [found.common(three) for three in threes]


def _threes(structure: Structure, evidence: Sequence[UnionEvidence]) -> list[UnionEvidence]:
    """Classes by threes that may have another number of ports in common while each two share as many.

    With what was measured of them, or as if any number were as good.
    """
    known = {e.classes: e for e in evidence if e.third}
    found = []
    for names, _, sizes in open_threes(structure.sets, asked_of(evidence)):
        one, other, third = names
        flat = UnionEvidence(one, other, dict.fromkeys(sizes, 0.0), third=third)
        found.append(known.get(flat.classes, flat))
    return found


def _as_found(structure: Structure, evidence: Sequence[UnionEvidence]) -> PortSolution:
    """The solution that a structure is."""
    kinds: dict[int, set[str]] = {}
    for name, ports in structure.sets.items():
        for port in ports:
            kinds.setdefault(port, set()).add(name)
    return weighed(Counter(frozenset(some) for some in kinds.values()), (), evidence)


def _rivals(
    widths: Mapping[str, int],
    evidence: Sequence[UnionEvidence],
    best: PortSolution,
    threes: Sequence[UnionEvidence],
) -> Iterator[PortSolution | _Doubt]:
    """The likeliest structures in which two classes, or three, have another size together that is open."""
    for tried in cases_of(evidence):
        parts = [(some, inside, searched(some, inside)) for some, inside in parts_of(widths, tried)]
        usual = [search.best for _, _, search in parts]
        yield from _joined(usual, evidence)
        for place, (some, inside, search) in enumerate(parts):
            yield from _left_open(some, search, search)
            known = {e.classes for e in inside}
            unknown = [e for e in threes if e.classes <= some.keys() and e.classes not in known]
            for e in filter(lambda e: e.asked, [*inside, *unknown]):
                others = {size: e.nats[size] for size in e.sizes(OPEN) if size != best.union(e)}
                if others:
                    every = inside if e.classes in known else [*inside, e]
                    forced = [msgspec.structs.replace(e, nats=others) if one is e else one for one in every]
                    other = searched(some, forced)
                    yield from _joined([*usual[:place], other.best, *usual[place + 1 :]], evidence)
                    yield from _left_open(e.classes, other, search)


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


def _believed(best: PortSolution, other: PortSolution, evidence: Sequence[UnionEvidence]) -> PortSolution:
    """Another structure, without the price of sides that share ports where no reading would show them."""
    if not _crosses_unseen(best, other, evidence):
        return other
    return msgspec.structs.replace(other, nats=other.nats - SIDES_APART)


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
    return frozenset(n for pair in asked_of(evidence) if name in pair for n in pair)
