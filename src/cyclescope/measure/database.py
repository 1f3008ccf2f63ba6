"""The file behind a store: opening it, one writer at a time, and what SQLite's errors mean."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from cyclescope.errors import StoreError

SCHEMA_VERSION = 1  # of the schema
SCHEMA = """
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
FACTS = "CREATE TABLE IF NOT EXISTS fact (probe TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
COLUMNS = (
    "form, quantity, source, target, variant, cycles, spread, verdict, count, links, accepted, "
    "rejected, rounds, exceptions, error, counters, session, state, flags, instructions, kernel"
)
DAMAGE = (sqlite3.Error, zlib.error, struct.error, ValueError, MemoryError)
"""What a store full of nonsense raises: lengths in it may be more than there is memory."""
# Of a store while it is written: a full run makes 150 MB, whose index is written all over.
_CACHE_KIB = 64 << 10
# Of 4 KiB, before the log is brought into the file: pages of the index come again and again.
_LOG_PAGES = 16384
_OTHER = "choose another with {store}"
_MEANINGS = {
    "SQLITE_READONLY": ("cannot be written", _OTHER),
    "SQLITE_PERM": ("cannot be written", _OTHER),
    "SQLITE_CANTOPEN": ("cannot be opened", f"look at the rights of its folder, or {_OTHER}"),
    "SQLITE_BUSY": ("is in use", "wait for the other program to end"),
    "SQLITE_FULL": ("has no room left on its disk", "what was written before is kept; make room and go on"),
    "SQLITE_IOERR": ("cannot be read or written: its disk fails", "what was written before is kept"),
}
_DAMAGED = ("is damaged or no store", f"move it away or {_OTHER}")


class _HasPath(Protocol):
    path: Path


S = TypeVar("S", bound=_HasPath)
P = ParamSpec("P")
R = TypeVar("R")


