"""The page of what probes found: every answer, a curve per sweep, nothing that asks for the network."""

from __future__ import annotations

import re

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.measure.record import NOISY, STABLE
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.question import GridPlace
from cyclescope.probe.run import Asked, ask
from cyclescope.report.pages.core_card import CURVE_HEIGHT, CURVE_WIDTH, _row, _title, core_card
from cyclescope.report.pages.heat import heat_maps
from tests.support.code.made_prediction import Tags
from tests.support.made.probed import drawn

SOME = [PROBES["in-flight"], PROBES["move-elimination"]]


@pytest.fixture(scope="module")
def asked():
    backend = SimulatedBackend(drawn(SOME, 4))
    return list(ask(SOME, backend, load_table("x86-64"), quick=True))


LEAST_SWEPT = 4  # places of a part that are drawn as a sweep


def test_curves_say_what_is_swept(asked):
    text = core_card("a machine", "x86-64", asked)
    assert "cycles by instructions in between" in text
    for probe in PROBES.values():
        places = {}
        for case in probe.cases("x86-64"):
            for point in case.points:
                places.setdefault((case.subject, point.part), set()).add(point.x)
        is_swept = max(map(len, places.values())) >= LEAST_SWEPT
        assert is_swept == (probe.axis != "instances"), probe.name


def test_the_card_comes_first(asked):
    text = core_card("a machine", "x86-64", asked)
    facts = [fact for one in asked for fact in one.facts]
    answered = sum(fact.is_resolved for fact in facts)
    assert f'<strong class="answer">{answered}</strong> of {len(facts)} question' in text
    assert text.index('class="card"') < text.index(asked[0].probe.question)
    assert "anything (NOPs)" in text
    assert 'class="card"' not in core_card("a machine", "x86-64", [])


def test_the_card_has_the_clock(asked):
    conditions = {"ticks_per_cycle": 0.5, "frequency": 4_000_000_000, "emulated": False}
    text = core_card("a machine", "x86-64", asked, {}, conditions)
    assert "<h3>Clock</h3>" in text
    assert "0.5000 ticks of the clock, 4.000 GHz" in text
    assert "<h3>Clock</h3>" not in core_card("a machine", "x86-64", asked)


def test_every_answer_is_there(asked):
    text = core_card("a <machine>", "x86-64", asked)
    assert "a &lt;machine&gt;" in text
    for one in asked:
        assert one.probe.question in text
        assert all(fact.subject in text for fact in one.facts)
        assert all(_row(fact)[1] in text for fact in one.facts)
    assert not Tags(text).open
    assert not re.search(r"https?://|<script", text)


def test_a_curve_per_sweep_with_its_mark(asked):
    tags = Tags(core_card("m", "x86-64", asked)).seen
    lines = [attributes for tag, attributes in tags if tag == "polyline"]
    sweeps = asked[0].facts
    assert len(lines) == 4 * len(sweeps), "three parts each, and the end asked again; moves have no sweep"
    marks = [attributes for _, attributes in tags if attributes.get("class") == "mark"]
    assert len(marks) == sum(fact.is_resolved for fact in sweeps) > 0
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line["points"].split()]
        assert all(0 <= x <= CURVE_WIDTH and 0 <= y <= CURVE_HEIGHT for x, y in points)
        assert points == sorted(points, key=lambda point: point[0])


def swept(asked, times, place):
    """The page of pages that take so long by their number, and the answer."""
    row = asked[0].rows[0]
    rows = tuple(
        row._replace(
            x=x,
            experiment=msgspec.structs.replace(row.experiment, source="entries", target="pages", count=1),
            measurement=msgspec.structs.replace(row.measurement, cycles=cycles, verdict=STABLE),
        )
        for x, cycles in times.items()
    )
    fact = Fact("pages", "entries", CoreAnswer.VALUE, place, 0.5, "pages", "high")
    return Tags(core_card("m", "x86-64", [Asked(PROBES["pages"], (fact,), rows)])).seen


@pytest.mark.parametrize(("most", "is_half"), [(160.0, False), (400.0, True)])
def test_times_that_are_far_apart_are_drawn_by_their_logarithms(asked, most, is_half):
    """Else a cache of four cycles looks like one of twelve beside memory of 400; the number is marked."""
    tags = swept(asked, {8: 4, 16: 4, 32: 4, 64: 4, 128: (4 * most) ** 0.5, 256: most}, 64.0)
    (line,) = (attributes for tag, attributes in tags if tag == "polyline")
    heights = [float(point.split(",")[1]) for point in line["points"].split()]
    assert (heights[4] < CURVE_HEIGHT / 2 + 10) == is_half
    assert 0 <= heights[5] < heights[4] < heights[0] <= CURVE_HEIGHT
    assert [attributes["class"] for _, attributes in tags if attributes.get("class") == "mark"] == ["mark"]


