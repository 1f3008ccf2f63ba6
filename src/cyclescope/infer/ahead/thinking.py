"""A backend beside which one thinks, and forms that wait to be thought about."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

from cyclescope.backend.base import (
    Backend,
    Calibration,
    Capabilities,
    Effort,
    Outcome,
    Sample,
    WaitingBackend,
)
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.plan import Experiment
from cyclescope.measure.sampling import Measurement

Made = TypeVar("Made")
Work = Callable[[Sequence[InstructionForm]], Iterable[Made]]  # what each form makes, in their order
_AT_ONCE = 16  # forms: some hundredths of a second, for which the backend has other batches


class ThinkingBeside:
    """A backend beside which one thinks: `think` does a little of it, and says whether there was any to do.

    One that does not say whether it has answered is not waited for, nor thought beside.
    """

    def __init__(self, backend: Backend, think: Callable[[], bool]) -> None:
        self._backend, self._think = backend, think
        self.capabilities: Callable[[], Capabilities] = backend.capabilities
        self.calibrate: Callable[[], Calibration] = backend.calibrate
        self.submit: Callable[[Sequence[Kernel], Effort], None] = backend.submit
        self.probe: Callable[[Sequence[Kernel]], list[Outcome]] = backend.probe
        self.close: Callable[[], None] = backend.close

    def collect(self) -> list[list[Sample]]:
        """The oldest batch that was not collected, which is thought beside until it is there."""
        backend = self._backend
        while isinstance(backend, WaitingBackend) and not backend.is_answered() and self._think():
            pass
        return backend.collect()


class ThoughtAhead(Generic[Made]):
    """What forms make of their answers: each as soon as all of them are there, and there is time.

    `work` gets some forms at a time; `made` is by form what was made and nobody took.
    """

    def __init__(self, work: Work[Made]) -> None:
        self._work = work
        self._missing: dict[str, int] = {}  # answers, and one more as long as others may be asked
        self._ready: deque[InstructionForm] = deque()
        self._forms: dict[str, InstructionForm] = {}
        self.made: dict[str, Made] = {}

    def asking(self, asked: Iterable[tuple[InstructionForm, Iterable[Experiment]]]) -> Iterator[Experiment]:
        """What is asked of each form, which is ready once all of it is answered."""
        for form, experiments in asked:
            self._forms[form.id], self._missing[form.id] = form, 1
            for experiment in experiments:
                self._missing[form.id] += 1
                yield experiment
            self._note(form.id)

    def hear(self, batch: Sequence[tuple[Experiment, Measurement]]) -> None:
        """Note that experiments were answered, and their answers kept."""
        for experiment, _ in batch:
            self._note(experiment.form)

    def _note(self, form: str) -> None:
        if form in self._missing:
            self._missing[form] -= 1
            if not self._missing[form]:
                self._ready.append(self._forms[form])

    def think(self) -> bool:
        """Do the work on a few forms that are ready; whether there were any."""
        some = [self._ready.popleft() for _ in range(min(_AT_ONCE, len(self._ready)))]
        self._do(some)
        return bool(some)

    def _do(self, forms: Sequence[InstructionForm]) -> None:
        for form, made in zip(forms, self._work(forms), strict=True):
            self.made[form.id] = made

    def forget(self, is_stale: Callable[[Made], bool]) -> None:
        """Do work again that rests on what is not so any more."""
        self.made = {form: made for form, made in self.made.items() if not is_stale(made)}

    def each(self, forms: Iterable[InstructionForm], at_once: int) -> Iterator[tuple[InstructionForm, Made]]:
        """What forms make, in their order: what was not made yet is made now, of so many forms at a time."""
        left = iter(forms)
        while some := list(islice(left, at_once)):
            self._do([form for form in some if form.id not in self.made])
            for form in some:
                yield form, self.made.pop(form.id)
