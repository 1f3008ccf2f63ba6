"""What LLVM's scheduling classes cost, per form and model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from cyclescope.formats.llvm.resources import ProcessorResource, Resources

ELIMINATED, BREAKING, ZERO = 1, 2, 4  # traits, as extract.cpp prints them
CONTROL = {"FPCR", "FRM", "VXRM", "FPMR", "MXCSR", "FPCW"}  # select a mode: no data
Place = tuple[str, int, list[int]]


class Cost(NamedTuple):
    """What a form costs in a model: slots, [ports, count, cycles], cycles of every pair, traits."""

    slots: int
    operations: list[list[Any]]
    latencies: list[int]
    flags: int


Change = Callable[[Cost], Cost]


def plain_places(record: dict[str, Any]) -> list[Place]:
    """Pairs of an instruction of an ISA without a table of ours: `op2->op1` by LLVM's operand number.

    An operand that is tied to a result has the name of the result.
    """
    first = record["defs"]
    tied = {k: f"op{to + 1}" for k, to in enumerate(record["tied"]) if to >= 0}
    sources = [
        (tied.get(k, f"op{k + 1}"), k - first)
        for k, register in enumerate(record["operands"])
        if register and k >= first
    ]
    sources += [(name, k) for k, name in enumerate(record["reads"], record["explicit"])]
    targets = [(f"op{k + 1}", k) for k in range(first) if record["operands"][k]]
    targets += [(name, k) for k, name in enumerate(record["writes"], first)]
    return [
        (f"{source}->{target}", write, [read])
        for source, read in sources
        for target, write in targets
        if source not in CONTROL and target not in CONTROL
    ]


class Costs:
    """The distinct costs of one model, and what they are made of."""

    def __init__(self, model: dict[str, Any], classes: dict[str, Any]) -> None:
        self.resources = Resources(msgspec.convert(model["resources"], list[ProcessorResource]))
        self._classes = classes
        self.operations: list[Any] = []
        self.costs: list[Any] = []
        self._known: dict[str, int] = {}

    def of(
        self, found: Sequence[int], places: list[Place], call: bool, change: Change = lambda cost: cost
    ) -> int:
        """Number of the cost of a form, from 1; 0 where the model does not know it.

        `change` makes another cost of LLVM's.
        """
        number, other, traits = found
        if not number:
            return 0
        cls = self._classes[str(number)]
        uses = [list(op) for op in self.resources.operations(cls["uses"], cls["slots"])]
        flags = self._flags(traits, number, other)
        cost = change(Cost(cls["slots"], uses, _latencies(cls, places, call), flags))
        record = [
            cost.slots,
            self._intern(self.operations, cost.operations),
            cost.latencies[0] if len(set(cost.latencies)) == 1 else cost.latencies,
            cost.flags,
        ]
        return 1 + self._intern(self.costs, record)

    def latencies(self, found: Sequence[int], places: list[Place], call: bool) -> dict[str, int]:
        """Cycles of each pair of a form as LLVM has them, empty where the model does not know it."""
        if not found[0]:
            return {}
        own = _latencies(self._classes[str(found[0])], places, call)
        return dict(zip((name for name, *_ in places), own, strict=True))

    def _intern(self, values: list[Any], value: Any) -> int:
        key = f"{id(values)} {value}"
        if key not in self._known:
            self._known[key] = len(values)
            values.append(value)
        return self._known[key]

    def _flags(self, traits: int, number: int, other: int) -> int:
        """1 eliminated move; 2 one register for all sources breaks dependencies, 4 needs no unit at all.

        Some models say the latter by a class without resources alone.
        """
        unused = bool(other) and not self._classes[str(other)]["uses"]
        zero = unused and (
            bool(traits & ZERO) or (other != number and bool(self._classes[str(number)]["uses"]))
        )
        if zero:
            return traits & ELIMINATED | ZERO
        return traits & ELIMINATED | (BREAKING if traits & (BREAKING | ZERO) else 0)


def _latencies(cls: dict[str, Any], places: list[Place], call: bool) -> list[int]:
    """Cycles of each pair in a chain of the form with itself; writes without a latency have the largest.

    That is how llvm-mca reads the tables, down to 100 cycles for what is not known.
    """
    known = [cycles for cycles, _ in cls["writes"]]
    largest = 100 if call or any(cycles < 0 for cycles in known) else max(known, default=0)
    result = []
    for _, write, reads in places:
        cycles, resource = cls["writes"][write] if write < len(known) else (largest, 0)
        cycles = largest if cycles < 0 else cycles
        result.append(max(0, cycles - min(_advance(cls, read, resource) for read in reads)))
    return result


def _advance(cls: dict[str, Any], read: int, write: int) -> int:
    """Cycles that a read can come late after a write."""
    fitting = (cycles for use, of, cycles in cls["advances"] if use == read and of in (0, write))
    return next(fitting, 0)
