"""Readings of loops near the dispatch width, and whether their errors are what repeats differ by.

Every kernel is read by `bench` in several runs, each with a runner of its own, some of them beside one busy
loop per core. Readings that are `ok` have to be within 0.5 % of each other, and within 2 % of what the same
instructions take one by one; readings that are not are counted. Two of a kernel's readings have to be within
twice the larger of their errors in 95 of 100 cases.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from benchmarks.lib.common import Check, at_least, parser, present, table
from benchmarks.lib.processes import busy, cores
from cyclescope.errors import UsageError
from cyclescope.infer.api import calibrated, open_backend
from cyclescope.infer.snippets import text_kernel
from cyclescope.measure.bench import ROUNDS, time_kernel
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Measurement

RUNS, BESIDE = 5, 2  # of which beside busy loops
SAME, WRONG = 0.005, 0.02  # relative
COVERED = 0.95
REGISTERS = ("rax", "rcx", "rdx", "rbp", "r8", "r9", "r10", "r11")
CHAINS = ("imul rax, rbx", "add rax, 1", "lea rax, [rax+1]; imul rax, rbx")


def _each(text: str, count: int) -> str:
    """The instruction once for each of so many destinations."""
    return "; ".join(text.replace("DST", register) for register in REGISTERS[:count])


def _narrow(text: str) -> str:
    return text.replace("rax", "eax").replace("rcx", "ecx").replace("rdx", "edx").replace("rbp", "ebp")


LOADS = "; ".join(f"mov {register}, [rsi+{8 * n}]" for n, register in enumerate(REGISTERS[:4]))
NEAR = {
    "8 NOP": _each("nop", 8),
    "8 MOV": _each("mov DST, rbx", 8),
    "4 MOV of 32 bits, twice": "; ".join([_narrow(_each("mov DST, rbx", 4)).replace("rbx", "ebx")] * 2),
    "6 CMP": _each("cmp DST, rbx", 6),
    "6 TEST": _each("test DST, DST", 6),
    "4 CMP of 32 bits": _narrow(_each("cmp DST, rbx", 4)).replace("rbx", "ebx"),
    "6 LEA": _each("lea DST, [rbx+1]", 6),
    "2 loads, 2 CMP, 4 NOP": "mov rax, [rsi]; mov rcx, [rsi+8]; cmp rdx, rbx; cmp rbp, rbx; nop; nop; nop;"
    "nop",
    "4 loads, 4 NOP": f"{LOADS}; nop; nop; nop; nop",
    "8 of all kinds": "mov rax, [rsi]; mov rcx, rbx; lea rdx, [rbx+1]; cmp rbp, rbx; mov r8, rbx;"
    "test rbx, rbx; nop; mov r9, [rsi+8]",
    "8 XOR": _each("xor DST, DST", 8),
    "4 MOVZX, 4 MOV": _narrow(_each("movzx DST, bl", 4)) + "; mov r8, rbx; mov r9, rbx; mov r10, rbx;"
    "mov r11, rbx",
    "4 POPCNT": _each("popcnt DST, rbx", 4),
}  # fmt: skip
# Kernels that take a whole number of times as long as others, whatever the core.
MULTIPLES = (("4 POPCNT", "popcnt rax, rbx", 4), ("6 CMP", "cmp rax, rbx", 6), ("8 NOP", "nop", 8))


class Reading(NamedTuple):
    """One run's reading of a kernel; `run` counts from 0."""

    kernel: str
    run: int
    measured: Measurement

    @property
    def ok(self) -> bool:
        """Whether it claims to be right."""
        return self.measured.verdict == STABLE


def kernels() -> Mapping[str, str]:
    """All code that is read, by name."""
    return NEAR | {text: text for text in (*CHAINS, *(single for _, single, _ in MULTIPLES))}


def read(run: int, rounds: int) -> Iterator[Reading]:
    """A run over all kernels."""
    backend, identity = open_backend()
    with closing(backend):
        if backend.capabilities().isa != "x86-64" or identity.emulated:
            raise UsageError("the kernels are for x86-64", "run it on such a machine")
        calibrated(backend, identity)
        for name, text in kernels().items():
            yield Reading(name, run, time_kernel(backend, text_kernel(text, "", 1, "", "x86-64"), rounds))


def apart(values: Sequence[float]) -> float:
    """The largest relative difference."""
    return (max(values) - min(values)) / max(values) if values else 0.0


def good(readings: Sequence[Reading], name: str) -> list[Measurement]:
    """The readings of a kernel that claim to be right."""
    return [r.measured for r in readings if r.kernel == name and r.ok]


def covered(readings: Sequence[Reading]) -> tuple[int, int]:
    """Pairs of readings within twice their error, and all pairs."""
    pairs = [pair for name in kernels() for pair in itertools.combinations(good(readings, name), 2)]
    near = [abs(a.cycles - b.cycles) <= 2 * max(a.spread, b.spread) for a, b in pairs]
    return sum(near), len(near)


def lies(readings: Sequence[Reading]) -> list[Reading]:
    """Readings that claim to be right and are not: against the others, or against a single instruction."""
    truth = {
        name: statistics.median(m.cycles for m in found)
        for name in kernels()
        if (found := good(readings, name))
    }
    for name, single, count in MULTIPLES:
        if name in truth and single in truth:
            truth[name] = count * truth[single]
    return [r for r in readings if r.ok and abs(r.measured.cycles / truth[r.kernel] - 1) > WRONG]


def rows(readings: Sequence[Reading]) -> Iterator[tuple[str, ...]]:
    """A line per kernel: all readings, those that are not ok in brackets."""
    for name in kernels():
        found = [r for r in readings if r.kernel == name]
        values = [f"{r.measured.cycles:.4f}" if r.ok else f"({r.measured.cycles:.4f})" for r in found]
        error = max((m.spread for m in good(readings, name)), default=0.0)
        yield name, " ".join(values), f"{error:.4f}" if error else found[-1].measured.error


def judged(readings: Sequence[Reading]) -> list[Check]:
    """What the readings show."""
    names = [name for name in NEAR if good(readings, name)]
    same = sum(apart([m.cycles for m in good(readings, name)]) <= SAME for name in names)
    near, pairs = covered(readings)
    return [
        at_least(f"kernels near the width whose readings are within {SAME:.1%}", same, len(names), 1.0),
        Check(
            "readings that are ok and more than 2 % off", str(len(lies(readings))), "0", not lies(readings)
        ),
        at_least("pairs of readings within twice their error", near, pairs, COVERED),
        Check("kernels near the width without any reading that is ok", str(len(NEAR) - len(names))),
    ]


def readings(runs: int, beside: int, rounds: int) -> list[Check]:
    """All runs, the last ones beside busy loops."""
    found: list[Reading] = []
    for run in range(runs):
        with busy(cores() if run >= runs - beside else 0):
            found += read(run, rounds)
    head = ("kernel", f"cycles in {runs} runs, the last {beside} beside busy loops", "error")
    print(table(head, rows(found)))
    return judged(found)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--beside", type=int, default=BESIDE, help="of the runs, beside busy loops")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = options.parse_args()
    present("readings", lambda: readings(chosen.runs, chosen.beside, chosen.rounds))


if __name__ == "__main__":
    main()
