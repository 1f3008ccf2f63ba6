"""Probes asked by a thread of their own, while the one that began them thinks about other answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from queue import SimpleQueue

from cyclescope.backend.base import Backend
from cyclescope.backend.native import NativeBackend
from cyclescope.isa.table import Table
from cyclescope.probe.question import Probe
from cyclescope.probe.run import Asked, ask


class AskedMeanwhile:
    """Probes that are asked from `begin` on where the backend may be asked `apart`, by several threads.

    A runner measures them while it has nothing else to do. Else, or if nobody calls it, they are asked when
    their answers are taken. `total` is their number.
    """

    def __init__(self, probes: Sequence[Probe], backend: Backend, table: Table, apart: bool = True) -> None:
        self.total = len(probes)
        self._apart = apart
        self._found: SimpleQueue[Asked | BaseException | None] = SimpleQueue()
        self._backend = backend
        self._asking = ask(probes, backend, table)
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Ask while other things are done: the backend has time."""
        if self._apart and self._thread is None:
            self._thread = threading.Thread(target=self._ask, daemon=True)
            self._thread.start()

    def _ask(self) -> None:
        try:
            if isinstance(self._backend, NativeBackend):
                self._backend.give_way()
            for asked in self._asking:
                self._found.put(asked)
            self._found.put(None)
        except BaseException as error:  # it is raised where the answers are taken
            self._found.put(error)

    def each(self) -> Iterator[Asked]:
        """What was asked, as it is answered. Raises what went wrong."""
        if self._thread is None:
            yield from self._asking
            return
        while (found := self._found.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
        self._thread.join()
