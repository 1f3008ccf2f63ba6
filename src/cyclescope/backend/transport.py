"""A runner as a process with pipes: starting it, frames in both directions, and how it ended.

The other side may be anybody: nothing is read that was not asked for, and no more than the answer may have.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

import msgspec

MAGIC = 0x31435343
FRAME = struct.Struct("<4I")
_BEGINNING = MAGIC.to_bytes(4, "little")
GOODBYE = 10.0  # seconds that a process has to end
_SAID = 2000  # bytes of its standard error that are kept
_SHORT = 4096  # bytes that any answer may have: an error
_SHOWN = 200  # characters of it
_LOOK = 1.0  # seconds between two looks whether anybody is still listened to, where none takes what is sent


def words(data: bytes) -> str:
    """What somebody says, in one line that is safe to print and not too long."""
    text = " ".join(data[-_SAID:].decode(errors="replace").split())
    return "".join(sign if sign.isprintable() else "?" for sign in text)[-_SHOWN:]


class End(msgspec.Struct, frozen=True):
    """How a process ended: its exit status, negative for a signal, None while it runs on; its last words.

    `strange` is what came in place of a frame.
    """

    code: int | None
    said: str = ""
    strange: bytes = b""

    def describe(self) -> str:
        """`was killed: Segmentation fault (...)`, `ended with exit status 1`, ..."""
        if self.strange:
            return "speaks another protocol"
        if self.code is None:
            end = "closed its output"
        elif self.code < 0:
            end = f"was killed: {signal.strsignal(-self.code)}"
        else:
            end = f"ended with exit status {self.code}"
        return end + (f" ({self.said[-200:]})" if self.said else "")


class Broken(Exception):
    """The connection is of no use any more."""

    def __init__(self, end: End) -> None:
        super().__init__(end.describe())
        self.end = end


class Silence(Exception):
    """Nothing was heard for too long."""


class Transport:
    """A command whose standard input and output carry frames. Raises OSError or RuntimeError if it cannot be.

    It runs in a process group of its own: a Ctrl-C is for this program to handle. It gets the open `files`.
    """

    def __init__(self, command: Sequence[str], files: Sequence[int] = ()) -> None:
        self.unanswered = 0
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0, pass_fds=tuple(files)
        )
        self._answers: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._said = self._strange = b""
        self._over = False  # nothing more will be read
        self._idle = threading.Event()  # no answer is to come
        self._idle.set()
        self._room: deque[int] = deque()  # that each answer still to come may take
        assert self.process.stdin is not None
        os.set_blocking(self.process.stdin.fileno(), False)
        self._heard = time.monotonic()
        self._threads: list[threading.Thread] = []
        try:
            for target in (self._listen, self._overhear):
                thread = threading.Thread(target=target, daemon=True)
                thread.start()
                self._threads.append(thread)
        except RuntimeError:
            self.close()
            raise

    # --- frames -----------------------------------------------------------------------------------

    def send(
        self,
        kind: int,
        payload: bytes,
        count: int = 0,
        *,
        patience: float | None = None,
        answered: bool = True,
        room: int = _SHORT,
    ) -> None:
        """Send a frame, `answered` if an answer will come, of at most `room` bytes (or SHORT, an error).

        Raises Broken, or Silence where for `patience` seconds not a byte was taken and none came.
        """
        self.unanswered += 2 if answered else 1  # until the frame is whole, lest a signal comes in between
        self._heard = time.monotonic()
        if answered:
            self._room.append(max(room, _SHORT))
            self._idle.clear()
        try:
            self._write(FRAME.pack(MAGIC, kind, len(payload), count) + payload, patience)
        except (OSError, ValueError) as error:
            raise Broken(self.ended()) from error
        self.unanswered -= 1
        self._heard = time.monotonic()

    def _write(self, data: bytes, patience: float | None) -> None:
        stream, left = self.process.stdin, memoryview(data)
        assert stream is not None
        room = select.poll()
        room.register(stream, select.POLLOUT)
        while left:
            seconds = self._patience_left(patience)
            if not room.poll(1000 * min(_LOOK, _LOOK if seconds is None else seconds)):
                if self._is_silent(patience):
                    raise Silence
                if self._over:
                    raise Broken(self.ended())
            elif taken := stream.write(left):
                left = left[taken:]
                self._heard = time.monotonic()

    def _patience_left(self, patience: float | None) -> float | None:
        return None if patience is None else max(0.0, self._heard + patience - time.monotonic())

    def _is_silent(self, patience: float | None) -> bool:
        """Whether nothing came meanwhile: more of a slow answer may have."""
        return self._patience_left(patience) == 0.0

    def receive(self, patience: float | None = None) -> tuple[int, bytes]:
        """Type and payload of the next frame.

        Raises Broken, or Silence where not a byte came for `patience` seconds.
        """
        while True:
            try:
                answer = self._answers.get(timeout=self._patience_left(patience))
            except Empty:
                if self._is_silent(patience):
                    raise Silence from None
                continue
            if answer is None:
                self._answers.put(None)
                raise Broken(self.ended())
            self.unanswered -= 1
            return answer

    def is_answered(self) -> bool:
        """Whether a frame is there that was not received."""
        return not self._answers.empty()

    def await_idle(self) -> None:
        """Wait until the other side has answered all that it was asked, or is gone."""
        self._idle.wait()

    def _listen(self) -> None:
        """Read answers as they come, so that neither side ever waits to write."""
        while beginning := self._read(len(_BEGINNING)):
            if beginning != _BEGINNING:
                self._strange = beginning + self._read_at_once(60)
                break
            header = beginning + self._read(FRAME.size - len(_BEGINNING))
            if len(header) < FRAME.size:
                break
            _, kind, length, _ = FRAME.unpack(header)
            if not self._room or length > self._room.popleft():  # nobody asked for it
                self._strange = header
                break
            payload = self._read(length)
            if len(payload) != length:
                break
            self._answers.put((kind, payload))
            if not self._room:
                self._idle.set()
        self._over = True
        self._answers.put(None)
        self._idle.set()

    def _read(self, size: int) -> bytes:
        """So many bytes, or what there is before the end."""
        stream = self.process.stdout
        assert stream is not None
        parts = []
        with suppress(OSError, ValueError):  # the stream was closed under us: the same as its end
            while size and (part := stream.read(size)):
                self._heard = time.monotonic()
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    def _read_at_once(self, size: int) -> bytes:
        """What there is already, of so many bytes."""
        stream = self.process.stdout
        assert stream is not None
        with suppress(OSError, ValueError):
            os.set_blocking(stream.fileno(), False)
            return stream.read(size) or b""
        return b""

    def _overhear(self) -> None:
        """Keep the last words, and let nobody wait to say more."""
        stream = self.process.stderr
        assert stream is not None
        with suppress(OSError, ValueError):
            while part := stream.read(_SAID):
                self._said = (self._said + part)[-_SAID:]

    # --- the end ----------------------------------------------------------------------------------

    def ended(self) -> End:
        """What is known of a process that is no more, or soon will be."""
        if self._strange:
            return End(None, self._last_words(), self._strange)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(GOODBYE)
        return End(self.process.returncode, self._last_words())

    def _last_words(self) -> str:
        if self._threads and self.process.returncode is not None:
            self._threads[-1].join(0.5)  # a process it left behind may hold the other end
        return words(self._said)

    def close(self, grace: float = 0.0) -> None:
        """End the process group if it is still there: at once, or `grace` seconds after being asked to."""
        if grace and self.process.poll() is None:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace)
        self._signal(signal.SIGKILL)
        self._release()

    def leave(self) -> None:
        """Close a process that was asked to end; end it where it does not."""
        try:
            self.process.wait(GOODBYE)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
        self._release()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def _release(self) -> None:
        self.process.wait()
        for thread in self._threads:
            thread.join(0.5)  # a process it left behind may hold the other end: then the thread stays
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
