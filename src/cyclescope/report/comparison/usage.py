"""Micro-operations and ports on another backend, as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cyclescope.report.tables import table
from cyclescope.session.elsewhere.usage import Compared, Sameness, UsageQuantity, Usages, Why

USAGE_HEAD = ("", "compared", *(outcome.value for outcome in Sameness), "same of compared")
SEEN_HEAD = ("", *(quantity.value for quantity in UsageQuantity))
DIFFERENCE_HEAD = ("", "", "stored", "elsewhere", "for instance", "forms")


def usage_text(found: Usages, shown: int) -> str:
    """How many forms have as many micro-operations and the same ports, and how the others differ."""
    lines = ["micro-operations and ports, of forms whose ports are told with high or medium confidence:"]
    lines.append(table([USAGE_HEAD, *usage_rows(found)], words=1))
    lines += [f"  {line}" for line in (found.about, names_text(found))]
    lines += [f"  {number:6} left out: {reason}" for reason, number in found.left_out.items()]
    rows = list(usage_reasons(found))
    if rows:
        lines += ["", "what is seen of those that are not the same:"]
        lines.append(table([SEEN_HEAD, *rows], words=1))
    differences = list(usage_differences(found))[:shown]
    if differences:
        lines.append("differences that most forms have, open ones first:")
        lines.append(table([DIFFERENCE_HEAD, *differences], words=5))
    return "\n".join(lines).rstrip()


def usage_rows(found: Usages) -> Iterator[tuple[str, ...]]:
    """A row per quantity, as `USAGE_HEAD` has the columns; the share is of what can be told."""
    for quantity in UsageQuantity:
        counts = found.counts(quantity)
        told = counts[Sameness.SAME] + counts[Sameness.DIFFERENT]
        share = f"{counts[Sameness.SAME] / told:.1%}" if told else "-"
        yield quantity.value, str(told), *(str(counts[outcome]) for outcome in Sameness), share


def names_text(found: Usages) -> str:
    """Which ports are which."""
    if not found.names:
        return "No port of the store can be matched with one of the other's."
    pairs = ", ".join(f"{mine} is {theirs}" for mine, theirs in sorted(found.names.items()))
    return f"Of ports that both use alike, {pairs}; names of others cannot be matched."


def usage_reasons(found: Usages) -> Iterator[tuple[str, ...]]:
    """A row per reason that there is, open ones first, as `SEEN_HEAD` has the columns."""
    by_quantity = [found.reasons(quantity) for quantity in UsageQuantity]
    whole: Counter[Why] = sum(by_quantity, Counter())
    for why in sorted(whole, key=lambda one: (one is not Why.OPEN, -whole[one])):
        yield why.value, *(str(counts[why]) for counts in by_quantity)


def usage_differences(found: Usages) -> Iterator[tuple[str, ...]]:
    """What differs, as `DIFFERENCE_HEAD` has the columns: one row for forms alike, most forms first."""
    for some in _alike(one for one in found.compared if one.outcome is Sameness.DIFFERENT):
        one = some[0]
        yield one.quantity.name.lower(), one.reason or "", one.stored, one.elsewhere, one.form, str(len(some))


def _alike(differing: Iterable[Compared]) -> list[Sequence[Compared]]:
    groups: dict[tuple[object, ...], list[Compared]] = {}
    for one in differing:
        groups.setdefault((one.quantity, one.stored, one.elsewhere, one.reason), []).append(one)
    return sorted(groups.values(), key=lambda some: (some[0].reason is not Why.OPEN, -len(some)))


def usage_data(found: Usages) -> dict[str, object]:
    """Counts, and every form that is not the same."""
    return {
        "about": found.about,
        "names": found.names,
        "left_out": found.left_out,
        "counts": {
            quantity.name.lower(): {
                outcome.name.lower(): found.counts(quantity)[outcome] for outcome in Sameness
            }
            for quantity in UsageQuantity
        },
        "reasons": {quantity.name.lower(): dict(found.reasons(quantity)) for quantity in UsageQuantity},
        "not_the_same": [_entry(one) for one in found.compared if one.outcome is not Sameness.SAME],
    }


def _entry(one: Compared) -> dict[str, object]:
    quantity, outcome = one.quantity.name.lower(), one.outcome.name.lower()
    return {"form": one.form, "quantity": quantity, "outcome": outcome, "stored": one.stored,
            "elsewhere": one.elsewhere, "reason": one.reason}  # fmt: skip
