"""`cyclescope machines`."""

from __future__ import annotations

from pathlib import Path

import click

from cyclescope.cli.options import json_option, patterns_argument, store_option
from cyclescope.infer.api import only_store
from cyclescope.infer.native import build_file, load_model, native_summary
from cyclescope.model.library import summaries
from cyclescope.model.machine import MachineModel
from cyclescope.model.schema import encode, problems, write_model
from cyclescope.model.select import select_forms
from cyclescope.report.machines import cost_card, list_json, list_text, machine_json, machine_text
from cyclescope.report.words import counted

_name = click.argument("name", metavar="NAME|FILE")


@click.group("machines")
def command() -> None:
    """Machine models: ports, widths, buffers and costs of a core.

    NAME is a CPU as LLVM's -mcpu calls it, in any case (skylake, znver4, neoverse-v2, sifive-u74), or
    native: the machine that was measured here. FILE has a slash in it or ends in .json or .xz.
    """


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the machine models: the one that was measured here, if any, and those that ship."""
    measured = native_summary()
    found = [*([measured] if measured else []), *summaries()]
    click.echo(list_json(found) if as_json else list_text(found))


@command.command("show")
@_name
@patterns_argument
@json_option
def show(name: str, patterns: tuple[str, ...], as_json: bool) -> None:
    """Print a machine, and what the forms that match a PATTERN cost on it.

    Patterns are those of `cyclescope forms`; on AArch64 and RISC-V, LLVM's opcode names and globs over
    them. --json without a pattern prints the whole model.
    """
    model = load_model(name)
    chosen = select_forms(model, patterns)
    if as_json:
        click.echo(machine_json(model, chosen))
    elif patterns:
        click.echo("\n".join(cost_card(model, form, cost) for form, cost in chosen.items()))
    else:
        click.echo(machine_text(model))


@command.command("build")
@store_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="File to write, compressed if it ends in .xz.")  # fmt: skip
def build(store: Path | None, output: Path | None) -> None:
    """Build the model of a measured machine from its store, as JSON.

    Slots, ports and resources are there if the store has them: `cyclescope measure --what ports`. What
    the measurements do not determine is left out, or given as a range or a note.
    """
    model = build_file(store or only_store())
    if output is None:
        click.echo(encode(model))
        return
    write_model(model, output)
    click.echo(f"{output}: {_size(model)}")


@command.command("check")
@_name
@click.pass_context
def check(ctx: click.Context, name: str) -> None:
    """Say what is wrong with a machine model; exit code 1 if anything is."""
    model = load_model(name)
    found = list(problems(model))
    for line in found:
        click.echo(line)
    verdict = counted(len(found), "problem") if found else "nothing is wrong"
    click.echo(f"{_size(model)}, {verdict}")
    ctx.exit(1 if found else 0)


def _size(model: MachineModel) -> str:
    ports = counted(len(model.ports), "port") if model.ports else "no ports"
    return f"{model.name}: {counted(len(model.forms), 'form')}, {ports}"
