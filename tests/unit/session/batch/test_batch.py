"""Files of predictions: in order, with reasons, by any executor, and from where they were stopped."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.errors import UsageError
from cyclescope.session.batch import chunk
from cyclescope.session.batch import file as batch
from cyclescope.session.batch.blocks import block_lines
from cyclescope.session.batch.file import predict_file
from cyclescope.session.blocks import decoded
from cyclescope.session.machines import load_model

CODES = ("4801d8", "480fafc3", "488b07", "4889d84801c8", "f30f10c1")
MACHINE = "skylake"


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "blocks.txt"
    path.write_text("".join(f"{CODES[n % len(CODES)]}b8{n:08x}\n" for n in range(60)))
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(batch, "_CHUNK", 7)


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


class Inline(Executor):
    """Runs tasks when they are handed over; `most` is how many were not asked for at once."""

    def __init__(self, stop_after=10**9):
        self.handed = self.taken = self.most = 0
        self._stop_after = stop_after

    def submit(self, fn, /, *args, **kwargs):
        self.handed += 1
        if self.handed > self._stop_after:
            raise KeyboardInterrupt
        outer, future = self, Future()

        class Asked(Future):
            def result(self, timeout=None):
                outer.taken += 1
                return future.result(timeout)

        future.set_result(fn(*args, **kwargs))
        self.most = max(self.most, self.handed - self.taken)
        return Asked()


def test_rows_are_those_of_the_predictor(lines, tmp_path):
    out = tmp_path / "out.csv"
    assert predict_file(lines, out, MACHINE, executor=Inline()) == (60, 0)
    predictor = Predictor(load_model(MACHINE))
    for row, text in zip(rows(out), lines.read_text().splitlines(), strict=True):
        found = predictor.estimate(decoded(bytes.fromhex(text)))
        assert row["hex"] == text and float(row["cycles"]) == pytest.approx(found.cycles, abs=1e-4)
        assert [float(row[name]) for name in ("low", "high", "lower")] == pytest.approx(
            [*found.interval, found.lower], abs=1e-4
        )
        assert (row["bound"], row["reason"]) == (found.bottleneck, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blocks.txt", "out.csv"]


@pytest.mark.parametrize("predictor", ["analytic", "simulated"])
def test_all_executors_write_the_same(lines, tmp_path, predictor):
    with ThreadPoolExecutor(2) as threads:
        predict_file(lines, tmp_path / "threads.csv", MACHINE, predictor, threads)
    predict_file(lines, tmp_path / "inline.csv", MACHINE, predictor, Inline())
    predict_file(lines, tmp_path / "own.csv", MACHINE, predictor, jobs=2)
    first, *others = ((tmp_path / f"{name}.csv").read_text() for name in ("inline", "threads", "own"))
    assert others == [first] * 2


def test_a_dask_client_is_an_executor(lines, tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        predict_file(lines, tmp_path / "dask.csv", MACHINE, executor=client.get_executor())
    predict_file(lines, tmp_path / "inline.csv", MACHINE, executor=Inline())
    assert (tmp_path / "dask.csv").read_text() == (tmp_path / "inline.csv").read_text()


def test_what_is_no_block_has_its_reason(tmp_path):
    path, out = tmp_path / "a.txt", tmp_path / "out.csv"
    path.write_text("# a comment\n\n4801d8\nnonsense here\n0fff\nadd rax, rbx; imul rcx, rdx\nzz\n")
    predict_file(path, out, MACHINE, executor=Inline())
    found = rows(out)
    assert [row["line"] for row in found] == ["3", "4", "5", "6", "7"]
    assert [bool(row["cycles"]) for row in found] == [True, False, False, True, False]
    assert all(bool(row["reason"]) != bool(row["cycles"]) for row in found)


def test_columns_of_tables(tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "out.csv"
    path.write_text('name,asm\nx,"add rax, rbx"\ny,\nz,"imul rax, rbx; nop"\n')
    assert predict_file(path, out, MACHINE, executor=Inline()).predicted == 2
    assert [(row["line"], row["cycles"]) for row in rows(out)] == [("2", "1.0000"), ("4", "3.0000")]


def test_a_stopped_file_goes_on_where_it_was(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "_OTHERS", 2)
    out, whole = tmp_path / "out.csv", tmp_path / "whole.csv"
    predict_file(lines, whole, MACHINE, executor=Inline())
    with pytest.raises(KeyboardInterrupt):
        predict_file(lines, out, MACHINE, executor=Inline(stop_after=4))
    partial = tmp_path / "out.csv.partial"
    assert not out.exists() and len(rows(partial)) == 21
    with partial.open("a") as file:
        file.write("22,4801")  # a row that was cut off
    other = Inline()
    assert predict_file(lines, out, MACHINE, executor=other) == (60, 21)
    assert other.handed == 6
    assert out.read_text() == whole.read_text()
    assert not partial.exists() and not (tmp_path / "out.csv.state").exists()


def test_one_that_was_stopped_at_its_very_end_is_complete(lines, tmp_path):
    out = tmp_path / "out.csv"
    predict_file(lines, out, MACHINE, executor=Inline())
    text = out.read_text()
    out.rename(tmp_path / "out.csv.partial")
    (tmp_path / "out.csv.state").write_bytes(
        msgspec.json.encode(batch._state(lines, load_model(MACHINE), "analytic"))
    )
    assert predict_file(lines, out, MACHINE, executor=Inline()) == (60, 60)
    assert out.read_text() == text


@pytest.mark.parametrize("change", ["machine", "predictor", "blocks", "damaged", "gone"])
def test_nothing_is_gone_on_with_that_is_of_something_else(lines, tmp_path, monkeypatch, change):
    monkeypatch.setattr(batch, "_OTHERS", 1)
    out = tmp_path / "out.csv"
    with pytest.raises(KeyboardInterrupt):
        predict_file(lines, out, MACHINE, executor=Inline(stop_after=2))
    kept = (tmp_path / "out.csv.partial").read_text()
    machine, predictor = MACHINE, "analytic"
    if change == "machine":
        machine = "haswell"
    elif change == "predictor":
        predictor = "simulated"
    elif change == "blocks":
        lines.write_text(lines.read_text() + "90\n")
    elif change == "damaged":
        (tmp_path / "out.csv.state").write_text("{")
    else:
        (tmp_path / "out.csv.state").unlink()
    with pytest.raises(UsageError, match="is of other blocks, or of another machine"):
        predict_file(lines, out, machine, predictor, Inline())
    assert (tmp_path / "out.csv.partial").read_text() == kept


def test_a_stopped_file_that_cannot_be_written_now_goes_on_later(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "_OTHERS", 1)
    out, partial, away = tmp_path / "out.csv", tmp_path / "out.csv.partial", tmp_path / "away"
    with pytest.raises(KeyboardInterrupt):
        predict_file(lines, out, MACHINE, executor=Inline(stop_after=2))
    partial.rename(away)
    partial.mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        predict_file(lines, out, MACHINE, executor=Inline())
    partial.rmdir()
    away.rename(partial)
    opened = Path.open

    def full(path, mode="r", **options):
        if mode == "a":
            raise OSError(28, "No space left on device")
        return opened(path, mode, **options)

    with monkeypatch.context() as patch, pytest.raises(UsageError, match="No space left"):
        patch.setattr(Path, "open", full)
        predict_file(lines, out, MACHINE, executor=Inline())
    assert predict_file(lines, out, MACHINE, executor=Inline()).before > 0


def test_tasks_are_handed_out_as_they_are_needed(lines, tmp_path, monkeypatch):
    """Of a file of any length no more is in memory."""
    monkeypatch.setattr(batch, "_CHUNK", 1)
    executor = Inline()
    predict_file(lines, tmp_path / "out.csv", MACHINE, executor=executor)
    assert (executor.handed, executor.most) == (60, 16)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "has no blocks"), (b"# nothing\n\n", "has no blocks"), (b"90\n\0\n", "is binary"),
     (b"90" * 50_001, "has a line of more than 100000 characters"), (None, "cannot be read")],
)  # fmt: skip
def test_files_that_are_none(tmp_path, content, said):
    path, out = tmp_path / "a.txt", tmp_path / "out.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        predict_file(path, out, MACHINE, executor=Inline())
    assert not list(tmp_path.glob("out*"))


def test_the_longest_line_is_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("#" * 99_999 + "\n90\n")
    assert [one.where for one in block_lines(path)] == ["2"]


def test_answers_are_kept_up_to_a_number(lines, tmp_path, monkeypatch):
    """The same block again is not computed again; other than that all is as it was."""
    predict_file(lines, tmp_path / "a.csv", MACHINE, executor=Inline())
    chunk._own.__dict__.clear()
    monkeypatch.setattr("cyclescope.analyze.decode.kept.MOST_KEPT", 3)
    predict_file(lines, tmp_path / "b.csv", MACHINE, executor=Inline())
    _, _, kept = chunk._ready(MACHINE, 0, "analytic")
    assert 1 <= len(kept) <= 3
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    chunk._own.__dict__.clear()


@pytest.mark.parametrize(
    "sent",
    [signal.SIGKILL, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGINT, signal.SIGTERM))],
)
def test_a_command_that_is_stopped_leaves_no_process_and_goes_on(tmp_path, sent):
    path, out = tmp_path / "blocks.txt", tmp_path / "out.csv"
    path.write_text("".join(f"{CODES[n % 5]}b8{n:08x}\n" for n in range(12_000)))
    command = [
        sys.executable,
        "-m",
        "cyclescope",
        "predict",
        str(path),
        "-o",
        str(out),
        "--arch",
        MACHINE,
        "--jobs",
        "1",
    ]
    stopped = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    partial = tmp_path / "out.csv.partial"
    end = time.monotonic() + 300
    while not (partial.exists() and partial.stat().st_size > 1000) and time.monotonic() < end:
        time.sleep(0.01)
    stopped.send_signal(sent)
    said = stopped.communicate(timeout=300)[1].decode()
    assert stopped.returncode == (-9 if sent == signal.SIGKILL else 128 + sent)
    assert sent == signal.SIGKILL or said.splitlines()[-1] == "error: interrupted: the same command goes on"
    while _group(stopped.pid) and time.monotonic() < end + 30:
        time.sleep(0.1)
    assert not _group(stopped.pid)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert " of them before" in done.stderr.splitlines()[-1]
    assert [row["line"] for row in rows(out)] == [str(n) for n in range(1, 12_001)]


def _group(leader):
    """Processes of a session that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(path.parent.name)
    return [one for one in found if int(one) != os.getpid()]


def test_own_workers_have_the_machine_from_the_start(lines, tmp_path, monkeypatch):
    """Each would read and check the model again."""

    def load(_machine):
        raise AssertionError("a worker loaded the machine")

    monkeypatch.setattr(chunk, "load_model", load)
    assert predict_file(lines, tmp_path / "out.csv", MACHINE, jobs=2).predicted == 60
