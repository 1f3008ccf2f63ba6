"""`cyclescope validate`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from cyclescope.backend.link import Link
from cyclescope.cli.options import OutputFile, WritingCommand, cpu_option, json_option, target_option
from cyclescope.cli.short_life import end_at_once
from cyclescope.cli.writing import write_file
from cyclescope.errors import UsageError
from cyclescope.garbage import uncollected
from cyclescope.host.uname import host_isa
from cyclescope.model.machine import MachineModel
from cyclescope.report.predictions.validation import WORST, table_row, validation_json, validation_text
from cyclescope.session.blocks import KERNELS, LOOP, NOTIONS, UNROLLED, ProgramBlock
from cyclescope.session.predictors import (
    PREDICTOR_NAMES,
    USUAL_PREDICTORS,
    AblatedPredictor,
    BlockPredictor,
    ablated,
    predictors,
)

if TYPE_CHECKING:
    from cyclescope.backend.native import NativeBackend
    from cyclescope.host.identity import Identity
    from cyclescope.session.search.finding import SearchResult
    from cyclescope.session.validation import Validation, ValidationSection

_FILE = click.Path(path_type=Path, dir_okay=False)
_AS = {UNROLLED: (UNROLLED,), LOOP: (LOOP,), "both": NOTIONS}
SEED = 1
MOST_DRAWN = 1_000_000  # of blocks to search in, which takes hours
FINDINGS = 12  # of a search, as many as somebody reads
_OURS = "."  # of --kernels without a folder
_OPTIONS: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
    click.option("--blocks", type=_FILE, metavar="FILE",
                 help="Blocks, hexadecimal or assembly, one per line, or CSV; default: of loops that ship."),
    click.option("--kernels", is_flag=False, flag_value=_OURS, type=click.Path(path_type=Path),
                 metavar="[DIR]", help="Compile and run C loops instead; without DIR those that ship."),
    click.option("--measured", type=_FILE, metavar="FILE",
                 help="Blocks that were timed before: nothing is measured."),
    click.option("--predictors", "names", default=",".join(USUAL_PREDICTORS), show_default=True,
                 metavar="LIST",
                 help=f"Any of {', '.join(PREDICTOR_NAMES)}."),
    click.option("--arch", metavar="NAME|native|FILE", help="Machine to predict with; default: this one."),
    click.option("--as", "notion", type=click.Choice(list(_AS)), default="both", show_default=True,
                 help="Time copies of a block that follow each other, or loops."),
    click.option("--sample", type=click.IntRange(min=1), metavar="N",
                 help="Take N blocks, drawn at random."),
    click.option("--seed", type=int, default=SEED, show_default=True, help="Seed of the sample."),
    click.option("--worst", type=click.IntRange(min=0), default=WORST, show_default=True,
                 help="Number of blocks to list that are furthest off."),
    click.option("--search", type=click.IntRange(min=1, max=MOST_DRAWN), metavar="N",
                 help="Draw N blocks instead, and look for effects that the first predictor does not know."),
    click.option("--against", metavar="PREDICTOR", default="",
                 help="With --search: compare with this predictor, not with the machine."),
    click.option("--ablation", is_flag=True,
                 help="Also predictions without what each probe found of the core."),
    click.option("--output", type=OutputFile(), metavar="FILE", help="Write the timed blocks here, as CSV."),
    click.option("--html", "as_html", type=OutputFile(), metavar="FILE", help="Write a page here."),
    target_option,
    cpu_option,
    json_option,
]  # fmt: skip


class ValidationOptions(msgspec.Struct, frozen=True):
    """What is to be measured and predicted."""

    blocks: Path | None
    kernels: Path | None
    measured: Path | None
    names: tuple[str, ...]
    arch: str | None
    notions: tuple[str, ...]
    sample: int
    seed: int
    link: Link
    cpu: int | None
    ablation: bool = False
    search: int = 0
    against: str = ""


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command("validate", cls=WritingCommand)
@_with_options
def command(
    blocks: Path | None, kernels: Path | None, measured: Path | None, names: str, arch: str | None,
    notion: str, sample: int | None, seed: int, worst: int, search: int | None, against: str, ablation: bool,
    output: Path | None,
    as_html: Path | None, link: Link, cpu: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare predictions with what blocks and loops really take.

    Every block is timed on this machine, as copies that follow each other and as a loop, and predicted.
    Blocks that cannot be timed reliably are counted with the reason. Errors are relative to the measured
    time.
    """
    from cyclescope.infer.progress import Progress
    from cyclescope.report.predictions.search import search_json, search_text
    from cyclescope.report.progress import reporter

    end_at_once()
    if sum(given is not None for given in (blocks, kernels, measured)) > 1:
        raise UsageError("more than one source of blocks", "give one of --blocks, --kernels and --measured")
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not chosen:
        raise UsageError("no predictor", f"choose from {', '.join(PREDICTOR_NAMES)}")
    wanted = ValidationOptions(
        blocks, kernels, measured, chosen, arch, _AS[notion], sample or 0, seed, link, cpu, ablation,
        search or 0, against,
    )  # fmt: skip
    if search or against:
        if not search or blocks or kernels or measured or output or as_html or ablation:
            raise UsageError(
                "a search draws its own blocks",
                "give --search N with --predictors, --arch and --json",
            )
        with reporter() as report:
            result = _searched(wanted, lambda what, done, of: report(Progress(what, done, of)))
        click.echo(search_json(result) if as_json else search_text(result))
        return
    with reporter() as report:
        found = _validated(wanted, lambda what, done, of: report(Progress(what, done, of)))
    for problem in found.problems:
        click.echo(f"note: {problem}", err=True)
    if output:
        _keep(output, found)
    if as_html:
        from cyclescope.report.predictions.validation_page import validation_page  # slow to import

        write_file(as_html, validation_page(found, worst))
    click.echo(validation_json(found, worst) if as_json else validation_text(found, worst))


