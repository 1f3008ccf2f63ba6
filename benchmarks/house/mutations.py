"""Damaged models, stores, assembly files, executables and files of other tools, through the commands.

Each kind of input is mutated as often as asked for, from a seed that is new each time and printed. Every
command that reads it has to end with an exit code from 0 to 4 and one clear line, without a traceback, within
5 s and 500 MB, with nothing written where it failed. Needs the packages of the tests.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from benchmarks.lib.common import Check, parser, present, table
from cyclescope.isa.table import load_table
from tests.support.files.damage import fill
from tests.support.files.hostile import Kind, broken, kinds, store_kind

MUTATIONS = 2000
SHOWN = 5  # defects of a kind that are printed
FAMILIES = ("model", "store", "assembly", "binary")  # kinds of input; all others are import formats


def mutate(kind: Kind, count: int, seed: int) -> tuple[int, list[str]]:
    """How many damaged inputs were tried, and what is wrong with what became of them."""
    found: list[str] = []
    tried = 0

    @hypothesis.seed(seed)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(damage=kind.damage)
    def attempt(damage: Any) -> None:
        nonlocal tried
        tried += 1
        found.extend(broken(kind, damage))

    attempt()
    return tried, found


def family(name: str) -> str:
    """Which of the kinds of input a kind belongs to."""
    first = name.partition(" ")[0]
    return first if first in FAMILIES else "import"


def mutations(wanted: Sequence[str], count: int, seed: int) -> Sequence[Check]:
    """Mutate every kind of input; of those of several kinds each gets its part of the count."""
    with tempfile.TemporaryDirectory() as folder:
        complete = fill(Path(folder) / "complete.sqlite", load_table("x86-64"))
        every = kinds() | {"store": store_kind(complete, Path(folder))}
        chosen = {name: kind for name, kind in every.items() if not wanted or family(name) in wanted}
        parts = {name: sum(family(other) == family(name) for other in chosen) for name in chosen}
        print(f"seed {seed}", flush=True)
        rows, bad = [], 0
        for name, kind in chosen.items():
            start = time.monotonic()
            tried, found = mutate(kind, -(-count // parts[name]), seed)
            bad += len(found)
            rows.append((name, tried, len(found), f"{time.monotonic() - start:.0f}"))
            print("\n".join([f"{name}: {tried} mutated, {len(found)} defects", *found[:SHOWN]]), flush=True)
    print(table(("input", "mutated", "defects", "seconds"), rows))
    return [Check("mutated inputs with a defect", str(bad), "0", bad == 0)]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("families", nargs="*", choices=[*FAMILIES, "import", []], help="kinds; all without")
    options.add_argument("--count", type=int, default=MUTATIONS, help="mutations of each kind of input")
    options.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    chosen = options.parse_args()
    present("mutations", lambda: mutations(chosen.families, chosen.count, chosen.seed))


if __name__ == "__main__":
    main()
