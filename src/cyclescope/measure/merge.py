"""Merging stores of one machine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from cyclescope.errors import StoreError, UsageError
from cyclescope.measure.database import COLUMNS, DAMAGE, FACTS, file_name, store_error
from cyclescope.measure.record import STABLE
from cyclescope.measure.rows import READABLE, conditions_of
from cyclescope.measure.store import Store
from cyclescope.model.facts import Fact

_KEY = "form, quantity, source, target, variant"
_SESSION, _STATE = (COLUMNS.split(", ").index(name) for name in ("session", "state"))
_VERDICT = COLUMNS.split(", ").index("verdict")


class Merged(msgspec.Struct, frozen=True):
    """How many measurements were taken over from a store, and how many of it are damaged and left out."""

    path: Path
    taken: int
    damaged: int = 0


def merge_files(sources: Sequence[Path], output: Path) -> list[Merged]:
    """Merge stores into a new or existing one; the measurements taken from each, and those not readable.

    Where both have a measurement the stable one is kept; otherwise the one already there. Nothing is
    written when a source cannot be merged.
    """
    if any(source.resolve() == output.resolve() for source in sources):
        raise UsageError(f"{output} is both a source and the output", "name another output")
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(Store(path, readonly=True))) for path in sources]
        for other in opened[1:]:
            _same_machine(other, opened[0])
        target = stack.enter_context(closing(Store(output, opened[0].machine, isa=opened[0].isa)))
        return [Merged(source.path, merge(target, source), source.damaged()) for source in opened]


def by_machine(sources: Sequence[Path], folder: Path) -> list[tuple[Path, list[Path]]]:
    """The files in a folder that stores merge into, one per machine, each with its sources."""
    found: dict[str, list[Path]] = {}
    for path in sources:
        with closing(Store(path, readonly=True)) as store:
            found.setdefault(store.machine, []).append(path)
    return [(folder / file_name(machine), paths) for machine, paths in found.items()]


def _same_machine(one: Store, other: Store) -> None:
    if one.machine != other.machine:
        raise StoreError(
            f"{one.path} belongs to {one.machine}, {other.path} to {other.machine}",
            "only stores of one machine merge",
        )


def merge(target: Store, source: Store) -> int:
    """Take over what another store of the same machine has and this one lacks, or has unstable.

    Returns the number of measurements taken over.
    """
    _same_machine(source, target)
    try:
        with target.database:
            return _merge(target.database, source)
    except DAMAGE as error:
        raise store_error(_culprit(target, source), error) from error


def _culprit(target: Store, source: Store) -> Path:
    """The store that an error is about: the source, unless that can be read to its end."""
    try:
        source.database.execute(f"SELECT {COLUMNS} FROM measurement").fetchall()
    except (sqlite3.Error, MemoryError):
        return source.path
    return target.path


def _merge(db: sqlite3.Connection, source: Store) -> int:
    verdicts = f"SELECT {_KEY}, verdict FROM measurement WHERE {READABLE}"
    known = {tuple(key): verdict for *key, verdict in db.execute(verdicts)}
    db.executemany("INSERT OR IGNORE INTO legality VALUES (?, ?)", list(source.legality().items()))
    links = [(key, value.decode()) for key, value in source.links().items()]
    db.executemany("INSERT OR IGNORE INTO link VALUES (?, ?)", links)
    _copy_facts(db, source)
    rows = source.rows(
        f"SELECT {COLUMNS}, packed FROM measurement JOIN state ON state.id = measurement.state "
        f"WHERE {READABLE}"
    )
    wanted = [row for row in rows if _better(row[_VERDICT], known.get(tuple(row[:5])))]
    sessions = _copy_sessions(db, source, {row[_SESSION] for row in wanted}, source.damaged() > 0)
    for row in wanted:
        _copy_measurement(db, row, sessions)
    return len(wanted)


def _better(verdict: str, known: str | None) -> bool:
    return known is None or (verdict == STABLE != known)


def _copy_facts(db: sqlite3.Connection, source: Store) -> None:
    """Facts of probes that the target has none of."""
    found: dict[str, list[Fact]] = {}
    for fact in source.facts():
        found.setdefault(fact.probe, []).append(fact)
    if found:
        db.execute(FACTS)
        rows = [(probe, msgspec.json.encode(facts).decode()) for probe, facts in found.items()]
        db.executemany("INSERT OR IGNORE INTO fact VALUES (?, ?)", rows)


def _copy_sessions(db: sqlite3.Connection, source: Store, wanted: set[int], damaged: bool) -> dict[int, int]:
    numbers = {}
    for number, started, conditions in source.database.execute("SELECT * FROM session").fetchall():
        if number in wanted:
            insert = "INSERT INTO session (started, conditions) VALUES (?, ?)"
            told = _as_stopped(conditions) if damaged else conditions
            numbers[number] = db.execute(insert, (started, told)).lastrowid or 0
    return numbers


def _as_stopped(conditions: str) -> str:
    """The conditions of a session some of whose measurements are left out."""
    return json.dumps(conditions_of(conditions) | {"finished": False})


def _copy_measurement(db: sqlite3.Connection, row: Sequence[object], sessions: Mapping[int, int]) -> None:
    *values, packed = row
    db.execute("INSERT OR IGNORE INTO state (packed) VALUES (?)", (packed,))
    values[_STATE] = db.execute("SELECT id FROM state WHERE packed = ?", (packed,)).fetchone()[0]
    values[_SESSION] = sessions.get(int(str(values[_SESSION])), 0)
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT OR REPLACE INTO measurement ({COLUMNS}) VALUES ({marks})", values)
