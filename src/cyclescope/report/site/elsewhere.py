"""The experiments of a store on another backend, as a page: times, micro-operations and ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from cyclescope.report.comparison.replay import REPLAY_HEAD, difference_row, replay_rows
from cyclescope.report.comparison.usage import (
    DIFFERENCE_HEAD,
    SEEN_HEAD,
    USAGE_HEAD,
    names_text,
    usage_differences,
    usage_reasons,
    usage_rows,
)
from cyclescope.report.pages.rendering import ours, rendered
from cyclescope.report.site.pages import TEMPLATES
from cyclescope.session.elsewhere.usage import Usages
from cyclescope.session.replay import Replay, farthest


class _Table(NamedTuple):
    """`words` columns in front are words, the rest numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int


class _Section(NamedTuple):
    """Tables and what is said of them, with what was left out and how often."""

    title: str
    notes: Sequence[str]
    tables: Sequence[_Table]
    left_out: Sequence[tuple[str, int]]


def experiments_page(found: Replay, usages: Usages, store: str, where: str, most: int) -> str:
    """A page of its own, with `most` differences of each kind."""
    return rendered(
        TEMPLATES, "experiments_page.html", title=f"{store} and {where}",
        sections=(_of_usage(usages, most), _of_times(found, most)), style=ours(TEMPLATES / "site.css"),
    )  # fmt: skip


def _of_usage(found: Usages, most: int) -> _Section:
    tables = (
        _Table("quantity", USAGE_HEAD[1:], list(usage_rows(found)), 1),
        _Table("what is seen of those that are not the same", SEEN_HEAD[1:], list(usage_reasons(found)), 1),
        _Table("differences that most forms have, open ones first", DIFFERENCE_HEAD[1:],
               list(islice(usage_differences(found), most)), 5),
    )  # fmt: skip
    notes = ("Forms whose ports are told with high or medium confidence.", found.about, names_text(found))
    return _Section("Micro-operations and ports", notes, tables, list(found.left_out.items()))


def _of_times(found: Replay, most: int) -> _Section:
    reasons = [(reason, str(number)) for reason, number in found.reasons().most_common()]
    tables = (
        _Table("quantity", REPLAY_HEAD[1:], list(replay_rows(found)), 1),
        _Table("what there is about kernels that differ", ("kernels",), reasons, 1),
        _Table("kernel", ("question", "", "stored", "again"), list(_farthest(found, most)), 3),
    )
    notes = ("Cycles of the body of kernels; the farthest apart are listed, open ones first.",)
    return _Section("The same experiments", notes, tables, list(found.left_out.items()))


def _farthest(found: Replay, most: int) -> Iterator[tuple[str, ...]]:
    return map(difference_row, islice(farthest(found), most))
