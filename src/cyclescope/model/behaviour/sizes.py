"""How much of a core's instructions are in flight at once, as its probes found it.

A structure holds as many instructions of a kind as were in flight, unless another one was full first: all of
them are in the reorder buffer, and what a load loads is in a register. Where that may be, nothing is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from cyclescope.model.facts import IN_FLIGHT, MISPREDICTION, WRONG_BRANCH, Fact, InFlight
from cyclescope.model.machine import Core

LEAST_CODE = 512  # instructions of the shortest loop of which is asked whether all are kept decoded
Interval = tuple[float, float]


class Registers(StrEnum):
    """Kinds of registers whose numbers are asked for."""

    INTEGER = "integer"
    VECTOR = "vector"
    FLOATING = "floating point"  # where these are no vector registers


_RESULTS = {
    Registers.INTEGER: InFlight.ADDITIONS,
    Registers.VECTOR: InFlight.VECTORS,
    Registers.FLOATING: InFlight.DOUBLES,
}


def with_sizes(core: Core, facts: Sequence[Fact]) -> Core:
    """The core with the buffers and the cost of a wrong branch that probes found, where it has none."""
    told = _told(facts, core.nops)
    wrong = next((f.value for f in facts if (f.probe, f.subject) == (MISPREDICTION, WRONG_BRANCH)), None)
    return msgspec.structs.replace(
        core,
        reorder_buffer=core.reorder_buffer or _entries(told, InFlight.NOPS),
        load_buffer=core.load_buffer or _entries(told, InFlight.LOADS, InFlight.NOPS, InFlight.ADDITIONS),
        store_buffer=core.store_buffer or _entries(told, InFlight.STORES, InFlight.NOPS),
        mispredict_penalty=core.mispredict_penalty or wrong or 0.0,
    )


def free_registers(facts: Sequence[Fact]) -> Mapping[Registers, int]:
    """How many results were in flight: registers beside those in use."""
    told = _told(facts)
    found = {kind: _entries(told, one, InFlight.NOPS) for kind, one in _RESULTS.items()}
    return {kind: entries for kind, entries in found.items() if entries}


def _told(facts: Sequence[Fact], nops: int = 1) -> dict[str, Interval]:
    """The least and the most of each kind that were in flight; of NOPs what all instructions have room for.

    NOPs that share an entry, `nops` of them, count too many: then mixes of several kinds say it.
    """
    told = {
        fact.subject: (fact.value - (fact.error or 0.0), fact.value + (fact.error or 0.0))
        for fact in facts if fact.probe == IN_FLIGHT and fact.value is not None
    }  # fmt: skip
    if nops > 1 or InFlight.NOPS not in told:
        told.pop(InFlight.NOPS, None)
        if InFlight.ANY in told:
            told[InFlight.NOPS] = told[InFlight.ANY]
    return told


def _entries(told: Mapping[str, Interval], one: InFlight, *others: InFlight) -> int:
    """How many of a kind, 0 where it is not known that none of the others was full before it."""
    if one not in told or any(one_more not in told for one_more in others):
        return 0
    least, most = told[one]
    return int((least + most) / 2) if all(most < told[other][0] for other in others) else 0
