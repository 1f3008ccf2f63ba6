"""How large pieces of a batch are, and how many are handed out."""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future
from types import SimpleNamespace

import pytest

from cyclescope.errors import CyclescopeError
from cyclescope.session.batch import chunk, file
from cyclescope.session.batch.blocks import pieces
from cyclescope.session.batch.file import predict_file

MACHINE = "skylake"


class Handed(Executor):
    """Answers nothing of tasks; remembers how many blocks each had, and how many waited at most."""

    def __init__(self):
        self.sizes, self.asked, self.most = [], 0, 0

    def submit(self, fn, /, task):
        outer, self.sizes = self, [*self.sizes, len(task.lines)]
        self.most = max(self.most, len(self.sizes) - self.asked)

        class Asked(Future):
            def result(self, timeout=None):
                outer.asked += 1
                return ""

        return Asked()


@pytest.fixture
def blocks(tmp_path):
    path = tmp_path / "blocks.txt"
    path.write_text("90\n" * 12_001)
    return path


def test_a_task_has_five_hundred_blocks(blocks, tmp_path):
    handed = Handed()
    predict_file(blocks, tmp_path / "out.csv", MACHINE, executor=handed)
    assert handed.sizes == [*[500] * 24, 1]
    assert handed.most == 16  # nobody counts the workers of such an executor


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_worker_has_three_tasks_at_hand(blocks, tmp_path, monkeypatch, jobs):
    handed = Handed()
    monkeypatch.setattr(file, "ProcessPoolExecutor", lambda *_: handed)
    predict_file(blocks, tmp_path / "out.csv", MACHINE, jobs=jobs)
    assert (len(handed.sizes), handed.most) == (25, 3 * jobs)


def killed(task):
    os._exit(1)


def test_a_killed_worker_is_said_with_how_to_go_on(blocks, tmp_path, monkeypatch):
    monkeypatch.setattr(file, "predicted_chunk", killed)
    with pytest.raises(CyclescopeError, match="killed behind 0 blocks: the same command goes on from there"):
        predict_file(blocks, tmp_path / "out.csv", MACHINE, jobs=1)
    monkeypatch.undo()
    assert predict_file(blocks, tmp_path / "out.csv", MACHINE, jobs=1).predicted == 12_001


def test_a_worker_looks_each_second_whether_somebody_wants_its_answers(monkeypatch):
    slept = []

    def gone(code):
        raise SystemExit(code)

    there = SimpleNamespace(getppid=lambda: 7 if sum(slept) < 59.5 else 1, _exit=gone)
    monkeypatch.setattr(chunk, "os", there)
    monkeypatch.setattr(chunk, "time", SimpleNamespace(sleep=slept.append))
    with pytest.raises(SystemExit):
        chunk._end_with(7)
    assert 45 <= len(slept) <= 90 and sum(slept) < 61


def test_files_of_many_pieces_are_read_to_their_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(content := b"0123456789\n" * 30_000)
    with path.open("rb") as opened:
        found = list(pieces(opened))
    assert len(found) > 1 and b"".join(found) == content
