"""Results of `bench`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from cyclescope.infer.beside.bursts import TimedBurst
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import TWO_RATES, Measurement
from cyclescope.report.card import EMULATED

SCHEMA_VERSION = 1
NOT_KNOWN = "n/a"
EMULATION = "emulated"  # in place of a verdict
_PRINTED = 0.005  # events per copy: less is printed as 0.00

_REPEATED, _INSIDE = re.compile(r"\d+\*\|[^|]*\|"), "\0"


class Aggregate(NamedTuple):
    """Rounds, or measurements, summed up in one way: `min`, `median`, `max` or `avg`, in cycles per copy."""

    kind: str
    cycles: float
    rounds: int
    what: str = "rounds"


class Counted(NamedTuple):
    """Events that were asked for, those that were counted, in order, and why not all of them.

    With `full_only` what counted nothing, to the two digits that are printed, is left out.
    """

    asked: tuple[str, ...]
    opened: tuple[str, ...]
    why_none: str = ""
    full_only: bool = False

    def values(self, measured: Measurement, copies: int) -> list[tuple[str, float | None]]:
        """Every event that was asked for, per copy of the code; None where it was not counted."""
        known = dict(zip(self.opened, measured.counters, strict=False))
        values = [(name, known.get(name, math.nan) / copies) for name in self.asked]
        kept = [one for one in values if not self.full_only or abs(one[1]) >= _PRINTED or math.isnan(one[1])]
        return [(name, None if math.isnan(value) else value) for name, value in kept]


NOTHING_COUNTED = Counted((), ())


def bench_json(
    label: str, kernel: Kernel, measured: Measurement, unroll: int, machine: str, frequency: float,
    emulated: bool = False, aggregates: Sequence[Aggregate] = (), counted: Counted = NOTHING_COUNTED,
    burst: TimedBurst | None = None, whole: int = 0,
) -> str:  # fmt: skip
    """A measurement of a snippet as JSON, in core cycles per copy of the code, or of `whole` copies."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine,
        "code": label,
        "bytes": kernel.code.hex(),
        "cycles": _rounded(measured.cycles / unroll),
        "spread": _rounded(measured.spread / unroll),
        "verdict": measured.verdict,
        "reason": measured.error or None,
        "rounds": [_rounded(value / unroll) for value in measured.rounds],
        "accepted": measured.accepted,
        "rejected": measured.rejected,
        "disturbed": measured.disturbed,
        "counters": measured.counters,
        "frequency": round(frequency),
    }
    none = dict.fromkeys(("cycles", "spread", "frequency")) | {
        "verdict": EMULATION,
        "rounds": [],
        "counters": [],
    }
    if aggregates and not emulated:
        every = [{"kind": one.kind, "cycles": _rounded(one.cycles)} for one in aggregates]
        data["aggregate"] = every if len(every) > 1 else every[0]
    if counted.asked and not emulated:
        data["events"] = dict(counted.values(measured, unroll))
        data["not_counted"] = counted.why_none or None
    if burst is not None:
        data["copies"] = _copies_json(burst, emulated)
    if whole:
        data["cycles_of"] = whole
    data |= {"emulated": emulated} | (none | {"note": EMULATED} if emulated else {})
    return msgspec.json.encode(data).decode()


def _copies_json(burst: TimedBurst, emulated: bool) -> dict[str, object]:
    """How copies that ran once were timed; `mark` are the cycles of a pair of marks, taken out per copy.

    `beside` are cycles of all copies that pass beside what no copies take, which are not in the value.
    """
    effort = burst.burst.effort
    return {
        "unroll": effort.unroll, "loop": effort.loop, "basic": effort.basic, "drain": effort.drain,
        "pairs_of_marks": burst.burst.pairs, "mark": None if emulated else _rounded(burst.mark),
        "beside": None if emulated or not effort.basic else _rounded(burst.beside),
    }  # fmt: skip


def _rounded(cycles: float) -> float:
    return round(cycles, 4)


def code_lines(code: str) -> list[str]:
    """Code by lines: what is repeated (`3*|add rax, rbx; nop|`) is in one."""
    kept = _REPEATED.sub(lambda found: found[0].replace(";", _INSIDE), code)
    lines = (line.strip() for line in kept.replace(";", "\n").splitlines())
    return [line.replace(_INSIDE, ";") for line in lines if line]


