"""LLVM's processor resources as ports, sets of ports and schedulers.

A resource of n units is n ports, unless it says that its units are some of another's (Zen 3: loads and
stores share three address units) and these are enough; then it is a subset of those. A group is the union
of its members.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

Use = tuple[int, int, int]  # resource, released at cycle, acquired at cycle
OperationCost = tuple[list[int], int, int]  # ports, operations, cycles of each


class ProcessorResource(msgspec.Struct, frozen=True):
    """A resource of LLVM's: `parent` and `members` are places in the list of a model's, whose first is none.

    `buffer` has entries, 1 for a resource that works in order, less where nobody knows. Only groups have
    members.
    """

    name: str
    units: int = 1
    parent: int = msgspec.field(name="super", default=0)
    buffer: int = -1
    members: tuple[int, ...] = msgspec.field(name="sub", default=())


class Resources:
    """The resources of one model."""

    def __init__(self, raw: Sequence[ProcessorResource]) -> None:
        self._raw = raw
        self._prefix = _common_prefix([r.name for r in raw[1:]])
        numbers = (_port_number(r.name[len(self._prefix) :]) for r in raw[1:] if not r.members)
        self._few = max((n for n in numbers if n is not None), default=0) < 16
        self.ports: list[str] = []
        self._sets: dict[int, tuple[int, ...]] = {}
        self._given: dict[int, int] = {}  # units of a resource that others were made of
        for k in range(1, len(raw)):
            self.units(k)

    def units(self, k: int) -> tuple[int, ...]:
        """Ports of a resource."""
        if k not in self._sets:
            self._sets[k] = self._new_units(k)
        return self._sets[k]

    def _new_units(self, k: int) -> tuple[int, ...]:
        raw = self._raw[k]
        if raw.members:
            return tuple(sorted({unit for member in raw.members for unit in self.units(member)}))
        parent = raw.parent
        if parent and all(units <= self._raw[parent].units for units in self._siblings(k, parent)):
            return self._part_of(parent, raw.units)
        names = self._names(raw)
        self.ports += names
        return tuple(range(len(self.ports) - len(names), len(self.ports)))

    def _siblings(self, k: int, parent: int) -> list[int]:
        """Units of a resource, and of those that a group counts beside it, within one parent."""
        groups = [set(raw.members) for raw in self._raw if k in raw.members]
        return [
            sum(self._raw[member].units for member in group if self._raw[member].parent == parent)
            for group in [{k}, *groups]
        ]

    def _part_of(self, parent: int, count: int) -> tuple[int, ...]:
        """Units of the parent that others of its parts do not have, as far as they go."""
        units = self.units(parent)
        start = self._given.get(parent, 0)
        self._given[parent] = start + count
        return tuple(sorted(units[(start + n) % len(units)] for n in range(count)))

    def _names(self, raw: ProcessorResource) -> list[str]:
        name, count = self._short(raw.name), raw.units
        return [name] if count == 1 else [f"{name}{'.' * name[-1].isdigit()}{n}" for n in range(count)]

    def _short(self, name: str) -> str:
        """The name without the model's prefix; numbered ports by a hexadecimal digit where that is enough."""
        rest = name[len(self._prefix) :].lstrip("_")
        number = _port_number(rest)
        return rest if number is None else f"{number:X}" if self._few else str(number)

    def operations(self, uses: Iterable[Use], slots: int) -> list[OperationCost]:
        """What a class needs of ports; see `own_cycles` and `_split`."""
        own = sorted(own_cycles([(self.units(k), end - start) for k, end, start in uses]), key=lambda o: o[1])
        result = []
        for place, (ports, cycles) in enumerate(own):
            count = _split(cycles, slots - (len(own) - place - 1))
            slots -= count
            result.append((list(ports), count, cycles // count))
        return sorted(result, key=lambda op: (len(op[0]), op))

    def schedulers(self, queues: set[int]) -> list[tuple[str, list[int], int]]:
        """Name, ports and entries of the buffers that are no load or store queue.

        A size of 1 says that the resource works in order.
        """
        return [
            (self._short(raw.name), list(self.units(k)), raw.buffer)
            for k, raw in enumerate(self._raw)
            if raw.buffer > 1 and k not in queues
        ]

    def buffer(self, k: int) -> int:
        """Entries in front of a resource, 0 where unknown."""
        return max(0, self._raw[k].buffer) if k else 0


def own_cycles(uses: Iterable[tuple[tuple[int, ...], int]]) -> list[tuple[tuple[int, ...], int]]:
    """Cycles that each set of ports is used for beyond the use of its subsets.

    LLVM counts the use of a resource again in every group that contains it.
    """
    listed: dict[tuple[int, ...], int] = {}
    for ports, cycles in uses:
        listed[ports] = max(cycles, listed.get(ports, 0))
    own: dict[tuple[int, ...], int] = {}
    for ports in sorted(listed, key=len):
        inside = sum(cycles for other, cycles in own.items() if set(other) < set(ports))
        if listed[ports] > inside:
            own[ports] = listed[ports] - inside
    return list(own.items())


def _split(cycles: int, slots: int) -> int:
    """How many micro-operations share the cycles: one for each, where the form has so many.

    LLVM does not say whether a group used for two cycles means two micro-operations or one that
    keeps a unit for two cycles; the number of micro-operations of the form decides.
    """
    return cycles if cycles <= slots else 1


def _port_number(rest: str) -> int | None:
    """7 of `Port7` or `07`, which are plain ports."""
    numbered = re.fullmatch(r"(?:Port)?(\d\d?)", rest)
    return int(numbered[1]) if numbered else None


def _common_prefix(names: list[str]) -> str:
    """What all names begin with, up to the begin of a word and short of a whole name."""
    if len(names) < 2:
        return ""
    prefix = min(names)
    while prefix and not all(name.startswith(prefix) and _begins(name[len(prefix) :]) for name in names):
        prefix = prefix[:-1]
    return prefix


def _begins(rest: str) -> bool:
    return bool(rest.lstrip("_")) and not rest[0].islower()
