"""What the first looks at forms ask for, and what these and the second ones do: thought out ahead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cyclescope.backend.base import Effort
from cyclescope.infer.ahead.later import LastLook
from cyclescope.infer.ahead.thinking import ThoughtAhead
from cyclescope.infer.ahead.timings import changed_links, rests_on
from cyclescope.infer.ports.experiments import CAREFUL
from cyclescope.infer.readout import PART, builder_of, grouped, timing_of
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.laws import is_undecided, is_unsure, outliers
from cyclescope.infer.timing.links import KnownLinks
from cyclescope.infer.timing.results import FormTiming
from cyclescope.infer.timing.second_looks import (
    AT_FIRST,
    AT_LAST,
    UNDECIDED_CYCLES,
    UNDECIDED_ROUNDS,
    is_first,
    is_last,
    last_looks,
    latency_questions,
    second_look,
    throughput_questions,
)
from cyclescope.infer.timing.throttling import Suspect, suspects
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.plan import Experiment, Key, Planner
from cyclescope.measure.store import Store


class _First(NamedTuple):
    """What the first looks at a form tell, what they ask for, and the links that this rests on."""

    timing: FormTiming
    questions: list[Experiment]
    suspects: list[Suspect]
    links: frozenset[str]


_Last = tuple[list[Experiment], list[Experiment]]  # chains once more, and longer ones


class FurtherLooks:
    """Further looks at forms that the CPU executes; `links` may be measured again until they are asked.

    `first` hears of the answers to the first looks, `second` of those to the second ones.
    """

    def __init__(self, store: Store, planner: Planner, links: Mapping[str, LinkLatency]) -> None:
        self._store, self._planner, self._links = store, planner, KnownLinks(links)
        self.first, self.second = ThoughtAhead(self._looked_at), ThoughtAhead(self._looked_at_again)
        self.suspects: list[Suspect] = []
        self.longer: list[Experiment] = []  # what looks at open forms ask for beside these
        self._open: dict[InstructionForm, FormTiming] = {}  # first looks that ask for more, or tell no value

    def _looked_at(self, forms: Sequence[InstructionForm]) -> Iterator[_First]:
        for form, records in grouped(self._store, forms):
            some = [record for record in records if is_first(record)]
            timing = timing_of(form, some, self._links, self._planner, "ok")
            longer = latency_questions(self._planner, form, timing)
            questions = [*longer, *throughput_questions(self._planner, form, timing)]
            links = frozenset(key for record in some for key in record.links)
            yield _First(timing, questions, list(suspects(form, timing)), links)

    def _renew(self, links: Mapping[str, LinkLatency]) -> None:
        """Take the latencies of links as they are by now."""
        changed, self._links = changed_links(self._links, links), KnownLinks(links)
        self.first.forget(lambda made: rests_on(made.links, changed))

    def questions(
        self, forms: Sequence[InstructionForm], links: Mapping[str, LinkLatency], again: Iterable[Key]
    ) -> Iterator[Experiment]:
        """What first looks at forms ask for and the store does not have, or what is measured `again`."""
        self._renew(links)
        done = self._done(AT_FIRST, forms).difference(again)
        return self.second.asking(self._asked(forms, done))

    def _asked(
        self, forms: Sequence[InstructionForm], done: set[Key]
    ) -> Iterator[tuple[InstructionForm, list[Experiment]]]:
        different = outliers(forms, self._store.throughputs())
        for form, first in self.first.each(forms, PART):
            self.suspects += first.suspects
            found = first.questions
            if form.id in different or is_unsure(first.timing.throughput):
                found += [second_look(experiment) for experiment in self._planner.throughput(form)]
            if found or any(map(is_undecided, first.timing.latencies)):
                self._open[form] = first.timing
                yield form, [experiment for experiment in found if experiment.key not in done]

    def _looked_at_again(self, forms: Sequence[InstructionForm]) -> Iterator[_Last]:
        for form, records in grouped(self._store, forms):
            some = [record for record in records if not is_last(record)]
            builder = builder_of(form, some, self._links, self._planner)
            yield last_looks(self._planner, form, self._open[form], builder)

    def undecided(self, again: Iterable[Key]) -> Iterator[Experiment]:
        """Chains of open forms that tell no value yet, once more; `longer` ones that confirm others."""
        done = self._done(AT_LAST, [*self._open]).difference(again)
        for _, (chains, longer) in self.second.each(self._open, PART):
            self.longer += [e for e in longer if e.key not in done]
            yield from (e for e in chains if e.key not in done)

    def last(self, again: Iterable[Key]) -> list[LastLook]:
        """The last looks, by how hard they are measured."""
        undecided = list(self.undecided(again))
        self._open.clear()  # this, and what thinks ahead for it, make a ring that is there until the end
        first = LastLook(Effort(target=UNDECIDED_CYCLES), UNDECIDED_ROUNDS, undecided)
        return [first, LastLook(CAREFUL, CAREFUL.rounds, self.longer)]

    def _done(self, variants: Sequence[str], forms: Sequence[InstructionForm]) -> set[Key]:
        names = [form.id for form in forms]
        return {key for glob in variants for key in self._store.done(glob, names)}
