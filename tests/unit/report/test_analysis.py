"""Predictions as text, JSON and graphs, of a prediction made by hand."""

from __future__ import annotations

import csv
import json
import re
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest

from cyclescope.analyze.decode.block import SourcePlace
from cyclescope.analyze.predict.causes import TimeShare
from cyclescope.analyze.predict.observed import BlockSimulation, Occupancy
from cyclescope.analyze.predict.prediction import (
    IN_ORDER,
    CriticalPath,
    LoopCarried,
    NotPredicted,
)
from cyclescope.analyze.predict.sensitivity import Gain
from cyclescope.analyze.predict.watched import Producer, WatchedInstruction, WatchedOperation
from cyclescope.model.machine import DRAWN, EXTRACTED, MEASURED, Provenance
from cyclescope.report.predictions.csv_table import csv_table, regions_csv
from cyclescope.report.predictions.graph import dot, svg
from cyclescope.report.predictions.html import comparison_page, page
from cyclescope.report.predictions.markdown import markdown
from cyclescope.report.predictions.text import (
    analysis_json,
    analysis_text,
    comparison_text,
    origin,
)
from cyclescope.report.predictions.views import VIEWS
from tests.support.code.made_prediction import FOUND, ROWS, Tags, changed, row
from tests.support.files.schemas import ANALYSIS, analysis_schema


def plain(text):
    return re.sub(r"\x1b\[\d+m", "", text)


BAD = "\x1b\x07\x9b\u202e[2J|`x`<b>"


def of_bad_names(number=1, **others):
    """A prediction whose machine, ports, file, labels and instructions have names that control terminals."""
    rows = (row(3, BAD, {f"p{BAD}": 1.0}, 4.0, 4.0, remarks=(BAD,)),) * number
    return changed(
        machine=BAD, source=BAD, name=BAD, found=BAD, notes=(BAD,), instructions=rows, full=(BAD,) * number,
        ports={f"p{BAD}": 1.0}, ports_fixed={f"p{BAD}": 1.0}, dependencies=(), loop_carried=(),
        critical_path=CriticalPath(4.0, (3,), (0,)), **others,
    )  # fmt: skip


def test_names_control_no_terminal_and_no_markup():
    """Of machines, ports, files and labels: what the reader did not write."""
    bad, found = BAD, of_bad_names()
    for text in (plain(analysis_text(found)), markdown(found), page(found), svg(found), dot(found)):
        assert text.replace("\n", "").isprintable()
    assert comparison_text([NotPredicted(bad, bad), found]).replace("\n", "").isprintable()
    assert "<b>" not in page(found).replace("&lt;b&gt;", "")
    outside = re.sub(r"(`+).*?\1", "", markdown(found).replace("\\`", ""))  # of code
    assert not re.search(r"(?<!\\)[<|`]", re.sub(r"(?m)^\| | \|$| \| ", "", outside))
    ElementTree.fromstring(svg(found))


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_no_view_controls_a_terminal(view):
    seen = WatchedOperation(1, 3, BAD, (BAD, "b"), Producer(0, 0, BAD))
    row = WatchedInstruction(1, 0, 1, 5, 7, (seen,), 0, BAD)
    simulation = BlockSimulation(
        7.0, True, "ideal", True, {BAD: 1.0}, (TimeShare("ports", 7.0, None, (BAD,)),),
        (Gain("port", 6.0, 1.0, port=BAD),), (Occupancy(BAD, 1.0, 1),), (0, 1, 2, 3), (row,),
    )  # fmt: skip
    found = of_bad_names(4, simulation=simulation)
    for text in (view.shown(found), view.all_shown([found, found])):
        read = (
            text.encode("ascii", "ignore").decode() if view.name == "json" else text
        )  # whose escapes are these
        assert plain(read).replace("\n", "").isprintable()


def test_names_are_not_longer_than_one_reads():
    text = analysis_text(changed(machine="m" * 1_000_000, source="s" * 1_000_000))
    assert len(text) < 5000
    assert "... (1000000 characters)" in text


# --- text -----------------------------------------------------------------------------------------


