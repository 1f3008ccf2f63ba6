"""A draft of a scheduling model against measured blocks: what it predicts, and what it costs to be one.

    python -m benchmarks.predicting.draft --model M.json --measured TIMED.csv [--llvm NAME]
        [--built PROGRAM:CPU]

The model of a measured machine is written as LLVM's, read again, and both predict blocks that were timed on
that machine (`validate --output`), with the same predictor: what differs is what the format cannot express.
Then each thing that a draft lacks is taken from the whole model alone, which says how much of the error is
its. `--llvm` names the model that LLVM uses for the core today: in the same predictor, and in the llvm-mca
that is installed. `--built` is an llvm-mca that was built with the draft, and what it calls the CPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, parser, present, table
from cyclescope.analyze.decode.block import Block
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.formats.exchange import ImportRequest
from cyclescope.formats.llvm.drafts import read
from cyclescope.formats.llvm.scheduling import write
from cyclescope.model.library import llvm_model
from cyclescope.model.machine import Core, FormCost, MachineModel
from cyclescope.session.accuracy import Accuracy, PredictedTime, accuracy
from cyclescope.session.block_files import read_timings
from cyclescope.session.blocks import NOTIONS
from cyclescope.session.machines import load_model
from cyclescope.session.predictors import Analytic, BlockAnswer, BlockPredictor, LlvmMca
from cyclescope.session.validation import known

COLUMNS = ("model", "blocks", "none", "mean error %", "median %", "within 10 %", "too low %", "too high %")
DRAFT, TODAY = "the draft", "LLVM's"


def drafted(model: MachineModel) -> MachineModel:
    """What is left of a model in a draft; forms that it has no opcode for are not there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draft.td"
        path.write_text(write(model).text, encoding="utf-8")
        found = read(path, ImportRequest(f"draft of {model.name}", "draft.td", isa=model.isa)).model
    return msgspec.structs.replace(found, core=msgspec.structs.replace(found.core, width_kind=""))


# --- what a draft lacks -------------------------------------------------------------------------------

_FRONT_END = ("whole", "fetch", "lengths", "nops", "binding", "forward_latency", "schedulers")


def without(model: MachineModel, draft: MachineModel) -> dict[str, MachineModel]:
    """The whole model with one thing after the other as the draft has it."""
    facts = msgspec.structs.replace(model, facts=())
    plain = {name: getattr(Core(1.0), name) for name in _FRONT_END}
    front = msgspec.structs.replace(model, core=msgspec.structs.replace(model.core, **plain))
    return {
        "without what probes found of the core": facts,
        "without front-end lengths, NOPs, queues, binding": front,
        "with idioms and moves at rename of the draft": _forms(model, draft, "idiom", "eliminated"),
        "without resources and throughputs": _forms(
            model, draft, "resources", "throughput", "throughput_most"
        ),
        "with latencies of the draft": _forms(model, draft, "latencies", "ranges"),
        "with front-end slots of the draft": _forms(model, draft, "slots", "slot_range"),
        "with ports of the draft": _ports(model, draft),
    }


def _forms(model: MachineModel, draft: MachineModel, *fields: str) -> MachineModel:
    """Some fields of all forms as the draft has them."""
    found = dict(model.forms)
    for name, cost in draft.forms.items():
        if name in found:
            found[name] = msgspec.structs.replace(found[name], **{one: getattr(cost, one) for one in fields})
    return msgspec.structs.replace(model, forms=found)


def _ports(model: MachineModel, draft: MachineModel) -> MachineModel:
    """Operations as the draft has them, its own ports behind those of the model."""
    ports = tuple(dict.fromkeys((*model.ports, *draft.ports)))
    place = [ports.index(name) for name in draft.ports]
    forms: dict[str, FormCost] = dict(model.forms)
    for name, cost in draft.forms.items():
        if name in forms and cost.operations is not None:
            moved = tuple(
                msgspec.structs.replace(op, ports=tuple(place[port] for port in op.ports))
                for op in cost.operations
            )
            forms[name] = msgspec.structs.replace(forms[name], operations=moved)
    return msgspec.structs.replace(model, ports=ports, forms=forms)


