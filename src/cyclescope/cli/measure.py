"""`cyclescope measure`."""

from __future__ import annotations

import gc
from contextlib import closing
from pathlib import Path

import click

from cyclescope.cli.options import Duration, cpu_option, json_option, patterns_argument, store_option
from cyclescope.errors import Stopped, UnsupportedInstruction, UsageError
from cyclescope.infer.api import conditions, default_store, explained, open_backend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.isa.pattern import select
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.ports import PORTS
from cyclescope.measure.store import Store
from cyclescope.report.card import timings_json
from cyclescope.report.progress import reporter
from cyclescope.report.summary import Tally, dry_run_json, dry_run_text, summary_text
from cyclescope.report.words import counted


def _quantities(text: str | None, patterns: tuple[str, ...]) -> frozenset[str]:
    """What to measure; by default everything in a full run, and what takes no others beside some forms."""
    if text is None:
        return frozenset((THROUGHPUT, LATENCY) if patterns else (THROUGHPUT, LATENCY, PORTS))
    wanted = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = wanted - {THROUGHPUT, LATENCY, PORTS}
    if unknown or not wanted:
        raise UsageError(f"--what {text!r}", f"choose from {THROUGHPUT}, {LATENCY}, {PORTS}")
    return wanted


@click.command("measure")
@patterns_argument
@click.option("--what", default=None, metavar="LIST",
              help="Quantities to measure: latency, throughput, ports; separated by commas. Default: all "
                   "without a PATTERN, else latency,throughput: ports need some 800 more forms.")  # fmt: skip
@cpu_option
@store_option
@click.option("--time-budget", type=Duration(), default=None, help="Stop after this long: 90s, 10m.")
@click.option("--fresh", is_flag=True, help="Forget what the store has and start over.")
@click.option("--dry-run", is_flag=True, help="Print the kernels, measure nothing.")
@json_option
def command(
    patterns: tuple[str, ...],
    what: str | None,
    cpu: int | None,
    store: Path | None,
    time_budget: float | None,
    fresh: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Measure forms on this machine and keep the results in a store.

    Without a PATTERN every form is measured, two to three minutes, most of it for ports. A run that is
    stopped, by a time budget or by a signal, goes on where it was when the same command is given again.
    Patterns are those of `cyclescope forms`.
    """
    quantities = _quantities(what, patterns)
    table = load_table("x86-64")
    forms = select(table, patterns)
    gc.freeze()  # the table lives as long as the run, and cycles are rare: looking for them took a fifth
    gc.set_threshold(5_000, 10, 10)
    if dry_run:
        write = dry_run_json if as_json else dry_run_text
        click.echo(write(table, forms, quantities))
        return
    backend, identity = open_backend(cpu)
    with (
        closing(backend),
        closing(Store(store or default_store(identity.machine), identity.machine)) as opened,
    ):
        if fresh:
            opened.clear()
        request = Request(tuple(forms), quantities, time_budget or 0.0)
        try:
            with reporter() as report:
                campaign = Campaign(table, backend, opened, report)
                finished = campaign.run(request, conditions(backend, identity))
        except (Exception, Stopped) as error:
            error.add_note(f"what was measured is kept in {opened.path}, the same command goes on from there")
            raise
        found = explained(opened, forms, campaign.results(forms))
        if as_json:
            every = list(found)
            click.echo(timings_json(opened.machine, every))
            tally = Tally(every)
        else:
            tally = Tally(found)
            click.echo(summary_text(opened, tally, finished, store))
        _check_executed(tally)


def _check_executed(tally: Tally) -> None:
    if not tally.outcomes["ok"]:
        raise UnsupportedInstruction(
            f"this CPU executes none of {counted(tally.outcomes.total(), 'form')}",
            "; ".join(sorted(tally.outcomes)[:3]),
        )
