"""The inference against llvm-mca: what comes out must be what LLVM's model says.

llvm-mca answers the kernels of a campaign in place of a CPU. Throughputs and latencies inferred from its
answers are compared with what it states for each instruction alone: the throughput that ports and
dispatch allow, and the latency, which is that of the slowest path into a register.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.agreement import close
from benchmarks.lib.common import Check, at_least, parser, present, table
from benchmarks.lib.results import forms
from cyclescope.backend.base import OK
from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend, Stated
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.timing.results import EXACT, FormTiming
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.kernel.instruction import Instruction
from cyclescope.measure.plan import Planner
from cyclescope.measure.store import Store

CPU, NUMBER, SEED = "znver4", 150, 1
LEAST = 0.95
TOLERANCE = 0.02
ABOVE, BELOW = "at most", "at least"  # what a value claims that is not exact


class Row(msgspec.Struct, frozen=True):
    """A form's value as inferred, with what it claims to be, and as stated."""

    form: str
    what: str
    inferred: float
    claim: str
    stated: float

    @property
    def equal(self) -> bool:
        """Whether the values are the same."""
        return close(self.inferred, self.stated, TOLERANCE)

    @property
    def agrees(self) -> bool:
        """Whether the values are the same, or the stated one is within what is claimed."""
        return self.equal or (self.claim != EXACT and (self.stated < self.inferred) == (self.claim == ABOVE))


# --- both sides ------------------------------------------------------------------------------------


def instances(some: Sequence[InstructionForm]) -> list[Instruction]:
    """One instruction of each form."""
    planner = Planner(load_table("x86-64"), lambda form: True)
    kernels = [planner.probe_kernel(form) for form in some]
    return [next(i for i in k.body if i.form is f) for k, f in zip(kernels, some, strict=True) if k]


def known(backend: LlvmMcaBackend, some: Sequence[InstructionForm]) -> list[InstructionForm]:
    """The forms that the model has."""
    planner = Planner(load_table("x86-64"), lambda form: True)
    outcomes = backend.probe([k for k in map(planner.probe_kernel, some) if k is not None])
    return [form for form, outcome in zip(some, outcomes, strict=True) if outcome.status == OK]


def inferred(backend: LlvmMcaBackend, some: Sequence[InstructionForm], path: Path) -> list[FormTiming]:
    """The results of a campaign on the forms."""
    store = Store(path, backend.capabilities().description)
    try:
        campaign = Campaign(load_table("x86-64"), backend, store)
        campaign.run(Request(tuple(some)), {})
        return list(campaign.results(some))
    finally:
        store.close()


def rows(form: InstructionForm, timing: FormTiming, stated: Stated) -> Iterator[Row]:
    """The throughput, and the greatest exact latency into a register."""
    throughput = timing.throughput
    if throughput is not None and throughput.value is not None:
        claim = EXACT if throughput.kind == EXACT else ABOVE
        yield Row(form.id, "throughput", throughput.value, claim, stated.throughput)
    into = {p.target.name for p in pairs(form) if p.target.part == "register"}
    latencies = [lat for lat in timing.latencies if lat.target in into]
    exact = [lat.max for lat in latencies if lat.kind == EXACT and lat.max is not None]
    if exact:  # where a path has no value, the slowest one may be among them
        claim = EXACT if len(exact) == len(latencies) else BELOW
        yield Row(form.id, "latency", max(exact), claim, stated.latency)


# --- the benchmark ---------------------------------------------------------------------------------


def llvm_mca(backend: LlvmMcaBackend, number: int, seed: int) -> Sequence[Check]:
    """Compare a sample of forms."""
    every = [form for form in forms() if form.encoding is not None]
    tried = random.Random(seed).sample(every, min(number, len(every)))
    some = known(backend, tried)
    stated = backend.stated(instances(some))
    with tempfile.TemporaryDirectory() as folder:
        timings = inferred(backend, some, Path(folder) / "store.sqlite")
    both = zip(some, timings, stated, strict=True)
    found = [row for f, timing, said in both if said is not None for row in rows(f, timing, said)]
    apart = [row for row in found if not row.agrees]
    print(f"{backend.capabilities().description}: {len(some)} of {len(tried)} forms known\n")
    listed = ((r.form, r.what, f"{r.inferred:g}", r.claim, f"{r.stated:g}") for r in apart)
    print(table(("form", "", "inferred", "", "stated"), listed))
    return [*_checks(found, "throughput"), *_checks(found, "latency")]


def _checks(found: Sequence[Row], what: str) -> Iterator[Check]:
    compared = [row for row in found if row.what == what]
    exact = [row for row in compared if row.claim == EXACT]
    yield at_least(f"exact {what} as stated", sum(r.agrees for r in exact), len(exact), LEAST)
    rest = [row for row in compared if row.claim != EXACT]
    equal = sum(row.equal for row in rest)
    yield Check(f"bound of the {what} holds", f"{sum(r.agrees for r in rest)} of {len(rest)}, {equal} equal")


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--cpu", default=CPU, help="name of the CPU in LLVM")
    options.add_argument("--program", help="path of llvm-mca")
    options.add_argument("--number", type=int, default=NUMBER, help="forms to try")
    options.add_argument("--seed", type=int, default=SEED)
    chosen = options.parse_args()
    present(
        "llvm-mca", lambda: llvm_mca(LlvmMcaBackend(chosen.cpu, chosen.program), chosen.number, chosen.seed)
    )


if __name__ == "__main__":
    main()
