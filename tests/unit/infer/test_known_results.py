"""What a noisy campaign on a known core finds, number by number: what changes a result is seen here.

`python -m tests.unit.infer.test_known_results` writes what is expected; read the difference before
committing it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from cyclescope.infer.timing.results import FormTiming, Latency
from cyclescope.isa.table import load_table
from tests.support.comparison import campaign
from tests.support.forms import chosen
from tests.support.simulated import LOUD, SimulatedBackend
from tests.support.truth import Truth

EXPECTED = Path(__file__).parents[2] / "golden" / "x86-64" / "simulated" / "results.txt"
EVERY = 3  # of the forms of every kind, one


def results() -> str:
    """Everything that is said of some forms."""
    table, truth = load_table("x86-64"), Truth(1)
    with tempfile.TemporaryDirectory() as folder:
        backend = SimulatedBackend(truth, LOUD)
        run = campaign(table, truth, chosen(table)[::EVERY], Path(folder) / "store.sqlite", backend)
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
