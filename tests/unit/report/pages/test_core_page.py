"""The page of a site with what probes found of the core."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.report.site.core import Bar, cores
from cyclescope.report.site.pages import site
from cyclescope.report.site.writing import write_site
from cyclescope.session.subjects import Subject
from tests.support.made.models import exchanged
from tests.support.programs.browser import PROGRAM, Browser
from tests.unit.report.pages.test_site import NASTY, page

CYCLES = {"answer": CoreAnswer.VALUE, "unit": "cycles", "confidence": "high"}
FACTS = (
    Fact("store-forwarding", "8 bits", CoreAnswer.FORWARDED, 5.0, 0.5, "cycles", "high"),
    Fact("store-forwarding", "16 bits", CoreAnswer.FAILED, 20.0, None, "cycles", "medium"),
    Fact("store-forwarding", "32 bits", reason="too noisy"),
    Fact("fusion", "CMP (R64, R64) + JZ (Rel8)", CoreAnswer.FUSED, confidence="high"),
)


def machine(*facts):
    return msgspec.structs.replace(exchanged(1), facts=facts)


def test_answers_are_grouped_by_probe_with_its_question():
    (one,) = cores([Subject(machine(*FACTS)), Subject(exchanged(2))])
    fusion, forwarding = one["groups"]
    assert (fusion["name"], fusion["drawn"], fusion["open"]) == ("fusion", False, "")
    assert fusion["question"].endswith("share a slot of the front end?")
    assert [row["answer"] for row in forwarding["rows"]] == ["forwarded", "not forwarded"]
    assert [row["value"] for row in forwarding["rows"]] == ["5.00 cycles ± 0.50", "20.00 cycles"]
    assert forwarding["open"] == "1 subject not resolved"


def test_bars_are_on_the_scale_of_their_unit():
    facts = (
        *FACTS[:2],
        Fact("store-forwarding", "rate", CoreAnswer.VALUE, 400.0, 100.0, "per second", "high"),
    )
    (one,) = cores([Subject(machine(*facts))])
    first, second, third = (row["bar"] for row in one["groups"][0]["rows"])
    assert first == Bar(25.0, 22.5, 27.5)
    assert second == Bar(100.0, 100.0, 100.0)
    assert third == Bar(80.0, 60.0, 100.0)


@pytest.mark.parametrize(("value", "text"), [(-0.004, "0.00 cycles"), (-1.0, "-1.00 cycles")])
def test_no_bar_is_negative(value, text):
    (one,) = cores([Subject(machine(Fact("banks", "x", value=value, **CYCLES)))])
    (row,) = one["groups"][0]["rows"]
    assert row["bar"] == Bar(0.0, 0.0, 0.0)
    assert row["value"] == text


def test_nothing_of_a_fact_is_markup():
    found = page(machine(Fact(NASTY, NASTY, value=1.0, reason=NASTY, **CYCLES)))
    assert "img" not in found.tags
    assert any("onerror" in word for word in found.words)


def test_a_machine_without_facts_has_no_such_page():
    assert "the core" not in " ".join(page(exchanged(1)).words)


@pytest.mark.skipif(PROGRAM is None, reason="no browser")
def test_the_page_is_shown(tmp_path):
    write_site(site([Subject(machine(*FACTS))], single=True), tmp_path / "site.html")
    browser = Browser()
    try:
        browser.open(tmp_path / "site.html", "#/core")
        shown = browser.run(
            "[...document.querySelectorAll('main > *')].filter((e) => !e.hidden).map((e) => e.id)"
        )
        assert shown == ["core"]
        assert browser.run("document.querySelector('nav [aria-current]').textContent") == "the core"
        assert browser.run("document.querySelectorAll('#core tbody tr').length") == 3
        assert browser.problems == []
    finally:
        browser.close()
