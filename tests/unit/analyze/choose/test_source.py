"""From any input to the block: choices, markers, loops, and one clear line where that fails."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.analyze.choose.source import Choice, read_block, read_blocks
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import (
    BackendUnavailable,
    CyclescopeError,
    SourceError,
    UnsupportedInstruction,
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
    assert read_block(text, choice=Choice(function="triad")).name == "_Z5triadPdS_"
    with pytest.raises(UsageError, match="several functions of text are called like _Z: there is _Z5"):
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


# --- input that is wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("", SourceError, "text is empty: give assembly text"),
        (" \n\t\n", SourceError, "text is empty"),
        (b"", SourceError, "machine code is empty"),
        ("# a comment\n.text\n", SourceError, "text has no instructions"),
        ("nop\0\1\2", SourceError, "text is binary, but no ELF file"),
        ("MZ\x90\0", SourceError, "text is a Windows program"),
        ("!<arch>\n", SourceError, "text is an archive of object files"),
        (b"\x7fELF\x02\x01\x01", SourceError, "truncated or damaged ELF file"),
        ("nop\n\nfrobnicate rax\n", UnsupportedInstruction, "text, line 3: "),
        ("add rax, rbx\nadd rax, 5(\n", UnsupportedInstruction, "text, line 2: "),
        ("# LLVM-MCA-END a\n nop\n", SourceError, "text, line 1: LLVM-MCA end marker without a beginning"),
        ("# OSACA-BEGIN\n# OSACA-BEGIN\n nop\n", SourceError, "line 2: .* the region of line 1 is open"),
        ("# LLVM-MCA-BEGIN a\n nop\n# LLVM-MCA-END b\n", SourceError, "line 3: .* without a beginning"),
        ("nop\n# OSACA-BEGIN\n\n# OSACA-END\nnop", SourceError, "line 2: nothing between the markers"),
        (IACA.format(111) + "nop\n", SourceError, "text, line 1: IACA marker without its counterpart"),
        ("nop\n" + IACA.format(222), SourceError, "text, line 2: IACA marker without its counterpart"),
        (IACA.format(111) * 2, SourceError, "text, line 3: IACA marker without its counterpart"),
        (IACA.format(111) + IACA.format(222), SourceError, "line 1: nothing between the markers"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_clear_line(code, error, said):
    with pytest.raises(error, match=said) as raised:
        read_block(code)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "int f(int *a, int n) {\n  int s = 0;\n  for (int i = 0; i < n; i++) s += a[i];\n  return s;\n}\n",
        "#include <vector>\ntemplate<class T> T f(const std::vector<T>& v) {\n  T s{};\n  return s;\n}\n",
        "void f(double *x2, float s1) {\n    x2[0] += s1;\n}\n",
    ],
)
@pytest.mark.parametrize("isa", ["", "x86-64", "aarch64"])
def test_source_code_is_not_called_assembly_of_any_isa(text, isa):
    if isa and not tools(isa):
        pytest.skip(f"no assembler for {isa}: a cross as, llvm-mc, clang or zig")
    with pytest.raises(SourceError) as raised:
        read_block(text, isa)
    assert str(raised.value) == (
        "text is source code of another language, not assembly text: compile it first: cc -O2 -S"
    )


def test_a_refused_line_comes_with_a_remedy():
    with pytest.raises(UnsupportedInstruction, match="`syntax` chooses another"):
        read_block("movq %rax, %rbx\nfrobnicate %rax\n")
    if tools("aarch64"):
        with pytest.raises(UnsupportedInstruction, match="`machine` names a machine of another"):
            read_block("ldr x0, [x1], 8\nfrobnicate x0\n")


def test_text_for_the_c_preprocessor():
    with pytest.raises(UnsupportedInstruction, match=r"text, line 2: .*: preprocess it first, with cc -E"):
        read_block("#define TWICE(x) add x, x\nTWICE(rax)\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "#ifdef A",
            "line 2: '#ifdef A' is for the C preprocessor and was not read: preprocess the text with",
        ),
        ("# include <asm.h>", "line 2: '# include <asm.h>' is for the C preprocessor"),
        ("#define N 3", "line 2: '#define N 3' is for the C preprocessor"),
        ("# define the loop", ""),
        ("# if it is taken", ""),
        ("#APP", ""),
    ],
)
def test_what_the_c_preprocessor_would_read_is_said(line, said):
    notes = read_block(f"nop\n{line}\nnop\n").notes
    assert len(notes) == bool(said)
    assert not said or notes[0].startswith(said)


def test_code_of_another_instruction_set_is_recognised():
    text = "ldr d0, [x1, x2, lsl 3]\nfadd d0, d0, d1\n"
    with pytest.raises(SourceError, match="text looks like aarch64 code, not x86-64: text, line 1: "):
        read_block(text, "x86-64")
    data = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\0\xb7\0" + bytes(44)
    with pytest.raises(SourceError, match="has no code"):
        read_block(data)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(lines="x"), "'x' is no range of lines: write for example 3-9,12"),
        (Choice(lines="0"), "'0' is no range of lines"),
        (Choice(lines="3-2"), "'3-2' is no range of lines"),
        (Choice(lines="2,"), "'' is no range of lines"),
        (Choice(lines="77"), "there is no line 77: the last line is 4"),
        (Choice(lines="1"), "no instructions in lines 1"),
        (Choice(addresses="9"), "'9' is no range of addresses"),
        (Choice(addresses="0x9-0x3"), "is no range of addresses"),
        (Choice(addresses="0x900-0x1000"), "text has no code at 0x900-0x1000"),
        (Choice(lines="9" * 5000), r"'9{100}\.\.\. \(5000 characters\)' is no range of lines"),
        (Choice(addresses="0-" + "9" * 5000), r"\(5002 characters\)' is no range of addresses"),
        (Choice(function="f" * 5000), r"has no function f{100}\.\.\. \(5000 characters\)"),
        (Choice(function="g"), "text has no function g"),
        (Choice(region="x"), "text has no region x: there is .L3"),
    ],
)
def test_choices_that_are_not_there(choice, said):
    with pytest.raises(UsageError, match=said):
        read_block(LOOP, choice=choice)


def test_choices_that_need_something_else():
    with pytest.raises(UsageError, match="has no source lines"):
        read_block(b"\x90", choice=Choice(lines="1"))
    with pytest.raises(UsageError, match="unknown syntax 'nasm': choose one of intel, att"):
        read_block("nop", syntax="nasm")


@pytest.mark.parametrize("path", ["nowhere.s", "."])
def test_files_that_cannot_be_read(path, tmp_path):
    with pytest.raises(SourceError, match="cannot be read"):
        read_block(tmp_path / path)


def test_no_place_for_temporary_files(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(BackendUnavailable, match="no temporary file can be made"):
        read_block("nop")


def test_too_much_code_asks_for_a_part():
    with pytest.raises(SourceError, match=r"3 MiB of code: choose a part with `Choice.function="):
        read_block(b"\x90" * (3 << 20))
    assert len(read_block(b"\x90" * (3 << 20), choice=Choice(addresses="0-5"))) == 5


def test_a_long_text():
    """4000 loops in 20 000 lines take seconds, not minutes."""
    text = "\n".join(
        f".L{i}:\n vmulpd ymm0, ymm1, ymm2\n add rax, 8\n cmp rax, rbx\n jne .L{i}" for i in range(4000)
    )
    start = time.process_time()
    block = read_block(text)
    assert (len(block), block.name) == (4, ".L0")
    assert "of 4000 innermost loops" in block.found
    assert time.process_time() - start < 20


def test_unknown_machine_code_is_in_the_block_with_its_problem():
    block = read_block(b"\x48\x01\xd8\x06\xf4")
    assert [one.form is None for one in block] == [False, True, True]
    assert [one.problem for one in block.unknown] == ["06 is no instruction", "'hlt' is privileged"]


@settings(max_examples=30)  # every text that no assembler takes is given to all of them
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_input_gives_a_block_or_one_line(code):
    try:
        block = read_block(code)
    except CyclescopeError as error:
        assert "\n" not in str(error)
        assert error.exit_code in (1, 2, 3)
    else:
        assert block.instructions


def test_a_long_list_of_functions_says_how_many_more_there_are():
    text = "".join(f"\t.type f{n}, @function\nf{n}:\n\tnop\n\tret\n\t.size f{n}, .-f{n}\n" for n in range(9))
    with pytest.raises(UsageError, match=r"has no function zzz: there is f0, f1, f2, f3, f4, and 4 more"):
        read_block(text, choice=Choice(function="zzz"))
