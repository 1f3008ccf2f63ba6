"""Sessions of a store: under which conditions measurements were taken, and which runs came to their end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping

from cyclescope.measure.rows import RowReader, conditions_of

PROBE = "probe"  # what sessions ask for that ask probes alone


class Sessions:
    """The sessions of a database; the one that began last is written with its first measurement."""

    def __init__(self, database: sqlite3.Connection, rows: RowReader) -> None:
        self._database = database
        self._rows = rows
        self._begun: tuple[str, dict[str, object]] | None = None
        self.number = 0  # of the one that began last, 0 while it is not written

    def begin(self, started: str, conditions: Mapping[str, object]) -> None:
        """Conditions that the following measurements are taken under."""
        self.number, self._begun = 0, (started, dict(conditions))

    def current(self) -> int:
        """Number of the session that began last, which is written now if it was not."""
        if not self.number and self._begun is not None:
            started, conditions = self._begun
            insert = "INSERT INTO session (started, conditions) VALUES (?, ?)"
            self.number = self._database.execute(insert, (started, json.dumps(conditions))).lastrowid or 0
        return self.number

    def note_samples(self, counts: Mapping[str, int]) -> None:
        """Add to the counts of samples of the session that began last."""
        if self._begun is None:
            return
        _, conditions = self._begun
        before = conditions.get("samples")
        known = before if isinstance(before, dict) else {}
        conditions["samples"] = {name: known.get(name, 0) + count for name, count in counts.items()}
        if self.number:
            update = "UPDATE session SET conditions = ? WHERE id = ?"
            self._database.execute(update, (json.dumps(conditions), self.number))

    def end(self) -> None:
        """Note that what the session asked for was measured to its end, unless that is known."""
        if self._begun is None:
            return
        known = not self.number and not any_stopped(self._written())
        self._begun[1]["finished"] = True
        if known:
            return
        number, told = self.current(), json.dumps(self._begun[1])
        self._database.execute("UPDATE session SET conditions = ? WHERE id = ?", (told, number))

    def every(self) -> list[dict[str, object]]:
        """Conditions of every session, oldest first."""
        found = self._written()
        if self._begun is not None and not self.number:
            found.append({"started": self._begun[0], **self._begun[1]})
        return found

    def _written(self) -> list[dict[str, object]]:
        rows = self._rows.fetch("SELECT started, conditions FROM session ORDER BY id", ())
        return [{"started": str(started), **conditions_of(conditions)} for started, conditions in rows]

    def stopped(self) -> bool:
        """Whether a run may have been stopped, and no later one did what it was asked for."""
        return any_stopped(self.every())


def any_stopped(sessions: Iterable[Mapping[str, object]]) -> bool:
    """Whether a session was stopped, or may have been, and no later one did what it was asked for.

    Those that do not say what they were asked for are of an earlier version: nobody knows how they ended.
    """
    stopped: list[tuple[set[str], object]] = []
    for session in sessions:
        asked = session.get("asked")
        told = isinstance(asked, dict) and isinstance(asked.get("what"), list)
        what = set(map(str, asked["what"])) if told else set()  # type: ignore[index]
        forms = asked.get("forms") if told else None  # type: ignore[attr-defined]
        if told and session.get("finished") is True:
            stopped = [(some, other) for some, other in stopped if not (some <= what and other == forms)]
        else:
            stopped.append((what, forms))
    return bool(stopped)