# --- predicting ---------------------------------------------------------------------------------------


def contenders(
    model: MachineModel, draft: MachineModel, llvm: str, built: str
) -> Iterator[tuple[str, BlockPredictor]]:
    """Who predicts, the whole model and the draft first."""
    yield "the whole model", Analytic(model)
    yield DRAFT, Analytic(draft)
    for name, less in without(model, draft).items():
        yield name, Analytic(less)
    if built:
        program, _, cpu = built.rpartition(":")
        yield f"{DRAFT}, its llvm-mca", LlvmMca(model, cpu, program)
    if llvm:
        today = llvm_model(llvm)
        yield f"{TODAY} {today.name}, same predictor", Analytic(today)
        try:
            own = LlvmMca(today)
            yield f"{TODAY} {today.name}, {own.model}", own
        except (BackendUnavailable, UsageError) as error:
            print(f"no llvm-mca: {error}")


def compare(model: MachineModel, measured: Path, llvm: str, built: str = "") -> Sequence[Check]:
    """Errors on the blocks of a file, in each way that they were timed."""
    draft = drafted(model)
    print(f"{model.name}: {len(model.forms)} forms, {len(draft.forms)} in the draft\n")
    timings, _ = read_timings(measured, model.isa)
    found = []
    for notion in NOTIONS:
        some = [(case.block, timing.cycles) for case, timing in known(timings, notion) if timing.is_clean]
        if some:
            found += _section(notion, some, list(contenders(model, draft, llvm, built)))
    return found


def _section(
    notion: str, some: Sequence[tuple[Block, float]], every: Sequence[tuple[str, BlockPredictor]]
) -> Iterator[Check]:
    """A table of all, on the blocks that all of them predict, and the draft against LLVM's of today."""
    answers = {name: one.answers([block for block, _ in some]) for name, one in every}
    told = [n for n in range(len(some)) if all(own[n].cycles is not None for own in answers.values())]
    errors = {name: _accuracy(own, some, told) for name, own in answers.items()}
    rows = [_row(name, errors[name], sum(a.cycles is None for a in own)) for name, own in answers.items()]
    print(
        f"## {notion}: {len(some)} blocks, {len(told)} of them predicted by all\n\n{table(COLUMNS, rows)}\n"
    )
    draft = errors[DRAFT].mape or 0.0
    yield Check(f"{notion}: mean error of the draft", f"{draft:.1f} %")
    for name, found in errors.items():
        if name.startswith(TODAY) and found.mape is not None:
            what = f"{notion}: the draft is nearer than {name}"
            yield Check(what, f"{draft:.1f} %", f"<= {found.mape:.1f} %", draft <= found.mape)


def _accuracy(
    own: Sequence[BlockAnswer], some: Sequence[tuple[Block, float]], told: Sequence[int]
) -> Accuracy:
    return accuracy([PredictedTime(some[n][1], own[n].cycles or 0.0) for n in told])


def _row(name: str, found: Accuracy, absent: int) -> tuple[object, ...]:
    shares = (found.mape, found.median, found.within_10, found.too_low, found.too_high)
    return name, found.blocks, absent, *(f"{share:.1f}" for share in shares if share is not None)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--model", required=True, help="a model of a measured machine")
    options.add_argument("--measured", type=Path, required=True, help="blocks that were timed on it")
    options.add_argument("--llvm", default="", help="LLVM's name of the core that its model of today is of")
    options.add_argument("--built", default="", help="PROGRAM:CPU, an llvm-mca that was built with the draft")
    chosen = options.parse_args()
    present("draft", lambda: compare(load_model(chosen.model), chosen.measured, chosen.llvm, chosen.built))


if __name__ == "__main__":
    main()
