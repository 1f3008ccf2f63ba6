"""A line that a kernel hands over, with this program as the other CPU."""

from __future__ import annotations

import mmap
import struct
import threading
from contextlib import closing

from cyclescope.backend.base import Effort
from cyclescope.backend.meeting import meeting
from cyclescope.backend.native import NativeBackend
from cyclescope.isa.table import load_table
from cyclescope.kernel.state import MET_SIZE
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler

_FEW = Effort(rounds=1, want=2, maximum=4, target=200.0)


class _Answering:
    """Adds one to the first word of a memory whenever somebody else has changed it."""

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory, self.answers = memory, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._answer)

    def __enter__(self) -> _Answering:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _answer(self) -> None:
        own = word(self.memory)
        while not self._stop.is_set():
            if word(self.memory) != own:
                own = word(self.memory) + 1
                self.memory[:8] = struct.pack("<Q", own)
                self.answers += 1


def word(memory: mmap.mmap) -> int:
    """The first word."""
    (value,) = struct.unpack_from("<Q", memory)
    return int(value)


def handed_over(isa: str) -> None:
    """Check the kernel of `core-to-core`: alone it goes on after a while, and it sees answers."""
    (case,) = PROBES["core-to-core"].cases(isa)
    point = case.points[0]
    kernel = Assembler(load_table(isa)).kernel(point.lines, point.flags, point.setting)
    with (
        meeting() as link,
        mmap.mmap(link.file, MET_SIZE) as memory,
        closing(NativeBackend(link=link)) as backend,
    ):

        def run() -> int:
            before = word(memory)
            backend.submit([kernel], _FEW)
            ((sample,),) = backend.collect()
            assert sample.usable
            return word(memory) - before

        assert run() > 0, "it writes though nobody answers"
        with _Answering(memory) as other:
            while other.answers < 10:
                assert run() > 0
