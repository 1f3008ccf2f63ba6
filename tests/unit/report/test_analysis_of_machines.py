"""Predictions of several machines, and of several regions, beside each other."""

from __future__ import annotations

import json
import re

from cyclescope.analyze.predict.prediction import (
    NotPredicted,
)
from cyclescope.model.machine import COSTS, Borrowed
from cyclescope.report.predictions.html import comparison_page
from cyclescope.report.predictions.markdown import markdown
from cyclescope.report.predictions.text import (
    comparison_json,
    comparison_text,
)
from cyclescope.report.predictions.views import View
from tests.support.code.made_prediction import FOUND, Tags, changed


def test_machines_side_by_side():
    lines = comparison_text([FOUND, NotPredicted("other", "1 of 4 instructions is unknown")]).splitlines()
    assert lines[0].split()[:3] == ["machine", "cycles", "upper"]
    assert lines[1].split() == [
        "made",
        "7.00",
        "7.50",
        "1.75",
        "0.75",
        "7.00",
        "9.00",
        "loop-carried",
        "dependency",
    ]
    assert lines[2].split() == ["other", "1", "of", "4", "instructions", "is", "unknown"]
    rows = Tags(comparison_page([FOUND, NotPredicted("other", "1 of 4 is unknown")])).rows
    assert ["cycles per iteration", "made", "other"] in rows
    assert ["expected", "7.00"] in rows
    assert ["ports", "1.75"] in rows
    data = json.loads(comparison_json([FOUND, NotPredicted("other", "no")]))
    assert [m["machine"] for m in data["machines"]] == ["made", "other"]
    assert data["machines"][1] == {"machine": "other", "problem": "no"}


def test_a_page_of_several_machines_has_each_of_them():
    slow = changed(machine="slow", cycles=9.5, bounds=FOUND.bounds | {"taken_branches": 9.5})
    text = comparison_page([FOUND, slow, NotPredicted("other", "1 of 4 is unknown")])
    rows = Tags(text).rows
    assert "<h1>7.00 to 9.50 cycles per iteration on 2 machines</h1>" in text
    assert ["expected", "7.00", "9.50"] in rows
    assert ["taken branches", "9.50"] in rows, "only one has it"
    sections = re.findall(r'<section id="(.*?)">', text)
    assert sections == re.findall(r'href="#(.*?)"', text) == ["machine-1", "machine-2", "machine-3"]
    assert text.count("<svg ") == 2
    assert text.count("1 of 4 is unknown") == 2
    same = comparison_page([FOUND, changed(machine="again")])
    assert "<h1>7.00 cycles per iteration on 2 machines</h1>" in same


def test_rows_of_borrowers_say_so():
    """A row is read alone; so is one without a prediction, whose reason may be the other core's."""
    whole, some = Borrowed("old", "LLVM", (COSTS,)), Borrowed("older", "LLVM", (COSTS,), ("ADD", "SUB"))
    found = [
        FOUND,
        changed(machine="new", borrowed=(whole, some)),
        NotPredicted("newer", "no cost", (whole,)),
    ]
    words = "new, borrowed from old, 2 forms borrowed from older"
    lines = comparison_text(found).splitlines()
    assert [" ".join(line.split()) for line in lines[-2:]] == [
        f"{words} 7.00 7.50 1.75 0.75 7.00 9.00 loop-carried dependency",
        "newer, borrowed from old no cost",
    ]
    made, *others = json.loads(comparison_json(found))["machines"]
    assert made["borrowed"] == []
    assert [[one["core"] for one in row["borrowed"]] for row in others] == [["old", "older"], ["old"]]
    text = comparison_page(found)
    assert ["cycles per iteration", "made", words, "newer, borrowed from old"] in Tags(text).rows
    assert text.count("costs of old, another core") == 4, "each machine's card, and its section"


def test_a_view_that_knows_one_region_shows_several_one_behind_the_other():
    view = View("as-it-is", "", "markdown:markdown")
    assert view.all_shown([FOUND, FOUND]) == f"{markdown(FOUND)}\n\n{markdown(FOUND)}"
    assert view.parameter.isidentifier()
