"""What a store does not tell of forms because it was not measured, or cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cyclescope.infer.readout import NOT_RUN, STOPPED
from cyclescope.infer.timing.results import FormTiming
from cyclescope.measure.rows import Unreadable
from cyclescope.measure.store import Store

_SHOWN = 3  # damaged rows that are told one by one


class Gaps:
    """Counts of what is missing in timings that go by.

    `forms` of the timings, `unknown` of them never run, `throughputs` and `pairs` without a value because
    their kernels were not measured, `ports` of forms that a stopped run tells nothing of. `single` are forms
    of which either throughput or latencies were asked for.
    """

    def __init__(self, timings: Iterable[FormTiming] = ()) -> None:
        self.forms = self.unknown = self.throughputs = self.pairs = self.ports = self.single = 0
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
        self.ports += timing.ports_note == STOPPED

    def notes(self, store: Store) -> list[str]:
        """What is missing and why, in a line each."""
        damage = list(_damaged(store.unreadable))
        return [*self._stopped(), *damage] if store.stopped() else damage or list(self._unasked())

    def _unasked(self) -> Iterator[str]:
        if self.single:
            yield f"either throughput or latency of {_counted(self.single, 'form')} was not asked for"

    def _stopped(self) -> Iterator[str]:
        missing = {
            f"all of {_counted(self.unknown, 'form')}": self.unknown,
            f"throughput of {_counted(self.throughputs, 'form')}": self.throughputs,
            f"latency of {_counted(self.pairs, 'operand pair')}": self.pairs,
            f"ports of {_counted(self.ports, 'form')}": self.ports,
        }
        told = ", ".join(what for what, count in missing.items() if count)
        if told:
            yield (
                f"without a value yet: {told} (of {_counted(self.forms, 'form')}); a run was stopped, "
                "`cyclescope measure` goes on from there"
            )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _damaged(rows: Iterable[Unreadable]) -> Iterator[str]:
    some = list(rows)
    if some:
        shown = "; ".join(map(_told, some[:_SHOWN])) + ("; ..." if len(some) > _SHOWN else "")
        which = "row of the store is" if len(some) == 1 else "rows of the store are"
        yield f"{len(some)} damaged {which} left out ({shown}); `cyclescope measure` measures anew"


def _told(row: Unreadable) -> str:
    of = f" of {row.form}" if row.form else ""
    return f"{row.what} {row.key}{of}: {row.reason}"
