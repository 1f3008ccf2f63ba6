"""Latencies that depend on how full the scheduler is.

A chain alone fills the scheduler with instructions that wait for each other. Some cores then take a cycle
more from one to the next: a Zen 5 does with simple vector operations. The same chain with so many NOPs that
the front end delivers no more than the chain would take if it were a cycle shorter leaves room. Only chains
of the form alone are asked: what helpers take in either state is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from cyclescope.backend.base import Backend
from cyclescope.infer.timing.latency_system import ONE_CYCLE
from cyclescope.infer.timing.links import stored_links
from cyclescope.infer.timing.results import EXACT, LESS, FormTiming, Latency
from cyclescope.isa.dataflow import is_in_memory, is_old
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.cycle import NOP
from cyclescope.kernel.variant import Kind
from cyclescope.measure.plan import LATENCY, Experiment, Key, Planner
from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.measure.sampling import Measurement, Sampler
from cyclescope.measure.store import Store
from cyclescope.remarks.remark import together
from cyclescope.remarks.timing import Timing

SAMPLED = 32  # chains that say whether a core has such latencies: if a tenth have, they miss it once in 30
TELLING = (STABLE, UNSTABLE)  # verdicts that count: where rounds differ, the least are seen twice


class Suspect(NamedTuple):
    """A pair of a form that may take less than so many cycles where the scheduler has room."""

    form: InstructionForm
    source: str
    target: str
    cycles: int


Write = Callable[[Sequence[tuple[Experiment, Measurement]]], None]


def suspects(form: InstructionForm, timing: FormTiming) -> Iterator[Suspect]:
    """The pairs of a form with a whole number of cycles that may be one less.

    Not through memory: so few instances in a loop as there are between NOPs may be known by their registers.
    """
    for latency in timing.latencies:
        cycles = _whole(latency)
        excluded = is_old(latency.source) or is_in_memory(latency.source)
        if _may_be_less(cycles) and not excluded:
            yield Suspect(form, latency.source, latency.target, cycles)


def _may_be_less(cycles: int) -> bool:
    """Whether a cycle less is lawful, and told by loops that the front end bounds, a tenth off."""
    return cycles > ONE_CYCLE and cycles - 1 < LESS * cycles


def _whole(latency: Latency) -> int:
    """The whole number of cycles that a pair is known to take, 0 where it is not one."""
    most = latency.max or 0.0
    known = latency.kind == EXACT and latency.min == most and not latency.values and not latency.convention
    return int(most) if known and not most % 1 else 0


def with_room(latency: Latency, readings: Collection[float]) -> Latency:
    """The latency with both values, where throttled chains of so many cycles per instance are shorter."""
    if not readings:
        return latency
    alone = _whole(latency)
    less = _with_room(alone, readings)
    if less is None:
        return latency
    note = together((latency.note, Timing.WITH_ROOM.of(less, alone)))
    return msgspec.structs.replace(latency, min=float(less), with_room=float(less), note=note)


def _with_room(cycles: int, readings: Iterable[float]) -> int | None:
    least = min((r for r in readings if r >= LESS), default=float(cycles))  # less breaks the law
    return max(int(least / LESS), 1) if least < LESS * cycles else None


class ThrottledChains:
    """Measures throttled chains: a sample, all if one of it is shorter, those that are a cycle lower."""

    def __init__(self, backend: Backend, store: Store, planner: Planner, write: Write) -> None:
        self._backend = backend
        self._planner = planner
        self._write = write
        self._stopped = False  # before the end
        self._nop = stored_links(store).get(NOP)
        (known,) = store.readings((LATENCY,), f"{Kind.THROTTLED}*")
        self._found: dict[Key, float] = {
            (r.form, LATENCY, r.source, r.target, r.variant): r.cycles / r.instances
            for r in known if r.verdict in TELLING
        }  # fmt: skip

    def look(self, every: Sequence[Suspect], wanted: Callable[[], bool]) -> bool:
        """Measure what is not known yet, as long as it is `wanted`; whether it was to the end."""
        left = list(every) if self._shorter(every[:: max(len(every) // SAMPLED, 1)], wanted) else []
        while left and not self._stopped:
            left = [one for one in self._shorter(left, wanted) if _may_be_less(one.cycles)]
        return not self._stopped

    def _shorter(self, some: Sequence[Suspect], wanted: Callable[[], bool]) -> list[Suspect]:
        """Those that take less than was known, with what they take at most."""
        made: list[tuple[Suspect, list[Experiment]]] = []

        def asked() -> Iterator[Experiment]:  # while the first are measured
            for one in some:
                made.append((one, self._experiments(one)))
                yield from (e for e in made[-1][1] if e.key not in self._found)

        for batch in Sampler(self._backend).measure(asked(), wanted):
            self._write(batch)
            self._found |= {e.key: m.cycles / e.count for e, m in batch if m.verdict in TELLING}
        self._stopped = len(made) < len(some) or not wanted()
        read = [(one, [self._found[e.key] for e in es if e.key in self._found]) for one, es in made]
        less = [(one, _with_room(one.cycles, readings)) for one, readings in read]
        return [one._replace(cycles=cycles) for one, cycles in less if cycles is not None]

    def _experiments(self, one: Suspect) -> list[Experiment]:
        if self._nop is None or self._nop.value <= 0:
            return []
        return self._planner.throttled(one.form, one.source, one.target, one.cycles - 1, self._nop.value)