def explaining(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let a method of a store raise StoreError where its file fails it."""

    @wraps(method)
    def explained(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except DAMAGE as error:
            raise store_error(self.path, error) from error

    return explained


def store_error(path: Path, error: Exception) -> StoreError:
    """An error of the file in words a user can act on."""
    if isinstance(error, OSError):
        return StoreError(f"the store {path} cannot be written ({error.strerror})", _OTHER)
    name = getattr(error, "sqlite_errorname", "") or ""
    for beginning, (what, remedy) in _MEANINGS.items():
        if name.startswith(beginning):
            return StoreError(f"the store {path} {what}", remedy)
    what, remedy = _DAMAGED
    return StoreError(f"the store {path} {what} ({str(error) or 'no memory is enough for it'})", remedy)


def file_name(machine: str) -> str:
    """What the file of a machine's store is called unless a user names it."""
    return f"{machine.replace(' ', '-').replace('/', '-')}.sqlite"


def default_store(machine: str) -> Path:
    """Where the store of a machine is kept unless another file is named."""
    try:
        base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    except RuntimeError as error:
        raise StoreError("no home directory to keep a store in", "name one with {store}") from error
    return Path(base) / "cyclescope" / file_name(machine)


def stores() -> list[Path]:
    """The stores in the default folder."""
    return sorted(default_store("x").parent.glob("*.sqlite"))


def only_store() -> Path:
    """The default store, when there is exactly one; for showing results without a runner."""
    base, found = default_store("x").parent, stores()
    if not found:
        raise StoreError(f"no store in {base}", "run {measure} first, or name one with {store}")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise StoreError(f"several stores in {base}: {names}", "name one with {store}")
    return found[0]


def open_readonly(path: Path) -> sqlite3.Connection:
    """Open for reading, also where the folder cannot be written."""
    try:
        return _connect(path, "mode=ro")
    except sqlite3.OperationalError:
        if Path(f"{path}-journal").exists():  # of a writer that was killed: it has to be undone first
            return _connect(path, "mode=rw")
        if Path(f"{path}-wal").exists():
            raise
        return _connect(path, "immutable=1")  # nobody writes: no need for files next to it


def open_still(path: Path) -> sqlite3.Connection:
    """Open for reading a file that nobody writes meanwhile (`is_still`).

    Without locks: a copy of a process must not use those that SQLite holds for it.
    """
    return _connect(path, "mode=ro&immutable=1&nolock=1")


def is_still(path: Path) -> bool:
    """Whether all of a store is in its file, and no program is in the middle of writing it."""
    logs = [Path(f"{path}{ending}") for ending in ("-wal", "-journal")]
    return not any(log.is_file() and log.stat().st_size for log in logs)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open or create.

    A batch is not waited for until the disk has it: whatever ends this program, it is kept; where the machine
    loses power, the last batches may be lost, and the file stays whole.
    """
    database = _connect(path, "mode=rwc")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    database.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    return database


def _connect(path: Path, how: str) -> sqlite3.Connection:
    name = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = sqlite3.connect(f"file:{name}?{how}", uri=True, timeout=20)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, MemoryError):
        db.close()
        raise
    except UnicodeDecodeError as error:  # SQLite's message names a table, in bytes that are no text
        db.close()
        raise sqlite3.DatabaseError("a name in its schema is no text") from error
    return db


class Changes:
    """What came and went in a database since it was opened. It notes it itself: no writer can forget to.

    A row that comes, also in place of one of the same experiment, has a higher number than all others there.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        database.execute("PRAGMA temp_store = MEMORY")
        database.execute("CREATE TEMP TABLE changed (form, quantity, UNIQUE (form, quantity))")
        highest = "SELECT ifnull(max(id), 0) AS number FROM main.measurement"
        database.execute(f"CREATE TEMP TABLE known AS {highest}")
        for event, row in (("UPDATE", "OLD"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            database.execute(
                f"CREATE TEMP TRIGGER {event}_{row} AFTER {event} ON main.measurement BEGIN "
                f"INSERT OR IGNORE INTO changed VALUES ({row}.form, {row}.quantity); "
                f"UPDATE known SET number = min(number, ({highest})); END"
            )

    @property
    def measured(self) -> set[tuple[str, str]]:
        """Forms with the quantities of which a measurement was added, replaced or taken out."""
        new = "SELECT form, quantity FROM main.measurement WHERE id > (SELECT number FROM known)"
        return set(self._database.execute(f"SELECT form, quantity FROM changed UNION {new}"))


class WriterLock:
    """Held by the one program that writes a store; a killed one leaves it free.

    Not SQLite's own lock, since readers are welcome meanwhile. Raises StoreError while another holds it.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(f"{path}-lock")
        self._file = -1
        while not self._taken(path):
            self.release()

    def _taken(self, store: Path) -> bool:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise StoreError(
                f"the store {store} is in use: another program is writing it", "wait for it to end"
            ) from None
        except OSError:
            return True  # a file system without locks: SQLite still keeps the file whole
        with suppress(FileNotFoundError):  # the holder before removed it while we waited
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        return False

    def release(self) -> None:
        """Let others write. Removing the file while it is locked lets nobody lock a file without a name."""
        if self._file >= 0:
            with suppress(OSError):
                if os.path.samestat(os.fstat(self._file), self._path.stat()):
                    self._path.unlink()
            os.close(self._file)
            self._file = -1


def _create(database: sqlite3.Connection, machine: str, isa: str) -> None:
    """Tables of a new store: all or nothing, so that a run killed here leaves an empty file, which is one."""
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("BEGIN IMMEDIATE")
    with database:
        for statement in SCHEMA.strip().split(";"):
            database.execute(statement)
        meta = [("version", str(SCHEMA_VERSION)), ("machine", machine), ("isa", isa)]
        database.executemany("INSERT INTO meta VALUES (?, ?)", meta)


def _check_origin(path: Path, meta: Mapping[str, str], machine: str) -> None:
    """Raises StoreError where a store is another version's, or another machine's than the one named."""
    version, owner = meta.get("version", ""), meta.get("machine")
    if version != str(SCHEMA_VERSION):
        newer = version.isdecimal() and int(version) > SCHEMA_VERSION
        raise StoreError(
            f"the store {path} has version {version or 'none'}, this program works with {SCHEMA_VERSION}",
            "update cyclescope" if newer else "measure again into another with {store}",
        )
    if machine and owner != machine:
        raise StoreError(
            f"the store {path} belongs to another machine ({owner})",
            f"this one is {machine}; choose another store with {{store}}",
        )


def prepare(database: sqlite3.Connection, path: Path, machine: str, isa: str, readonly: bool) -> None:
    """Make an empty database a store, and refuse what is none, or another machine's. Raises StoreError."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if not tables and not readonly:
        _create(database, machine, isa)
        return
    if not tables:
        raise StoreError(f"the store {path} is empty", "run {measure} first, or name one with {store}")
    if not {"meta", "measurement"} <= tables:
        raise StoreError(f"{path} is a database, but no cyclescope store", "choose another with {store}")
    rows = database.execute("SELECT key, value FROM meta")
    meta = {key: value for key, value in rows if isinstance(value, str)}  # others are damaged
    if not readonly:
        database.execute("UPDATE meta SET value = value")  # can it be written?
        database.rollback()
    _check_origin(path, meta, machine)
