"""A backend that says whether it is still at work."""

from __future__ import annotations

import threading
import time
from contextlib import closing

from cyclescope.backend.base import Effort, WaitingBackend
from cyclescope.backend.native import NativeBackend
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state

SLOW = "quick = answer\ndef answer(*asked): time.sleep(0.3 * (asked[0] == MEASURE)); return quick(*asked)\n"


def test_it_says_whether_an_answer_has_come_that_nobody_took(runner):
    runner(SLOW)
    with closing(NativeBackend(0)) as backend:
        assert isinstance(backend, WaitingBackend)
        backend.submit([Kernel(b"\x90", 1, default_state(0))], Effort())
        assert not backend.is_answered()
        end = time.monotonic() + 10
        while not backend.is_answered():
            assert time.monotonic() < end
        backend.collect()
        assert not backend.is_answered()


def test_an_answer_that_another_thread_took_on_its_way_to_its_own_has_come(runner):
    runner(SLOW)
    kernels = [Kernel(b"\x90", 1, default_state(0))]
    with closing(NativeBackend(0)) as backend:
        backend.submit(kernels, Effort())

        def ask():
            backend.submit(kernels, Effort())
            backend.collect()

        other = threading.Thread(target=ask)
        other.start()
        other.join(10)
        assert backend.is_answered()
        assert len(backend.collect()) == 1
        assert not backend.is_answered()
