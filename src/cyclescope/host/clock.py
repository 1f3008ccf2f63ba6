"""What the runner's clock is where there are no performance counters."""

from __future__ import annotations

from cyclescope.host.identity import OF_AARCH64, OF_RISCV64, RUNNER_LEAF, Leaves, isa_of

_COUNTS_CYCLES = 2  # of enum runner_bits in native/protocol.h
_NAMES = {OF_AARCH64: "generic timer (cntvct_el0)", OF_RISCV64: "timer (time)"}


def clock_name(leaves: Leaves) -> str:
    """The clock's name, with the register it is read from."""
    if leaves.get(RUNNER_LEAF, (0,))[0] & _COUNTS_CYCLES:
        return "core cycles (cycle)"
    return _NAMES.get(isa_of(leaves), "time-stamp counter")
