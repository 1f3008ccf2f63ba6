"""What a thread of its own asks a backend, while the one that began it thinks about other answers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

from cyclescope.backend.base import Backend
from cyclescope.backend.native import NativeBackend

Made = TypeVar("Made")


class Meanwhile(Generic[Made]):
    """What `asking` a backend makes, from `begin` on where it may be asked `apart`, by several threads.

    A runner measures for it while it has nothing else to do. Else, or if nobody calls it, the backend is
    asked when the answers are taken.
    """

    def __init__(self, asking: Iterable[Made], backend: Backend, apart: bool = True) -> None:
        self._apart = apart
        self._found: SimpleQueue[Made | BaseException | None] = SimpleQueue()
        self._backend = backend
        self._asking = iter(asking)
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
            for made in self._asking:
                self._found.put(made)
            self._found.put(None)
        except BaseException as error:  # it is raised where the answers are taken
            self._found.put(error)

    def there(self) -> Iterator[Made]:
        """What is there by now. Raises what went wrong."""
        while not self._found.empty() and (found := self._next()) is not None:
            yield found

    def each(self) -> Iterator[Made]:
        """All that is left, as it is answered. Raises what went wrong."""
        if self._thread is None:
            yield from self._asking
            return
        while (found := self._next()) is not None:
            yield found
        self._thread.join()

    def _next(self) -> Made | None:
        found = self._found.get()
        if found is None or isinstance(found, BaseException):
            self._found.put(found)  # for whoever asks again
        if isinstance(found, BaseException):
            raise found
        return found
