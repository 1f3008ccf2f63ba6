"""The constants of port inference halved and doubled: how many usages of simulated machines change.

Each machine is measured once. What its answers tell is inferred with every number of a constant changed, in
a process of its own: priors that decide nothing by themselves, or levels that a usage has to reach. A usage
changes if its ports, as printed, are others; beside that stands how many have another confidence. What is
asked of a machine stays, so that constants that choose questions change nothing here.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.drawn.round_trip import core_named, measure, sample
from benchmarks.house.mutants import parallel
from benchmarks.lib.common import Check, at_most, checks_table, table
from benchmarks.lib.constants import Mutant, mutants, mutate
from cyclescope.backend.simulated import LOUD
from cyclescope.infer.ports.approach import read_approach
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.record import Reading, Record
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel
from cyclescope.simulate.front_end import FrontEnd

ROOMS = ("infer/ports", "infer/likelihood")
MOST = 0.005  # of the usages, that one constant halved or doubled changes

Usage = tuple[str, str]  # ports as printed, and confidence


class Read:
    """What inference reads of a store, kept: the answers are the same for all constants."""

    def __init__(self, store: Store) -> None:
        self.throughputs: Callable[[], Mapping[str, float]] = cache(store.throughputs)
        self.events: Callable[[], Sequence[str]] = cache(store.events)
        self.links: Callable[[], Mapping[str, bytes]] = cache(store.links)
        self.emulated = store.emulated
        self.readings: Callable[[str], Sequence[Reading]] = cache(store.readings)
        self._records: Callable[[tuple[str, ...]], Sequence[Record]] = cache(
            lambda quantities: list(store.records_of(quantities))
        )

    def records_of(
        self, quantities: Iterable[str], forms: Sequence[str] | None = None, rounds: bool = True
    ) -> Sequence[Record]:
        """Records of some quantities, of some forms or of all; `rounds` are kept in any case."""
        records = self._records(tuple(quantities))
        return records if forms is None else [record for record in records if record.form in {*forms}]


class Measured(msgspec.Struct, frozen=True):
    """A machine that was measured, with the forms whose usages are compared."""

    name: str
    forms: Sequence[InstructionForm]
    forms_of: Table
    read: Read

    def usages(self) -> dict[str, Usage]:
        """Ports and confidence of every form that has a usage."""
        ports = read_approach(self.read, self.forms_of).ports  # type: ignore[arg-type]
        if ports is None:
            return {}
        cycles = ports.facts.front_end.throughputs
        found = {form.id: ports.usage(form, cycles.get(form.id)) for form in self.forms}
        return {name: (some.ports, some.confidence) for name, some in found.items() if some.ports is not None}


class Changed(msgspec.Struct, frozen=True):
    """Usages with other ports, with another confidence, and all."""

    ports: int
    confidence: int
    every: int


class Found(msgspec.Struct, frozen=True):
    """What a change of a constant changes on a machine; None where inference ended with an error."""

    machine: str
    change: str
    changed: Changed | None


_NOT_ASKED = Changed(-1, -1, -1)


def changed(before: Mapping[str, Usage], after: Mapping[str, Usage]) -> Changed:
    """How many usages differ; those that only one side has do."""
    names, none = before.keys() | after.keys(), ("", "")
    both = [(before.get(name, none), after.get(name, none)) for name in names]
    return Changed(sum(a[0] != b[0] for a, b in both), sum(a[1] != b[1] for a, b in both), len(both))


def together(some: Sequence[Changed]) -> Changed:
    """Those of several machines."""
    return Changed(*(sum(getattr(one, name) for one in some) for name in Changed.__struct_fields__))


def compared(
    machines: Sequence[Measured],
    chosen: Sequence[Mutant],
    jobs: int,
    end: float,
    kept: Path,
    say: Callable[[str], None],
) -> list[tuple[Mutant, Changed | None]]:
    """What every change changes; None where inference ends with an error. What was not reached is missing.

    Nothing is inferred in this process: the solver's threads would be missing in those that it forks. What is
    found is kept in a file as it comes, and not looked for again; what changes something is said.
    """
    found = {(one.machine, one.change): one.changed for one in _kept(kept)}
    before: dict[str, dict[str, Usage]] = {}

    def run(task: tuple[Mutant | None, Measured], send: Callable[[Any], None]) -> None:
        mutant, machine = task
        if mutant is not None:
            mutate(mutant)
        send(machine.usages())

    def begin(task: tuple[Mutant | None, Measured], answers: list[dict[str, Usage]]) -> None:
        before[task[1].name] = answers[0]

    def done(task: tuple[Mutant | None, Measured], answers: list[dict[str, Usage]]) -> None:
        name = task[1].name
        one = Found(name, str(task[0]), changed(before[name], answers[0]) if answers else None)
        found[one.machine, one.change] = one.changed
        with kept.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")
        if one.changed is None or one.changed.ports or one.changed.confidence:
            say(f"{len(found)} {one.machine}: {one.change}: {one.changed or 'error'}")

    parallel(run, [(None, machine) for machine in machines], jobs, end, begin)
    wanted = [(m, machine) for machine in machines for m in chosen if (machine.name, str(m)) not in found]
    parallel(run, wanted, jobs, end, done)
    told = [(m, [found.get((one.name, str(m)), _NOT_ASKED) for one in machines]) for m in chosen]
    return [
        (m, None if None in some else together([one for one in some if isinstance(one, Changed)]))
        for m, some in told if _NOT_ASKED not in some
    ]  # fmt: skip


def _kept(file: Path) -> list[Found]:
    """What was found before; a line that was cut is left out."""
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [msgspec.json.decode(line, type=Found) for line in lines]


def measured(name: str, count: int, folder: Path) -> Measured:
    """Measure a machine, in a process of its own, unless a run before did."""
    machine, front_end = core_named(name)
    forms_of = load_table(machine.isa)
    forms = sample(forms_of, machine, count)
    file = folder / f"{name.replace(':', '-')}.sqlite"
    if not file.exists():
        new = file.with_suffix(".part")
        new.unlink(missing_ok=True)
        process = get_context("fork").Process(
            target=_measure, args=(machine, front_end, forms_of, forms, new)
        )
        process.start()
        process.join()
        new.rename(file)
    read = Read(Store(file, machine.name, readonly=True))
    read_approach(read, forms_of)  # type: ignore[arg-type]
    return Measured(name, forms, forms_of, read)


def _measure(
    machine: MachineModel, front_end: FrontEnd, forms_of: Table, forms: Sequence[InstructionForm], file: Path
) -> None:
    measure(machine, forms_of, forms, LOUD, file, front_end=front_end).close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what every constant changes, the most first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("machines", nargs="*", help="LLVM's names, or drawn:SEED")
    parser.add_argument(
        "--fresh", type=int, default=3, help="so many machines of seeds never used, without names"
    )
    parser.add_argument("--forms", type=int, default=600, help="forms per machine, 0 for all")
    parser.add_argument("--only", default="", help="constants that have this in their names")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing after so long")
    parser.add_argument("--keep", type=Path, help="a folder of machines and answers, gone on with later")
    options = parser.parse_args(arguments)
    fresh = [f"drawn:{random.SystemRandom().randrange(10**6)}" for _ in range(options.fresh)]
    chosen = [m for m in mutants(ROOMS, ()) if options.only in str(m)]
    with tempfile.TemporaryDirectory() as once:
        folder = options.keep or Path(once)
        folder.mkdir(parents=True, exist_ok=True)
        known = sorted(file.stem.replace("-", ":") for file in folder.glob("drawn-*.sqlite"))
        names = options.machines or known or fresh
        machines = [measured(name, options.forms, folder) for name in names]
        end = time.monotonic() + options.seconds
        print("machines:", ", ".join(names), flush=True)
        some = compared(
            machines, chosen, options.jobs, end, folder / "changes.jsonl", partial(print, flush=True)
        )
        found = report(some, len(chosen))
    print(checks_table(found))
    return int(not all(check.passed for check in found))


def report(found: Iterable[tuple[Mutant, Changed | None]], every: int) -> list[Check]:
    """Print the constants that change something; how many change too much."""
    rows = sorted(found, key=lambda item: -(item[1].ports if item[1] else sys.maxsize))
    shown = [
        (str(mutant), *(("error", "") if some is None else map(str, (some.ports, some.confidence))))
        for mutant, some in rows
        if some is None or some.ports or some.confidence
    ]
    print(table(("constant", "other ports", "other confidence"), shown))
    much = [str(mutant) for mutant, some in rows if some is None or some.ports >= MOST * some.every]
    usages = max((some.every for _, some in rows if some), default=0)
    print(f"{usages} usages, {len(rows)} of {every} changes tried")
    return [at_most("changes of a constant that change 0.5 % of the usages", len(much), len(rows), 0.0)]


if __name__ == "__main__":
    sys.exit(main())