def test_the_first_line_names_the_machine_and_where_it_is_from():
    lines = plain(analysis_text(FOUND)).splitlines()
    assert lines[0] == "made (x86-64), from LLVM scheduling models 22.1.8"
    assert lines[1] == "a.s, innermost loop .L3 at line 3, 4 instructions"
    told = changed(found="loop (lines 3 to 6), 4 instructions")
    assert plain(analysis_text(told)).splitlines()[1] == "a.s, .L3, loop (lines 3 to 6), 4 instructions"


def test_the_answer_comes_before_the_reasons():
    text = plain(analysis_text(FOUND))
    assert "\n7.00 cycles per iteration, bound by: loop-carried dependency\n" in text
    assert "\n1.75 cycles per unit of work, 4 in an iteration\n" in text
    assert "\nat least 3.00; 7.50 with ports chosen at dispatch\n" in text
    in_order = changed(bounds={**FOUND.bounds, IN_ORDER: 7.5})
    assert "\nat least 3.00; 7.50 simulated in order\n" in plain(analysis_text(in_order))
    assert "\nat least 3.00; not simulated\n" in plain(analysis_text(changed(upper=None)))
    elements = plain(analysis_text(changed(unroll_factor=0, elements=4)))
    assert "\n1.75 cycles per element: pointers move by 32 bytes, 4 elements\n" in elements
    assert "element" not in plain(analysis_text(changed(unroll_factor=0, elements=1)))
    unknown = plain(analysis_text(changed(unroll_factor=0, elements=None)))
    assert "\npointers move by 32 bytes; how many elements these are is not known\n" in unknown
    ports = changed(bottleneck="ports", full=("p0", "p1"), cycles=1.75)
    assert "bound by: ports p0 p1" in plain(analysis_text(ports))
    split = changed(bottleneck="ports_fixed", full=("p1",), fixed=True)
    assert "bound by: ports p1, split evenly" in plain(analysis_text(split))


def test_the_interval_says_what_it_rests_on():
    text = plain(analysis_text(FOUND))
    assert "\n2.25 to 10.50 if the model is off by as much as 8 of 10 of LLVM's costs are\n" in text
    measured = plain(analysis_text(changed(provenance=Provenance(MEASURED, "here"))))
    assert (
        "\n2.25 to 10.50 if the model is off by as much as 8 of 10 blocks on measured models are\n"
        in measured
    )
    assert "if the model is off" not in plain(analysis_text(changed(provenance=Provenance(DRAWN))))


def test_every_bound_alone():
    text = plain(analysis_text(FOUND))
    lines = [line.split() for line in text.split("\n\n")[2].splitlines()]
    assert [line[-1] for line in lines[1:4]] == ["7.00", "-5.25", "-6.25"]
    assert lines[4] == ["(ports,", "split", "evenly)", "2.00"]
    assert lines[5][-1] == "9.00"
    fixed = plain(analysis_text(changed(fixed=True)))
    assert re.search(r"^ports, split evenly +2\.00 +-5\.00$", fixed, re.MULTILINE)
    assert re.search(r"^\(ports\) +1\.75$", fixed, re.MULTILINE)
    assert re.search(r"^\(critical path, with latencies of operand pairs\) +8\.50$", fixed, re.MULTILINE)
    assert "operand pairs" not in text


def test_the_table_has_a_row_per_instruction_and_sums():
    lines = plain(analysis_text(FOUND)).split("\n\n")[3].splitlines()
    assert lines[0].split() == ["line", "p0", "p1", "CP", "LCD", "instruction"]
    assert lines[1].split() == ["3", "1.00", "4.00", "4.00", "mulsd", "%xmm1,", "%xmm0"]
    assert lines[2].endswith("addsd %xmm1, %xmm2  [zero idiom, forwarded]")
    assert lines[3].endswith("what  [UNKNOWN, left out]")
    assert lines[5].split() == ["sum", "1.25", "1.75", "9.00", "7.00"]
    assert lines[6].split() == ["unit", "0.31", "0.44", "2.25", "1.75"]
    bare = plain(analysis_text(changed(unroll_factor=0))).split("\n\n")[3].splitlines()
    assert bare[-1].split()[0] == "sum"
    columns = {
        line.index(text) for line, text in zip(lines[1:5], ("mulsd", "addsd", "what", "say"), strict=True)
    }
    assert len(columns) == 1
    fixed = plain(analysis_text(changed(fixed=True))).split("\n\n")[3].splitlines()
    assert fixed[1].split()[1] == "0.50"
    assert fixed[-2].split()[:3] == ["sum", "1.50", "2.00"]


