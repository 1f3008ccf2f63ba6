"""Files of blocks: what is written in many ways is read, what is wrong has its place in one line."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.errors import UsageError
from cyclescope.measure.blocks import CLEAN, FAILED, BlockTiming
from cyclescope.session import block_files
from cyclescope.session.block_files import read_block_file, read_timings, write_timings
from cyclescope.session.blocks import KERNELS, LOOP, UNROLLED, case_of, decoded

ADD = bytes.fromhex("4801d8")
needs_assembler = pytest.mark.skipif(shutil.which("as") is None, reason="needs an assembler")


def written(tmp_path, text, name="blocks.txt"):
    path = tmp_path / name
    path.write_text(text)
    return path


def codes(path):
    return [block.code.hex() for block in read_block_file(path, "x86-64").blocks]


@pytest.mark.parametrize("line", ["4801d8", "4801D8", "0x48 0x01 0xd8", "48 01 d8", "48,01,d8"])
def test_machine_code_in_every_spelling(tmp_path, line):
    assert codes(written(tmp_path, f"# a comment\n\n{line}\n")) == ["4801d8"]


@needs_assembler
def test_assembly_of_both_syntaxes(tmp_path):
    path = written(tmp_path, "add rax, rbx; imul rax, rcx\n")
    assert codes(path) == ["4801d8480fafc1"]
    assert codes(written(tmp_path, "addq %rbx, %rax; imulq %rcx, %rax\n")) == ["4801d8480fafc1"]


def test_tables_have_their_blocks_in_the_column_of_that_name(tmp_path):
    table = 'source,hex,cycles\ngzip,4801d8,1.0\n"a, b",4889c8,2.0\ngzip,,3\n'
    path = written(tmp_path, table, "blocks.csv")
    found = read_block_file(path, "x86-64").blocks
    assert [block.code.hex() for block in found] == ["4801d8", "4889c8"]
    assert found[1].where == f"{path}, line 3"


def test_equal_blocks_count_once_in_the_order_of_the_first(tmp_path):
    assert codes(written(tmp_path, "4889c8\n4801d8\n4889c8\n")) == ["4889c8", "4801d8"]


@needs_assembler
def test_lines_that_are_no_blocks_are_told_one_by_one_and_the_rest_is_read(tmp_path):
    path = written(tmp_path, "4801d8\nbogus rax\n48ff\nadd rax, rbx; bogus rcx\nimul rax, rax\n")
    found = read_block_file(path, "x86-64")
    assert [block.code.hex() for block in found.blocks] == ["4801d8", "480fafc0"]
    assert len(found.problems) == 3
    for problem, line in zip(found.problems, (2, 3, 4), strict=True):
        assert problem.startswith(f"{path}, line {line}: ")
        assert "\n" not in problem
    assert "no such instruction" in found.problems[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no blocks"),
        ("# nothing\n", "has no blocks"),
        ("48ff\n", "line 1"),
        ("hex\n48ff\n", "line 2"),
    ],
)
def test_files_without_any_block(tmp_path, text, words):
    with pytest.raises(UsageError, match=words):
        read_block_file(written(tmp_path, text), "x86-64")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_block_file(tmp_path / "absent", "x86-64")
    with pytest.raises(UsageError, match="cannot be read"):
        read_block_file(tmp_path, "x86-64")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    with pytest.raises(UsageError, match="binary"):
        read_block_file(tmp_path / "binary", "x86-64")


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    written(tmp_path, "# a comment\n" * 10_000 + "4801d8\n")
    assert codes(tmp_path / "blocks.txt") == ["4801d8"]
    with (tmp_path / "long").open("wb") as file:
        file.truncate(3 << 29)  # bytes, none of them written
    with pytest.raises(UsageError, match="longer than 1024 MiB"):
        read_block_file(tmp_path / "long", "x86-64")


def test_some_hundred_blocks_are_assembled_in_one_call(tmp_path, monkeypatch):
    calls = []

    def assembled(text, *_, **__):
        calls.append(text)
        return [decoded(ADD)] * text.count("BEGIN")

    monkeypatch.setattr(block_files, "read_blocks", assembled)
    for count, wanted in ((400, 1), (700, 2)):
        calls.clear()
        path = written(tmp_path, "".join(f"add rax, {n}\n" for n in range(count)))
        assert codes(path) == [ADD.hex()]
        assert len(calls) == wanted


# --- timed blocks ----------------------------------------------------------------------------------


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "timed.csv"
    rows = [
        {"hex": "4801d8", "notion": LOOP, "cycles": "1.0000", "spread": "0.0100", "linearity": "1.0100",
         "verdict": CLEAN, "reason": "", "pages": 3, "isa": "x86-64", "where": "f, line 1", "text": "add",
         "analytic": 1.5},
        {"hex": "cc", "notion": UNROLLED, "cycles": "0.0000", "spread": 0, "linearity": 0, "verdict": FAILED,
         "reason": "it runs into a breakpoint", "pages": 0, "isa": "x86-64", "where": "f, line 2",
         "text": "int3"},
    ]  # fmt: skip
    write_timings(path, rows, ["analytic"])
    found, problems = read_timings(path, "x86-64")
    assert not problems
    assert found[0].timing == BlockTiming(1.0, 0.01, 1.01, CLEAN, "", 3)
    assert (found[0].notion, found[0].block.where, found[0].block.code) == (LOOP, "f, line 1", ADD)
    assert (found[1].timing.verdict, found[1].timing.reason) == (FAILED, "it runs into a breakpoint")


def test_loops_are_where_their_code_lay(tmp_path):
    path = tmp_path / "timed.csv"
    row = {"hex": "4801d875fb", "notion": KERNELS, "cycles": "2", "verdict": CLEAN, "address": "0x2f7e"}
    write_timings(path, [row])
    (found,), _ = read_timings(path, "x86-64")
    case = case_of(found.block, KERNELS)
    assert [one.address for one in case.block] == [0x2F7E, 0x2F81]
    assert case.block.loop


def test_an_address_that_is_none_is_told(tmp_path):
    path = written(tmp_path, "hex,cycles,address\n4801d8,1,here\n4801d8,1,\n")
    (found,), (problem,) = read_timings(path, "x86-64")
    assert found.block.address == 0
    assert "line 2" in problem


def test_tables_of_other_harnesses(tmp_path):
    path = written(tmp_path, "hex,cycles,spread,clean\n4801d8,1.00,0.01,1\n4889c8,0.30,0.2,0\n")
    clean, other = read_timings(path, "x86-64")[0]
    assert (clean.notion, clean.timing.verdict, clean.timing.cycles) == (UNROLLED, CLEAN, 1.0)
    assert (other.timing.verdict, other.timing.reason) == (FAILED, "not clean, says the file")


def test_rows_that_cannot_be_are_told_one_by_one(tmp_path):
    lines = ["4801d8,1", "zz,1", "4801d8,x", "4801d8,-1", "4801d8,0", "48ff,1", "4801d8,nan"]
    path = written(tmp_path, "\n".join(["hex,cycles", *lines]) + "\n")
    found, problems = read_timings(path, "x86-64")
    assert len(found) == 1
    assert [problem.split(":")[0] for problem in problems] == [f"{path}, line {n}" for n in range(3, 9)]


def test_what_is_no_such_table(tmp_path):
    with pytest.raises(UsageError, match="no columns"):
        read_timings(written(tmp_path, "4801d8\n"), "x86-64")
    with pytest.raises(UsageError, match="no timed block"):
        read_timings(written(tmp_path, "hex,cycles\nzz,1\n"), "x86-64")
    with pytest.raises(UsageError, match="cannot be written"):
        write_timings(tmp_path, [])
