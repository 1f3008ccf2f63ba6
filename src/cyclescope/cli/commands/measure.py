"""`cyclescope measure`."""

from __future__ import annotations

import gc
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cyclescope.cli.options import (
    Duration,
    cpu_option,
    json_option,
    patterns_argument,
    store_option,
    target_option,
)
from cyclescope.cli.short_life import end_at_once
from cyclescope.errors import BackendUnavailable, Stopped, UnsupportedInstruction, UsageError
from cyclescope.formats.lists import find_list, read_list, shipped_lists
from cyclescope.host.uname import host_isa

if TYPE_CHECKING:
    from cyclescope.backend.base import Backend
    from cyclescope.backend.link import Link
    from cyclescope.host.identity import Identity
    from cyclescope.infer.campaign import Request
    from cyclescope.infer.timing.results import FormTiming
    from cyclescope.isa.table import Table
    from cyclescope.measure.store import Store
    from cyclescope.report.summary import Tally


def _quantities(text: str | None, patterns: tuple[str, ...]) -> frozenset[str]:
    """What to measure; by default everything in a full run, and what takes no others beside some forms."""
    from cyclescope.infer.api import QUANTITIES
    from cyclescope.measure.plan import LATENCY, THROUGHPUT
    from cyclescope.measure.ports import PORTS

    if text is None:
        return frozenset((THROUGHPUT, LATENCY) if patterns else (THROUGHPUT, LATENCY, PORTS))
    wanted = frozenset(part.strip() for part in text.split(",") if part.strip())
    if wanted.difference(QUANTITIES) or not wanted:
        raise UsageError(f"--what {text!r}", f"choose from {', '.join(QUANTITIES)}")
    return wanted


@click.command("measure")
@patterns_argument
@click.option("--what", default=None, metavar="LIST",
              help="Quantities to measure: latency, throughput, ports; separated by commas. Default: all "
                   "without a PATTERN, else latency,throughput: ports need many other forms.")  # fmt: skip
@click.option("--list", "listed", metavar="NAME|FILE.csv",
              help="Measure what a list names, in the style of Agner Fog's test programs: a file, or one "
                   f"that is here: {', '.join(shipped_lists(host_isa()))}.")  # fmt: skip
