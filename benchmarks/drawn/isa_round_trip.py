"""AArch64 and RISC-V on simulated machines: latencies and throughputs against the model that answered.

Every form of a machine goes through the same kernels and the same inference as on hardware, on a core that
LLVM's model of a CPU drives. LLVM says nothing of how stored data come back: here they take a cycle to where
a load finds them. Of vectors of RISC-V it says what the longest groups of registers cost; here shorter ones
keep units busy for less, and are no faster otherwise. On the Cortex-A510 LLVM sends NOP to the port for
branches and moves bases in no time: here NOP needs no port, and nothing is for nothing. Its model of the
A64FX names latencies of results in another order than the results of loads that move their base: here bases
are moved first.

A latency is exact where it is the model's to the cycle. No chain tells how a round trip between two register
files divides into its directions: latencies that rest on a convention are exact where all between two files
are off by the same (which one number per file explains). A claim holds where the model's latency is within
what the result says: the bounds of a convention, an interval, an upper bound.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, at_least, parser, present, share, table
from cyclescope.backend.simulated import LOUD, QUIET, Noise, SimulatedBackend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.timing.results import EXACT, FormTiming, Latency
from cyclescope.isa.dataflow import Pair, is_old, pairs
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.riscv64.legality import all_configurations
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.store import Store
from cyclescope.model.machine import EXTRACTED, FormCost, MachineModel
from cyclescope.model.ports import issue_throughput
from cyclescope.session.machines import load_model
from cyclescope.simulate.cost import Ends, Latencies, cost_of

MACHINES = (
    "neoverse-v1", "neoverse-v2", "neoverse-n2", "cortex-a510", "a64fx", "sifive-p670", "spacemit-x60",
    "xiangshan-nanhu",
)  # fmt: skip
RIGHT = 0.99
NOPS = ("NOP", "C_NOP")
LONGEST = 8  # registers of a group
STORE = 1.0  # cycles of data on the way to memory
NEAR = 0.02  # of a value, and at least this many cycles
EQUAL, HOLDS, WRONG, NONE = "equal", "holds", "wrong", "no value"


class Row(msgspec.Struct, frozen=True):
    """One latency or throughput: what the machine is, what was found, and how they compare.

    `exact` says that the value claims to be no bound; `group` is the kind of operands or forms, `known`
    whether the model states the latency itself: what it leaves open the simulated core fills in.
    """

    form: str
    what: str
    group: str
    truth: float | None
    found: float | None
    verdict: str
    reason: str = ""
    known: bool = True
    files: tuple[str, str] = ("", "")
    convention: str = ""
    exact: bool = True


def simulated(name: str) -> MachineModel:
    """LLVM's model with forwarding, and with costs of vectors by their length."""
    machine = load_model(name)
    core = msgspec.structs.replace(machine.core, forward_latency=machine.core.load_latency + STORE)
    forms = dict(machine.forms)
    for form in load_table(machine.isa) if machine.isa == "riscv64" else ():
        cost = forms.get(form.id)
        for configuration in all_configurations(form) if cost is not None else ():
            forms.setdefault(f"{form.id}@{configuration}", _shorter(cost, float(configuration.lmul)))
    for form_id, cost in forms.items():
        if any(not cycles for cycles in cost.latencies.values()):
            forms[form_id] = _lawful(cost)
    for form in load_table(machine.isa):
        base = next((op.name for op in form.operands if op.role == "base" and op.write), "")
        own = forms[form.id].latencies.get(f"{base}->{base}", 0.0) if form.id in forms else 0.0
        if own > 1:
            forms[form.id] = _base_first(forms[form.id], base)
    for name in NOPS:
        if name in forms:
            forms[name] = msgspec.structs.replace(forms[name], operations=())
    return msgspec.structs.replace(machine, core=core, forms=forms)


def _lawful(cost: FormCost) -> FormCost:
    """The cost without latencies of nothing."""
    latencies = {pair: cycles or 1.0 for pair, cycles in cost.latencies.items()}
    return msgspec.structs.replace(cost, latencies=latencies)


def _base_first(cost: FormCost, base: str) -> FormCost:
    """The cost of a form that writes its base back, which takes no longer than any other result."""
    least, most = min(cost.latencies.values()), max(cost.latencies.values())
    latencies = {
        pair: least if pair.endswith(f"->{base}") else most if cycles == least else cycles
        for pair, cycles in cost.latencies.items()
    }
    return msgspec.structs.replace(cost, latencies=latencies)


def _shorter(cost: FormCost, lmul: float) -> FormCost:
    """The cost of groups of `lmul` registers, of which the cost of eight is known."""
    operations = tuple(
        msgspec.structs.replace(op, cycles=max(op.cycles * lmul / LONGEST, min(op.cycles, 1.0)))
        for op in cost.operations or ()
    )
    return msgspec.structs.replace(cost, operations=operations)


