"""Tests that notice: every numeric constant of inference and analysis halved and doubled, one at a time.

A constant is a number in an assignment to a name in capitals, at the top of a module of `infer` (its `ports`
apart), `analyze`, `session`, and of what judges readings of probes (`JUDGES`). The tests are collected once,
and each file of them runs once, in a process forked from there, with a note of each use of a constant. Then
each mutant gets a fork: the constant is assigned anew, and the tests that read it run, the quickest first,
until one fails: the mutant is killed.
Survivors are tried again from a fresh start: classes, and defaults of arguments, take constants when they are
made.

    python -m benchmarks.house.mutants [PATTERN ...] [--jobs 2] [--seconds N]

A pattern is a part of `infer/timing/laws.py:_NEAR`. `mutants.tsv` beside it has what is known: mutants, and
the test that kills each, which is tried first the next time. `--again` runs the killed ones too, `--notes`
renews the notes of tests that changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.house.readers import note_uses
from benchmarks.lib.constants import ROOT, Mutant, Mutating, importers, mutants, mutate

# Fast tests by the room whose constants they may read; what takes a run of a campaign is no fast test.
FILES = {
    "infer": ("unit/infer",),
    "analyze": ("unit/analyze", "golden", "property/compiled"),
    "session": ("unit/session",),
    "host": ("unit/host",),
    "probe": ("unit/probe",),
}
OPTIONS = ("-o", "addopts=--strict-markers", "-p", "no:terminal", "-p", "no:faulthandler",
           "-p", "no:cacheprovider", "-m", "not hardware and not slow")  # fmt: skip
TABLE = ROOT / "benchmarks" / "house" / "mutants.tsv"
NOTES = ROOT / "build" / "mutants.json"
PATIENCE = 8.0  # seconds of CPU time for a file's tests: those behind are no fast ones
LONGEST = 4.0  # seconds of tests for one mutant
FEWEST = 12  # quickest tests that are tried whatever they take
HANGS = 40.0  # seconds of CPU time for one mutant
SURVIVED, UNREAD, HUNG = "survived", "no test reads it", "no answer"


class TestUses(msgspec.Struct, frozen=True):
    """Constants that a test read, and how long it took."""

    test: str
    seconds: float
    constants: tuple[str, ...]


class FileNotes(msgspec.Struct, frozen=True):
    """What the tests of a file read, and the file's digest."""

    digest: str
    tests: list[TestUses]


def parallel(
    work: Callable[[Any, Any], None], items: Iterable[Any], jobs: int, end: float,
    done: Callable[[Any, list[Any]], None],
) -> int:  # fmt: skip
    """Give each item a process, which sends what it finds; `done` gets both. How many were left."""
    context, waiting, running = get_context("fork"), list(items), {}
    while waiting or running:
        while waiting and len(running) < jobs and time.monotonic() < end:
            item, (ours, theirs) = waiting.pop(0), context.Pipe(duplex=False)
            process = context.Process(target=_forked, args=(work, item, theirs))
            process.start()
            theirs.close()
            running[ours] = (item, process, [])
        if not running:
            break
        for ours in connection.wait(list(running)):
            item, process, found = running[ours]
            try:
                found.append(ours.recv())
            except EOFError:
                del running[ours]
                process.join()
                done(item, found)
    return len(waiting)


def _forked(work: Callable[[Any, Any], None], item: object, pipe: Any) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, HANGS)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    work(item, pipe.send)


