"""Kernels run one instruction at a time by tracer.c, on this machine or under qemu-user."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO

import msgspec

from cyclescope.backend.build import compilers
from cyclescope.errors import BackendUnavailable
from cyclescope.host.uname import host_isa
from cyclescope.kernel.locations import BYTES, LOCATIONS, location_set
from cyclescope.kernel.state import MachineState

_HERE = Path(__file__).resolve().parent
NATIVE = _HERE.parents[1] / "src/cyclescope/native"
_FOLDERS = {"x86-64": "x86_64", "aarch64": "aarch64", "riscv64": "riscv64"}
_REQUEST = struct.Struct(f"<6I {BYTES}s {BYTES}s 4x")
_HEAD = struct.Struct(f"<4B {BYTES}s {BYTES}s")
_EVENT = struct.Struct(f"<4B {BYTES}s {BYTES}s 2H")
_ANSWER = struct.Struct(f"<4I {BYTES}s 2x I")
_BATCH = 24  # jobs
_ALTERNATES = 8
_SIGNALS = {4: "SIGILL", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV", 26: "a hang"}

CHAIN, STREAM = range(2)
NONE, AS_IT_IS, OTHER_MEMORY, OTHER_VALUES, OTHER_FIELD = range(5)
IDENTITY, UNCOVERED = 1, 2
ADDRESS, STORES, LOADS = 1, 2, 4


class Item(msgspec.Struct, frozen=True):
    """One instruction: whether it is the form under test, and then the places of source and target.

    `alternates` is its code with one other operand each.
    """

    code: bytes
    tested: bool = False
    source: int = 0
    target: int = 0
    alternates: tuple[bytes, ...] = ()
    uses: int = 0  # bits of ADDRESS, STORES, LOADS


class Job(msgspec.Struct, frozen=True):
    """A kernel to be followed; sets of locations are those of `kernel.locations`."""

    kind: int
    items: tuple[Item, ...]
    state: MachineState
    setup: bytes
    element: int
    keep: int
    report: tuple[int, ...]
    memory: bool
    iterations: int

    def request(self) -> bytes:
        """What tracer.c reads."""
        head = _REQUEST.pack(
            self.kind, len(self.items), self.iterations, self.element, len(self.setup), self.memory,
            _bits(self.keep), _bits(location_set(self.report)),
        )  # fmt: skip
        return head + self.state.packed + self.setup + b"".join(_item(item) for item in self.items)


class Event(msgspec.Struct, frozen=True):
    """One instruction on the tag's way: by what means the tag passed, where it was before and after."""

    item: int
    round: int
    mode: int
    flags: int
    before: int
    after: int


class Trace(msgspec.Struct, frozen=True):
    """What came of a job: `fault` is empty where it ran, `changed` what the iterations changed."""

    fault: str = ""
    events: tuple[Event, ...] = ()
    changed: int = 0
    first: dict[int, bytes] = {}
    last: dict[int, bytes] = {}


def _bits(locations: int) -> bytes:
    return locations.to_bytes(BYTES, "little")


def _item(item: Item) -> bytes:
    others = item.alternates[:_ALTERNATES]
    head = _HEAD.pack(
        item.tested, len(item.code), len(others), item.uses, _bits(item.source), _bits(item.target)
    )
    return head + item.code + b"".join(others)


