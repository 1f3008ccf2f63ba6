"""What users of OSACA, llvm-mca, IACA, kerncraft, Compiler Explorer, Microsoft's compiler and objdump have.

Every file of the folder `conformance` is the same loop in one of their styles, and so is it with
markers around it, beside another loop that weighs more. All are read as the plain listing of their syntax is.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyclescope.analyze.choose.source import read_block, read_blocks
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import SourceError, UsageError

FOLDER = Path(__file__).parents[1] / "conformance"
FILES = [tuple(path.name.split(".")[:2]) for path in sorted(FOLDER.glob("*.s"))]
ISAS = {"x86att": "x86-64", "x86intel": "x86-64", "aarch64": "aarch64", "riscv64": "riscv64"}
SAID = {  # what a style is told about, besides the loop
    "mca_open": "LLVM-MCA begin marker without an end: the region goes on to the end of the code",
    "osaca_open": "OSACA begin marker without an end: the region goes on to the end of the code",
    "mca_end_only": "LLVM-MCA end marker without a beginning: the region begins with the code",
    "bytes_semicolons": "what follows a semicolon is taken for a comment",
    "bytes_hashes": "what follows # is taken for a comment",
    "mca_empty": "between the LLVM-MCA markers in lines 7 and 8: no instructions, left out",
}


HEAVIER = {  # the other loop
    "x86att": "vmovupd (%rdi), %ymm2|vmulpd %ymm2, %ymm2, %ymm2|vmovupd %ymm2, (%rdi)|addq $32, %rdi|"
    "cmpq %rdi, %rcx|jne .L9",
    "x86intel": "vmovupd ymm2, YMMWORD PTR [rdi]|vmulpd ymm2, ymm2, ymm2|vmovupd YMMWORD PTR [rdi], ymm2|"
    "add rdi, 32|cmp rcx, rdi|jne .L9",
    "aarch64": "ldr q1, [x3]|fmul v1.2d, v1.2d, v1.2d|str q1, [x3], #16|cmp x3, x4|bne .L9",
    "riscv64": "ld a5,0(a3)|ld a6,8(a3)|slli a5,a5,1|sd a5,0(a3)|sd a6,8(a3)|ld a7,16(a3)|addi a3,a3,32|"
    "bne a3,a4,.L9",
}
IN_BYTES = {  # what has the number of a marker in bytes, these, and how a comment begins
    "x86att": ("movl\t$NUMBER, %ebx", "100,103,144", "#"),
    "x86intel": ("mov\tebx, NUMBER", "100,103,144", "#"),
    "aarch64": ("mov\tx1, #NUMBER", "213,3,32,31", "//"),
    "riscv64": ("li\ta1, NUMBER", "19,0,0,0", "#"),
}
MARKER = "MOVE C OSACA WHICH MARKER\nEACH\n"  # as kerncraft writes it
MARKERS = {  # what is before the loop and behind it; of markers in bytes what is at both places
    "mca": ("# LLVM-MCA-BEGIN\n", "# LLVM-MCA-END\n"),
    "mca_anonymous_end": ("# LLVM-MCA-BEGIN dot\n", "# LLVM-MCA-END\n"),
    "mca_block": ("\t/* LLVM-MCA-BEGIN dot */\n", "\t/* LLVM-MCA-END dot */\n"),
    "mca_empty": (
        "# LLVM-MCA-BEGIN nothing\n# LLVM-MCA-END nothing\n# LLVM-MCA-BEGIN dot\n",
        "# LLVM-MCA-END dot\n",
    ),
    "mca_end_only": ("", "# LLVM-MCA-END\n"),
    "mca_name": ("# LLVM-MCA-BEGIN dot product\n", "# LLVM-MCA-END dot product\n"),
    "mca_open": ("# LLVM-MCA-BEGIN\n", ""),
    "mca_semicolon": ("; LLVM-MCA-BEGIN dot\n", "; LLVM-MCA-END dot\n"),
    "mca_slashes": ("\t// LLVM-MCA-BEGIN dot\n", "\t// LLVM-MCA-END dot\n"),
    "iaca_comment": ("C IACA START\n", "C IACA END\n"),
    "osaca_comment": ("C OSACA-BEGIN\n", "C OSACA-END\n"),
    "osaca_hash": ("# OSACA-BEGIN\n", "# OSACA-END\n"),
    "osaca_open": ("C OSACA-BEGIN\n", ""),
    "osaca_slashes": ("\t// OSACA-BEGIN\n", "\t//OSACA-END\n"),
    "bytes": "\tMOVE\n\tBYTES\n",
    "bytes_commented": "\tMOVE C OSACA WHICH MARKER\n\tBYTES C OSACA WHICH MARKER\n",
    "bytes_hashes": "\tMOVE # OSACA WHICH MARKER\n\tBYTES # OSACA WHICH MARKER\n",
    "bytes_semicolons": "\tMOVE ; OSACA WHICH MARKER\n\tBYTES ; OSACA WHICH MARKER\n",
    "iaca_osaca": "\tMOVE\tCIACA/OSACA WHICH MARKER\n\tBYTES\tCIACA/OSACA WHICH MARKER\n",
    "inline_assembly": '#APP\n# 12 "kernel.c" 1\n\tMOVE\n\tBYTES\n# 0 "" 2\n#NO_APP\n',
    "kerncraft": (
        f"{MARKER}C pointer_increment=8 0123456789abcdef\nC LLVM-MCA-BEGIN\n",
        f"C LLVM-MCA-END\n{MARKER}",
    ),
}
ONLY = {"bytes_hashes": ("aarch64",), "bytes_semicolons": ("x86att", "aarch64", "riscv64")}
MADE = [(style, syntax) for style in MARKERS for syntax in ONLY.get(style, ISAS)]


def marker(style, syntax, end):
    """What a style has in front of the loop, or behind it."""
    move, code, comment = IN_BYTES[syntax]
    text = MARKERS[style] if isinstance(MARKERS[style], str) else MARKERS[style][end]
    words = {
        r"\bC(?= |IACA)": comment,
        "MOVE": move,
        "BYTES": f".byte\t{code}",
        "EACH": "\n".join(f".byte\t{one} {comment} OSACA WHICH MARKER" for one in code.split(",")),
        "NUMBER": ("111", "222")[end],
        "WHICH": ("START", "END")[end],
    }
    for word, meant in words.items():
        text = re.sub(word, meant, text)
    return text


def text_of(style, syntax):
    """The loop with its markers, behind one that weighs more, or in front of it where nothing is before."""
    before, behind = (marker(style, syntax, end) for end in (False, True))
    loop = (FOLDER / f"plain.{syntax}.s").read_text().removesuffix("\tret\n")
    lines = [line.replace(" ", "\t", 1) for line in HEAVIER[syntax].split("|")]
    other = ".L9:\n" + "".join(f"\t{line}\n" for line in lines)
    if not before:
        return f"{loop}{behind}{other}\tret\n"
    return f"{other}{before}{loop}{behind}" + ("\tret\n" if behind else "")


def loop_of(source):
    """Forms and registers of the block that a text or a file is."""
    block = read_block(source)
    return block, [(one.form.id if one.form else one.problem, one.registers) for one in block]


@pytest.mark.parametrize(("style", "syntax"), [*FILES, *MADE])
def test_every_style_is_the_same_loop(style, syntax):
    if not tools(ISAS[syntax]):
        pytest.skip(f"no assembler for {ISAS[syntax]}")
    block, found = loop_of(text_of(style, syntax) if style in MARKERS else FOLDER / f"{style}.{syntax}.s")
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
