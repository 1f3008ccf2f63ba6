"""The client of a runner: a separate C process behind a small binary protocol, here or elsewhere.

A connection that breaks is made anew, and what was not answered yet is asked again.
"""

from __future__ import annotations

import os
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from math import isnan
from typing import Any, NamedTuple

from cyclescope.backend.base import (
    Calibration,
    Capabilities,
    Depth,
    Effort,
    Observation,
    Outcome,
    Sample,
)
from cyclescope.backend.link import Link
from cyclescope.backend.transport import Broken, Silence
from cyclescope.errors import BackendUnavailable
from cyclescope.host.clock import clock_name
from cyclescope.host.identity import as_leaves
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.locations import BYTES, LOCATIONS
from cyclescope.kernel.state import MachineState

VERSION = 4
HELLO, SETUP, CALIBRATE, STATE, MEASURE, PROBE, DIFFER, QUIT, ERROR, READ = range(1, 11)
_HELLO = struct.Struct("<4I 7Q")
_LEAF = struct.Struct("<6I")
_SETUP = struct.Struct("<i I")
_EVENT = struct.Struct("<I I Q")
_SETUP_REPLY = struct.Struct("<4i 2I")
_CALIBRATION = struct.Struct("<6d")
_MEASURE = struct.Struct("<4I d")
_KERNEL = struct.Struct("<I 4H")
_RESULT = struct.Struct("<2d 10d Q 8I i I")
_OUTCOME = struct.Struct("<Q 2I i I")
_DIFFER = struct.Struct("<4I")
_OBSERVATION = struct.Struct("<2I Q 4I 18s 18s 18s 2592s 2x")
_COUNTERS = 10
_STATES = 1024
_RUNNER_LEAF, _EMULATED = (0x43530001, 0), 1
_PAD = (b"", b"\0\0\0", b"\0\0", b"\0")
_ISAS = {1: "x86-64", 2: "aarch64", 3: "riscv64"}
PAUSES = (0.0, 2.0, 10.0)  # seconds before a new connection, by how often in a row the last one broke
_SMALLER = 4  # after a break, batches are sent in so many times smaller pieces
_LEAST, _MOST = 16, 1 << 16  # kernels per piece


class _Job:
    """A request: kernels in pieces that are answered one by one, each record so many bytes per kernel."""

    def __init__(
        self, kind: int, head: bytes, kernels: Sequence[Kernel] = (), record: int = 0, rounds: int = 1
    ) -> None:
        self.kind, self.head, self.record, self.rounds = kind, head, record, rounds
        self.pieces = deque([tuple(kernels)])
        self.answers: list[bytes] = []

    def split(self, size: int) -> None:
        """Smaller pieces of what was not answered yet."""
        rest = tuple(kernel for piece in self.pieces for kernel in piece)
        if rest:
            self.pieces = deque(rest[n : n + size] for n in range(0, len(rest), size))

    def take(self, answer: bytes) -> bool:
        """Keep the answer to the next piece; whether it has the right size."""
        piece = self.pieces.popleft()
        self.answers.append(answer)
        return not self.record or len(answer) == self.record * len(piece)


class _Elsewhere(BackendUnavailable):
    """A new connection led to another machine."""


class _Hello(NamedTuple):
    isa: str
    leaves: tuple[Any, ...]
    xcr0: int
    emulated: bool


