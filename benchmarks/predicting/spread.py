"""By how much LLVM's costs are off, form by form: the factors of `analyze/predict/uncertainty.py`.

    python -m benchmarks.predicting.spread --model FILE [--arch znver4]

The file is a model of measurements on such a CPU (`cyclescope machines build`). A factor is what was measured
by what LLVM says; of latencies the median of a mnemonic's forms counts, as widths of registers and ways of
masking are many forms of one operation.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.lib.common import Check, parser, present, table
from cyclescope.analyze.predict.uncertainty import SPREADS
from cyclescope.isa.table import load_table
from cyclescope.model.machine import EXTRACTED, FormCost, MachineModel
from cyclescope.model.ports import issue_throughput
from cyclescope.session.machines import load_model

_TENTHS = 10
_Pair = tuple[str, FormCost, FormCost]  # mnemonic, measured and extracted cost


def spread(measured: MachineModel, extracted: MachineModel) -> Sequence[Check]:
    """All checks: how many of the factors are within what the analysis takes them to be."""
    pairs = list(_pairs(measured, extracted))
    stated = SPREADS[EXTRACTED]
    kinds = (
        ("throughput", stated.throughput, list(_throughputs(pairs, extracted))),
        ("slots", stated.slots, [m.slots / e.slots for _, m, e in pairs if m.slots and e.slots]),
        ("latency", stated.latency, _latencies(pairs)),
    )
    rows, checks = [], []
    for name, (low, high), factors in kinds:
        tenths = statistics.quantiles(factors, n=_TENTHS)
        inside = sum(low - 0.01 <= factor <= high + 0.01 for factor in factors) / len(factors)
        rows.append((name, str(len(factors)), *(f"{tenth:.2f}" for tenth in tenths)))
        checks.append(Check(f"{name} between {low:g} and {high:g} times LLVM's", f"{inside:.1%}", ">= 75 %",
                            inside >= 0.75))  # fmt: skip
    print(table(("factors", "count", *(f"{n}0 %" for n in range(1, _TENTHS))), rows))
    return checks


def _pairs(measured: MachineModel, extracted: MachineModel) -> Iterator[_Pair]:
    for form in load_table(measured.isa):
        ours, theirs = measured.forms.get(form.id), extracted.forms.get(form.id)
        if ours is not None and theirs is not None:
            yield form.mnemonic, ours, theirs


def _throughputs(pairs: Sequence[_Pair], extracted: MachineModel) -> Iterator[float]:
    for _, ours, theirs in pairs:
        stated = issue_throughput(theirs, extracted.core)
        if ours.throughput and stated and stated[0]:
            yield ours.throughput / stated[0]


def _latencies(pairs: Sequence[_Pair]) -> list[float]:
    """By mnemonic, of pairs whose latency is determined."""
    found: dict[str, list[float]] = {}
    for mnemonic, ours, theirs in pairs:
        for pair, cycles in ours.latencies.items():
            if theirs.latencies.get(pair) and pair not in ours.ranges:
                found.setdefault(mnemonic, []).append(cycles / theirs.latencies[pair])
    return [statistics.median(factors) for factors in found.values()]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--model", required=True)
    options.add_argument("--arch", default="znver4")
    chosen = options.parse_args()
    present("spread", lambda: spread(load_model(chosen.model), load_model(chosen.arch)))


if __name__ == "__main__":
    main()
