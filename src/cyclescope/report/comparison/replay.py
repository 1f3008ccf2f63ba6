"""Experiments that were repeated, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from cyclescope.report.comparison.usage import usage_data
from cyclescope.report.tables import table
from cyclescope.session.elsewhere.usage import Usages
from cyclescope.session.replay import REPLAYED, Again, Agreeing, Replay, farthest

SCHEMA_VERSION = 1
REPLAY_HEAD = ("", "compared", *(outcome.value for outcome in Agreeing), "equal of compared")


def replay_text(found: Replay, store: str, where: str, shown: int) -> str:
    """How many agree, by quantity, and what is farthest off."""
    lines = [f"the same experiments: {store} and {where}"]
    lines.append(table([REPLAY_HEAD, *replay_rows(found)], words=1))
    lines += [f"  {number:6} left out: {reason}" for reason, number in found.left_out.items()]
    reasons = found.reasons()
    if reasons:
        lines += ["", "what there is about kernels that differ:"]
        lines += [f"  {number:6} {reason}" for reason, number in reasons.most_common()]
        lines.append("")
    differing = list(islice(farthest(found), shown))
    if differing:
        lines.append("farthest apart, open ones first (cycles of the body):")
        head = ("kernel", "question", "", "stored", "again")
        lines.append(table([head, *map(difference_row, differing)], words=3))
    return "\n".join(lines).rstrip()


def replay_rows(found: Replay) -> Iterator[tuple[str, ...]]:
    """A row per quantity, as `REPLAY_HEAD` has the columns."""
    yield from (_row(found, quantity) for quantity in REPLAYED)


def _row(found: Replay, quantity: str) -> tuple[str, ...]:
    counts = found.counts(quantity)
    compared = counts[Agreeing.EQUAL] + counts[Agreeing.DIFFERENT]
    share = f"{counts[Agreeing.EQUAL] / compared:.1%}" if compared else "-"
    return quantity, str(compared), *(str(counts[outcome]) for outcome in Agreeing), share


def difference_row(one: Again) -> tuple[str, ...]:
    """The kernel's number, what it asks, what is told of it, and cycles of the body in both."""
    record = one.record
    pair = f" {record.source} -> {record.target}" if record.target else ""
    what = f"{record.form}, {record.quantity}{pair}, {record.variant}"
    return str(record.id), what, one.reason, f"{record.cycles:.3f}", f"{one.cycles:.3f}"


def replay_json(found: Replay, store: str, where: str, usages: Usages | None = None) -> str:
    """Every experiment with both answers; of a model also micro-operations and ports."""
    data: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "store": store,
        "where": where,
        "agrees": found.agrees,
        "left_out": found.left_out,
        "reasons": found.reasons(),
        "counts": {
            quantity: {outcome.name.lower(): found.counts(quantity)[outcome] for outcome in Agreeing}
            for quantity in REPLAYED
        },
        "experiments": [_experiment(one) for one in found.answers],
    }
    if usages is not None:
        data["usage"] = usage_data(usages)
    return msgspec.json.encode(data).decode()


def _experiment(one: Again) -> dict[str, object]:
    names = ("id", "form", "quantity", "source", "target", "variant", "count")
    asked = {name: getattr(one.record, name) for name in names}
    stored = {"cycles": one.record.cycles, "spread": one.record.spread}
    return {
        **asked,
        "stored": stored,
        "again": {"cycles": one.cycles, "spread": one.spread, "outcome": one.outcome, "reason": one.reason},
    }
