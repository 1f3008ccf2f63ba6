"""`cyclescope insert-markers`: the text with markers, and nothing else on standard output."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from cyclescope.analyze.choose.source import read_block
from cyclescope.analyze.read.assemblers import tools

LISTING = Path(__file__).parents[2] / "analyze" / "snippets" / "gcc_O2_att.s"
USAGE, FAILURE = 2, 1

pytestmark = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")


def inserted(before, after):
    """Lines that are new, with their numbers; the others are as they were."""
    old, new = before.splitlines(), after.splitlines()
    added = [(i, line) for i, line in enumerate(new, 1) if line.startswith("# ")]
    assert [line for line in new if not line.startswith("# ")] == old
    return added


def test_the_loop_that_analysis_takes(cyclescope):
    done = cyclescope("insert-markers", "--auto", LISTING)
    (begin, first), (end, last) = inserted(LISTING.read_text(), done.out)
    assert (done.code, done.err, first, last) == (0, "", "# OSACA-BEGIN", "# OSACA-END")
    text = done.out.splitlines()
    assert text[begin] == ".L13:"
    assert text[end - 2].split() == ["jne", ".L13"]


def test_what_was_marked_is_what_is_read(cyclescope, tmp_path):
    output = tmp_path / "marked.s"
    done = cyclescope("insert-markers", "--auto", LISTING, "-o", output)
    assert (done.code, done.out) == (0, "")
    marked, found = read_block(output), read_block(LISTING)
    assert [one.text for one in marked] == [one.text for one in found]
    assert "OSACA markers" in marked.found
    assert marked.loop


def test_asked_which(cyclescope, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n"))
    done = cyclescope("insert-markers", LISTING)
    (begin, _), _ = inserted(LISTING.read_text(), done.out)
    assert done.out.splitlines()[begin] == ".L3:"
    assert "1  .L3 in triad (lines 13 to 18), 6 instructions" in done.err
    assert "loop to mark [2]" in done.err


def test_a_default_is_offered(cyclescope, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert cyclescope("insert-markers", LISTING).out == cyclescope("insert-markers", "--auto", LISTING).out


def test_other_markers(cyclescope):
    done = cyclescope("insert-markers", "--auto", "--style", "llvm-mca", LISTING)
    assert [line for _, line in inserted(LISTING.read_text(), done.out)] == [
        "# LLVM-MCA-BEGIN",
        "# LLVM-MCA-END",
    ]


def test_standard_input(cyclescope, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LISTING.read_bytes())))
    assert (
        cyclescope("insert-markers", "--auto", "-").out == cyclescope("insert-markers", "--auto", LISTING).out
    )


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("f:\n nop\n ret\n", FAILURE, "has no loop: nothing to mark"),
        ("# OSACA-BEGIN\n.L1: nop\n jne .L1\n# OSACA-END\n", FAILURE, "is marked already: between the OSACA"),
        ("4801d8", FAILURE, "is no assembly text: markers go into text"),
        ("", FAILURE, "is empty"),
    ],
)
def test_texts_without_a_loop_to_mark(cyclescope, tmp_path, text, code, said):
    path = tmp_path / "k.s"
    path.write_text(text)
    done = cyclescope("insert-markers", "--auto", path)
    assert (done.code, done.out) == (code, "")
    assert said in done.error


def test_questions_that_cannot_be_asked(cyclescope, monkeypatch):
    done = cyclescope("insert-markers", "-")
    said = "standard input cannot be asked which loop: --auto takes the innermost one"
    assert (done.code, done.error) == (USAGE, said)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    done = cyclescope("insert-markers", LISTING)
    assert (done.code, done.out) == (USAGE, "")
    assert done.err.splitlines()[-1] == "error: no loop was chosen: --auto takes the innermost one"
