"""Findings as text, JSON and as the rows of a page."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cyclescope.report.words import counted
from cyclescope.session.findings import Discovery, FindingGroup

SCHEMA_VERSION = 1
SHOWN = 10  # findings of a group on a terminal
ON_PAGE = 400  # and on a page


def findings_text(groups: Sequence[FindingGroup]) -> str:
    """The most telling findings of every group."""
    parts = []
    for group in groups:
        parts.append(f"{group.title}: {counted(group.total, 'form')}")
        parts += [f"  {group.about}"] if group.findings else []
        parts += [f"  none: {group.missing}"] if group.missing else []
        parts += [f"    {one.form}{_alike(one)}: {one.text}" for one in group.findings[:SHOWN]]
        rest = len(group.findings) - SHOWN
        parts += [f"    and {rest} more (--json has all)"] if rest > 0 else []
        parts.append("")
    return "\n".join(parts[:-1])


def _alike(one: Discovery) -> str:
    return f" (and {one.alike} alike)" if one.alike else ""


def findings_json(machine: str, groups: Sequence[FindingGroup]) -> str:
    """Every finding of every group."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine,
        "groups": [{"total": group.total, **msgspec.to_builtins(group)} for group in groups],
    }
    return msgspec.json.encode(data).decode()


def finding_rows(groups: Sequence[FindingGroup]) -> list[dict[str, object]]:
    """What the template of a site shows."""
    return [
        {
            "key": group.key, "title": group.title, "about": group.about, "total": group.total,
            "kinds": len(group.findings), "missing": group.missing,
            "rows": [msgspec.to_builtins(one) for one in group.findings[:ON_PAGE]],
        }
        for group in groups
    ]  # fmt: skip
