"""What every instruction of a loop does on the simulated core: the data behind timelines and traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from cyclescope.simulate.engine import Body, Engine, Layout, Steady, Template, Trace

MOST_RUN = 4_000  # instructions after which an average has to do
AVERAGING = 0.005  # relative: what it is off by in loops that never come back to a state
SHOWN = 10  # iterations with a row for each instruction, as llvm-mca's timeline has
_LONGEST = 400  # rows, as long as somebody may read; at least one iteration
_FILLED = 2  # times the reorder buffer: instructions after which a core has the state that it keeps
MOST_WATCHED = 2_000  # instructions that are looked at from then on: hundreds of iterations of a short loop
_FEWEST = 8  # iterations of them at least, so that a long loop has its usual share of everything


class LoopOnCore(NamedTuple):
    """A block as the engine takes it: per instruction a template, and locations that it reads and writes.

    `units` are names of the last ports of the layout, which are no ports of the machine.
    """

    layout: Layout
    templates: tuple[Template, ...]
    sources: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    units: tuple[str, ...] = ()

    def body(self, engine: Engine) -> Body:
        """The loop on an engine of this layout."""
        words: list[int] = []
        for template, sources, targets in zip(self.templates, self.sources, self.targets, strict=True):
            words += [engine.add(template), *sources, *targets]
        return Body(words)

    def steady(self) -> Steady:
        """Its steady state."""
        engine = Engine(self.layout)
        return engine.run(self.body(engine), MOST_RUN)

    def trace(self, iterations: int) -> Trace:
        """What happens in its first iterations."""
        engine = Engine(self.layout)
        return engine.trace(self.body(engine), iterations)


class Producer(msgspec.Struct, frozen=True):
    """Who makes what is waited for: a position in the block and an iteration; `by` is what is read of it."""

    instruction: int
    iteration: int
    by: str


class WatchedOperation(msgspec.Struct, frozen=True):
    """A micro-operation: when it could issue, when it did and where, of which `ports`.

    `waited_for` made it wait last, None where its operands were there at dispatch.
    """

    ready: int
    issued: int
    port: str
    ports: tuple[str, ...]
    waited_for: Producer | None = None


class WatchedInstruction(msgspec.Struct, frozen=True):
    """One instruction in one iteration; times are cycles from the start of the loop.

    `refused_since` is the cycle from which on `buffer` had no room for it, None where it was never refused.
    """

    instruction: int
    iteration: int
    dispatched: int
    completed: int
    retired: int
    operations: tuple[WatchedOperation, ...] = ()
    refused_since: int | None = None
    buffer: str = ""


class LoopTrace:
    """A loop in its first iterations, with who waited for whom. `names` are what sources are called."""

    def __init__(
        self, loop: LoopOnCore, iterations: int, ports: Sequence[str], names: Sequence[Sequence[str]]
    ) -> None:
        self.loop, self.iterations, self.ports = loop, iterations, tuple(ports)
        self.trace = loop.trace(iterations)
        self._names = names
        self.length = len(loop.templates)

    def __len__(self) -> int:
        return len(self.trace.instructions)

    @cached_property
    def _writers(self) -> tuple[dict[int, int], tuple[dict[int, int], ...]]:
        """By location the last instruction of an iteration that writes it; the same in front of every one."""
        found: dict[int, int] = {}
        before = []
        for number, targets in enumerate(self.loop.targets):
            before.append(dict(found))
            found |= dict.fromkeys(targets, number)
        return found, tuple(before)

    def producer(self, sequence: int, source: int) -> int | None:
        """The instruction, counted from the start, that makes a source; None for what was always there."""
        last, before = self._writers
        iteration, number = divmod(sequence, self.length)
        location = self.loop.sources[number][source]
        if location == 0:
            return None
        if location in before[number]:
            return iteration * self.length + before[number][location]
        if location in last and iteration:
            return (iteration - 1) * self.length + last[location]
        return None

    def ports_of(self, sequence: int, operation: int) -> tuple[str, ...]:
        """Names of the ports that an operation may use."""
        ports = self.loop.templates[sequence % self.length].work[operation].ports
        return tuple(name for port, name in enumerate(self.ports) if ports >> port & 1)

    def rows(self, most: int) -> Iterator[WatchedInstruction]:
        """The first instructions, at most so many."""
        for sequence in range(min(most, len(self))):
            yield self._row(sequence)

    def _row(self, sequence: int) -> WatchedInstruction:
        iteration, number = divmod(sequence, self.length)
        refused = self.trace.refusals[sequence]
        return WatchedInstruction(
            number, iteration, *self.trace.instructions[sequence],
            tuple(self._operation(sequence, o) for o in range(len(self.trace.operations[sequence]))),
            refused.since if refused else None, refused.buffer if refused else "",
        )  # fmt: skip

    def _operation(self, sequence: int, operation: int) -> WatchedOperation:
        issued, port = self.trace.operations[sequence][operation]
        ready, source = self.trace.ready[sequence][operation]
        made_by = self.producer(sequence, source) if source >= 0 else None
        waited = None
        if made_by is not None:
            iteration, number = divmod(made_by, self.length)
            waited = Producer(number, iteration, self._names[sequence % self.length][source])
        return WatchedOperation(ready, issued, self.ports[port], self.ports_of(sequence, operation), waited)


def shown_iterations(length: int) -> int:
    """How many iterations of a loop of so many instructions have rows."""
    return max(min(SHOWN, _LONGEST // length), 1)


def filled_iterations(layout: Layout, length: int) -> int:
    """Iterations after which the buffers of a core are as full as they stay."""
    return _FILLED * layout.reorder_buffer // length + 1


def window_iterations(length: int) -> int:
    """Iterations that are looked at from then on."""
    return max(MOST_WATCHED // length, _FEWEST)
