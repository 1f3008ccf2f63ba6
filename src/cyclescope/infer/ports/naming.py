"""Names for measured ports: those of a known machine where the classes use its ports in the same way.

Timing tells which classes of blocking instructions a port serves, not what it is called. Where the
known machine has as many ports for each combination of classes, ports take its names; nothing else is
taken from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cyclescope.infer.likelihood.structure import Structure
from cyclescope.model.library import names, shipped
from cyclescope.model.machine import FormCost, MachineModel

Kind = frozenset[str]  # the classes that use a port


def known_machine(machine: str) -> MachineModel | None:
    """The shipped machine of a store's microarchitecture, whose LLVM name ends the store's `machine`."""
    name = machine.rpartition(" ")[2]
    return shipped(name) if name in names() else None


def named(
    found: Structure, members: Mapping[str, Sequence[str]], known: MachineModel | None
) -> tuple[tuple[str, ...], Structure]:
    """Names of measured ports, a known machine's in its order before neutral ones; the structure by them.

    `members` are the forms of each class.
    """
    told = port_names(found.ports, found.sets, members, known)
    places = known.ports if known else ()
    order = sorted(range(found.ports), key=lambda p: _place(told[p], places))
    sets = {n: tuple(sorted(map(order.index, ports))) for n, ports in found.sets.items()}
    return tuple(told[port] for port in order), Structure(found.ports, sets, found.left_out)


def _place(name: str, places: Sequence[str]) -> int:
    return places.index(name) if name in places else len(places)


def port_names(
    count: int,
    sets: Mapping[str, Sequence[int]],
    members: Mapping[str, Sequence[str]],
    known: MachineModel | None,
) -> tuple[str, ...]:
    """Names of `count` measured ports, of which each class uses some.

    `members` are the forms of each class; on the known machine, classes of the same ports have those
    that more of their members use than any others. Classes that share ports are named together: by the
    known machine if it has the same ports for them up to renaming, and otherwise neutrally, with numbers
    where no port has a known name and `x0`, `x1`, ... beside known ones. Classes for which the known
    machine has no set of as many ports do not count, if the others tell all ports apart; where it has
    several and none for more than half of a class, it is another machine. Ports that serve the same classes
    are interchangeable: which of their names each has means nothing.
    """
    told: dict[int, str] = {}
    for group in port_groups(sets):
        told |= _names_of({name: sets[name] for name in group}, members, known)
    if len(set(told.values())) < len(told):  # one known port for two groups: they do not match it
        told = {}
    neutral = iter(f"x{n}" if told else _number(n, count) for n in range(count))
    return tuple(told.get(port) or next(neutral) for port in range(count))


def _number(port: int, count: int) -> str:
    return str(port) if count <= 10 else f"{port:x}"


def port_groups(sets: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """Classes that share ports, directly or through others."""
    groups: list[tuple[set[int], list[str]]] = []
    for name, ports in sets.items():
        near = [group for group in groups if not group[0].isdisjoint(ports)]
        groups = [group for group in groups if group not in near]
        joined = set(ports).union(*[some for some, _ in near])
        groups.append((joined, [*[n for _, names in near for n in names], name]))
    return [names for _, names in groups]


def _names_of(
    sets: Mapping[str, Sequence[int]], members: Mapping[str, Sequence[str]], known: MachineModel | None
) -> dict[int, str]:
    """Names of the ports of some classes, none where the known machine has others."""
    if known is None:
        return {}
    alike: dict[frozenset[int], list[str]] = {}
    for name, ports in sets.items():
        alike.setdefault(frozenset(ports), []).extend(members[name])
    theirs = {
        name: _known_ports(alike[frozenset(ports)], known.forms, len(ports)) for name, ports in sets.items()
    }
    if None in theirs.values():
        return {}
    shared = {name: ports for name, ports in sets.items() if theirs[name]}
    mine, other = _kinds(shared), _kinds({name: theirs[name] or () for name in shared})
    if Counter(mine.values()) != Counter(other.values()):
        return {}
    if len(set(mine.values())) < len(set(_kinds(sets).values())):  # it does not tell ports apart that differ
        return {}
    free: dict[Kind, list[int]] = {}
    for port, kind in sorted(other.items()):
        free.setdefault(kind, []).append(port)
    return {port: known.ports[free[kind].pop(0)] for port, kind in sorted(mine.items())}


def _known_ports(members: Iterable[str], forms: Mapping[str, FormCost], count: int) -> tuple[int, ...] | None:
    """The ports that more than half of a class's members with so many use on the known machine.

    None where some have others: which are most may change with the members of a run. () where none has any.
    """
    operations = [forms[name].operations for name in members if name in forms]
    sets = [tuple(sorted(ops[0].ports)) for ops in operations if ops and len(ops) == 1]
    found = Counter(ports for ports in sets if len(ports) == count)
    if not found:
        return ()
    ports, most = found.most_common(1)[0]
    return ports if 2 * most > found.total() else None


def _kinds(sets: Mapping[str, Sequence[int]]) -> dict[int, Kind]:
    """The classes that use each port."""
    ports = {port for some in sets.values() for port in some}
    return {port: frozenset(name for name, some in sets.items() if port in some) for port in ports}
