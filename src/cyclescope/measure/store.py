"""The store: one SQLite file per machine, written as measurements come.

Every measurement has its kernel's bytes and assembly, its start state, its conditions and its
verdict, so that it can be shown and run again. A store belongs to one machine.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from cyclescope.errors import StoreError
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure.database import (
    WriterLock,
    explaining,
    open_for_writing,
    open_readonly,
    store_error,
)
from cyclescope.measure.plan import Experiment
from cyclescope.measure.record import FAILED, Record
from cyclescope.measure.sampling import Measurement

VERSION = 1
X86_64 = "x86-64"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE session (id INTEGER PRIMARY KEY, started TEXT NOT NULL, conditions TEXT NOT NULL);
CREATE TABLE legality (form TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (id INTEGER PRIMARY KEY, packed BLOB NOT NULL UNIQUE);
CREATE TABLE link (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE measurement (
    id INTEGER PRIMARY KEY,
    form TEXT NOT NULL, quantity TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
    variant TEXT NOT NULL,
    cycles REAL NOT NULL, spread REAL NOT NULL, verdict TEXT NOT NULL, count INTEGER NOT NULL,
    links TEXT NOT NULL, accepted INTEGER NOT NULL, rejected INTEGER NOT NULL,
    rounds TEXT NOT NULL, exceptions INTEGER NOT NULL, error TEXT NOT NULL, counters TEXT NOT NULL,
    session INTEGER NOT NULL, state INTEGER NOT NULL, flags INTEGER NOT NULL,
    instructions INTEGER NOT NULL, kernel BLOB NOT NULL
);
CREATE UNIQUE INDEX experiment ON measurement (form, quantity, source, target, variant);
"""
COLUMNS = (
    "form, quantity, source, target, variant, cycles, spread, verdict, count, links, accepted, "
    "rejected, rounds, exceptions, error, counters, session, state, flags, instructions, kernel"
)
_RECORD = (
    "form, quantity, source, target, variant, cycles, spread, verdict, count, links, exceptions, error, id, "
    "counters"
)


class Evidence(msgspec.Struct, frozen=True):
    """The kernel behind a measurement, enough to run it again."""

    record: Record
    code: bytes
    setup: bytes
    text: str
    state: bytes
    flags: int
    instructions: int
    accepted: int
    rejected: int
    rounds: tuple[float, ...]
    conditions: dict[str, object]


