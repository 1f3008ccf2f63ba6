"""Timings of forms of which nothing more is asked: made while their ports are measured."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from cyclescope.infer.ahead.thinking import ThoughtAhead
from cyclescope.infer.readout import TIMED, grouped, timing_of
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.links import KnownLinks
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.cycle import NOP
from cyclescope.measure.plan import Experiment, Planner
from cyclescope.measure.store import Store


class _Timed(NamedTuple):
    """A timing, and the links that it rests on; None where rows of the form are damaged."""

    timing: FormTiming | None
    links: frozenset[str]


def rests_on(links: Collection[str], changed: Collection[str]) -> bool:
    """Whether a timing by chains with some links rests on those that changed; on that of NOPs all do."""
    return NOP in changed or any(key in changed for key in links)


def changed_links(old: Mapping[str, LinkLatency], new: Mapping[str, LinkLatency]) -> set[str]:
    """Links that are not what they were."""
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


class TimingsAhead:
    """Timings of forms that the CPU executes, by what is known of `links`."""

    def __init__(self, store: Store, planner: Planner, links: Mapping[str, LinkLatency]) -> None:
        self._store, self._planner, self._links = store, planner, KnownLinks(links)
        self._ahead = ThoughtAhead(self._timed)
        self.think, self.hear = self._ahead.think, self._ahead.hear

    def begin(self, forms: Sequence[InstructionForm], asked: Mapping[str, Sequence[Experiment]]) -> None:
        """From now on there is time for these, once what is still `asked` of some is answered."""
        for _ in self._ahead.asking((form, asked.get(form.id, ())) for form in forms):
            pass

    def _timed(self, forms: Sequence[InstructionForm]) -> Iterator[_Timed]:
        for form, records in grouped(self._store, forms):
            timing = timing_of(form, records, self._links, self._planner, "ok")
            links = frozenset(key for record in records for key in record.links)
            yield _Timed(None if self._store.is_damaged(form.id, TIMED) else timing, links)

    def made(self, links: Mapping[str, LinkLatency]) -> dict[str, FormTiming]:
        """Those that were made, by form, as far as they hold with the links as they are by now."""
        changed = changed_links(self._links, links)
        every = self._ahead.made.items()
        return {form: one.timing for form, one in every if one.timing and not rests_on(one.links, changed)}
