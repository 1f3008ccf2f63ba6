"""Stopping a full run at random moments of its whole length, by SIGINT, SIGTERM or kill -9 of its group.

One store: its run is stopped at every moment and resumed. A moment is a random point in the time of a run
that nobody disturbs, and is met again by what that had written by then, so that every stage is hit however
long the runs take together. After every signal each command that reads a store has to read it, and what was
in the store before must be there, unchanged and once. At last both runs' results are compared.

With --simulated the machine is a simulated one, whose results have to be the very same. With --quiet the
run that nobody disturbs is one that was made before, and the moments are spread over the rows that it wrote.
With --folder a stopped benchmark goes on after the last signal that it noted there.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, parser, present, table
from benchmarks.lib.equality import equality
from benchmarks.lib.processes import command, environment, run
from cyclescope.infer.api import QUANTITIES
from cyclescope.infer.host_model import this_machine
from cyclescope.isa.table import load_table
from cyclescope.measure.database import file_name
from cyclescope.measure.plan import Planner
from cyclescope.measure.store import Store

SEED = 9
KILLS = 30
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LOOK = 0.1  # seconds between looks at how far a run is
LOOP = "1:\n imul %rax, %rbx\n add %rbx, %rcx\n vpxor %xmm1, %xmm2, %xmm2\n dec %rdi\n jnz 1b\n"
NOTHING = "has no value of any form"  # what a run leaves that was only starting
Rows = Mapping[tuple[str, ...], int]
Course = Sequence[tuple[float, int]]


class Moment(msgspec.Struct, frozen=True):
    """A moment of a run: so many seconds after measurement `number` was written (0: after it started)."""

    number: int
    after: float


class Damage(msgspec.Struct, frozen=True):
    """What one signal did: the stage that the run told of last, after how many seconds, rows before and after
    it, lost, changed, there twice, the file's own check, and which commands do not read the store."""

    signal: str
    stage: str
    seconds: float
    before: int
    after: int
    lost: int
    changed: int
    twice: int
    integrity: str
    unread: str


# --- what is in a store ------------------------------------------------------------------------------


def rows(store: Path) -> tuple[Rows, int, str]:
    """What a measurement is, as a hash, by its key; how many keys are there twice; SQLite's own verdict."""
    if not store.is_file() or not last(store):
        return {}, 0, "ok"
    columns = "form, quantity, source, target, variant, cycles, spread, verdict, rounds, kernel"
    with closing(_open(store)) as db:
        by_key: dict[tuple[str, ...], int] = {}
        found = 0
        for found, row in enumerate(db.execute(f"SELECT {columns} FROM measurement"), 1):  # noqa: B007
            by_key[row[:5]] = hash(row[5:])
        integrity = db.execute("PRAGMA integrity_check").fetchone()[0]
    return by_key, found - len(by_key), str(integrity)


def last(store: Path) -> int:
    """Number of the last measurement that a run has written; 0 before the first."""
    if not store.is_file():
        return 0
    try:
        with closing(_open(store)) as db:
            return int(db.execute("SELECT max(id) FROM measurement").fetchone()[0] or 0)
    except sqlite3.Error:  # still without tables
        return 0


def _open(store: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{store}?mode=ro", uri=True)


def damage(
    what: tuple[str, str, float], before: Rows, after: Rows, twice: int, integrity: str, unread: str
) -> Damage:
    """What a signal (its name, the stage, seconds) did to the rows that were there before."""
    lost = sum(key not in after for key in before)
    changed = sum(key in after and after[key] != row for key, row in before.items())
    return Damage(*what, len(before), len(after), lost, changed, twice, integrity, unread)


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
        if done.code and not (done.code == 1 and NOTHING in done.err.rstrip().rpartition("\n")[2]):
            failed.append(" ".join(map(str, arguments[:2])) + f": {done.err.strip()[-200:]}")
    return "; ".join(failed)


# --- moments -----------------------------------------------------------------------------------------


@contextmanager
def watched(store: Path) -> Iterator[list[tuple[float, int]]]:
    """When which measurement was the last one that a run had written."""
    course = [(0.0, 0)]
    start = time.monotonic()
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK):
            number = last(store)
            if number > course[-1][1]:
                course.append((time.monotonic() - start, number))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield course
    finally:
        over.set()
        watcher.join()