class Tracer:
    """tracer.c in a process of its own, started again where a kernel ended it."""

    def __init__(self, isa: str, command: Sequence[str]) -> None:
        self.isa = isa
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None
        self.sizes: list[int] = []

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(BrokenPipeError):  # what it has not read
                    if pipe:
                        pipe.close()
        self._process = None

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe)
            assert self._process.stdout is not None
            locations, _, event, request = struct.unpack("<4I", _exactly(self._process.stdout, 16))
            if (locations, event) != (LOCATIONS, _EVENT.size) or request < _REQUEST.size:
                raise BackendUnavailable("tracer.c and tracer.py do not fit together")
            words = struct.iter_unpack("<5I", _exactly(self._process.stdout, 20 * LOCATIONS))
            self.sizes = [_size(kind, size) for kind, _, size, _, _ in words]
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def run(self, jobs: Sequence[Job]) -> Iterator[Trace]:
        """A trace of each job, in order."""
        for first in range(0, len(jobs), _BATCH):
            yield from self._batch(jobs[first : first + _BATCH])

    def _batch(self, jobs: Sequence[Job]) -> list[Trace]:
        """Traces of some jobs, of which one may end the process: then each is run alone."""
        try:
            to, back = self._pipes()
            with sent(to, b"".join(job.request() for job in jobs)):
                return [self._answer(back, job) for job in jobs]
        except (EOFError, BrokenPipeError):
            self.close()
        if len(jobs) == 1:
            return [Trace("ends the tracer")]
        return [trace for job in jobs for trace in self._batch([job])]

    def _answer(self, pipe: IO[bytes], job: Job) -> Trace:
        status, detail, item, events, changed, reported = _ANSWER.unpack(_exactly(pipe, _ANSWER.size))
        rows = _EVENT.iter_unpack(_exactly(pipe, events * _EVENT.size))
        found = tuple(Event(*row[:4], _set(row[4]), _set(row[5])) for row in rows)
        values = _exactly(pipe, reported)
        half = reported // 2
        fault = f"{_SIGNALS.get(detail, f'signal {detail}')} at instruction {item}" if status else ""
        return Trace(fault, found, _set(changed), self._values(job, values[:half]),
                     self._values(job, values[half:]))  # fmt: skip

    def _values(self, job: Job, values: bytes) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for location in sorted(job.report):
            size = self.sizes[location]
            found[location], values = values[:size], values[size:]
        return found


@contextmanager
def sent(pipe: IO[bytes], data: bytes) -> Iterator[None]:
    """Writes beside what reads the answers, which may fill their pipe before all is sent."""

    def write() -> None:
        with suppress(BrokenPipeError):  # whoever reads the answers finds their end
            pipe.write(data)
            pipe.flush()

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _size(kind: int, size: int) -> int:
    bits = 5  # enum location_kind
    return 0 if kind == 0 else min(size, 4) if kind == bits else size


def _set(bits: bytes) -> int:
    return int.from_bytes(bits, "little")


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


# --- building --------------------------------------------------------------------------------------


def tracer(isa: str, emulator: Sequence[str], folder: Path | None = None) -> Tracer:
    """tracer.c built for an instruction set, behind the words that start its emulator.

    Raises BackendUnavailable where no compiler is.
    """
    where = folder or Path(tempfile.mkdtemp(prefix="cyclescope-tracer-"))
    output = where / f"tracer-{_FOLDERS[isa]}"
    sources = [*sorted(_HERE.glob("*.c")), *sorted((NATIVE / _FOLDERS[isa]).glob("*.c"))]
    compiler = next(compilers(isa), None)
    if compiler is None:
        raise BackendUnavailable(f"no compiler for {isa}", f"`apt install gcc-{isa}-linux-gnu`")
    flags = ["-O3", "-fno-stack-protector", "-static", f"-I{NATIVE}", f"-I{_HERE}"]
    subprocess.run([*compiler, *flags, *map(str, sources), "-o", str(output)], check=True)
    return Tracer(isa, [*emulator, str(output)])


def qemu(isa: str, cpu: str) -> list[str]:
    """The words that start a program of another instruction set. Raises BackendUnavailable."""
    if isa == host_isa():
        return []
    found = shutil.which(f"qemu-{isa}-static") or shutil.which(f"qemu-{isa}")
    if found is None:
        raise BackendUnavailable(f"no qemu-{isa}", "`apt install qemu-user-static`")
    return [found, "-cpu", cpu]


def usable_cpus() -> int:
    """How many processes are worth starting."""
    return len(os.sched_getaffinity(0))
