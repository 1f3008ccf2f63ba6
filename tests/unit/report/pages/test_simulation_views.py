"""What the simulated core does, as text, as a timeline and as a page."""

from __future__ import annotations

import re

import msgspec
import pytest

from cyclescope.analyze.predict.prediction import ChangedPrediction, MeasuredLoop
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.machine import Scheduler
from cyclescope.report.predictions.lanes import STATE_WORDS, Lanes, LaneState
from cyclescope.report.predictions.simulation import simulation_text, timeline_text
from cyclescope.report.predictions.text import analysis_text
from cyclescope.report.predictions.trace import trace_page
from tests.support.code.blocks import block, toy
from tests.support.programs.browser import PROGRAM, Browser

CODE = "imul rax, rbx; add rcx, rax; imul rdx, rbx, 3; imul rsi, rbx, 5; mov [rdi], rcx"


def watched(text=CODE, **core):
    return Predictor(toy(**core)).predict(block(text), watch=True)


def lane(found, iteration, instruction):
    lanes = Lanes(found, found.simulation)
    row = next(r for r in found.simulation.rows if (r.iteration, r.instruction) == (iteration, instruction))
    return lanes.of(row)


def test_where_the_time_goes_and_what_would_save_some():
    text = simulation_text(watched())
    assert (
        "simulated core of toy: 3.00 cycles per iteration; operations get their ports when they start" in text
    )
    assert re.search(r"where the time goes\n +(2\.9|3\.0)\d +(99|100) % +line 1: imul rax, rbx\n", text)
    assert "no single change would save anything" in text  # the port is as full as the chain is long
    assert "on average  at most" in text and "general registers" in text
    alone = simulation_text(watched("imul rax, rbx"))
    assert re.search(r"\n +2\.00 +-1\.00 +one cycle less of latency: line 1: imul rax, rbx", alone)
    assert re.search(r"\n +0\.50 +-0\.50 +a second port a\n", simulation_text(watched("imul rax, rbx, 3")))


def test_where_nothing_would_save_anything_that_is_said():
    text = simulation_text(watched("imul rax, rbx, 3; mov rcx, [rsi]; mov [rdi], rdx; nop"))
    assert "no single change would save anything" in text


def test_a_timeline_has_a_letter_for_each_cycle():
    rows = timeline_text(watched("imul rax, rbx; add rcx, rax")).splitlines()
    first = next(n for n, row in enumerate(rows) if row.startswith("[0,0]"))
    assert [re.sub(r" {2,}", " ", row.rstrip()) for row in rows[first : first + 4]] == [
        "[0,0] DeeER imul rax, rbx", "[0,1] D===ER add rcx, rax",
        "[1,0] D===eeER imul rax, rbx", "[1,1] D======ER add rcx, rax",
    ]  # fmt: skip
    assert rows[first - 1].strip().startswith("0123456789")


def test_waits_have_reasons():
    found = watched()
    (_, waits, *_) = lane(found, 0, 1)
    assert waits.state is LaneState.OPERANDS
    assert waits.why == "waits for op2 from line 1 (iteration 0): imul rax, rbx"
    port = next(one for one in lane(found, 0, 3) if one.state is LaneState.PORT)
    assert port.why == "waits for port a, which line 1 (iteration 0) and line 3 (iteration 0) had"
    assert [one.why for one in lane(found, 0, 0) if one.state is LaneState.EXECUTED] == [
        "executed; got port a in cycle 1"
    ]


def test_what_has_no_room_says_which_buffer():
    found = watched(schedulers=(Scheduler("all", (0, 1, 2), 4),))
    reasons = {one.why for row in found.simulation.rows for one in Lanes(found, found.simulation).of(row)}
    assert "the scheduler has no room for it" in reasons


def test_an_operation_behind_a_load_waits_for_its_other_operand():
    """Its load is over long before the other factor is there."""
    found = watched("imul rax, rbx; imul rax, rbx; imul rax, rbx; imul rax, [rsi]")
    states = [one.state for one in lane(found, 0, 3)]
    assert states == ["D", "=", "e", "E", "R"]


def test_changes_and_times_stand_beside_the_prediction():
    found = msgspec.structs.replace(
        watched(), what_if=(ChangedPrediction("port=a", 2.0, "front_end"),),
        measured=(
            MeasuredLoop("loop", 3.1, predicted=3.5), MeasuredLoop("loop", 3.2),
            MeasuredLoop("unrolled", None, reason="it branches"),
        ),
    )  # fmt: skip
    text = analysis_text(found)
    way = "measured here as a loop with a counter in place of its end"
    assert f"\n3.10 {way}: 3.50 is predicted of that, +12.9 % off\n" in text
    assert f"\n3.20 {way}\n" in text
    assert "\nnot measured here as copies one after the other: it branches\n" in text
    assert "\n2.00 with port=a (-1.00), bound by: front end\n" in text


def test_the_page_needs_nothing_else_and_escapes_what_it_shows():
    found = watched()
    rows = tuple(msgspec.structs.replace(row, text="<b>imul</b>") for row in found.instructions)
    text = trace_page(msgspec.structs.replace(found, instructions=rows, source='"><script>'))
    assert "<script" not in text and "<b>imul" not in text
    assert not re.search(r"(src|href)=", text)
    assert len(re.findall(r'<i class="retired" tabindex', text)) == len(found.simulation.rows)


@pytest.mark.skipif(PROGRAM is None, reason="needs a browser")
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_page_in_a_browser(tmp_path, width, height):
    """Names stay where they are, the page has the width of the screen, and a touch shows the reason."""
    path = tmp_path / "trace.html"
    path.write_text(trace_page(watched()).replace("<html", '<html data-ready="yes"'))
    browser = Browser(width, height)
    try:
        browser.open(path)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        browser.run("document.querySelector('.trace').scrollLeft = 100")
        assert browser.run("document.querySelector('.names').getBoundingClientRect().left >= 0")
        find = "const one = document.querySelector('.lanes i.port'); "
        show = "one.scrollIntoView({block: 'center', inline: 'center'}); "
        place = "const box = one.getBoundingClientRect(); return [box.x + 3, box.y + 5];"
        at = browser.run(f"(() => {{ {find}{show}{place} }})()")
        for kind in ("mousePressed", "mouseReleased"):
            browser.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)
        shown = browser.run("getComputedStyle(document.activeElement, '::after').content")
        assert "waits for port a, which" in shown
        assert browser.run("getComputedStyle(document.activeElement, '::after').position") == "fixed"
        assert not browser.problems and [one for one in browser.requests if not one.startswith("file:")] == []
    finally:
        browser.close()


def test_a_long_timeline_is_cut():
    text = timeline_text(watched("div rcx; " * 10 + "nop"))
    assert max(map(len, text.splitlines())) < 400
    assert "(the others begin after cycle 159)" in text or text.count("\n") > 100


def test_the_legend_of_a_trace_has_every_letter_that_stands_in_it():
    text = trace_page(watched())
    legend = text[text.index('<ul class="legend">') : text.index("</ul>")]
    assert all(f">{state.value}</i>{words}" in legend for state, words in STATE_WORDS.items())
