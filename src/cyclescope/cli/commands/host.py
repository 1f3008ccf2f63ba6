"""`cyclescope host`."""

from __future__ import annotations

import click

from cyclescope.backend.link import Link
from cyclescope.cli.options import cpu_option, json_option, target_option
from cyclescope.infer.api import open_backend
from cyclescope.measure.survey import survey
from cyclescope.report.host import host_json, host_text


@click.command("host")
@target_option
@cpu_option
@json_option
def command(link: Link, cpu: int | None, as_json: bool) -> None:
    """Say what a machine is, how its time is kept, and how well it can be measured."""
    backend, _ = open_backend(cpu, link)
    try:
        found = survey(backend)
    finally:
        backend.close()
    click.echo(host_json(found) if as_json else host_text(found))
