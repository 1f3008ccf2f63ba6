"""Cost as the work grows: wall time and peak memory for 100, 1000 and all forms, drawn with a fixed seed.

The time is linear where a form costs no more in the large step than in the small one: seconds per form
from 1000 to all against seconds per form from 100 to 1000. Memory is flat where going from 1000 to all
forms adds no more than half of what 1000 forms need.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, parser, present, table
from benchmarks.lib.processes import Laboratory, Run, measured
from benchmarks.lib.results import forms

SEED = 2
SIZES = (100, 1000)
LINEAR, FLAT = 1.5, 1.5  # the most that a form, or the memory, may grow from 1000 forms to all


class Point(msgspec.Struct, frozen=True):
    """One size: forms asked for, and the run."""

    forms: int
    run: Run


def sample(size: int, seed: int = SEED) -> list[str]:
    """Ids of so many forms of the table; a larger sample contains the smaller ones."""
    ids = [form.id for form in forms()]
    random.Random(seed).shuffle(ids)
    return ids[:size]


def slopes(points: Sequence[Point]) -> list[float]:
    """Seconds per additional form from each size to the next."""
    steps = pairwise(points)
    return [(b.run.seconds - a.run.seconds) / (b.forms - a.forms) for a, b in steps]


def checks(points: Sequence[Point]) -> list[Check]:
    """Whether time is linear and memory flat."""
    small, large = slopes(points)[-2:]
    before, after = points[-2].run, points[-1].run
    steps = f"{small * 1000:.2f} ms a form to {points[-2].forms}, {large * 1000:.2f} ms to {points[-1].forms}"
    result = [Check("time is linear", steps, f"<= {LINEAR:g} x", large <= LINEAR * small)]
    for name in ("python", "runner"):
        one, two = getattr(before, name), getattr(after, name)
        result.append(
            Check(
                f"memory is flat: {name}", f"{one:.0f} to {two:.0f} MiB", f"<= {FLAT:g} x", two <= FLAT * one
            )
        )
    return result


def scaling(laboratory: Laboratory, sizes: Sequence[int] = SIZES) -> Sequence[Check]:
    """Measure samples and everything."""
    points = []
    for size in sizes:
        store = laboratory.folder / f"sample{size}.sqlite"
        points.append(Point(size, measured(store, *sample(size))))
    points.append(Point(len(forms()), laboratory.full("first")[0]))
    rows = [
        (p.forms, f"{p.run.seconds:.1f}", f"{1000 * p.run.seconds / p.forms:.2f}", *_memory(p.run))
        for p in points
    ]
    print(table(("forms", "s", "ms per form", "Python MiB", "runner MiB"), rows))
    return checks(points)


def _memory(run: Run) -> tuple[str, str]:
    return f"{run.python:.0f}", f"{run.runner:.0f}"


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="sample sizes, at least two")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        present("scaling", lambda: scaling(Laboratory(Path(folder)), chosen.sizes))


if __name__ == "__main__":
    main()
