"""`cyclescope host`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cyclescope.cli.options import cpu_option, json_option, target_option

if TYPE_CHECKING:
    from cyclescope.backend.link import Link


@click.command("host")
@target_option
@cpu_option
@json_option
def command(link: Link, cpu: int | None, as_json: bool) -> None:
    """Say what a machine is, how its time is kept, and how well it can be measured."""
    from cyclescope.infer.api import open_backend
    from cyclescope.measure.survey import survey
    from cyclescope.report.host import host_json, host_text

    backend, _ = open_backend(cpu, link)
    try:
        found = survey(backend)
    finally:
        backend.close()
    click.echo(host_json(found) if as_json else host_text(found))
