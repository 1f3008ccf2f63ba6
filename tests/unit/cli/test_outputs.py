"""Nothing that a command reads, and no store of measurements, is written over."""

from __future__ import annotations

import click
import pytest

from cyclescope.cli.main import cli
from cyclescope.cli.options import OutputFile
from tests.support.files.hostile import ran

LOOP = ".L3:\n imul %rbx, %rcx\n dec %rdi\n jne .L3\n"
MODEL = ("machines", "show", "skylake", "--json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a loop, a model and the first page of a store."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.s").write_text(LOOP)
    (tmp_path / "m.json").write_text(ran(MODEL).out)
    (tmp_path / "s.sqlite").write_bytes(b"SQLite format 3\0" + bytes(84))
    (tmp_path / "same.s").symlink_to("k.s")
    return tmp_path


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(
    "line",
    [
        ("analyze", "k.s", "--arch", "skylake", "--dot", "s.sqlite"),
        ("analyze", "k.s", "--arch", "skylake", "--html", "s.sqlite"),
        ("machines", "build", "--store", "s.sqlite", "-o", "s.sqlite"),
        ("export", "m.json", "-o", "s.sqlite"),
        ("import", "t.yaml", "--machine", "a", "-o", "s.sqlite"),
        ("compare", "m.json", "m.json", "--html", "s.sqlite"),
        ("report", "m.json", "-o", "s.sqlite"),
        ("runner", "build", "-o", "s.sqlite"),
        ("insert-markers", "k.s", "-o", "s.sqlite"),
        ("store", "merge", "s.sqlite", "-t", "s.sqlite"),
        ("validate", "--blocks", "b.csv", "--output", "s.sqlite"),
        ("probe", "--simulated", "skylake", "--html", "s.sqlite"),
    ],
)
def test_a_store_is_not_written_over(folder, line):
    before = contents(folder)
    done = ran(line)
    assert done.code == 2
    assert "s.sqlite is a store of measurements and stays; name another file" in done.errors
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (("analyze", "k.s", "--arch", "skylake", "--dot", "k.s"), "'FILE'"),
        (("analyze", "--svg", "./k.s", "k.s", "--arch", "skylake"), "'FILE'"),
        (("analyze", "same.s", "--arch", "skylake", "--html", "k.s"), "'FILE'"),
        (("analyze", "k.s", "--arch", "m.json", "--dot", "m.json"), "--arch"),
        (("analyze", "k.s", "--arch", "skylake", "--dot", "new", "--svg", "new"), "--svg"),
        (("export", "m.json", "-o", "m.json"), "'SOURCE'"),
        (("import", "m.json", "--machine", "a", "-o", "m.json"), "'FILE'"),
        (("compare", "skylake", "m.json", "--html", "m.json"), "'A B [C]...'"),
        (("validate", "--blocks", "m.json", "--output", "m.json"), "--blocks"),
        (("probe", "--store", "new.sqlite", "--html", "new.sqlite"), "--store"),
    ],
)
def test_what_is_read_is_not_written_over(folder, line, named):
    before = contents(folder)
    done = ran(line)
    assert done.code == 2
    assert "would be written over what " in done.errors and named in done.errors
    assert contents(folder) == before


def test_a_name_that_is_no_file_is_none(folder):
    done = ran(("analyze", "k.s", "--arch", "skylake", "--dot", "skylake"))
    assert done.code == 0
    assert (folder / "skylake").read_text().startswith("digraph")


def test_a_page_that_no_probe_fills_leaves_no_file(folder):
    before = contents(folder)
    assert ran(("probe", "--simulated", "no such core", "--html", "p.html")).code == 2
    assert contents(folder) == before


STORES_TO_WRITE = {("merge", "output")}  # stores may grow, and are no files to be written over


def options(command, name=""):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for one in command.list_commands(context):
            yield from options(command.get_command(context, one), one)
    for param in command.params:
        yield name, param


def test_every_option_that_names_a_file_to_write_spares_stores():
    written = [
        (name, param) for name, param in options(cli)
        if {"-o", "--output", "--html"} & set(param.opts) and (name, param.name) not in STORES_TO_WRITE
    ]  # fmt: skip
    assert len(written) > 8
    assert [name for name, param in written if not isinstance(param.type, OutputFile)] == []
