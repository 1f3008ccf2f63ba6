"""Predictions against measurements as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from cyclescope.measure.blocks import CLEAN
from cyclescope.report.tables import table
from cyclescope.report.words import printable, with_lender
from cyclescope.session.accuracy import Accuracy
from cyclescope.session.blocks import KERNELS, LOOP, UNROLLED
from cyclescope.session.predictors import ANALYTIC, BlockAnswer
from cyclescope.session.validation import (
    Ablation,
    BlockGroup,
    BlockRow,
    PredictorResult,
    Validation,
    ValidationSection,
    worst,
)

SCHEMA_VERSION = 1
WORST = 10  # blocks that are listed
_LONGEST = 90  # characters of a block in a table
TITLES = {UNROLLED: "copies without a loop", LOOP: "loops of one copy", KERNELS: "loops of compiled programs"}
ABLATION_HEAD = (
    "what the probe found", "predictor", "with it", "without", "blocks it changes", "with it", "without"
)  # fmt: skip
HEAD = ("", "MAPE", "median", "tau", "<5 %", "<10 %", "low", "high", "in interval", "failed", "s/1000")


def validation_text(found: Validation, most: int = WORST) -> str:
    """The whole report."""
    parts = [f"measured on {found.machine}, cyclescope's model is {model_words(found)}"]
    parts += [f"{name} is not there: {why}" for name, why in found.absent.items()]
    parts += list(found.notes)
    for one in found.sections:
        parts.append("")
        parts += _section_lines(one, most)
    return "\n".join(printable(line) for part in parts for line in part.split("\n"))


def model_words(found: Validation) -> str:
    """The model that cyclescope computes with, and the core that it is borrowed from."""
    return with_lender(found.model, (found.borrowed,) if found.borrowed else ())


def _section_lines(part: ValidationSection, most: int) -> Iterable[str]:
    yield f"{TITLES.get(part.notion, part.notion)}: {counts(part)}"
    for verdict, reasons in part.reasons.items():
        yield from (f"  {verdict}: {count} {reason}" for reason, count in reasons.items())
    if not part.clean:
        return
    yield ""
    yield table([HEAD, *(row_cells(one) for one in part.predictors)], 1).rstrip()
    for title, groups in groups_of(part):
        if groups:
            yield ""
            yield table(group_rows(title, groups, [one.name for one in part.predictors]), 1).rstrip()
    if part.ablations:
        yield ""
        yield table([ABLATION_HEAD, *map(ablation_cells, part.ablations)], 2).rstrip()
    yield from _worst_lines(part, most)


def ablation_cells(one: Ablation) -> tuple[str, ...]:
    """A probe as a row: mean errors with and without what it found."""
    return (
        one.probe, one.predictor, percent(one.every.mape), percent(one.every_without.mape),
        str(one.changed.blocks), percent(one.changed.mape), percent(one.changed_without.mape),
    )  # fmt: skip


def counts(part: ValidationSection) -> str:
    """How many blocks there are of each verdict."""
    others = (f"{count} {verdict}" for verdict, count in part.counts.items() if verdict != CLEAN)
    return ", ".join([f"{len(part.rows)} tried", f"{part.counts.get(CLEAN, 0)} clean", *others])


def groups_of(part: ValidationSection) -> list[tuple[str, tuple[BlockGroup, ...]]]:
    """The tables of a section with their titles."""
    return [
        ("mean error by kind of instructions in the block", part.by_group),
        ("mean error by number of instructions", part.by_length),
        ("mean error by bound", part.by_bound),
    ]


def row_cells(one: PredictorResult) -> tuple[str, ...]:
    """A predictor as a row."""
    found = one.accuracy
    return (
        one.name, percent(found.mape), percent(found.median), _tau(found.kendall_tau),
        percent(found.within_5), percent(found.within_10), percent(found.too_low), percent(found.too_high),
        percent(found.interval_coverage), str(one.failures), f"{one.cpu_seconds_per_1000:.2f}",
    )  # fmt: skip


def group_rows(title: str, groups: Sequence[BlockGroup], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Mean errors, and shares within 10 %, of groups."""
    return [(title, "blocks", *names), *(_group_cells(group, names) for group in groups)]


def _group_cells(group: BlockGroup, names: Sequence[str]) -> tuple[str, ...]:
    each = (_cell(group.predictors[name]) for name in names)
    return (group.name.replace("_", " "), str(group.blocks), *each)


def _cell(found: Accuracy) -> str:
    return f"{percent(found.mape)} ({percent(found.within_10)} near)"


def percent(value: float | None) -> str:
    """A share or an error with three digits."""
    if value is None:
        return "-"
    return f"{value:.0f} %" if value >= 99.95 else f"{value:.1f} %"


