"""`cyclescope analyze`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cyclescope.analyze.read.syntax import SYNTAXES
from cyclescope.cli.options import Amount, OutputFile, WritingCommand
from cyclescope.cli.short_life import keep_everything
from cyclescope.cli.writing import write_file
from cyclescope.errors import UnsupportedInstruction, UsageError
from cyclescope.host.uname import host_isa
from cyclescope.report.predictions.views import TEXT, VIEWS, View

if TYPE_CHECKING:
    from cyclescope.analyze.choose.source import Choice
    from cyclescope.analyze.decode.block import Block
    from cyclescope.analyze.predict.prediction import ChangedPrediction, NotPredicted, Prediction
    from cyclescope.model.machine import MachineModel


class AnalysisOptions(msgspec.Struct, frozen=True):
    """What is to be said about the block."""

    fixed: bool
    ignore_unknown: bool
    unroll_factor: float
    watch: bool = False
    what_if: tuple[str, ...] = ()
    run: bool = False

    def of(self, block: Block, machine: MachineModel) -> Prediction:
        """The prediction on a machine."""
        found = self._plain(block, machine, self.watch)
        if self.what_if:
            asked = tuple(self._changed(block, machine, what) for what in self.what_if)
            found = msgspec.structs.replace(found, what_if=asked)
        if self.run:
            from cyclescope.session.predict import measured_loop, predictor_of  # slow to import

            found = msgspec.structs.replace(found, measured=measured_loop(block, predictor_of(machine)))
        return found

    def _plain(self, block: Block, machine: MachineModel, watch: bool = False) -> Prediction:
        from cyclescope.analyze.predict.predictor import Predictor
        from cyclescope.session.machines import stand_in_for

        return Predictor(machine, stand_in_for(machine)).predict(
            block, fixed=self.fixed, ignore_unknown=self.ignore_unknown, unroll_factor=self.unroll_factor,
            watch=watch,
        )  # fmt: skip

    def _changed(self, block: Block, machine: MachineModel, what: str) -> ChangedPrediction:
        from cyclescope.analyze.predict.prediction import ChangedPrediction
        from cyclescope.analyze.predict.what_if import ChangedSetting, changed  # asked for with --what-if

        setting = changed(ChangedSetting(machine, block), what)
        found = self._plain(setting.block, setting.machine)
        return ChangedPrediction(what, found.cycles, found.bottleneck)


_FILE = OutputFile()
_OPTIONS: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
    click.option("--arch", "-mcpu", "--mcpu", "arch", metavar="NAME|native|FILE",
                 help="Machine; default: this one."),
    click.option("--compare", multiple=True, metavar="NAME|native|FILE",
                 help="Another machine beside it; repeatable."),
    click.option("--fixed", is_flag=True, help="Split operations evenly over their ports, as OSACA --fixed."),
    click.option("--ignore-unknown", is_flag=True, help="Leave out instructions whose cost is unknown."),
    click.option("--measure-missing", is_flag=True,
                 help="First measure instructions that the model of this host lacks."),
    click.option("--unroll-factor", type=Amount(), default=None, metavar="N",
                 help="Units of work that one iteration does."),
    click.option("--what-if", "what_if", multiple=True, metavar="CHANGE",
                 help="Predict also with a change: port=ALU0, width=10, latency=7:2, load=7:14; repeatable."),
    click.option("--run", is_flag=True, help="Measure the block on this machine, beside the prediction."),
    click.option("--lines", default="", metavar="LIST", help="Analyse these source lines, such as 3-9,12."),
    click.option("--function", default="", metavar="NAME", help="Look only into this function."),
    click.option("--addresses", default="", metavar="FROM-TO", help="Analyse these addresses, TO excluded."),
    click.option("--region", default="", metavar="NAME", help="Analyse this region, by name or number."),
    click.option("--whole", is_flag=True, help="Analyse all of the code, not its innermost loop."),
    click.option("--syntax", type=click.Choice(list(SYNTAXES)), default=None,
                 help="Syntax of x86 text; default: recognised."),
    *(click.option(f"--{view.name}", view.parameter, type=_FILE, help=view.help) if view.is_file
      else click.option(f"--{view.name}", view.parameter, is_flag=True, help=view.help) for view in VIEWS),
]  # fmt: skip


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command("analyze", cls=WritingCommand)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@_with_options
def command(
    file: Path,
    arch: str | None,
    compare: tuple[str, ...],
    fixed: bool,
    ignore_unknown: bool,
    measure_missing: bool,
    what_if: tuple[str, ...],
    run: bool,
    unroll_factor: float | None,
    lines: str,
    function: str,
    addresses: str,
    region: str,
    whole: bool,
    syntax: str | None,
    **asked: Path | bool | None,
) -> None:
    """Say what bounds a loop: ports, front end, dependencies, line by line.

    FILE is assembly text, an object file, an executable or machine code in hexadecimal; - is standard input.
    Analysed is what markers (OSACA, IACA, LLVM-MCA) enclose, all regions if there are several; without
    markers, the innermost loop in which most time is probably spent. Machines have the names of LLVM, OSACA
    and uops.info.

    Exit code 3 if the cost of an instruction is not known.
    """
    from cyclescope.analyze.choose.source import Choice, only
    from cyclescope.report.progress import when_needed
    from cyclescope.report.words import printable
    from cyclescope.session.machines import load_model

    click.get_current_context().with_resource(when_needed())
    keep_everything()
    shown, files = _views(asked, bool(compare))
    choice = Choice(lines, addresses, region, function, whole)
    read = _read_and_measure if measure_missing else _read
    blocks, machine = read(file, arch, choice, syntax or "")
    for missing in machine.provenance.missing:
        click.echo(f"note: the model of this host is not complete: {missing}", err=True)
    watch = shown.watches or any(asked[view.parameter] for view in VIEWS if view.watches)
    wanted = AnalysisOptions(fixed, ignore_unknown, unroll_factor or 0, watch, what_if, run)
    if len(blocks) > 1 and not compare and not files:
        click.echo(shown.all_shown([wanted.of(block, machine) for block in blocks]), color=_colours())
        return
    block = only(blocks)
    if compare:
        rows = _compared(block, [machine, *map(load_model, compare)], wanted)
        for view, path in files:
            write_file(path, view.compared(rows))
        click.echo(shown.compared(rows))
        for note in block.notes if shown is TEXT else ():
            click.echo(f"note: {printable(note)}")
        return
    found = wanted.of(block, machine)
    for view, path in files:
        write_file(path, view.shown(found))
    click.echo(shown.shown(found), color=_colours())


def _views(asked: dict[str, Path | bool | None], comparing: bool) -> tuple[View, list[tuple[View, Path]]]:
    """The view to print, and those to write with their files. Raises UsageError."""
    chosen = [view for view in VIEWS if asked[view.parameter]]
    if comparing and any(not view.comparison for view in chosen):
        *able, last = [v.words or f"--{v.name}" for v in (TEXT, *reversed(VIEWS)) if v.comparison]
        raise UsageError(
            f"several machines are compared as {', '.join(able)} or {last}", "leave out --compare"
        )
    printed = [view for view in chosen if not view.is_file]
    if any(view.name == "json" for view in printed):  # which has what others would show
        printed = [view for view in printed if not view.watches]
    if len(printed) > 1:
        words, options = zip(
            *((v.words or f"--{v.name}", f"--{v.name}") for v in reversed(printed)), strict=True
        )
        raise UsageError(f"{_listed(words)} at once", f"choose one of {_listed(options)}")
    files = [(view, path) for view in chosen if isinstance(path := asked[view.parameter], Path)]
    return printed[0] if printed else TEXT, files


def _listed(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}"


def _colours() -> bool | None:
    """Whether there are colours; None: on a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def _read(path: Path, arch: str | None, choice: Choice, syntax: str) -> tuple[list[Block], MachineModel]:
    """The blocks and the machine: the one named, else the host's for the ISA of the code."""
    from cyclescope.analyze.choose.source import read_blocks
    from cyclescope.model.machine import MEASURED
    from cyclescope.report.words import printable
    from cyclescope.session.machines import default_machine, host_machine, load_model, vendor_of

    if arch:
        machine = load_model(arch)
        return read_blocks(path, machine.isa, choice, syntax, vendor_of(machine.name)), machine
    blocks = read_blocks(path, "", choice, syntax)
    isa = blocks[0].isa
    host = host_machine(isa)
    machine = host or default_machine(isa)
    if machine.provenance.kind != MEASURED and isa == host_isa():
        _tell_why(machine)
    if host is None:
        told = f"no model of this host for {isa} code: {machine.name}, or name one with --arch"
        click.echo(printable(told), err=True)
    return blocks, machine