class Store:
    """Measurements of one machine. Raises StoreError for files that are not such a store.

    `isa` is the instruction set of a new one.
    """

    def __init__(self, path: Path, machine: str = "", *, isa: str = X86_64, readonly: bool = False) -> None:
        self.path = path
        self._states: dict[int, tuple[int, MachineState]] = {}
        self._session = 0
        if readonly and not path.is_file():
            raise StoreError(
                f"no store at {path}", "run `cyclescope measure` first, or name one with --store"
            )
        with ExitStack() as undo:
            self._open(readonly, undo)
            self._check(machine, isa, readonly)
            self._closing = undo.pop_all()

    # --- opening ---------------------------------------------------------------------------------

    def _open(self, readonly: bool, undo: ExitStack) -> None:
        try:
            if not readonly:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                undo.callback(WriterLock(self.path).release)
            self.database = open_readonly(self.path) if readonly else open_for_writing(self.path)
            undo.callback(self.database.close)
        except (sqlite3.Error, OSError) as error:
            raise store_error(self.path, error) from error

    @explaining
    def _check(self, machine: str, isa: str, readonly: bool) -> None:
        tables = {name for (name,) in self.database.execute("SELECT name FROM sqlite_master")}
        if not tables and not readonly:
            self._create(machine, isa)
            return
        if not {"meta", "measurement"} <= tables:
            raise StoreError(
                f"{self.path} is a database, but no cyclescope store", "choose another with --store"
            )
        meta = dict(self.database.execute("SELECT key, value FROM meta"))
        if not readonly:
            self.database.execute("UPDATE meta SET value = value")  # can it be written?
            self.database.rollback()
        self._check_version(meta.get("version", ""))
        if machine and meta.get("machine") != machine:
            raise StoreError(
                f"the store {self.path} belongs to another machine ({meta.get('machine')})",
                f"this one is {machine}; choose another store with --store",
            )

    def _check_version(self, version: str) -> None:
        if version != str(VERSION):
            newer = version.isdecimal() and int(version) > VERSION
            raise StoreError(
                f"the store {self.path} has version {version or 'none'}, this program works with {VERSION}",
                "update cyclescope" if newer else "measure again into another with --store",
            )

    def _create(self, machine: str, isa: str) -> None:
        """All or nothing, so that a run killed here leaves an empty file, which is a new store."""
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("BEGIN IMMEDIATE")
        with self.database:
            for statement in _SCHEMA.strip().split(";"):
                self.database.execute(statement)
            meta = [("version", str(VERSION)), ("machine", machine), ("isa", isa)]
            self.database.executemany("INSERT INTO meta VALUES (?, ?)", meta)

    @property
    @explaining
    def machine(self) -> str:
        """Name of the machine the store belongs to."""
        return self._meta("machine")

    @property
    @explaining
    def isa(self) -> str:
        """Instruction set of the forms; stores of the first versions do not say it."""
        return self._meta("isa") or X86_64

    @property
    @explaining
    def emulated(self) -> bool:
        """Whether anything was measured under an emulator, whose cycles mean nothing."""
        return any(session.get("emulated") for session in self.sessions())

    def _meta(self, key: str) -> str:
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def close(self) -> None:
        """Close the file."""
        self._closing.close()

    # --- writing ---------------------------------------------------------------------------------

    @explaining
    def clear(self) -> None:
        """Forget every measurement (`--fresh`)."""
        with self.database:
            for table in ("measurement", "legality", "link", "session", "state"):
                self.database.execute(f"DELETE FROM {table}")
        self._states.clear()

    @explaining
    def begin_session(self, started: str, conditions: Mapping[str, object]) -> None:
        """Conditions that the following measurements are taken under."""
        with self.database:
            cursor = self.database.execute(
                "INSERT INTO session (started, conditions) VALUES (?, ?)", (started, json.dumps(conditions))
            )
        self._session = cursor.lastrowid or 0

    @explaining
    def write_legality(self, outcomes: Iterable[tuple[str, str]]) -> None:
        """(form id, outcome) of forms that were run once."""
        with self.database:
            self.database.executemany("INSERT OR REPLACE INTO legality VALUES (?, ?)", outcomes)

    @explaining
    def write_links(
        self, links: Mapping[str, bytes], chains: Iterable[tuple[Experiment, Measurement]] = ()
    ) -> None:
        """Latencies of links, encoded as JSON, with the chains that they come from. One transaction."""
        with self._transaction():
            self._insert(chains)
            self.database.execute("DELETE FROM link")
            self.database.executemany(
                "INSERT INTO link VALUES (?, ?)", [(k, v.decode()) for k, v in links.items()]
            )

    @explaining
    def write(self, settled: Iterable[tuple[Experiment, Measurement]]) -> None:
        """Measurements, replacing older ones of the same experiments. One transaction."""
        with self._transaction():
            self._insert(settled)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self.database:
                yield
        except BaseException:
            self._states.clear()  # the states it brought are taken back too
            raise

    def _insert(self, settled: Iterable[tuple[Experiment, Measurement]]) -> None:
        rows = [self._row(e, m) for e, m in settled]
        marks = ", ".join("?" * 21)
        self.database.executemany(f"INSERT OR REPLACE INTO measurement ({COLUMNS}) VALUES ({marks})", rows)

    def _row(self, e: Experiment, m: Measurement) -> tuple[object, ...]:
        kernel = e.kernel
        return (
            *e.key, m.cycles, m.spread, m.verdict, e.count, " ".join(e.links), m.accepted, m.rejected,
            " ".join(map(str, m.rounds)), m.exceptions, m.error, " ".join(map(str, m.counters)),
            self._session, self._state(kernel.state), kernel.flags, kernel.instructions,
            pack_kernel(kernel),
        )  # fmt: skip

    def _state(self, state: MachineState) -> int:
        known = self._states.get(id(state))
        if known is not None:
            return known[0]
        packed = zlib.compress(state.packed)
        self.database.execute("INSERT OR IGNORE INTO state (packed) VALUES (?)", (packed,))
        row = self.database.execute("SELECT id FROM state WHERE packed = ?", (packed,)).fetchone()
        self._states[id(state)] = int(row[0]), state
        return int(row[0])

    # --- reading ---------------------------------------------------------------------------------

    @explaining
    def legality(self) -> dict[str, str]:
        """Outcome per form id."""
        return dict(self.database.execute("SELECT form, outcome FROM legality"))

    @explaining
    def links(self) -> dict[str, bytes]:
        """Latencies of links, encoded as JSON."""
        return {k: v.encode() for k, v in self.database.execute("SELECT key, value FROM link")}

    @explaining
    def done(self, variants: str = "*") -> set[tuple[str, str, str, str, str]]:
        """Keys of the experiments that have been measured, those whose variant matches a glob."""
        query = "SELECT form, quantity, source, target, variant FROM measurement WHERE variant GLOB ?"
        return set(self.database.execute(query, (variants,)))

    @explaining
    def throughputs(self) -> dict[str, float]:
        """Least stable time per instance over each form's ordinary sequences, first looks only (cycles)."""
        query = """SELECT form, MIN(cycles / count) FROM measurement
            WHERE quantity = 'throughput' AND verdict = 'ok'
            AND (variant GLOB 'plain*' OR variant GLOB 'broken*' OR variant GLOB 'unrolled*'
                OR variant = 'fast')
            AND variant NOT GLOB '* again'
            GROUP BY form"""
        return dict(self.database.execute(query))

    @explaining
    def has(self, quantity: str) -> bool:
        """Whether anything was measured of a quantity."""
        query = "SELECT 1 FROM measurement WHERE quantity = ? LIMIT 1"
        return self.database.execute(query, (quantity,)).fetchone() is not None

    def records(self, forms: Sequence[str] | None = None) -> Iterator[Record]:
        """Records of the given forms, or of all, form by form."""
        if forms is None:
            yield from self._select("ORDER BY form, id", ())
            return
        for start in range(0, len(forms), 500):
            some = forms[start : start + 500]
            marks = ", ".join("?" * len(some))
            yield from self._select(f"WHERE form IN ({marks}) ORDER BY form, id", some)

    def records_of(self, quantities: Sequence[str], forms: Sequence[str] | None = None) -> Iterator[Record]:
        """Records of some quantities, of the given forms or of all."""
        marks = ", ".join("?" * len(quantities))
        if forms is None:
            yield from self._select(f"WHERE quantity IN ({marks})", list(quantities))
            return
        for start in range(0, len(forms), 500):
            some = forms[start : start + 500]
            where = f"WHERE quantity IN ({marks}) AND form IN ({', '.join('?' * len(some))})"
            yield from self._select(where, [*quantities, *some])

    @explaining
    def readings(self, quantity: str) -> list[tuple[str, str, float]]:
        """Form, variant and cycles of every usable measurement of a quantity."""
        query = "SELECT form, variant, cycles FROM measurement WHERE quantity = ? AND verdict <> ?"
        return self.database.execute(query, (quantity, FAILED)).fetchall()

    def _select(self, where: str, values: Sequence[object]) -> Iterator[Record]:
        try:
            for row in self.database.execute(f"SELECT {_RECORD} FROM measurement {where}", values):
                yield _record(row)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    @explaining
    def evidence(self, form: str) -> list[Evidence]:
        """Kernels of a form with all that is known of them."""
        found = []
        with closing(self.database.cursor()) as cursor:
            for record in self.records([form]):
                row = cursor.execute(
                    "SELECT kernel, state.packed, flags, instructions, accepted, rejected, rounds, "
                    "conditions FROM measurement LEFT JOIN state ON state.id = measurement.state "
                    "LEFT JOIN session ON session.id = measurement.session WHERE measurement.id = ?",
                    (record.id,),
                ).fetchone()
                found.append(_evidence(record, row))
        return found

    @explaining
    def kernel(self, number: int) -> tuple[str, Kernel]:
        """Assembly and kernel of a measurement, to run it again. Raises StoreError if unknown."""
        row = self.database.execute(
            "SELECT kernel, packed, flags, instructions FROM measurement "
            "JOIN state ON state.id = measurement.state WHERE measurement.id = ?",
            (number,),
        ).fetchone()
        if row is None:
            raise StoreError(
                f"{self.path} has no measurement {number}", "`show --evidence` prints the numbers"
            )
        setup, code, text = unpack_kernel(row[0])
        state = MachineState.unpack(zlib.decompress(row[1]))
        return text, Kernel(code, row[3], state, setup, row[2])

    @explaining
    def sessions(self) -> list[dict[str, object]]:
        """Conditions of every session, oldest first."""
        rows = self.database.execute("SELECT started, conditions FROM session ORDER BY id")
        return [{"started": started, **json.loads(c)} for started, c in rows]

    @explaining
    def events(self) -> tuple[str, ...]:
        """What the counters of the newest session count, in the order of records; empty without counters."""
        sessions = self.sessions()
        return tuple(sessions[-1].get("events", ())) if sessions else ()  # type: ignore[arg-type]

    @explaining
    def count(self) -> int:
        """Number of measurements."""
        return int(self.database.execute("SELECT count(*) FROM measurement").fetchone()[0])


