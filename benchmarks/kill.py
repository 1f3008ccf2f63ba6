"""kill -9 of the whole process group at random moments of a run, which is resumed every time.

What was in the store before a kill must be there after it, unchanged and once; the resumed result is
compared with a run that nobody disturbed.
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

from benchmarks.agreement import compare
from benchmarks.common import Check, at_least, parser, present, table
from benchmarks.processes import TIMINGS, command, environment, measured
from benchmarks.repeat import QUIET
from benchmarks.results import latencies, read, throughputs
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.store import Store

SEED = 9
KILLS = 10
SPENT = 0.6  # of an undisturbed run's time until the last kill: waiting for progress takes the rest
Rows = Mapping[tuple[str, ...], tuple[object, ...]]


class Damage(msgspec.Struct, frozen=True):
    """What one kill did: rows before and after it, lost, changed, there twice, and the file's own check."""

    before: int
    after: int
    lost: int
    changed: int
    twice: int
    integrity: str


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


def damage(before: Rows, after: Rows, twice: int, integrity: str) -> Damage:
    """What happened to the rows that were there before."""
    lost = sum(key not in after for key in before)
    changed = sum(key in after and after[key] != row for key, row in before.items())
    return Damage(len(before), len(after), lost, changed, twice, integrity)


def moments(seconds: float, count: int, seed: int) -> list[float]:
    """How long to let each of the runs go on: random points of an undisturbed run, as differences."""
    points = sorted(random.Random(seed).uniform(0.0, seconds) for _ in range(count))
    return [b - a for a, b in zip([0.0, *points], points, strict=False)]


def strike(store: Path, after: float, patterns: Sequence[str], rows_there: int) -> bool:
    """Start or resume the run and kill its whole group; False where it ended before.

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
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
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
    store = folder / "killed.sqlite"
    damages = _strikes(store, moments(SPENT * seconds, kills, seed), patterns)
    measured(store, *TIMINGS, *patterns)
    _show(damages)
    return [
        Check("kills that hit a running command", str(len(damages)), f">= {kills}", len(damages) >= kills),
        *_damage_checks(damages),
        *_equality(quiet, store),
    ]


def _strikes(store: Path, pauses: Sequence[float], patterns: Sequence[str]) -> list[Damage]:
    before: Rows = {}
    damages = []
    for number, pause in enumerate(pauses):
        # Every other kill waits for progress, the rest also hit runs that are only starting.
        if not strike(store, pause, patterns, len(before) if number % 2 == 0 else -1):
            break
        after, twice, integrity = rows(store)
        damages.append(damage(before, after, twice, integrity))
        before = after
    return damages


def _show(damages: Sequence[Damage]) -> None:
    cells = [(n, *msgspec.structs.astuple(d)) for n, d in enumerate(damages, 1)]
    print(table(("kill", "rows before", "after", "lost", "changed", "twice", "integrity"), cells))


def _damage_checks(damages: Sequence[Damage]) -> list[Check]:
    result = []
    for name in ("lost", "changed", "twice"):
        total = sum(getattr(d, name) for d in damages)
        result.append(Check(f"rows {name}", str(total), "0", total == 0))
    bad = [d.integrity for d in damages if d.integrity != "ok"]
    return [*result, Check("stores SQLite calls damaged", str(len(bad)), "0", not bad)]


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

    def work(folder: Path) -> Sequence[Check]:
        quiet = folder / "undisturbed.sqlite"
        done = measured(quiet, *TIMINGS, *chosen.patterns)
        return kill(folder, chosen.patterns, chosen.kills, chosen.seed, quiet, done.seconds)

    with tempfile.TemporaryDirectory() as folder:
        present("kill", lambda: work(Path(folder)))


if __name__ == "__main__":
    main()
