"""`cyclescope machines`."""

from __future__ import annotations

import click

from cyclescope.cli.options import json_option, patterns_argument
from cyclescope.model.library import load_model, summaries
from cyclescope.model.schema import problems
from cyclescope.model.select import select_forms
from cyclescope.report.machines import cost_card, list_json, list_text, machine_json, machine_text
from cyclescope.report.words import counted

_name = click.argument("name", metavar="NAME|FILE")


@click.group("machines")
def command() -> None:
    """Machine models: ports, widths, buffers and costs of a core.

    NAME is a CPU as LLVM's -mcpu calls it, in any case (skylake, znver4, neoverse-v2, sifive-u74); FILE
    has a slash in it or ends in .json or .xz.
    """


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the machine models that ship."""
    click.echo(list_json(summaries()) if as_json else list_text(summaries()))


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
    click.echo(
        f"{model.name}: {counted(len(model.forms), 'form')}, {counted(len(model.ports), 'port')}, {verdict}"
    )
    ctx.exit(1 if found else 0)