def _tell_why(machine: MachineModel) -> None:
    """Say why it is not the measured model, where something was measured."""
    from cyclescope.infer.host_model import why_unused  # slow to import

    if why := why_unused():
        told = f"note: {machine.name} stands in for the measurements of this host: {why}"
        click.echo(" ".join(told.split()), err=True)


def _read_and_measure(
    path: Path, arch: str | None, choice: Choice, syntax: str
) -> tuple[list[Block], MachineModel]:
    """The block and the measured model of this host, with what it lacks for the block."""
    from cyclescope.analyze.choose.source import read_block
    from cyclescope.infer.missing import measure_missing  # slow to import
    from cyclescope.report.progress import reporter
    from cyclescope.session.machines import load_model, vendor_of

    if arch and arch.lower() != "native":
        raise UsageError(f"--measure-missing with --arch {arch}", "only this host can be measured: native")
    machine = load_model("native")
    block = read_block(path, machine.isa if arch else "", choice, syntax, vendor_of(machine.name))
    with reporter() as report:
        return [block], measure_missing(block, report)


def _compared(
    block: Block, machines: list[MachineModel], wanted: AnalysisOptions
) -> list[Prediction | NotPredicted]:
    """A prediction per machine, or why there is none; raises what keeps all of them from a result."""
    from cyclescope.analyze.predict.prediction import NotPredicted

    rows: list[Prediction | NotPredicted] = []
    failed: list[UnsupportedInstruction] = []
    for machine in machines:
        try:
            rows.append(wanted.of(block, machine))
        except UnsupportedInstruction as error:
            failed.append(error)
            borrowed = (machine.borrowed,) if machine.borrowed else ()
            rows.append(NotPredicted(machine.name, error.message, borrowed))
    if len(failed) == len(machines):
        raise failed[0]
    return rows
