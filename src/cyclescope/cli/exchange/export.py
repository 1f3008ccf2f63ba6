"""`cyclescope export`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cyclescope.cli.options import OutputFile, WritingCommand
from cyclescope.cli.writing import write_file
from cyclescope.errors import UsageError
from cyclescope.formats.registry import FORMATS, WRITABLE, Format, by_name, of_suffix

if TYPE_CHECKING:
    from cyclescope.formats.exchange import Item
    from cyclescope.model.machine import MachineModel
    from cyclescope.session.subjects import Subject

_MODEL = "json"
_SUFFIXES = ", ".join(f"{form.suffix} {form.name}" for form in FORMATS if form.writer and form.suffix)


@click.command("export", cls=WritingCommand)
@click.argument("what", metavar="SOURCE")
@click.option("-o", "--output", type=OutputFile(), help="File to write.")
@click.option("--format", "name", type=click.Choice([_MODEL, *WRITABLE]),
              help=f"Format of the file; by its name: {_SUFFIXES}, .json a machine model.")  # fmt: skip
@click.option("--llvm", "program", type=click.Path(path_type=Path, dir_okay=False), metavar="PROGRAM",
              help="Leave out opcodes that this program of LLVM does not know (llvm-exegesis).")  # fmt: skip
@click.option("--left-out", is_flag=True, help="List everything that the format cannot express.")
def command(what: str, output: Path | None, name: str | None, program: Path | None, left_out: bool) -> None:
    """Write a machine in another tool's format.

    SOURCE is a machine's name (native, znver4, ...), a store, a model's file, or another tool's file. The
    format follows from the file's name, or is given with --format. Without -o the file is printed.
    """
    from cyclescope.model.schema import encode, write_model
    from cyclescope.report.exchange import left_out_text
    from cyclescope.report.progress import when_needed
    from cyclescope.report.words import named
    from cyclescope.session.subjects import subject

    if name is None and output is None:
        raise click.UsageError("--format is needed where no file is named with -o")
    as_model = name == _MODEL or (name is None and output is not None and output.suffix in (".json", ".xz"))
    if as_model and program is not None:
        raise _no_opcodes(_MODEL)
    click.get_current_context().with_resource(when_needed())
    chosen = None if as_model else by_name(name) if name else of_suffix(output or Path())
    read = subject(what) if chosen is not None and chosen.has_results else _without_results(what)
    model = read.model
    if read.refused:
        click.echo(f"{what}: {left_out_text(read.refused, 'refused')}", err=True, nl=False)
    if chosen is None:
        if output is None:
            click.echo(encode(model))
        else:
            write_model(model, output)
            click.echo(f"{output}: {named(model)} as a machine model, {len(model.forms)} forms", err=True)
        return
    model, unknown = _known_to(program, model, chosen)
    written = chosen.write(model, read.timings)
    if output is None:
        click.echo(written.text, nl=False)
    else:
        write_file(output, written.text)
    where = str(output) if output else "standard output"
    click.echo(f"{where}: {named(model)} as {chosen.about}", err=True)
    click.echo(left_out_text((*unknown, *written.left_out), "left out", whole=left_out), err=True, nl=False)


def _without_results(what: str) -> Subject:
    """A machine alone: of a store that has not changed, the model that is kept."""
    from cyclescope.session.sources import source
    from cyclescope.session.subjects import Subject

    found = source(what)
    return Subject(found.model, refused=found.refused)


def _known_to(
    program: Path | None, model: MachineModel, chosen: Format
) -> tuple[MachineModel, tuple[Item, ...]]:
    """The model with the opcodes that a program of LLVM knows, and what is left out."""
    from cyclescope.formats.llvm.opcodes import known_opcodes, with_opcodes

    if program is None:
        return model, ()
    if not chosen.has_opcodes:
        raise _no_opcodes(chosen.name)
    found = shutil.which(program) or str(program)
    return with_opcodes(model, known_opcodes(Path(found).resolve(), model.isa))


def _no_opcodes(name: str) -> UsageError:
    return UsageError(f"--llvm: {name} has no opcodes of LLVM", "leave --llvm out")


command.epilog = "Formats: " + "; ".join(f"{f.name}: {f.about}" for f in FORMATS if f.writer) + "."
