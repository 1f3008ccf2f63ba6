"""How far machines agree, as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cyclescope.isa.table import load_table
from cyclescope.model.comparison.agreement import Agreement, Comparison, Match, Quantity
from cyclescope.model.comparison.explanations import Reason
from cyclescope.model.machine import MEASURED, MachineModel
from cyclescope.report.tables import table
from cyclescope.report.words import borrowers, counted

SCHEMA_VERSION = 1
GROUPS = 12  # extensions, the largest first; the rest are one line
Found = Sequence[tuple[MachineModel, Agreement]]
REASON_HEAD = ("", *(quantity.value for quantity in Quantity), "all")
AGREEMENT_HEAD = ("", "compared", "equal", "inside", "different", "equal or inside")


def agreement_text(first: MachineModel, found: Found, differences: int) -> str:
    """Tables of agreement by quantity and by extension, and the largest differences."""
    parts = []
    for other, agreement in found:
        parts.append(f"{first.name} and {other.name}")
        parts += (f"  {line}" for line in borrowers((first, other)))
        parts += _matched(first, other, agreement)
        parts.append(table([AGREEMENT_HEAD, *count_rows(agreement.counts())], words=1))
        parts.append("Throughput and latency by extension:")
        parts.append(table([AGREEMENT_HEAD, *extension_rows(first, agreement)], words=1))
        parts += _reasons(agreement)
        parts += _listed(first, other, agreement, differences)
    return "\n".join(parts)


def _matched(first: MachineModel, other: MachineModel, agreement: Agreement) -> Iterator[str]:
    shared = len(first.forms) - len(agreement.first_only)
    yield (
        f"  {counted(shared, 'form')} in both, {len(agreement.first_only)} only in {first.name}, "
        f"{len(agreement.second_only)} only in {other.name}"
    )


def count_rows(counts: Mapping[Quantity, Counter[Match]]) -> Iterator[tuple[str, ...]]:
    """A row per quantity, as `AGREEMENT_HEAD` has the columns."""
    for quantity, verdicts in counts.items():
        yield _row(quantity.value, verdicts)


def _row(name: str, verdicts: Counter[Match]) -> tuple[str, ...]:
    parts = [verdicts[v] for v in (Match.EQUAL, Match.INSIDE, Match.DIFFERENT)]
    compared = sum(parts)
    share = f"{(parts[0] + parts[1]) / compared:.1%}" if compared else "-"
    return name, str(compared), *map(str, parts), share


def extension_rows(first: MachineModel, agreement: Agreement) -> Iterator[tuple[str, ...]]:
    """A row per extension, of throughputs and latencies."""
    found: dict[str, Counter[Match]] = defaultdict(Counter)
    extension = _extensions(first)
    for one in agreement.comparisons:
        if one.quantity in (Quantity.THROUGHPUT, Quantity.LATENCY):
            found[extension.get(one.form, "other")][one.verdict] += 1
    ranked = sorted(found, key=lambda name: -sum(found[name].values()))
    yield from (_row(name, found[name]) for name in ranked[:GROUPS])
    if ranked[GROUPS:]:
        rest: Counter[Match] = sum((found[name] for name in ranked[GROUPS:]), Counter())
        yield _row(f"{len(ranked) - GROUPS} others", rest)


def _extensions(model: MachineModel) -> Mapping[str, str]:
    return {form.id: "+".join(form.features) for form in load_table(model.isa)}


def reason_rows(agreement: Agreement) -> Iterator[tuple[str, ...]]:
    """A row per reason that there is, most differences first, by quantity as `REASON_HEAD` has them."""
    found = {reason: counts for reason, counts in agreement.reasons().items() if counts}
    for reason in sorted(found, key=lambda one: (one != Reason.OPEN, -found[one].total())):
        counts = found[reason]
        yield reason.value, *(str(counts[quantity]) for quantity in Quantity), str(counts.total())


def _reasons(agreement: Agreement) -> Iterator[str]:
    rows = list(reason_rows(agreement))
    if rows:
        yield "What explains the differences:"
        yield table([REASON_HEAD, *rows], words=1)


def _listed(first: MachineModel, other: MachineModel, agreement: Agreement, most: int) -> Iterator[str]:
    found = agreement.differences()
    if not found or not most:
        return
    number = counted(len(found), "difference")
    yield f"Of {number} ({first.name}, {other.name}), open ones first, the largest:"
    head = ("form", "", first.name, other.name, "")
    yield table([head, *map(_difference, found[:most])], words=2)
    if MEASURED in (first.provenance.kind, other.provenance.kind):
        yield f"  `cyclescope show --evidence '{found[0].form}'` prints the kernels behind a measured value\n"


def _difference(one: Comparison) -> tuple[str, ...]:
    what = one.pair or one.quantity.value
    return one.form, what, reach_text(one.first), reach_text(one.second), one.reason or ""


def reach_text(reach: tuple[float, float] | None) -> str:
    """Cycles, or from the least to the most."""
    if reach is None:
        return ""
    return f"{reach[0]:.2f}" if reach[0] == reach[1] else f"{reach[0]:.2f} to {reach[1]:.2f}"


def agreement_json(first: MachineModel, found: Found, differences: int) -> str:
    """Counts by quantity and the largest differences, by machine."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "first": first.name,
        "borrowed": first.borrowed,
        "others": [
            {
                "name": other.name,
                "borrowed": other.borrowed,
                "first_only": len(agreement.first_only),
                "second_only": len(agreement.second_only),
                "counts": {
                    quantity: {verdict.name.lower(): verdicts[verdict] for verdict in Match}
                    for quantity, verdicts in agreement.counts().items()
                },
                "reasons": {
                    reason.name.lower(): dict(counts)
                    for reason, counts in agreement.reasons().items()
                    if counts
                },
                "differences": agreement.differences()[:differences],
            }
            for other, agreement in found
        ],
    }
    return msgspec.json.encode(data).decode()


def agreement_csv(first: MachineModel, found: Found) -> str:
    """Every comparison as a row."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["first", "second", "form", "quantity", "pair", "first_least", "first_most",
                     "second_least", "second_most", "verdict", "reason"])  # fmt: skip
    for other, agreement in found:
        for one in agreement.comparisons:
            reaches = [*(one.first or ("", "")), *(one.second or ("", ""))]
            verdict = one.verdict.name.lower()
            what = first.name, other.name, one.form, one.quantity.value, one.pair
            writer.writerow([*what, *reaches, verdict, one.reason or ""])
    return stream.getvalue()
