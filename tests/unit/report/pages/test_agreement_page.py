"""Pages on which values of two machines agree, or do not."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from cyclescope.infer.timing.results import FormTiming
from cyclescope.model.comparison.agreement import Tolerance, compare
from cyclescope.model.machine import FormCost
from cyclescope.report.pages.axes import MARGIN, SIDE
from cyclescope.report.site.agreement import agreement_page, agreement_sections
from cyclescope.session.subjects import Subject
from tests.support.made.models import exchanged
from tests.support.programs.read_page import NASTY, Page


def agreed(first, second):
    return [(second, compare(first, second))]


def test_a_page_of_an_agreement():
    first, second = exchanged(1), msgspec.structs.replace(exchanged(2), name=NASTY)
    text = agreement_page(Subject(first), agreed(first, second), Tolerance(), 5)
    found = Page(text)
    assert "img" not in found.tags
    assert "script" not in found.tags
    assert not [link for link in found.links if not link.startswith("#")]
    assert found.tags.count("circle") > 10
    assert "\x1b" not in text


def test_points_of_equal_values_are_one():
    forms = {f"F{n}": FormCost(throughput=1.0) for n in range(100)}
    first = msgspec.structs.replace(exchanged(1), forms=forms)
    (section,) = agreement_sections(Subject(first), agreed(first, first), 5)
    (point,) = section["plots"][0]["points"]
    assert point.title.startswith("100 values: 1 and 1 cycles")
    assert point.size > 4
    assert not point.differs
    assert section["differences"] == []


@pytest.mark.parametrize("most", [0.5, 2.0, 30.0, 500.0, 10_000.0, 90_000.0])
def test_numbers_on_axes_leave_each_other_room(most):
    forms = {"F": FormCost(throughput=0.1), "G": FormCost(throughput=most)}
    first = msgspec.structs.replace(exchanged(1), forms=forms)
    (section,) = agreement_sections(Subject(first), agreed(first, first), 5)
    ticks = section["plots"][0]["ticks"]
    assert len(ticks) > 1
    assert ticks[0][0] >= 0
    assert ticks[-1][0] <= SIDE
    assert all(b[0] - a[0] >= MARGIN for a, b in pairwise(ticks))
    assert max(len(text) for _, text in ticks) * 7 <= MARGIN  # pixels of a digit of 11, and the gap


def test_a_share_says_what_it_is_of():
    first, second = exchanged(1), exchanged(2)
    text = agreement_page(Subject(first), agreed(first, second), Tolerance(), 5)
    (section,) = agreement_sections(Subject(first), agreed(first, second), 5)
    _, head, rows = section["tables"][0]
    assert head[-1] == "equal or inside"
    for what, compared, equal, inside, _, share in rows:
        if compared != "0":
            assert share == f"{(int(equal) + int(inside)) / int(compared):.1%}"
            assert f"<strong>{share}</strong>equal or inside, of {compared} in {what}" in text


def test_why_forms_are_not_compared():
    first = exchanged(1)
    some = msgspec.structs.replace(first, forms={"IMUL (R64, R64)": first.forms["IMUL (R64, R64)"]})
    refused = FormTiming("ADC_11 (R64, R64)", {}, "SIGILL: this CPU lacks ADC", None, ())
    (section,) = agreement_sections(Subject(some, {refused.id: refused}), agreed(some, first), 5)
    reasons = dict(section["unmatched"][1][1])
    assert reasons["SIGILL: this CPU lacks ADC"] == 1
    assert sum(reasons.values()) == len(first.forms) - 1
