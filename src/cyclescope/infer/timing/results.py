"""Results: throughput and latencies of a form, with kinds, notes, reasons and confidence."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from cyclescope.measure.record import ERRORS, NOISY, STABLE, Record
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.remarks.remark import Remark
from cyclescope.remarks.timing import Cause, Timing, cause_of

EXACT, INTERVAL, UPPER_BOUND = "exact", "interval", "upper_bound"
NOT_RUN = "not run"  # status of forms that a store knows nothing of
UNMEASURED = Timing.UNMEASURED.of().text
AGREED = 1.03  # times: readings of one thing differ by less
LESS = 0.9  # times what something takes at least: less is more than noise
MUCH = 1.5  # times: what takes so much longer does other work, or waits for something else
FINEST = 0.2  # cycles: readings of less are no better than those of as many
TOLERANCE = 0.015  # of a reading that is sure, and of a chain at least BELOW cycles: what it may be off by
HALF = 0.5  # cycles: latencies are whole numbers, so that those which are nearer are the same
MOVED = 0.35  # cycles: noise moves no chain by more, whatever its error: what is further is another latency
BELOW, ABOVE = 0.12, 0.25  # cycles: how far noise moves what chains show; what disturbs makes them longer
_EXCEPTIONS = ("invalid", "denormal", "division by zero", "overflow", "underflow")  # from the lowest bit
_LINKED = 4.0  # cycles: a chain so long has links, whose latencies may be too long as well as too short


class Throughput(msgspec.Struct, frozen=True):
    """Reciprocal throughput in cycles per instruction.

    `value` is the least over all sequences; `variants` the value of each. `kind` is `exact`, or
    `upper_bound` where instructions that cannot be left out, or a dependency that cannot be broken,
    take part in the time. `confidence` is that of the value, "" where there is none. `cause` is the meaning
    of `note` or `reason`. `unfinished` says that some of its kernels have not been measured, so that there
    is no value yet. `indexed` are the cycles with an index in the address, where these are clearly more.
    """

    value: float | None
    spread: float | None
    kind: str | None
    variants: dict[str, float] = {}
    note: str = ""
    reason: str = ""
    confidence: str = ""
    unfinished: bool = False
    cause: Cause = Cause.NONE
    indexed: float | None = None


class Latency(msgspec.Struct, frozen=True):
    """Latency from a source to a target in cycles.

    `kind` is `exact`, `interval` (chains with links gave an average between whole numbers: from it to the
    nearest one) or `upper_bound`. If it depends on the operands' values, `values` has the latencies by class
    and `min` and `max` are the extremes. `with_room` (and `min`) is the latency while the scheduler is not
    full, `max` then that in a chain alone, which fills it; None if both are the same, or this is not known.
    `bypass` is the latency when an integer or floating-point instruction consumes the result. `convention`
    names the conventions the value rests on and `bounds` what is proved without them. `measured` is the value
    before it was rounded to a whole number. A pair without a value has the `reason` and no `confidence`;
    `cause` is the meaning of `note` or `reason`. `unfinished` says that the pair is without a value because
    some of its kernels have not been measured.
    """

    source: str
    target: str
    min: float | None
    max: float | None
    kind: str | None
    spread: float | None
    values: dict[str, float] = {}
    bypass: dict[str, float] = {}
    convention: str = ""
    bounds: tuple[float, float] | None = None
    note: str = ""
    reason: str = ""
    confidence: str = ""
    measured: float | None = None
    unfinished: bool = False
    cause: Cause = Cause.NONE
    with_room: float | None = None


class FormTiming(msgspec.Struct, frozen=True):
    """Everything measured about one form.

    `slots` are front-end slots, `slot_range` the least and the most if they vary. `ports` is the port usage
    in the notation `1*p06+1*p23`, or `?` if no set of micro-operations explains the readings;
    `ports_throughput` is the cycles per instruction that it allows, `ports_alternatives` are other usages
    that fit as well. Without a usage `ports_note` says why, `ports_reason` is the group of that reason (a
    name of `Without` in `remarks.ports`), and `ports_unfinished` says that a run was stopped before.
    `resources` has cycles of each resource: sets of ports (`p06`), and units that are no ports. `lacks` are
    the extensions that the form needs and the CPU does not have, if it does not execute the form.
    """

    id: str
    names: dict[str, str]
    status: str
    throughput: Throughput | None
    latencies: tuple[Latency, ...]
    idiom: str = ""
    notes: tuple[str, ...] = ()
    slots: float | None = None
    ports: str | None = None
    ports_confidence: str = ""
    ports_throughput: float | None = None
    ports_alternatives: tuple[str, ...] = ()
    ports_note: str = ""
    resources: dict[str, float] = {}
    slot_range: tuple[float, float] | None = None
    lacks: tuple[str, ...] = ()
    ports_unfinished: bool = False
    ports_reason: str = ""


def with_ports_of(timing: FormTiming, other: FormTiming) -> FormTiming:
    """A timing with slots, ports and resources of another one."""
    return msgspec.structs.replace(
        timing, slots=other.slots, slot_range=other.slot_range, ports=other.ports,
        ports_confidence=other.ports_confidence, ports_throughput=other.ports_throughput,
        ports_alternatives=other.ports_alternatives, ports_note=other.ports_note, resources=other.resources,
        ports_unfinished=other.ports_unfinished, ports_reason=other.ports_reason,
    )  # fmt: skip


def without_value(
    pair: tuple[str, str], why: Remark | str, spread: float | None = None, unfinished: bool = False
) -> Latency:
    """A pair of a source and a target that has no latency, and why."""
    cause = cause_of(why) if isinstance(why, Remark) else Cause.NONE
    return Latency(*pair, None, None, None, spread, reason=str(why), unfinished=unfinished, cause=cause)


def unfinished(missing: tuple[int, int] | None) -> str:
    """Why there is no value yet where so many of so many kernels are not measured, or ""."""
    if missing is None:
        return ""
    count, every = missing
    return UNMEASURED if count == every else Timing.UNFINISHED.of(count, every).text


def without_cycles(timing: FormTiming) -> FormTiming:
    """A timing with no number in it: of cycles that mean nothing. A pair keeps the reason it has."""
    reason = Timing.NO_CYCLES.of().text
    throughput = timing.throughput and Throughput(None, None, None, reason=_kept(timing.throughput) or reason)
    latencies = tuple(
        without_value((lat.source, lat.target), _kept(lat) or reason) for lat in timing.latencies
    )
    return FormTiming(timing.id, timing.names, timing.status, throughput, latencies)


def _kept(found: Throughput | Latency) -> str:
    """A reason that rests on no time."""
    return "" if found.cause in (Cause.WITHHELD, Cause.LOST_LINK) else found.reason


def first_error(records: Iterable[Record]) -> str:
    """What went wrong with the first of some records that failed, or ""."""
    return next((record.error for record in records if record.error), "")


def exceptions_noted(records: Iterable[Record]) -> tuple[str, ...]:
    """A note of the floating-point exceptions that kernels raised; nothing where they raised none."""
    raised = 0
    for record in records:
        raised |= record.exceptions
    names = [name for bit, name in enumerate(_EXCEPTIONS) if raised >> bit & 1]
    return (Timing.EXCEPTIONS.of(", ".join(names)).text,) if names else ()


def rounded(value: float) -> float:
    """Two decimals, three below 1: the noise is in the next."""
    if value % 1 == 0:
        return value + 0.0
    return round(value + 0.0, 2 if abs(value) >= 1 else 3)


def whole(value: float, chain: float, error: float = 0.0, linked: bool = True) -> float:
    """The whole number of cycles where `value`, found in a chain of so many cycles, is one but for noise.

    `error` is that of the chain, in cycles: 95 of 100 readings are within twice as much. Of what a form takes
    alone, not `linked`, nothing is subtracted, so that it is not too short, and nothing is in its way.
    """
    nearest = float(round(value))
    noise = min(ERRORS * error, MOVED)
    below = ABOVE if linked and chain >= _LINKED else BELOW
    above = ABOVE if linked else BELOW
    return nearest if -max(below, noise) <= value - nearest <= max(above, noise) else value


def nearest(average: float) -> float:
    """The whole number of cycles nearest to an average; of two that are as near but for noise the lower."""
    return float(math.floor(average) + (average % 1 > HALF + BELOW))


def confidence(record: Record) -> str:
    """How far a record is to be trusted."""
    if record.verdict == STABLE:
        return MEDIUM if record.exceptions & 0x1F else HIGH
    return LOW if record.verdict == NOISY else MEDIUM
