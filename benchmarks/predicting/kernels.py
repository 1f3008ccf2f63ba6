"""Loop kernels with a published or measured analysis: what comes out, and why it is not the same.

    python -m benchmarks.predicting.kernels --reference FOLDER

The folder has `kernels/kernels_expected.csv` (even and best port bound, loop-carried dependency, critical
path, measured cycles; ranges as `3-4.4`) and the kernels. Machines are LLVM's models, of the ThunderX2 the
paper's. A deviation counts as explained if the reason is written down below; every reason is about a
model's data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.lib.common import ROOT, Check, at_least, parser, present, reference_rows, table
from cyclescope.analyze.choose.source import Choice
from cyclescope.analyze.predict.prediction import CRITICAL_PATH_FIXED, PORTS, PORTS_FIXED, Prediction
from cyclescope.session.predict import predict

EQUAL = 0.02
INSIDE = 0.75  # of the measurements are in an interval that is to have 8 of 10
MACHINES = {
    "ThunderX2": str(ROOT / "tests/golden/aarch64/thunderx2/model.json"),
    "Neoverse V2": "V2", "Sandy Bridge": "SNB", "Cascade Lake": "CSX", "Zen 3": "ZEN3", "Zen 1": "ZEN1",
}  # fmt: skip
_FORWARDING = "LLVM has no forwarding latency: that of the load (5) and 2 are taken"
_LOADS = "LLVM's latency of these loads is longer than OSACA's"
_FEWER = "LLVM gives these instructions fewer ports than the core has for them"
_STORE = "LLVM: loads and stores share three ports, of which these take two"
REASONS = {
    ("fmadd_recurrence_v2", "CP"): _LOADS,
    ("stream_triad_snb", "fixed"): "fused comparisons take the branch's port alone",
    ("stream_triad_snb", "CP"): _LOADS,
    ("stream_triad_csx_ymm", "CP"): _LOADS,
    ("stream_triad_zen3_ymm", "fixed"): "LLVM: vector loads and stores take a port to general registers too",
    ("stream_triad_zen3_ymm", "ports"): "LLVM: vector loads and stores take a port to general registers too",
    ("stream_triad_zen3_ymm", "CP"): _LOADS,
    ("z3_adc2", "ports"): _FEWER,
    ("z3_cmov_flags", "ports"): _FEWER,
    ("z3_divsd", "ports"): "LLVM: the divider is busy 5 cycles",
    ("z3_fwd_gpr", "LCD"): _FORWARDING,
    ("z3_fwd_rsp", "LCD"): "renamed memory: the cycle is the bound of renamed steps, 1",
    ("z3_mov_elim", "ports"): "eliminated moves need no port: the 0.5 are the front end's",
    ("z3_nop4", "ports"): "LLVM: NOP needs an ALU",
    (
        "z3_pop6",
        "ports",
    ): "LLVM: three loads a cycle; the measured loop walks out of the lines that are at hand",
    ("z3_ptr_chase", "LCD"): "LLVM: this load takes 5 cycles",
    ("z3_rmw", "LCD"): _FORWARDING,
    ("z3_rmw", "ports"): _STORE,
    ("z3_rmw_rsp", "ports"): _STORE,
    ("z3_store2_same", "ports"): "LLVM: a store each cycle; two leave at once if they are in one chunk",
}


def kernels(reference: Path) -> Sequence[Check]:
    """All checks."""
    rows = reference_rows(reference / "kernels/kernels_expected.csv")
    shown, deviations, inside, measured = [], [], 0, 0
    for row in rows:
        path = reference / "kernels" / row["file"]
        if not path.is_file():
            shown.append((row["kernel"], *("",) * 7, "no text"))
            continue
        found = _predicted(path, row["arch"])
        cycles = float(row["measured_cy_per_body"] or 0)
        measured += bool(cycles)
        inside += bool(cycles) and _is_in(cycles, *found.interval)
        own = list(_deviations(row, found))
        deviations += own
        shown.append(_shown(row, found, [reason for _, reason in own]))
    head = ("kernel", "even", "ports", "LCD", "CP", "measured", "expected", "interval", "deviates because")
    print(table(head, shown))
    open_ones = [f"{row}: {what}" for (row, what), reason in deviations if not reason]
    for one in open_ones:
        print(f"UNEXPLAINED {one}")
    return [
        at_least("deviations explained", len(deviations) - len(open_ones), len(deviations), 1),
        at_least("measurements within the interval", inside, measured, INSIDE),
    ]


def _predicted(path: Path, arch: str) -> Prediction:
    text = path.read_text()
    return predict(path, MACHINES[arch], choice=Choice(whole="BEGIN" not in text and ".L" not in text))


def _values(row: dict[str, str], found: Prediction) -> Iterator[tuple[str, str, list[float]]]:
    """What is compared: its name, what is wanted, and what counts as the same."""
    yield "fixed", row["tp_fixed"], [found.bounds[PORTS_FIXED]]
    yield "ports", row["tp_optimal"], [found.bounds[PORTS], found.throughput]
    yield "LCD", row["lcd"], [found.lcd]
    yield "CP", row["cp"], [found.cp, found.bounds[CRITICAL_PATH_FIXED]]


def _deviations(row: dict[str, str], found: Prediction) -> Iterator[tuple[tuple[str, str], str]]:
    for name, wanted, values in _values(row, found):
        if wanted:
            low, _, high = wanted.partition("-")
            if not any(_is_in(value, float(low), float(high or low)) for value in values):
                yield (row["kernel"], name), REASONS.get((row["kernel"], name), "")


def _is_in(value: float, low: float, high: float) -> bool:
    return low - EQUAL * max(low, 0.5) <= value <= high + EQUAL * max(high, 0.5)


def _shown(row: dict[str, str], found: Prediction, reasons: Sequence[str]) -> tuple[str, ...]:
    pairs = (f"{values[0]:.2f} ({wanted or '-'})" for _, wanted, values in _values(row, found))
    return (
        row["kernel"], *pairs, row["measured_cy_per_body"], f"{found.cycles:.2f}",
        f"{found.interval[0]:.2f} to {found.interval[1]:.2f}", "; ".join(dict.fromkeys(reasons)),
    )  # fmt: skip


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--reference", type=Path, required=True)
    chosen = options.parse_args()
    present("kernels", lambda: kernels(chosen.reference))


if __name__ == "__main__":
    main()