class NativeBackend:
    """Kernels on this machine, or where a link leads, pinned to one CPU.

    Raises BackendUnavailable, also from its methods, where there is no runner or no more.
    """

    def __init__(
        self, cpu: int = -1, events: Sequence[tuple[str, int, int]] = (), link: Link | None = None
    ) -> None:
        self.link = link or Link()
        self._wanted, self._events = cpu, tuple(events)
        self._closed = False
        self._breaks = self._broken = 0
        self._size = _MOST
        self._jobs: deque[_Job] = deque()
        self._submitted: deque[_Job] = deque()
        self._states: dict[int, tuple[int, MachineState]] = {}
        self._transport = self.link.connect()
        try:
            self._hello = self._greet()
        except BaseException as error:
            self._transport.close(self.link.grace)
            if isinstance(error, BackendUnavailable):
                error.remedy = error.remedy or self.link.remedy
            raise

    # --- connecting -------------------------------------------------------------------------------

    def _greet(self) -> _Hello:
        """The first words on a connection."""
        try:
            hello = self._read_hello(self._say(HELLO, b""))
            self._take_setup(self._say(SETUP, self._setup()))
            if hello.isa != "x86-64":  # cores may be of several kinds: that of the kernels
                hello = self._read_hello(self._say(HELLO, b""))
        except Broken as error:
            raise self.link.lost(error.end) from error
        except Silence as error:
            raise self.link.silent(self.link.patience) from error
        return hello

    def _say(self, kind: int, payload: bytes) -> bytes:
        self._transport.send(kind, payload)
        return self._checked(kind, *self._transport.receive(self.link.patience))

    def _checked(self, kind: int, got: int, payload: bytes) -> bytes:
        if got == ERROR:
            raise BackendUnavailable(f"{self.link.name} refused: {payload.decode(errors='replace')}")
        if got != kind:
            raise self._stranger()
        return payload

    def _stranger(self) -> BackendUnavailable:
        return BackendUnavailable(f"{self.link.name} speaks another protocol", self.link.remedy)

    def _read_hello(self, payload: bytes) -> _Hello:
        version = int.from_bytes(payload[:4], "little")
        if version != VERSION or len(payload) < _HELLO.size:
            message = f"{self.link.name} speaks protocol {version}, not {VERSION}"
            raise BackendUnavailable(message, self.link.remedy)
        version, isa, count, _, *_, xcr0 = _HELLO.unpack_from(payload)
        leaves = tuple(_LEAF.iter_unpack(payload[_HELLO.size : _HELLO.size + count * _LEAF.size]))
        own = as_leaves(leaves).get(_RUNNER_LEAF, (0,))[0]
        return _Hello(_ISAS[isa], leaves, xcr0, self.link.emulated or bool(own & _EMULATED))

    def _setup(self) -> bytes:
        events = b"".join(_EVENT.pack(kind, 0, config) for _, kind, config in self._events)
        events += bytes(_EVENT.size * (_COUNTERS - len(self._events)))
        return _SETUP.pack(self._wanted, len(self._events)) + events

    def _take_setup(self, payload: bytes) -> None:
        got, pin, filtered, counter, opened, _ = _SETUP_REPLY.unpack(payload)
        notes = []
        if pin:
            notes.append(f"not pinned to CPU {self._wanted}: {os.strerror(pin)}")
        if filtered:
            notes.append(f"system calls of kernels are not stopped: {os.strerror(filtered)}")
        if self._events and opened < len(self._events):
            notes.append(f"performance counters: {os.strerror(counter)}")
        self._cpu, self._notes = got, tuple(notes)
        self._counters = tuple(name for name, _, _ in self._events[:opened])

    def configure(self, cpu: int, events: Sequence[tuple[str, int, int]] = ()) -> None:
        """Choose CPU and counters anew, while no batch is under way."""
        self._wanted, self._events = cpu, tuple(events)
        self._take_setup(self._ask(_Job(SETUP, self._setup())))
        if self._hello.isa != "x86-64":
            self._hello = self._read_hello(self._ask(_Job(HELLO, b"")))

    def _reconnect(self, error: Exception) -> None:
        """Connect again and ask again, a few times in a row; what was answered stays."""
        self._broken += 1
        while True:
            cause = self._meaning(error)
            self._transport.close(self.link.grace)
            if self._breaks >= self.link.tries:
                if self.link.tries:
                    cause.message += f", after {self.link.tries} new connections"
                raise cause from error
            time.sleep(PAUSES[min(self._breaks, len(PAUSES) - 1)])
            self._breaks += 1
            try:
                self._again()
            except _Elsewhere:
                raise
            except (Broken, Silence, BackendUnavailable) as another:
                error = another
            else:
                return

    def _meaning(self, error: Exception) -> BackendUnavailable:
        if isinstance(error, BackendUnavailable):
            return error
        if isinstance(error, Broken):
            return self.link.lost(error.end)
        return self.link.silent(self._patience() or 0.0)

    def _again(self) -> None:
        """A new connection to the same machine, with what was not answered yet, in smaller pieces."""
        counters = self._counters
        self._transport = self.link.connect()
        self._states.clear()
        before = self.capabilities().identity.machine, counters
        self._hello = self._greet()
        if (machine := self.capabilities().identity.machine, self._counters) != before:
            raise _Elsewhere(f"{self.link.name} is on another machine now ({machine})")
        most = max((len(piece) for job in self._jobs for piece in job.pieces), default=0)
        self._size = max(_LEAST, min(self._size, most) // _SMALLER)
        for job in self._jobs:
            job.split(self._size)
            self._send(job)

    # --- asking -----------------------------------------------------------------------------------

    def _send(self, job: _Job) -> None:
        for piece in job.pieces:
            payload = job.head + self._pack(piece)
            self._transport.send(job.kind, payload, len(piece), patience=self._patience())

    def _patience(self) -> float | None:
        """Seconds that the oldest request may take."""
        oldest = self._jobs[0]
        return self.link.patience_for(len(oldest.pieces[0]) * oldest.rounds)

    def _queue(self, job: _Job) -> None:
        """Ask, and let `_answer` wait."""
        job.split(self._size)
        self._jobs.append(job)
        try:
            self._send(job)
        except (Broken, Silence) as error:
            self._reconnect(error)

    def _answer(self, job: _Job) -> bytes:
        """The whole answer to a request; answers come in order."""
        while job.pieces:
            try:
                self._take(self._jobs[0])
            except (Broken, Silence) as error:
                self._reconnect(error)
        return b"".join(job.answers)

    def _ask(self, job: _Job) -> bytes:
        self._queue(job)
        return self._answer(job)

    def _take(self, job: _Job) -> None:
        """Wait for the answer to a piece of the oldest request."""
        kind, payload = self._transport.receive(self._patience())
        if kind == ERROR and job.kind == READ:  # an older runner
            kind, payload = READ, b""
        if not job.take(self._checked(job.kind, kind, payload)):
            raise self._stranger()
        self._breaks = 0
        if not job.pieces:
            self._jobs.popleft()
            self._size = min(2 * self._size, _MOST)

    # --- backend ----------------------------------------------------------------------------------

    def capabilities(self) -> Capabilities:
        """What this backend is."""
        clock = "core cycles (perf_event)" if self._counters else clock_name(as_leaves(self._hello.leaves))
        times = "once" if self._broken == 1 else f"{self._broken} times"
        notes = (f"the connection broke {times}, nothing was lost",) if self._broken else ()
        return Capabilities(
            self._hello.isa, "native runner", self._cpu, clock, self._counters, self._hello.leaves,
            self._hello.xcr0, (*self._notes, *notes), real_time=not self._hello.emulated,
            emulated=self._hello.emulated,
        )  # fmt: skip

    def read(self, paths: Sequence[str]) -> list[str | None]:
        """What files below / of the runner's machine say, or names in folders; None where they do not."""
        jobs = [_Job(READ, f"/{path}".encode()) for path in paths]
        for job in jobs:
            self._queue(job)
        return [self._answer(job).decode(errors="replace") or None for job in jobs]

    def calibrate(self, samples: int = 400) -> Calibration:
        """Calibrate the clock (about a millisecond per 100 samples)."""
        answer = self._ask(_Job(CALIBRATE, struct.pack("<2I", samples, 0)))
        return Calibration(*_CALIBRATION.unpack(answer))

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        """Start measuring a batch; `collect` waits for the answer."""
        head = _MEASURE.pack(
            effort.rounds, effort.want, effort.maximum, effort.seed & 0xFFFFFFFF, effort.target
        )
        job = _Job(MEASURE, head, kernels, _RESULT.size * effort.rounds, effort.rounds)
        self._submitted.append(job)
        self._queue(job)

    def collect(self) -> list[list[Sample]]:
        """Samples per kernel and round of the oldest batch not yet collected."""
        job = self._submitted.popleft()
        samples = [self._sample(row) for row in _RESULT.iter_unpack(self._answer(job))]
        return [samples[i : i + job.rounds] for i in range(0, len(samples), job.rounds)]

    def _sample(self, row: tuple[Any, ...]) -> Sample:
        cycles, spread = row[:2]
        counters = row[2 : 1 + len(self._counters)] if self._counters else ()
        if any(map(isnan, counters)):  # the kernel took the counters away meanwhile
            counters = ()
        address, status, detail, accepted, rejected, exceptions = row[2 + _COUNTERS : 8 + _COUNTERS]
        return Sample(
            cycles, spread, status, detail, accepted, rejected, exceptions, address, row[-2], counters
        )

    def probe(self, kernels: Sequence[Kernel]) -> list[Outcome]:
        """Run each body once, isolated."""
        answer = self._ask(_Job(PROBE, bytes(16), kernels, _OUTCOME.size))
        return [
            Outcome(status, detail, address, instruction)
            for address, status, detail, instruction, _ in _OUTCOME.iter_unpack(answer)
        ]

    def differ(self, kernels: Sequence[Kernel], depth: Depth) -> list[Observation]:
        """Run each body from many states, changing one location at a time."""
        head = _DIFFER.pack(depth.bases, depth.perturbations, depth.seed & 0xFFFFFFFF, 0)
        answer = self._ask(_Job(DIFFER, head, kernels, _OBSERVATION.size))
        return [_observation(row) for row in _OBSERVATION.iter_unpack(answer)]

    def close(self) -> None:
        """End the runner, at once if it is still at work."""
        if self._closed:
            return
        self._closed = True
        if self._transport.unanswered:
            self._transport.close(self.link.grace)
            return
        with suppress(Broken, Silence):  # it is gone already
            self._transport.send(QUIT, b"", patience=1.0, answered=False)
        self._transport.leave()

    def _pack(self, kernels: Sequence[Kernel]) -> bytes:
        parts: list[bytes] = []
        if len(self._states) > _STATES // 2:
            self._states.clear()
        for kernel in kernels:
            setup, code = kernel.setup, kernel.code
            head = _KERNEL.pack(
                self._state_index(kernel.state), kernel.flags, kernel.instructions,
                len(setup), len(code),
            )  # fmt: skip
            parts += (head, setup, code, _PAD[(len(setup) + len(code)) & 3])
        return b"".join(parts)

    def _state_index(self, state: MachineState) -> int:
        known = self._states.get(id(state))
        if known is not None:
            return known[0]
        index = len(self._states)
        if index >= _STATES:
            raise BackendUnavailable("too many machine states in one batch")
        self._states[id(state)] = index, state  # holding the state keeps its id unique
        payload = struct.pack("<2I", index, 0) + state.packed
        self._transport.send(STATE, payload, patience=self._patience(), answered=False)
        return index


def _observation(row: tuple[Any, ...]) -> Observation:
    status, detail, address, bases, trials, faults, _, present, written, unstable, matrix = row
    rows = ((n, matrix[n * BYTES : (n + 1) * BYTES]) for n in range(LOCATIONS))
    depends = tuple((n, _set(bits)) for n, bits in rows if any(bits))
    outcome = Outcome(status, detail, address)
    return Observation(outcome, bases, trials, faults, _set(present), _set(written), _set(unstable), depends)


def _set(bits: bytes) -> int:
    return int.from_bytes(bits, "little")
