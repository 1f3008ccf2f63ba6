"""The dependency graph, for Graphviz and as a drawing, of a prediction made by hand."""

from __future__ import annotations

import re
import subprocess
from shutil import which
from xml.etree import ElementTree

import pytest

from cyclescope.analyze.predict.prediction import Dependency
from cyclescope.report.predictions.graph import dot, svg
from tests.unit.report.test_analysis import FOUND, changed


def test_the_graph_marks_both_paths():
    lines = [line.strip() for line in dot(FOUND).splitlines()]
    assert 'i0 [label="3: mulsd %xmm1, %xmm0", penwidth=3, color=red];' in lines
    assert 'i3 [label="6: say \\"x\\"", penwidth=3];' in lines
    assert 'i0 -> i1 [label="4", tooltip="op1", color=red];' in lines
    assert 'i1 -> i0 [label="3 (-1)", tooltip="op2", style=dashed, constraint=false, color=red];' in lines
    assert 'i0 -> i3 [label="2.5", tooltip="flags.CF", penwidth=3];' in lines


def test_the_drawing_is_xml_and_marks_both_paths():
    root = ElementTree.fromstring(svg(FOUND))
    space = "{http://www.w3.org/2000/svg}"
    texts = {e.text: e for e in root.iter(f"{space}text")}
    assert texts["3: mulsd %xmm1, %xmm0"].get("font-weight") == "bold"
    assert texts["4: addsd %xmm1, %xmm2"].get("fill") == "#c00000"
    assert texts['6: say "x"'].get("fill") is None
    paths = {p.find(f"{space}title").text: p for p in root.iter(f"{space}path")}
    assert set(paths) == {"op1", "op2", "flags.CF"}
    assert paths["op2"].get("stroke-dasharray")
    assert paths["op1"].get("stroke") == paths["op2"].get("stroke") == "#c00000"
    assert paths["flags.CF"].get("stroke") == "#000000"
    rows = [float(texts[name].get("y")) for name in ("3: mulsd %xmm1, %xmm0", "4: addsd %xmm1, %xmm2")]
    assert rows[1] - rows[0] == 24
    widths = [float(value) for value in re.findall(r"[\d.]+", paths["op1"].get("d"))]
    assert max(widths) < float(root.get("width"))


def test_edges_of_one_pair_are_drawn_once():
    twice = changed(dependencies=(*FOUND.dependencies, Dependency(0, 1, 0, 9.0, "op3")))
    drawn = ElementTree.fromstring(svg(twice))
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) == 3
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}polygon"))) == 3  # heads
    assert svg(FOUND).count("slowest loop-carried dependency") == 1  # the legend
    assert "9" in [e.text for e in drawn.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.skipif(which("dot") is None, reason="needs dot of Graphviz")
def test_graphviz_reads_the_graph():
    done = subprocess.run(["dot", "-Tsvg"], input=dot(FOUND), capture_output=True, text=True, check=True)
    assert "mulsd" in done.stdout
