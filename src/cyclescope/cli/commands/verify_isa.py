"""`cyclescope verify-isa`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cyclescope.backend.base import Depth
from cyclescope.cli.options import cpu_option, json_option, patterns_argument, target_option
from cyclescope.errors import UnsupportedInstruction

if TYPE_CHECKING:
    from cyclescope.backend.link import Link

_MANY = click.IntRange(1, 64)
_DEFAULT = Depth()


@click.command("verify-isa")
@patterns_argument
@target_option
@cpu_option
@click.option("--bases", type=_MANY, default=_DEFAULT.bases, show_default=True, help="Start states per form.")
@click.option(
    "--perturbations",
    type=_MANY,
    default=_DEFAULT.perturbations,
    show_default=True,
    help="Changes of each location of a start state.",
)
@click.option("--seed", type=int, default=_DEFAULT.seed, show_default=True, help="Seed of the random values.")
@json_option
def command(
    patterns: tuple[str, ...],
    link: Link,
    cpu: int | None,
    bases: int,
    perturbations: int,
    seed: int,
    as_json: bool,
) -> int:
    """Check what the instruction table says forms read and write against real execution.

    Each form runs with one register, flag or piece of memory changed at a time. Reads and writes that the
    table does not declare are listed, and the exit code is 1. Without a PATTERN every form is checked, which
    takes about a minute, under an emulator longer. Patterns are those of `cyclescope forms`.
    """
    from cyclescope.analyze.read.example import assembled_forms
    from cyclescope.infer.api import open_backend
    from cyclescope.isa.find.pattern import select
    from cyclescope.isa.table import load_table
    from cyclescope.kernel.differential import differential_of
    from cyclescope.measure.verify import verify
    from cyclescope.report.verify import verification_json, verification_text
    from cyclescope.report.words import counted

    backend, identity = open_backend(cpu, link)
    try:
        table = load_table(backend.capabilities().isa)
        forms = select(table, patterns, read=assembled_forms)
        found = verify(backend, differential_of(table), forms, Depth(bases, perturbations, seed))
    finally:
        backend.close()
    click.echo(verification_json(identity.machine, found) if as_json else verification_text(found))
    if not found.checked:
        raise UnsupportedInstruction(f"none of {counted(len(forms), 'form')} can be run here")
    return 1 if found.undeclared else 0
