"""Pieces of code beside each other: sweeps, files, functions of files."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from cyclescope.errors import CyclescopeError, UsageError
from cyclescope.infer.beside.pieces import (
    Around,
    Init,
    Sweep,
    code_snippet,
    file_snippet,
    sweep_of,
    text_snippets,
)
from cyclescope.kernel.state import VECTOR_VEX256

X86 = "x86-64"
IMUL, ADD = bytes.fromhex("480fafc3"), bytes.fromhex("4801d8")
FUNCTIONS = """.intel_syntax noprefix
.globl first
.type first,@function
first: imul rax, rbx
 ret
.size first,.-first
.globl second
.type second,@function
second: add rax, rbx
 add rax, rbx
 ret
.size second,.-second
"""


@pytest.mark.parametrize(
    ("text", "values"),
    [("N=1..4", (1, 2, 3, 4)), ("k=-4..8:4", (-4, 0, 4, 8)), ("N=1,2,64", (1, 2, 64)), ("N=7", (7,)),
     ("N=0..9:4", (0, 4, 8))],
)  # fmt: skip
def test_sweeps(text, values):
    assert sweep_of(text) == Sweep(text[0], values)


@pytest.mark.parametrize(
    "text", ["", "N", "N=", "N=4..1", "N=1..1000000", "1=1..4", "N=1..4:", "N=1..4:x", "N=a"]
)
def test_what_is_no_sweep(text):
    with pytest.raises(UsageError):
        sweep_of(text)


def test_a_sweep_takes_some_minutes_at_most():
    """Each number takes a second or less: 256 are timed together, 257 are refused."""
    assert len(sweep_of("N=1..256").values) == 256
    with pytest.raises(UsageError, match="has 257 numbers"):
        sweep_of("N=0..256")


def test_a_sweep_that_ends_before_it_begins_says_so():
    with pytest.raises(UsageError, match="ends before it begins"):
        sweep_of("N=4..1")


def test_one_kernel_per_number():
    found = text_snippets(["{N}*|add rax, rbx|"], Around(), sweep_of("N=1..3"), X86)
    assert [(one.name, one.kernel.code) for one in found] == [(f"N={n}", ADD * n) for n in (1, 2, 3)]
    both = text_snippets(["{N}*|nop|", "|{N}"], Around(), sweep_of("N=2..3"), X86)
    assert [one.name for one in both] == ["{N}*|nop|, N=2", "{N}*|nop|, N=3", "|{N}, N=2", "|{N}, N=3"]


def test_a_number_in_what_comes_before():
    found = text_snippets(["imul rax, rbx"], Around(Init(each="mov rbx, {N}")), sweep_of("N=1,2"), X86)
    assert [one.kernel.setup[-4:] for one in found] == [bytes([n, 0, 0, 0]) for n in (1, 2)]


def test_a_sweep_without_its_name():
    with pytest.raises(UsageError, match="in the code: write"):
        text_snippets(["nop"], Around(), sweep_of("N=1..3"), X86)


def test_files_that_return(object_file, tmp_path):
    """One function is timed without its return; of several one has to be chosen."""
    with pytest.raises(UsageError, match=r"returns out of what is timed: .*first, second"):
        file_snippet(object_file, "", Around(), X86)
    path = tmp_path / "one.s"
    path.write_text(FUNCTIONS[: FUNCTIONS.index(".globl second")])
    assert file_snippet(path, "", Around(), X86).kernel.code == IMUL


def test_code_that_names_what_counts():
    """Machine code as well, with its place."""
    with pytest.raises(UsageError, match="mov r15d, 1 at byte 3: r15d counts the repetitions"):
        code_snippet("x", ADD + bytes.fromhex("41bf01000000"), Around(), X86)


def test_copies_and_what_comes_before_machine_code():
    made = code_snippet("x", IMUL, Around(Init(each="add rax, rbx"), 3), X86)
    assert (made.kernel.code, made.kernel.setup, made.copies) == (IMUL * 3, ADD, 3)


@pytest.fixture
def object_file(tmp_path):
    return assembled(tmp_path, "two", FUNCTIONS)


def assembled(folder, name, text):
    if shutil.which("as") is None:
        pytest.skip("needs an assembler")
    source, made = folder / f"{name}.s", folder / f"{name}.o"
    source.write_text(text)
    subprocess.run(["as", source, "-o", made], check=True)
    return made


def test_a_function_of_an_object_file(object_file):
    first, second = (file_snippet(object_file, name, Around(), X86) for name in ("first", "second"))
    assert (first.name, first.kernel.code, first.kernel.instructions) == ("two.o:first", IMUL, 1)
    assert (second.kernel.code, second.kernel.instructions) == (ADD * 2, 2)
    with pytest.raises(UsageError, match="it has first, second"):
        file_snippet(object_file, "third", Around(), X86)


def test_a_function_that_returns_in_several_places(tmp_path):
    early = "early:\n testq %rdi, %rdi\n je 1f\n nop\n ret\n1:\n ret\n"
    called = "called:\n call 1f\n jmp 2f\n1:\n ret\n2:\n nop\n ret\n"
    made = assembled(tmp_path, "early", f".globl early\n{early}.globl called\n{called}")
    with pytest.raises(UsageError, match="early returns in several places"):
        file_snippet(made, "early", Around(), X86)
    assert file_snippet(made, "called", Around(), X86).kernel.instructions == 4


def test_functions_of_an_object_file_that_have_no_type(tmp_path):
    """Labels are named where nothing else is; one function alone needs no name."""
    lines = [line for line in FUNCTIONS.splitlines() if line[:5] not in (".type", ".size")]
    made = {
        name: assembled(tmp_path, name, "\n".join(some) + "\n")
        for name, some in (("global", lines), ("one", lines[:4]), ("local", [lines[0], *lines[2:]]))
    }
    second = file_snippet(made["global"], "second", Around(), X86)
    assert second.kernel.code == file_snippet(made["local"], "second", Around(), X86).kernel.code == ADD * 2
    assert file_snippet(made["one"], "", Around(), X86).kernel.code == IMUL
    with pytest.raises(UsageError, match=r"returns out of what is timed: .*first, second"):
        file_snippet(made["global"], "", Around(), X86)


def test_a_function_behind_other_code_is_not_all_of_it(tmp_path):
    """A label that other files do not see may be a function as well."""
    lines = [line for line in FUNCTIONS.splitlines() if line[:5] not in (".type", ".size")]
    made = assembled(tmp_path, "behind", "\n".join(line for line in lines if line != ".globl first") + "\n")
    with pytest.raises(UsageError, match=r"returns out of what is timed: .*second, first"):
        file_snippet(made, "", Around(), X86)
    assert file_snippet(made, "first", Around(), X86).kernel.code == IMUL


def test_names_to_choose_from_are_a_line(tmp_path):
    labels = "".join(f"{'f' * number}:\nimulq %rbx, %rax\n" for number in range(3, 30))
    with pytest.raises(UsageError, match=r"it has fff, ffff, .*\.\.\. \(\d+ characters\)$"):
        file_snippet(assembled(tmp_path, "many", labels), "g", Around(), X86)


@pytest.mark.parametrize(
    ("text", "code"),
    [("imulq %rbx, %rax\n", IMUL), (".intel_syntax noprefix\nimul rax, rbx\n", IMUL), ("480fafc3", IMUL)],
)
def test_a_file_of_text(tmp_path, text, code):
    path = tmp_path / "one.s"
    path.write_text(text)
    made = file_snippet(path, "", Around(), X86)
    assert (made.name, made.kernel.code, made.kernel.instructions) == ("one.s", code, 1)


def test_vector_state_as_the_source_needs(tmp_path):
    path = tmp_path / "one.s"
    path.write_text("vaddps %ymm0, %ymm1, %ymm2\n")
    assert file_snippet(path, "", Around(), X86).kernel.state.vector_level == VECTOR_VEX256


@pytest.mark.parametrize("text", ["imulq %rbx, %rax\nfoo %rax\n", ".intel_syntax noprefix\nnop\nfoo rax\n"])
def test_what_is_refused_names_no_option_that_is_not_here(tmp_path, text):
    path = tmp_path / "bad.s"
    path.write_text(text)
    with pytest.raises(CyclescopeError, match=r"bad.s, line [23]: .*'foo %?rax'") as found:
        file_snippet(path, "", Around(), X86)
    assert "correct or delete the line, or give an object file" in found.value.told
    assert "--syntax" not in found.value.told


def test_files_that_cannot_be_timed(tmp_path):
    path = tmp_path / "one.s"
    path.write_text("add %rax, %r15\n")
    with pytest.raises(UsageError, match="counts the repetitions"):
        file_snippet(path, "", Around(), X86)
    with pytest.raises(CyclescopeError):
        file_snippet(tmp_path / "none.s", "", Around(), X86)
