"""Values followed through the kernels of AArch64, RISC-V and x86-64, under qemu-user or on this machine.

Every latency and throughput kernel of every form that executes (or of some, drawn over all groups) is
followed as docs/method/values.md says: a tag on the source of the pair has to arrive at its target and to
come back,
masks and constants have to be as at the start, numbers have to stay numbers, and a load's data have to come
from one store. What does not is listed with its reason.

Needs qemu-user and a cross compiler for other instruction sets than this machine's.
"""

from __future__ import annotations

import random
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.lib.common import Check, at_least, parser, present, share, table
from benchmarks.tables.emulated import drawn, emulator, executed
from benchmarks.values.follow import Finding, findings
from benchmarks.values.reasons import known
from benchmarks.values.tracer import Tracer, tracer, usable_cpus
from cyclescope.backend.native import NativeBackend
from cyclescope.backend.remote import link_to
from cyclescope.host.uname import host_isa
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.plan import Planner

CHECKED = ("aarch64", "riscv64")  # where no hardware has told otherwise
ISAS = ("aarch64", "riscv64", "x86-64")
_AT_ONCE = 24  # forms
_SAY_EVERY = 20.0  # seconds
SHOWN = 6  # forms that are named per reason
SEED = 5


def legal(listed: Table, isa: str, command: str) -> list[InstructionForm]:
    """Forms that the machine executes."""
    link = link_to(f"exec:{command}" if command else None)
    with closing(NativeBackend(link=link)) as backend:
        return executed(backend, Planner(listed, lambda form: True), select(listed, []))


def followed(
    tracers: Sequence[Tracer], planners: Sequence[Planner], forms: Sequence[InstructionForm], until: float
) -> Iterator[list[Finding]]:
    """Findings of all kernels of some forms after the other; forms not reached in time are left out."""
    parts = [forms[at : at + _AT_ONCE] for at in range(0, len(forms), _AT_ONCE)]
    idle: SimpleQueue[tuple[Tracer, Planner]] = SimpleQueue()
    for pair in zip(tracers, planners, strict=True):
        idle.put(pair)

    def work(part: Sequence[InstructionForm]) -> list[Finding]:
        if time.monotonic() > until:
            return []
        process, planner = idle.get()
        try:
            return list(findings(process, planner, part))
        finally:
            idle.put((process, planner))

    with ThreadPoolExecutor(len(tracers)) as pool:
        yield from pool.map(work, parts)


def with_progress(isa: str, forms: int, parts: Iterable[list[Finding]]) -> Iterator[Finding]:
    """All findings, while standard error says how far they are."""
    said, done, kernels, open_ = time.monotonic(), 0, 0, 0
    for part in parts:
        yield from part
        done = min(done + _AT_ONCE, forms)
        kernels += len(part)
        failing = [f for f in part if f.problem and not known(f)]
        open_ += len(failing)
        for f in failing:
            print(f"{f.form} {f.source} -> {f.target} {f.variant}: {f.problem}", file=sys.stderr)
        if time.monotonic() > said + _SAY_EVERY or done == forms:
            said = time.monotonic()
            print(f"{isa}: {done} of {forms} forms, {kernels} kernels, {open_} of them fail", file=sys.stderr)


