"""A campaign on a simulated core, and its results next to the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.timing.results import EXACT, FormTiming, Latency
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.plan import Planner
from cyclescope.measure.store import Store
from tests.support.code.decoded import Decoded, body
from tests.support.code.forms import expected
from tests.support.made.simulated import SimulatedBackend
from tests.support.made.truth import Truth

MACHINE = "simulated core"


class Run(NamedTuple):
    """What a campaign gave."""

    finished: bool
    forms: tuple[InstructionForm, ...]
    timings: list[FormTiming]
    decoded: dict[str, Decoded]  # of the forms that run

    def timing(self, form_id: str) -> FormTiming:
        return next(t for t in self.timings if t.id == form_id)

    def latency(self, form_id: str, source: str, target: str) -> Latency:
        found = self.timing(form_id).latencies
        return next(lat for lat in found if (lat.source, lat.target) == (source, target))


class Compared(NamedTuple):
    """One pair's result and its true latency, with fast and with slow values."""

    form: InstructionForm
    latency: Latency
    fast: float
    slow: float

    @property
    def true(self) -> bool:
        """Whether an exact result is the truth, but for noise."""
        if not self.latency.values:
            return near(self.latency.max, self.fast)
        wanted = {"fast": self.fast, "slow": self.slow}
        return all(near(value, wanted[name]) for name, value in self.latency.values.items())

    @property
    def contained(self) -> bool:
        """Whether the truth is within the result."""
        return (
            self.latency.min - 0.15 <= self.fast and self.slow <= self.latency.max + 0.02 * self.slow + 0.15
        )

    def __str__(self) -> str:
        lat = self.latency
        return f"{self.form.id} {lat.source}>{lat.target} {lat.min}..{lat.max} {lat.kind} not {self.fast}"


def near(value: float | None, truth: float) -> bool:
    """Equal within the noise of the measurement."""
    return value is not None and abs(value - truth) <= max(0.15, 0.02 * truth)


def campaign(
    table: Table,
    truth: Truth,
    forms: Sequence[InstructionForm],
    path: Path,
    backend: SimulatedBackend | None = None,
    **request: object,
) -> Run:
    """Measure forms into a store and read their timings."""
    store = Store(path, MACHINE)
    try:
        runner = Campaign(table, backend or SimulatedBackend(truth), store)
        finished = runner.run(Request(tuple(forms), **request), {})  # type: ignore[arg-type]
        timings = list(runner.results(forms))
        ok = [f for f, t in zip(forms, timings, strict=True) if t.status == "ok"]
        decoded = {form.id: instance(runner.planner(), form) for form in ok}
        return Run(finished, tuple(forms), timings, decoded)
    finally:
        store.close()


def instance(planner: Planner, form: InstructionForm) -> Decoded:
    """One instance of the form, decoded."""
    kernel = planner.probe_kernel(form)
    assert kernel is not None
    return next(ins for ins in body(kernel.code) if ins.code == form.code)


def compared(run: Run, truth: Truth) -> Iterator[Compared]:
    """Every pair that has a value and that the decoder knows."""
    for form, timing in zip(run.forms, run.timings, strict=True):
        latencies = [latency for latency in timing.latencies if not is_old(latency.source)]
        for pair, latency in zip(pairs(form), latencies, strict=bool(latencies)):
            if latency.kind is None:
                continue
            fast, slow = (expected(truth, form, pair, run.decoded[form.id], s) for s in (False, True))
            assert fast is not None, f"{form.id}: no {latency.source} or {latency.target} in the instruction"
            assert slow is not None
            yield Compared(form, latency, fast, slow if latency.values else fast)


def exact(results: Sequence[Compared]) -> list[Compared]:
    """Those that claim to be exact."""
    return [c for c in results if c.latency.kind == EXACT]
