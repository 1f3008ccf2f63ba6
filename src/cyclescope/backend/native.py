"""The runner of this machine: a separate C process behind a small binary protocol."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from errno import EAGAIN, EMFILE, ENFILE, ENOEXEC, ENOMEM
from importlib import resources
from math import isnan
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from cyclescope.backend.base import (
    Calibration,
    Capabilities,
    Depth,
    Effort,
    Observation,
    Outcome,
    Sample,
)
from cyclescope.errors import BackendUnavailable
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.locations import BYTES, END
from cyclescope.kernel.state import MachineState

MAGIC, VERSION = 0x31435343, 4
HELLO, SETUP, CALIBRATE, STATE, MEASURE, PROBE, DIFFER, QUIT, ERROR = range(1, 10)
_STRANGE = 0  # no frame at all
_FRAME = struct.Struct("<4I")
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
_PAD = (b"", b"\0\0\0", b"\0\0", b"\0")
_ISAS = {1: "x86-64", 2: "aarch64", 3: "riscv64"}
_PATIENCE = 10.0  # seconds for a first answer, and for a last goodbye
_SCARCE = (EAGAIN, EMFILE, ENFILE, ENOMEM)
_LIMITS = "end other programs, or raise the limits of this shell (ulimit -a)"
_REINSTALL = "reinstall with `pip install .` and a C compiler, or set CYCLESCOPE_RUNNER"


def runner_path() -> Path:
    """The runner built with the package. Raises BackendUnavailable where there is none."""
    override = os.environ.get("CYCLESCOPE_RUNNER")
    path = Path(override) if override else Path(str(resources.files("cyclescope"))) / "native/runner"
    if not path.is_file():
        raise BackendUnavailable(f"the runner {path} is missing", _REINSTALL)
    if not os.access(path, os.X_OK):
        raise BackendUnavailable(f"the runner {path} is not executable", f"`chmod +x {path}`")
    return path


class NativeBackend:
    """Kernels on this machine, pinned to one CPU."""

    def __init__(self, cpu: int = -1, events: Sequence[tuple[str, int, int]] = ()) -> None:
        self._events = events
        self._unanswered = 0
        self._closed = False
        self._process = self._start()
        self._answers: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._states: dict[int, tuple[int, MachineState]] = {}
        self._submitted: deque[tuple[int, int]] = deque()
        try:
            self._start_listening()
            self._hello = self._read_hello()
            self._cpu, self._notes, self._counters = self._setup(cpu)
        except BackendUnavailable as error:
            self._kill()
            self.close()
            error.remedy = error.remedy or _REINSTALL
            raise

    # --- protocol ---------------------------------------------------------------------------------

    def _start(self) -> subprocess.Popen[bytes]:
        """The runner, in a process group of its own: a Ctrl-C is for this program to handle."""
        pipe = subprocess.PIPE
        path = str(runner_path())
        try:
            return subprocess.Popen([path], stdin=pipe, stdout=pipe, stderr=pipe, process_group=0)
        except OSError as error:
            why = "is no program for this CPU" if error.errno == ENOEXEC else "cannot be started"
            remedy = _LIMITS if error.errno in _SCARCE else _REINSTALL
            raise BackendUnavailable(f"the runner {path} {why} ({error.strerror})", remedy) from error

    def _start_listening(self) -> None:
        try:
            threading.Thread(target=self._listen, daemon=True).start()
        except RuntimeError as error:
            raise BackendUnavailable(f"the runner cannot be listened to ({error})", _LIMITS) from error

    def _send(self, kind: int, payload: bytes, count: int = 0) -> None:
        stream = self._process.stdin
        assert stream is not None
        self._unanswered += 1  # until the frame is whole, lest a signal comes in between
        try:
            stream.write(_FRAME.pack(MAGIC, kind, len(payload), count) + payload)
            stream.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._lost() from error
        self._unanswered -= 1

    def _request(self, kind: int, payload: bytes, count: int = 0) -> None:
        """Send what will be answered."""
        self._unanswered += 1
        self._send(kind, payload, count)

    def _listen(self) -> None:
        """Read answers as they come, so that neither side ever waits to write."""
        stream = self._process.stdout
        assert stream is not None
        try:
            while len(header := stream.read(_FRAME.size)) == _FRAME.size:
                magic, kind, length, _ = _FRAME.unpack(header)
                if magic != MAGIC:
                    self._answers.put((_STRANGE, header))
                    return
                payload = stream.read(length)
                if len(payload) != length:
                    break
                self._answers.put((kind, payload))
        except (OSError, ValueError):  # the stream was closed under us: the same as its end
            self._answers.put(None)
            return
        self._answers.put(None)

    def _receive(self, kind: int, patience: float | None = None) -> bytes:
        try:
            answer = self._answers.get(timeout=patience)
        except Empty:
            raise BackendUnavailable(f"the runner has not answered for {patience:g} s", _REINSTALL) from None
        if answer is None:
            self._answers.put(None)
            raise self._lost()
        self._unanswered -= 1
        got, payload = answer
        if got == ERROR:
            raise BackendUnavailable(f"the runner refused: {payload.decode(errors='replace')}")
        if got != kind:
            raise BackendUnavailable("the runner speaks another protocol", _REINSTALL)
        return payload

    def _lost(self) -> BackendUnavailable:
        """What is known of a runner that is no more."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        code = self._process.returncode
        if code is None:
            end = "closed its output"
        elif code < 0:
            end = f"was killed: {signal.strsignal(-code)}"
        else:
            end = f"ended with exit status {code}"
        stream = self._process.stderr
        assert stream is not None
        os.set_blocking(stream.fileno(), False)  # a process it left behind may hold the other end
        said = " ".join((stream.read() or b"").decode(errors="replace").split())
        return BackendUnavailable(f"the runner {end}" + (f" ({said[-200:]})" if said else ""))

    def _read_hello(self) -> tuple[int, tuple[Any, ...], int]:
        self._request(HELLO, b"")
        payload = self._receive(HELLO, _PATIENCE)
        version = int.from_bytes(payload[:4], "little")
        if version != VERSION or len(payload) < _HELLO.size:
            raise BackendUnavailable(f"the runner speaks protocol {version}, not {VERSION}", _REINSTALL)
        version, isa, count, _, *_, xcr0 = _HELLO.unpack_from(payload)
        leaves = tuple(_LEAF.iter_unpack(payload[_HELLO.size : _HELLO.size + count * _LEAF.size]))
        return isa, leaves, xcr0

    def _setup(self, cpu: int) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        events = b"".join(_EVENT.pack(kind, 0, config) for _, kind, config in self._events)
        events += bytes(_EVENT.size * (_COUNTERS - len(self._events)))
        self._request(SETUP, _SETUP.pack(cpu, len(self._events)) + events)
        got, pin, filtered, counter, opened, _ = _SETUP_REPLY.unpack(self._receive(SETUP))
        notes = []
        if pin:
            notes.append(f"not pinned to CPU {cpu}: {os.strerror(pin)}")
        if filtered:
            notes.append(f"system calls of kernels are not stopped: {os.strerror(filtered)}")
        if self._events and opened < len(self._events):
            notes.append(f"performance counters: {os.strerror(counter)}")
        return got, tuple(notes), tuple(name for name, _, _ in self._events[:opened])

    # --- backend ----------------------------------------------------------------------------------

    def capabilities(self) -> Capabilities:
        """What this backend is."""
        isa, leaves, xcr0 = self._hello
        clock = "core cycles (perf_event)" if self._counters else "time-stamp counter"
        return Capabilities(
            _ISAS[isa], "native runner", self._cpu, clock, self._counters,
            leaves, xcr0, self._notes,
        )  # fmt: skip

    def calibrate(self, samples: int = 400) -> Calibration:
        """Calibrate the clock (about a millisecond per 100 samples)."""
        self._request(CALIBRATE, struct.pack("<2I", samples, 0))
        return Calibration(*_CALIBRATION.unpack(self._receive(CALIBRATE)))

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        """Start measuring a batch; `collect` waits for the answer."""
        head = _MEASURE.pack(
            effort.rounds, effort.want, effort.maximum, effort.seed & 0xFFFFFFFF, effort.target
        )
        self._request(MEASURE, head + self._pack(kernels), len(kernels))
        self._submitted.append((len(kernels), effort.rounds))

    def collect(self) -> list[list[Sample]]:
        """Samples per kernel and round of the oldest batch not yet collected."""
        count, rounds = self._submitted.popleft()
        payload = self._receive(MEASURE)
        samples = [self._sample(row) for row in _RESULT.iter_unpack(payload)]
        return [samples[i * rounds : (i + 1) * rounds] for i in range(count)]

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
        self._request(PROBE, bytes(16) + self._pack(kernels), len(kernels))
        payload = self._receive(PROBE)
        return [
            Outcome(status, detail, address, instruction)
            for address, status, detail, instruction, _ in _OUTCOME.iter_unpack(payload)
        ]

    def differ(self, kernels: Sequence[Kernel], depth: Depth) -> list[Observation]:
        """Run each body from many states, changing one location at a time."""
        head = _DIFFER.pack(depth.bases, depth.perturbations, depth.seed & 0xFFFFFFFF, 0)
        self._request(DIFFER, head + self._pack(kernels), len(kernels))
        return [_observation(row) for row in _OBSERVATION.iter_unpack(self._receive(DIFFER))]

    def close(self) -> None:
        """End the runner, at once if it is still at work."""
        if self._closed:
            return
        self._closed = True
        if self._unanswered:
            self._kill()
        with suppress(BackendUnavailable):  # it is gone already
            self._send(QUIT, b"")
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._kill()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):  # what a dead runner never read
                    stream.close()
        self._process.wait()

    def _kill(self) -> None:
        """End the runner and its workers."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

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
        self._send(STATE, struct.pack("<2I", index, 0) + state.packed)
        return index


def _observation(row: tuple[Any, ...]) -> Observation:
    status, detail, address, bases, trials, faults, _, present, written, unstable, matrix = row
    rows = ((n, matrix[n * BYTES : (n + 1) * BYTES]) for n in range(END))
    depends = tuple((n, _set(bits)) for n, bits in rows if any(bits))
    outcome = Outcome(status, detail, address)
    return Observation(outcome, bases, trials, faults, _set(present), _set(written), _set(unstable), depends)


def _set(bits: bytes) -> int:
    return int.from_bytes(bits, "little")
