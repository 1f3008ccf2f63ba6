"""What else limits a loop, apart from ports, front end and dependencies: one record for each effect.

An effect is added here, and nowhere else. It is a bound like the others: of all of them the greatest counts,
none are added. Predictions have its cycles, the lower end of their bracket leaves it out where it is assumed,
their interval has the error of its data, and reports name it by its `words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from cyclescope.analyze.cost import traits
from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.depend.barriers import behind_barriers
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.late_loads import beside_additions, beside_stores, late_loads
from cyclescope.analyze.depend.loop_carried import renamed_memory
from cyclescope.analyze.depend.trips import memory_trips
from cyclescope.analyze.depend.waits import cache_waits, loaded_stores
from cyclescope.analyze.predict import bounds
from cyclescope.analyze.predict.dealt import meeting_results
from cyclescope.model.behaviour.published import CoreBehaviour
from cyclescope.model.machine import MEASURED, MachineModel
from cyclescope.simulate.units import Units


class Data(StrEnum):
    """The data of a model that an effect rests on, whose error it has."""

    NONE = "none"
    THROUGHPUT = "throughput"
    LATENCY = "latency"


class Situation(msgspec.Struct, frozen=True):
    """One iteration on one machine, which an effect looks at.

    `forward` is how many cycles after a store a load has its data, `behaviour` what the machine does beside
    executing instructions.
    """

    block: Block
    graph: Graph
    costs: Sequence[PlacedCost]
    machine: MachineModel
    forward: float
    behaviour: CoreBehaviour
    units: Units

    @property
    def is_measured(self) -> bool:
        """Whether what the machine does is known from it alone."""
        return self.machine.provenance.kind == MEASURED


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A bound on the cycles of one iteration, 0 where there is none.

    `name` is that of JSON, `words` are those of reports. It has `cycles`, one number, or `parts`: cycles by
    the name of what the loop keeps busy (a resource, a unit), of which the greatest counts. Where it is
    `assumed`, a core that is as the model says may be faster. Of blocks without the trait that it `needs`, if
    there is one, it is 0: they are not asked.
    """

    name: str
    words: str
    data: Data
    assumed: bool = False
    needs: str = ""
    cycles: Callable[[Situation], float] | None = None
    parts: Callable[[Situation], Mapping[str, float]] | None = None

    def of(self, situation: Situation) -> float:
        """Cycles of one iteration."""
        if self.cycles is not None:
            return self.cycles(situation)
        return max(self.filled(situation).values(), default=0.0)

    def filled(self, situation: Situation) -> Mapping[str, float]:
        """Cycles by what the loop fills, nothing where it is one thing."""
        return self.parts(situation) if self.parts is not None else {}


