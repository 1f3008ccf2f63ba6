"""Every benchmark, with as few full runs as they need, and one table of all checks at the end.

Three full runs serve most of it: two quiet ones and one beside one busy loop per core. The comparison
with a reference is left out, with a line that says so, where the reference describes another machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.house.bad_input import bad_input
from benchmarks.house.kill import kill
from benchmarks.house.startup import startup
from benchmarks.lib.common import Check, parser, present
from benchmarks.lib.processes import Laboratory, cores
from benchmarks.lib.reference import FORMATS, load
from benchmarks.measuring.compare import DEFAULT, compare
from benchmarks.measuring.coverage import coverage
from benchmarks.measuring.repeat import repeat
from benchmarks.measuring.scaling import scaling
from benchmarks.measuring.walltime import walltime
from cyclescope.errors import CyclescopeError

Part = tuple[str, Callable[[], Sequence[Check]]]


def parts(folder: Path, reference: Path, kind: str) -> list[Part]:
    """Name and work of every benchmark, sharing the full runs."""
    laboratory = Laboratory(folder)

    def first() -> Path:
        return laboratory.full("first")[1]

    return [
        ("startup", startup),
        ("walltime", lambda: walltime(laboratory, cores())),
        ("coverage", lambda: coverage(first())),
        ("repeat", lambda: repeat(laboratory, 0)),
        ("repeat, busy", lambda: repeat(laboratory, cores())),
        ("compare", lambda: compare(load(reference, kind), first())),
        ("scaling", lambda: scaling(laboratory)),
        ("kill", lambda: kill(folder)),
        ("bad input", lambda: bad_input(_made(folder / "bad"))),
    ]


def _made(folder: Path) -> Path:
    folder.mkdir()
    folder.parent.chmod(0o755)
    return folder


def everything(some: Sequence[Part]) -> list[Check]:
    """Run all parts; one that cannot run is a check that did not pass, or has no target here."""
    checks: list[Check] = []
    for name, work in some:
        print(f"\n# {name}\n", flush=True)
        try:
            checks += work()
        except CyclescopeError as error:
            print(f"error: {error}", file=sys.stderr)
            checks.append(Check(name, f"not run: {error.message}", "", None if name == "compare" else False))
    return checks


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--reference", type=Path, default=DEFAULT)
    options.add_argument("--format", choices=sorted(FORMATS), default="uops.info")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        some = parts(Path(folder), chosen.reference, chosen.format)
        present("all benchmarks", lambda: everything(some))


if __name__ == "__main__":
    main()