def timings(
    machine: MachineModel, table: Table, forms: Sequence[InstructionForm], noise: Noise, file: Path
) -> list[FormTiming]:
    """What a campaign on the simulated machine finds."""
    store = Store(file, machine.name)
    backend = SimulatedBackend(machine, noise=noise)
    try:
        campaign = Campaign(table, backend, store)
        campaign.run(Request(tuple(forms)), {})
        return list(campaign.results(forms))
    finally:
        store.close()
        backend.close()


def rows(machine: MachineModel, form: InstructionForm, timing: FormTiming) -> Iterator[Row]:
    """A form's throughput and latencies against the machine."""
    yield _throughput(machine, form, timing)
    cost = cost_of(machine, form)
    truth = Latencies(Ends(form), cost, machine.core, machine.provenance.kind == EXTRACTED)
    read = [latency for latency in timing.latencies if not is_old(latency.source)]
    for pair, latency in zip(pairs(form), read, strict=True):
        name = f"{pair.source.name}->{pair.target.name}"
        if not pair.excluded:
            cycles = truth.between(pair.source, pair.target) or 0.0
            yield _latency(form, pair, latency, cycles, name in cost.latencies)


def _throughput(machine: MachineModel, form: InstructionForm, timing: FormTiming) -> Row:
    allowed = issue_throughput(cost_of(machine, form), machine.core)
    truth, found = allowed[0] if allowed else None, timing.throughput
    if found is None or found.value is None or truth is None:
        reason = found.reason if found else timing.status
        return Row(form.id, "throughput", _kind(form), truth, None, NONE, reason)
    verdict = EQUAL if near(found.value, truth) else WRONG
    if verdict == WRONG and found.kind != EXACT and found.value > truth:
        verdict = HOLDS
    exact = found.kind == EXACT
    return Row(form.id, "throughput", _kind(form), truth, found.value, verdict, found.note, exact=exact)


def _latency(form: InstructionForm, pair: Pair, latency: Latency, truth: float, known: bool) -> Row:
    group = f"{_part(pair.source.part, pair.source.domain)}>{_part(pair.target.part, pair.target.domain)}"
    what = f"{pair.source.name}->{pair.target.name}"
    files = pair.source.domain, pair.target.domain
    if latency.max is None:
        return Row(form.id, what, group, truth, None, NONE, latency.reason, known)
    verdict = EQUAL if near(latency.max, truth) else WRONG
    if verdict == WRONG:
        low, high = latency.bounds or (latency.min or 0.0, latency.max)
        vague = latency.kind != EXACT or latency.bounds
        verdict = HOLDS if vague and low - NEAR <= truth <= high + NEAR else WRONG
    convention = latency.convention if latency.kind == EXACT else ""
    return Row(
        form.id, what, group, truth, latency.max, verdict, latency.note or convention, known, files,
        convention, latency.kind == EXACT,
    )  # fmt: skip


def potentials(found: Iterable[Row]) -> dict[str, float]:
    """By how much conventions move every register file against general registers and memory."""
    found = [row for row in found if row.convention and row.found is not None and row.truth is not None]
    moved = {"r": 0.0, "mem": 0.0}
    for file in sorted({file for row in found for file in row.files} - moved.keys(), reverse=True):
        errors: Counter[float] = Counter()
        for row in found:
            source, target = row.files
            error = round((row.found or 0.0) - (row.truth or 0.0), 2)
            if target == file and source in moved:
                errors[error + moved[source]] += 1
            elif source == file and target in moved:
                errors[moved[target] - error] += 1
        if errors:
            moved[file] = errors.most_common(1)[0][0]
    return moved


def regarded(found: Sequence[Row]) -> list[Row]:
    """The rows, with those equal that are off by nothing but a convention."""
    moved = potentials(found)
    return [msgspec.structs.replace(row, verdict=EQUAL) if _is_moved(row, moved) else row for row in found]


def _is_moved(row: Row, moved: dict[str, float]) -> bool:
    if not row.convention or row.found is None or row.truth is None or not set(row.files) <= moved.keys():
        return False
    return near(row.found, row.truth + moved[row.files[1]] - moved[row.files[0]])


def _part(part: str, domain: str) -> str:
    return part if part in ("address", "index", "data") else domain


def _kind(form: InstructionForm) -> str:
    """The register files of a form, and what it does to memory."""
    files = {op.file for op in form.operands if op.is_register and not op.fixed}
    memory = any(op.is_memory for op in form.operands)
    return "".join(sorted(files)) + ("+memory" if memory else "")


