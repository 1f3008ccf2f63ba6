"""The ports of a machine from the widths and unions of classes of blocking instructions.

A class is a set of forms whose micro-operation may use the same ports; its width is how many of them
run per cycle. Ports are found as atoms: the ports that belong to exactly the same classes. How many
ports each atom has follows from an integer program over the measured widths, unions and containments,
which has no permutations of ports to search through. Classes that contradict the others are limited
by something else than ports; they are taken out, one by one, as hidden resources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

DISJOINT, SUBSET, OUTSIDE, UNION, AT_LEAST = "disjoint", "subset", "outside", "union", "at least"
FITS = 0.3  # ports: a solution further from the measured unions contradicts them
Kind = tuple[int, str]  # of a class: its side of the core, and a name that is the same in every run
_Row = tuple[list[int], float, float]  # columns, and between what their sum lies
_WEIGHT = 100.0  # of a port by which a union does not fit, to one port more or less


class Relation(msgspec.Struct, frozen=True):
    """What was measured of two classes: `kind` with, for unions, their size in ports.

    `subset` says that the first class's ports are all ports of the second, `outside` that not all are.
    """

    first: str
    second: str
    kind: str
    size: float = 0.0


class Structure(msgspec.Struct, frozen=True):
    """Number of ports, the ports of each class, and why classes were left out."""

    ports: int
    sets: Mapping[str, tuple[int, ...]]
    left_out: Mapping[str, str] = {}


def solve_structure(
    widths: Mapping[str, int], relations: Sequence[Relation], kinds: Mapping[str, Kind] | None = None
) -> Structure:
    """The least number of ports that explains the classes.

    Ports are numbered by the `kinds` and widths of their classes, so that another run that finds other
    representatives for the same classes gives them the same numbers. Classes without a kind do not count.
    """
    chosen: dict[frozenset[str], int] = {}
    left_out: dict[str, str] = {}
    for group in _components(widths, relations):
        some, dropped = _consistent({name: widths[name] for name in group}, relations)
        chosen |= some
        left_out |= dropped
    ports = 0
    sets: dict[str, tuple[int, ...]] = {name: () for name in widths if name not in left_out}
    for atom, count in sorted(chosen.items(), key=lambda item: _rank(item[0], widths, kinds or {})):
        for name in atom:
            sets[name] = (*sets[name], *range(ports, ports + count))
        ports += count
    return Structure(ports, sets, left_out)


def _rank(atom: frozenset[str], widths: Mapping[str, int], kinds: Mapping[str, Kind]) -> tuple[object, ...]:
    """What an atom's ports are numbered by."""
    some = [(*kinds[name], -widths[name]) for name in atom if name in kinds]
    shapes = sorted((side, width) for side, _, width in some)
    return shapes[:1], len(shapes), shapes, sorted(label for _, label, _ in some), sorted(atom)


def _components(widths: Mapping[str, int], relations: Sequence[Relation]) -> list[list[str]]:
    """Classes that share ports, directly or through others."""
    parent = {name: name for name in widths}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for relation in relations:
        if relation.kind not in (DISJOINT, OUTSIDE) and {relation.first, relation.second} <= widths.keys():
            parent[root(relation.first)] = root(relation.second)
    groups: dict[str, list[str]] = {}
    for name in widths:
        groups.setdefault(root(name), []).append(name)
    return list(groups.values())


def _consistent(
    widths: dict[str, int], relations: Sequence[Relation]
) -> tuple[dict[frozenset[str], int], dict[str, str]]:
    """A solution, with the classes taken out that contradict the others."""
    left_out: dict[str, int] = {}
    misfit, atoms = _solve(widths, relations)
    while misfit > FITS and len(widths) > 1:
        trials = []
        for name, width in widths.items():
            rest = {n: w for n, w in widths.items() if n != name}
            trials.append((round(_solve(rest, relations)[0], 2), width, name))
        _, width, worst = min(trials)
        left_out[worst] = width
        del widths[worst]
        misfit, atoms = _solve(widths, relations)
    for name, width in list(left_out.items()):  # what only contradicted another one that is out now
        misfit, more = _solve(widths | {name: width}, relations)
        if misfit <= FITS:
            atoms = more
            widths[name] = left_out.pop(name)
    reasons = {
        n: f"no set of {w} ports fits what it shares with the other classes" for n, w in left_out.items()
    }
    return atoms, reasons


def _atoms(widths: Mapping[str, int], relations: Sequence[Relation]) -> list[frozenset[str]]:
    """Sets of classes that may have a port in common, and no class without one that contains it."""
    names = sorted(widths)
    apart = {frozenset((r.first, r.second)) for r in relations if r.kind == DISJOINT}
    inside = [(r.first, r.second) for r in relations if r.kind == SUBSET]
    found: list[frozenset[str]] = [frozenset()]
    for name in names:
        found += [
            atom | {name} for atom in found if not any(frozenset((name, other)) in apart for other in atom)
        ]
    return [a for a in found if a and all(b in a for s, b in inside if s in a and b in widths)]


def _solve(
    widths: Mapping[str, int], relations: Sequence[Relation]
) -> tuple[float, dict[frozenset[str], int]]:
    """By how many ports the best solution misses the unions, and the size of each atom."""
    import highspy

    some = [r for r in relations if r.first in widths and r.second in widths]
    atoms = _atoms(widths, some)
    rows: list[_Row] = [([i for i, a in enumerate(atoms) if name in a], w, w) for name, w in widths.items()]
    rows += [row for row in (_row(relation, atoms) for relation in some) if row]
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    infinity = model.getInfinity()
    for column in range(len(atoms)):
        model.addVar(0, max(widths.values()))
        model.changeColCost(column, 1.0)
        model.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    for columns, least, most in rows:
        slack = [model.getNumCol(), model.getNumCol() + 1]
        for column in slack:
            model.addVar(0.0, infinity)
            model.changeColCost(column, _WEIGHT)
        weights = [1.0] * len(columns) + [1.0, -1.0]
        model.addRow(least, min(most, infinity), len(weights), [*columns, *slack], weights)
    model.run()
    values = list(model.getSolution().col_value)
    misfit = sum(values[len(atoms) :])
    return misfit, {atom: round(v) for atom, v in zip(atoms, values, strict=False) if round(v)}


def _row(relation: Relation, atoms: Sequence[frozenset[str]]) -> _Row | None:
    """Atoms whose sizes add up to something between two numbers."""
    if relation.kind in (UNION, AT_LEAST):
        either = [i for i, a in enumerate(atoms) if relation.first in a or relation.second in a]
        return either, relation.size, relation.size if relation.kind == UNION else math.inf
    if relation.kind == OUTSIDE:
        outside = [i for i, a in enumerate(atoms) if relation.first in a and relation.second not in a]
        return outside, 1, math.inf
    return None


def port_sets(sets: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Sets of ports that a micro-operation may have: those of classes and what two of them share."""
    found = {frozenset(ports) for ports in sets.values()}
    found |= {a & b for a, b in combinations(found, 2) if a & b}
    return sorted((tuple(sorted(ports)) for ports in found), key=lambda ports: (len(ports), ports))
