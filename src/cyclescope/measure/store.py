"""The store: one SQLite file per machine, written as measurements come.

Every measurement has its kernel's bytes and assembly, its start state, its conditions and its
verdict, so that it can be shown and run again. A store belongs to one machine.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from cyclescope.errors import StoreError
from cyclescope.isa.registry import DEFAULT
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure.database import (
    COLUMNS,
    DAMAGE,
    FACTS,
    Changes,
    WriterLock,
    explaining,
    open_for_writing,
    open_readonly,
    open_still,
    prepare,
    store_error,
)
from cyclescope.measure.plan import Experiment, Key
from cyclescope.measure.record import FAILED, Reading, Record
from cyclescope.measure.rows import (
    EVIDENCE,
    KERNEL,
    LEAST_THROUGHPUTS,
    READABLE,
    Evidence,
    RowReader,
    Unreadable,
    among,
    evidence_of,
    kernel_of,
    marks,
    parts,
    row_of,
)
from cyclescope.measure.sampling import Measurement
from cyclescope.measure.sessions import Sessions
from cyclescope.model.facts import Fact

_NOTE = "note "  # begins the keys of what was concluded, which is no measurement


class Store:
    """Measurements of one machine; `isa` is the instruction set of a new one. Raises StoreError.

    Where it is `readonly`, and `still` as nobody writes it meanwhile, it is read without locks.
    """

    def __init__(
        self,
        path: Path,
        machine: str = "",
        *,
        isa: str = DEFAULT,
        readonly: bool = False,
        still: bool = False,
    ) -> None:
        self.path = path
        self._states: dict[int, tuple[int, MachineState]] = {}
        if readonly and not path.is_file():
            raise StoreError(f"no store at {path}", "run {measure} first, or name one with {store}")
        with ExitStack() as undo:
            self._open(readonly, still, undo)
            self._rows = RowReader(self.database)
            self._sessions = Sessions(self.database, self._rows)
            self._prepare(machine, isa, readonly)
            self.changes = None if readonly else Changes(self.database)
            self._closing = undo.pop_all()

    # --- opening ---------------------------------------------------------------------------------

    def _open(self, readonly: bool, still: bool, undo: ExitStack) -> None:
        try:
            if not readonly:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                undo.callback(WriterLock(self.path).release)
            reader = open_still if still else open_readonly
            self.database = reader(self.path) if readonly else open_for_writing(self.path)
            undo.callback(self.database.close)
        except (sqlite3.Error, OSError, MemoryError) as error:
            raise store_error(self.path, error) from error

    @explaining
    def _prepare(self, machine: str, isa: str, readonly: bool) -> None:
        prepare(self.database, self.path, machine, isa, readonly)

    @property
    @explaining
    def machine(self) -> str:
        """Name of the machine the store belongs to."""
        return self._meta("machine")

    @property
    @explaining
    def isa(self) -> str:
        """Instruction set of the forms; stores of the first versions do not say it."""
        return self._meta("isa") or DEFAULT

    @property
    @explaining
    def emulated(self) -> bool:
        """Whether anything was measured under an emulator, whose cycles mean nothing."""
        return any(session.get("emulated") for session in self.sessions())

    def _meta(self, key: str) -> str:
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row and isinstance(row[0], str) else ""  # damaged where it is none

    @explaining
    def note(self, name: str) -> str:
        """What was concluded under a name, "" where nothing was."""
        return self._meta(_NOTE + name)

    @explaining
    def settle(self) -> None:
        """Bring what is in the log into the file, so that closing it changes nothing."""
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

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
            self.database.execute("DROP TABLE IF EXISTS fact")
            self.database.execute("DELETE FROM meta WHERE key GLOB ?", (f"{_NOTE}*",))
        self._states.clear()

    def begin_session(self, started: str, conditions: Mapping[str, object]) -> None:
        """Conditions that the following measurements are taken under; written with the first of them."""
        self._sessions.begin(started, conditions)

    @explaining
    def end_session(self) -> None:
        """Note that what the session asked for was measured to its end, unless that is known."""
        with self.database:
            self._sessions.end()

    @explaining
    def note_samples(self, counts: Mapping[str, int]) -> None:
        """Add to the samples of this session: `accepted`, `rejected`, and of these `disturbed`."""
        with self.database:
            self._sessions.note_samples(counts)

    @explaining
    def write_legality(self, outcomes: Iterable[tuple[str, str]]) -> None:
        """(form id, outcome) of forms that were run once."""
        found = list(outcomes)
        with self._transaction():
            if found:
                self._sessions.current()
            self.database.executemany("INSERT OR REPLACE INTO legality VALUES (?, ?)", found)

    @explaining
    def write_links(
        self, links: Mapping[str, bytes], chains: Iterable[tuple[Experiment, Measurement]] = ()
    ) -> None:
        """Latencies of links, encoded as JSON, with the chains that they come from. One transaction."""
        with self._transaction():
            self._insert(chains)
            self.database.execute("DELETE FROM link")
            some = [(key, value.decode()) for key, value in links.items()]
            self.database.executemany("INSERT INTO link VALUES (?, ?)", some)

    @explaining
    def write_note(self, name: str, text: str) -> None:
        """Keep what was concluded from the measurements, in place of what was before."""
        with self.database:
            self.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NOTE + name, text))

    @explaining
    def write(self, settled: Iterable[tuple[Experiment, Measurement]]) -> None:
        """Measurements, replacing older ones of the same experiments. One transaction."""
        with self._transaction():
            self._insert(settled)

    @explaining
    def forget(self, keys: Iterable[Key]) -> None:
        """Take out measurements. One transaction."""
        where = "form = ? AND quantity = ? AND source = ? AND target = ? AND variant = ?"
        with self._transaction():
            self.database.executemany(f"DELETE FROM measurement WHERE {where}", list(keys))

    @explaining
    def write_probe(
        self, probe: str, facts: Sequence[Fact], settled: Iterable[tuple[Experiment, Measurement]]
    ) -> None:
        """What a probe found, with the measurements that it rests on. One transaction.

        It replaces the facts of an earlier run about the same subjects; a shorter one leaves the others.
        """
        known = {fact.subject: fact for fact in self.facts() if fact.probe == probe}
        known |= {fact.subject: fact for fact in facts}
        encoded = msgspec.json.encode(list(known.values())).decode()
        with self._transaction():
            self._insert(settled)
            self.database.execute(FACTS)
            self.database.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (probe, encoded))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        session = self._sessions.number
        try:
            with self.database:
                yield
        except BaseException:
            self._states.clear()  # the states it brought are taken back too
            self._sessions.number = session
            raise

    def _insert(self, settled: Iterable[tuple[Experiment, Measurement]]) -> None:
        rows = [row_of(e, m, self._sessions.current(), self._state(e.kernel.state)) for e, m in settled]
        values = marks(COLUMNS.split(","))
        self.database.executemany(f"INSERT OR REPLACE INTO measurement ({COLUMNS}) VALUES ({values})", rows)

    def _state(self, state: MachineState) -> int:
        known = self._states.get(id(state))
        if known is not None:
            return known[0]
        packed = zlib.compress(state.packed)
        self.database.execute("INSERT OR IGNORE INTO state (packed) VALUES (?)", (packed,))
        (number,) = self.database.execute("SELECT id FROM state WHERE packed = ?", (packed,)).fetchone()
        self._states[id(state)] = int(number), state
        return int(number)

    # --- reading ---------------------------------------------------------------------------------

    @property
    def unreadable(self) -> list[Unreadable]:
        """Damaged rows that were met: they are left out, as if they had not been measured."""
        return list(self._rows.unreadable.values())

    def leave_out(self, what: str, key: int | str, reason: str) -> None:
        """Note a row that cannot be read."""
        self._rows.leave_out(Unreadable(what, key, "", reason))

    def note_damage(self, rows: Iterable[Unreadable]) -> None:
        """Note rows that another reader of this store has left out."""
        for row in rows:
            self._rows.leave_out(row)

    @explaining
    def legality(self) -> dict[str, str]:
        """Outcome per form id."""
        return self._rows.texts("outcome", "SELECT form, outcome FROM legality")

    @explaining
    def links(self) -> dict[str, bytes]:
        """Latencies of links, encoded as JSON."""
        found = self._rows.texts("link", "SELECT key, value FROM link")
        return {key: value.encode() for key, value in found.items()}

    @explaining
    def facts(self) -> list[Fact]:
        """What probes found; stores of the first versions have no place for it."""
        tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'fact'"
        if self.database.execute(tables).fetchone() is None:
            return []
        found: list[Fact] = []
        for probe, value in self._rows.texts("fact", "SELECT probe, value FROM fact ORDER BY probe").items():
            try:
                found += msgspec.json.decode(value, type=list[Fact])
            except msgspec.DecodeError:
                self.leave_out("fact", probe, "no facts")
        return found

    @explaining
    def done(self, glob: str = "*", forms: Sequence[str] | None = None, but: Sequence[str] = ()) -> set[Key]:
        """Keys of what was measured whose variant matches a glob: of some forms, `but` of some quantities."""
        where, names = among(forms)
        where += f"variant GLOB ? AND quantity NOT IN ({marks(but)}) AND {READABLE}"
        query = f"SELECT form, quantity, source, target, variant FROM measurement WHERE {where}"
        return set(self._rows.fetch(query, (*names, glob, *but)))

    @explaining
    def throughputs(self) -> dict[str, float]:
        """Least stable time per instance over each form's ordinary sequences, first looks only (cycles)."""
        return dict(self._rows.fetch(LEAST_THROUGHPUTS, ()))

    @explaining
    def has(self, quantity: str) -> bool:
        """Whether anything was measured of a quantity."""
        query = "SELECT 1 FROM measurement WHERE quantity = ? LIMIT 1"
        return self.database.execute(query, (quantity,)).fetchone() is not None

    def records(self, forms: Sequence[str] | None = None) -> Iterator[Record]:
        """Records of the given forms, or of all, form by form."""
        if forms is None:
            yield from self._select("ORDER BY form, id", ())
        for some in parts(forms or ()):
            yield from self._select(f"WHERE form IN ({marks(some)}) ORDER BY form, id", some, some)

    def records_of(
        self, quantities: Sequence[str], forms: Sequence[str] | None = None, order: str = "", since: int = 0,
        rounds: bool = True,
    ) -> Iterator[Record]:  # fmt: skip
        """Records of quantities and forms, or all forms, from number `since` on; faster without `rounds`."""
        where = f"WHERE quantity IN ({marks(quantities)})" + (f" AND id >= {since}" if since else "")
        ordered = f" ORDER BY {order}" if order else ""
        if forms is None:
            yield from self._select(where + ordered, quantities, None, rounds)
        for some in parts(forms or ()):
            query = f"{where} AND form IN ({marks(some)}){ordered}"
            yield from self._select(query, [*quantities, *some], some, rounds)

    @explaining
    def readings(self, quantities: Sequence[str], variants: str = "*") -> list[list[Reading]]:
        """Every usable measurement of each quantity, those whose variant matches a glob."""
        query = "SELECT form, source, target, variant, cycles, spread, count, verdict, quantity "
        where = f"quantity IN ({marks(quantities)}) AND verdict <> ? AND variant GLOB ? AND {READABLE}"
        rows = self._rows.fetch(f"{query}FROM measurement WHERE {where}", (*quantities, FAILED, variants))
        return [[Reading(*row[:-1]) for row in rows if row[-1] == quantity] for quantity in quantities]

    def _select(
        self, where: str, values: Sequence[object], forms: Sequence[str] | None = None, rounds: bool = True
    ) -> Iterator[Record]:
        """Records, of some forms: a damaged index leads to others."""
        wanted = None if forms is None else set(forms)
        try:
            for record in self._rows.records(where, values, rounds):
                if wanted is None or record.form in wanted:
                    yield record
                else:
                    reason = "the index has it under another form"
                    self._rows.leave_out(Unreadable("measurement", record.id, "", reason, record.quantity))
        except DAMAGE as error:
            raise store_error(self.path, error) from error

    @explaining
    def evidence(self, form: str) -> list[Evidence]:
        """Kernels of a form with all that is known of them."""
        found = [(record, self._rows.fetch(EVIDENCE, (record.id,))) for record in self.records([form])]
        if broken := [record.id for record, rows in found if not rows]:
            raise ValueError(f"the text of measurement {broken[0]} is not UTF-8")
        return [evidence_of(record, rows[0]) for record, rows in found]

    @explaining
    def kernel(self, number: int) -> tuple[str, Kernel]:
        """Assembly and kernel of a measurement, to run it again. Raises StoreError if unknown."""
        rows = self._rows.fetch(KERNEL, (number,))
        if not rows:
            raise StoreError(f"{self.path} has no measurement {number}", "{evidence} has the numbers")
        return kernel_of(rows[0])

    @explaining
    def sessions(self) -> list[dict[str, object]]:
        """Conditions of every session, oldest first."""
        return self._sessions.every()

    @explaining
    def stopped(self) -> bool:
        """Whether a run may have been stopped, and no later one did what it was asked for."""
        return self._sessions.stopped()

    @explaining
    def events(self) -> tuple[str, ...]:
        """What counters counted when forms were measured last, in order of records; none without them."""
        found = [None, *[said["events"] for said in self.sessions() if "events" in said]][-1]
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @explaining
    def rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """What a query finds, but for rows with text that is not UTF-8."""
        return self._rows.fetch(query, values)

    @explaining
    def damaged(self) -> int:
        """Number of measurements that are not readable."""
        return self.count() - len(self.done())

    def is_damaged(self, form: str, quantities: Iterable[str]) -> bool:
        """Whether damaged rows of a form were met among those of some quantities."""
        return any((form, quantity) in self._rows.damaged for quantity in quantities)

    @explaining
    def count(self) -> int:
        """Number of measurements."""
        return int(self.database.execute("SELECT count(*) FROM measurement").fetchone()[0])
