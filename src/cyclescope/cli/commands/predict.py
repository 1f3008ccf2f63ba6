"""`cyclescope predict`."""

from __future__ import annotations

from pathlib import Path

import click

from cyclescope.cli.options import OutputFile, WritingCommand
from cyclescope.errors import Stopped
from cyclescope.host.uname import host_isa
from cyclescope.session.predictors import ANALYTIC, SIMULATED

_BLOCKS = "blocks"


def _default() -> str:
    """The name of this machine's model, or of what stands for it."""
    from cyclescope.model.machine import MEASURED
    from cyclescope.model.names import NATIVE
    from cyclescope.session.machines import default_machine, host_machine

    found = host_machine(host_isa())
    if found is not None and found.provenance.kind == MEASURED:
        return NATIVE
    return default_machine(host_isa()).name


@click.command("predict", cls=WritingCommand)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-o", "--output", type=OutputFile(), required=True, metavar="FILE", help="CSV table to write.")
@click.option("--arch", metavar="NAME|native|FILE", help="Machine; default: this one.")
@click.option("--predictor", type=click.Choice([ANALYTIC, SIMULATED]), default=ANALYTIC, show_default=True,
              help="Predict by bounds alone, or by the simulated core.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=0, max=1024), default=0, metavar="N",
              help="Number of processes; default: one per CPU.")  # fmt: skip
def command(file: Path, output: Path, arch: str | None, predictor: str, jobs: int) -> None:
    """Predict all blocks of a file, however many there are.

    FILE has a block per line, hexadecimal or assembly with `;` between instructions, or is a CSV table with a
    column hex, block, code or asm. The output table has a row for each block, in the same order: cycles, the
    interval, what bounds it, or the reason why there is no prediction. If a run was stopped, the same command
    goes on from there.
    """
    from cyclescope.infer.progress import Progress
    from cyclescope.report.progress import reporter, when_needed
    from cyclescope.session.batch.file import predict_file

    click.get_current_context().with_resource(when_needed())
    machine = arch or _default()
    if not arch:
        click.echo(f"predicting with {machine}; --arch names another", err=True)
    try:
        with reporter() as report:
            found = predict_file(
                file, output, machine, predictor, None, jobs,
                lambda done, of: report(Progress(_BLOCKS, done, of)),
            )  # fmt: skip
    except Stopped as error:
        error.add_note("the same command goes on")
        raise
    went_on = f", {found.before} of them before" if found.before else ""
    click.echo(f"{output}: {found.predicted} blocks{went_on}", err=True)
