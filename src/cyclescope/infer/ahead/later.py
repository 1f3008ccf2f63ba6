"""Looks at forms that no question rests on: they are taken when the backend has nothing else to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from cyclescope.backend.base import Backend, Effort
from cyclescope.backend.meanwhile import Meanwhile
from cyclescope.errors import CyclescopeError
from cyclescope.measure.plan import Experiment
from cyclescope.measure.sampling import Measurement, Sampler

Batch = list[tuple[Experiment, Measurement]]


class LastLook(NamedTuple):
    """Experiments, how hard they are measured, and of how many rounds at least."""

    effort: Effort
    least: int
    experiments: Sequence[Experiment]

    def sampler(self, backend: Backend) -> Sampler:
        """What measures them."""
        return Sampler(backend, self.effort, batch=100, least=self.least)

    def of(self, is_wanted: Callable[[str], bool]) -> LastLook:
        """The same of some forms."""
        return self._replace(experiments=[e for e in self.experiments if is_wanted(e.form)])


class LaterLooks:
    """Looks that a thread of its own takes; `asked` are the experiments by form.

    Whoever began it has them kept, by `keep`.
    """

    def __init__(self, backend: Backend, looks: Sequence[LastLook], keep: Callable[[Batch], None]) -> None:
        self._samplers = [(look.sampler(backend), look.experiments) for look in looks if look.experiments]
        self.asked: dict[str, list[Experiment]] = {}
        for look in looks:
            for experiment in look.experiments:
                self.asked.setdefault(experiment.form, []).append(experiment)
        self._keep = keep
        self._taken = Meanwhile(self._batches(), backend)

    def _batches(self) -> Iterator[Batch]:
        for sampler, experiments in self._samplers:
            yield from sampler.measure(experiments)

    def take(self) -> bool:
        """Have those kept that are there; whether there were any."""
        return self._kept(self._taken.there())

    @contextmanager
    def beside(self, note: Callable[[Mapping[str, int]], None]) -> Iterator[None]:
        """Take them beside what is done here, and have them kept at its end, with the samples they took.

        Where that is stopped, what is there is kept.
        """
        try:
            self._taken.begin()
            yield
            self._kept(self._taken.each())
        finally:
            with suppress(CyclescopeError):  # it was raised before
                self.take()
            for sampler, _ in self._samplers:
                note(sampler.counts)

    def _kept(self, batches: Iterator[Batch]) -> bool:
        kept = False
        for batch in batches:
            self._keep(batch)
            kept = True
        return kept
