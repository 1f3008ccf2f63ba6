"""Predictions of basic blocks: none fails, how fast, how near to measurements, and beside llvm-mca.

    python -m benchmarks.predicting.analyze --reference FOLDER [--arch znver3]

The reference has blocks in a CSV file with the columns `hex`, `asm_att`, `cycles` and `clean` (measured, and
by how trustworthy a measurement). Of llvm-mca, block throughput and the steady state are taken; where ours is
another, it is said why.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, at_least, parser, present, reference_rows, share, table
from benchmarks.lib.processes import command, environment, median_seconds
from benchmarks.lib.stated import newest
from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.cost.known import is_locked
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.analyze.predict.bounds import port_loads
from cyclescope.analyze.predict.by_simulation import Simulation
from cyclescope.analyze.predict.prediction import FRONT_END, PORTS, Prediction
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.errors import CyclescopeError
from cyclescope.model.machine import BINDINGS, EXTRACTED
from cyclescope.session.machines import load_model, stand_in_for
from cyclescope.session.predict import predictor_of

BLOCKS = "bhive_zen3_measured.csv"
PER_1000, SHELL, STARTS = 1.0, 0.4, 15  # seconds; runs of the command
ITERATIONS = 1000  # of llvm-mca, and as many again
EQUAL, NEAR = 0.02, 0.10
INSIDE = 0.75  # of the measurements are in an interval that is to have 8 of 10
MOST_SHOWN = 10
_WHOLE = Choice(whole=True)
_KERNEL = (
    ".L1:\n vmovapd (%rdi,%rax), %ymm0\n vaddpd (%rsi,%rax), %ymm0, %ymm0\n vmovapd %ymm0, (%rdi,%rax)\n"
)
_KERNEL += " addq $32, %rax\n cmpq %rcx, %rax\n jne .L1\n"


class Case(msgspec.Struct, frozen=True):
    """A block with its prediction; `measured` is 0 where nothing trustworthy is."""

    text: str
    block: Block
    found: Prediction
    measured: float


class Stated(msgspec.Struct, frozen=True):
    """What llvm-mca says of a block: throughput of its resources, and cycles in the steady state."""

    throughput: float
    steady: float


# --- ours ------------------------------------------------------------------------------------------


def analyze(reference: Path, arch: str) -> Sequence[Check]:
    """All checks."""
    rows = reference_rows(reference / BLOCKS)
    predictor = predictor_of(arch)
    blocks = [read_block(bytes.fromhex(row["hex"]), choice=_WHOLE) for row in rows]
    cases, failures = _cases(predictor, rows, blocks)
    unknown = sum("no known cost" in failure for failure in failures)
    return [
        at_least("blocks analysed", len(cases), len(rows), 1),
        Check("blocks with unknown instructions", str(unknown), "0", unknown == 0),
        *_times(arch, rows),
        *_errors(predictor, cases),
        *_beside_llvm_mca(predictor, cases),
        _shell(arch),
    ]


def _cases(
    predictor: Predictor, rows: Sequence[dict[str, str]], blocks: Sequence[Block]
) -> tuple[list[Case], list[str]]:
    cases, failures = [], []
    for row, block in zip(rows, blocks, strict=True):
        try:
            found = predictor.predict(block)
        except CyclescopeError as error:
            failures.append(str(error))
            continue
        measured = float(row["cycles"]) if row["clean"] == "1" else 0.0
        cases.append(Case(row["asm_att"], block, found, measured))
    for failure in failures[:MOST_SHOWN]:
        print(failure)
    return cases, failures


def _times(arch: str, rows: Sequence[dict[str, str]]) -> list[Check]:
    """CPU time from machine code to predictions, with a predictor that has seen nothing."""
    codes = [bytes.fromhex(row["hex"]) for row in rows]
    return [
        Check("CPU time per 1000 blocks, bounds", *_taken(arch, codes, False)),
        Check("CPU time per 1000 blocks, with the simulated upper end", _taken(arch, codes, True)[0]),
    ]


def _taken(arch: str, codes: Sequence[bytes], simulate: bool) -> tuple[str, str, bool]:
    model = load_model(arch)
    predictor = Predictor(model, stand_in_for(model))
    start = time.process_time()
    for code in codes:
        block = read_block(code, choice=_WHOLE)
        if simulate:
            predictor.predict(block, ignore_unknown=True)
        else:
            predictor.estimate(block, ignore_unknown=True)
    seconds = (time.process_time() - start) * 1000 / len(codes)
    return f"{seconds:.2f} s", f"<= {PER_1000:.0f} s", seconds <= PER_1000


# --- against measurements --------------------------------------------------------------------------


def _errors(predictor: Predictor, cases: Sequence[Case]) -> list[Check]:
    """Every way to an expected value against what was measured."""
    known = [case for case in cases if case.measured]
    ways: list[tuple[str, list[float]]] = [
        ("expected value", [case.found.cycles for case in known]),
        ("resources alone", [case.found.throughput for case in known]),
        ("dependencies alone", [case.found.lcd for case in known]),
    ]
    for policy in BINDINGS:
        simulation = Simulation(predictor.costs, policy)
        graphs = (predictor.graph(case.block.instructions) for case in known)
        ways.append((f"simulated, {policy} binding", [simulation.run(graph).cycles for graph in graphs]))
    rows = [(name, *_summary(values, known)) for name, values in ways]
    print(table(("against measurements", "mean", "median", f"within {NEAR:.0%}", "below", "above"), rows))
    bracket = sum(_is_in(case.measured, case.found.lower, case.found.upper or 0) for case in known)
    interval = sum(_is_in(case.measured, *case.found.interval) for case in known)
    return [
        Check("measurements within the bracket", share(bracket, len(known))),
        at_least("measurements within the interval", interval, len(known), INSIDE),
    ]


def _is_in(measured: float, low: float, high: float) -> bool:
    return low * (1 - EQUAL) <= measured <= high * (1 + EQUAL)


def _summary(values: Sequence[float], cases: Sequence[Case]) -> tuple[str, ...]:
    ratios = [value / case.measured - 1 for value, case in zip(values, cases, strict=True)]
    errors = [abs(ratio) for ratio in ratios]
    count = len(errors)
    return (
        f"{statistics.fmean(errors):.1%}", f"{statistics.median(errors):.1%}",
        f"{sum(e <= NEAR for e in errors) / count:.1%}",
        f"{sum(r < -NEAR for r in ratios) / count:.1%}", f"{sum(r > NEAR for r in ratios) / count:.1%}",
    )  # fmt: skip


# --- beside llvm-mca -------------------------------------------------------------------------------


def _beside_llvm_mca(predictor: Predictor, cases: Sequence[Case]) -> list[Check]:
    arch = predictor.machine.name
    if predictor.machine.provenance.kind != EXTRACTED:
        return [Check("llvm-mca", "has another model")]
    program = newest()
    if program is None:
        return [Check("llvm-mca", "not installed")]
    stated, seconds = _stated(program, arch, cases)
    pairs = [(case, one) for case, one in zip(cases, stated, strict=True) if one is not None]
    known = [(case, one) for case, one in pairs if case.measured]
    rows = [(name, *_summary(v, [c for c, _ in known])) for name, v in (
        ("llvm-mca, steady state", [one.steady for _, one in known]),
        ("llvm-mca, block throughput", [one.throughput for _, one in known]),
    )]  # fmt: skip
    print(table(("against measurements", "mean", "median", f"within {NEAR:.0%}", "below", "above"), rows))
    reasons = [_difference(case, one, predictor) for case, one in pairs]
    print(table(("throughput beside llvm-mca", "blocks"), Counter(reasons).most_common()))
    shown = [
        (case.text[:90], f"{_resources(case):.2f}", f"{one.throughput:.2f}")
        for reason, (case, one) in zip(reasons, pairs, strict=True) if not reason
    ]  # fmt: skip
    if shown:
        print(table(("unexplained", "ours", "llvm-mca"), shown[:MOST_SHOWN]))
    return [
        at_least("throughput equal to llvm-mca's, or explained", len(pairs) - len(shown), len(pairs), 1),
        Check("llvm-mca's CPU time per 1000 blocks", f"{seconds * 1000 / len(cases):.2f} s"),
    ]


def _resources(case: Case) -> float:
    return max(case.found.bounds[PORTS], case.found.bounds[FRONT_END])


def _difference(case: Case, stated: Stated, predictor: Predictor) -> str:
    """Why the bounds differ, "" where nothing says."""
    ours, theirs = _resources(case), stated.throughput
    costs = predictor.graph(case.block.instructions).costs
    loads = port_loads(costs)
    groups = max((cycles / ports.bit_count() for ports, cycles in loads.items()), default=0.0)
    reasons = {
        "equal": abs(ours - theirs) <= EQUAL * theirs,
        "sets of ports that are full together, which llvm-mca does not look at":
            ours > theirs and max(groups, case.found.bounds[FRONT_END]) <= theirs * (1 + EQUAL),
        "a LEA of three parts, whose example in the model has two":
            any(_is_three_part(one) for one in case.block.instructions),
        "LOCK, an instruction of its own to llvm-mca": any(is_locked(placed.form) for placed in costs),
        "MOVZX of memory, of which llvm-mca counts an ALU that is not in its tables": ours < theirs
        and any(_extends_memory(one) for one in case.block.instructions),
        "idioms and moves that need no port": ours < theirs and any(
            placed.variant.idiom == "zero" or placed.cost.eliminated for placed in costs
        ),
    }  # fmt: skip
    return next((reason for reason, holds in reasons.items() if holds), "")


def _extends_memory(one: BlockInstruction) -> bool:
    form = one.form
    return form is not None and form.memory >= 0 and form.mnemonic in ("MOVZX", "MOVSX", "MOVSXD")


def _is_three_part(one: BlockInstruction) -> bool:
    form, memory = one.form, [address for address in one.memory if address is not None]
    if form is None or form.mnemonic != "LEA" or not memory:
        return False
    return memory[0].base is not None and memory[0].index is not None and memory[0].displacement != 0


def _stated(program: str, arch: str, cases: Sequence[Case]) -> tuple[list[Stated | None], float]:
    """llvm-mca on all blocks in two runs, and the CPU time of the first."""
    before = _children()
    short = _run_llvm_mca(program, arch, cases, ITERATIONS)
    seconds = _children() - before
    long = _run_llvm_mca(program, arch, cases, 2 * ITERATIONS)
    found: list[Stated | None] = []
    for number in range(len(cases)):
        one, two = short.get(f"b{number}"), long.get(f"b{number}")
        steady = (two["TotalCycles"] - one["TotalCycles"]) / ITERATIONS if one and two else 0.0
        found.append(Stated(one["BlockRThroughput"], steady) if one and two else None)
    return found, seconds


def _run_llvm_mca(
    program: str, arch: str, cases: Sequence[Case], iterations: int
) -> dict[str, dict[str, float]]:
    """Summaries by region."""
    lines = []
    for number, case in enumerate(cases):
        body = case.text.replace("; ", "\n")
        lines.append(f"# LLVM-MCA-BEGIN b{number}\n{body}\n# LLVM-MCA-END")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "blocks.s"
        source.write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            [program, "-mtriple=x86_64", f"-mcpu={arch}", f"-iterations={iterations}", "-json",
             "-instruction-info=0", "-resource-pressure=0", str(source)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    regions = json.loads(done.stdout)["CodeRegions"] if done.stdout else []
    return {region["Name"]: region["SummaryView"] for region in regions}


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# --- the command -----------------------------------------------------------------------------------


def _shell(arch: str) -> Check:
    """From the shell; the least of several runs, since other programs only add to it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.s"
        source.write_text(_KERNEL)
        line = command("analyze", source, "--arch", arch)
        compiled = environment(PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=folder)  # as installed
        median_seconds(line, 1, compiled)
        least, median, _ = median_seconds(line, STARTS, compiled)
    return Check(
        "`cyclescope analyze` of one kernel from the shell",
        f"{least * 1000:.0f} ms, median {median * 1000:.0f} ms of {STARTS}, load {os.getloadavg()[0]:.1f}",
        f"<= {SHELL * 1000:.0f} ms",
        least <= SHELL,
    )


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--reference", type=Path, required=True)
    options.add_argument("--arch", default="znver3")
    chosen = options.parse_args()
    present("analyze", lambda: analyze(chosen.reference, chosen.arch))


if __name__ == "__main__":
    main()