def _tau(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _worst_lines(part: ValidationSection, most: int) -> Iterable[str]:
    name = main_predictor(part)
    misses = worst(part, name, most) if name else []
    if not misses:
        return
    yield ""
    yield f"the blocks that {name} is furthest off on"
    for miss in misses:
        yield f"  {one_line(miss.row)}: {miss.error:+.0%}; {miss.explanation.replace('_', ' ')}"
        yield f"      {shortened(miss.row.text)}"


def main_predictor(part: ValidationSection) -> str:
    """The predictor whose misses are listed."""
    names = [one.name for one in part.predictors]
    return ANALYTIC if ANALYTIC in names else next(iter(names), "")


def one_line(row: BlockRow) -> str:
    """What was measured and predicted of a block."""
    found = ", ".join(f"{name} {cycles(answer)}" for name, answer in row.answers.items())
    return f"{row.timing.cycles:.2f} measured, {found}"


def cycles(answer: BlockAnswer) -> str:
    """A predicted time."""
    return "-" if answer.cycles is None else f"{answer.cycles:.2f}"


def shortened(text: str) -> str:
    """A block that fits a line."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


# --- JSON ------------------------------------------------------------------------------------------


def validation_json(found: Validation, most: int = WORST) -> str:
    """The report as JSON; errors and shares are in percent. The first notion is also at the top."""
    sections = {one.notion: _section_data(one, most) for one in found.sections}
    first: dict[str, Any] = next(iter(sections.values()), {})
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": found.machine,
        "model": found.model,
        "borrowed": msgspec.to_builtins(found.borrowed),
        "notion": next(iter(sections), None),
        "given": found.given,
        "blocks": first.get("blocks", {"tried": 0, "clean": 0}),
        "predictors": first.get("predictors", {}),
        "absent": found.absent,
        "problems": list(found.problems),
        "notes": list(found.notes),
        "notions": sections,
    }
    return msgspec.json.encode(data).decode()


def _section_data(part: ValidationSection, most: int) -> dict[str, Any]:
    name = main_predictor(part)
    names = [one.name for one in part.predictors]
    return {
        "blocks": {"tried": len(part.rows), CLEAN: 0} | part.counts | {"reasons": part.reasons},
        "predictors": {one.name: _predictor_data(one) for one in part.predictors},
        "by_group": [_group_data(group, names) for group in part.by_group],
        "by_length": [_group_data(group, names) for group in part.by_length],
        "by_bound": [_group_data(group, names) for group in part.by_bound],
        "ablations": [_ablation_data(one) for one in part.ablations],
        "worst": [
            {**row_data(m.row), "error": rounded(100 * m.error), "explanation": m.explanation}
            for m in (worst(part, name, most) if name else [])
        ],
        "rows": [row_data(row) for row in part.rows],
    }


def _predictor_data(one: PredictorResult) -> dict[str, Any]:
    found = {key: rounded(value) for key, value in msgspec.structs.asdict(one.accuracy).items()}
    seconds = rounded(one.cpu_seconds_per_1000)
    return {
        "model": one.model, **found, "failures": one.failures, "reasons": one.reasons,
        "cpu_seconds_per_1000": seconds,
    }  # fmt: skip


def _ablation_data(one: Ablation) -> dict[str, Any]:
    return {
        "probe": one.probe, "predictor": one.predictor, "blocks": one.every.blocks,
        "mape": rounded(one.every.mape), "mape_without": rounded(one.every_without.mape),
        "changed": one.changed.blocks, "changed_mape": rounded(one.changed.mape),
        "changed_mape_without": rounded(one.changed_without.mape),
    }  # fmt: skip


def _group_data(group: BlockGroup, names: Sequence[str]) -> dict[str, Any]:
    each = {name: {"mape": rounded(group.predictors[name].mape),
                   "within_10": rounded(group.predictors[name].within_10)} for name in names}  # fmt: skip
    return {"name": group.name, "blocks": group.blocks, "predictors": each}


def row_data(row: BlockRow) -> dict[str, Any]:
    """A block with its time and its predictions, in cycles."""
    timing = row.timing
    value = timing.cycles or None
    return {
        "hex": row.code, "text": row.text, "where": row.where, "notion": row.notion,
        "instructions": row.instructions, "cycles": rounded(value), "spread": rounded(timing.spread),
        "linearity": rounded(timing.linearity), "verdict": timing.verdict, "reason": timing.reason,
        "pages": timing.pages, "groups": list(row.groups),
        "predictions": {name: _answer_data(answer) for name, answer in row.answers.items()},
    }  # fmt: skip


def _answer_data(answer: BlockAnswer) -> dict[str, Any]:
    low, high = answer.interval or (None, None)
    return {
        "cycles": rounded(answer.cycles), "low": rounded(low), "high": rounded(high),
        "lower": rounded(answer.lower), "bound": answer.bound, "reason": answer.reason,
    }  # fmt: skip


def rounded(value: float | None) -> float | None:
    """Four decimals; JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else round(value, 4)


def table_row(row: BlockRow, isa: str) -> dict[str, object]:
    """A block as a row of the table that is kept, with the predictions."""
    timing = row.timing
    found: dict[str, object] = {
        "hex": row.code, "notion": row.notion, "cycles": f"{timing.cycles:.4f}",
        "spread": f"{timing.spread:.4f}", "linearity": f"{timing.linearity:.4f}", "verdict": timing.verdict,
        "reason": timing.reason, "pages": timing.pages, "isa": isa, "where": row.where,
        "address": hex(row.address) if row.address else "", "text": row.text,
    }  # fmt: skip
    return found | {name: rounded(answer.cycles) for name, answer in row.answers.items()}