def moments(course: Course, seconds: float, count: int, seed: int) -> list[Moment]:
    """Random points in the time of a run, in their order, by what it had written at them."""
    draw = random.Random(seed)
    found = []
    for point in sorted(draw.uniform(0.0, seconds) for _ in range(count)):
        when, number = max(step for step in course if step[0] <= point)
        found.append(Moment(number, point - when))
    return found


@contextmanager
def turn(lock: Path | None) -> Iterator[None]:
    """Nobody else who asks for the same lock measures meanwhile."""
    if lock is None:
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- stopping ----------------------------------------------------------------------------------------


def arguments(patterns: Sequence[str]) -> tuple[str, ...]:
    """Everything of some forms, or of all."""
    return ("--what", ",".join(QUANTITIES), *patterns)


class Work(msgspec.Struct, frozen=True):
    """What is measured: some forms, or all without patterns, of a simulated machine or of this host, by
    those who hold a lock."""

    patterns: Sequence[str] = ()
    simulated: str = ""
    lock: Path | None = None

    def command(self, store: Path) -> list[str]:
        """The command line."""
        line = command("measure", "--store", store, *arguments(self.patterns))
        if self.simulated:
            return [line[0], "-m", "benchmarks.lib.simulated_measure", self.simulated, *line[3:]]
        return line

    def finish(self, store: Path) -> float:
        """Measure to the end; seconds that it took."""
        start = time.monotonic()
        subprocess.run(self.command(store), check=True, env=environment(), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)  # fmt: skip
        return time.monotonic() - start


def strike(store: Path, moment: Moment, work: Work, number: int) -> float | None:
    """Start or resume the run and stop it at a moment by a signal to its whole group.

    Seconds that it ran, None where it came to its end before.
    """
    start = time.monotonic()
    with told(store).open("w") as stream:
        process = subprocess.Popen(
            work.command(store), start_new_session=True, env=environment(), stdout=subprocess.DEVNULL,
            stderr=stream,
        )  # fmt: skip
    while last(store) < moment.number and process.poll() is None:
        time.sleep(LOOK / 2)
    try:
        process.wait(moment.after)
        return None
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
        process.wait(60)
        return time.monotonic() - start


def told(store: Path) -> Path:
    """Where the run that is to be stopped tells its progress."""
    return store.parent / "progress.txt"


def stage(store: Path) -> str:
    """The stage that it told of last: up to some seconds before it was killed."""
    lines = re.findall(r"(?m)^(.+): \d+ of \d+\b", told(store).read_text())
    return lines[-1] if lines else "starting"


class Plan(msgspec.Struct):
    """What is kept beside the stores: the undisturbed run, the moments, and what the signals so far did."""

    quiet: str
    seconds: float
    moments: list[Moment]
    damages: list[Damage] = []


def plan_of(folder: Path, work: Work, quiet: Path | None, kills: int, seed: int) -> Plan:
    """The plan that a folder has, or a new one."""
    kept = folder / "plan.json"
    if kept.is_file():
        return msgspec.json.decode(kept.read_bytes(), type=Plan)
    if quiet is not None:
        return Plan(str(quiet), 0.0, spread(last(quiet), kills, seed))
    quiet = folder / "undisturbed.sqlite"
    with turn(work.lock), watched(quiet) as course:
        seconds = work.finish(quiet)
    print(f"seed {seed}; the undisturbed run took {seconds:.0f} s and wrote {last(quiet)} rows", flush=True)
    return Plan(str(quiet), seconds, moments(course, seconds, kills, seed))


def spread(rows: int, count: int, seed: int) -> list[Moment]:
    """Random numbers of rows, in their order, and up to two seconds after each was written."""
    draw = random.Random(seed)
    return [Moment(number, draw.uniform(0.0, 2.0)) for number in sorted(draw.choices(range(rows), k=count))]