def near(found: float, truth: float) -> bool:
    """Whether two values are the same but for rounding."""
    return abs(found - truth) <= max(NEAR, NEAR * truth)


def sample(table: Table, machine: MachineModel, count: int, seed: int = 1) -> list[InstructionForm]:
    """Forms that the machine has, drawn evenly; all for 0. Vectors of RISC-V in one configuration each."""
    draw = random.Random(seed)
    able: dict[str, list[InstructionForm]] = {}
    for form in select(table, ()):
        if model_form_id(form) in machine.forms:
            able.setdefault(model_form_id(form), []).append(form)
    chosen = draw.sample(list(able.values()), min(count, len(able))) if count else able.values()
    return [draw.choice(some) for some in chosen]


def compare(name: str, count: int, noise: Noise) -> tuple[list[Row], float]:
    """Rows of a machine's forms, and the seconds it took."""
    machine = simulated(name)
    table = load_table(machine.isa)
    forms = sample(table, machine, count)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = timings(machine, table, forms, noise, Path(folder) / "store.sqlite")
    seconds = time.monotonic() - start
    return regarded([row for f, t in zip(forms, found, strict=True) for row in rows(machine, f, t)]), seconds


# --- what it shows ---------------------------------------------------------------------------------


def checks(name: str, found: Iterable[Row]) -> list[Check]:
    """What the round trip has to show for one machine."""
    known = [row for row in found if row.known]
    latencies = [row for row in known if row.what != "throughput" and row.verdict != NONE]
    speeds = [row for row in known if row.what == "throughput" and row.verdict != NONE]
    exact = [[row for row in some if row.exact] for some in (latencies, speeds)]
    return [
        at_least(f"{name}: exact latencies right", _count(exact[0], EQUAL), len(exact[0]), RIGHT),
        at_least(f"{name}: exact throughputs right", _count(exact[1], EQUAL), len(exact[1]), RIGHT),
        Check(
            f"{name}: bounds", share(len(latencies + speeds) - sum(map(len, exact)), len(latencies + speeds))
        ),
        at_least(
            f"{name}: claims that hold",
            len(known) - _count(known, WRONG, NONE),
            len(latencies + speeds),
            RIGHT,
        ),
        Check(f"{name}: no value", f"{_count(known, NONE)} of {len(known)}"),
    ]


def _count(found: Iterable[Row], *verdicts: str) -> int:
    return sum(row.verdict in verdicts for row in found)


def groups(found: Sequence[Row]) -> str:
    """Verdicts by group."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in found:
        what = "throughput" if row.what == "throughput" else "latency"
        counts.setdefault((what, row.group), Counter())[row.verdict] += 1
    shown = ((*key, *(some[v] for v in (EQUAL, HOLDS, WRONG, NONE))) for key, some in sorted(counts.items()))
    return table(("", "group", EQUAL, HOLDS, WRONG, NONE), shown)


def reasons(found: Iterable[Row], most: int) -> str:
    """Why values are missing or bounds, the most frequent reasons first."""
    counts = Counter(
        (row.verdict, "throughput" if row.what == "throughput" else "latency", row.reason[:90])
        for row in found
        if row.verdict in (HOLDS, NONE)
    )
    return table(("", "", "reason", "times"), ((*key, n) for key, n in counts.most_common(most)))


def show(name: str, found: Sequence[Row], seconds: float, wrong: int) -> None:
    """Print one machine."""
    print(f"\n## {name}: {len(found)} values, {seconds:.0f} s\n\n{groups(found)}\n\n{reasons(found, 12)}\n")
    for row in [row for row in found if row.verdict == WRONG][:wrong]:
        print(f"  {row.form} {row.what}: {row.truth:g}, found {row.found:g} ({row.reason}) {row.known}")


def round_trip(names: Sequence[str], count: int, noise: Noise, wrong: int) -> list[Check]:
    """Measure, print and check machines."""
    found: list[Check] = []
    for name in names:
        some, seconds = compare(name, count, noise)
        show(name, some, seconds, wrong)
        found += checks(name, some)
    return found


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("machines", nargs="*", help="LLVM's names")
    options.add_argument("--forms", type=int, default=400, help="forms per machine, 0 for all")
    options.add_argument("--loud", action="store_true", help="with noise")
    options.add_argument("--wrong", type=int, default=10, help="wrong values to list")
    chosen = options.parse_args()
    noise = LOUD if chosen.loud else QUIET
    present(
        "AArch64 and RISC-V on simulated machines",
        lambda: round_trip(chosen.machines or MACHINES, chosen.forms, noise, chosen.wrong),
    )


if __name__ == "__main__":
    main()
