"""Lists of instructions that come with the program: every line means forms, and topics are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyclescope.errors import UsageError
from cyclescope.formats.lists import find_list, read_list, shipped_lists
from cyclescope.isa.registry import instruction_set, isa_names
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import LATENCY, THROUGHPUT

PAGE = Path(__file__).parents[3] / "docs/howto/subset.md"
EVERY = [(isa, name) for isa in isa_names() for name in shipped_lists(isa)]
TOPICS = {
    "float-moves", "float-permutes", "float-conversions", "float-arithmetic", "float-math", "float-state",
    "vector-moves", "vector-packs", "vector-permutes", "vector-arithmetic", "vector-logic", "gathers",
    "integers", "integer-others", "masks", "avx512-others", "vector-strings", "half-floats",
}  # fmt: skip


@pytest.mark.parametrize(("isa", "name"), EVERY)
def test_every_line_means_forms(isa, name):
    text, source = find_list(name, isa)
    table = load_table(isa)
    found = read_list(text, source, table)
    assert found.left_out == ()
    assert found.quantities == {LATENCY, THROUGHPUT}
    lines = [line for line in text.splitlines()[2:] if line]
    assert len(lines) == len(set(lines)) >= 8
    mnemonics = {table[form].mnemonic.lower() for form in found.forms}
    assert mnemonics == {line.partition(",")[0] for line in lines}, "a line means its own instruction"


def test_topics_of_the_test_programs():
    assert set(shipped_lists("x86-64")) == TOPICS
    lines = sum(len(find_list(name, "x86-64")[0].splitlines()) - 2 for name in TOPICS)
    assert lines > 1500  # the lists of the test programs have some 1800


@pytest.mark.parametrize("isa", isa_names())
def test_what_everyone_has_is_in_a_list(isa):
    listed = {
        form
        for name in shipped_lists(isa)
        for form in read_list(find_list(name, isa)[0], name, load_table(isa)).forms
    }
    table = load_table(isa)
    additions = {table[name].mnemonic for name in instruction_set(isa).roles.plain["addition"]}
    assert additions <= {table[name].mnemonic for name in listed}


@pytest.mark.parametrize("isa", isa_names())
def test_every_list_says_what_it_is_about(isa):
    assert all(re.fullmatch(r"[A-Z].{3,100}\w", title) for title in shipped_lists(isa).values())


def test_the_page_names_them_all():
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \| .* \|$", PAGE.read_text(), re.MULTILINE)
    told = {name: [cell.strip() == "yes" for cell in cells.split("|")] for name, cells in rows}
    known = {isa: shipped_lists(isa) for isa in isa_names()}
    assert told == {name: [name in own for own in known.values()] for name in set().union(*known.values())}


@pytest.mark.parametrize("name", ["nosuch", "Integers", "", " "])
def test_a_name_of_nothing_says_what_there_is(name):
    with pytest.raises(UsageError, match=r"there is no list .* for x86-64: avx512-others, float-arithmetic"):
        find_list(name, "x86-64")


def test_a_list_of_another_instruction_set():
    with pytest.raises(UsageError, match="no list 'half-floats' for riscv64"):
        find_list("half-floats", "riscv64")


def test_a_file_is_found_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "masks").write_text("paddd,x,2\n")
    monkeypatch.chdir(tmp_path)
    assert find_list("./masks", "x86-64")[0] == "paddd,x,2\n"
    assert find_list("masks", "x86-64")[0].startswith("# Mask registers")


@pytest.mark.parametrize("name", ["lost.csv", "folder/lost", "/"])
def test_a_file_that_cannot_be_read(name):
    with pytest.raises(UsageError, match="cannot be read"):
        find_list(name, "x86-64")
