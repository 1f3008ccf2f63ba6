"""The ports of a machine, from the likelihood of each size that the union of two classes' ports could have.

A class is a set of forms whose micro-operation may use the same ports; its width is how many of them
run per cycle. Ports are found as atoms: the ports that belong to exactly the same classes. How many
ports each atom has follows from an integer program, which has no permutations of ports to search through:
it maximises the likelihood of all measurements of pairs together, with a price for every port and every
kind of port. A class that no set of ports fits leaves at a price as well, so that all measurements together
say which one it is. Classes whose union could as well have another size are known by their odds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import msgspec

from cyclescope.infer.likelihood.unions import UnionEvidence
from cyclescope.infer.timing.solver import LinearProgram
from cyclescope.remarks.ports import NoClass
from cyclescope.remarks.remark import Remark

Kind = tuple[int, str]  # of a class: its side of the core, and a name that is the same in every run
# What is believed before any measurement, in nats against.
PORT = 1.0  # one port more: of two structures that fit alike the smaller is the likelier
ATOM = 1.0  # one kind of port more
NO_PORTS = 15.0  # a class that is no set of ports: three readings have to be worth nothing instead
SIDES_APART = 8.0  # two sides of a core that share ports at all, however many pairs do: one clear reading
CLEAR = 12.0  # nats by which a size is worse than the best of a pair: it is not tried at first
OPEN = 5.0  # nats: sizes nearer to the best are asked for their odds; the promise of `high`
# How far one solution is searched for, whatever time that takes on a computer.
_NODES = 1000  # of the tree: machines measured and drawn so far took one
_LARGEST = 4000  # sets of classes with a port in common: those had fewer; as many take some seconds


class Structure(msgspec.Struct, frozen=True):
    """Number of ports, the ports of each class, and why classes were left out."""

    ports: int
    sets: Mapping[str, tuple[int, ...]]
    left_out: Mapping[str, Remark] = {}


class PortSolution(msgspec.Struct, frozen=True):
    """Nats of a solution with what is believed before, and of what was measured alone.

    `atoms` has the number of ports of each, `left` the classes without.
    """

    nats: float
    missed: float
    atoms: Mapping[frozenset[str], int]
    left: tuple[str, ...] = ()

    def union(self, evidence: UnionEvidence) -> int:
        """Ports that classes have together."""
        return sum(count for atom, count in self.atoms.items() if atom & evidence.classes)

    def common(self, evidence: UnionEvidence) -> int:
        """Ports that each of some classes has."""
        return sum(count for atom, count in self.atoms.items() if evidence.classes <= atom)

    def shared(self, name: str, others: frozenset[str]) -> dict[str, int]:
        """How many ports a class shares with each of some others.

        Not which of them are the same: what two others share among themselves is no claim of a class that has
        the ports of both.
        """
        mine = [(atom, count) for atom, count in self.atoms.items() if name in atom]
        return {other: sum(count for atom, count in mine if other in atom) for other in others}


class Search(NamedTuple):
    """The best solution that a search found, and nats that no solution is below which it did not find.

    They are infinite where the search was through.
    """

    best: PortSolution | None
    bound: float


def solve_structure(
    widths: Mapping[str, int], evidence: Sequence[UnionEvidence], kinds: Mapping[str, Kind] | None = None
) -> Structure:
    """The likeliest ports.

    Ports are numbered by the `kinds` and widths of their classes, so that another run that finds other
    representatives for the same classes gives them the same numbers. Classes without a kind do not count.
    """
    found = (_whole(widths, evidence, tried) for tried in cases_of(evidence))
    best = min(found, key=lambda one: one.nats)
    left = {n: NoClass.NO_SET.of(widths[n]) for n in best.left}
    ports = 0
    sets: dict[str, tuple[int, ...]] = {name: () for name in widths if name not in left}
    for atom, count in sorted(best.atoms.items(), key=lambda item: _rank(item[0], widths, kinds or {})):
        for name in atom:
            sets[name] = (*sets[name], *range(ports, ports + count))
        ports += count
    return Structure(ports, sets, left)


def cases_of(evidence: Sequence[UnionEvidence]) -> Iterator[list[UnionEvidence]]:
    """The evidence with all sizes, and where sides of a core share no port: a search for both is slow."""
    yield list(evidence)
    if any(one.across for one in evidence):
        apart = ({(size := max(e.nats)): e.nats[size]} if e.across else e.nats for e in evidence)
        yield [msgspec.structs.replace(e, nats=nats) for e, nats in zip(evidence, apart, strict=True)]


def _whole(
    widths: Mapping[str, int], evidence: Sequence[UnionEvidence], tried: Sequence[UnionEvidence]
) -> PortSolution:
    """The best solution of all classes where unions have the sizes that are tried."""
    atoms: dict[frozenset[str], int] = {}
    left: list[str] = []
    for some, inside in parts_of(widths, tried):
        best = _likeliest(some, inside)
        atoms |= best.atoms
        left += best.left
    return weighed(atoms, left, evidence)


def parts_of(
    widths: Mapping[str, int], evidence: Sequence[UnionEvidence]
) -> Iterator[tuple[dict[str, int], list[UnionEvidence]]]:
    """Classes that may share ports with each other, and what is known of them."""
    for group in _components(widths, evidence):
        some = {name: widths[name] for name in group}
        yield some, [e for e in evidence if e.classes <= some.keys()]


def weighed(
    atoms: Mapping[frozenset[str], int], left: Sequence[str], evidence: Sequence[UnionEvidence]
) -> PortSolution:
    """A solution with what speaks against it."""
    found = PortSolution(0.0, 0.0, dict(atoms), tuple(left))
    stay = [e for e in evidence if e.classes.isdisjoint(left)]
    missed = sum(e.against(found.union(e)) for e in stay)
    crossed = any(e.across and is_shared(found, e) for e in stay)
    believed = PORT * sum(atoms.values()) + ATOM * len(atoms) + NO_PORTS * len(left) + SIDES_APART * crossed
    return msgspec.structs.replace(found, nats=missed + believed, missed=missed)


def is_shared(found: PortSolution, evidence: UnionEvidence) -> bool:
    """Whether two classes share ports."""
    return any({evidence.first, evidence.second} <= atom for atom, count in found.atoms.items() if count)


def _rank(atom: frozenset[str], widths: Mapping[str, int], kinds: Mapping[str, Kind]) -> tuple[object, ...]:
    """What an atom's ports are numbered by: within a side those of most classes come first.

    A class that noise hides in one run, of moves that are not quite eliminated for example, leaves the names
    of the others as they were.
    """
    some = [(*kinds[name], -widths[name]) for name in atom if name in kinds]
    shapes = sorted((side, width) for side, _, width in some)
    sides = [side for side, _ in shapes[:1]]
    return sides, -len(shapes), shapes, sorted(label for _, label, _ in some), sorted(atom)


def _may_share(widths: Mapping[str, int], evidence: UnionEvidence, most: float) -> bool:
    """Whether a union smaller than two disjoint classes have is likely enough."""
    apart = widths[evidence.first] + widths[evidence.second]
    return any(size < apart for size in evidence.sizes(most))


def _components(widths: Mapping[str, int], evidence: Sequence[UnionEvidence]) -> list[list[str]]:
    """Classes that may share ports, directly or through others."""
    parent = {name: name for name in sorted(widths)}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for one in sorted(evidence, key=lambda e: (e.first, e.second)):
        if not one.third and one.classes <= widths.keys() and _may_share(widths, one, CLEAR):
            parent[root(one.first)] = root(one.second)
    groups: dict[str, list[str]] = {}
    for name in sorted(widths):
        groups.setdefault(root(name), []).append(name)
    return list(groups.values())


def _likeliest(widths: Mapping[str, int], evidence: Sequence[UnionEvidence]) -> PortSolution:
    """The best solution; without classes that no set of ports fits where that is likelier by far."""
    found = _solve(widths, evidence)
    if found is not None and found.missed <= NO_PORTS:
        return found
    if found is not None and (fewer := _fewer(widths, evidence, found)) is not None:
        return min(found, fewer, key=lambda one: one.nats)
    nothing = PortSolution(0.0, 0.0, {}, tuple(sorted(widths)))
    return _solve(widths, evidence, leaving=True) or found or nothing


def _fewer(
    widths: Mapping[str, int], evidence: Sequence[UnionEvidence], found: PortSolution
) -> PortSolution | None:
    """The best solution without one of the classes that others contradict, or without more of them.

    One after the other: a search that may leave out any of them takes minutes where few readings are wrong.
    """
    against = [e for e in evidence if e.against(found.union(e)) > 0]
    best: PortSolution | None = None
    for name in sorted({name for e in against for name in e.classes}):
        some = {other: width for other, width in widths.items() if other != name}
        inside = [e for e in evidence if name not in e.classes]
        one = _solve(some, inside)
        if one is not None and (best is None or one.nats + NO_PORTS < best.nats):
            best = msgspec.structs.replace(one, nats=one.nats + NO_PORTS, left=(name,))
    if best is None or best.missed <= NO_PORTS:
        return best
    gone = set(best.left)
    some = {other: width for other, width in widths.items() if other not in gone}
    rest = _likeliest(some, [e for e in evidence if gone.isdisjoint(e.classes)])
    return msgspec.structs.replace(rest, nats=rest.nats + NO_PORTS, left=(*best.left, *rest.left))


def _atoms(
    widths: Mapping[str, int], evidence: Sequence[UnionEvidence], leaving: bool
) -> tuple[list[frozenset[str]], bool]:
    """Sets of classes that may have a port in common, and none without what contains one if all stay.

    No two classes that share ports in no likely case are in one; where that leaves too many sets, no two
    that do not in the likeliest, which are not all. None where there are too many even so.
    """
    inside: dict[str, set[str]] = {name: set() for name in widths}
    for small, large in () if leaving else _contained(widths, evidence):
        inside[small].add(large)
    for nats in (CLEAR, OPEN, 0.0):
        pairs = [e for e in evidence if not e.third]
        apart = {e.classes for e in pairs if not _may_share(widths, e, nats)}
        found = _sets_of(widths, apart, inside)
        if len(found) <= _LARGEST:
            place = {name: 1 << number for number, name in enumerate(sorted(widths))}
            return sorted(found, key=lambda atom: sum(place[name] for name in atom)), nats == CLEAR
    return [], False


def _sets_of(
    widths: Mapping[str, int], apart: Set[frozenset[str]], inside: Mapping[str, set[str]]
) -> list[frozenset[str]]:
    """Sets of classes none of which are apart, with what contains each: the widest first, to have fewer."""
    found: list[frozenset[str]] = [frozenset()]
    before: set[str] = set()
    for name in sorted(widths, key=lambda name: (-widths[name], name)):
        needed = inside[name] & before
        before.add(name)
        some = [atom for atom in found if needed <= atom]
        found += [a | {name} for a in some if not any(frozenset((name, other)) in apart for other in a)]
        found = [a for a in found if name in a or not any(name in inside[other] for other in a)]
        if len(found) > _LARGEST:  # those of the classes that are left would be missing
            return found
    return [atom for atom in found if atom]


def _contained(widths: Mapping[str, int], evidence: Sequence[UnionEvidence]) -> Iterator[tuple[str, str]]:
    """Classes with others that contain them whatever else is the case."""
    for e in (e for e in evidence if not e.third):
        for small, large in ((e.first, e.second), (e.second, e.first)):
            if e.sizes(CLEAR) == [widths[large]]:
                yield small, large


def _solve(
    widths: Mapping[str, int], evidence: Sequence[UnionEvidence], leaving: bool = False
) -> PortSolution | None:
    """The best numbers of ports where no union is far from likely, or None; some classes may leave."""
    return searched(widths, evidence, leaving).best


def searched(widths: Mapping[str, int], evidence: Sequence[UnionEvidence], leaving: bool = False) -> Search:
    """The search for numbers of ports where no union is far from likely; some classes may leave.

    After `_NODES` nodes the best found until then counts, and more than `_LARGEST` sets are not tried: the
    same on slow computers and fast ones. While a store gets answers, most are asked again and again.
    """
    return _searched(tuple(widths.items()), tuple(evidence), leaving)


@lru_cache
def _searched(
    known: tuple[tuple[str, int], ...], evidence: tuple[UnionEvidence, ...], leaving: bool
) -> Search:
    widths = dict(known)
    atoms, whole = _atoms(widths, evidence, leaving)
    if not atoms:
        return Search(None, math.inf if whole else 0.0)
    program = LinearProgram()
    widest = max(widths.values())
    for _ in atoms:
        program.unknown(0, widest, PORT, whole=True)
    for place in range(len(atoms)):
        kind = program.unknown(0, 1, ATOM, whole=True)
        program.bound(-math.inf, {place: 1.0, kind: -float(widest)}, 0)
    left = {name: program.unknown(0, int(leaving), NO_PORTS, whole=True) for name in sorted(widths)}
    for name, width in widths.items():
        some = [place for place, atom in enumerate(atoms) if name in atom]
        program.bound(width, dict.fromkeys(some, 1.0) | {left[name]: float(width)}, width)
    for one in evidence:
        _add_union(program, atoms, one, [left[name] for name in sorted(one.classes)], widest)
    best = program.solve(_NODES)
    bound = best.bound if whole else 0.0
    if not best.feasible:
        return Search(None, bound)
    ports = {atom: round(v) for atom, v in zip(atoms, best.values, strict=False) if round(v)}
    gone = tuple(name for name, column in left.items() if round(best.values[column]))
    return Search(weighed(ports, gone, evidence), bound)


def _add_union(
    program: LinearProgram,
    atoms: Sequence[frozenset[str]],
    one: UnionEvidence,
    left: list[int],
    widest: int,
) -> None:
    """That classes, if all stay, have one of the likely sizes together."""
    either = [place for place, atom in enumerate(atoms) if atom & one.classes]
    most = float(len(left) * widest)
    sizes = one.sizes(CLEAR)
    choices = [program.unknown(0, 1, one.against(size), whole=True) for size in sizes]
    program.bound(1, dict.fromkeys([*choices, *left], 1.0), len(left))
    program.bound(0, dict.fromkeys(choices, 1.0), 1)
    weights = dict.fromkeys(either, 1.0) | {c: -float(size) for c, size in zip(choices, sizes, strict=True)}
    program.bound(-math.inf, weights | dict.fromkeys(left, -most), 0)
    program.bound(0, weights | dict.fromkeys(left, most), math.inf)


def port_sets(sets: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Sets of ports that a micro-operation may have: those of classes and what two of them share."""
    found = {frozenset(ports) for ports in sets.values()}
    found |= {a & b for a, b in combinations(found, 2) if a & b}
    return sorted((tuple(sorted(ports)) for ports in found), key=lambda ports: (len(ports), ports))
