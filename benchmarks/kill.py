"""Stopping a run at random moments, by SIGINT, SIGTERM or kill -9 of its whole process group.

It is resumed every time. What was in the store before must be there after it, unchanged and once; every
command that reads a store must read it; the resumed result is compared with a run that nobody disturbed.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.lib.agreement import compare
from benchmarks.lib.common import Check, at_least, parser, present, table
from benchmarks.lib.processes import TIMINGS, command, environment, measured, run
from benchmarks.lib.results import latencies, read, throughputs
from benchmarks.repeat import QUIET
from cyclescope.infer.native import this_machine
from cyclescope.isa.table import load_table
from cyclescope.measure.database import file_name
from cyclescope.measure.plan import Planner
from cyclescope.measure.store import Store

SEED = 9
KILLS = 30
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LOOP = "1:\n imul %rax, %rbx\n add %rbx, %rcx\n vpxor %xmm1, %xmm2, %xmm2\n dec %rdi\n jnz 1b\n"
NOTHING = "has no throughput of any form"  # what a run leaves that was only starting
SPENT = 0.6  # of an undisturbed run's time until the last kill: waiting for progress takes the rest
Rows = Mapping[tuple[str, ...], tuple[object, ...]]


class Damage(msgspec.Struct, frozen=True):
    """What one signal did: rows before and after it, lost, changed, there twice, the file's own check, and
    which of the commands that read the store failed."""

    signal: str
    before: int
    after: int
    lost: int
    changed: int
    twice: int
    integrity: str
    unread: str


def rows(store: Path) -> tuple[Rows, int, str]:
    """Measurements by key, how many keys are there more than once, and SQLite's own verdict."""
    if not store.is_file() or not count(store):
        return {}, 0, "ok"
    columns = "form, quantity, source, target, variant, cycles, spread, verdict, rounds, kernel"
    with closing(sqlite3.connect(store)) as db:
        found = db.execute(f"SELECT {columns} FROM measurement").fetchall()
        integrity = db.execute("PRAGMA integrity_check").fetchone()[0]
    by_key = {tuple(row[:5]): tuple(row[5:]) for row in found}
    return by_key, len(found) - len(by_key), str(integrity)


def damage(name: str, before: Rows, after: Rows, twice: int, integrity: str, unread: str) -> Damage:
    """What happened to the rows that were there before."""
    lost = sum(key not in after for key in before)
    changed = sum(key in after and after[key] != row for key, row in before.items())
    return Damage(name, len(before), len(after), lost, changed, twice, integrity, unread)


def unread(store: Path) -> str:
    """The commands that do not read a store, which is where this host's is kept; "" if all do."""
    loop = store.parent / "loop.s"
    loop.write_text(LOOP)
    readers = (
        ("show", "--json", "*", "--store", store), ("store", "info", "--store", store),
        ("machines", "build", "--store", store), ("machines", "list"), ("analyze", loop),
    )  # fmt: skip
    failed = []
    for arguments in readers:
        done = run(*arguments, XDG_DATA_HOME=str(store.parents[1]))
        if done.code and not (done.code == 1 and NOTHING in done.err and done.err.count("\n") == 1):
            failed.append(" ".join(map(str, arguments[:2])) + f": {done.err.strip()[-200:]}")
    return "; ".join(failed)


def moments(seconds: float, count: int, seed: int) -> list[float]:
    """How long to let each of the runs go on: random points of an undisturbed run, as differences."""
    points = sorted(random.Random(seed).uniform(0.0, seconds) for _ in range(count))
    return [b - a for a, b in zip([0.0, *points], points, strict=False)]


