"""Probes asked by a thread of their own, while the one that began them thinks about other answers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import SimpleQueue

from cyclescope.backend.base import Backend
from cyclescope.isa.table import Table
from cyclescope.probe.question import Probe
from cyclescope.probe.run import Asked, ask


class AskedMeanwhile:
    """Probes under way on a backend that several threads may ask."""

    def __init__(self, probes: Iterable[Probe], backend: Backend, table: Table) -> None:
        self._found: SimpleQueue[Asked | BaseException | None] = SimpleQueue()
        self._asking = ask(probes, backend, table)
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            for asked in self._asking:
                self._found.put(asked)
            self._found.put(None)
        except BaseException as error:  # it is raised where the answers are taken
            self._found.put(error)

    def each(self) -> Iterator[Asked]:
        """What was asked, as it is answered. Raises what went wrong."""
        while (found := self._found.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
        self._thread.join()
