"""`cyclescope show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cyclescope.cli.options import json_option, patterns_argument, store_option
from cyclescope.cli.short_life import keep_everything
from cyclescope.errors import UsageError

if TYPE_CHECKING:
    from cyclescope.infer.timing.results import FormTiming
    from cyclescope.measure.store import Store
    from cyclescope.model.calibration import ClaimCalibration


@click.command("show")
@patterns_argument
@store_option
@json_option
@click.option(
    "--evidence",
    is_flag=True,
    help="Print also the kernels that prove the values, and all that mixes say of ports.",
)
@click.option("--false-dependencies", "outputs", is_flag=True,
              help="Print only forms that wait for a register that they overwrite.")  # fmt: skip
@click.option("--findings", "unexpected", is_flag=True,
              help="Print only the unexpected: pairs that differ, idioms, hidden units.")  # fmt: skip
def command(
    patterns: tuple[str, ...],
    store: Path | None,
    as_json: bool,
    evidence: bool,
    outputs: bool,
    unexpected: bool,
) -> None:
    """Print a card per form: latency of every operand pair, throughput, notes, confidence.

    Patterns are those of `cyclescope forms`; --json, --findings or --false-dependencies without a pattern
    look at every form.
    """
    from cyclescope.analyze.read.example import assembled_forms
    from cyclescope.infer.gaps import Gaps
    from cyclescope.infer.kept import timings
    from cyclescope.infer.timing.conditions import with_conditions
    from cyclescope.isa.find.pattern import select_known
    from cyclescope.isa.table import load_table
    from cyclescope.measure.database import only_store
    from cyclescope.measure.store import Store
    from cyclescope.report.card import EMULATED, card, evidence_text, timings_json
    from cyclescope.report.outputs import outputs_text, waiting

    keep_everything()
    if unexpected:
        _show_findings(store or only_store(), patterns, as_json)
        return
    if not patterns and not as_json and not outputs:
        raise UsageError("no pattern", 'give one such as imul, "VADD*" or isa:BMI2')
    opened = Store(store or only_store(), readonly=True)
    try:
        table = load_table(opened.isa)
        chosen = select_known(table, patterns, _known(opened), assembled_forms)
        found = with_conditions(chosen, timings(opened, table, chosen), opened.facts())
        if as_json:
            click.echo(timings_json(opened, waiting(found) if outputs else found))
            return
        if opened.emulated:
            click.echo(f"{EMULATED}\n")
        if outputs:
            click.echo(outputs_text(found))
            return
        for form, timing in zip(chosen, found, strict=True):
            click.echo(card(form, timing))
            if evidence:
                click.echo(evidence_text(opened.evidence(form.id), opened.path))
        for line in _about_ports(_calibration(opened, found), evidence):
            click.echo(f"ports: {line}")
        for note in Gaps(found).notes(opened):
            click.echo(f"note: {note}")
    finally:
        opened.close()


def _calibration(store: Store, found: Sequence[FormTiming]) -> ClaimCalibration | None:
    """How often the port usages of a store hold; None where none is shown, or none was tried."""
    if not any(timing.ports for timing in found):
        return None
    from cyclescope.infer.refute.calibration import stored_verdicts  # it knows how ports are inferred

    verdicts = stored_verdicts(store)
    return verdicts.calibration if verdicts else None


def _about_ports(known: ClaimCalibration | None, everything: bool) -> list[str]:
    """How often port usages hold: one line, or all that is known."""
    from cyclescope.report.words import calibration_line, calibration_lines

    if everything:
        return list(calibration_lines(known))
    line = calibration_line(known)
    return [f"{line} (--evidence says more)"] if line else []


def _show_findings(path: Path, patterns: tuple[str, ...], as_json: bool) -> None:
    from cyclescope.report.findings import findings_json, findings_text
    from cyclescope.report.progress import when_needed
    from cyclescope.session.findings import findings
    from cyclescope.session.subjects import narrowed, of_store

    click.get_current_context().with_resource(when_needed())
    one = narrowed(of_store(path), patterns)
    found = findings(one)
    click.echo(findings_json(one.model.name, found) if as_json else findings_text(found))


def _known(store: Store) -> set[str]:
    """Forms that were measured, or do not run; where a table lists all forms they are known."""
    from cyclescope.isa.registry import instruction_set

    if instruction_set(store.isa).variants is None:
        return set()
    illegal = {form for form, outcome in store.legality().items() if outcome != "ok"}
    return illegal | store.throughputs().keys()
