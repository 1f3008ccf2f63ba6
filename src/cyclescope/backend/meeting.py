"""Runners of this machine whose kernels see the same memory, at MET_BASE."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSYS

from cyclescope.backend.link import Link, runner_path
from cyclescope.backend.transport import Transport
from cyclescope.errors import BackendUnavailable
from cyclescope.kernel.state import MET_SIZE


class MeetingLink(Link):
    """The runner of this machine, with memory that all runners started this way have in common.

    `file` is the open file of the memory, `started` are their processes.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self.started: list[int] = []

    def connect(self) -> Transport:
        """Start it. Raises BackendUnavailable."""
        transport = self._start([str(runner_path()), "--meet", str(self.file)], (self.file,))
        self.started.append(transport.process.pid)
        return transport


@contextmanager
def meeting() -> Iterator[MeetingLink]:
    """A way to such runners, as long as they are started. Raises BackendUnavailable."""
    try:
        file = os.memfd_create("cyclescope-meeting")
    except OSError as error:
        why = "this Linux has none" if error.errno == ENOSYS else str(error.strerror)
        raise BackendUnavailable(f"no memory for several runners ({why})") from error
    try:
        os.ftruncate(file, MET_SIZE)
        yield MeetingLink(file)
    finally:
        os.close(file)
