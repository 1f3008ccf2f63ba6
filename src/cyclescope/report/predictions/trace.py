"""The simulated core as a page: a row per instruction and iteration, columns of cycles, reasons to see."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cyclescope.analyze.predict.observed import BlockSimulation
from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.errors import UsageError
from cyclescope.report.pages.rendering import rendered
from cyclescope.report.predictions.lanes import STATE_WORDS, Lanes, LaneState, Stretch
from cyclescope.report.predictions.simulation import gain_words, share_words
from cyclescope.report.words import counted, plain

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_CYCLES = 2_000  # columns: a browser lays out no more at once without a wait
_EVERY = 5  # cycles from one number above the columns to the next
_CLASSES = {
    LaneState.REFUSED: "refused", LaneState.DISPATCHED: "dispatched", LaneState.OPERANDS: "operands",
    LaneState.PORT: "port", LaneState.EXECUTED: "executed", LaneState.LAST: "executed",
    LaneState.COMPLETE: "complete", LaneState.RETIRED: "retired",
}  # fmt: skip


class _Segment(NamedTuple):
    kind: str
    since: int
    width: int
    letter: str
    why: str


class _Row(NamedTuple):
    place: str
    text: str
    iteration: int
    is_first: bool
    segments: list[_Segment]


def trace_page(found: Prediction) -> str:
    """The page, which needs nothing else."""
    found = plain(found)
    simulation = found.simulation
    if simulation is None:
        raise UsageError("the block was not watched on the simulated core")
    lanes = Lanes(found, simulation)
    columns = min(lanes.cycles, _MOST_CYCLES)
    rows = _rows(simulation, lanes, columns)
    return rendered(
        _TEMPLATES, "trace.html",
        title=" ".join(filter(None, (found.source, found.name, "on", found.machine, "cycle by cycle"))),
        machine=found.machine, cycles=f"{simulation.cycles:.2f}", columns=columns, rows=rows,
        shown=counted(1 + max((row.iteration for row in rows), default=0), "iteration"),
        ticks=list(range(0, columns, _EVERY)), every=_EVERY,
        legend=[(kind, state.value, STATE_WORDS[state]) for state, kind in _CLASSES.items()],
        shares=[(f"{s.cycles:.2f}", share_words(lanes, s)) for s in simulation.shares if s.cycles >= 0.005],
        gains=[(f"{g.cycles:.2f}", f"{g.saved:.2f}", gain_words(lanes, g)) for g in simulation.gains],
        occupancy=simulation.occupancy,
    )  # fmt: skip


def _rows(simulation: BlockSimulation, lanes: Lanes, columns: int) -> list[_Row]:
    found = []
    for row in simulation.rows:
        if row.dispatched >= columns:
            break
        text, place = lanes.text(row.instruction), lanes.place(row.instruction)
        about = f"{place}, iteration {row.iteration}"
        segments = [_segment(one, about, columns) for one in lanes.of(row) if one.since < columns]
        found.append(_Row(place, text, row.iteration, row.instruction == 0, segments))
    return found


def _segment(one: Stretch, about: str, columns: int) -> _Segment:
    until = min(one.until, columns)
    cycles = f"cycle {one.since}" if one.until == one.since + 1 else f"cycles {one.since} to {one.until - 1}"
    why = one.why or STATE_WORDS[one.state]
    return _Segment(
        _CLASSES[one.state], one.since, until - one.since, one.state.value,
        f"{about}, {cycles}: {why}",
    )  # fmt: skip
