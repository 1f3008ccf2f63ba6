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
from tempfile import TemporaryDirectory

from benchmarks.emulated import drawn, emulator, executed
from benchmarks.lib.common import Check, at_least, parser, present, share, table
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
SHOWN = 6  # forms that are named per reason
SEED = 5


def legal(listed: Table, isa: str, command: str) -> list[InstructionForm]:
    """Forms that the machine executes."""
    link = link_to(f"exec:{command}" if command else None)
    with closing(NativeBackend(link=link)) as backend:
        return executed(backend, Planner(listed, lambda form: True), select(listed, []))


def followed(
    tracers: Sequence[Tracer], planners: Sequence[Planner], forms: Sequence[InstructionForm], until: float
) -> Iterator[Finding]:
    """Findings of all kernels of the forms, by as many processes; those not reached in time are left out."""
    parts = [forms[at : at + _AT_ONCE] for at in range(0, len(forms), _AT_ONCE)]

    def work(number: int) -> list[Finding]:
        found: list[Finding] = []
        for part in parts[number :: len(tracers)]:
            if time.monotonic() < until:
                found += findings(tracers[number], planners[number], part)
        return found

    with ThreadPoolExecutor(len(tracers)) as pool:
        for some in pool.map(work, range(len(tracers))):
            yield from some


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


def checks(isa: str, count: int, seed: int, budget: float, folder: Path) -> list[Check]:
    """Checks of one instruction set. Raises BackendUnavailable."""
    listed = load_table(isa)
    command = "" if isa == host_isa() else emulator(isa)
    forms = legal(listed, isa, command)
    names = {model_form_id(form) for form in forms}
    chosen = drawn(forms, count, seed) if count else random.Random(seed).sample(forms, len(forms))
    processes = [tracer(isa, shlex.split(command)[:-1], folder) for _ in range(usable_cpus())]
    planners = [Planner(listed, lambda form: model_form_id(form) in names) for _ in processes]
    try:
        found = list(followed(processes, planners, chosen, time.monotonic() + budget))
    finally:
        for process in processes:
            process.close()
    reached = len({f.form for f in found})
    print(f"## {isa}: {len(forms)} forms executed, {len(chosen)} chosen, {reached} with kernels followed")
    return report(isa, found)


def main() -> None:
    """Run from the command line."""
    options = parser(__doc__)
    options.add_argument("--isa", choices=ISAS, action="append", help="instruction sets, else all")
    options.add_argument(
        "--forms", type=int, default=0, help="forms of each, drawn over all groups; else all"
    )
    options.add_argument("--budget", type=float, default=3600.0, help="seconds for each")
    options.add_argument("--seed", type=int, default=SEED)
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        present(
            "Values followed through kernels",
            lambda: [
                check
                for isa in given.isa or ISAS
                for check in checks(isa, given.forms, given.seed, given.budget, Path(folder))
            ],
        )


if __name__ == "__main__":
    sys.exit(main())
