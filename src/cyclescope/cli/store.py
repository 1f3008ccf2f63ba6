"""`cyclescope store`."""

from __future__ import annotations

from pathlib import Path

import click

from cyclescope.cli.options import json_option, store_option
from cyclescope.infer.api import only_store
from cyclescope.measure.merge import merge_files
from cyclescope.measure.store import Store
from cyclescope.report.summary import store_json, store_text


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
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def merge(sources: tuple[Path, ...], output: Path) -> None:
    """Merge stores of one machine into a new or existing one.

    Where both have a measurement the stable one is kept; otherwise the one already there.
    """
    for path, taken in merge_files(sources, output):
        click.echo(f"{taken} measurements from {path}")