RESOURCES, UNITS, LINES_OF_CODE = "resources", "units", "code_lines"
TAKEN = "taken_branches"
EFFECTS = (
    Effect(name=TAKEN, words="taken branches", data=Data.NONE, assumed=True, needs=traits.GOES,
           cycles=lambda s: bounds.branches(s.costs, s.block.loop and not s.is_measured)),
    Effect(name=RESOURCES, words="shared resources", data=Data.THROUGHPUT, assumed=True,
           needs=traits.KEEPS_BUSY, parts=lambda s: bounds.resources(s.costs, s.machine)),
    Effect(name=UNITS, words="units without a port", data=Data.THROUGHPUT, assumed=True,
           needs=traits.IS_SLOW_ALONE, parts=lambda s: bounds.units(s.costs)),
    Effect(name="microcode", words="instructions from microcode", data=Data.THROUGHPUT, assumed=True,
           needs=traits.IS_SLOW_ALONE, cycles=lambda s: bounds.microcode(s.costs, s.machine.core)),
    Effect(name=LINES_OF_CODE, words="lines of its code", data=Data.NONE, assumed=True,
           cycles=lambda s: bounds.code_lines(s.block, s.costs, s.behaviour.lines)),
    Effect(name="locked", words="locked instructions", data=Data.LATENCY, assumed=True,
           needs=traits.IS_LOCKED, cycles=lambda s: bounds.locked(s.costs, s.forward)),
    Effect(name="barriers", words="barriers that let nothing pass", data=Data.LATENCY, assumed=True,
           needs=traits.BARRIER,
           cycles=lambda s: behind_barriers(s.graph, s.behaviour.held, s.machine.core.width)),
    Effect(name="stores", words="stores to different places", data=Data.NONE, assumed=True,
           cycles=lambda s: s.graph.through.chunks),
    Effect(name="loaded_stores", words="stores that are loaded again", data=Data.NONE, assumed=True,
           needs=traits.THROUGH_MEMORY,
           cycles=lambda s: loaded_stores(s.graph, s.behaviour.loaded_stores)),
    Effect(name="load_banks", words="banks of the cache", data=Data.NONE, assumed=True,
           cycles=lambda s: s.graph.through.banks),
    Effect(name="line_crossing", words="loads or stores across lines", data=Data.NONE, assumed=True,
           cycles=lambda s: s.graph.through.crossing),
    Effect(name="cache_waits", words="loads that wait for stores to be in the cache", data=Data.LATENCY,
           assumed=True, needs=traits.THROUGH_MEMORY,
           cycles=lambda s: cache_waits(s.graph, s.behaviour, s.machine.core.width)),
    Effect(name="memory_trips", words="round trips through memory", data=Data.LATENCY, assumed=True,
           needs=traits.THROUGH_MEMORY, cycles=lambda s: memory_trips(s.graph, s.behaviour.passing)),
    Effect(name="late_loads", words="loads that come late among others", data=Data.THROUGHPUT, assumed=True,
           needs=traits.LOADS_GENERAL, cycles=lambda s: late_loads(s.graph, s.behaviour.late_loads)),
    Effect(name="beside_additions", words="loads beside additions", data=Data.THROUGHPUT, assumed=True,
           needs=traits.LOADS_GENERAL,
           cycles=lambda s: beside_additions(s.graph, s.behaviour.beside_additions)),
    Effect(name="beside_stores", words="wide loads beside stores", data=Data.THROUGHPUT, assumed=True,
           needs=traits.STORES_VECTORS, cycles=lambda s: beside_stores(
               s.costs, s.behaviour.beside_stores, s.graph.through.longer)),
    Effect(name="stack_reads", words="operations on the stack pointer", data=Data.THROUGHPUT, assumed=True,
           needs=traits.POINTED,
           cycles=lambda s: s.behaviour.stack_reads * sum(one.variant.pointed for one in s.costs)),
    Effect(name="constants", words="constants that are stored", data=Data.THROUGHPUT, assumed=True,
           needs=traits.STORES_CONSTANTS,
           cycles=lambda s: sum(one.variant.more.alone for one in s.costs)),
    Effect(name="halves", words="halves of the ports for memory", data=Data.THROUGHPUT, assumed=True,
           cycles=lambda s: bounds.halves(s.costs, s.machine, s.behaviour.together)),
    Effect(name="meeting_results", words="results that meet at their ports", data=Data.LATENCY, assumed=True,
           needs=traits.USES_VECTORS,
           cycles=lambda s: meeting_results(s.graph, s.machine.core, s.units)),
    Effect(name="renamed_memory", words="steps of renamed memory", data=Data.NONE, assumed=True,
           needs=traits.IS_RENAMED, cycles=lambda s: renamed_memory(s.graph)),
)  # fmt: skip
ASSUMED_EFFECTS = tuple(effect.name for effect in EFFECTS if effect.assumed)


_NAMED = {effect.name: effect for effect in EFFECTS}


def effect_named(name: str) -> Effect | None:
    """The effect of a name, None for another bound."""
    return _NAMED.get(name)
