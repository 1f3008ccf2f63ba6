"""`cyclescope store`."""

from __future__ import annotations

from pathlib import Path

import click

from cyclescope.cli.options import json_option, store_option
from cyclescope.errors import UsageError
from cyclescope.infer.api import only_store
from cyclescope.measure.merge import by_machine, merge_files
from cyclescope.measure.store import Store
from cyclescope.report.summary import store_json, store_text
from cyclescope.report.words import counted


@click.group("store")
def command() -> None:
    """Inspect and merge stores of measurements."""


@command.command("info")
@store_option
@json_option
def info(store: Path | None, as_json: bool) -> None:
    """Say what a store holds and under which conditions it was filled."""
    opened = Store(store or only_store(), readonly=True)
    try:
        click.echo(store_json(opened) if as_json else store_text(opened))
    finally:
        opened.close()


@command.command("merge")
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Store to write.")
@click.option("-d", "--directory", type=click.Path(path_type=Path, file_okay=False),
              help="Folder for one store per machine instead of --output.")  # fmt: skip
def merge(sources: tuple[Path, ...], output: Path | None, directory: Path | None) -> None:
    """Merge stores of one machine into a new or existing one, or those of several, machine by machine.

    Where both have a measurement the stable one is kept; otherwise the one already there.
    """
    if output and not directory:
        groups = [(output, list(sources))]
    elif directory and not output:
        groups = by_machine(sources, directory)
    else:
        raise UsageError("where to merge to", "give one of --output and --directory")
    for target, some in groups:
        for done in merge_files(some, target):
            lost = f", without {counted(done.damaged, 'damaged row')}" if done.damaged else ""
            where = f" to {target}" if directory else ""
            click.echo(f"{done.taken} measurements from {done.path}{where}{lost}")
