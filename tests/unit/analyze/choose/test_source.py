"""From any input to the block: choices, markers, loops."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cyclescope.analyze.choose.source import Choice, read_block, read_blocks, whole_block
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import (
    SourceError,
    UsageError,
)
from cyclescope.isa.encode import encode
from tests.property.test_isa_encoding import instructions
from tests.unit.analyze.decode.test_decode import MPX, same_form

SNIPPETS = Path(__file__).parents[1] / "snippets"
IACA = "movl ${}, %ebx\n.byte 100, 103, 144\n"
LOOP = ".L3:\n add rax, 8\n cmp rax, rdx\n jne .L3\n"
TWO = (
    "# LLVM-MCA-BEGIN first\n add rax, rbx\n# LLVM-MCA-END\n nop\n"
    "# LLVM-MCA-BEGIN second\n imul rax, rbx\n nop\n# LLVM-MCA-END second\n"
)

pytestmark = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")


def texts(block):
    return [one.text for one in block]


# --- kinds of input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    ["add rax, rbx\nimul rcx, rdx", "addq %rbx, %rax\nimulq %rdx, %rcx", b"\x48\x01\xd8\x48\x0f\xaf\xca"],
    ids=["intel", "att", "bytes"],
)
def test_text_and_machine_code_are_the_same_forms(code):
    block = read_block(code)
    assert [one.form.mnemonic for one in block] == ["ADD", "IMUL"]
    assert [one.registers for one in block] == [(("R64", 0), ("R64", 3)), (("R64", 1), ("R64", 2))]
    assert len(read_block("\ufeffadd rax, rbx")) == 1  # as some editors begin a text
    assert (block.loop, block.unroll, block.name) == (False, None, "")
    assert block.found == "all the code, there is no loop"


@pytest.mark.parametrize(
    "text",
    [
        "4801d8480fafca",
        "48 01 d8 48 0f af ca\n",
        "0x48,0x01,0xd8,0x48,0x0f,0xaf,0xca",
        r"\x48\x01\xd8\x48\x0f\xaf\xca",
    ],
)
def test_hexadecimal_text(text):
    block = read_block(text)
    assert texts(block) == ["add rax, rbx", "imul rcx, rdx"]
    assert {one.line for one in block} == {0}
    assert block.line_texts == {}


def test_files_and_standard_input(tmp_path, monkeypatch):
    path = tmp_path / "k.s"
    path.write_text("nop\n")
    assert read_block(path).source == str(path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nop\nadd rax, rbx\n")))
    block = read_block(Path("-"))
    assert (block.source, len(block)) == ("standard input", 2)


def test_includes_are_looked_for_beside_the_file(tmp_path):
    (tmp_path / "inner.s").write_text(".macro more\n inc rax\n.endm\n")
    (tmp_path / "k.s").write_text('.include "inner.s"\nmore\n')
    (one,) = read_block(tmp_path / "k.s")
    assert (one.line, one.form.mnemonic) == (2, "INC")


@given(st.lists(instructions(), min_size=1, max_size=8))
def test_random_instructions_are_read_back(drawn):
    """One after the other, whatever they are."""
    forms, codes = [], []
    for form, values in drawn:
        if not form.id.startswith(MPX) and "operand16" not in form.attributes and form.id != "UD0":
            forms.append(form)
            codes.append(encode(form, *values))
    if not forms:
        return
    block = read_block(b"".join(codes), choice=Choice(whole=True))
    assert [one.code for one in block] == codes
    assert all(same_form(form, one) for form, one in zip(forms, block, strict=True))


# --- which part -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compiler", "function", "label", "count", "elements"),
    [
        ("gcc_O2", "triad", ".L3 in triad", 6, 1),
        ("gcc_O3", "triad", ".L4 in triad", 6, 4),
        ("gcc_O2", "", ".L13 in gemm", 6, 1),
        ("gcc_O3", "", ".L29 in gemm", 17, 4),
        ("gcc_O3", "count", ".L50 in count", 7, 1),
        ("llvm22_O3", "", ".LBB0_7 in triad", 15, 16),
        ("llvm22_O3", "sum", ".LBB1_5 in sum", 11, 8),
    ],
)
@pytest.mark.parametrize("syntax", ["att", "intel"])
def test_the_hot_loop_of_what_compilers_write(compiler, function, label, count, elements, syntax):
    block = read_block(SNIPPETS / f"{compiler}_{syntax}.s", choice=Choice(function=function))
    assert (block.name, len(block), block.loop) == (label, count, True)
    assert block.found.startswith(f"innermost loop {label} (lines ")
    assert block.unroll.elements == elements
    assert not block.unknown
    assert set(block.line_texts) == {one.line for one in block}
    assert all(one.text in " ".join(block.line_texts[one.line].split()) for one in block)


def test_a_function_without_a_loop_is_taken_whole():
    block = read_block(SNIPPETS / "gcc_O2_att.s", choice=Choice(function="table"))
    assert block.found == "all of function table, there is no loop"
    assert texts(block)[-1] == "ret"


def test_whole_takes_everything():
    path = SNIPPETS / "gcc_O2_att.s"
    parts = [
        len(read_block(path, choice=Choice(function=f, whole=True)))
        for f in ("triad", "gemm", "count", "table")
    ]
    assert len(read_block(path, choice=Choice(whole=True))) == sum(parts)
    assert min(parts) > 6


def test_part_of_a_function_name_will_do():
    text = "_Z5triadPdS_:\n nop\n ret\n_Z4copyPd:\n nop\n ret\n"
    assert "triad" in read_block(text, choice=Choice(function="triad")).name
    with pytest.raises(UsageError, match="several functions of text are called like _Z: there is "):
        read_block(text, choice=Choice(function="_Z"))
    assert read_block("gg:\n ret\ng:\n nop\n ret\n", choice=Choice(function="g")).name == "g"


@pytest.mark.parametrize(
    ("lines", "found"),
    [("2", [2]), ("2-3", [2, 3]), ("2:3,5", [2, 3, 5]), (" 1 - 9 ", [2, 3, 4]), ("3,2", [2, 3])],
)
def test_lines(lines, found):
    text = "f:\n add rax, rbx\n sub rax, rbx\n nop\n" + " inc rax\n" * (5 in found)
    assert [one.line for one in read_block(text, choice=Choice(lines=lines))] == found


def test_addresses():
    code = b"\x48\x01\xd8\x48\x0f\xaf\xca\x90"
    assert texts(read_block(code, choice=Choice(addresses="3-7"))) == ["imul rcx, rdx"]
    assert texts(read_block(code, choice=Choice(addresses="0x3-0x8"))) == ["imul rcx, rdx", "nop"]


def test_lines_win_over_markers_and_loops():
    text = "# OSACA-BEGIN\n" + LOOP + "# OSACA-END\n nop\n"
    assert texts(read_block(text, choice=Choice(lines="7"))) == ["nop"]


# --- markers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("# OSACA-BEGIN", "# OSACA-END"),
        ("// OSACA-BEGIN", "// OSACA-END"),
        ("#OSACA-BEGIN", "\t#  OSACA-END"),
        ("; OSACA-BEGIN", "; OSACA-END"),
        ("/* OSACA-BEGIN */", "/* OSACA-END */"),
        ("# LLVM-MCA-BEGIN", "# LLVM-MCA-END"),
        ("nop # IACA-BEGIN", "nop # IACA-END"),
        ("# IACA START", "# IACA END"),
        ("# START IACA MARKER", "# END IACA MARKER"),
    ],
)
def test_markers_in_comments(begin, end):
    block = read_block(f"nop\n{begin}\n{LOOP}{end}\nnop\n")
    assert texts(block) == ["add rax, 8", "cmp rax, rdx", "jne .L3"]
    assert (block.loop, block.found[:11]) == (True, "between the")
    assert "lines 2 and 7" in block.found


@pytest.mark.parametrize("separate", [False, True])
def test_markers_in_bytes(separate):
    marks = [IACA.format(number) for number in (111, 222)]
    if separate:
        marks = [m.replace(".byte 100, 103, 144", ".byte 0x64\n.byte 0x67\n.byte 0x90") for m in marks]
    block = read_block(f"nop\n{marks[0]}.L3: addq $8, %rax\njne .L3\n{marks[1]}nop\n")
    assert texts(block) == ["addq $8, %rax", "jne .L3"]
    assert "IACA" in block.found


def test_markers_in_machine_code():
    begin, end = (bytes((0xBB, number, 0, 0, 0, 0x64, 0x67, 0x90)) for number in (111, 222))
    block = read_block(b"\x90" + begin + b"\x48\x01\xd8" + end + b"\x90")
    assert texts(block) == ["add rax, rbx"]
    assert block.found == "between the IACA markers at 0x1 and 0xc"


def test_markers_of_microsoft_s_compiler():
    text = "nop\nmov BYTE PTR gs:111, 111\nadd rax, rbx\nmov BYTE PTR gs:222, 222\nnop\n"
    assert texts(read_block(text)) == ["add rax, rbx"]
    with pytest.raises(SourceError, match="text, line 2: IACA marker without its counterpart"):
        read_block(text.replace("222", "223"))


def test_loops_are_regions_where_nothing_is_marked():
    path = SNIPPETS / "gcc_O2_att.s"
    by_label = read_block(path, choice=Choice(region=".L3"))
    assert by_label.found == "innermost loop .L3 in triad (lines 13 to 18), 6 instructions"
    assert read_block(path, choice=Choice(region="1")) == by_label
    with pytest.raises(UsageError, match=r"has no region \.L4: there is \.L3, \.L13, \.L27"):
        read_block(path, choice=Choice(region=".L4"))
    with pytest.raises(UsageError, match="has no region 1: nothing is marked, and no loop"):
        read_block("nop\nret", choice=Choice(region="1"))


def test_several_regions():
    first, second = read_blocks(TWO)
    assert (first.name, texts(first)) == ("first", ["add rax, rbx"])
    assert (second.name, len(second)) == ("second", 2)
    assert read_block(TWO, choice=Choice(region="second")) == second
    assert read_block(TWO, choice=Choice(region="1")) == first
    with pytest.raises(UsageError, match="text has 2 marked regions: choose one of first, second"):
        read_block(TWO)
    with pytest.raises(UsageError, match="no region third: there is first, second"):
        read_block(TWO, choice=Choice(region="third"))


# --- all of plain machine code ---------------------------------------------------------------------


@given(
    pieces=st.lists(
        instructions().map(lambda drawn: encode(drawn[0], *drawn[1])) | st.binary(min_size=1, max_size=6),
        max_size=6,
    ),
    end=st.sampled_from((b"", b"\x75", b"\xe2", b"\xeb", b"\xe8")),
)
@example(pieces=[], end=b"")
@example(pieces=[b"\n", b" "], end=b"")
@example(pieces=[b"\x7fELF"], end=b"")
@example(pieces=[b"\xbb\x6f\0\0\0", b"dg\x90", b"\x90", b"\xbb\xde\0\0\0", b"dg\x90"], end=b"")
@example(pieces=[b"\x49\x83\xe8\x01", b"\x66\x41\x03\x40\0"], end=b"\x75")  # moves a pointer
@example(pieces=[b"\x48\x83\xc0\x08", b"\x48\x8b\x0d\x08\0\0\0", b"\x48\x39\xd0"], end=b"\x75")
def test_all_of_machine_code_is_read_as_by_its_steps(pieces, end):
    """With a branch to its beginning, too."""
    code = b"".join(pieces)
    back = {0: b"", 0xE8: (-len(code) - 5).to_bytes(4, "little", signed=True)}
    code += end + (back.get(end[0] if end else 0) or bytes(((-len(code) - 2) & 0xFF,)) * bool(end))
    for vendor in ("", "amd"):
        assert _read(whole_block, code, vendor) == _read(read_block, code, vendor)


def _read(by, code, vendor):
    """What is read, but for how far pointers are moved, which is not looked for in all of the code."""
    try:
        whole = {"choice": Choice(whole=True)} if by is read_block else {}
        block = by(code, "x86-64", vendor=vendor, **whole)
        return msgspec.structs.replace(block, unroll=None)
    except SourceError as error:
        return str(error)


@pytest.mark.parametrize("code", [b"\x90" * 20_000, b"\x90" * 20_001])
def test_all_of_long_machine_code(code):
    read = _read(whole_block, code, "")
    assert read == _read(read_block, code, "")
    assert isinstance(read, str) == (len(code) > 20_000)


def test_markers_of_other_functions_do_not_count():
    begin, end = (f"mov ebx, {n}\n.byte 100, 103, 144\n" for n in (111, 222))
    marked = f"{begin} inc rax\n{end}"
    code = "".join(
        f".globl {name}\n.type {name}, @function\n{name}:\n{text} ret\n.size {name}, .-{name}\n"
        for name, text in (("plain", LOOP), ("both", TWO), ("bytes", marked))
    )
    plain = read_block(code, choice=Choice(function="plain"))
    assert (texts(plain), plain.notes) == (["add rax, 8", "cmp rax, rdx", "jne .L3"], ())
    assert [b.name for b in read_blocks(code, choice=Choice(function="both"))] == ["first", "second"]
    assert texts(read_block(code, choice=Choice(function="bytes"))) == ["inc rax"]


def test_source_that_a_disassembler_prints_marks_nothing():
    code = '0:\t48 ff c0 \tinc %rax\n  asm volatile("# LLVM-MCA-END"); }\n3:\t75 fb \tjne 0\n'
    assert len(read_block(code)) == 2
