"""Why two sources have different numbers for the same thing, as far as their data show it.

A difference that nothing explains is open. An explanation is no proof: it says for what else the other
number would be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.model.facts import LOW
from cyclescope.model.machine import EXTRACTED, MEASURED, FormCost, MachineModel
from cyclescope.model.ports import port_throughput

_OUTSIDE = ("nontemporal", "serializing")  # attributes: stores past the caches, and what waits for everything
UNKNOWN_CYCLES = 100.0  # what LLVM's models and llvm-mca have for latencies that nobody put in
_ONE_CYCLE = 1.0  # cycles: what takes less is no latency, but how many instructions are renamed in a cycle
_CLOCK = 0.01  # share: what clocks that nobody calibrated are off by; 19.89 of 20 cycles in published tables
Reach = tuple[float, float]


class Reason(StrEnum):
    """What explains a difference."""

    OPEN = "open"
    CONVENTION = "within what is proved without a convention"
    OTHER_PAIR = "the number of another pair of operands"
    LOAD = "with or without the load"
    IDIOM = "one register for all operands"
    ELIMINATED = "executed at rename by one of them"
    RATE = "no latency, told as a rate"
    SELF_LIMITED = "a chain alone runs at its throughput, not its latency"
    CLOCK = "by no more than a clock is off"
    CHAIN = "the latency of a chain, not a throughput"
    SLOWER = "slower than a sequence that was measured"
    FROM_PORTS = "computed from ports, which differ"
    NOT_PORTS = "computed from ports, and something else limits it"
    SLOTS = "front-end slots, not micro-operations"
    DOUBTFUL = "ports of low confidence"
    NOT_KNOWN = "LLVM's 100 cycles for what it does not know"
    OUTSIDE = "it waits for more than the core"
    SHARED = "one number for a class, right for most of it"


class Sides(msgspec.Struct, frozen=True):
    """What both sources say of a form: costs and machines; `cycles` by which equal latencies may differ.

    `computed` says that one of them has no throughput but what its ports and width allow, `is_outside` that
    the form waits for what is behind the core: memory, random numbers, whoever runs a virtual machine.
    """

    first: FormCost
    second: FormCost
    machines: tuple[MachineModel, MachineModel]
    cycles: float
    computed: bool = False
    is_outside: bool = False


def latency_reason(sides: Sides, pair: str, here: Reach, there: Reach) -> Reason:
    """Why a pair's latency differs."""
    return next((reason for reason, holds in _of_latency(sides, pair, here, there) if holds), Reason.OPEN)


def _of_latency(sides: Sides, pair: str, here: Reach, there: Reach) -> Iterator[tuple[Reason, bool]]:
    near = sides.cycles
    mine, other = sides.first, sides.second
    yield Reason.NOT_KNOWN, _is_not_known(sides, here, there)
    yield Reason.OUTSIDE, sides.is_outside
    yield Reason.CONVENTION, pair in mine.latencies and _meets(mine.ranges.get(pair), there, near)
    yield Reason.CONVENTION, pair in other.latencies and _meets(other.ranges.get(pair), here, near)
    yield Reason.ELIMINATED, mine.eliminated != other.eliminated and 0.0 in (*here, *there)
    yield Reason.RATE, 0.0 in (*here, *there) and max(here[1], there[1]) < _ONE_CYCLE
    yield Reason.IDIOM, bool(mine.idiom) != bool(other.idiom) and _is_of_one_register(here, there)
    yield Reason.OTHER_PAIR, _is_another(mine, pair, there, near) or _is_another(other, pair, here, near)
    yield Reason.LOAD, _is_of_memory(pair) and _differ_by_a_load(sides, here, there)
    yield Reason.SELF_LIMITED, _is_a_rate(sides, here, there)
    yield Reason.CLOCK, _between(here, there) <= _CLOCK * max(here[1], there[1])


def _is_of_one_register(here: Reach, there: Reach) -> bool:
    """Whether the lower number is no latency, or the most over several sources that may be one register."""
    lower = min(here, there, key=lambda reach: reach[1])
    return lower[1] < _ONE_CYCLE or lower[0] == 0.0


