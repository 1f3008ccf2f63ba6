"""`cyclescope machines`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cyclescope.cli.options import OutputFile, WritingCommand, json_option, patterns_argument, store_option
from cyclescope.cli.short_life import keep_everything

if TYPE_CHECKING:
    from cyclescope.model.machine import MachineModel

_MOST_PROBLEMS = 100  # that are listed
_name = click.argument("name", metavar="NAME|FILE")


@click.group("machines")
def command() -> None:
    """Machine models: ports, widths, buffers and costs of a core.

    NAME is a CPU as LLVM's -mcpu, OSACA or uops.info call it, in any case (skylake, ZEN4, neoverse-v2,
    sifive-u74), or native: the machine that was measured here. FILE has a slash in it or ends in .json or
    .xz. All commands take the same names.
    """
    from cyclescope.report.progress import when_needed

    click.get_current_context().with_resource(when_needed())
    keep_everything()


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the machine models: the one that was measured here, if any, and those that ship."""
    from cyclescope.infer.host_model import native_summary
    from cyclescope.model.library import summaries
    from cyclescope.report.machines import list_json, list_text

    measured = native_summary()
    found = [*([measured] if measured else []), *summaries()]
    click.echo(list_json(found) if as_json else list_text(found))


@command.command("show")
@_name
@patterns_argument
@click.option("--all", "everything", is_flag=True, help="Show all resources, facts and alternatives.")
@json_option
def show(name: str, patterns: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Print a machine, and what the forms that match a PATTERN cost on it.

    Patterns are those of `cyclescope forms`: names, globs and examples of the machine's instruction set.
    --json without a pattern prints the whole model.
    """
    from cyclescope.analyze.read.example import assembled_forms
    from cyclescope.model.select import select_forms
    from cyclescope.report.machines import cost_card, head_lines, machine_json, machine_text
    from cyclescope.session.machines import load_model

    model = load_model(name)
    chosen = select_forms(model, patterns, assembled_forms)
    if as_json:
        click.echo(machine_json(model, chosen))
    elif patterns:
        cards = (cost_card(model, form, cost, everything) for form, cost in chosen.items())
        click.echo("\n".join([*head_lines(model), *cards]))
    else:
        click.echo(machine_text(model, everything))


@command.command("build", cls=WritingCommand)
@store_option
@click.option("-o", "--output", type=OutputFile(),
              help="File to write, compressed if it ends in .xz.")  # fmt: skip
def build(store: Path | None, output: Path | None) -> None:
    """Build the model of a measured machine from its store, as JSON.

    The model has slots, ports and resources if the store has them (`cyclescope measure --what ports`). What
    the measurements do not determine is left out, or given as a range or a note.
    """
    from cyclescope.infer.host_model import stored_model
    from cyclescope.measure.database import only_store
    from cyclescope.model.schema import encode, write_model

    model = stored_model(store or only_store())
    if output is None:
        click.echo(encode(model))
        return
    write_model(model, output)
    click.echo(f"{output}: {_size(model)}")


@command.command("check")
@_name
@click.pass_context
def check(ctx: click.Context, name: str) -> None:
    """Say what is wrong with a machine model; exit code 1 if anything is.

    A measured model is also wrong if it has no ports for instructions that every program uses, or if fewer of
    its fresh mixes hold than its levels of confidence promise.
    """
    from cyclescope.infer.refute.doubts import doubts
    from cyclescope.model.check import problems
    from cyclescope.report.words import counted
    from cyclescope.session.machines import read_machine

    model = read_machine(name)
    found = [*problems(model), *doubts(model)]
    for line in found[:_MOST_PROBLEMS]:
        click.echo(line)
    if len(found) > _MOST_PROBLEMS:
        click.echo(f"and {len(found) - _MOST_PROBLEMS} more")
    verdict = counted(len(found), "problem") if found else "nothing is wrong"
    click.echo(f"{_size(model)}, {verdict}")
    ctx.exit(1 if found else 0)


def _size(model: MachineModel) -> str:
    from cyclescope.model.check import shown
    from cyclescope.report.words import borrowing, counted

    ports = counted(len(model.ports), "port") if model.ports else "no ports"
    name = f"{shown(model.name)}{f', {borrowing(model.borrowed)}' if model.borrowed else ''}"
    return f"{name}: {counted(len(model.forms), 'form')}, {ports}"
