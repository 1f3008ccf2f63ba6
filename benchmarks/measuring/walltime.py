"""Wall time and peak memory of a full run into a fresh store, quiet and beside one busy loop per core."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.lib.common import Check, parser, present
from benchmarks.lib.processes import Laboratory, Run, cores

TARGET = 60.0


def check(name: str, done: Run) -> Check:
    """Time against the target; memory beside it."""
    memory = f"Python {done.python:.0f} MiB, runner {done.runner:.0f} MiB"
    return Check(name, f"{done.seconds:.1f} s, {memory}", f"< {TARGET:.0f} s", done.seconds < TARGET)


def walltime(laboratory: Laboratory, loops: int) -> Sequence[Check]:
    """A quiet and a loaded run."""
    quiet, store = laboratory.full("first")
    checks = [check("full run, nothing else started", quiet)]
    print(quiet.out)
    size = store.stat().st_size / 2**20
    if loops:
        loaded, _ = laboratory.full("busy", loops)
        checks.append(check(f"full run beside {loops} busy loops", loaded))
    return [*checks, Check("size of the store", f"{size:.0f} MiB")]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument(
        "--loops", type=int, default=cores(), help="busy loops of the second run, 0 for none"
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        present("walltime", lambda: walltime(Laboratory(Path(folder)), chosen.loops))


if __name__ == "__main__":
    main()
