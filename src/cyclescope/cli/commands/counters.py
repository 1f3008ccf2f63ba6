"""`cyclescope counters`."""

from __future__ import annotations

import shlex

import click

from cyclescope.cli.options import json_option
from cyclescope.errors import UsageError
from cyclescope.host.uname import host_isa
from cyclescope.isa.registry import isa_names


@click.group("counters", invoke_without_command=True)
@click.option("--header", is_flag=True, help="Print where cyclescope.h is.")
@click.option("--include", is_flag=True, help="Print the folder of cyclescope.h.")
@click.option("--cflags", is_flag=True, help="Print the compiler's options.")
@click.option("--libs", is_flag=True, help="Print the linker's options.")
@click.option("--isa", type=click.Choice(isa_names()), default=host_isa, show_default="this machine's",
              help="Instruction set of the library; another one's is built by a cross compiler.")  # fmt: skip
@click.pass_context
def command(ctx: click.Context, header: bool, include: bool, cflags: bool, libs: bool, isa: str) -> None:
    """Core cycles and events inside other programs.

    A C or C++ program times regions of its own with cyclescope.h: compile it with what `cyclescope counters
    --cflags --libs` prints. A Python program has cyclescope.region().
    """
    from cyclescope.backend.build import header_folder

    asked = header or include or cflags or libs
    if ctx.invoked_subcommand is not None:
        if asked:
            raise UsageError(f"{ctx.invoked_subcommand} and a path", "ask for one of them")
        return
    folder = header_folder()
    words = [str(folder / "cyclescope.h")] * header + [str(folder)] * include
    words += [shlex.quote(f"-I{folder}")] * cflags
    words += _linked(isa) if libs else []  # builds the library where none is installed
    if not words:
        raise click.exceptions.NoArgsIsHelpError(ctx)
    click.echo(" ".join(words))


def _linked(isa: str) -> list[str]:
    from cyclescope.backend.build import library_for

    folder = library_for(isa).parent
    return [shlex.quote(f"-L{folder}"), "-lcyclescope", shlex.quote(f"-Wl,-rpath,{folder}")]


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List events by name, and which of them can be counted here."""
    from cyclescope.host.counters import availability
    from cyclescope.host.events import tried_events
    from cyclescope.report.host import events_json, events_text

    found, why = tried_events(), availability()
    click.echo(events_json(found, why) if as_json else events_text(found, why))


@command.command("start")
@click.argument("process", type=click.IntRange(1, 2**31 - 1), metavar="PID")
@click.option("--events", default="", metavar="LIST",
              help="Names of `counters list`, separated by commas; default: the usual ones.")  # fmt: skip
def start_(process: int, events: str) -> None:
    """Begin to count events of a running process, with all its threads.

    Counting goes on until `cyclescope counters stop`, or until the process ends.
    """
    from cyclescope.session.counting.process import start

    names = [name.strip() for name in events.split(",") if name.strip()]
    if events and not names:
        raise UsageError("an empty list of events", "leave out --events for the usual ones")
    kept = start(process, names)
    click.echo(f"counting {', '.join(kept.events)} of process {process}")


@command.command("stop")
@click.argument("process", type=click.IntRange(1, 2**31 - 1), metavar="[PID]", required=False)
@json_option
def stop_(process: int | None, as_json: bool) -> None:
    """End counting, and print what was counted; without a PID, of the one process that is."""
    from cyclescope.report.host import counted_json, counted_text
    from cyclescope.session.counting.process import stop

    found = stop(process)
    click.echo(counted_json(found) if as_json else counted_text(found))