def pack_kernel(kernel: Kernel) -> bytes:
    """Setup, code and assembly of a kernel, compressed."""
    head = len(kernel.setup).to_bytes(2, "little") + len(kernel.code).to_bytes(2, "little")
    return zlib.compress(head + kernel.setup + kernel.code + kernel.text().encode(), 1)


def unpack_kernel(blob: bytes) -> tuple[bytes, bytes, str]:
    """(setup, code, assembly) from `pack_kernel`."""
    data = zlib.decompress(blob)
    setup, code = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:4], "little")
    return data[4 : 4 + setup], data[4 + setup : 4 + setup + code], data[4 + setup + code :].decode()


def _record(row: Sequence[Any]) -> Record:
    form, quantity, source, target, variant, cycles, spread, verdict, count, links, *rest = row
    exceptions, error, number, counters = rest
    return Record(
        form, quantity, source, target, variant, cycles, spread, verdict, count, tuple(links.split()),
        exceptions, error, number, tuple(map(float, counters.split())),
    )  # fmt: skip


def _evidence(record: Record, row: Sequence[object]) -> Evidence:
    blob, packed, flags, instructions, accepted, rejected, rounds, conditions = row
    setup, code, text = unpack_kernel(blob)  # type: ignore[arg-type]
    return Evidence(
        record, code, setup, text, zlib.decompress(packed), flags, instructions,  # type: ignore[arg-type]
        accepted, rejected, tuple(map(float, str(rounds).split())),  # type: ignore[arg-type]
        json.loads(str(conditions)) if conditions else {},
    )  # fmt: skip
