"""`cyclescope report`."""

from __future__ import annotations

from pathlib import Path

import click

from cyclescope.cli.options import OutputFile, WritingCommand


@click.command("report", cls=WritingCommand)
@click.argument("what", metavar="SOURCE")
@click.option("--compare", "others", multiple=True, metavar="OTHER",
              help="Another source to show beside it (repeatable).")  # fmt: skip
@click.option("-o", "--output", type=OutputFile(dir_okay=True), required=True, metavar="DIR|FILE.html",
              help="One file that ends in .html, or a folder.")  # fmt: skip
@click.option(
    "--form", "patterns", multiple=True, metavar="PATTERN", help="Only forms that match (repeatable)."
)
def command(what: str, others: tuple[str, ...], output: Path, patterns: tuple[str, ...]) -> None:
    """Make web pages of a machine: a table of all forms to search and sort, and a card of each.

    SOURCE and OTHER are what `compare` takes: a machine's name, a store, a model's file, another tool's file.
    Of a store the cards have every latency with its confidence and remarks, and the kernels behind each
    number with the command that runs it again. The site works from a file, without a server and without
    network.
    """
    from cyclescope.report.exchange import left_out_text
    from cyclescope.report.notebook import site_pages
    from cyclescope.report.progress import when_needed
    from cyclescope.report.site.pages import site
    from cyclescope.report.site.writing import check_target, write_site
    from cyclescope.report.words import counted
    from cyclescope.session.subjects import beside, narrowed

    check_target(output)
    click.get_current_context().with_resource(when_needed())
    subjects = [narrowed(one, patterns) for one in beside((what, *others))]
    first = subjects[0]
    files = site(subjects, single=output.suffix.lower() == ".html", pages=site_pages(subjects))
    size = write_site(files, output)
    forms = counted(len(first.timings or first.model.forms), "form")
    click.echo(f"{output}: {first.model.name}, {forms}, {size / 1e6:.1f} MB")
    for name, one in zip((what, *others), subjects, strict=True):
        if one.refused:
            click.echo(f"{name}: {left_out_text(one.refused, 'refused')}", err=True, nl=False)
