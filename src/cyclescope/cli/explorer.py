"""`cyclescope-explorer`: the analysis as a tool of Compiler Explorer.

Such a tool gets the compiler's filtered assembly as a file, options that users type, no home to write to and
a few seconds; what it prints is shown. Its answer may not depend on the server that it happens to run on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click

from cyclescope.analyze.choose.source import Choice, read_blocks
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.cli.main import run
from cyclescope.errors import UsageError
from cyclescope.host.uname import isa_of_machine
from cyclescope.isa.registry import instruction_set, instruction_sets
from cyclescope.model.library import names
from cyclescope.model.machine import MachineModel
from cyclescope.model.names import NATIVE
from cyclescope.report.predictions.text import analysis_json, analysis_text, regions_json, regions_text
from cyclescope.session.machines import is_file, load_model, vendor_of

NAME = "cyclescope-explorer"


@click.command(NAME, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("-mcpu", "--mcpu", "--arch", "cpu", metavar="NAME", help="Machine, as LLVM names it.")
@click.option("-march", "--march", "march", metavar="NAME", help="The same, where it is a machine's name.")
@click.option("-mtriple", "--mtriple", "-target", "--target", "triple", metavar="TRIPLE",
              help="Instruction set of the code; default: recognised.")  # fmt: skip
@click.option("--function", default="", metavar="NAME", help="Look into this function only.")
@click.option("--lines", default="", metavar="LIST", help="Lines of the assembly, such as 3-9,12.")
@click.option("--whole", is_flag=True, help="Analyse all of the code, not its innermost loop.")
@click.option("--ignore-unknown", is_flag=True, help="Leave out instructions whose cost is not known.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: Path,
    cpu: str | None,
    march: str | None,
    triple: str | None,
    function: str,
    lines: str,
    whole: bool,
    ignore_unknown: bool,
    as_json: bool,
) -> None:
    """Say what bounds the innermost loop of a compiler's assembly, line by line."""
    machine = _machine(cpu, march)
    isa = machine.isa if machine else _isa(triple)
    choice = Choice(lines, "", "", function, whole)
    blocks = read_blocks(file, isa, choice, "", vendor_of(machine.name) if machine else "")
    chosen = machine or load_model(instruction_set(blocks[0].isa).default_machine)
    if not machine and not as_json:
        click.echo(f"machine: {chosen.name}, since none is named (as in -mcpu=znver4)")
    predictor = Predictor(chosen)
    found = [predictor.predict(block, ignore_unknown=ignore_unknown) for block in blocks]
    if len(found) > 1:
        click.echo(regions_json(found) if as_json else regions_text(found), color=False)
        return
    click.echo(analysis_json(found[0]) if as_json else analysis_text(found[0]), color=False)


def _machine(cpu: str | None, march: str | None) -> MachineModel | None:
    """The machine that is named; a -march that names an instruction set says nothing."""
    known = {name.lower() for name in names()}
    name = cpu or (march if march and (march.lower() in known or march.lower() == NATIVE) else None)
    if not name:
        return None
    if name.lower() == NATIVE:
        raise UsageError("native is the server's CPU, and not yours", "name a machine, as in -mcpu=znver4")
    if is_file(name):
        raise UsageError(f"{name} is a file, and the server has none of yours", "name a machine")
    return load_model(name)


def _isa(triple: str | None) -> str:
    """The instruction set of a triple, "" where none is given."""
    if not triple:
        return ""
    found = isa_of_machine(triple.partition("-")[0])
    if not found:
        known = ", ".join(record.name for record in instruction_sets())
        raise UsageError(f"nothing is known of {triple}", f"instruction sets are {known}")
    return found


def main() -> NoReturn:
    """Entry point: every error is one line and an exit code."""
    run(command, NAME, sys.argv[1:])
