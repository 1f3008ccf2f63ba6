"""What a noisy campaign on a known core finds, number by number: what changes a result is seen here.

`python -m tests.unit.infer.test_known_results` writes what is expected; read the difference before
committing it.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cyclescope.backend.base import Sample
from cyclescope.infer.timing.results import FormTiming, Latency
from cyclescope.isa.table import load_table
from cyclescope.kernel.kernel import Kernel
from tests.support.code.forms import chosen
from tests.support.made.comparison import campaign
from tests.support.made.simulated import LOUD, SimulatedBackend
from tests.support.made.truth import Truth

EXPECTED = Path(__file__).parents[2] / "golden" / "x86-64" / "simulated" / "results.txt"
EVERY = 3  # of the forms of every kind, one


class Repeating(SimulatedBackend):
    """A noisy core whose noise is a kernel's own: what else is measured, and when, changes nothing."""

    def __init__(self) -> None:
        super().__init__(Truth(1), LOUD)
        self._visits: Counter[bytes] = Counter()

    def collect(self) -> list[list[Sample]]:
        kernels, effort = self._queue.popleft()
        self._visits.update(kernel.code for kernel in kernels)
        return [
            [self._sample(kernel, effort, self._draw(kernel, turn)) for turn in range(effort.rounds)]
            for kernel in kernels
        ]

    def _draw(self, kernel: Kernel, turn: int) -> random.Random:
        return random.Random(f"{kernel.code.hex()} {self._visits[kernel.code]} {turn}")


def results() -> str:
    """Everything that is said of some forms."""
    table = load_table("x86-64")
    with tempfile.TemporaryDirectory() as folder:
        backend = Repeating()
        run = campaign(table, backend.truth, chosen(table)[::EVERY], Path(folder) / "store.sqlite", backend)
    return "".join(f"{line}\n" for timing in run.timings for line in _lines(timing))


def _lines(timing: FormTiming) -> Iterator[str]:
    found = timing.throughput
    yield f"{timing.id}: {timing.status} {timing.idiom} {'; '.join(timing.notes)}".rstrip()
    if found is not None:
        told = (found.value, found.spread, found.kind, found.confidence, found.note)
        yield f"  throughput {' '.join(map(str, told))}".rstrip()
        yield f"    {' '.join(f'{name}={cycles}' for name, cycles in sorted(found.variants.items()))}"
    yield from map(_line, timing.latencies)


def _line(lat: Latency) -> str:
    values = (
        f"{lat.source}->{lat.target}", lat.min, lat.max, lat.kind, lat.spread, lat.confidence, lat.bounds,
        lat.convention, lat.values or "", lat.bypass or "", lat.note or lat.reason,
    )  # fmt: skip
    return f"  {' '.join(map(str, values))}".rstrip()


def test_results_are_what_they_were():
    assert results().splitlines() == EXPECTED.read_text().splitlines()


if __name__ == "__main__":
    EXPECTED.write_text(results())
