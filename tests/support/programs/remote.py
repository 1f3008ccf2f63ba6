"""Runners on the other side of a link, and what is measured through it."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.backend.base import Effort
from cyclescope.backend.native import NativeBackend
from cyclescope.backend.remote import link_to
from cyclescope.errors import BackendUnavailable
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state

# A runner whose answers tell the kernels apart: the first byte of the body is the number of cycles.
TELLING = """
def bodies(payload, count):
    place = 24
    for _ in range(count):
        state, flags, instructions, setup, body = struct.unpack_from("<I4H", payload, place)
        yield payload[place + 12 + setup] if state in STATES else 255
        place += (12 + setup + body + 3) // 4 * 4

older = answer
def answer(kind, payload, count):
    if kind != MEASURE:
        return older(kind, payload, count)
    rounds, = struct.unpack_from("<I", payload)
    return b"".join(result(float(body)) * rounds for body in bodies(payload, count))
"""
ONCE = """
def before(name="once"):
    return os.path.exists(os.path.dirname(sys.argv[0]) + "/" + name)

def once(name="once"):
    try:
        os.close(os.open(os.path.dirname(sys.argv[0]) + "/" + name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
oldest = answer
"""
TARGET = "ssh://someone@board:2222"


def opened(target=TARGET):
    return closing(NativeBackend(0, link=link_to(target)))


STATES = [default_state(level) for level in range(4)]


def kernels(count):
    return [Kernel(bytes([n % 251]), 1, STATES[n % 4], b"\xcc" * (n % 3)) for n in range(count)]


def measured(backend, count=200, batches=2, rounds=2):
    """What comes back of some batches, in flight together; the cycles tell the kernels apart."""
    for _ in range(batches):
        backend.submit(kernels(count), Effort(rounds=rounds))
    answers = [backend.collect() for _ in range(batches)]
    expected = [[float(n % 251)] * rounds for n in range(count)]
    assert [[[s.cycles for s in samples] for samples in answer] for answer in answers] == [expected] * batches


def refused(target=TARGET):
    with pytest.raises(BackendUnavailable) as error, opened(target):
        pass
    assert "\n" not in str(error.value)
    assert error.value.remedy
    return str(error.value)
