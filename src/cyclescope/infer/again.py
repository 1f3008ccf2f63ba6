"""What another run measures again: readings that other programs disturbed.

A run that was stopped goes on where it was. When a run that came to its end is repeated, it measures
disturbed readings once more, keeps the new ones unless they are worse, and forgets experiments that only
the disturbance had asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cyclescope.measure.plan import LATENCY, LINK, THROUGHPUT, Experiment, Key
from cyclescope.measure.ports import PORTS
from cyclescope.measure.record import FAILED, FROM_BEST, STABLE
from cyclescope.measure.rows import READABLE, among, conditions_of
from cyclescope.measure.sampling import PASSING, Measurement
from cyclescope.measure.store import Store


class Disturbed:
    """Experiments whose readings a finished run has, and that another time may read better."""

    def __init__(self, verdicts: dict[Key, str]) -> None:
        self._verdicts = verdicts

    @property
    def keys(self) -> Collection[Key]:
        """What was not measured again yet."""
        return self._verdicts.keys()

    def unasked(self, forms: Collection[str], quantities: Collection[str]) -> list[Key]:
        """What nothing has asked for again of some forms and of what was to be measured of them.

        It was a second look at something that was disturbed, and is not any more.
        """
        return [key for key in self._verdicts if key[0] in forms and _measured_for(key) in quantities]

    def settle(self, batch: Sequence[tuple[Experiment, Measurement]]) -> list[tuple[Experiment, Measurement]]:
        """What of a batch is to be written: no reading that is worse than the one that is there."""
        if not self._verdicts:
            return list(batch)
        before = [self._verdicts.pop(experiment.key, FAILED) for experiment, _ in batch]
        return [
            one for one, old in zip(batch, before, strict=True)
            if FROM_BEST.index(one[1].verdict) <= FROM_BEST.index(old)
        ]  # fmt: skip


def _measured_for(key: Key) -> str:
    """The quantity of a request that an experiment belongs to."""
    return key[1] if key[1] in (THROUGHPUT, LATENCY, LINK) else PORTS


def disturbed(store: Store, forms: Collection[str] | None = None, quantity: str = "*") -> Disturbed:
    """What was disturbed, of some forms and quantities (a glob), or of all.

    Nothing of runs that did not come to their end.
    """
    last = _last_finished(store)
    reasons = ", ".join(f"'{reason}'" for reason in PASSING)
    where, names = among(None if forms is None else list(forms))
    rows = store.rows(
        "SELECT form, quantity, source, target, variant, verdict FROM measurement "
        f"WHERE {where}session <= {last} AND verdict <> '{STABLE}' AND error IN ({reasons}) "
        f"AND quantity GLOB '{quantity}' AND {READABLE}",
        names,
    )
    return Disturbed({row[:5]: row[5] for row in rows if forms is None or row[0] in forms})


def _last_finished(store: Store) -> int:
    """Number of the last session that came to its end; 0 before the first."""
    rows = store.rows("SELECT id, conditions FROM session")
    return max((number for number, told in rows if conditions_of(told).get("finished") is True), default=0)