def waits_outside(form: InstructionForm, isa: str) -> bool:
    """Whether a form waits for more than the core, by its name or its attributes."""
    known = instruction_set(isa).arithmetic.costs.outside
    return form.mnemonic in known or not form.attributes.isdisjoint(_OUTSIDE)


def _is_not_known(sides: Sides, here: Reach, there: Reach) -> bool:
    both = zip(sides.machines, (here, there), strict=True)
    return any(one.provenance.kind == EXTRACTED and set(value) == {UNKNOWN_CYCLES} for one, value in both)


def _meets(proved: Reach | None, value: Reach, near: float) -> bool:
    return proved is not None and proved[0] - near <= value[1] and value[0] <= proved[1] + near


def _is_another(cost: FormCost, pair: str, value: Reach, near: float) -> bool:
    """Whether a value is that of another pair with the same form."""
    if value[0] != value[1]:
        return False
    return any(name != pair and abs(cycles - value[0]) <= near for name, cycles in cost.latencies.items())


def _is_a_rate(sides: Sides, here: Reach, there: Reach) -> bool:
    """Whether the greater latency is a throughput: a chain alone takes no less than that."""
    costs = (sides.first, sides.second) if here[1] > there[1] else (sides.second, sides.first)
    slow, fast = max(here[1], there[1]), min(here[1], there[1])
    rate = costs[0].throughput if costs[0].throughput is not None else costs[1].throughput
    return rate is not None and rate > _ONE_CYCLE and fast < rate and abs(rate - slow) <= sides.cycles


def _between(here: Reach, there: Reach) -> float:
    """Cycles from the one to the other, 0 where they meet."""
    return max(here[0] - there[1], there[0] - here[1], 0.0)


def _is_of_memory(pair: str) -> bool:
    return any(part in pair for part in (".address", ".index", ".data"))


def _differ_by_a_load(sides: Sides, here: Reach, there: Reach) -> bool:
    loads = {machine.core.load_latency for machine in sides.machines} - {0}
    return any(abs(abs(here[1] - there[1]) - load) <= sides.cycles for load in loads)


def throughput_reason(sides: Sides, here: float, there: float) -> Reason:
    """Why a throughput differs."""
    return next((reason for reason, holds in _of_throughput(sides, here, there) if holds), Reason.OPEN)


def _of_throughput(sides: Sides, here: float, there: float) -> Iterator[tuple[Reason, bool]]:
    both = ((sides.first, here, there), (sides.second, there, here))
    yield Reason.OUTSIDE, sides.is_outside
    yield Reason.ELIMINATED, sides.first.eliminated != sides.second.eliminated
    yield Reason.IDIOM, bool(sides.first.idiom) != bool(sides.second.idiom)
    chained = (
        slow > fast and any(abs(cycles - slow) <= sides.cycles for cycles in cost.latencies.values())
        for cost, fast, slow in both
    )
    yield Reason.CHAIN, any(chained)
    computed = sides.computed or any(machine.provenance.kind == EXTRACTED for machine in sides.machines)
    known = sides.first.operations is not None and sides.second.operations is not None
    if computed and known:
        bounds = [port_throughput(cost.operations or ()) for cost in (sides.first, sides.second)]
        apart = abs(bounds[0] - bounds[1]) > sides.cycles * max(bounds)
        yield Reason.DOUBTFUL, apart and LOW in (sides.first.confidence, sides.second.confidence)
        yield (Reason.FROM_PORTS if apart else Reason.NOT_PORTS), True
    kinds = [machine.provenance.kind for machine in sides.machines]
    faster, slower = kinds if here < there else reversed(kinds)
    yield Reason.SLOWER, not computed and faster == MEASURED != slower  # two of ours that differ stay open


def count_reason(sides: Sides, here: float, there: float) -> Reason:
    """Why a number of micro-operations differs."""
    if LOW in (sides.first.confidence, sides.second.confidence):
        return Reason.DOUBTFUL
    return Reason.SLOTS if there == sides.first.slots or here == sides.second.slots else Reason.OPEN


def ports_reason(sides: Sides) -> Reason:
    """Why the ports of as many micro-operations differ."""
    doubtful = LOW in (sides.first.confidence, sides.second.confidence)
    return Reason.DOUBTFUL if doubtful else Reason.OPEN
