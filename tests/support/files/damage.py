"""Stores that were stopped or damaged, and every command that reads one."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import strategies as st

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.host.identity import Hypervisor, Identity
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.measure.store import Store
from cyclescope.session.machines import load_model

IDENTITY = Identity("MadeByHand", "Simulated core", 6, 1, 1, "skylake", Hypervisor.NONE)
FORMS = (
    "IMUL (R64, R64)", "ADD_01 (R64, R64)", "MOV (R64, M64)", "MOV (M64, R64)", "VPXOR (XMM, XMM, XMM)",
    "DIV (R64)", "DIVPD (XMM, XMM)", "NOP",
)  # fmt: skip
NEVER = "PADDB (MM, MM)"  # not asked for
LOOP = "1:\n imul %rax, %rbx\n add %rbx, %rcx\n vpxor %xmm1, %xmm2, %xmm2\n dec %rdi\n jnz 1b\n"


def fill(path, table, quantities=("throughput", "latency", "ports"), forms=FORMS):
    """A store with some forms measured on a simulated Skylake."""
    request = Request(tuple(table[name] for name in forms), frozenset(quantities))
    with (
        closing(SimulatedBackend(load_model("skylake"))) as backend,
        closing(Store(path, IDENTITY.machine)) as store,
    ):
        Campaign(table, backend, store).run(request, {"machine": IDENTITY.machine})
    return path


def thin(path, others=40):
    """Leave of a store the rows of `FORMS` and a few of each quantity of the others, to be read soon."""
    numbered = "SELECT id, row_number() OVER (PARTITION BY quantity ORDER BY id) AS number FROM measurement"
    some = f"SELECT id FROM ({numbered}) WHERE number <= ?"
    named = ", ".join("?" * len(FORMS))
    unnamed = f"form NOT IN ({named}) AND variant NOT GLOB '*link'"
    change(path, (f"DELETE FROM measurement WHERE {unnamed} AND id NOT IN ({some})", *FORMS, others))
    change(path, ("DELETE FROM state WHERE id NOT IN (SELECT state FROM measurement)",))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("VACUUM")
    return path


def install(patch, folder):
    """Let the commands find the simulated Skylake; returns where its store is."""
    from cyclescope.measure.database import default_store

    def open_backend(cpu=None, link=None):
        return SimulatedBackend(load_model("skylake")), IDENTITY

    patch.setenv("XDG_DATA_HOME", str(folder))
    patch.setattr("cyclescope.infer.api.open_backend", open_backend)
    patch.setattr("cyclescope.infer.host_model.this_machine", lambda: IDENTITY)
    patch.setattr("cyclescope.session.machines.this_host", lambda: IDENTITY)
    path = default_store(IDENTITY.machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def readers(path, folder, whole=True):
    """Command lines of everything that reads a store; all forms in one go only where `whole`."""
    loop = folder / "loop.s"
    loop.write_text(LOOP)
    merged = folder / "merged.sqlite"
    merged.unlink(missing_ok=True)
    return [
        ("show", *FORMS[:4], NEVER, "--store", path),
        ("show", "--json", *(() if whole else FORMS), "--store", path),
        ("show", FORMS[0], FORMS[5], "--evidence", "--store", path),
        ("store", "info", "--store", path),
        ("store", "info", "--json", "--store", path),
        ("store", "merge", path, "-o", merged),
        ("machines", "list"),
        ("machines", "build", "--store", path),
        ("machines", "show", "native", FORMS[0]),
        ("machines", "check", "native"),
        ("analyze", loop),
        ("analyze", "--arch", "native", "--ignore-unknown", loop),
        ("bench", "--rerun", "1", "--store", path),
    ]  # fmt: skip


def change(path, *statements):
    """Run SQL on a store."""
    with closing(sqlite3.connect(path)) as db, db:
        for statement, *values in statements:
            db.execute(statement, values)


def rows(path):
    """Number of the last measurement."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT max(id) FROM measurement").fetchone()[0]


# --- damage ----------------------------------------------------------------------------------------

