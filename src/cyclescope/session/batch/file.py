"""A file of blocks to a file of predictions: streamed, in order, and again from where it was stopped."""

from __future__ import annotations

import gc
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from cyclescope.errors import CyclescopeError, UsageError, unreadable, unwritable
from cyclescope.garbage import uncollected
from cyclescope.host.files import replaceable
from cyclescope.model.machine import MachineModel
from cyclescope.session.batch.blocks import block_lines, counted_lines, pieces
from cyclescope.session.batch.chunk import (
    BATCH_COLUMNS,
    ChunkTask,
    Key,
    ReadyWorker,
    predicted_chunk,
    start_worker,
)
from cyclescope.session.block_files import Written
from cyclescope.session.machines import is_file, load_model
from cyclescope.session.predictors import ANALYTIC

_CHUNK = 500  # blocks of a task, tenths of a second: little is lost, and little is said between processes
_AHEAD = 3  # tasks per worker that are handed out: none waits for the next, and memory stays small
_OTHERS = 16  # tasks that are handed to an executor whose workers nobody counts
Report = Callable[[int, int], None]


class BatchState(msgspec.Struct, frozen=True):
    """What a file of predictions that is not complete is of: it goes on with the same alone."""

    blocks: str
    size: int
    written: int
    machine: str
    predictor: str


class BatchResult(NamedTuple):
    """How many blocks were predicted, and how many of them were there from before."""

    predicted: int
    before: int


def predict_file(
    blocks: str | Path,
    output: str | Path,
    machine: str,
    predictor: str = ANALYTIC,
    executor: Executor | None = None,
    jobs: int = 0,
    report: Report = lambda done, of: None,
) -> BatchResult:
    """Predict every block of a file, into a CSV table of `chunk.BATCH_COLUMNS` in the same order.

    `machine` is a name or a file that all workers can read. An `executor` of any kind (`concurrent.futures`;
    a Dask client's `get_executor()`) runs the tasks, else `jobs` processes (0: one per CPU). Until it is
    complete the table is `OUTPUT.partial`: where one is there, and of the same blocks and machine, it is gone
    on with. Raises UsageError, and CyclescopeError where a worker was killed.
    """
    blocks, output = Path("/dev/stdin" if str(blocks) == "-" else blocks), replaceable(Path(output))
    partial, described = (output.with_name(f"{output.name}{end}") for end in (".partial", ".state"))
    key = machine, _written(machine), predictor
    with uncollected():
        model = load_model(machine)
        ready = ReadyWorker.of(predictor, model)  # what is wrong with them is told before anything else
        gc.freeze()  # tables of many objects, which are there to the end
    state, of = _state(blocks, model, predictor), counted_lines(blocks)
    before = _rows_before(partial, described, state)
    done = before
    lines = islice(block_lines(blocks), before, None)
    tasks = (ChunkTask(machine, _written(machine), predictor, some) for some in _batched(lines, _CHUNK))
    first = list(islice(tasks, 1))  # what is wrong with the file is told before another is begun
    if not first and not before:
        raise UsageError(
            f"{blocks} has no blocks", "write one per line: machine code in hexadecimal, or text"
        )
    with _appended(partial, described, state, before) as file:
        try:
            for task, text in _in_order(chain(first, tasks), executor, jobs, (key, ready)):
                file.write(text)
                file.flush()
                done += len(task.lines)
                report(done, max(of, done))
        except BrokenExecutor as error:  # as the system does where memory is short
            what = f"a process that predicts was killed behind {done} blocks"
            raise CyclescopeError(what, "the same command goes on from there") from error
    partial.replace(output)
    described.unlink(missing_ok=True)
    return BatchResult(done, before)


def _batched(lines: Iterable[Written], size: int) -> Iterator[tuple[Written, ...]]:
    some = iter(lines)
    while chunk := tuple(islice(some, size)):
        yield chunk


# --- executors -------------------------------------------------------------------------------------


def _in_order(
    tasks: Iterator[ChunkTask], executor: Executor | None, jobs: int, ready: tuple[Key, ReadyWorker]
) -> Iterator[tuple[ChunkTask, str]]:
    """Tasks with their results, in order; no more are handed out than keep all workers busy."""
    if executor is not None:
        yield from _handed(tasks, executor, _OTHERS)
        return
    many = jobs or len(os.sched_getaffinity(0))
    own = ProcessPoolExecutor(many, get_context("fork"), start_worker, (os.getpid(), *ready))
    try:
        yield from _handed(tasks, own, many * _AHEAD)
    finally:
        own.shutdown(wait=True, cancel_futures=True)


def _handed(tasks: Iterator[ChunkTask], executor: Executor, ahead: int) -> Iterator[tuple[ChunkTask, str]]:
    waiting: deque[tuple[ChunkTask, Future[str]]] = deque()
    try:
        for task in tasks:
            waiting.append((task, executor.submit(predicted_chunk, task)))
            if len(waiting) >= ahead:
                first, result = waiting.popleft()
                yield first, result.result()
        while waiting:
            task, future = waiting.popleft()
            yield task, future.result()
    finally:
        for _, future in waiting:
            future.cancel()


# --- what was there before ---------------------------------------------------------------------------


def _written(machine: str) -> int:
    """When a machine's file was written last, in nanoseconds; 0 for a name."""
    path = Path(machine)
    return path.stat().st_mtime_ns if is_file(machine) and path.is_file() else 0


def _state(blocks: Path, machine: MachineModel, predictor: str) -> BatchState:
    try:
        found = blocks.stat()
    except OSError as error:
        raise unreadable(blocks, error) from error
    digest = hashlib.blake2b(msgspec.json.encode(machine), digest_size=16).hexdigest()
    return BatchState(str(blocks.resolve()), found.st_size, found.st_mtime_ns, digest, predictor)


def _rows_before(partial: Path, described: Path, state: BatchState) -> int:
    """Complete rows of a table that was stopped; one that is not is cut off. Raises UsageError."""
    if not partial.exists():
        return 0
    try:
        known = msgspec.json.decode(described.read_bytes(), type=BatchState)
    except (OSError, msgspec.DecodeError):
        known = None
    if known != state:
        raise UsageError(
            f"{partial} is of other blocks, or of another machine", "remove it, or name another file"
        )
    try:
        return _complete_rows(partial)
    except OSError as error:
        raise unwritable(partial, error) from error


def _complete_rows(partial: Path) -> int:
    rows, end = -1, 0  # the first is the head
    with partial.open("rb+") as file:
        at = 0
        for piece in pieces(file):
            rows += piece.count(b"\n")
            if b"\n" in piece:
                end = at + piece.rindex(b"\n") + 1
            at += len(piece)
        file.truncate(end)
    return max(rows, 0)


def _appended(partial: Path, described: Path, state: BatchState, before: int) -> IO[str]:
    """The table, open for more rows, with its head. Raises UsageError."""
    try:
        if not before:
            new = described.with_name(f"{described.name}.new")
            new.write_bytes(msgspec.json.encode(state))
            new.replace(described)
            partial.write_text(",".join(BATCH_COLUMNS) + "\n")
        return partial.open("a", newline="")
    except OSError as error:
        if not before:
            with suppress(OSError):
                described.unlink()
        raise unwritable(partial, error) from error
