"""Some blocks, predicted: what a worker of an executor is given, and what it gives back."""

from __future__ import annotations

import csv
import gc
import io
import os
import signal
import threading
import time
from typing import NamedTuple

import msgspec

from cyclescope.analyze.decode.kept import Kept
from cyclescope.errors import CyclescopeError
from cyclescope.garbage import uncollected
from cyclescope.model.machine import MachineModel
from cyclescope.session.block_files import Written, machine_codes
from cyclescope.session.machines import load_model
from cyclescope.session.predictors import BlockAnswer, OwnPredictor, own_predictor

BATCH_COLUMNS = ("line", "hex", "cycles", "low", "high", "lower", "bound", "reason")
_LOOKS = 1.0  # seconds between two looks whether whom a worker works for is still there


class ChunkTask(msgspec.Struct, frozen=True):
    """Blocks to predict with a machine, by name or file, as of a moment (`written`)."""

    machine: str
    written: int
    predictor: str
    lines: tuple[Written, ...]


def predicted_chunk(task: ChunkTask) -> str:
    """Rows of a CSV table without its head, one per line and in their order."""
    predictor, isa, kept = _ready(task.machine, task.written, task.predictor)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    with uncollected():  # predictions leave no objects that refer to each other
        for one, code in zip(task.lines, machine_codes(task.lines, isa), strict=True):
            writer.writerow(_row(one, code, predictor, isa, kept))
    return out.getvalue()


class ReadyWorker(NamedTuple):
    """A predictor, the instruction set of its machine, and the cells of the rows that it has answered."""

    predictor: OwnPredictor
    isa: str
    kept: Kept[bytes, tuple[str, ...]]

    @classmethod
    def of(cls, name: str, model: MachineModel) -> ReadyWorker:
        """That of a predictor by its name."""
        return cls(own_predictor(name, model), model.isa, Kept())


Key = tuple[str, int, str]  # of a task: its machine as of a moment, and the predictor
_own = threading.local()  # simulated cores are for one thread each


def _ready(machine: str, written: int, name: str) -> ReadyWorker:
    """What a worker makes once."""
    found: dict[Key, ReadyWorker] = _own.__dict__.setdefault("ready", {})
    key = machine, written, name
    if key not in found:
        with uncollected():
            found[key] = ReadyWorker.of(name, load_model(machine))
            gc.freeze()  # tables of many objects, which are there to the end
    return found[key]


def _row(
    one: Written, code: bytes | str, predictor: OwnPredictor, isa: str, kept: Kept[bytes, tuple[str, ...]]
) -> tuple[str, ...]:
    if isinstance(code, str):
        return one.where, "", "", "", "", "", "", code
    known = kept.get(code)
    if known is None:
        known = kept.keep(code, _cells(code, _answer(code, predictor, isa)))
    return one.where, *known


def _answer(code: bytes, predictor: OwnPredictor, isa: str) -> BlockAnswer:
    try:
        return predictor.of_code(code, isa)
    except CyclescopeError as error:
        return BlockAnswer(None, reason=error.message)


def _cells(code: bytes, answer: BlockAnswer) -> tuple[str, ...]:
    if answer.cycles is None:
        return code.hex(), "", "", "", "", "", answer.reason
    low, high = answer.interval or (answer.cycles, answer.cycles)
    numbers = (answer.cycles, low, high, answer.lower if answer.lower is not None else low)
    return code.hex(), *(f"{number:.4f}" for number in numbers), answer.bound, ""


def start_worker(parent: int, key: Key, ready: ReadyWorker) -> None:
    """Make this process a worker of another: signals are for that one, and it ends where that one is gone.

    What it needs is there already: it was made before the process was forked.
    """
    _own.__dict__["ready"] = {key: ready}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKS)
    os._exit(1)