def kill(
    folder: Path, work: Work | None = None, kills: int = KILLS, seed: int = SEED, quiet: Path | None = None
) -> Sequence[Check]:
    """A run that is stopped and resumed again and again, against one that nobody stops."""
    work = work or Work()
    plan = plan_of(folder, work, quiet, kills, seed)
    store = folder / "cyclescope" / file_name(this_machine().machine)
    store.parent.mkdir(parents=True, exist_ok=True)
    _strikes(folder, store, plan, work, random.Random(seed))
    with turn(work.lock):
        rest = work.finish(store)
    spent = sum(found.seconds for found in plan.damages) + rest
    undisturbed = Path(plan.quiet)
    return [*_hits(plan.damages, kills), *_work(plan.seconds, spent), *_damage_checks(plan.damages),
            *planned(undisturbed, store), *equality(undisturbed, store)]  # fmt: skip


def _strikes(folder: Path, store: Path, plan: Plan, work: Work, draw: random.Random) -> None:
    before = rows(store)[0]
    signals = [draw.choice(SIGNALS) for _ in plan.moments]
    for number in range(len(plan.damages), len(plan.moments)):
        point, chosen = plan.moments[number], signals[number]
        seconds = hit(store, point, work, chosen)
        failed = unread(store) if store.is_file() else ""
        after, twice, integrity = rows(store)
        did = damage((chosen.name, stage(store), seconds), before, after, twice, integrity, failed)
        plan.damages.append(did)
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
        _show(number + 1, did)
        before = after


def hit(store: Path, point: Moment, work: Work, chosen: int) -> float:
    """Seconds until a run was stopped at a moment, or earlier where it has less left to do than that."""
    with turn(work.lock):
        seconds = strike(store, point, work, chosen)
    return hit(store, Moment(0, point.after / 2), work, chosen) if seconds is None else seconds


def _show(number: int, found: Damage) -> None:
    names = found.__struct_fields__
    told = ", ".join(f"{n} {_cell(v)}" for n, v in zip(names, msgspec.structs.astuple(found), strict=True))
    print(f"{number}: {told}", flush=True)


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


# --- checks ------------------------------------------------------------------------------------------


def _hits(damages: Sequence[Damage], kills: int) -> Iterator[Check]:
    print("\n" + table(("stage told last", "signals"), Counter(found.stage for found in damages).items()))
    enough = len(damages) >= kills
    yield Check("signals that hit a running command", str(len(damages)), f">= {kills}", enough)


def _work(seconds: float, spent: float) -> Iterator[Check]:
    told = f", undisturbed {seconds:.0f}" if seconds else ""
    yield Check("seconds of all resumed runs", f"{spent:.0f}{told}")


def _damage_checks(damages: Sequence[Damage]) -> Iterator[Check]:
    for name in ("lost", "changed", "twice"):
        total = sum(getattr(d, name) for d in damages)
        yield Check(f"rows {name}", str(total), "0", total == 0)
    bad = [d.integrity for d in damages if d.integrity != "ok"]
    failed = [d.unread for d in damages if d.unread]
    yield Check("stores SQLite calls damaged", str(len(bad)), "0", not bad)
    yield Check("stores that a command does not read", str(len(failed)), "0", not failed)


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


def planned(quiet: Path, store: Path) -> Iterator[Check]:
    """Whether every planned kernel was measured in both."""
    different = rows(quiet)[0].keys() ^ rows(store)[0].keys()
    missing = different & first_look(quiet, {key[0] for key in different})
    yield Check("kernels measured in one run only", str(len(missing)), "0", not missing)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("patterns", nargs="*", help="forms to measure; all without one")
    options.add_argument("--kills", type=int, default=KILLS)
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument(
        "--simulated", default="", metavar="MACHINE", help="a machine model in place of this CPU"
    )
    options.add_argument("--lock", type=Path, help="a file that others lock who measure on this machine")
    options.add_argument("--folder", type=Path, help="where the stores are left; else they are removed")
    options.add_argument("--quiet", type=Path, metavar="STORE", help="of a run that nobody disturbed")
    chosen = options.parse_args()
    for number in SIGNALS[:2]:  # a job in the background ignores some, and so would the runs
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)

    def work(folder: Path) -> Sequence[Check]:
        what = Work(tuple(chosen.patterns), chosen.simulated, chosen.lock)
        return kill(folder, what, chosen.kills, chosen.seed, chosen.quiet)

    with tempfile.TemporaryDirectory() as folder:
        present("kill", lambda: work(chosen.folder or Path(folder)))


if __name__ == "__main__":
    main()
