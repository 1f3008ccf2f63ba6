"""`cyclescope probe`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cyclescope.cli.options import (
    OutputFile,
    WritingCommand,
    cpu_option,
    json_option,
    store_option,
    target_option,
)
from cyclescope.cli.writing import write_file
from cyclescope.errors import UsageError

if TYPE_CHECKING:
    from cyclescope.backend.link import Link
    from cyclescope.model.facts import Fact
    from cyclescope.probe.run import Asked


@click.command("probe", cls=WritingCommand)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="Only list the probes with their questions.")
@click.option("--quick", is_flag=True, help="Only the cases that matter most.")
@click.option("--all", "everything", is_flag=True, help="Also what is not resolved, with the reason.")
@click.option("--simulated", metavar="CORE",
              help="A simulated core instead: a machine's name or file, or drawn:SEED.")  # fmt: skip
@click.option(
    "--card",
    "as_card",
    is_flag=True,
    help="Print, in place of each answer, one page that sums up these and all others in the store.",
)
@click.option("--html", "page", type=OutputFile(), metavar="FILE",
              help="Write a page with answers and curves here.")  # fmt: skip
@target_option
@cpu_option
@store_option
@json_option
def command(
    names: tuple[str, ...],
    listing: bool,
    quick: bool,
    everything: bool,
    simulated: str | None,
    as_card: bool,
    page: Path | None,
    link: Link,
    cpu: int | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Ask the core what it does: which moves it eliminates, what it fuses, how it forwards.

    Each probe is a question with kernels of its own; NAMEs are those of --list, all where none is given. An
    answer has a value with its error and a confidence, or is not resolved, with the reason. Answers and
    measurements are kept in the store, and are part of the machine model of it.
    """
    from cyclescope.infer.api import isa_of
    from cyclescope.probe.catalogue import chosen
    from cyclescope.report.pages.core_card import core_card
    from cyclescope.report.pages.core_summary import card_text
    from cyclescope.report.probes import asked_json, asked_text, head, list_json, list_text, summary
    from cyclescope.session.probes import open_session, simulated_core

    probes = chosen(names)
    if simulated is not None and (link.remote or cpu is not None):
        raise UsageError("a simulated core has no other machine and no CPU", "leave out {target} and {cpu}")
    if listing:
        isa = isa_of(link)
        click.echo(list_json(probes, isa) if as_json else list_text(probes, isa))
        return
    if page is not None:
        _check_writable(page)
    core = simulated_core(simulated, probes) if simulated is not None else None
    session = open_session(link, cpu, store, core, probes)
    with closing(session.backend):
        isa, found, asking = session.table.isa, [], session.run(probes, quick)
        if not as_json and not as_card:
            click.echo(head(session.machine, session.emulated, session.uncounted))
        for asked in asking:
            found.append(asked)
            if not as_json and not as_card:
                click.echo(asked_text(asked, isa, everything))
        found.sort(key=lambda asked: probes.index(asked.probe))
        if page is not None:
            text = core_card(session.machine, isa, found, session.uncounted, session.conditions)
            write_file(page, text)
        if as_json:
            click.echo(asked_json(session.machine, isa, found, session.uncounted))
        else:
            if as_card:
                click.echo(card_text(session.machine, _known(session.path, found), session.conditions))
            click.echo(summary(found, session.path))


def _known(path: Path | None, asked: Sequence[Asked]) -> list[Fact]:
    """What was found now, and what a store has of other questions."""
    from cyclescope.measure.store import Store

    now = [fact for one in asked for fact in one.facts]
    if path is None:
        return now
    with closing(Store(path, readonly=True)) as store:
        kept = store.facts()
    new = {(fact.probe, fact.subject) for fact in now if not fact.unfinished}
    return [fact for fact in kept if (fact.probe, fact.subject) not in new] + now


def _check_writable(page: Path) -> None:
    """Raise OSError now, not when everything is asked; nothing stays behind."""
    is_new = not page.exists()
    page.open("a").close()
    if is_new:
        page.unlink()