def test_numbers_at_the_edge_are_not_cut_off(asked):
    """The last of them ends where it is written; the picture ends a few pixels behind it."""
    tags = swept(asked, {8: 4, 16: 4, 32: 4, 64: 4, 128: 9, 256: 12, 512: 12}, 64.0)
    across = [one for tag, one in tags if tag == "text" and float(one["y"]) > CURVE_HEIGHT - 10]
    assert {one["text-anchor"] for one in across[:-1]} == {"middle"}
    assert float(across[-1]["x"]) > CURVE_WIDTH - 24
    assert across[-1]["text-anchor"] == "end"


GRID = PROBES["store-forwarding"]


def test_a_grid_of_combinations():
    """Every answer is a cell in its row and column, the more of the colour the more cycles it takes."""
    places = {case.subject: case.place for case in GRID.cases("x86-64")}
    values = {subject: 5.0 + number * 7 % 11 for number, subject in enumerate(places)}
    facts = [
        Fact(GRID.name, subject, CoreAnswer.VALUE, value, 0.1, "cycles") for subject, value in values.items()
    ]
    page = core_card("m", "x86-64", [Asked(GRID, tuple(facts), (), places)])
    tags = Tags(page)
    assert not tags.open
    heats = {a["title"].partition(": ")[0]: a["style"] for _, a in tags.seen if "title" in a}
    for kind in ("general", "vector", "VEX"):
        of_kind = [(values[one], int(heats[one][8:-1])) for one in places if places[one].title == kind]
        assert sorted(heat for _, heat in of_kind) == [heat for _, heat in sorted(of_kind)]
        assert (min(of_kind), max(of_kind)) == ((5, 0), (15, 60))
        assert f"<caption>{kind}</caption>" in page
    assert f"All {len(facts)} answers" in page


def test_few_cells_are_no_grid():
    few = Fact("core-to-core", "a line, CPU 0 and 1", CoreAnswer.VALUE, 150.0, 30.0, "cycles", "medium")
    assert list(heat_maps([few], {few.subject: GridPlace("a line", "CPU 0", "CPU 1")})) == []


def test_answers_without_values_and_without_answers():
    facts = [
        *(Fact("fusion", f"{n} + x", answer) for n, answer in enumerate(("fused", "fused", "separate"))),
        Fact("fusion", "3 + x", reason="<why>"),
    ]
    places = {fact.subject: GridPlace("", fact.subject[0], "x") for fact in facts}
    (grid,) = heat_maps([msgspec.convert(msgspec.to_builtins(fact), Fact) for fact in facts], places)
    assert [(name, cells[0].text, cells[0].heat) for name, cells in grid.rows] == [
        ("0", "fused", 0), ("1", "fused", 0), ("2", "separate", 60), ("3", "?", 0),
    ]  # fmt: skip
    assert grid.rows[3][1][0].told == "3 + x: not resolved, <why>"


@pytest.mark.parametrize(("error", "heat"), [(0.01, 60), (0.03, 0)])
def test_what_differs_by_less_than_its_error_has_one_colour(error, heat):
    """All values of one core were 0.0, in all shades."""
    facts = [
        Fact("consumers", f"{n} and x", CoreAnswer.VALUE, 0.01 * n, error, "cycles", "high") for n in range(5)
    ]
    places = {fact.subject: GridPlace("", fact.subject[0], "x") for fact in facts}
    (grid,) = heat_maps(facts, places)
    assert max(cells[0].heat for _, cells in grid.rows) == heat


def test_controls_without_a_place_take_no_line():
    """Calls inside each other and in fours are drawn, returns to another place are one number."""
    probe = PROBES["return-stack"]
    backend = SimulatedBackend(drawn([probe, *SOME], 4))
    page = core_card("m", "x86-64", list(ask([probe], backend, load_table("x86-64"))))
    lines = [attributes for tag, attributes in Tags(page).seen if tag == "polyline"]
    assert [len(line["points"].split()) for line in lines] == [14, 14]
    assert "inside each other</li>" in page
    assert "to another place</li>" not in page


