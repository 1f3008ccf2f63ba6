"""What instructions do in each cycle on the simulated core: states, and the reason of every wait in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from cyclescope.analyze.predict.observed import BlockSimulation
from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.analyze.predict.watched import WatchedInstruction, WatchedOperation
from cyclescope.report.words import counted, listed

_NAMED = (
    4  # instructions that are named as having had a port: those of as many cycles as are read at a glance
)


class LaneState(StrEnum):
    """What an instruction does in a cycle, as the letter of a timeline."""

    REFUSED = "b"
    DISPATCHED = "D"
    OPERANDS = "="
    PORT = "p"
    EXECUTED = "e"
    LAST = "E"
    COMPLETE = "-"
    RETIRED = "R"


STATE_WORDS = {
    LaneState.REFUSED: "a buffer has no room for it",
    LaneState.DISPATCHED: "dispatched",
    LaneState.OPERANDS: "waits for operands",
    LaneState.PORT: "waits for a port",
    LaneState.EXECUTED: "executed",
    LaneState.LAST: "the last cycle of that",
    LaneState.COMPLETE: "waits for earlier ones to retire",
    LaneState.RETIRED: "retired",
}


class Stretch(NamedTuple):
    """Cycles from `since`, `until` excluded, in one state, and why."""

    state: LaneState
    since: int
    until: int
    why: str


class Lanes:
    """The rows of one prediction. `texts` are its instructions by position, as reports name them."""

    def __init__(self, found: Prediction, simulation: BlockSimulation) -> None:
        self._found, self._rows = found, simulation.rows
        self._known = simulation.known

    def text(self, instruction: int) -> str:
        """An instruction of the simulated loop as it is written."""
        return " ".join(self._found.instructions[self._known[instruction]].text.split())

    def place(self, instruction: int) -> str:
        """`line 7`, or the address, or the number of the instruction where there is neither."""
        row = self._found.instructions[self._known[instruction]]
        if row.line:
            return f"line {row.line}"
        return f"{row.address:x}" if row.address is not None else f"instruction {instruction + 1}"

    @cached_property
    def cycles(self) -> int:
        """Cycles that the rows have."""
        return max((row.retired for row in self._rows), default=0) + 1

    @cached_property
    def _users(self) -> dict[tuple[int, str], WatchedInstruction]:
        """Who got a port in a cycle."""
        return {(op.issued, op.port): row for row in self._rows for op in row.operations}

    @cached_property
    def _by_place(self) -> dict[tuple[int, int], WatchedInstruction]:
        return {(row.iteration, row.instruction): row for row in self._rows}

    def of(self, row: WatchedInstruction) -> list[Stretch]:
        """The stretches of a row, in the order of time."""
        states = list(self._states(row))
        found: list[Stretch] = []
        for cycle, state in states:
            if found and found[-1].state is state and found[-1].until == cycle:
                found[-1] = found[-1]._replace(until=cycle + 1)
            else:
                found.append(Stretch(state, cycle, cycle + 1, ""))
        return [one._replace(why=self._why(row, one)) for one in found]

    def _states(self, row: WatchedInstruction) -> Iterator[tuple[int, LaneState]]:
        if row.refused_since is not None:
            for cycle in range(row.refused_since, row.dispatched):
                yield cycle, LaneState.REFUSED
        yield row.dispatched, LaneState.DISPATCHED
        for cycle in range(row.dispatched + 1, row.retired):
            yield cycle, self._state(row, cycle)
        if row.retired > row.dispatched:
            yield row.retired, LaneState.RETIRED

    def _state(self, row: WatchedInstruction, cycle: int) -> LaneState:
        """Between dispatch and retirement."""
        if cycle >= row.completed:
            return LaneState.COMPLETE
        if any(op.ready <= cycle < op.issued for op in row.operations):
            return LaneState.PORT
        if not any(op.issued <= cycle for op in row.operations) or self._waits(row, cycle):
            return LaneState.OPERANDS
        return LaneState.LAST if cycle == row.completed - 1 else LaneState.EXECUTED

    def _waits(self, row: WatchedInstruction, cycle: int) -> bool:
        """Whether an operation behind one that has begun waits for another instruction."""
        made = (op.waited_for for op in row.operations if op.ready > cycle and op.waited_for is not None)
        rows = (self._by_place.get((one.iteration, one.instruction)) for one in made)
        return any(other is not None and other.completed > cycle for other in rows)

    # --- reasons ---------------------------------------------------------------------------------

    def _why(self, row: WatchedInstruction, one: Stretch) -> str:
        match one.state:
            case LaneState.REFUSED:
                return f"the {row.buffer} has no room for it"
            case LaneState.OPERANDS:
                return self._operands(row)
            case LaneState.PORT:
                return self._port(row, one)
            case LaneState.EXECUTED | LaneState.LAST:
                used = listed(
                    list(dict.fromkeys(f"port {op.port} in cycle {op.issued}" for op in row.operations))
                )
                return f"executed; got {used}" if used else "needs no port"
            case LaneState.COMPLETE:
                return "complete; instructions retire in the order of the program"
            case _:
                return ""

    def _operands(self, row: WatchedInstruction) -> str:
        late = max(row.operations, key=lambda op: op.ready, default=None)
        if late is None or late.waited_for is None:
            return (
                "waits for its operands"
                if row.operations
                else "takes no port, but passes on what is not there"
            )
        made = late.waited_for
        where = f"{self.place(made.instruction)} (iteration {made.iteration})"
        itself = " of its own address" if made.by.endswith(("address", "index")) else ""
        return f"waits for {made.by}{itself} from {where}: {self.text(made.instruction)}"

    def _port(self, row: WatchedInstruction, one: Stretch) -> str:
        waiting = max(row.operations, key=lambda op: op.issued - op.ready)
        named = f"waits for {port_words(waiting.ports)}"
        users = self._who(waiting, one)
        return f"{named}, which {users} had" if users else f"{named}, which others had"

    def _who(self, waiting: WatchedOperation, one: Stretch) -> str:
        """Who had the ports while an operation waited for them, each once."""
        places: dict[str, set[int]] = defaultdict(set)
        for cycle in range(max(one.since, waiting.ready), min(one.until, waiting.issued)):
            for port in waiting.ports:
                user = self._users.get((cycle, port))
                if user is not None:
                    places[self.place(user.instruction)].add(user.iteration)
        named = list(places.items())[:_NAMED]
        rest = [counted(len(places) - _NAMED, "other")] if len(places) > _NAMED else []
        return listed([f"{place} ({_iterations(some)})" for place, some in named] + rest)


def _iterations(some: set[int]) -> str:
    ends = list(dict.fromkeys((min(some), max(some))))
    return f"iteration{'s' if len(ends) > 1 else ''} {' to '.join(map(str, ends))}"


def port_words(ports: Sequence[str]) -> str:
    """`port ALU0`, `one of the ports ALU0 ALU1`."""
    if len(ports) == 1:
        return f"port {ports[0]}" if " " not in ports[0] else ports[0]  # a unit
    return f"one of the ports {' '.join(ports)}"


def letters(stretches: Sequence[Stretch], cycles: int) -> str:
    """A row of a timeline, a letter for each cycle."""
    line = ["."] * cycles
    for one in stretches:
        for cycle in range(one.since, min(one.until, cycles)):
            line[cycle] = one.state.value
    return "".join(line).rstrip(".")
