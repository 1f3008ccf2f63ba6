"""The simulated core as text: where the time goes, what would save some, what is in use, and a timeline."""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.analyze.predict.causes import DISPATCHING, PORTS_TAKEN, TimeShare
from cyclescope.analyze.predict.observed import BlockSimulation
from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.analyze.predict.sensitivity import (
    BUFFERS_GONE,
    DEPENDENCIES_GONE,
    FRONT_END_GONE,
    PORT_TWICE,
    PORTS_GONE,
    Gain,
)
from cyclescope.errors import UsageError
from cyclescope.model.machine import EVENLY, GROUPED, IDEAL, ROUND_ROBIN, STATIC
from cyclescope.report.predictions.lanes import STATE_WORDS, Lanes, letters, port_words
from cyclescope.report.predictions.text import analysis_text
from cyclescope.report.tables import aligned
from cyclescope.report.words import plain

_POLICIES = {
    IDEAL: "when they start", STATIC: "at dispatch, the one that fewest wait for",
    ROUND_ROBIN: "at dispatch, in turn", GROUPED: "at dispatch, in groups",
    EVENLY: "at dispatch, the one that got fewest",
}  # fmt: skip
_MOST = 12  # rows of a table: what is left is a small part of the time
_WIDEST = 160  # cycles of a timeline: as many as a wide terminal shows beside the instructions
_TEXT = 44  # characters of an instruction in it
_GONE = {
    FRONT_END_GONE: "a front end without a limit", BUFFERS_GONE: "buffers without a limit",
    PORTS_GONE: "ports without a limit", DEPENDENCIES_GONE: "no dependencies",
}  # fmt: skip


def simulation_text(found: Prediction) -> str:
    """The report, and what the simulated core does."""
    found = plain(found)
    return "\n\n".join((analysis_text(found), *_sections(found, _simulation(found))))


def timeline_text(found: Prediction) -> str:
    """The first iterations, one row per instruction and a letter for each cycle."""
    found = plain(found)
    simulation = _simulation(found)
    lanes = Lanes(found, simulation)
    width = min(lanes.cycles, _WIDEST)
    legend = "  ".join(f"{state.value} {words}" for state, words in STATE_WORDS.items())
    rows = [_head(found, simulation), "", legend, "", *_scale(width)]
    for row in simulation.rows:
        if row.dispatched >= width:
            rows.append(f"(the others begin after cycle {width - 1})")
            break
        index = f"[{row.iteration},{row.instruction}]"
        line = letters(lanes.of(row), width).ljust(width)
        rows.append(f"{index:<9}{line}  {lanes.text(row.instruction)[:_TEXT]}")
    return "\n".join(rows)


def _simulation(found: Prediction) -> BlockSimulation:
    if found.simulation is None:
        raise UsageError("the block was not watched on the simulated core")
    return found.simulation


def _head(found: Prediction, simulation: BlockSimulation) -> str:
    about = "" if simulation.exact else "about "
    known = ", for want of knowing better" if simulation.assumed else ""
    return (
        f"simulated core of {found.machine}: {about}{simulation.cycles:.2f} cycles per iteration; "
        f"operations get their ports {_POLICIES[simulation.policy]}{known}"
    )


def _scale(width: int) -> list[str]:
    tens = "".join(f"{cycle:<10}" for cycle in range(0, width, 10))
    return [f"{'':9}{tens[:width]}".rstrip(), f"{'':9}{'0123456789' * (width // 10 + 1)}"[: 9 + width]]


def _sections(found: Prediction, simulation: BlockSimulation) -> Iterator[str]:
    lanes = Lanes(found, simulation)
    yield _head(found, simulation)
    shares = [[f"{s.cycles:.2f}", f"{100 * s.cycles / _all(simulation):.0f} %", share_words(lanes, s)]
              for s in simulation.shares[:_MOST] if s.cycles >= 0.005]  # fmt: skip
    yield _table(["cycles", "", "where the time goes"], shares)
    yield _gains(lanes, simulation)
    used = [[f"{one.mean:.1f}", str(one.most), "" if one.room is None else str(one.room), one.name]
            for one in simulation.occupancy]  # fmt: skip
    yield _table(["on average", "at most", "of", "in use"], used)


def _gains(lanes: Lanes, simulation: BlockSimulation) -> str:
    if not simulation.gains:
        return (
            "no single change would save anything: several limits hold at once, or one that is not simulated"
        )
    rows = [
        [f"{one.cycles:.2f}", f"-{one.saved:.2f}", gain_words(lanes, one)] for one in simulation.gains[:_MOST]
    ]
    return _table(["cycles", "", "with"], rows)


def _all(simulation: BlockSimulation) -> float:
    return sum(share.cycles for share in simulation.shares) or 1.0


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(aligned([head, *rows], left={len(head) - 1}))


def share_words(lanes: Lanes, share: TimeShare) -> str:
    """What a share of the time is spent on."""
    if share.kind == DISPATCHING:
        return "front end"
    if share.kind == PORTS_TAKEN:
        return f"waiting for {port_words(share.ports)}"
    return _named(lanes, share.instruction)


def gain_words(lanes: Lanes, gain: Gain) -> str:
    """What would be otherwise."""
    if gain.kind == PORT_TWICE:
        return f"a second port {gain.port}"
    if gain.instruction is not None:
        return f"one cycle less of latency: {_named(lanes, gain.instruction)}"
    return _GONE[gain.kind]


def _named(lanes: Lanes, instruction: int | None) -> str:
    assert instruction is not None
    return f"{lanes.place(instruction)}: {lanes.text(instruction)}"