class Run:
    """A plugin that runs the collected tests in its own way."""

    def __init__(self, parsed: argparse.Namespace, used: set[str]) -> None:
        self.parsed, self.used = parsed, used
        self.end = time.monotonic() + parsed.seconds
        self.code = 2
        self._items: dict[str, pytest.Item] = {}
        self._report: Callable[[pytest.TestReport], None] = lambda report: None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """After each of setting up, the call and tearing down."""
        self._report(report)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running all of them."""
        self._items = {item.nodeid: item for item in session.items}
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        from cyclescope.isa.registry import isa_names
        from cyclescope.isa.table import load_table

        for isa in isa_names():
            load_table(isa)
        self.code = self._run()
        return True

    def _run(self) -> int:
        tests = [one for notes in self._noted().values() for one in notes.tests]
        every, found, new = list(mutants()), known_killers(), dict[str, str]()
        chosen = [m for m in every if is_wanted(m, self.parsed.patterns)]
        tried = [m for m in chosen if self.parsed.again or not is_killed(found.get(str(m), ""))]
        tried.sort(key=lambda m: str(m) in found)  # what was never run goes first
        tasks = [(m, readers(m, tests, test_in(found.get(str(m), "")))) for m in tried]

        def keep(task: tuple[Mutant, list[str]], answers: list[str]) -> None:
            answer = (answers or [HUNG])[0] if task[1] else UNREAD
            found[str(task[0])] = new[str(task[0])] = answer
            if not is_killed(answer):
                print(f"{answer}: {task[0]}", flush=True)
            keep_table(known_killers() | new, every)

        for task in tasks:
            if not task[1]:
                keep(task, [])
        deque(importers(""), 0)  # who imports what is read here, once for all processes
        left = parallel(self._kill, [t for t in tasks if t[1]], self.parsed.jobs, self.end, keep)
        killed = sum(is_killed(found.get(str(m), "")) for m in chosen)
        survived = sum(str(m) in found for m in chosen) - killed
        print(f"{len(chosen)} mutants: {killed} killed, {survived} survived; {left} of them not run now")
        return 0 if killed == len(chosen) else 1

    # --- notes -------------------------------------------------------------------------------------

    def _noted(self) -> dict[str, FileNotes]:
        """The notes of all files of tests; missing ones are made."""
        known = kept_notes()
        names = list(dict.fromkeys(test.partition("::")[0] for test in self._items))
        digests = {name: hashlib.sha1((ROOT / name).read_bytes()).hexdigest() for name in names}
        renewed = [n for n in names if self.parsed.notes and n in known and known[n].digest != digests[n]]
        missing = [n for n in names if n not in known or n in renewed]

        def keep(name: str, tests: list[TestUses]) -> None:
            known[name] = FileNotes(digests[name], tests)
            known.update(kept_notes() | {name: known[name]})
            NOTES.parent.mkdir(exist_ok=True)
            NOTES.write_bytes(msgspec.json.encode(known))

        left = parallel(self._note, missing, self.parsed.jobs, self.end, keep)
        if left:
            pytest.exit(f"{left} of {len(names)} files of tests have no notes yet: run it again", 3)
        return {name: notes for name, notes in known.items() if name in digests}

    def _note(self, file: str, send: Callable[[TestUses], None]) -> None:
        seconds = [0.0]
        self._report = lambda report: seconds.append(report.duration)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        self.used.clear()
        for item in self._in_turn([test for test in self._items if test.startswith(f"{file}::")]):
            if self.used:
                send(TestUses(item.nodeid, sum(seconds), tuple(sorted(self.used))))
            self.used.clear()
            seconds.clear()

    def _in_turn(self, tests: Sequence[str]) -> Iterator[pytest.Item]:
        """Run tests one after the other."""
        items = [self._items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item

    # --- mutants -----------------------------------------------------------------------------------

    def _kill(self, task: tuple[Mutant, list[str]], send: Callable[[str], None]) -> None:
        """Send the test that fails with the mutant."""
        mutant, tests = task
        failed: list[str] = []
        self._report = lambda report: failed.append(report.nodeid) if report.failed else None
        mutate(mutant)
        for _ in self._in_turn([test for test in tests if test in self._items]):
            if failed:
                break
        send(failed[0] if failed else from_the_start(mutant, tests))


def from_the_start(mutant: Mutant, tests: Sequence[str]) -> str:
    """The same in a process that imports the mutant."""
    pipe = os.pipe()
    program = [sys.executable, "-m", "benchmarks.house.mutants"]
    command = [*program, "--one", str(mutant), "--report", str(pipe[1])]
    if os.fork() == 0:
        os.set_inheritable(pipe[1], True)
        os.execv(sys.executable, [*command, *tests])
    os.close(pipe[1])
    with os.fdopen(pipe[0]) as said:
        return said.read() or HUNG


class _First:
    """Remembers the test that failed."""

    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """After each step of a test."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


