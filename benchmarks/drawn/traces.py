"""What the code of a kernel does when it runs: places, branches, calls and trips, step by step."""

from __future__ import annotations

import numpy

from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import Kernel

_WHOLE = (1 << 64) - 1
_REGISTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))
_NAMES = {name: number for number, name in enumerate(_REGISTERS)}


class Trace:
    """What code does: places that it executes, branches that it takes, calls and returns, trips of a loop.

    `chain` are additions to one register, a cycle each.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.jumps: list[int] = []
        self.calls: list[tuple[str, int, int]] = []
        self.places: list[int] = []
        self.trips = self.chain = 0
        self.is_serial = False
        self._run(kernel)

    def _run(self, kernel: Kernel) -> None:
        starts, ends, at = [], [], 0
        for one in kernel.body:
            starts.append(at)
            at += len(_code(one))
            ends.append(at)
        number = dict(zip(starts, range(len(starts)), strict=True))
        registers = {name: kernel.state.general[n] for name, n in _NAMES.items()}
        stack: list[int] = []
        now = 0
        while now < len(starts):
            one, begin, end = kernel.body[now], starts[now], ends[now]
            self.places.append(begin)
            name, to = one.form.id, end
            distance = one.immediates[0] if one.immediates else 0
            if name.startswith("JMP"):
                to = end + distance
            elif name.startswith("CALL"):
                stack.append(end)
                to = end + distance
                self.calls.append(("call", begin, end))
            elif name.startswith("RET"):
                to = stack.pop()
                self.calls.append(("return", begin, to))
            elif name.startswith("POP"):
                stack.pop()
            elif name.startswith("LEA_R"):
                registers["lea"] = end + one.displacement
            elif name.startswith("PUSH"):
                stack.append(registers["lea"])
            elif name.startswith("ADD_01"):
                target, source = (word.strip(",") for word in one.text.split()[1:])
                registers[target] = registers[target] + registers[source] & _WHOLE
                registers["last"] = registers[target]
                self.chain += 1
            elif name.startswith("JNZ"):
                self.trips += 1
                to = end + distance if registers["last"] else end
            elif name == "LFENCE":
                self.is_serial = True
            if to != end or name.startswith(("JMP", "CALL", "RET")):
                self.jumps.append(begin)
            now = number.get(to, len(starts))


_TRACES: dict[tuple[bytes, tuple[int, ...]], Trace] = {}


def traced(kernel: Kernel) -> Trace:
    """What a kernel does, which no core changes."""
    key = kernel.code, kernel.state.general
    if key not in _TRACES:
        _TRACES[key] = Trace(kernel)
    return _TRACES[key]


_SIZES: dict[bytes, numpy.ndarray] = {}


def instruction_sizes(kernel: Kernel) -> numpy.ndarray:
    """Bytes of each instruction of a body."""
    if kernel.code not in _SIZES:
        _SIZES[kernel.code] = numpy.array([len(_code(one)) for one in kernel.body])
    return _SIZES[kernel.code]


_CODES: dict[int, tuple[Instruction, bytes]] = {}


def _code(one: Instruction) -> bytes:
    """Its bytes; lines of kernels are equal objects."""
    if id(one) not in _CODES:
        _CODES[id(one)] = one, one.code
    return _CODES[id(one)][1]
