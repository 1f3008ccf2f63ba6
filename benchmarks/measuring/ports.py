"""Port usage of this machine: how long it takes, whether two runs agree, and what the ports are.

Both runs start from one store that has throughputs. Usages that differ have to be of low confidence
in one of the runs. On cores whose ports vendors publish, the structure is compared with that: counts
and classes are facts of AMD's optimization guides for families 19h, models of Zen 3 and Zen 4.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.lib.common import Check, at_least, identity, parser, present, table
from benchmarks.lib.processes import TIMINGS, busy, cores, measured
from cyclescope.infer.ports.approach import read_approach
from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.ports.evidence import PortFacts
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.store import Store
from cyclescope.model.facts import LOW

LONGEST = 120.0  # seconds
SAME = 0.98
ZEN = ("znver3", "znver4")
INTEGER, VECTOR, MEMORY = 4, 4, 3  # ports of a Zen 3 or Zen 4
# Register files and number of ports of classes that these cores have, and which of them share ports.
WIDTHS = Counter({("r", 4): 1, ("r", 2): 2, ("r", 1): 1, ("v", 4): 1, ("v", 2): 3, ("m", 3): 1})

Usages = Mapping[str, PortUsage]


def usages(store: Path, forms: Table) -> tuple[PortFacts, Usages]:
    """Facts and port usage of every form in a store."""
    with closing(Store(store, readonly=True)) as opened:
        builder = read_approach(opened, forms).ports
    assert builder is not None, "nothing fills the front end"
    facts, cycles = builder.facts, builder.facts.front_end.throughputs
    return facts, {n: builder.usage(forms[n], cycles.get(n)) for n in facts.confined}


def agreement(first: Usages, second: Usages, names: Sequence[str]) -> Iterator[Check]:
    """Whether two runs found the same, and how sure they were where they did not."""
    differ = [n for n in names if n not in first or n not in second or first[n].ports != second[n].ports]
    sure = [n for n in differ if n in first and n in second
            and LOW not in (first[n].confidence, second[n].confidence)]  # fmt: skip
    print(table(("form", "first", "second"), ((n, first[n].ports, second[n].ports) for n in sure[:20])))
    yield at_least("two runs: usages identical", len(names) - len(differ), len(names), SAME)
    found = f"{len(sure)} of {len(differ)}"
    yield Check("two runs: different, none of low confidence", found, "0", not sure)


def structure(facts: PortFacts, llvm: str) -> Iterator[Check]:
    """The ports that were found, and on a Zen 3 or Zen 4 whether they are its own."""
    sets = facts.structure.sets
    print(
        table(("class", "ports", "forms"), ((n, p, len(facts.classes.members[n])) for n, p in sets.items()))
    )
    out = {**facts.evidence.units, **facts.structure.left_out}
    print(table(("no set of ports", "why"), out.items()))
    sides = {side: set().union(*[p for n, p in sets.items() if facts.classes.files[n] <= set(files)])
             for side, files in (("integer", "r"), ("vector", "vkx"), ("memory", "m"))}  # fmt: skip
    found = " ".join(f"{len(ports)} {side}" for side, ports in sides.items())
    widths = Counter(("".join(facts.classes.files[n]), len(p)) for n, p in sets.items())
    right = [len(ports) for ports in sides.values()] == [INTEGER, VECTOR, MEMORY]
    known = llvm in ZEN
    apart = facts.structure.ports == sum(map(len, sides.values()))
    yield Check(
        "ports", found, "4 integer 4 vector 3 memory" if known else "", right and apart if known else None
    )
    missing = WIDTHS - widths
    yield Check("classes", ", ".join(f"{f}{w}" for f, w in sorted(widths)), "the known ones" if known else "",
                not missing if known else None)  # fmt: skip


def ports(folder: Path, base: Path | None, loops: int) -> list[Check]:
    """Run the port step twice, the first time beside busy loops."""
    forms = load_table("x86-64")
    if base is None:
        base = folder / "base.sqlite"
        measured(base, "--what", TIMINGS[1].split(",")[1])
    stores = [folder / f"{name}.sqlite" for name in ("first", "second")]
    seconds = []
    for store, some in zip(stores, (loops, 0), strict=True):
        shutil.copy(base, store)
        with busy(some):
            seconds.append(measured(store, "--what", "ports").seconds)
    (facts, first), (_, second) = (usages(store, forms) for store in stores)
    cpu = identity()
    levels = Counter(usage.confidence for usage in first.values())
    limit = f"<= {LONGEST:.0f} s"
    return [
        Check("port step, a busy loop per core", f"{seconds[0]:.0f} s", limit, seconds[0] <= LONGEST),
        Check("port step, quiet", f"{seconds[1]:.0f} s"),
        Check("confidence", ", ".join(f"{number} {level}" for level, number in levels.items())),
        *agreement(first, second, sorted(first.keys() | second.keys())),
        *structure(facts, cpu.llvm if cpu else ""),
    ]  # fmt: skip


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--store", type=Path, help="a store with throughputs, which is copied")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        present("ports", lambda: ports(Path(folder), chosen.store, cores()))


if __name__ == "__main__":
    main()
