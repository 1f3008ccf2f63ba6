"""What is read of other tools' inputs, by a reader that knows nothing of the one it judges."""

from __future__ import annotations

import pytest

from benchmarks.predicting import peers
from cyclescope.analyze.read.assemblers import tools

needs_x86 = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
LOOP = ".L3:\n\tadd %rax, %rbx # one\n\tdec %rdi; jne .L3\n"
REGIONS = "# LLVM-MCA-BEGIN a\n nop\n# LLVM-MCA-END a\n# LLVM-MCA-BEGIN b\n nop\n# LLVM-MCA-END b\n"


def of(tmp_path, text, name="k.s"):
    path = tmp_path / name
    path.write_text(text)
    return peers.outcome(path)


@pytest.mark.parametrize(
    ("text", "isa", "lines"),
    [
        (LOOP, "x86-64", [2, 3]),
        ("/* add\n add */ nop\n1: 2: nop\n.text\n# nop\n", "x86-64", [2, 3]),
        ("; words\n nop; nop\n", "x86-64", [2]),
        ("add x0, x0, #1 // two\n# nop\nb.ne .L1\n", "aarch64", [1, 3]),
        ("include listing.inc\nPUBLIC f\nf PROC\n; line 3\n ret 0\nf ENDP\ni$ = 8\n", "x86-64", [5]),
    ],
)
def test_lines_that_have_instructions(text, isa, lines):
    assert list(peers.written(text, isa)) == lines


@pytest.mark.parametrize(
    ("run", "name", "wanted"),
    [
        (
            "# RUN: llvm-mca -mtriple=aarch64-linux-gnu -mcpu=cortex-a57 < %s",
            "a.s",
            ("aarch64", "cortex-a57"),
        ),
        ("# RUN: llvm-mca -mtriple=x86_64-unknown-unknown -mcpu=btver2 %s", "a.s", ("x86-64", "btver2")),
        ("# RUN: llvm-mca -mtriple=s390x-linux-gnu -mcpu=z14 < %s", "a.s", ("", "z14")),
        ("", "add.s.tx2.gcc.s", ("aarch64", "thunderx2t99")),
        ("", "add.s.csx.gcc.s", ("x86-64", "cascadelake")),
    ],
)
def test_what_a_text_is_for(run, name, wanted, tmp_path):
    assert peers.target(tmp_path / name, run) == wanted


@needs_x86
@pytest.mark.parametrize(
    ("text", "family", "problems"),
    [
        (LOOP, "read", 0),
        (REGIONS, "read", 0),
        ("frobnicate\n", "refused: no assembler takes it", 0),
        ("# nothing\n", "refused: nothing to analyse, or markers that do not match", 0),
        (
            "# OSACA-BEGIN\n# OSACA-BEGIN\n nop\n",
            "refused: nothing to analyse, or markers that do not match",
            0,
        ),
        ("in %dx, %al\n", "read, costs missing", 0),
    ],
)
def test_what_becomes_of_a_text(tmp_path, text, family, problems):
    found = of(tmp_path, text)
    assert (found.family, len(found.problems)) == (family, problems)


@needs_x86
def test_a_line_that_is_left_out_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "assembled", lambda path: {2})
    assert of(tmp_path, LOOP).problems == ("lines [3] are not code, and nothing is said",)


@needs_x86
def test_a_region_that_is_left_out_is_noticed(tmp_path, monkeypatch):
    read = peers.read_blocks
    monkeypatch.setattr(peers, "read_blocks", lambda path: read(path)[:1])
    assert of(tmp_path, REGIONS).problems == ("2 regions begin, 1 are analysed",)


@needs_x86
def test_what_an_assembler_takes_and_is_refused_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "is_taken", lambda path, isa: True)
    assert of(tmp_path, "frobnicate\n").problems == ("an assembler takes it",)
