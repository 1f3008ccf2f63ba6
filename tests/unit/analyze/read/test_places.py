"""Addresses and source lines of object files and executables."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.analyze.read import dwarf
from cyclescope.analyze.read.binary import ADDED, Binary
from cyclescope.report.predictions.html import page
from cyclescope.report.predictions.markdown import markdown
from cyclescope.report.predictions.text import analysis_json, analysis_text
from cyclescope.session.machines import load_model

SOURCE = """\
double first(const double *a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++)
    s += a[i];
  return s;
}

static inline double twice(double x) {
  return x + x;
}

double second(const double *a, long n) {
  double s = 1;
  for (long i = 0; i < n; i++)
    s *= twice(a[i]);
  return s;
}
"""
MACHINES = {"x86-64": "skylake", "aarch64": "neoverse-v1", "riscv64": "sifive-p670"}
COMPILERS = {
    "gcc": ("gcc", "x86-64"), "clang": ("clang", "x86-64"),
    "aarch64": ("aarch64-linux-gnu-gcc", "aarch64"), "riscv64": ("riscv64-linux-gnu-gcc", "riscv64"),
}  # fmt: skip
FILES = {
    "object": ("-c", "-gdwarf-5"), "old": ("-c", "-gdwarf-4"),
    "sections": ("-c", "-g", "-ffunction-sections"), "library": ("-shared", "-fPIC", "-nostdlib", "-g"),
}  # fmt: skip


def built(folder, compiler, *options):
    program = shutil.which(compiler)
    if program is None:
        pytest.skip(f"needs {compiler}")
    (folder / "src").mkdir(exist_ok=True)
    source, output = folder / "src" / "k.c", folder / "k"
    source.write_text(SOURCE)
    command = [program, "-O1", *options, str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"{compiler} cannot: {done.stderr[:100]!r}")
    return output


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_loops_come_from_their_source_lines(compiler, kind, tmp_path):
    path = built(tmp_path, COMPILERS[compiler][0], *FILES[kind])
    for function, lines in (("first", {3, 4}), ("second", {9, 14, 15})):
        block = read_block(path, choice=Choice(function=function))
        assert (block.isa, block.loop, block.notes) == (COMPILERS[compiler][1], True, ())
        assert {one.place.line for one in block} <= lines
        assert len({one.place.line for one in block}) > 1
        assert {one.place.file for one in block} == {str(tmp_path / "src" / "k.c")}


def test_tables_of_sums_are_emptied_where_their_sections_are_described():
    """In ELF of 64 bits: headers of 64 bytes each, with the size at byte 32."""
    names = ("", ".rela.debug_line", ".rela.text")
    sections = [SimpleNamespace(name=name, kind=ADDED) for name in names]
    before = b"\xff" * 320
    data = bytearray(before)
    dwarf._relocate(SimpleNamespace(sections=sections, headers=64), (), data, {})
    size = 64 + 64 + 32
    assert bytes(data) == before[:size] + bytes(8) + before[size + 8 :]


def test_compressed_information_is_read(tmp_path):
    block = read_block(built(tmp_path, "gcc", "-c", "-g", "-gz"), choice=Choice(function="first"))
    assert {one.place.line for one in block} <= {3, 4}


def test_without_information_there_are_addresses(tmp_path):
    path = built(tmp_path, "gcc", "-c")
    block = read_block(path, choice=Choice(function="second"))
    assert {one.place for one in block} == {None}
    assert block.notes == ()
    text = analysis_text(Predictor(load_model("skylake")).predict(block))
    assert f"{block.instructions[0].address:x}  " in text


def test_too_much_information_is_said(tmp_path, monkeypatch):
    path = built(tmp_path, "gcc", "-c", "-g")
    monkeypatch.setattr(dwarf, "_MOST", 100)
    block = read_block(path, choice=Choice(function="first"))
    assert {one.place for one in block} == {None}
    assert block.notes == ("0 MiB of debugging information are too many: no source lines",)


def test_damaged_information_is_said(tmp_path):
    path = built(tmp_path, "gcc", "-c", "-g")
    section = next(s for s in Binary(path, "k").sections if s.name == ".debug_info")
    data = bytearray(path.read_bytes())
    data[section.offset : section.offset + section.size] = b"\xfe" * section.size
    path.write_bytes(data)
    block = read_block(path, choice=Choice(function="first"))
    assert len(block) == len(read_block(built(tmp_path, "gcc", "-c"), choice=Choice(function="first")))
    assert block.notes == ("the debugging information cannot be read: no source lines",)


def test_reports_have_columns_for_them(tmp_path):
    path = built(tmp_path, "gcc", "-c", "-g")
    found = Predictor(load_model("skylake")).predict(read_block(path, choice=Choice(function="first")))
    first = found.instructions[0]
    head = next(line for line in analysis_text(found).splitlines() if "LCD" in line)
    assert head.split()[:2] == ["source", "address"]
    assert f"k.c:{first.place.line}" in analysis_text(found)
    assert f"| k.c:{first.place.line} | {first.address:x} |" in markdown(found)
    cells = f'<td class="number">k.c:{first.place.line}</td><td class="number">{first.address:x}</td>'
    assert cells in page(found)
    row = json.loads(analysis_json(found))["instructions"][0]
    assert (row["address"], row["line"]) == (first.address, 0)
    assert row["place"] == {"file": str(tmp_path / "src" / "k.c"), "line": first.place.line}


def test_text_has_lines_and_no_addresses():
    text = (Path(__file__).parents[1] / "snippets" / "gcc_O2_att.s").read_text()
    found = Predictor(load_model("skylake")).predict(read_block(text))
    assert {row.address for row in found.instructions} == {None}
    assert all(row.line for row in found.instructions)
