"""What a search for disagreements found, as text and as JSON."""

from __future__ import annotations

import msgspec

from cyclescope.report.words import counted, printable
from cyclescope.session.search.finding import Disagreement, SearchFinding, SearchResult

SCHEMA_VERSION = 1


def search_text(found: SearchResult) -> str:
    """The findings, one behind the other."""
    answers = f"{counted(found.drawn, 'block')} drawn, {found.judged} with both answers"
    head = f"{answers}: {found.far} of them further off than noise; {found.model} against {found.reference}"
    parts = [_finding(found, number, one) for number, one in enumerate(found.findings, 1)]
    return printable_lines("\n\n".join([head, *parts]))


def printable_lines(text: str) -> str:
    """The text without what would control a terminal."""
    return "\n".join(printable(line) for line in text.splitlines())


def _finding(result: SearchResult, number: int, one: SearchFinding) -> str:
    lines = [
        f"{number}. {one.block.text}",
        f"   {_off(result, one.block)}; {counted(one.seen, 'drawn block')} came down to it",
        f"   looks like: {one.effect}",
    ]
    for tried in one.experiments:
        if tried.found is not None:
            shows = "the same" if tried.shows else "gone"
            lines.append(f"   {tried.change}: {shows}, {_off(result, tried.found)}")
    if one.like:
        lines.append(f"   also with {', '.join(one.like)}")
    if one.unlike:
        lines.append(f"   not with {', '.join(one.unlike)}")
    lines.append(f"   {one.block.code}")
    return "\n".join(lines)


def _off(result: SearchResult, one: Disagreement) -> str:
    return (
        f"{result.model} {one.predicted:.2f}, {result.reference} {one.taken:.2f} ({100 * one.error:+.0f} %)"
    )


def search_json(found: SearchResult) -> str:
    """All of it."""
    return msgspec.json.encode({"schema_version": SCHEMA_VERSION} | msgspec.to_builtins(found)).decode()
