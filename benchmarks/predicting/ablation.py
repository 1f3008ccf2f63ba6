"""What each fact of a measured machine buys: predictions of timed blocks with one after the other taken away.

    python -m benchmarks.predicting.ablation --model M.json --measured TIMED.csv [--predictor NAME]

A row for each probe whose answers the model has, for each of the things that one probe finds (`PARTS`), and
for what the front end (`CORE`), the renamer and single forms (`WITHOUT`) were found to do. The blocks
(`validate --output`) should be none that helped to find an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, parser, present, table
from cyclescope.analyze.decode.block import Block
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.found import LINE_SIZES, SMALL_PLACES, SPACINGS, WIDE_BITS
from cyclescope.model.behaviour.late_loads import CHAIN_LENGTHS, chained_loads
from cyclescope.model.behaviour.nops import is_nop
from cyclescope.model.behaviour.store_lines import MANY, ROWS, stores_in_lines
from cyclescope.model.facts import (
    ACROSS_AND_BEHIND,
    BESIDE_STORES,
    CONSTANT_BITS,
    COUNTED_AMONG,
    LOADED_AGAIN,
    LOADED_PLACES,
    LOADS_AND_OPERATIONS,
    PARTIAL_BITS,
    STACK_MOVES,
    STACK_READS,
    STACK_UPDATE,
    TRIP_ADDITIONS,
    TRIP_NOPS,
    WITH_CONSTANTS,
    Addressed,
    Fact,
    More,
    WideLoad,
    addressed_subject,
    beside_stores,
    constants_alone,
    fused_forms,
    loads_across,
    loop_with,
    small_stores,
    stacked_constant,
    stored_constant,
    stores_across,
    stores_apart,
    stores_loaded,
    trip_subject,
    update_subject,
    wide_loads,
)
from cyclescope.model.machine import Core, FormCost, MachineModel
from cyclescope.session.accuracy import Accuracy, PredictedTime, accuracy
from cyclescope.session.block_files import read_timings
from cyclescope.session.blocks import KERNELS, NOTIONS
from cyclescope.session.machines import load_model
from cyclescope.session.predictors import predictors
from cyclescope.session.validation import known

COLUMNS = ("without", "mean error %", "more", "median %", "tau", "within 10 %", "predicted otherwise")
NOTHING = "nothing: the whole model"
_BINDING = ("binding", "single", "wakeup", "writeback", "ahead", "rotating")
_LINES = tuple(f"{size} bytes" for size in LINE_SIZES)
_BY_INDEX = (Addressed.STORE, Addressed.OPERATION, Addressed.UPDATE)

PARTS: Mapping[str, frozenset[str]] = {
    "chunks that stores leave in": frozenset(map(stores_apart, SPACINGS)),
    "stores to many lines in turn": frozenset(stores_in_lines(row, MANY) for row in ROWS),
    "parts of words that are stored": frozenset(
        small_stores(bits, places) for bits in PARTIAL_BITS for places in (2, *SMALL_PLACES)
    ),
    "stores that are loaded again": frozenset(map(stores_loaded, LOADED_AGAIN)),
    "wide loads beside stores": frozenset(beside_stores(b, n) for b in WIDE_BITS for n in BESIDE_STORES),
    "loads that come late": frozenset((LOADED_PLACES, LOADS_AND_OPERATIONS)),
    "room for loads on their way": frozenset(map(chained_loads, CHAIN_LENGTHS)),
    "loads across lines": frozenset(map(loads_across, _LINES)),
    "loads of vectors across lines": frozenset(wide_loads(b, w) for b in WIDE_BITS for w in WideLoad),
    "stores across lines": frozenset(map(stores_across, _LINES)),
    "stores that leave with those across lines": frozenset((ACROSS_AND_BEHIND,)),
    "indices in addresses": frozenset(addressed_subject(one, more) for one in _BY_INDEX for more in More),
    "constants stored by the stack pointer": frozenset(
        addressed_subject(stacked_constant(bits), More.ADDITIONS) for bits in CONSTANT_BITS
    ),
    "counts that branch": frozenset(COUNTED_AMONG),
    "constants that are stored": frozenset(
        subject
        for bits in CONSTANT_BITS
        for subject in (addressed_subject(stored_constant(bits), More.ADDITIONS), constants_alone(bits))
    ),
    "operations on the stack pointer": frozenset(
        (STACK_READS, *(addressed_subject(Addressed.POINTED, more) for more in More))
    ),
    "stack pointers out of date": frozenset((STACK_UPDATE,)),
    "moves of the stack pointer": frozenset((STACK_MOVES,)),
    "round trips through memory": frozenset(
        (*map(trip_subject, TRIP_ADDITIONS), *map(update_subject, TRIP_NOPS))
    ),
    "constants in lines of code": frozenset(
        loop_with(count, what, among) for (what, among), some in WITH_CONSTANTS.items() for count in some
    ),
}
"""Subjects of probes' answers by what they are about together, where a probe finds several things."""


