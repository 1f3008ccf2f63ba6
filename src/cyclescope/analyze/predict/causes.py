"""Where the time of a loop goes: a walk back through what waited for what on the simulated core.

From the end of a stretch of the loop back to its beginning, every cycle belongs to what kept the next step
from being earlier: a result that was not there, a port that others used, a front end that had not come so
far. A full buffer is no cause of its own: it waits for an older instruction, and the way goes on from there.
The graph is that of Fields, Rubin and Bodik (2001); nothing of it is guessed, as the engine tells what waited
for what.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

import msgspec

from cyclescope.analyze.predict.watched import LoopTrace

DISPATCHING, PORTS_TAKEN, RESULT_LATE = "front_end", "ports", "latency"


class TimeShare(msgspec.Struct, frozen=True):
    """Cycles of an iteration that belong to one cause.

    RESULT_LATE is of an `instruction`, a position in the block; PORTS_TAKEN are those that an instruction's
    operations waited for.
    """

    kind: str
    cycles: float
    instruction: int | None = None
    ports: tuple[str, ...] = ()


def causes(loop: LoopTrace, first: int, last: int) -> tuple[TimeShare, ...]:
    """Shares of the time from the end of the iteration before `first` to that of `last`, the most first."""
    start, end = first * loop.length, (last + 1) * loop.length - 1
    way = _WayBack(loop, loop.trace.instructions[start - 1][2])
    way.walk(end)
    iterations = last + 1 - first
    found = (
        TimeShare(kind, cycles / iterations, number, ports)
        for (kind, number, ports), cycles in way.shares.items()
        if cycles
    )
    return tuple(sorted(found, key=lambda share: -share.cycles))


class _Step(NamedTuple):
    """Where the way goes on: at a result, at the retirement, or where an operation issued."""

    sequence: int
    now: int
    retiring: bool = False
    operation: int | None = None


class _WayBack:
    """Goes back in time from one instruction's retirement to the time `until`."""

    def __init__(self, loop: LoopTrace, until: int) -> None:
        self._loop, self._until = loop, until
        self._rows, self._operations = loop.trace.instructions, loop.trace.operations
        self._retired = [retired for _, _, retired in self._rows]
        self._issued: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for sequence, operations in enumerate(self._operations):
            for number, (cycle, _) in enumerate(operations):
                self._issued[cycle].append((sequence, number))
        self.shares: dict[tuple[str, int | None, tuple[str, ...]], int] = defaultdict(int)

    def walk(self, sequence: int) -> None:
        """From the retirement of an instruction."""
        step: _Step | None = _Step(sequence, self._rows[sequence][2], retiring=True)
        while step and step.now > self._until and step.sequence >= 0:
            step = self._next(step)

    def _next(self, step: _Step) -> _Step | None:
        """One step back, None at the beginning."""
        if step.operation is not None:
            return self._from_issue(step.sequence, step.operation, step.now)
        sequence = self._last_complete(step.sequence, step.now) if step.retiring else step.sequence
        return self._from_result(sequence, step.now)

    def _last_complete(self, sequence: int, now: int) -> int:
        """What an instruction that retires waited for: itself, or one before it that was not complete."""
        while sequence and self._rows[sequence][1] < now and self._rows[sequence - 1][2] == now:
            sequence -= 1
        return sequence

    def _spend(
        self, kind: str, since: int, now: int, number: int | None = None, ports: tuple[str, ...] = ()
    ) -> int:
        cycles = now - max(since, self._until)
        if cycles > 0:
            self.shares[kind, number, ports] += cycles
        return min(since, now)

    def _from_result(self, sequence: int, now: int) -> _Step | None:
        """From a result of an instruction that is there at `now` to what it waited for."""
        number = sequence % self._loop.length
        operation, made_by = self._deciding(sequence, now), self._slowest_source(sequence, now)
        dispatched, there = self._rows[sequence][0], self._rows[made_by][1] if made_by is not None else -1
        issued = dispatched if operation is None else self._operations[sequence][operation][0]
        if made_by is not None and there > issued + (operation is None):  # data that a load only passes on
            return _Step(made_by, self._spend(RESULT_LATE, there, now, number))
        if operation is None:
            return self._from_dispatch(sequence, self._spend(DISPATCHING, dispatched, now))
        return self._from_issue(sequence, operation, self._spend(RESULT_LATE, issued, now, number))

    def _deciding(self, sequence: int, now: int) -> int | None:
        """The operation of an instruction that issued last before `now`."""
        issued = [(cycle, o) for o, (cycle, _) in enumerate(self._operations[sequence]) if cycle < now]
        return max(issued)[1] if issued else None

    def _slowest_source(self, sequence: int, now: int) -> int | None:
        """The instruction that was the last to be complete before `now` of those whose results are read."""
        sources = range(len(self._loop.loop.sources[sequence % self._loop.length]))
        made = [p for s in sources if (p := self._loop.producer(sequence, s)) is not None]
        return max((p for p in made if self._rows[p][1] < now), key=lambda p: self._rows[p][1], default=None)

    def _from_issue(self, sequence: int, operation: int, now: int) -> _Step | None:
        ready, source = self._loop.trace.ready[sequence][operation]
        ports = self._loop.ports_of(sequence, operation)
        now = self._spend(PORTS_TAKEN, ready, now, ports=ports)
        made_by = self._loop.producer(sequence, source) if source >= 0 else None
        number = sequence % self._loop.length
        if source >= 0:
            now = self._within(sequence, operation, now)
        if made_by is None:
            return self._from_dispatch(sequence, self._spend(DISPATCHING, self._rows[sequence][0], now))
        return _Step(made_by, self._spend(RESULT_LATE, min(self._rows[made_by][1], now), now, number))

    def _within(self, sequence: int, operation: int, now: int) -> int:
        """What the load of an instruction waited for a port, in front of an operation behind it."""
        work = self._loop.loop.templates[sequence % self._loop.length].work
        if work[operation].early:
            return now
        for o, op in enumerate(work):
            ready, issued = self._loop.trace.ready[sequence][o].cycle, self._operations[sequence][o][0]
            if op.early and issued > ready:
                number = sequence % self._loop.length
                now = self._spend(RESULT_LATE, min(issued, now), now, number)
                return self._spend(PORTS_TAKEN, min(ready, now), now, ports=self._loop.ports_of(sequence, o))
        return now

    def _from_dispatch(self, sequence: int, now: int) -> _Step | None:
        """From the dispatch of an instruction to what kept it from being earlier."""
        while sequence:
            refused = self._loop.trace.refusals[sequence]
            if refused is not None:
                return self._from_room(sequence, now, refused.buffer)
            sequence -= 1
            now = self._spend(DISPATCHING, self._rows[sequence][0], now)
            if now <= self._until:
                break
        return None

    def _from_room(self, sequence: int, now: int, buffer: str) -> _Step | None:
        """From where a buffer has room again to what made it."""
        if buffer == "scheduler":
            wanted = {
                port
                for o in range(len(self._operations[sequence]))
                for port in self._loop.ports_of(sequence, o)
            }
            for other, operation in self._issued.get(now, ()):
                if other < sequence and wanted & set(self._loop.ports_of(other, operation)):
                    return _Step(other, now, operation=operation)
        made_room = bisect_right(self._retired, now) - 1
        return _Step(min(made_room, sequence - 1), now, retiring=True) if made_room >= 0 else None
