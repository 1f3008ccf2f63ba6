"""Parts of long work that copies of this process do."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from cyclescope.infer import copies, readout
from cyclescope.infer.copies import by_copies, possible_copies
from cyclescope.infer.readout import Readout
from cyclescope.measure.store import Store
from tests.support.files.damage import change

SECONDS = 20  # until a copy that nobody listens to has to be gone


def test_parts_come_from_copies_in_their_order():
    with by_copies(lambda part: (part, os.getpid()), range(7), 2) as made:
        found = [made(part) for part in range(7)]
    assert [part for part, _ in found] == list(range(7))
    processes = [process for _, process in found]
    assert len({*processes}) == 2 and os.getpid() not in processes
    assert processes[::2] == [processes[0]] * 4


def test_parts_may_be_longer_than_a_pipe_holds_and_are_made_before_they_are_asked_for(tmp_path):
    def work(part):
        (tmp_path / str(part)).touch()
        return bytes([part]) * (1 << 20)

    with by_copies(work, range(4), 1) as made:
        until = time.monotonic() + SECONDS
        while not (tmp_path / "3").exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert (tmp_path / "3").exists()
        assert [made(part) for part in range(4)] == [bytes([part]) * (1 << 20) for part in range(4)]


def test_what_a_copy_does_not_make_is_none(capfd):
    def work(part):
        if part == 2:
            raise ValueError("no such part")
        return part

    with by_copies(work, range(6), 2) as made:
        assert [made(part) for part in range(6)] == [0, 1, None, 3, None, 5]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("problem", [OSError("no processes left"), None])
def test_without_copies_nothing_is_made_elsewhere(monkeypatch, problem):
    def fork():
        raise problem

    if problem:
        monkeypatch.setattr(copies.os, "fork", fork)
    with by_copies(str, range(3), 1 if problem else 0) as made:
        assert [made(part) for part in range(3)] == [None] * 3


def test_copies_end_with_the_work_even_if_it_is_not_over():
    with by_copies(lambda part: time.sleep(part * 3600) or os.getpid(), range(2), 1) as made:
        process = made(0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_copy_ends_when_its_process_was_killed(tmp_path):
    """It has no part of the locks of that one either."""
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)

    def work(part):
        if part == 0:
            (tmp_path / "copy").write_text(str(os.getpid()))
        time.sleep(0.01)
        place = Path(f"/proc/self/fd/{lock}")
        return place.exists() and place.readlink().name

    killed = os.fork()
    if killed == 0:
        with by_copies(work, range(100_000), 1) as made:
            (tmp_path / "seen").write_text(str(made(0)))
            os.kill(os.getpid(), 9)
    os.waitpid(killed, 0)
    os.close(lock)
    assert (tmp_path / "seen").read_text() != "lock"
    copy = int((tmp_path / "copy").read_text())
    until = time.monotonic() + SECONDS
    while _runs(copy) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _runs(copy)


def _runs(process):
    """Whether a process does anything: nobody may ask for the end of one whose parent is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_there_are_copies_where_cpus_are_left_and_no_other_threads(monkeypatch):
    monkeypatch.setattr(copies.threading, "active_count", lambda: 1)
    for cpus, count in ((1, 0), (2, 1), (3, 2), (4, 3), (5, 3), (64, 3)):
        monkeypatch.setattr(copies.os, "sched_getaffinity", lambda process, cpus=cpus: set(range(cpus)))
        assert possible_copies() == count
    monkeypatch.undo()
    monkeypatch.setattr(copies.os, "sched_getaffinity", lambda process: {0, 1})
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert possible_copies() == 0
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("damaged", [pytest.param(False, marks=pytest.mark.slow), True])
def test_copies_read_a_store_as_its_process_does(path, table, monkeypatch, damaged):
    monkeypatch.setattr(readout, "PART", 5)
    if damaged:
        change(path, ("UPDATE measurement SET cycles = 'x' WHERE id % 7 = 3",))
    found = {}
    for count in (0, 2):
        with closing(Store(path, readonly=True)) as store:
            every = Readout(store, table)
            found[count] = list(every.each(copies=count)), sorted(map(str, store.unreadable))
    assert found[0] == found[2]
    assert bool(found[2][1]) is damaged


def test_copies_are_used_only_where_all_of_a_store_is_in_its_file(complete, table, monkeypatch):
    monkeypatch.setattr(readout, "PART", 5)
    asked = []
    monkeypatch.setattr(readout, "by_copies", lambda work, parts, count: asked.append(count) or
                        by_copies(work, parts, 0))  # fmt: skip
    for still in (True, False):
        monkeypatch.setattr(readout, "is_still", lambda path, still=still: still)
        with closing(Store(complete, readonly=True)) as store:
            list(Readout(store, table).each(copies=2))
    assert asked == [2, 0]
