"""What each fact of a measured machine buys: predictions of timed blocks with one after the other taken away.

    python -m benchmarks.predicting.ablation --model M.json --measured TIMED.csv [--predictor NAME]

A row for each probe whose answers the model has, and for how ports are chosen, resources that forms share,
throughputs with an index in the address, and all that no port explains. The blocks (`validate --output`)
should be none that helped to find an effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, parser, present, table
from cyclescope.analyze.decode.block import Block
from cyclescope.model.machine import Core, MachineModel
from cyclescope.session.accuracy import Accuracy, PredictedTime, accuracy
from cyclescope.session.block_files import read_timings
from cyclescope.session.blocks import KERNELS, NOTIONS
from cyclescope.session.machines import load_model
from cyclescope.session.predictors import predictors
from cyclescope.session.validation import known

COLUMNS = ("without", "mean error %", "more", "median %", "tau", "within 10 %", "predicted otherwise")
NOTHING = "nothing: the whole model"
_BINDING = ("binding", "single", "wakeup", "writeback")


def ablated(model: MachineModel) -> Iterator[tuple[str, MachineModel]]:
    """The model, and the model without one thing after the other."""
    yield NOTHING, model
    for probe in sorted({fact.probe for fact in model.facts}):
        kept = tuple(fact for fact in model.facts if fact.probe != probe)
        yield f"probe {probe}", msgspec.structs.replace(model, facts=kept)
    plain = {name: getattr(Core(1.0), name) for name in _BINDING}
    core = msgspec.structs.replace(model.core, **plain)
    yield "how ports are chosen", msgspec.structs.replace(model, core=core)
    core = msgspec.structs.replace(model.core, writeback=None)
    yield "one result of a port in a cycle", msgspec.structs.replace(model, core=core)
    yield "shared resources", _without(model, resources={})
    yield "throughputs with an index", _without(model, indexed_throughput=None)
    yield "throughputs", _without(model, throughput=None, indexed_throughput=None)


def _without(model: MachineModel, **fields: object) -> MachineModel:
    forms = {name: msgspec.structs.replace(cost, **fields) for name, cost in model.forms.items()}
    return msgspec.structs.replace(model, forms=forms)


def ablation(model: MachineModel, measured: Path, predictor: str) -> Sequence[Check]:
    """A table for each way that the blocks of a file were timed."""
    timings, _ = read_timings(measured, model.isa)
    checks = []
    for notion in (*NOTIONS, KERNELS):
        some = [(case.block, timing.cycles) for case, timing in known(timings, notion) if timing.is_clean]
        if some:
            whole = _section(notion, some, model, predictor)
            checks.append(Check(f"{notion}: mean error of the whole model", f"{whole.mape:.2f} %"))
    return checks


def _section(
    notion: str, some: Sequence[tuple[Block, float]], model: MachineModel, predictor: str
) -> Accuracy:
    """Prints a table; the first of its rows."""
    found = [(name, _predicted(one, some, predictor)) for name, one in ablated(model)]
    told = [n for n in range(len(some)) if all(cycles[n] for _, cycles in found)]
    errors = [accuracy([PredictedTime(some[n][1], own[n]) for n in told]) for _, own in found]
    whole = found[0][1]
    rows = [
        (name, *_cells(one, errors[0]), sum(abs(own[n] / whole[n] - 1) > 1e-6 for n in told))
        for (name, own), one in zip(found, errors, strict=True)
    ]
    rows[1:] = sorted(rows[1:], key=lambda row: -float(str(row[2])))
    print(f"## {notion}: {len(told)} of {len(some)} blocks, {predictor}\n\n{table(COLUMNS, rows)}\n")
    return errors[0]


def _predicted(model: MachineModel, some: Sequence[tuple[Block, float]], predictor: str) -> list[float]:
    """Cycles of all blocks, 0 where there are none."""
    (one,), _ = predictors([predictor], model)
    return [answer.cycles or 0.0 for answer in one.answers([block for block, _ in some])]


def _cells(found: Accuracy, whole: Accuracy) -> tuple[str, ...]:
    more = (found.mape or 0.0) - (whole.mape or 0.0)
    parts = (found.mape, more, found.median, found.kendall_tau, found.within_10)
    return tuple(f"{part or 0.0:.{3 if part is found.kendall_tau else 2}f}" for part in parts)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--model", required=True, help="a model of a measured machine")
    options.add_argument("--measured", type=Path, required=True, help="blocks that were timed on it")
    options.add_argument("--predictor", choices=("analytic", "simulated"), default="simulated")
    chosen = options.parse_args()
    present("ablation", lambda: ablation(load_model(chosen.model), chosen.measured, chosen.predictor))


if __name__ == "__main__":
    main()