def bench_text(
    label: str, kernel: Kernel, measured: Measurement, unroll: int, machine: str, frequency: float,
    emulated: bool = False, aggregates: Sequence[Aggregate] = (), counted: Counted = NOTHING_COUNTED,
    burst: TimedBurst | None = None, whole: int = 0, verbose: bool = False,
) -> str:  # fmt: skip
    """A measurement of a snippet in a few lines; of an emulator no number."""
    cycles = measured.cycles / unroll
    lines = code_lines(label)
    if emulated:
        return "\n".join([*[f"    {line}" for line in lines], f"it runs on {machine}", EMULATED])
    copies = f", {unroll} copies per body" if unroll > 1 else ""
    copies += f", all {whole} copies" if whole else ""
    seen = [value / unroll for value in measured.rounds if not math.isnan(value)]
    rounds = f"{len(measured.rounds)} rounds, {min(seen):.4f} to {max(seen):.4f}" if seen else "no round"
    why = f", {measured.disturbed} of them disturbed"
    return "\n".join(
        [
            *[f"    {line}" for line in lines],
            f"{_value(measured, unroll)} ({measured.verdict}{copies})",
            f"{cycles / frequency * 1e9:.3f} ns at {frequency / 1e9:.2f} GHz on {machine}",
            f"{rounds}; {measured.accepted} samples accepted, {measured.rejected} rejected{why}",
            *([_copies(burst)] if burst is not None else []),
            *_more(measured, unroll, aggregates, counted, verbose),
            *(_measurements(burst) if burst is not None and verbose else []),
        ]
    )


def _more(
    measured: Measurement, unroll: int, aggregates: Sequence[Aggregate], counted: Counted, verbose: bool
) -> Iterator[str]:
    """What is only told where it is asked for."""
    for one in aggregates:
        yield f"{one.kind} of {one.rounds} {one.what}: {one.cycles:.4f} core cycles"
    for name, value in counted.values(measured, unroll):
        why = f" ({counted.why_none})" if counted.why_none else ""
        yield f"{name}: {NOT_KNOWN}{why}" if value is None else f"{name}: {value:.2f}"
    if verbose:
        yield "rounds: " + " ".join(f"{value / unroll:.4f}" for value in measured.rounds)


def _copies(burst: TimedBurst) -> str:
    """How many copies ran, and what was taken out."""
    effort, pairs = burst.burst.effort, burst.burst.pairs
    few, many = ("none", effort.unroll) if effort.basic else (effort.unroll, 2 * effort.unroll)
    trips = f", in a loop of {effort.loop} trips" if effort.loop else ""
    trips += ", behind a drained front end" if effort.drain else ""
    copies = f"{many} copies less {few}{trips}, {burst.samples[0].calls} runs of both per measurement"
    if effort.basic:
        copies += f"; twice as many say that {_beside(burst.beside)}"
    if not pairs:
        return copies
    marks = f"{pairs} pairs of marks" if pairs > 1 else "a pair of marks"
    return f"{copies}; {marks} per copy, {burst.mark:.2f} cycles each, taken out"


def _beside(cycles: float) -> str:
    """How far off copies are whose beginning and end are beside what no copies take, or wait for it."""
    return f"{abs(cycles):.1f} cycles of all copies are {'not in it' if cycles >= 0 else 'too many'}"


def _measurements(burst: TimedBurst) -> Iterator[str]:
    """Every measurement of both lengths, in core cycles of a run."""
    for name in ("shorter", "longer"):
        values = (value for one in burst.samples for value in getattr(one, name))
        yield f"{name}: " + " ".join(f"{value:.1f}" for value in values)


def _value(measured: Measurement, unroll: int) -> str:
    """A value with its error, or the range of one that rounds do not agree on."""
    cycles, spread = measured.cycles / unroll, measured.spread / unroll
    if measured.verdict == STABLE:
        return f"{cycles:.4f} core cycles +-{spread:.4f}"
    if measured.error == TWO_RATES:
        return f"takes {cycles:.2f} in some runs and {cycles + spread:.2f} in others, in core cycles"
    return f"{cycles:.4f} to {cycles + spread:.4f} core cycles"