def strike(store: Path, after: float, patterns: Sequence[str], rows_there: int, number: int) -> bool:
    """Start or resume the run and stop it by a signal to its whole group; False where it ended before.

    The moment counts from when the store has more than `rows_there` rows, at once where that is
    negative.
    """
    process = subprocess.Popen(
        command("measure", "--store", store, *TIMINGS, *patterns), start_new_session=True, env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while rows_there >= 0 and count(store) <= rows_there and process.poll() is None:
        time.sleep(0.05)
    try:
        process.wait(after)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
        process.wait(60)
        return True


def count(store: Path) -> int:
    """Measurements in a store that another process writes; 0 before there is one."""
    if not store.is_file():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM measurement").fetchone()[0])
    except sqlite3.Error:  # still without tables
        return 0


def kill(
    folder: Path, patterns: Sequence[str], kills: int, seed: int, quiet: Path, seconds: float
) -> Sequence[Check]:
    """A run that is killed and resumed, against an undisturbed one that took so many seconds."""
    store = folder / "cyclescope" / file_name(this_machine().machine)
    store.parent.mkdir()
    damages = _strikes(store, moments(SPENT * seconds, kills, seed), patterns, random.Random(seed))
    measured(store, *TIMINGS, *patterns)
    _show(damages)
    return [
        Check("signals that hit a running command", str(len(damages)), f">= {kills}", len(damages) >= kills),
        *_damage_checks(damages),
        *_equality(quiet, store),
    ]


def _strikes(
    store: Path, pauses: Sequence[float], patterns: Sequence[str], draw: random.Random
) -> list[Damage]:
    before: Rows = {}
    damages = []
    for number, pause in enumerate(pauses):
        # Every other one waits for progress, the rest also hit runs that are only starting.
        chosen = draw.choice(SIGNALS)
        if not strike(store, pause, patterns, len(before) if number % 2 == 0 else -1, chosen):
            break
        after, twice, integrity = rows(store)
        failed = unread(store) if store.is_file() else ""
        damages.append(damage(chosen.name, before, after, twice, integrity, failed))
        before = after
    return damages


def _show(damages: Sequence[Damage]) -> None:
    cells = [(n, *msgspec.structs.astuple(d)) for n, d in enumerate(damages, 1)]
    head = ("number", "signal", "before", "after", "lost", "changed", "twice", "integrity", "not read by")
    print(table(head, cells))


def _damage_checks(damages: Sequence[Damage]) -> list[Check]:
    result = []
    for name in ("lost", "changed", "twice"):
        total = sum(getattr(d, name) for d in damages)
        result.append(Check(f"rows {name}", str(total), "0", total == 0))
    bad = [d.integrity for d in damages if d.integrity != "ok"]
    failed = [d.unread for d in damages if d.unread]
    return [
        *result,
        Check("stores SQLite calls damaged", str(len(bad)), "0", not bad),
        Check("stores that a command does not read", str(len(failed)), "0", not failed),
    ]


def first_look(store: Path, names: AbstractSet[str]) -> set[tuple[str, ...]]:
    """Keys of the experiments planned for some forms; a second look is asked for by the values."""
    opened = Store(store, readonly=True)
    try:
        legality = opened.legality()
    finally:
        opened.close()
    everything = load_table("x86-64")
    planner = Planner(everything, lambda form: legality.get(form.id) == "ok")
    chosen = [form for name in sorted(names) if (form := everything.get(name)) is not None]
    return {e.key for form in chosen for e in (*planner.throughput(form), *planner.latency(form))}


def _equality(quiet: Path, store: Path) -> list[Check]:
    """Every planned kernel measured in both, values as equal as two undisturbed runs are."""
    different = rows(quiet)[0].keys() ^ rows(store)[0].keys()
    planned = different & first_look(quiet, {key[0] for key in different})
    tolerance, least = QUIET
    first, second = read(quiet), read(store)
    found = compare(throughputs(first), throughputs(second), tolerance)
    both = found.joined(compare(latencies(first), latencies(second), tolerance))
    return [
        Check("kernels measured in one run only", str(len(planned)), "0", not planned),
        at_least(
            f"values equal to the undisturbed run's within {tolerance:.0%}", both.same, both.total, least
        ),
    ]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("patterns", nargs="*", help="forms to measure; all without one")
    options.add_argument("--kills", type=int, default=KILLS)
    options.add_argument("--seed", type=int, default=SEED)
    chosen = options.parse_args()
    for number in SIGNALS[:2]:  # a job in the background ignores some, and so would the runs
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)

    def work(folder: Path) -> Sequence[Check]:
        quiet = folder / "undisturbed.sqlite"
        done = measured(quiet, *TIMINGS, *chosen.patterns)
        return kill(folder, chosen.patterns, chosen.kills, chosen.seed, quiet, done.seconds)

    with tempfile.TemporaryDirectory() as folder:
        present("kill", lambda: work(Path(folder)))


if __name__ == "__main__":
    main()
