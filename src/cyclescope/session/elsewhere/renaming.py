"""The other's names of a store's ports, as far as both use them in the same way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from cyclescope.infer.ports.naming import port_names
from cyclescope.model.machine import EXTRACTED, Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.session.elsewhere.claims import Claims

_THEIRS = "the other's "  # tells their names from neutral ones, which may be the same digits


def renamed(machine: MachineModel, forms: Sequence[str], claims: Claims) -> dict[str, str]:
    """The other's name of each of the machine's ports that can be told, by its name.

    Forms of one micro-operation tell it: those that share ports in the machine make a class, and the ports
    that more of them have elsewhere than any others are the class's there, if they are as many. Classes are
    taken one after the other, that of most forms first, as long as one renaming does for all; those that it
    does not do for are different. Ports that serve the same classes are interchangeable.
    """
    other = _as_machine(forms, claims)
    members = {
        ports: some for ports, some in _classes(machine, forms).items() if _has_as_many(ports, some, claims)
    }
    classes = {str(ports): some for ports, some in members.items()}
    taken: dict[str, tuple[int, ...]] = {}
    told: dict[int, str] = {}
    for ports in sorted(members, key=lambda one: (-len(members[one]), one)):
        trial = {**taken, str(ports): ports}
        names = port_names(len(machine.ports), trial, classes, other)
        theirs = {port: names[port] for some in trial.values() for port in some}
        if all(name.startswith(_THEIRS) for name in theirs.values()):
            taken, told = trial, theirs
    return {machine.ports[port]: name.removeprefix(_THEIRS) for port, name in told.items()}


def _classes(machine: MachineModel, forms: Sequence[str]) -> dict[tuple[int, ...], list[str]]:
    """Forms of one micro-operation by its ports."""
    found: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in forms:
        operations = machine.forms[name].operations or ()
        if len(operations) == 1 and operations[0].count == 1:
            found[tuple(sorted(operations[0].ports))].append(name)
    return found


def _has_as_many(ports: Sequence[int], forms: Sequence[str], claims: Claims) -> bool:
    """Whether what most forms of a class take elsewhere is as many ports: a few that do are a coincidence."""
    taken = Counter(frozenset(claim.pressure or ()) for n in forms if (claim := claims.of.get(n)) is not None)
    return bool(taken) and len(taken.most_common(1)[0][0]) == len(ports)


def _as_machine(forms: Sequence[str], claims: Claims) -> MachineModel:
    """What is claimed of forms that take one port at a time, as a machine to take names from."""
    place = {name: number for number, name in enumerate(claims.ports)}
    found: Mapping[str, FormCost] = {
        name: FormCost(operations=(Operation(tuple(sorted(place[port] for port in claim.pressure))),))
        for name in forms
        if (claim := claims.of.get(name)) is not None and claim.pressure and claim.units == 1
    }
    ports = tuple(f"{_THEIRS}{name}" for name in claims.ports)
    return MachineModel("", "", Provenance(EXTRACTED), Core(0), ports, found)
