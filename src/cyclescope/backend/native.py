"""The client of a runner: a separate C process behind a small binary protocol, here or elsewhere.

A connection that breaks is made anew, and what was not answered yet is asked again.
"""

from __future__ import annotations

import math
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import compress, islice
from typing import Any, NamedTuple, TypeVar

from cyclescope.backend import answers, requests
from cyclescope.backend.answers import Nonsense
from cyclescope.backend.base import (
    TOO_LONG,
    BlockEffort,
    BlockSample,
    BurstEffort,
    BurstSample,
    Calibration,
    Capabilities,
    Depth,
    Effort,
    Observation,
    Outcome,
    Sample,
)
from cyclescope.backend.link import Link
from cyclescope.backend.requests import Job
from cyclescope.backend.transport import Broken, Silence, Transport, words
from cyclescope.errors import BackendUnavailable
from cyclescope.host.clock import clock_name
from cyclescope.host.cpuinfo import PATHS, leaves_from_files, says_little
from cyclescope.host.identity import as_leaves
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState

VERSION = 10
HELLO, SETUP, CALIBRATE, STATE, MEASURE, PROBE, DIFFER, QUIT, ERROR, READ, BLOCKS, BURSTS = range(1, 13)
_STATES = 1024
_LARGEST = 0xFFFF  # instructions and bytes of a kernel that a request has room for
_TOO_LARGE = Sample(math.nan, math.nan, TOO_LONG)
_RUNNER_LEAF, _EMULATED = (0x43530001, 0), 1
_PAD = (b"", b"\0\0\0", b"\0\0", b"\0")
PAUSES = (0.0, 2.0, 10.0)  # seconds before a new connection, by how often in a row the last one broke
_SMALLER = 4  # after a break, batches are sent in so many times smaller pieces
_LEAST, _MOST = 16, 1 << 16  # kernels per piece
_ROOM = {HELLO: answers.HELLO, READ: answers.FILE}  # bytes of answers without records
_T = TypeVar("_T")


class _Elsewhere(BackendUnavailable):
    """A new connection led to another machine."""


class _Own(threading.local):
    """What a thread has submitted, and whose kernels fit; whether it gives way to others."""

    def __init__(self) -> None:
        self.submitted: deque[tuple[Job, list[bool]]] = deque()
        self.gives_way = False


class _Hello(NamedTuple):
    isa: str
    leaves: tuple[Any, ...]
    xcr0: int
    emulated: bool