VALUES = (
    None, "", "abc", "9e999", 9e999, -9e999, -1.0, 0, 0.0, 1e300, -1, 1 << 62, b"\xff\xfe", "x", "x99999999",
    "x-1", "1 2 abc", "nan inf", "{", "[1]", "9" * 400, "[" * 3000, "\x1b[31m", b"\x78\x9c" + bytes(40),
)  # fmt: skip
COLUMNS = {
    "measurement": (
        "form", "quantity", "source", "target", "variant", "cycles", "spread", "verdict", "count", "links",
        "accepted", "rejected", "rounds", "exceptions", "error", "counters", "session", "state", "flags",
        "instructions", "kernel",
    ),
    "session": ("started", "conditions"),
    "legality": ("form", "outcome"),
    "link": ("key", "value"),
    "state": ("packed",),
    "meta": ("key", "value"),
}  # fmt: skip
UTF8 = "CAST(x'ff41fe' AS TEXT)"  # text by its type, and none by its bytes


def unbound(path):
    """Take the constraints off, as a damaged file has none: NULL goes everywhere."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
    return path


def spoil(path, table, column, value, share):
    """Put a value, or text that is not UTF-8 where it is `UTF8`, into a column of some of the rows."""
    what, values = (UTF8, ()) if value == UTF8 else ("?", (value,))
    key = {"legality": "form", "link": "key", "meta": "key"}.get(table, "id")
    count = f"SELECT 1 + CAST(count(*) * {share:f} AS INTEGER) FROM {table}"
    some = f"{key} IN (SELECT {key} FROM {table} ORDER BY {key} LIMIT ({count}))"
    change(path, (f"UPDATE OR REPLACE {table} SET {column} = {what} WHERE {some}", *values))


def overwrite(path, where, new):
    """Put other bytes into the file, at a share of its length."""
    with path.open("r+b") as file:
        file.seek(int(where * path.stat().st_size))
        file.write(new)


def cut(path, share):
    """Leave only the beginning of the file."""
    with path.open("r+b") as file:
        file.truncate(int(share * path.stat().st_size))


DAMAGE = st.one_of(
    st.tuples(
        st.sampled_from([(table, column) for table, names in COLUMNS.items() for column in names]),
        st.sampled_from((*VALUES, UTF8)),
        st.sampled_from((0.0, 0.02, 0.5, 1.0)),
    ).map(lambda d: lambda path: spoil(path, *d[0], d[1], d[2])),
    st.tuples(st.integers(2, 9), st.integers(0, 8)).map(
        lambda d: lambda path: change(path, (f"DELETE FROM measurement WHERE id % {d[0]} = {d[1]}",))
    ),
    st.sampled_from(
        ["DELETE FROM measurement WHERE quantity = 'latency' AND variant NOT GLOB '*link'",
         "DELETE FROM measurement WHERE variant = 'slow'", "DELETE FROM measurement WHERE variant = 'fast'",
         "DELETE FROM measurement WHERE quantity = 'throughput'",
         "DELETE FROM measurement WHERE form GLOB 'NOP*'", "DELETE FROM session", "DELETE FROM legality",
         "DELETE FROM state", "DELETE FROM meta", "DELETE FROM link", "DROP TABLE state", "DROP TABLE link",
         "DROP TABLE legality", "DROP TABLE session", "DROP TABLE measurement", "DROP TABLE meta",
         *(f"DELETE FROM measurement WHERE quantity = '{q}'" for q in ("alone", "slots", "pairs", "ports")),
         "UPDATE meta SET value = '2' WHERE key = 'version'",
         "UPDATE meta SET value = 'z80' WHERE key = 'isa'",
         "UPDATE measurement SET form = 'AAA ' || form WHERE id % 3 = 0",
         "UPDATE measurement SET source = 'AAA ' || source WHERE id % 3 = 0",
         "UPDATE measurement SET verdict = 'failed', error = 'SIGFPE' WHERE id % 3 = 0",
         "UPDATE measurement SET cycles = 0, verdict = 'noisy' WHERE id % 3 = 0",
         "ALTER TABLE measurement DROP COLUMN counters", "ALTER TABLE measurement RENAME COLUMN links TO l"]
    ).map(lambda statement: lambda path: change(path, (statement,))),
)  # fmt: skip
BYTES = st.one_of(
    st.tuples(
        st.floats(0, 1), st.binary(min_size=1, max_size=8) | st.sampled_from([b"\xff" * 16, bytes(4096)])
    ).map(lambda d: lambda path: overwrite(path, *d)),
    st.floats(0, 1).map(lambda share: lambda path: cut(path, share)),
)