def pairs_of(asked, others):
    """Rows of two pairs that begin with one instruction, with few NOPs behind them or among others."""
    row = asked[0].rows[0]

    def made(subject, part, x):
        code = b"alone" if part == "alone" else f"{part} {subject}".encode()
        kernel = msgspec.structs.replace(row.experiment.kernel, code=code + bytes(x))
        one = msgspec.structs.replace(row.experiment, source=subject, target=part, count=1, kernel=kernel)
        return row._replace(
            x=x, experiment=one,
            measurement=msgspec.structs.replace(row.measurement, cycles=float(x), verdict=STABLE),
        )  # fmt: skip

    parts = ("alone", "together")
    rows = [made(s, part, x) for s in ("CMP + JZ", "CMP + JB") for part in parts for x in range(1, 7)]
    few = [row for row in rows if row.x <= 4]
    among = [row._replace(x=row.x + others) for row in few if row.experiment.target == "alone" and row.x < 3]
    among = [
        row._replace(experiment=msgspec.structs.replace(row.experiment, target="alone, among others"))
        for row in among
    ]
    return rows, few + among


def test_pairs_that_begin_alike_have_a_curve_each(asked):
    """The first alone is one kernel, but what is drawn beside it is of one pair only."""
    sweeps, few = pairs_of(asked, 20)
    page = core_card("m", "x86-64", [Asked(PROBES["fusion"], (), tuple(sweeps))])
    for title in ("CMP + JZ", "CMP + JB"):
        assert f">{title}</" in page
    assert page.count("<polyline") == 4
    assert "<polyline" not in core_card("m", "x86-64", [Asked(PROBES["fusion"], (), tuple(few))])


def test_what_never_agreed_is_not_drawn(asked):
    import msgspec

    rows = tuple(
        row._replace(measurement=msgspec.structs.replace(row.measurement, verdict=NOISY))
        for row in asked[0].rows
    )
    noisy = msgspec.structs.replace(asked[0], rows=rows)
    assert "<polyline" not in core_card("m", "x86-64", [noisy])


def test_an_instruction_set_without_such_a_thing():
    probe = PROBES["stack-engine"]
    backend = SimulatedBackend(drawn([probe, *SOME], 4))
    (one,) = ask([probe], backend, load_table("x86-64"))
    assert "not asked: it has no instructions that push" in core_card("m", "aarch64", [one])
    assert "not asked in a hurry" in core_card("m", "x86-64", [Asked(probe, (), ())])


def test_every_part_of_a_sweep_has_a_line_and_its_colour():
    """The probe with the most parts; subjects that share a curve are named by what they have in common."""
    probe = PROBES["decoded"]
    backend = SimulatedBackend(drawn([probe, *SOME], 4))
    page = core_card("m", "x86-64", list(ask([probe], backend, load_table("x86-64"), quick=True)))
    for length in (2, 4, 5, 7):
        assert f"{length} bytes each</li>" in page
    for place in (".one", ".two", ".three", ".four"):
        assert page.count(f"{place} {{") == 3
    for name in ("one", "two", "three", "four"):
        assert page.count(f"--{name}: #") == 2, "light and dark"


def test_the_title_of_a_shared_curve():
    assert _title(["REP MOVSB, 64 bytes", "REP MOVSB, 1 KiB"]) == "REP MOVSB"
    assert _title(["first level, jumps", "second level, jumps"]) == "first level, jumps, second level, jumps"
    pairs = ["CMP_39 (R64, R64) + JZ (Rel8)", "CMP_39 (R64, R64) + JB (Rel8)"]
    assert _title(pairs) == "CMP_39 (R64, R64)"
    assert _title(["ADD (R64, I8)", "ADD (R64, I32)"]) == "ADD (R64, I8), ADD (R64, I32)"
    assert _title(["loads", "stores"]) == "loads, stores"
    assert _title(["loads, 1 KiB"]) == "loads, 1 KiB"


def test_a_curve_of_several_levels_is_named_after_them():
    """Once each: not with everything that is asked of each."""
    assert _title(["first level, size", "first level, load"]) == "first level"
    subjects = [f"{level} level, {what}" for level in ("first", "second") for what in ("size", "load")]
    assert _title(subjects) == "first level, second level"
    assert _title(["loads", "stores"]) == "loads, stores"


def test_numbers_of_things_have_no_zeros_behind_the_point():
    told = {unit: Fact("p", "s", CoreAnswer.VALUE, 442.0, 2.5, unit, "high") for unit in ("calls", "cycles")}
    assert _row(told["calls"]) == ("s", "442 ± 2.5 calls", "high")
    assert _row(told["cycles"]) == ("s", "442.00 ± 2.50 cycles", "high")
    moved = Fact("p", "s", CoreAnswer.ELIMINATED, -0.001, 0.01, "cycles", "medium")
    assert _row(moved) == ("s", "eliminated, 0.00 ± 0.01 cycles", "medium")
