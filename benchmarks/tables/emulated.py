"""AArch64 and RISC-V under qemu-user: whether every kernel runs, and whether chains carry their dependency.

Forms are drawn over all groups (feature, kind of operands) of those that QEMU executes. Every throughput and
latency kernel of them runs once, and in its loop as `measure` has it; times mean nothing. Latency kernels are
followed by the table (`benchmarks.lib.taint`): the pair's dependency alone has to close the chain.

Needs qemu-user and a cross compiler.
"""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec

from benchmarks.lib.common import Check, at_least, parser, present, table
from benchmarks.lib.taint import KEEPING, cycles, verdicts
from cyclescope.backend.base import OK, Effort
from cyclescope.backend.build import runner_for
from cyclescope.backend.native import NativeBackend
from cyclescope.backend.remote import link_to
from cyclescope.errors import BackendUnavailable
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.table import load_table
from cyclescope.kernel.cycle import NOP
from cyclescope.measure.plan import Experiment, Planner

ISAS = ("aarch64", "riscv64")
_EXTENSIONS = ("v", "zba", "zbb", "zbc", "zbs", "Zfh", "zk", "zbkb", "zbkc", "zbkx")
SEED = 5
ONCE = Effort(rounds=1, want=1, maximum=2, target=200.0)


class Result(msgspec.Struct):
    """What came of the kernels of one group of forms."""

    forms: int = 0
    kernels: int = 0
    run: int = 0
    measured: int = 0
    chains: int = 0
    carry: int = 0
    problems: list[str] = []

    def add(self, other: Result) -> None:
        """Count another group in."""
        for name in ("forms", "kernels", "run", "measured", "chains", "carry"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.problems += other.problems


def emulator(isa: str, folder: str = "") -> str:
    """A command that starts a runner under the QEMU of a folder or the path. Raises BackendUnavailable."""
    where = folder or None
    qemu = shutil.which(f"qemu-{isa}-static", path=where) or shutil.which(f"qemu-{isa}", path=where)
    if qemu is None:
        raise BackendUnavailable(f"no qemu-{isa}", "`apt install qemu-user-static`")
    return shlex.join([qemu, "-cpu", _cpu(isa, qemu), str(runner_for(isa))])


def _cpu(isa: str, qemu: str) -> str:
    """A CPU with everything and vectors of 256 bits: before QEMU 9, RISC-V's has no name."""
    known = subprocess.run([qemu, "-cpu", "help"], capture_output=True, text=True, check=False).stdout.split()
    if isa == "aarch64" or "max" in known:
        return "max,sve-max-vq=2" if isa == "aarch64" else "max,vlen=256"
    return ",".join(["rv64", "vext_spec=v1.0", "vlen=256", *(f"{name}=true" for name in _EXTENSIONS)])


# --- forms -----------------------------------------------------------------------------------------


def group_of(form: InstructionForm) -> str:
    """Feature and kind of operands."""
    files = sorted({op.file for op in form.operands if op.file in ("r", "v", "f", "p")})
    kind = next((name for name in ("atomic", "exclusive", "branch", "call") if name in form.attributes), "")
    memory = "memory" if any(op.is_memory for op in form.operands) else ""
    words = (form.features[0].partition("|")[0], "".join(files), kind or memory)
    return " ".join(word for word in words if word)


def drawn(forms: Sequence[InstructionForm], count: int, seed: int) -> list[InstructionForm]:
    """So many forms, one of every group after the other."""
    groups: dict[str, list[InstructionForm]] = {}
    for form in random.Random(seed).sample(list(forms), len(forms)):
        groups.setdefault(group_of(form), []).append(form)
    found: list[InstructionForm] = []
    while len(found) < min(count, len(forms)):
        found += [members.pop() for members in groups.values() if members]
    return found[:count]


def executed(
    backend: NativeBackend, planner: Planner, forms: Sequence[InstructionForm]
) -> list[InstructionForm]:
    """Forms whose probe runs."""
    probes = [(form, kernel) for form in forms if (kernel := planner.probe_kernel(form)) is not None]
    outcomes = backend.probe([kernel for _, kernel in probes])
    return [form for (form, _), outcome in zip(probes, outcomes, strict=True) if outcome.status == OK]


# --- kernels ---------------------------------------------------------------------------------------


def judged(backend: NativeBackend, planner: Planner, forms: Sequence[InstructionForm]) -> dict[str, Result]:
    """Results of all kernels of some forms, by group."""
    experiments = [(form, made) for form in forms for made in kernels(planner, form)]
    outcomes = backend.probe([made.kernel for _, made in experiments])
    backend.submit([made.kernel for _, made in experiments], ONCE)
    samples = backend.collect()
    results: dict[str, Result] = {}
    for form in forms:
        results.setdefault(group_of(form), Result()).add(_followed(planner, form))
    for (form, made), outcome, rounds in zip(experiments, outcomes, samples, strict=True):
        result = results[group_of(form)]
        runs, usable = outcome.status == OK, any(sample.usable for sample in rounds)
        result.add(Result(0, 1, int(runs), int(usable)))
        if not (runs and usable):
            result.problems.append(
                f"{form.id} {made.source} -> {made.target} {made.variant}: {outcome.describe()}"
            )
    return results


def kernels(planner: Planner, form: InstructionForm) -> Iterator[Experiment]:
    """Every kernel that `measure` runs for a form."""
    yield from planner.throughput(form)
    yield from planner.latency(form)


def linked(backend: NativeBackend, planner: Planner) -> list[tuple[str, int, int]]:
    """What of the closed chains of links runs, is closed, and is open with a cut: how many, of how many."""
    experiments = planner.link_experiments()
    outcomes = backend.probe([made.kernel for made in experiments])
    rows = [row for row in cycles(planner) if row[0] != NOP]
    whole = [passed == length for _, variant, passed, length in rows if variant != "cut"]
    open_ = [passed <= KEEPING for _, variant, passed, _ in rows if variant == "cut"]
    return [
        ("kernels of links that run", sum(o.status == OK for o in outcomes), len(outcomes)),
        ("chains of links that are closed", sum(whole), len(whole)),
        ("controls that are open", sum(open_), len(open_)),
    ]


def _followed(planner: Planner, form: InstructionForm) -> Result:
    result = Result(forms=1)
    for verdict in verdicts(planner, form):
        result.chains += 1
        result.carry += verdict.good
        if not verdict.good:
            result.problems.append(f"{form.id} {verdict.source} -> {verdict.target}: another chain")
    return result


# --- output ----------------------------------------------------------------------------------------


def checks(isa: str, count: int, seed: int, folder: str) -> list[Check]:
    """Checks of one instruction set; prints its table. Raises BackendUnavailable."""
    listed = load_table(isa)
    with closing(NativeBackend(link=link_to(f"exec:{emulator(isa, folder)}"))) as backend:
        legal = executed(backend, Planner(listed, lambda form: True), select(listed, []))
        names = {model_form_id(form) for form in legal}
        planner = Planner(listed, lambda form: model_form_id(form) in names)
        forms = drawn(legal, count, seed)
        results = judged(backend, planner, forms)
        links = linked(backend, planner)
    total = Result()
    for result in results.values():
        total.add(result)
    head = ("group", "forms", "kernels", "run", "measured", "chains", "carry their dependency")
    rows = [
        (name, r.forms, r.kernels, r.run, r.measured, r.chains, r.carry)
        for name, r in sorted(results.items())
    ]
    print(f"## {isa}: {len(legal)} forms executed, {len(forms)} drawn\n\n{table(head, rows)}\n")
    for problem, times in Counter(total.problems).items():
        print(f"- {problem}" + (f" ({times} times)" if times > 1 else ""))
    wanted = min(count, len(legal))
    return [
        Check(f"{isa}: forms", str(total.forms), f">= {wanted}", total.forms >= wanted),
        at_least(f"{isa}: kernels that run", total.run, total.kernels, 1),
        at_least(f"{isa}: kernels that run in a loop", total.measured, total.kernels, 1),
        at_least(f"{isa}: chains closed by their own dependency", total.carry, total.chains, 1),
        *(at_least(f"{isa}: {name}", part, whole, 1) for name, part, whole in links),
    ]


def main() -> None:
    """Run from the command line."""
    options = parser(__doc__)
    options.add_argument("--isa", choices=ISAS, action="append", help="instruction sets, else both")
    options.add_argument("--forms", type=int, default=200, help="forms of each")
    options.add_argument("--qemu", default="", help="folder of QEMU's programs, else the path")
    options.add_argument("--seed", type=int, default=SEED)
    given = options.parse_args()
    present(
        "Kernels of AArch64 and RISC-V under emulation",
        lambda: [
            check for isa in given.isa or ISAS for check in checks(isa, given.forms, given.seed, given.qemu)
        ],
    )


if __name__ == "__main__":
    main()