_Report = Callable[[str, int, int], None]


def _validated(wanted: ValidationOptions, report: _Report) -> Validation:
    from cyclescope.infer.api import open_backend

    if wanted.measured is not None:
        return _remembered(wanted, wanted.measured, report)
    backend, identity = open_backend(wanted.cpu, wanted.link)
    with closing(backend):
        if identity.emulated:
            raise UsageError("times under an emulator mean nothing", "measure on the machine itself")
        return _measured(wanted, backend, identity, report)


def _searched(wanted: ValidationOptions, report: _Report) -> SearchResult:
    """Blocks on which the first predictor and the machine, or another predictor, disagree."""
    from cyclescope.infer.api import open_backend
    from cyclescope.isa.table import load_table
    from cyclescope.session.compiled import builds
    from cyclescope.session.machines import load_model
    from cyclescope.session.search.drawing import BlockDraw, is_fit, usual_forms
    from cyclescope.session.search.finding import DisagreementSearch
    from cyclescope.session.search.judges import MachineJudge, PredictorJudge
    from cyclescope.session.search.straight import basic_blocks

    isa = load_model(wanted.arch).isa if wanted.arch else host_isa()
    if not is_fit(isa):
        raise UsageError(f"blocks of {isa} are not drawn", "give some with --blocks")
    machine, chosen, absent, _ = _models(wanted, isa)
    if not chosen:
        raise UsageError(
            f"no predictor: {next(iter(absent.values()))}", f"choose from {', '.join(PREDICTOR_NAMES)}"
        )
    usual = usual_forms((one.code for one in basic_blocks(builds())), isa)
    draw = BlockDraw(load_table(isa), machine, usual, wanted.seed)
    model = PredictorJudge(chosen[0], isa)
    if wanted.against:
        found, why = predictors([wanted.against], machine)
        if not found:
            raise UsageError(f"no predictor: {why[wanted.against]}")
        return DisagreementSearch(draw, model, PredictorJudge(found[0], isa), report).findings(
            wanted.search, FINDINGS
        )
    backend, identity = open_backend(wanted.cpu, wanted.link)
    with closing(backend):
        if identity.emulated:
            raise UsageError("times under an emulator mean nothing", "measure on the machine itself")
        judge = MachineJudge(backend, "the machine", isa, report)
        return DisagreementSearch(draw, model, judge, report).findings(wanted.search, FINDINGS)


class _Models(NamedTuple):
    """The machine, the predictors, those that are not there, and those that know less of the machine."""

    machine: MachineModel
    chosen: list[BlockPredictor]
    absent: dict[str, str]
    ablated: list[AblatedPredictor]