@target_option
@cpu_option
@store_option
@click.option("--time-budget", type=Duration(), default=None, help="Stop after this long: 90s, 10m.")
@click.option("--fresh", is_flag=True, help="Delete everything in the store and start over.")
@click.option("--dry-run", is_flag=True, help="Print the kernels and measure nothing.")
@json_option
def command(
    patterns: tuple[str, ...],
    what: str | None,
    listed: str | None,
    link: Link,
    cpu: int | None,
    store: Path | None,
    time_budget: float | None,
    fresh: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Measure forms and keep the results in a store.

    Without a PATTERN every form is measured: one to four minutes where nothing else runs, up to twelve
    beside neighbours that never rest. A run that is stopped, by a time budget, a signal or a lost connection,
    goes on where it was when the same command is given again. Patterns are those of `cyclescope forms`.
    """
    from cyclescope.analyze.read.example import assembled_forms
    from cyclescope.infer.api import isa_of, open_backend
    from cyclescope.infer.campaign import Request
    from cyclescope.isa.find.pattern import select
    from cyclescope.isa.table import load_table
    from cyclescope.measure.database import default_store, stores
    from cyclescope.measure.ports import PORTS
    from cyclescope.measure.store import Store
    from cyclescope.report.card import timings_json
    from cyclescope.report.summary import Tally, summary_text

    if listed is not None:
        patterns, what = _of_list(listed, patterns, what, isa_of(link))
    quantities = _quantities(what, patterns)
    known = None if link.remote else load_table(host_isa())  # what is wrong is said before anything starts
    chosen = select(known, patterns, read=assembled_forms) if known else []
    if dry_run:
        _dry_run(patterns, quantities, link, as_json)
        return
    backend, identity = open_backend(cpu, link)
    with closing(backend):
        table = load_table(backend.capabilities().isa)
        chosen = chosen if table is known else select(table, patterns, read=assembled_forms)
        facts = not patterns and PORTS in quantities
        request = Request(tuple(chosen), quantities, time_budget or 0.0, facts)
        _collect_seldom()
        path = store or default_store(identity.machine)
        with closing(Store(path, identity.machine, isa=table.isa)) as opened:
            if fresh:
                opened.clear()
            found, finished, again = _run(backend, identity, opened, table, request, as_json)
            tally = Tally(found)
            if as_json:
                click.echo(timings_json(opened, found))
            else:
                named = store or (path if len(stores()) > 1 else None)
                click.echo(summary_text(opened, tally, finished, named, backend.capabilities().notes, again))
    _check_executed(tally)


def _of_list(name: str, patterns: tuple[str, ...], what: str | None, isa: str) -> tuple[tuple[str, ...], str]:
    """Patterns and quantities with those of a list; what no form is measured for is said."""
    from cyclescope.isa.table import load_table

    text, source = find_list(name, isa)
    found = read_list(text, source, load_table(isa))
    for one in found.left_out:
        click.echo(f"note: {source}, line {one.line}: {one.text}: {one.reason}", err=True)
    return (*patterns, *found.forms), what or ",".join(sorted(found.quantities))


def _dry_run(patterns: tuple[str, ...], quantities: frozenset[str], link: Link, as_json: bool) -> None:
    from cyclescope.analyze.read.example import assembled_forms
    from cyclescope.infer.api import isa_of
    from cyclescope.isa.find.pattern import select
    from cyclescope.isa.table import load_table
    from cyclescope.report.summary import dry_run_json, dry_run_text

    table = load_table(isa_of(link))
    forms = select(table, patterns, read=assembled_forms)
    _collect_seldom()
    write = dry_run_json if as_json else dry_run_text
    click.echo(write(table, forms, quantities))


def _collect_seldom() -> None:
    """The table lives as long as the run, and cycles are rare: looking for them took a fifth, and a tenth
    where all that is known of a store was looked through again and again. A full run makes some five million
    objects that stay, each of which would be looked at once for a cycle in ten: what it keeps of these is
    little. At the end they would be looked at for a second.
    """
    gc.freeze()
    gc.set_threshold(20_000_000, 20, 1_000)
    end_at_once()


def _run(
    backend: Backend, identity: Identity, store: Store, table: Table, request: Request, whole: bool
) -> tuple[list[FormTiming], bool, int]:
    """Measure; the results, whether all was done in time, and how many readings were disturbed.

    A run that measures ports makes the model of the machine of them. Another one leaves out ports that it
    would have to tell anew, if results need not be `whole`.
    """
    from cyclescope.infer.api import conditions
    from cyclescope.infer.campaign import Campaign
    from cyclescope.infer.host_model import results_of
    from cyclescope.infer.ports.naming import known_machine
    from cyclescope.measure.ports import PORTS
    from cyclescope.report.progress import reporter

    try:
        with reporter() as report:
            ports = whole or PORTS in request.quantities
            known = known_machine(store.machine) if ports else None
            campaign = Campaign(table, backend, store, report, known=known)
            finished = campaign.run(request, conditions(backend, identity))
            backend.close()  # no kernel runs any more, and beside its threads one process alone makes results
            found = results_of(campaign, request, whole)
            return found, finished, len(campaign.disturbed(request).keys)
    except (Exception, Stopped) as error:
        kept = f"what was measured is kept in {store.path}, the same command goes on from there"
        error.add_note(kept)
        if isinstance(error, BackendUnavailable):
            error.remedy = error.remedy.also(kept)
        raise


def _check_executed(tally: Tally) -> None:
    from cyclescope.report.words import counted

    if not tally.outcomes["ok"]:
        raise UnsupportedInstruction(
            f"this CPU executes none of {counted(tally.outcomes.total(), 'form')}",
            "; ".join(sorted(tally.outcomes)[:3]),
        )
