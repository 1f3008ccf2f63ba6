"""The port step of a campaign: front-end slots, classes of blocking instructions, confinements.

Every stage reads what the stages before it wrote to the store, so that a run that was stopped goes on
where it was, and asks for the experiments that are not there yet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from cyclescope.backend.base import Backend, Effort
from cyclescope.infer.again import Disturbed
from cyclescope.infer.ports.approach import Approach, GrowingApproach
from cyclescope.infer.ports.in_order import order_questions
from cyclescope.infer.ports.questions import (
    COUNTING,
    PROVING,
    made,
    narrow_questions,
    second_slot_questions,
    slot_questions,
    width_questions,
)
from cyclescope.infer.workload import (
    AMONG,
    BETWEEN,
    CALIBRATING,
    CLASSES,
    DOUBTED,
    FORMS_ALONE,
    FRONT_END_NARROW,
    FRONT_END_SLOTS,
    FRONT_END_WIDTH,
    MEMORY,
    ORDER,
    PORTS_AGAIN,
    SECOND_SLOTS,
)
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Key, Planner
from cyclescope.measure.ports import PortPlanner, Question, Stage
from cyclescope.measure.sampling import Sampler
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel

_BY_FORM = (AMONG, MEMORY, PORTS_AGAIN)  # what they ask is found out form by form, while first answers come
CAREFUL = Effort(rounds=2, want=6, target=9000.0)
_SHORT = Effort(rounds=2, want=3, target=4500.0)  # half the time of usual efforts, and as good here
THRICE = Effort(rounds=3, want=3, target=4500.0)  # neighbours disturb two rounds alike more often than three


def idle() -> None:
    """What else there is to do while ports are thought about: nothing."""


class PortCampaign:
    """Runs port experiments on a backend and writes a store.

    `meanwhile` begins what the backend can do from when on it has less to do than is thought. `known` is a
    machine that gives ports their names where they match.
    """

    def __init__(
        self,
        table: Table,
        backend: Backend,
        store: Store,
        planner: Planner,
        tell: Callable[[str, int, int, Sampler], None] = lambda stage, done, total, sampler: None,
        again: Disturbed | None = None,
        meanwhile: Callable[[], None] = idle,
        known: MachineModel | None = None,
    ) -> None:
        self._meanwhile = meanwhile
        self.table = table
        self._disturbed = again or Disturbed({})
        self.backend = backend
        self.store = store
        self.plans = PortPlanner(planner)
        self._tell = tell
        self._done: set[Key] = set()
        self._places: dict[str, int] = {}
        self._told = GrowingApproach(store, table, known)

    def run(
        self, forms: Sequence[InstructionForm], blocking: Sequence[InstructionForm], deadline: float
    ) -> bool:
        """Measure forms; `blocking` are those that may become blocking instructions.

        Throughputs have to be in the store. Returns whether there was time for everything.
        """
        both = list({form.id: form for form in (*blocking, *forms)}.values())
        self._places = {form.id: number for number, form in enumerate(forms, 1)}
        if not self.run_front_end(both, deadline):
            return False
        self._told.settle_front_end()
        stages = self.approach().stages(self.plans, forms, self.approach)
        return all(self.settle(stage, make(), deadline) for stage, make in stages)

    def run_front_end(self, forms: Sequence[InstructionForm], deadline: float = math.inf) -> bool:
        """Measure the front end's part alone: order of issue, width, lengths of encodings, slots."""
        done = self.store.done(but=(THROUGHPUT, LATENCY))
        self._done = done.difference(self._disturbed.keys)
        return all(self.settle(stage, make(), deadline) for stage, make in self._front_end_stages(forms))

    def _front_end_stages(self, forms: Sequence[InstructionForm]) -> Iterator[Stage]:
        yield FORMS_ALONE, lambda: map(self.plans.alone, forms)
        yield ORDER, lambda: order_questions(self.table, self.plans)
        yield FRONT_END_WIDTH, lambda: width_questions(self.table, self.plans, forms)
        known = self.approach()
        if not known.in_order and known.front_end.filler:
            yield FRONT_END_NARROW, lambda: narrow_questions(known.front_end, self.plans)
            yield FRONT_END_SLOTS, lambda: slot_questions(self.approach().front_end, self.plans, forms)
            yield SECOND_SLOTS, lambda: second_slot_questions(self.approach().front_end, self.plans, forms)

    def approach(self) -> Approach:
        """What the store tells by now."""
        return self._told.read()

    def settle(self, stage: str, questions: Iterable[Question], deadline: float) -> bool:
        """Measure what a stage asks and the store does not have; whether there was time for all."""
        wanted: Iterable[Question] = (q for q in questions if q.key not in self._done)
        total = len(self._places)
        by_form = stage in _BY_FORM
        if stage == PORTS_AGAIN:
            self._meanwhile()
        if not by_form:
            wanted = list(wanted)
            total = len(wanted)
        settled = 0
        sampler = Sampler(self.backend, _effort(stage))
        for batch in sampler.measure(made(wanted), lambda: time.monotonic() < deadline):
            self.store.write(self._disturbed.settle(batch))
            self._done.update(experiment.key for experiment, _ in batch)
            if by_form:
                settled = max([settled, *(self._places.get(e.form, 0) for e, _ in batch)])
            else:
                settled += len(batch)
            self._tell(stage, settled, max(settled, total), sampler)
        self.store.note_samples(sampler.counts)
        finished = time.monotonic() < deadline
        if finished and total:  # some have no kernel
            self._tell(stage, total, total, sampler)
        return finished


def _effort(stage: str) -> Effort:
    """How hard to measure: the classes are few, and all else stands on them."""
    if stage in (CLASSES, BETWEEN, DOUBTED, CALIBRATING):
        return CAREFUL
    if stage in (FRONT_END_WIDTH, FRONT_END_NARROW):
        return PROVING
    if stage in (FRONT_END_SLOTS, SECOND_SLOTS):
        return COUNTING
    return THRICE if stage == PORTS_AGAIN else _SHORT