def _unranged(cost: FormCost) -> dict[str, float]:
    """One latency, the most of all, for every pair of operands."""
    return dict.fromkeys(cost.latencies, max(cost.latencies.values(), default=0.0))


def _executed(cost: FormCost) -> FormCost:
    """A move that the renamer does, as if an operation did it whose ports nobody knows."""
    if not cost.eliminated:
        return cost
    return msgspec.structs.replace(cost, eliminated=False, operations=None, latencies={})


WITHOUT: Mapping[str, Callable[[FormCost], FormCost]] = {
    "shared resources": lambda cost: msgspec.structs.replace(cost, resources={}),
    "throughputs with an index": lambda cost: msgspec.structs.replace(cost, indexed_throughput=None),
    "throughputs": lambda cost: msgspec.structs.replace(cost, throughput=None, indexed_throughput=None),
    "slots of forms": lambda cost: msgspec.structs.replace(cost, slots=1.0, slot_range=None),
    "moves that the renamer does": _executed,
    "idioms": lambda cost: msgspec.structs.replace(cost, idiom=""),
    "latencies of single pairs": lambda cost: msgspec.structs.replace(cost, latencies=_unranged(cost)),
}
"""What a cost is without one thing that was measured of its form."""

CORE: Mapping[str, tuple[str, ...]] = {
    "how ports are chosen": _BINDING,
    "one result of a port in a cycle": ("writeback",),
    "ports chosen for a cycle as a whole": ("ahead",),
    "ports that take operations in turn": ("rotating",),
    "instructions that are not divided": ("whole",),
    "NOPs that share slots": ("nops",),
    "instructions of which a cycle takes fewer": ("narrow",),
    "bytes of code in a cycle": ("fetch", "lengths"),
}
"""Fields of a core that are one thing."""


def ablated(model: MachineModel) -> Iterator[tuple[str, MachineModel]]:
    """The model, and the model without one thing after the other that it has."""
    yield NOTHING, model
    for name, other in (*_without_facts(model), *_without_fields(model)):
        if other != model:
            yield name, other


def _without_facts(model: MachineModel) -> Iterator[tuple[str, MachineModel]]:
    """The model without answers of probes: all of one, or those about one thing."""
    for probe in sorted({fact.probe for fact in model.facts}):
        yield f"probe {probe}", _keeping(model, lambda fact, probe=probe: fact.probe != probe)
    for name, subjects in PARTS.items():
        yield name, _keeping(model, lambda fact, subjects=subjects: fact.subject not in subjects)
    nops = {form.id for form in load_table(model.isa) if is_nop(form)}
    yield "NOPs behind others", _keeping(model, lambda fact: fused_forms(fact.subject)[1] not in nops)


def _keeping(model: MachineModel, keeps: Callable[[Fact], bool]) -> MachineModel:
    return msgspec.structs.replace(model, facts=tuple(filter(keeps, model.facts)))


def _without_fields(model: MachineModel) -> Iterator[tuple[str, MachineModel]]:
    """The model without what is known of the core as a whole, or of each form."""
    plain = Core(1.0)
    for name, fields in CORE.items():
        core = msgspec.structs.replace(model.core, **{field: getattr(plain, field) for field in fields})
        yield name, msgspec.structs.replace(model, core=core)
    for name, changed in WITHOUT.items():
        forms = {form: changed(cost) for form, cost in model.forms.items()}
        yield name, msgspec.structs.replace(model, forms=forms)


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
