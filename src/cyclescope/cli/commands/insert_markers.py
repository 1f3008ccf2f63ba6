"""`cyclescope insert-markers`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cyclescope.analyze.choose.insertion import STYLES, markable_loops, marked
from cyclescope.analyze.read.syntax import SYNTAXES
from cyclescope.cli.options import OutputFile
from cyclescope.cli.writing import write_file
from cyclescope.errors import UsageError

if TYPE_CHECKING:
    from cyclescope.analyze.choose.loops import Candidate


def _chosen(found: Sequence[Candidate]) -> Candidate:
    """Ask on standard error, so that the text can go to standard output."""
    from cyclescope.analyze.choose.loops import hottest

    for number, one in enumerate(found, 1):
        click.echo(f"{number:3}  {one.where}", err=True)
    default = found.index(hottest(found)) + 1
    try:
        number = click.prompt(
            "loop to mark", type=click.IntRange(1, len(found)), default=default, err=True, prompt_suffix=": "
        )
    except click.Abort:
        click.echo(err=True)  # the question has no end of line yet
        raise UsageError("no loop was chosen", "--auto takes the innermost one") from None
    return found[number - 1]


@click.command("insert-markers")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--auto", is_flag=True, help="Take the loop that analyze would take, without asking.")
@click.option("-o", "--output", type=OutputFile(), help="File to write; default: standard output.")
@click.option("--style", type=click.Choice(list(STYLES)), default="osaca", show_default=True)
@click.option("--syntax", type=click.Choice(SYNTAXES), help="Syntax of x86 text; default: recognised.")
def command(file: Path, auto: bool, output: Path | None, style: str, syntax: str | None) -> None:
    """Put markers around an innermost loop of an assembly text.

    FILE is what a compiler writes with -S, or - for standard input.
    """
    from cyclescope.analyze.choose.loops import hottest
    from cyclescope.analyze.choose.source import read_program

    if str(file) == "-" and not auto:
        raise UsageError("standard input cannot be asked which loop", "--auto takes the innermost one")
    program = read_program(file, syntax=syntax or "")
    found = markable_loops(program)
    text = marked(program, hottest(found) if auto else _chosen(found), style)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_file(output, text)
