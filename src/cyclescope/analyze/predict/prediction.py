"""The prediction: what bounds a loop, by how much, and what every instruction has to do with it."""

from __future__ import annotations

from functools import cached_property

import msgspec

from cyclescope.analyze.decode.block import BlockInstruction, SourcePlace
from cyclescope.analyze.predict.observed import BlockSimulation
from cyclescope.model.machine import Borrowed, Provenance, Width

PORTS, PORTS_FIXED, FRONT_END = "ports", "ports_fixed", "front_end"
LOOP_CARRIED, CRITICAL_PATH, IN_ORDER = "loop_carried", "critical_path", "in_order"
SCHEDULED = "scheduler"
CRITICAL_PATH_FIXED = "critical_path_fixed"
NO_BOUNDS = (CRITICAL_PATH, CRITICAL_PATH_FIXED, PORTS_FIXED)  # what a loop may be faster than


class InstructionCost(msgspec.Struct, frozen=True):
    """An instruction's part of a prediction.

    `ports` has cycles by port in the most even assignment, `ports_fixed` with each operation split evenly;
    `critical_path` and `loop_carried` are the cycles that it adds to the longest path and to the slowest
    chain, None if it is not on them. `remarks` say how its place in the block changes it. Machine code has an
    `address` instead of a line, and with debugging information a `place` in a source file.
    """

    line: int
    text: str
    form: str
    slots: float
    ports: dict[str, float]
    ports_fixed: dict[str, float]
    critical_path: float | None = None
    loop_carried: float | None = None
    remarks: tuple[str, ...] = ()
    ignored: bool = False
    address: int | None = None
    place: SourcePlace | None = None


def left_out(one: BlockInstruction) -> InstructionCost:
    """The row of an instruction that is not accounted for."""
    form = one.form.id if one.form else ""
    return InstructionCost(
        one.line, one.text, form, 0.0, {}, {}, ignored=True, address=one.machine_address, place=one.place
    )


class LoopCarried(msgspec.Struct, frozen=True):
    """A chain of dependencies through iterations: `cycles` per iteration, closed after `iterations`.

    `lines` are source lines, `instructions` positions in the block, in the order of the chain.
    """

    cycles: float
    iterations: int
    lines: tuple[int, ...]
    instructions: tuple[int, ...]


class CriticalPath(msgspec.Struct, frozen=True):
    """The longest path through one iteration; with `fixed`, as if each instruction had one latency."""

    cycles: float
    lines: tuple[int, ...]
    instructions: tuple[int, ...]


class Dependency(msgspec.Struct, frozen=True):
    """An edge of the dependency graph, between positions in the block.

    `by` names what the target reads; `distance` is in iterations.
    """

    source: int
    target: int
    distance: int
    cycles: float
    by: str


class ChangedPrediction(msgspec.Struct, frozen=True):
    """Cycles of an iteration, and what bounds it, after a hypothetical change; `what` is the change."""

    what: str
    cycles: float
    bottleneck: str


class MeasuredLoop(msgspec.Struct, frozen=True):
    """The measured cycles of the block on this machine, as copies or as a loop; None with the reason.

    `predicted` are the cycles that are predicted of just the code that was measured, which has another end.
    """

    notion: str
    cycles: float | None
    spread: float = 0.0
    reason: str = ""
    predicted: float | None = None


class Unknown(msgspec.Struct, frozen=True):
    """An instruction that is not accounted for, and why."""

    line: int
    text: str
    reason: str
    address: int | None = None


class NotPredicted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine without a prediction: `problem` says why, `borrowed` what it takes from another core."""

    machine: str
    problem: str
    borrowed: tuple[Borrowed, ...] = ()


class Prediction(msgspec.Struct, frozen=True, dict=True):
    """Cycles per iteration of a block, as a bracket, with the bounds that make it.

    No core that is as the model says can be faster than `lower`, whatever is assumed about memory. `cycles`
    is the expected value: on an out-of-order core the greatest bound, on an in-order core the simulated one.
    `upper` is what the simulated core takes if ports are chosen before operands are ready; None if it cannot
    be simulated. Both hold if the model is right; `interval` is the least and the most if its data are off by
    as much as 8 of 10 data of their kind are. `bounds` has the cycles of each bound alone; `critical_path`,
    `critical_path_fixed` and `ports_fixed` are no lower bounds. `full` are the ports, resources or units that
    the bottleneck fills. `unroll_factor` is how many units of work one iteration does, 0 if not given.
    `pointer_increment` is the number of bytes by which the loop moves its pointer, None if it moves none;
    `elements` how many array elements these are, None if the instructions do not show it. `width` is that of
    the front end; an assumed width is not used for `lower`. `borrowed` says what is taken from another core.
    `simulation`, `what_if` and `measured` are there on request: what the simulated core does with the block,
    predictions after changes, and the time on this machine.
    """

    machine: str
    isa: str
    provenance: Provenance
    width: Width
    cycles: float
    lower: float
    upper: float | None
    interval: tuple[float, float]
    bottleneck: str
    full: tuple[str, ...]
    bounds: dict[str, float]
    ports: dict[str, float]
    ports_fixed: dict[str, float]
    resources: dict[str, float]
    slots: float
    instructions: tuple[InstructionCost, ...]
    loop_carried: tuple[LoopCarried, ...]
    critical_path: CriticalPath
    dependencies: tuple[Dependency, ...]
    unknown: tuple[Unknown, ...] = ()
    notes: tuple[str, ...] = ()
    fixed: bool = False
    unroll_factor: float = 0
    source: str = ""
    name: str = ""
    found: str = ""
    loop: bool = False
    pointer_increment: int | None = None
    elements: int | None = None
    borrowed: tuple[Borrowed, ...] = ()
    simulation: BlockSimulation | None = None
    what_if: tuple[ChangedPrediction, ...] = ()
    measured: tuple[MeasuredLoop, ...] = ()

    @cached_property
    def alone(self) -> dict[str, float]:
        """Cycles if each bound were the only one, the greatest first."""
        left_out = (CRITICAL_PATH, CRITICAL_PATH_FIXED, PORTS if self.fixed else PORTS_FIXED)
        found = [(name, cycles) for name, cycles in self.bounds.items() if name not in left_out]
        return dict(sorted(found, key=lambda pair: -pair[1]))

    @property
    def gap(self) -> tuple[str, float] | None:
        """The second greatest bound, and by how many cycles it is below the first."""
        ranked = list(self.alone.items())
        return (ranked[1][0], ranked[0][1] - ranked[1][1]) if len(ranked) > 1 else None

    @property
    def throughput(self) -> float:
        """Cycles per iteration without dependencies: the greatest bound of the core's resources."""
        return max((c for name, c in self.alone.items() if name not in (LOOP_CARRIED, IN_ORDER)), default=0.0)

    @property
    def lcd(self) -> float:
        """Cycles per iteration of the slowest loop-carried dependency."""
        return self.bounds.get(LOOP_CARRIED, 0.0)

    @property
    def cp(self) -> float:
        """Cycles of the critical path."""
        return self.critical_path.cycles

    @property
    def port_cycles(self) -> list[float]:
        """Cycles per port in the order of the machine's ports."""
        return list((self.ports_fixed if self.fixed else self.ports).values())

    @property
    def unmatched(self) -> float:
        """Share of the instructions that are left out."""
        return len(self.unknown) / len(self.instructions) if self.instructions else 0.0

    @property
    def per_unit(self) -> float | None:
        """Expected cycles per unit of work, where the unroll factor is given."""
        return self.cycles / self.unroll_factor if self.unroll_factor else None
