"""Two full runs compared value by value; with --busy the second beside one busy loop per core.

Two values are the same within 2 % (3 % with --busy) or 0.01 cycles, the last digit that is
published. A value that only one of the runs has counts as different. Port usages of high or medium
confidence in both are the same as printed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.lib.agreement import Comparison, compare
from benchmarks.lib.common import Check, at_least, parser, present, table
from benchmarks.lib.processes import Laboratory, cores
from benchmarks.lib.results import claimed, latencies, read, throughputs
from cyclescope.infer.timing.results import FormTiming

QUIET = (0.02, 0.99)  # tolerance, share of the values within it
LOADED = (0.03, 0.98)
SAME_USAGES = 0.99


def differences(
    one: Sequence[FormTiming], two: Sequence[FormTiming], tolerance: float
) -> tuple[Comparison, Comparison]:
    """Throughputs and latencies of two runs."""
    return (
        compare(throughputs(one), throughputs(two), tolerance),
        compare(latencies(one), latencies(two), tolerance),
    )


def checks(what: str, found: tuple[Comparison, Comparison], tolerance: float, least: float) -> list[Check]:
    """Together against the target, and each kind for itself."""
    both = found[0].joined(found[1])
    name = f"{what}: values within {tolerance:.0%}"
    parts = zip(("throughputs", "latencies"), found, strict=True)
    return [
        at_least(name, both.same, both.total, least),
        *(Check(f"{what}: {kind}", at_least("", c.same, c.total, least).found) for kind, c in parts),
        Check(f"{what}: values in one run only", str(len(both.lost))),
    ]


def worst(found: Comparison, count: int) -> str:
    """The values furthest apart."""
    rows = [
        (form, f"{source} -> {target}" if source else "throughput", f"{a:.2f}", f"{b:.2f}", f"{far:.1%}")
        for far, (form, source, target), a, b in found.moved[:count]
    ]
    return table(("form", "value", "first", "second", "apart"), rows) if rows else "all values agree"


def repeat(laboratory: Laboratory, loops: int, count: int = 30) -> Sequence[Check]:
    """A second run, quiet or beside busy loops, against the first."""
    _, first = laboratory.full("first")
    _, second = laboratory.full("busy", loops) if loops else laboratory.full("second")
    tolerance, least = LOADED if loops else QUIET
    return between(
        first, second, f"beside {loops} busy loops" if loops else "two runs", tolerance, least, count
    )


def between(
    first: Path, second: Path, what: str, tolerance: float, least: float, count: int
) -> Sequence[Check]:
    """Checks of two stores, after printing the values furthest apart."""
    one, two = read(first), read(second)
    found = differences(one, two, tolerance)
    print(f"Furthest apart, {what}:\n\n{worst(found[0].joined(found[1]), count)}\n")
    return [*checks(what, found, tolerance, least), same_usages(what, claimed(one), claimed(two))]


def same_usages(what: str, one: Mapping[str, str], two: Mapping[str, str]) -> Check:
    """Port usages that both runs claim."""
    both = one.keys() & two.keys()
    same = sum(one[form] == two[form] for form in both)
    return at_least(f"{what}: port usages claimed in both", same, len(both), SAME_USAGES)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--busy", action="store_true", help="one busy loop per core beside the second run")
    options.add_argument("--worst", type=int, default=30, help="how many of the differing values to list")
    options.add_argument("--stores", nargs=2, type=Path, help="two stores to compare instead of new runs")
    chosen = options.parse_args()
    if chosen.stores:
        kind = LOADED if chosen.busy else QUIET
        first, second = chosen.stores
        present("repeat", lambda: between(first, second, "two stores", *kind, chosen.worst))
    with tempfile.TemporaryDirectory() as folder:
        loops = cores() if chosen.busy else 0
        present("repeat", lambda: repeat(Laboratory(Path(folder)), loops, chosen.worst))


if __name__ == "__main__":
    main()