def one_mutant(parsed: argparse.Namespace) -> int:
    """Import a mutant, run tests, and write which one fails to a file descriptor."""
    signal.setitimer(signal.ITIMER_PROF, HANGS)
    sys.meta_path.insert(0, Mutating(next(m for m in mutants() if str(m) == parsed.one)))
    first = _First()
    code = pytest.main(["-x", *OPTIONS, *parsed.patterns], plugins=[first])
    with os.fdopen(parsed.report, "w") as report:
        report.write(first.failed or (SURVIVED if code == 0 else f"pytest ends with {int(code)}"))
    return 0


# --- the table -----------------------------------------------------------------------------------------


def readers(mutant: Mutant, tests: Sequence[TestUses], first: str) -> list[str]:
    """Tests that read the constant: the one that killed it before, then the quickest."""
    chosen = sorted((t for t in tests if mutant.place.constant in t.constants), key=lambda t: t.seconds)
    found, seconds = [first] if first else [], 0.0
    for one in chosen:
        seconds += one.seconds
        if seconds < LONGEST or len(found) < FEWEST:
            found.append(one.test)
    return list(dict.fromkeys(found))


def kept_notes() -> dict[str, FileNotes]:
    """The notes of earlier runs, by the file of tests."""
    return msgspec.json.decode(NOTES.read_bytes(), type=dict[str, FileNotes]) if NOTES.exists() else {}


def known_killers() -> dict[str, str]:
    """The table of an earlier run."""
    lines = TABLE.read_text().splitlines()[1:] if TABLE.exists() else []
    return dict(line.split("\t") for line in lines)


def keep_table(found: dict[str, str], every: Sequence[Mutant]) -> None:
    """Write what is known of the mutants that there are, in their order."""
    lines = [f"{mutant}\t{found[str(mutant)]}" for mutant in every if str(mutant) in found]
    TABLE.write_text("\n".join(["mutant\tkilled by", *lines]) + "\n")


def is_wanted(mutant: Mutant, patterns: Sequence[str]) -> bool:
    """Whether a pattern is in its name; all are without patterns."""
    return not patterns or any(pattern in str(mutant) for pattern in patterns)


def is_killed(answer: str) -> bool:
    """Whether an entry of the table says so."""
    return bool(test_in(answer))  # what ends without an answer is not known to be noticed


def test_in(answer: str) -> str:
    """The test of an entry of the table, nothing where it names none."""
    return answer if Path(answer.partition("::")[0]).suffix == ".py" else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that patterns choose."""
    parsed = _options(arguments)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    os.chdir(ROOT)
    if parsed.one:
        return one_mutant(parsed)
    run = Run(parsed, note_uses())
    rooms = {m.place.module.partition("/")[0] for m in mutants() if is_wanted(m, parsed.patterns)}
    files = [f"tests/{name}" for room in sorted(rooms) for name in FILES[room]]
    files = [name for name in files if (ROOT / name).exists()]
    code = pytest.main([*OPTIONS, *files], plugins=[run])
    return run.code if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else int(code)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("patterns", nargs="*", help="parts of MODULE:NAME; all without")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing after so long")
    parser.add_argument("--again", action="store_true", help="run the killed ones again")
    parser.add_argument("--notes", action="store_true", help="make notes anew of files that changed")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--report", type=int, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
