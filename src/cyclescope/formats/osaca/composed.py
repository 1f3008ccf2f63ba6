"""Forms with an operand in memory that OSACA makes up of the form with a register, a load and a store.

It does so for every instruction that its model has no entry of, and only then it knows which part of the
latency is the load's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from cyclescope.formats.exchange import Item
from cyclescope.formats.osaca.operands import Entry, Pattern, latency, names, pattern
from cyclescope.formats.rates import EXPLAINED, moved
from cyclescope.model.machine import Operation
from cyclescope.model.ports import port_throughput

_ANY_REGISTER = {"class": "register"}
Work = dict[tuple[int, ...], float]

LOADS, STORES, UNKNOWN = RATES = "LD", "ST", "UN"  # ports for throughputs that no port of the core explains


class Composer:
    """The forms with registers that others are made up of; `loads` and `stores` by kind of register."""

    def __init__(
        self, entries: Mapping[Pattern, Entry], loads: Mapping[str, Entry], stores: Mapping[str, Entry],
        ports: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.ports = list(ports)
        self._moves = loads, stores
        self._twins: dict[Pattern, tuple[str, Entry]] = {}
        for entry in entries.values():
            for position, operand in enumerate(entry.operands):
                if operand["class"] == "register" and entry.cost.operations is not None:
                    self._twins.setdefault(_with_any(entry, position), (str(operand["name"]), entry))

    def entry(self, entry: Entry, left: list[Item]) -> Entry | None:
        """What OSACA needs to be told, None where it knows as much; `left` is told of what is left out."""
        found = self._twin(entry)
        if found is None:
            return self._without_parts(entry, left)
        made = self._operations(entry, *found)
        known = entry.cost.operations is not None and entry.cost.confidence not in ("", "low")
        if known and _work(entry.cost.operations or ()) != _work(made):
            return entry
        if self._is_slower(entry, found[1], made):
            return self._with_rate(entry, made, left)
        if not any(operand["class"] == "register" for operand in entry.operands):
            cost = entry.cost if known else msgspec.structs.replace(entry.cost, operations=made)
            return msgspec.structs.replace(entry, cost=cost)  # 0.7 stumbles over the suffix, as in `addq`
        left.append(
            Item(entry.form.id, "OSACA makes it of a load or store and another form", found[1].form.id)
        )
        return None

    def _without_parts(self, entry: Entry, left: list[Item]) -> Entry | None:
        """A form between registers whose ports are not known has its latency, and its throughput on a port
        that such forms share: without one it would be free.
        """
        if entry.cost.operations is not None:
            return entry
        memory = any(operand["class"] == "memory" for operand in entry.operands)
        if memory or entry.cost.throughput is None or latency(entry.form, entry.cost) is None:
            left.append(Item(entry.form.id, "its ports are not known"))
            return None
        return self._rated(entry, (), UNKNOWN, "its ports are not known", left)

    @staticmethod
    def _is_slower(entry: Entry, twin: Entry, made: tuple[Operation, ...]) -> bool:
        """Whether a form takes longer than its parts, as XCHG with memory does, which locks."""
        parts = max(port_throughput(made), twin.cost.throughput or 0.0)
        return (entry.cost.throughput or 0.0) > parts * EXPLAINED

    def _with_rate(self, entry: Entry, made: tuple[Operation, ...], left: list[Item]) -> Entry:
        """An entry with the parts' ports and, on a port that such forms share, its throughput."""
        stores = any(op.is_memory and op.write for op in entry.form.operands)
        return self._rated(entry, made, STORES if stores else LOADS, "it takes longer than its parts", left)

    def _rated(
        self, entry: Entry, made: tuple[Operation, ...], name: str, why: str, left: list[Item]
    ) -> Entry:
        """An entry with its throughput on a port of such a name, beside its parts."""
        self.ports += [name] if name not in self.ports else []
        rate = Operation((self.ports.index(name),), 1, entry.cost.throughput or 0.0)
        left.append(Item(entry.form.id, f"{why}: its throughput is on a port of its own", name))
        return msgspec.structs.replace(
            entry, cost=msgspec.structs.replace(entry.cost, operations=(*made, rate))
        )

    def _twin(self, entry: Entry) -> tuple[str, Entry] | None:
        """The form with a register in the place of memory, and that register's kind."""
        memory = [i for i, operand in enumerate(entry.operands) if operand["class"] == "memory"]
        moves = any(moved(entry.form, load) is not None for load in (True, False))
        plain = any(op.is_memory and not op.implicit for op in entry.form.operands)
        if len(memory) != 1 or moves or not plain:
            return None
        return self._twins.get(_with_any(entry, memory[0]))

    def made(self, entry: Entry) -> tuple[str, Entry, tuple[Operation, ...]] | None:
        """What OSACA makes up a form of: the kind of register, the form with it, and ports."""
        found = self._twin(entry)
        return None if found is None else (*found, self._operations(entry, *found))

    def _operations(self, entry: Entry, kind: str, twin: Entry) -> tuple[Operation, ...]:
        (memory,) = [op for op in entry.form.operands if op.is_memory and not op.implicit]
        found = list(twin.cost.operations or ())
        for moves, does in zip(self._moves, (memory.read, memory.write), strict=True):
            move = moves.get(kind) or next(iter(moves.values()))
            found += (move.cost.operations or ()) if does else ()
        return tuple(found)


def _with_any(entry: Entry, position: int) -> Pattern:
    """A form's pattern with any register in one place, as OSACA looks for it."""
    operands = [*entry.operands[:position], _ANY_REGISTER, *entry.operands[position + 1 :]]
    return pattern(names(entry.form)[0], operands)


def _work(operations: tuple[Operation, ...]) -> Work:
    """Cycles by sets of ports."""
    found: Work = defaultdict(float)
    for op in operations:
        found[tuple(sorted(op.ports))] += op.count * op.cycles
    return found