class NativeBackend:
    """Kernels on this machine, or where a link leads, pinned to one CPU.

    Where it is `movable`, the runner goes on with another CPU of the same kind while that one is disturbed.
    Several threads may ask: each gets the answers to its own batches.
    Raises BackendUnavailable, also from its methods, where there is no runner or no more.
    """

    def __init__(
        self,
        cpu: int = -1,
        events: Sequence[tuple[str, int, int]] = (),
        link: Link | None = None,
        movable: bool = False,
    ) -> None:
        self.link = link or Link()
        self._wanted, self._events, self._movable = cpu, tuple(events), movable
        self._nop = 0.0
        self._closed = False
        self._breaks = self._broken = 0
        self._size = _MOST
        self._jobs: deque[Job] = deque()
        self._own = _Own()
        self._asking, self._answering = threading.RLock(), threading.RLock()  # what is sent; what comes
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
            hello = self._completed(hello, self._say)
        except Broken as error:
            raise self.link.lost(error.end) from error
        except Silence as error:
            raise self.link.silent(self.link.patience) from error
        return hello

    def _say(self, kind: int, payload: bytes) -> bytes:
        self._transport.send(kind, payload, room=_ROOM.get(kind, 0))
        return self._checked(kind, *self._transport.receive(self.link.patience))

    def _completed(self, hello: _Hello, ask: Callable[[int, bytes], bytes]) -> _Hello:
        """What files say of the CPU, where it says little itself."""
        if not says_little(hello.isa):
            return hello
        hello = self._read_hello(ask(HELLO, b""))  # cores may be of several kinds: that of the kernels
        if hello.emulated:
            return hello
        contents = [ask(READ, f"/{path}".encode()) for path in PATHS]
        leaves = as_leaves(hello.leaves)
        found = leaves_from_files(hello.isa, self._cpu, leaves, [answers.text_of(data) for data in contents])
        return hello._replace(leaves=(*hello.leaves, *found))

    def _checked(self, kind: int, got: int, payload: bytes) -> bytes:
        if got == ERROR and kind == READ:  # an older runner knows of no files
            return b""
        if got == ERROR:
            raise BackendUnavailable(f"{self.link.name} refused: {words(payload)}")
        if got != kind:
            raise self._stranger()
        return payload

    def _stranger(self) -> BackendUnavailable:
        return BackendUnavailable(f"{self.link.name} speaks another protocol", self.link.remedy)

    def _believe(self, read: Callable[[], _T]) -> _T:
        """What an answer says, unless it cannot be."""
        try:
            return read()
        except Nonsense as error:
            message = f"{self.link.name} gave an answer that cannot be: {error}"
            raise BackendUnavailable(message, self.link.remedy) from error

    def _read_hello(self, payload: bytes) -> _Hello:
        version = answers.version_of(payload)
        if version != VERSION:
            message = f"{self.link.name} speaks protocol {version}, not {VERSION}"
            raise BackendUnavailable(message, self.link.remedy)
        isa, leaves, xcr0 = self._believe(lambda: answers.machine_of(payload))
        own = as_leaves(leaves).get(_RUNNER_LEAF, (0,))[0]
        return _Hello(isa, leaves, xcr0, self.link.emulated or bool(own & _EMULATED))

    def _setup(self) -> bytes:
        return requests.setup(self._wanted, self._events, self._movable)

    def _take_setup(self, payload: bytes) -> None:
        ready = self._believe(lambda: answers.ready_of(payload, len(self._events)))
        got, pin, filtered, counter, opened = ready
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
        self._take_setup(self._ask(Job(SETUP, self._setup())))
        self._hello = self._completed(self._hello, lambda kind, data: self._ask(Job(kind, data)))

    def _reconnect(self, error: Exception, broken: Transport) -> None:
        """Connect and ask again, a few times in a row, unless another thread did; what was answered stays."""
        with self._asking:
            if self._transport is broken:
                self._renew(error)

    def _renew(self, error: Exception) -> None:
        self._broken += 1
        while True:
            cause = self._meaning(error)
            self._transport.close(self.link.grace)
            if self._closed or self._breaks >= self.link.tries:
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

    def _send(self, job: Job) -> None:
        for piece, room in zip(job.pieces, job.rooms(_ROOM.get(job.kind, 0)), strict=True):
            payload = job.head + self._pack(piece)
            self._transport.send(job.kind, payload, len(piece), patience=self._patience(), room=room)

    def _patience(self) -> float | None:
        """Seconds that the oldest request may take."""
        oldest = self._jobs[0]
        return self.link.patience_for(len(oldest.pieces[0]) * oldest.rounds)

    def _queue(self, job: Job) -> None:
        """Ask, and let `_answer` wait."""
        with self._asking:
            transport = self._transport
            job.split(self._size)
            self._jobs.append(job)
            try:
                self._send(job)
                return
            except (Broken, Silence) as error:
                cause = error
        with self._answering:
            self._reconnect(cause, transport)

    def _answer(self, job: Job) -> bytes:
        """The whole answer to a request; answers come in order."""
        while job.pieces:
            with self._answering:
                transport = self._transport
                try:
                    if job.pieces:  # no other thread has taken them meanwhile
                        self._take(self._jobs[0])
                except (Broken, Silence) as error:
                    self._reconnect(error, transport)
        return b"".join(job.answers)

    def _ask(self, job: Job) -> bytes:
        self._queue(job)
        return self._answer(job)

    def _take(self, job: Job) -> None:
        """Wait for the answer to a piece of the oldest request."""
        kind, payload = self._transport.receive(self._patience())
        with self._asking:
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
            emulated=self._hello.emulated, threaded=True,
        )  # fmt: skip

    def read(self, paths: Sequence[str]) -> list[str | None]:
        """What files below / of the runner's machine say, or names in folders; None where they do not."""
        jobs = [Job(READ, f"/{path}".encode()) for path in paths]
        for job in jobs:
            self._queue(job)
        return [answers.text_of(self._answer(job)) for job in jobs]

    def calibrate(self, samples: int = 400, nop: float = 0.0) -> Calibration:
        """Calibrate the clock; `nop` is the base of the canaries that an earlier calibration found."""
        self._nop = nop or self._nop
        answer = self._ask(Job(CALIBRATE, requests.CALIBRATE_LAYOUT.pack(samples, 0, self._nop)))
        return self._believe(lambda: answers.calibration_of(answer))

    def give_way(self) -> None:
        """From now on this thread's batches wait until nothing else is under way."""
        self._own.gives_way = True

    def is_answered(self) -> bool:
        """Whether the answer to this thread's oldest batch has come, or one that nobody took yet."""
        mine = self._own.submitted
        return bool(mine and not mine[0][0].pieces) or self._transport.is_answered()

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        """Start measuring a batch; `collect` waits for the answer."""
        if self._own.gives_way:
            self._transport.await_idle()
        head = requests.measure(effort)
        fitting = [max(one.instructions, len(one.code), len(one.setup)) <= _LARGEST for one in kernels]
        record = answers.RESULT * effort.rounds
        job = Job(MEASURE, head, list(compress(kernels, fitting)), record, effort.rounds)
        self._own.submitted.append((job, fitting))
        self._queue(job)

    def collect(self) -> list[list[Sample]]:
        """Samples per kernel and round of the oldest batch not yet collected."""
        job, fitting = self._own.submitted.popleft()
        answer, counted = self._answer(job), max(0, len(self._counters) - 1)
        samples = iter(self._believe(lambda: answers.samples_of(answer, counted)))
        return [list(islice(samples, job.rounds)) if fits else [_TOO_LARGE] * job.rounds for fits in fitting]

    def blocks(self, kernels: Sequence[Kernel], effort: BlockEffort) -> list[BlockSample]:
        """Time basic blocks as they are; `flags` of kernels are those of `kernel.program`."""
        answer = self._ask(Job(BLOCKS, requests.blocks(effort), kernels, answers.BLOCK))
        return self._believe(lambda: answers.blocks_of(answer))

    def burst(self, kernel: Kernel, effort: BurstEffort) -> BurstSample:
        """Time copies that run once, behind a read of the clock."""
        record = answers.BURST + answers.RUNS * effort.measurements
        answer = self._ask(Job(BURSTS, requests.bursts(effort), [kernel], record))
        return self._believe(lambda: answers.burst_of(answer, max(0, len(self._counters) - 1)))

    def probe(self, kernels: Sequence[Kernel]) -> list[Outcome]:
        """Run each body once, isolated."""
        answer = self._ask(Job(PROBE, bytes(16), kernels, answers.OUTCOME))
        return self._believe(lambda: answers.outcomes_of(answer))

    def differ(self, kernels: Sequence[Kernel], depth: Depth) -> list[Observation]:
        """Run each body from many states, changing one location at a time."""
        answer = self._ask(Job(DIFFER, requests.differ(depth), kernels, answers.OBSERVATION))
        return self._believe(lambda: answers.observations_of(answer, self._hello.isa))

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
        parts, pack = list[bytes](), requests.KERNEL_LAYOUT.pack
        if len(self._states) > _STATES // 2:
            self._states.clear()
        for kernel in kernels:
            setup, code, state = kernel.setup, kernel.code, self._state_index(kernel.state)
            head = pack(state, kernel.flags, kernel.instructions, len(setup), len(code))
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
