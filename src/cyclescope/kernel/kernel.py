"""Kernels: code to be timed."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.state import MachineState

CANARY, WITHOUT_LOOP, FAST, LONG, WATCHED = 1, 2, 4, 8, 16


class Kernel(msgspec.Struct, frozen=True):
    """A body that is repeated, after a setup that runs once, from a given state.

    `code` and `setup` are machine code; `instructions` counts the instructions of the body.
    `flags` is a combination of CANARY (a throughput kernel: count only samples taken while the core
    is undisturbed), WITHOUT_LOOP (no loop around the body), FAST (not slow: a loop of some
    hundred instructions, within 3 KB; with WATCHED a short loop), LONG (the same, of any size) and WATCHED
    (a chain: count only such samples, too).
    """

    code: bytes
    instructions: int
    state: MachineState
    setup: bytes = b""
    flags: int = 0
    body: tuple[Instruction, ...] = ()

    def text(self) -> str:
        """The body as Intel-syntax assembly, one instruction per line."""
        return "\n".join([instruction.text for instruction in self.body])


def kernel_of(body: Iterable[Instruction], state: MachineState, setup: bytes = b"", flags: int = 0) -> Kernel:
    """The kernel of a list of instructions."""
    items = tuple(body)
    code = b"".join([i.code for i in items])
    return Kernel(code, len(items), state, setup, flags, items)