def test_long_instructions_are_cut():
    long = changed(instructions=(row(1, "x" * 100, {}),))
    assert f"  {'x' * 57}...\n" in plain(analysis_text(long))


def test_colours_mark_the_paths():
    lines = analysis_text(FOUND).splitlines()
    (mul,) = [line for line in lines if "mulsd" in line]
    (add,) = [line for line in lines if "addsd" in line]
    (say,) = [line for line in lines if "say" in line]
    assert mul.startswith("\033[1m\033[31m")
    assert add.startswith("\033[31m")
    assert say.startswith("\033[1m ")
    assert all(line.endswith("\033[0m") for line in (mul, add, say))


def test_chains_and_notes():
    text = plain(analysis_text(FOUND))
    assert "    7.00  lines 3, 4\n" in text
    assert "    1.50  line 6 over 2 iterations" in text
    assert text.endswith("note: something was assumed")
    bare = changed(instructions=tuple(msgspec.structs.replace(r, line=0) for r in ROWS),
                   loop_carried=(LoopCarried(7.0, 1, (0, 0), (0, 3)),))  # fmt: skip
    assert '    7.00  mulsd  %xmm1,\t%xmm0; say "x"' in plain(analysis_text(bare))
    many = changed(loop_carried=tuple(LoopCarried(1.0, 1, (n,), (0,)) for n in range(1, 12)))
    assert "and 3 more" in plain(analysis_text(many))
    assert "loop-carried dependencies" not in analysis_text(changed(loop_carried=()))


def test_origins():
    measured = Provenance(MEASURED, "A CPU, measured by cyclescope", "0.1.0", date="2026-11-21")
    assert origin(measured) == "A CPU, measured by cyclescope, 2026-11-21"
    assert origin(Provenance("drawn")) == "drawn"


# --- JSON -----------------------------------------------------------------------------------------


def test_json_has_everything_and_what_follows_from_it():
    data = json.loads(analysis_json(FOUND))
    jsonschema.Draft202012Validator(ANALYSIS).validate(data)
    assert (data["schema_version"], data["machine"], data["cycles"]) == (1, "made", 7)
    assert data["bounds"]["ports_fixed"] == 2
    assert data["loop_carried"][1] == {"cycles": 1.5, "iterations": 2, "lines": [6], "instructions": [3]}
    assert data["unknown"] == [{"line": 5, "text": "what", "reason": "no idea", "address": None}]
    assert data["derived"] == {
        "throughput": 1.75, "alone": {"loop_carried": 7, "ports": 1.75, "front_end": 0.75},
        "next": {"bound": "ports", "below": 5.25}, "per_unit": 1.75, "unmatched": 0.25,
    }  # fmt: skip


def test_the_schema_of_the_documentation_is_that_of_the_types():
    assert analysis_schema() == ANALYSIS
    jsonschema.Draft202012Validator.check_schema(ANALYSIS)


# --- pages ----------------------------------------------------------------------------------------


def test_a_page_has_all_of_it():
    text = page(FOUND)
    rows = Tags(text).rows
    assert ["line", "instruction", "CP", "LCD", "p0", "p1"] in rows
    assert ["3", "mulsd %xmm1, %xmm0", "4.00", "4.00", "1.00"] in rows
    assert ["sum", "9.00", "7.00", "1.25", "1.75"] in rows
    assert ["unit", "2.25", "1.75", "0.31", "0.44"] in rows
    assert ["loop-carried dependency", "7.00"] in rows
    assert ["1.50", "6 over 2 iterations"] in rows
    assert 'say "x"' in [cell for row in rows for cell in row]
    assert '<tr class="critical carried"><td class="number">3</td>' in text
    assert "--full:1.00" in text  # the fullest
    assert "--full:0.25" in text
    assert "<li>something was assumed</li>" in text
    assert "<svg " in text


