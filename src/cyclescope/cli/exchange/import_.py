"""`cyclescope import`."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec

from cyclescope.cli.options import OutputFile, WritingCommand
from cyclescope.errors import UsageError
from cyclescope.formats.registry import FORMATS, READABLE
from cyclescope.isa.registry import DEFAULT, isa_names

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@click.command("import", cls=WritingCommand)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--machine", "name", required=True, metavar="NAME", help="Name of the machine.")
@click.option("-o", "--output", type=OutputFile(),
              help="File of the model; default: NAME.json.")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(READABLE), help="Format; default: recognised.")
@click.option("--column", default="", metavar="NAME", help="Machine to take from a file with several.")
@click.option("--isa", type=click.Choice(isa_names()), default=DEFAULT, show_default=True,
              help="Instruction set, if the file does not say it.")  # fmt: skip
@click.option("--refused", is_flag=True, help="List everything that was refused.")
def command(
    file: Path, name: str, output: Path | None, kind: str | None, column: str, isa: str, refused: bool
) -> None:
    """Make a machine model of another tool's FILE, for --arch, `compare` and `export`.

    Values that no instruction can have (negative ones, not finite ones, throughputs of 0, a least above its
    most) and instructions that are not in the table are refused, counted and listed with --refused.
    """
    from cyclescope.model.library import names
    from cyclescope.model.names import NATIVE
    from cyclescope.model.schema import write_model
    from cyclescope.report.exchange import left_out_text
    from cyclescope.report.words import counted
    from cyclescope.session.sources import source

    if not file.exists():
        raise UsageError(f"{file}: no such file")
    if not file.is_file():
        raise UsageError(f"{file}: not a regular file", "copy it to one")
    if not _NAME.fullmatch(name):
        raise UsageError(f"--machine {name[:40]!a}: no name for a machine",
                         "letters, digits, dots, dashes and underscores, at most 64")  # fmt: skip
    if name.lower() in {known.lower() for known in names()} | {NATIVE}:
        raise UsageError(f"--machine {name}: the name of another machine", "choose another name")
    found = source(str(file), kind or "", column, isa)
    model = msgspec.structs.replace(found.model, name=name)
    target = output or Path(f"{name}.json")
    write_model(model, target)
    click.echo(f"{target}: {name}, {counted(len(model.forms), 'form')} of {file}")
    click.echo(left_out_text(found.refused, "refused", whole=refused), nl=False)


command.epilog = "Formats: " + "; ".join(f"{f.name}: {f.about}" for f in FORMATS if f.reader) + "."
