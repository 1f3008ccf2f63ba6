"""What users of OSACA, llvm-mca, IACA, kerncraft, Compiler Explorer, Microsoft's compiler and objdump have.

Every file of the folder `conformance` is the same loop in one of their styles. Files with markers have
another loop that weighs more. All of them are read as the plain listing of their syntax is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cyclescope.analyze.choose.source import read_block, read_blocks
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import SourceError, UsageError

FOLDER = Path(__file__).parents[1] / "conformance"
FILES = sorted(FOLDER.glob("*.s"))
ISAS = {"x86att": "x86-64", "x86intel": "x86-64", "aarch64": "aarch64", "riscv64": "riscv64"}
SAID = {  # what a style is told about, besides the loop
    "mca_open": "LLVM-MCA begin marker without an end: the region goes on to the end of the code",
    "osaca_open": "OSACA begin marker without an end: the region goes on to the end of the code",
    "mca_end_only": "LLVM-MCA end marker without a beginning: the region begins with the code",
    "bytes_semicolons": "what follows a semicolon is taken for a comment",
    "bytes_hashes": "what follows # is taken for a comment",
    "mca_empty": "between the LLVM-MCA markers in lines 7 and 8: no instructions, left out",
}


def loop_of(path):
    """Forms and registers of the block that a file is."""
    block = read_block(path)
    return block, [(one.form.id if one.form else one.problem, one.registers) for one in block]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_style_is_the_same_loop(path):
    style, syntax, _ = path.name.split(".")
    if not tools(ISAS[syntax]):
        pytest.skip(f"no assembler for {ISAS[syntax]}")
    block, found = loop_of(path)
    plain, wanted = loop_of(FOLDER / f"plain.{syntax}.s")
    assert (block.isa, found) == (ISAS[syntax], wanted)
    assert (block.loop, len(block)) == (True, len(plain))
    notes = "\n".join(block.notes)
    expected = SAID.get(style, "")
    assert expected.split(" in lines ")[0] in notes
    assert len(block.notes) == bool(expected)


@pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
class TestMarkers:
    """Rules of llvm-mca, and what looks like a marker."""

    def test_regions_overlap_and_have_names_of_several_words(self):
        first, second = read_blocks(
            "# LLVM-MCA-BEGIN all of it\ninc %rax\n# LLVM-MCA-BEGIN b\ndec %rbx\n"
            "# LLVM-MCA-END all of it\nnop\n# LLVM-MCA-END\n"
        )
        assert (first.name, [one.text for one in first]) == ("all of it", ["inc %rax", "dec %rbx"])
        assert (second.name, [one.text for one in second]) == ("b", ["dec %rbx", "nop"])

    def test_a_comment_behind_code_is_behind_it(self):
        (block,) = read_blocks("inc %rax # LLVM-MCA-BEGIN\ndec %rax\nnop # LLVM-MCA-END\ninc %rbx\n")
        assert [one.text for one in block] == ["dec %rax", "nop"]

    @pytest.mark.skipif(not tools("aarch64"), reason="needs an assembler")
    def test_a_number_sign_behind_code_begins_a_comment_where_the_assembler_refuses_it(self):
        text = "mov x0, x0 # OSACA-BEGIN\nadd x1, x1, #1\nmov x0, x0 # OSACA-END\nmul x0, x0, x0\n"
        (block,) = read_blocks(text)
        assert [one.text for one in block] == ["add x1, x1, #1"]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "# LLVM-MCA-BEGIN\nnop\n# LLVM-MCA-BEGIN\nnop\n",
                "line 3: .* the region of line 1 is open: regions",
            ),
            ("# LLVM-MCA-BEGIN a\nnop\n# LLVM-MCA-END b\n", "line 3: .* without a beginning: open are a"),
            ("# LLVM-MCA-BEGIN a\n# LLVM-MCA-END\nnop\n", "line 1: nothing between the markers"),
        ],
    )
    def test_what_llvm_mca_refuses(self, text, said):
        with pytest.raises(SourceError, match=said):
            read_block(text)

    @pytest.mark.parametrize(
        "comment", ["# OSACA BEGINS", "# osaca-begin", "# llvm_mca_begin x", "# IACA-STARTED"]
    )
    def test_what_looks_like_a_marker_is_said(self, comment):
        block = read_block(f"nop\n{comment}\ninc %rax\n")
        assert len(block) == 2
        assert block.notes[0].startswith(f"line 2: {comment!r} is no marker: they are written OSACA-BEGIN")

    def test_bytes_inside_a_region_of_comments_are_said(self):
        begin, end = (f"movl ${number}, %ebx\n.byte 100,103,144\n" for number in (111, 222))
        block = read_block(f"# OSACA-BEGIN\ninc %rax\nnop\n{begin}nop\n{end}# OSACA-END\n")
        assert any("those in bytes (lines 4, 7) count as instructions" in note for note in block.notes)

    def test_several_regions_are_named_in_the_error(self):
        with pytest.raises(UsageError, match="choose one of a b, 2"):
            read_block("# LLVM-MCA-BEGIN a b\nnop\n# LLVM-MCA-END\n# LLVM-MCA-BEGIN\nnop\n# LLVM-MCA-END\n")
