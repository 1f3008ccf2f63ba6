"""Events that the kernel counts for a process: perf_event_open, by its number."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import cache

from cyclescope.host.uname import host_isa

_NUMBERS = {"x86-64": 298, "aarch64": 241, "riscv64": 241}  # of the system call
_SIZE = 112  # bytes of the attributes: version 5
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_TIMES = 1 | 2  # the time it was enabled, the time it ran
_CLOSE_ON_EXEC = 8
SOFTWARE = 1


_COUNT = struct.Struct("=QQQ")  # the value, nanoseconds enabled, nanoseconds counted


@cache
def _kernel() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def open_event(kind: int, config: int, process: int = 0, inherit: bool = False) -> int:
    """A file of an event that counts from now on: of a thread, with the threads that it starts if `inherit`.

    What the kernel does for the thread counts for events of the kernel itself only. Raises OSError.
    """
    flags = (_INHERIT if inherit else 0) | (0 if kind == SOFTWARE else _NO_KERNEL | _NO_HYPERVISOR)
    head = struct.pack("=IIQQQQQ", kind, _SIZE, config, 0, 0, _TIMES, flags)
    attributes = ctypes.create_string_buffer(head, _SIZE)
    number = _NUMBERS[host_isa()]
    found: int = _kernel().syscall(number, attributes, process, -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


def read_event(file: int) -> tuple[float, float]:
    """What an event counted, and the share of the time that it did: others may have had its counter.

    Times are those of the thread: one that never ran has none, and nothing was missed.
    """
    value, enabled, ran = _COUNT.unpack(os.read(file, _COUNT.size))
    if enabled == 0:
        return float(value), 1.0
    return (value * enabled / ran if ran else 0.0), ran / enabled


def why_not(error: OSError) -> str:
    """Why an event cannot be counted, in words."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return "the kernel forbids it (kernel.perf_event_paranoid, or the process is another user's)"
    if error.errno == errno.ESRCH:
        return "there is no such process"
    if error.errno == errno.ENOSYS:
        return "this kernel has no performance events"
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL):
        return "this machine has no such counter"
    return error.strerror or "it cannot be opened"