@pytest.mark.parametrize("where", [{}, {"line": 0, "address": 16, "place": SourcePlace("k.c", 1)}])
def test_sums_stand_below_what_they_are_sums_of(where):
    rows = tuple(msgspec.structs.replace(row, **where) for row in FOUND.instructions)
    text = page(changed(instructions=rows))
    table = text[text.index('<table class="lines">') :]
    lines = re.findall("<tr.*?</tr>", table[: table.index("</table>")])
    head, *cells = (re.findall("<t[hd][^>]*>(.*?)</t[hd]>", line) for line in lines)
    assert {len(row) for row in cells} == {len(head)}
    sums = dict(zip(head, cells[-2], strict=True))
    assert {name: told for name, told in sums.items() if told} == {
        "instruction": "sum", "CP": "9.00", "LCD": "7.00", "p0": "1.25", "p1": "1.75"
    }  # fmt: skip


def test_a_page_begins_with_the_answer_and_says_what_its_colours_are():
    text = page(FOUND)
    heading = text[text.index("<h1>") : text.index("</h1>")]
    assert re.sub("<[^>]*>", "", heading) == "7.00 cycles per iteration, bound by: loop-carried dependency"
    legend = " ".join(re.findall(r"<li>(.*?)</li>", text[text.index("Line by line") :]))
    for part in ("cycles on a port, deeper for more", "on the critical path", "slowest loop-carried"):
        assert part in legend
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert all("tabindex" in part for part in re.findall('<div class="scroll[^>]*>', text)), "by keyboard too"


HOSTILE = '</svg><script>alert("1")</script>&amp;<b>\'{{ 7 * 7 }}'


def test_what_comes_from_files_is_text_on_a_page():
    rows = tuple(msgspec.structs.replace(row, text=HOSTILE, remarks=(HOSTILE,)) for row in ROWS)
    edges = tuple(msgspec.structs.replace(edge, by=HOSTILE) for edge in FOUND.dependencies)
    ports = {HOSTILE: 1.0}
    found = changed(
        machine=HOSTILE, source=HOSTILE, name=HOSTILE, found=HOSTILE, notes=(HOSTILE,), dependencies=edges,
        ports=ports, instructions=tuple(msgspec.structs.replace(row, ports=ports) for row in rows),
        provenance=Provenance(EXTRACTED, HOSTILE, HOSTILE), full=(HOSTILE,), bottleneck="ports",
        loop_carried=(LoopCarried(7.0, 1, (0, 0), (0, 1)),),
    )  # fmt: skip
    for text in (page(found), comparison_page([found, NotPredicted("other", HOSTILE)])):
        assert "<script" not in text
        assert "<b>" not in text
        assert "alert(&#34;1&#34;)" in text
        assert "{{ 7 * 7 }}" in text
        Tags(text)


def test_markdown_has_all_of_it():
    lines = markdown(FOUND).splitlines()
    assert lines[0] == "made (x86-64), from LLVM scheduling models 22.1.8  "
    assert "| loop-carried dependency | 7.00 |" in lines
    assert "| line | p0 | p1 | CP | LCD | instruction |" in lines
    assert "| 3 | 1.00 |  | 4.00 | 4.00 | `mulsd %xmm1, %xmm0` |" in lines
    assert "| 5 |  |  |  |  | `what  [UNKNOWN, left out]` |" in lines
    assert "| 1.50 | 6 over 2 iterations |" in lines
    assert lines[-1] == "- something was assumed"
    assert len({line.count("|") for line in lines if line.startswith(("| 3", "| sum"))}) == 1


# --- CSV ------------------------------------------------------------------------------------------


def test_csv_has_a_row_per_instruction():
    head, *rows = csv.reader(csv_table(FOUND).splitlines())
    assert head == ["region", "line", "p0", "p1", "CP", "LCD", "instruction"]
    assert rows[0] == [".L3", "3", "1.00", "", "4.00", "4.00", "mulsd %xmm1, %xmm0"]
    assert rows[2][2:-1] == [""] * 4, "no value is not 0"
    assert rows[3][-1] == 'say "x"'


def test_csv_of_regions_has_one_head():
    other = changed(name="b", ports={"p9": 1.0}, instructions=(row(8, "nop", {"p9": 1.0}),))
    head, *rows = csv.reader(regions_csv([FOUND, other]).splitlines())
    assert head == ["region", "line", "p0", "p1", "p9", "CP", "LCD", "instruction"]
    assert {len(cells) for cells in rows} == {len(head)}
    assert rows[-1] == ["b", "8", "", "", "1.00", "", "", "nop"]