def _models(wanted: ValidationOptions, isa: str) -> _Models:
    """What predicts, before anything is measured: code of an instruction set, "" for that of the machine."""
    from cyclescope.session.machines import default_machine, load_model

    with uncollected():
        machine = load_model(wanted.arch) if wanted.arch else default_machine(isa)
        if isa and machine.isa != isa:
            what = f"{machine.name} executes {machine.isa}, the blocks are {isa}"
            raise UsageError(what, "{arch} names another machine")
        chosen, absent = predictors(wanted.names, machine)
        gc.freeze()  # tables of many objects, which are there to the end
    less = ablated(wanted.names, machine) if wanted.ablation else []
    return _Models(machine, chosen, absent, less)


def _remembered(wanted: ValidationOptions, path: Path, report: _Report) -> Validation:
    """Blocks that were timed before."""
    from cyclescope.session.block_files import read_timings
    from cyclescope.session.validation import Validation, known, sampled, section

    machine, chosen, absent, less = _models(wanted, "" if wanted.arch else host_isa())
    every, problems = read_timings(path, machine.isa)
    keys = list(dict.fromkeys((one.block.code, one.block) for one in every))
    drawn = {block.code for block in sampled([block for _, block in keys], wanted.sample, wanted.seed)}
    some = [one for one in every if one.block.code in drawn]
    sections = [
        section(notion, known(some, notion), chosen, report, less)
        for notion in (*wanted.notions, KERNELS)
        if any(one.notion == notion for one in some)
    ]
    return Validation(
        str(path),
        machine.name,
        tuple(sections),
        absent,
        tuple(problems),
        len(every),
        borrowed=machine.borrowed,
    )


def _measured(
    wanted: ValidationOptions, backend: NativeBackend, identity: Identity, report: _Report
) -> Validation:
    from cyclescope.infer.api import calibrated
    from cyclescope.session.validation import Validation, sampled, section, timed

    isa = backend.capabilities().isa
    machine, chosen, absent, less = _models(wanted, isa)
    nop = calibrated(backend, identity).nop
    if wanted.kernels is not None:
        started = Validation(identity.machine, machine.name, (), absent, borrowed=machine.borrowed)
        return _loops(wanted, chosen, less, nop, started, report)
    blocks, problems = _blocks(wanted, isa)
    some = sampled(blocks, wanted.sample, wanted.seed)
    sections = tuple(
        section(notion, timed(backend, some, notion, report=report), chosen, report, less)
        for notion in wanted.notions
    )
    return Validation(
        identity.machine, machine.name, sections, absent, tuple(problems), len(blocks),
        backend.capabilities().notes, machine.borrowed,
    )  # fmt: skip


def _blocks(wanted: ValidationOptions, isa: str) -> tuple[Sequence[ProgramBlock], Sequence[str]]:
    from cyclescope.session.block_files import read_block_file
    from cyclescope.session.compiled import builds
    from cyclescope.session.search.straight import basic_blocks

    if wanted.blocks is not None:
        found = read_block_file(wanted.blocks, isa)
        return found.blocks, found.problems
    if isa != host_isa():
        raise UsageError("no blocks for that machine", "give some with --blocks")
    return basic_blocks(builds()), ()


def _loops(
    wanted: ValidationOptions,
    chosen: Sequence[BlockPredictor],
    less: Sequence[AblatedPredictor],
    nop: float,
    found: Validation,
    report: _Report,
) -> Validation:
    from cyclescope.session.compiled import builds, timed_loops
    from cyclescope.session.validation import section

    if wanted.link.remote:
        raise UsageError("loops are compiled and run on this machine", "leave out --target")
    folder = None if wanted.kernels == Path(_OURS) else wanted.kernels
    every = builds(folder)
    some = every if not wanted.sample else _drawn(every, wanted)
    timings = timed_loops(some, nop, lambda done, of: report(KERNELS, done, of))
    parts: tuple[ValidationSection, ...] = (section(KERNELS, timings, chosen, report, less),)
    return msgspec.structs.replace(found, sections=parts, given=len(every))


def _drawn(every: Sequence[Any], wanted: ValidationOptions) -> list[Any]:
    from cyclescope.session.validation import sampled

    numbers = [ProgramBlock(str(n).encode()) for n in range(len(every))]
    return [every[int(one.code)] for one in sampled(numbers, wanted.sample, wanted.seed)]


def _keep(path: Path, found: Validation) -> None:
    from cyclescope.session.block_files import write_timings

    names = [one.name for part in found.sections[:1] for one in part.predictors]
    rows = [table_row(row, host_isa()) for part in found.sections for row in part.rows]
    write_timings(path, rows, names)
