"""Timing basic blocks of programs: several passes over all of them, and a verdict for each.

A block is clean where two passes agree, and where the shorter half of its copies takes what the longer half
takes. It is not tried with fewer copies: what a core takes in before they can start makes them too fast.
What is not clean is counted with the reason; nothing is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from cyclescope.backend.base import (
    DIED,
    HANG,
    OK,
    PAGES,
    SIGNAL,
    SIGNALS,
    TOO_LONG,
    UNCLEAN,
    BlockBackend,
    BlockEffort,
    BlockSample,
)
from cyclescope.kernel.kernel import Kernel

CLEAN, UNSTABLE, NONLINEAR, DISTURBED_BLOCK, FAILED = "clean", "unstable", "nonlinear", "disturbed", "failed"

_AGREE = 0.02  # relative: passes that differ by less are the same but for the noise
_GRAIN = 0.005  # cycles: below, two values are the same; a tenth of what tells the fastest blocks apart
LINEAR = 0.05  # of a block's time: what the halves of the copies may differ by
AGREEING = 2  # passes
PASSES, MOST_PASSES = 3, 8  # over all blocks; over those that are not clean after these
BATCH = 50  # blocks between two words on the progress

_REASONS = {
    HANG: "it does not end within a second",
    TOO_LONG: "it is too long",
    UNCLEAN: "the core was disturbed all the time",
    PAGES: "it touches too many pages",
}
_SIGNALS = {
    "SIGFPE": "it divides by zero, or the quotient overflows",
    "SIGILL": "this CPU does not execute it",
    "SIGTRAP": "it runs into a breakpoint",
    "SIGSYS": "it makes a system call",
    "SIGBUS": "it uses an address that is not aligned, or not canonical",
}
_LOWEST_PAGE = 0x10000


class BlockTiming(msgspec.Struct, frozen=True):
    """Core cycles of a block, per copy or trip, or why there are none.

    `verdict` is `clean`, `unstable` (passes disagree), `nonlinear` (its time depends on the number of
    copies), `disturbed` (no quiet moment) or `failed`; `reason` says more where it is not clean. `spread` is
    the distance of the agreeing passes from each other, `linearity` what the shorter half of the copies takes
    over what the longer half takes; `passes` are the values of all passes.
    """

    cycles: float
    spread: float
    linearity: float
    verdict: str
    reason: str = ""
    pages: int = 0
    passes: tuple[float, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether the value can be trusted."""
        return self.verdict == CLEAN


def failed(reason: str) -> BlockTiming:
    """A block that cannot be timed."""
    return BlockTiming(0.0, 0.0, 0.0, FAILED, reason)


def time_blocks(
    backend: BlockBackend,
    kernels: Sequence[Kernel],
    effort: BlockEffort | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[BlockTiming]:
    """Time blocks in several passes, those that are not clean in some more.

    `report` is told how many measurements are done, and of how many at least.
    """
    return _Passes(backend, kernels, effort or BlockEffort(), report).timings()


class _Passes:
    def __init__(
        self,
        backend: BlockBackend,
        kernels: Sequence[Kernel],
        effort: BlockEffort,
        report: Callable[[int, int], None],
    ) -> None:
        self._backend, self._kernels, self._effort, self._report = backend, kernels, effort, report
        self._samples: list[list[BlockSample]] = [[] for _ in kernels]
        self._done, self._of = 0, PASSES * len(kernels)

    def timings(self) -> list[BlockTiming]:
        everything = list(range(len(self._kernels)))
        for number in range(MOST_PASSES):
            chosen = everything if number < PASSES else self._doubtful()
            self._of = max(self._of, self._done + len(chosen))
            self._pass(chosen, number)
        return [judged(samples) for samples in self._samples]

    def _doubtful(self) -> list[int]:
        """Blocks that another pass may make clean."""
        verdicts = [judged(samples).verdict for samples in self._samples]
        return [n for n, verdict in enumerate(verdicts) if verdict not in (CLEAN, FAILED)]

    def _pass(self, chosen: Sequence[int], number: int) -> None:
        effort = msgspec.structs.replace(self._effort, seed=self._effort.seed + number)
        for first in range(0, len(chosen), BATCH):
            some = chosen[first : first + BATCH]
            answers = self._backend.blocks([self._kernels[n] for n in some], effort)
            for n, sample in zip(some, answers, strict=True):
                self._samples[n].append(sample)
            self._done += len(some)
            self._report(self._done, self._of)


# --- verdicts --------------------------------------------------------------------------------------


def judged(samples: Sequence[BlockSample]) -> BlockTiming:
    """What the passes over a block say together."""
    broken = next((s for s in samples if s.status not in (OK, UNCLEAN)), None)
    if broken is not None:
        return msgspec.structs.replace(failed(_failure(broken)), pages=broken.pages)
    good = [s for s in samples if s.status == OK and s.cycles > 0]
    values = tuple(s.cycles for s in samples if s.status == OK)
    if not good:
        return BlockTiming(0.0, 0.0, 0.0, DISTURBED_BLOCK, _REASONS[UNCLEAN], passes=values)
    same = agreeing(good)
    cycles = statistics.median(s.cycles for s in same)
    spread = max(s.cycles for s in same) - min(s.cycles for s in same)
    linearity = statistics.median(s.linearity for s in same)
    verdict, reason = _verdict(same, cycles, linearity)
    return BlockTiming(cycles, spread, linearity, verdict, reason, same[0].pages, values)


def agreeing(samples: Sequence[BlockSample]) -> list[BlockSample]:
    """The most passes that agree with the fastest of them; of several such sets the fastest."""
    ordered = sorted(samples, key=lambda s: s.cycles)
    sets = [[s for s in ordered if 0 <= s.cycles - one.cycles <= _tolerance(one.cycles)] for one in ordered]
    return max(sets, key=len)


def _tolerance(cycles: float) -> float:
    return max(_AGREE * cycles, _GRAIN)


def _verdict(same: Sequence[BlockSample], cycles: float, linearity: float) -> tuple[str, str]:
    if len(same) < AGREEING:
        return UNSTABLE, "no two passes agree"
    if abs(linearity - 1) * cycles > max(LINEAR * cycles, _GRAIN):
        return NONLINEAR, f"fewer copies take {linearity:.2f} times as long each"
    return CLEAN, ""


def _failure(sample: BlockSample) -> str:
    """Why a block does not run, in words."""
    if sample.status == SIGNAL:
        name = SIGNALS.get(sample.detail, f"signal {sample.detail}")
        return _SIGNALS.get(name) or _segment(name, sample.address)
    if sample.status == DIED:
        return "it kills the process"
    return _REASONS.get(sample.status, "it was not run")


def _segment(name: str, address: int) -> str:
    if name != "SIGSEGV":
        return f"it ends with {name}"
    if address < _LOWEST_PAGE:
        return "it uses an address near 0, one that is not canonical or one that is not aligned"
    return "it uses an address that it cannot have"