def report(isa: str, found: Sequence[Finding]) -> list[Check]:
    """Prints what was found, and checks it."""
    reasons: dict[str, dict[str, list[Finding]]] = {"explained": {}, "": {}}
    for finding in found:
        if finding.problem:
            why = known(finding)
            group = reasons["explained" if why else ""]
            group.setdefault(why or finding.problem, []).append(finding)
    for kind, groups in reasons.items():
        print(f"\n### {isa}: {'kernels without a proof, and why' if kind else 'kernels that fail'}\n")
        rows = [(why, len(some), len({f.form for f in some}), _named(some)) for why, some in groups.items()]
        print(table(("reason", "kernels", "forms", "such as"), sorted(rows, key=lambda row: -row[1])))
    failed = {f.form for some in reasons[""].values() for f in some}
    explained = {f.form for some in reasons["explained"].values() for f in some} - failed
    forms = {f.form for f in found}
    proved = sum(not f.problem for f in found)
    print(f"\n{len(found)} kernels of {len(forms)} forms: {proved} proved, of which "
          f"{sum(f.hidden and not f.problem for f in found)} with other values in other operands; "
          f"forms with all kernels proved {len(forms - failed - explained)}, the others with a reason "
          f"{len(explained)}, failing {len(failed)}\n")  # fmt: skip
    if isa not in CHECKED:
        return [Check(f"{isa}: kernels proved", share(proved, len(found)))]
    return [
        at_least(f"{isa}: kernels proved or with a reason", len(found) - sum(map(len, reasons[""].values())),
                 len(found), 1),
        at_least(f"{isa}: forms proved or with a reason", len(forms - failed), len(forms), 1),
    ]  # fmt: skip


def _named(some: Iterable[Finding]) -> str:
    counts = Counter(
        f"{f.form} {f.source} -> {f.target}" if f.source else f"{f.form} {f.variant}" for f in some
    )
    names = list(counts)[:SHOWN]
    return ", ".join(names) + (", ..." if len(counts) > SHOWN else "")


class Wanted(NamedTuple):
    """Which forms are followed, all in random order if `count` is 0: the `part`th of `parts`, from 1."""

    count: int
    seed: int
    part: int
    parts: int

    def of(self, forms: Sequence[InstructionForm]) -> Sequence[InstructionForm]:
        """The forms that are followed."""
        chosen = (
            drawn(forms, self.count, self.seed)
            if self.count
            else random.Random(self.seed).sample(forms, len(forms))
        )
        return chosen[self.part - 1 :: self.parts]


def checks(isa: str, wanted: Wanted, budget: float, processes: int, folder: Path) -> list[Check]:
    """Checks of one instruction set. Raises BackendUnavailable."""
    listed = load_table(isa)
    command = "" if isa == host_isa() else emulator(isa)
    forms = legal(listed, isa, command)
    names = {model_form_id(form) for form in forms}
    chosen = wanted.of(forms)
    tracers = [tracer(isa, shlex.split(command)[:-1], folder) for _ in range(processes)]
    planners = [Planner(listed, lambda form: model_form_id(form) in names) for _ in tracers]
    try:
        parts = followed(tracers, planners, chosen, time.monotonic() + budget)
        found = list(with_progress(isa, len(chosen), parts))
    finally:
        for process in tracers:
            process.close()
    reached = len({f.form for f in found})
    print(f"## {isa}: {len(forms)} forms executed, {len(chosen)} chosen, {reached} with kernels followed")
    return report(isa, found)


def _part(text: str) -> tuple[int, int]:
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def main() -> None:
    """Run from the command line."""
    options = parser(__doc__)
    options.add_argument("--isa", choices=ISAS, action="append", help="instruction sets, else all")
    options.add_argument(
        "--forms", type=int, default=0, help="forms of each, drawn over all groups; else all"
    )
    options.add_argument("--part", type=_part, default=(1, 1), help="K/N: the Kth of N parts of them")
    options.add_argument("--budget", type=float, default=3600.0, help="seconds for each")
    options.add_argument("--processes", type=int, default=usable_cpus(), help="that follow kernels at once")
    options.add_argument("--seed", type=int, default=SEED)
    given = options.parse_args()
    wanted = Wanted(given.forms, given.seed, *given.part)
    with TemporaryDirectory() as folder:
        present(
            "Values followed through kernels",
            lambda: [
                check
                for isa in given.isa or ISAS
                for check in checks(isa, wanted, given.budget, given.processes, Path(folder))
            ],
        )


if __name__ == "__main__":
    sys.exit(main())
