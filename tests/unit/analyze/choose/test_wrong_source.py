"""Input that is no block: one clear line, whatever it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import (
    BackendUnavailable,
    CyclescopeError,
    SourceError,
    UnsupportedInstruction,
    UsageError,
)

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
    with pytest.raises(UsageError, match="cannot be read"):
        read_block(tmp_path / path)


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_what_a_shell_of_windows_wrote_is_text(order, tmp_path):
    file = tmp_path / "k.s"
    file.write_bytes("\ufeffadd rax, rbx\r\n".encode(order))
    assert [one.text for one in read_block(file).instructions] == ["add rax, rbx"]
    file.write_bytes("\ufeffadd\0".encode(order) + b"\xd8")
    with pytest.raises(SourceError, match="is binary, but no ELF file"):
        read_block(file)


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
