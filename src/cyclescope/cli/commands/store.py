"""`cyclescope store`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cyclescope.cli.options import OutputFile, cpu_option, json_option, store_option, target_option
from cyclescope.cli.writing import write_file
from cyclescope.errors import MeasurementError, StoreError, UsageError
from cyclescope.session.elsewhere.backends import SAMPLE

if TYPE_CHECKING:
    from cyclescope.backend.link import Link
    from cyclescope.session.replay import Replay

_SHOWN = 10  # differences


@click.group("store")
def command() -> None:
    """Inspect, merge and verify stores of measurements."""


@command.command("info")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@store_option
@json_option
def info(file: Path | None, store: Path | None, as_json: bool) -> None:
    """Say what a store holds and under which conditions it was filled.

    Without FILE it is this machine's store.
    """
    from cyclescope.measure.database import only_store
    from cyclescope.measure.store import Store
    from cyclescope.report.summary import store_json, store_text

    if file and store:
        raise UsageError("two stores are given", "name one of them")
    opened = Store(file or store or only_store(), readonly=True)
    try:
        click.echo(store_json(opened) if as_json else store_text(opened))
    finally:
        opened.close()


@command.command("merge")
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Store to write.")
@click.option("-d", "--directory", type=click.Path(path_type=Path, file_okay=False),
              help="Folder for one store per machine instead of --output.")  # fmt: skip
@click.option("-t", "--table", type=OutputFile(),
              help="Instead of merging, write the values on all machines as CSV.")  # fmt: skip
def merge(sources: tuple[Path, ...], output: Path | None, directory: Path | None, table: Path | None) -> None:
    """Merge stores of one machine into a new or existing store, or of several machines, machine by machine.

    Of two measurements of one experiment the stable one is kept, or else the first. With --table, stores of
    several machines with one core make a table: the median of each value, and how far the machines are apart.
    """
    from cyclescope.infer.host_model import stored_model
    from cyclescope.measure.merge import by_machine, merge_files
    from cyclescope.report.comparison.spread import spread_csv, spread_text
    from cyclescope.report.progress import when_needed
    from cyclescope.report.words import counted
    from cyclescope.session.spread import spread

    if table and not output and not directory:
        click.get_current_context().with_resource(when_needed())
        values = spread([stored_model(path) for path in sources])
        write_file(table, spread_csv(values, list(map(str, sources))))
        click.echo(spread_text(values))
        return
    if output and not directory and not table:
        groups = [(output, list(sources))]
    elif directory and not output and not table:
        groups = by_machine(sources, directory)
    else:
        raise UsageError("where to merge to", "give one of --output, --directory and --table")
    for target, some in groups:
        for done in merge_files(some, target):
            lost = f", without {counted(done.damaged, 'damaged row')}" if done.damaged else ""
            where = f" to {target}" if directory else ""
            click.echo(f"{done.taken} measurements from {done.path}{where}{lost}")


@command.command("verify")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--sample", type=click.IntRange(1, 100_000), default=SAMPLE, show_default=True,
              help="Kernels to repeat.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@target_option
@cpu_option
@json_option
def verify(file: Path, sample: int, seed: int, link: Link, cpu: int | None, as_json: bool) -> None:
    """Repeat a random sample of a store's kernels on a machine of its kind.

    Each kernel runs byte by byte as it is stored. Exit code 1 if more than one kernel in ten differs, or if
    nothing could be compared.
    """
    from cyclescope.infer.api import calibrated, open_backend
    from cyclescope.measure.store import Store
    from cyclescope.report.comparison.replay import replay_json
    from cyclescope.session.replay import verified

    with closing(Store(file, readonly=True)) as opened:
        backend, identity = open_backend(cpu, link)
        with closing(backend):
            if identity.machine != opened.machine or identity.emulated:
                here = f"{identity.machine}{', emulated' if identity.emulated else ''}"
                raise StoreError(f"{file} is of {opened.machine}, this machine is {here}",
                                 "name one of its kind with {target}")  # fmt: skip
            calibrated(backend, identity)
            found = verified(opened, backend, sample, seed)
    write = (
        replay_json(found, str(file), identity.machine)
        if as_json
        else _verdict(found, file, identity.machine)
    )
    click.echo(write)
    if not found.agrees:
        raise MeasurementError(f"{file} does not agree with this machine",
                               "look at the kernels, or repeat it where nothing else runs")  # fmt: skip


def _verdict(found: Replay, file: Path, machine: str) -> str:
    from cyclescope.report.comparison.replay import replay_text

    text = replay_text(found, str(file), machine, _SHOWN)
    return f"{text}\n{file} agrees with this machine" if found.agrees else text
