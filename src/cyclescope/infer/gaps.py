"""What is missing in a store: experiments that were not made, or that cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cyclescope.infer.timing.results import NOT_RUN, FormTiming
from cyclescope.measure.rows import Unreadable
from cyclescope.measure.store import Store
from cyclescope.remarks.model import Gap, forms, operand_pairs
from cyclescope.remarks.ports import Without
from cyclescope.remarks.remark import LISTED, NOTHING, Remark, listed, together


class Gaps:
    """Counts of what is missing in timings that go by.

    `forms` of the timings, `unknown` of them never run, `throughputs` and `pairs` without a value because
    their kernels were not measured, `ports` of forms that a stopped run tells nothing of. `single` are forms
    of which either throughput or latencies were asked for. `reasons` counts why forms have no port usage.
    """

    def __init__(self, timings: Iterable[FormTiming] = ()) -> None:
        self.forms = self.unknown = self.throughputs = self.pairs = self.ports = self.single = 0
        self.reasons: Counter[str] = Counter()
        for timing in timings:
            self.add(timing)

    def add(self, timing: FormTiming) -> None:
        """Count one more."""
        self.forms += 1
        self.unknown += timing.status == NOT_RUN
        without = timing.throughput is not None and timing.throughput.unfinished
        pairs = sum(latency.unfinished for latency in timing.latencies)
        self.throughputs += without
        self.pairs += pairs
        self.single += without != (pairs > 0)
        self.ports += timing.ports_unfinished
        self.reasons.update([timing.ports_reason] if timing.ports_reason else [])

    @property
    def without_ports(self) -> Remark:
        """How many forms have no port usage for which reasons, but for those that nobody asked for."""
        known = [(Without[name.upper()], count) for name, count in self.reasons.most_common()]
        some = {group: count for group, count in known if group is not Without.UNASKED}
        if not some:
            return NOTHING
        told = listed(group.of(count) for group, count in some.items())
        return Without.FORMS.of(forms(sum(some.values())), told)

    def notes(self, store: Store) -> list[Remark]:
        """What is missing and why, a remark each."""
        damage = list(_damaged(store.unreadable))
        return [*self._stopped(), *damage] if store.stopped() else damage or list(self._unasked())

    def _unasked(self) -> Iterator[Remark]:
        if self.single:
            yield Gap.UNASKED.of(forms(self.single))

    def _stopped(self) -> Iterator[Remark]:
        missing = [
            Gap.FORMS.of(forms(self.unknown)) if self.unknown else NOTHING,
            Gap.THROUGHPUTS.of(forms(self.throughputs)) if self.throughputs else NOTHING,
            Gap.LATENCIES.of(operand_pairs(self.pairs)) if self.pairs else NOTHING,
            Gap.PORTS.of(forms(self.ports)) if self.ports else NOTHING,
        ]
        if any(missing):
            yield Gap.STOPPED.of(listed(missing), forms(self.forms))


def _damaged(rows: Iterable[Unreadable]) -> Iterator[Remark]:
    some = list(rows)
    if some:
        told = together(map(_told, some[:LISTED])) + ("; ..." if len(some) > LISTED else "")
        yield (Gap.ONE_DAMAGED if len(some) == 1 else Gap.DAMAGED).of(len(some), told)


def _told(row: Unreadable) -> Remark:
    if row.form:
        return Gap.ROW_OF.of(row.what, row.key, row.form, row.reason)
    return Gap.ROW.of(row.what, row.key, row.reason)
