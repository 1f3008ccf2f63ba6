"""How much of the time a machine is left alone, told by a ruler that is not the product's."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SLOWER = 0.03  # what fills the core, beside what waits for itself: more than this, and it is shared
QUIET = 0.5  # of the time, at least: below, tests of real times are not what fails
ALONE = 0.02  # quantile that is taken for undisturbed: neighbours pause that often, interrupts are rarer
_seen: dict[int, float] = {}  # the least ratio by CPU, since neighbours may be there all the time


@cache
def _program():
    folder = tempfile.mkdtemp(prefix="quiet-")
    source = Path(__file__).with_suffix(".c")
    path = f"{folder}/quiet"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", path, source], check=True)
    return path


def share_alone(samples, wall, least=float("inf")):
    """(share of the wall-clock time in which pairs ran as if alone, least ratio of filled/waited)."""
    ratios = sorted(filled / waited for filled, waited in samples)
    least = min(least, ratios[int(ALONE * len(ratios))])
    alone = (pair for pair in samples if pair[0] / pair[1] <= least * (1 + SLOWER))
    return sum(map(sum, alone)) / wall, least


def _undisturbed(cpu):
    done = subprocess.run(["taskset", "-c", str(cpu), _program()], capture_output=True, text=True, check=True)
    *samples, wall = done.stdout.splitlines()
    pairs = [tuple(map(float, sample.split())) for sample in samples]
    share, _seen[cpu] = share_alone(pairs, float(wall), _seen.get(cpu, float("inf")))
    return share


def undisturbed():
    """Share of the time on the CPU that is left alone most, as commands choose one."""
    return max(map(_undisturbed, sorted(os.sched_getaffinity(0))))
