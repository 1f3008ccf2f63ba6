"""Code to time becomes a kernel: machine code, counted instructions, registers that are pointers."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from cyclescope.errors import UsageError
from cyclescope.infer.beside import pieces
from cyclescope.infer.snippets import code_kernel, instructions, text_kernel
from cyclescope.kernel.state import (
    FIRST_WINDOW,
    SECOND_WINDOW,
    STACK_TOP,
    VECTOR_FLOAT,
    VECTOR_SCALABLE,
    VECTOR_VEX128,
)
from cyclescope.measure.bench import vectors_of

MUL = {"aarch64": ("mul x0, x0, x1", "007c019b"), "riscv64": ("mul a0, a0, a1", "3305b502")}
POINTERS = {  # the stack's, and those to two pieces of memory, so that what copies reads none of its stores
    "aarch64": (31, {20}, {21}), "riscv64": (2, {9}, {8}), "x86-64": (4, {14, 6, 5}, {13, 7}),
}  # fmt: skip
needs_assembler = pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-as") and shutil.which("riscv64-linux-gnu-as")),
    reason="needs binutils of both instruction sets",
)


@pytest.mark.parametrize(
    ("isa", "code", "count"),
    [("aarch64", "00" * 12, 3), ("riscv64", "13000000010013000000", 3), ("riscv64", "01000100", 2)],
)
def test_instructions_are_counted(isa, code, count):
    assert instructions(bytes.fromhex(code), isa) == count
    assert code_kernel(bytes.fromhex(code), 5, "", isa).instructions == 5 * count


@pytest.mark.parametrize(("isa", "size"), [("aarch64", 6), ("riscv64", 3)])
def test_machine_code_of_half_an_instruction(isa, size):
    with pytest.raises(UsageError, match="no whole instructions"):
        code_kernel(bytes(size), 1, "", isa)


@pytest.mark.parametrize("isa", POINTERS)
def test_what_the_registers_hold(isa):
    stack, *pointers = POINTERS[isa]
    state = code_kernel(bytes(4), 1, "", isa).state
    assert state.general[stack] == STACK_TOP
    for window, expected in zip((FIRST_WINDOW, SECOND_WINDOW), pointers, strict=True):
        assert {n for n, value in enumerate(state.general) if value == window} == expected
    assert state.vector_level == (VECTOR_VEX128 if isa == "x86-64" else VECTOR_FLOAT)
    assert bool(state.scalars) == (isa == "riscv64")


@needs_assembler
@pytest.mark.parametrize("isa", MUL)
def test_text(isa):
    text, code = MUL[isa]
    kernel = text_kernel(f"{text}; {text}", text, 3, "", isa)
    assert (kernel.code.hex(), kernel.setup.hex(), kernel.instructions) == (code * 6, code, 6)
    assert text_kernel(text, "", 1, "scalable", isa).state.vector_level == VECTOR_SCALABLE


@needs_assembler
@pytest.mark.parametrize(
    ("isa", "text", "level"),
    [
        ("aarch64", "fadd v0.4s, v1.4s, v2.4s", VECTOR_FLOAT),
        ("aarch64", "fadd z0.s, z1.s, z2.s", VECTOR_SCALABLE),
        ("aarch64", "ptrue p3.b", VECTOR_SCALABLE),
        ("riscv64", "fadd.d fa0, fa1, fa2", VECTOR_FLOAT),
        ("riscv64", "vadd.vv v1, v2, v3", VECTOR_SCALABLE),
    ],
)
def test_vectors_that_a_text_needs(isa, text, level):
    assert text_kernel(text, "", 1, "", isa).state.vector_level == level


@pytest.mark.parametrize(
    ("isa", "text"),
    [("aarch64", "add X28, x0, x1"), ("aarch64", "add w28, w0, w1"), ("riscv64", "mv s11, a0"),
     ("riscv64", "mv a0, x27"), ("x86-64", "mov r15d, 1")],
)  # fmt: skip
def test_the_register_that_counts(isa, text):
    for parts in ((text, ""), ("", text)):
        with pytest.raises(UsageError, match=r"counts the repetitions: use another register, or `BurstPlan"):
            text_kernel(*parts, 1, "", isa)


@needs_assembler
@pytest.mark.parametrize("text", ["", " ; ", "// nothing"])
def test_nothing_to_time(text):
    with pytest.raises(UsageError, match="no instruction"):
        text_kernel(text, "", 1, "", "aarch64")


@pytest.mark.parametrize(
    ("isa", "text", "name"),
    [
        ("x86-64", "imul rax, rbx", "sse"),
        ("x86-64", "nop\nvaddps XMM1, xmm2, xmm3", "avx"),
        ("x86-64", "vaddps ymm1, ymm2, ymm3", "avx2"),
        ("x86-64", "vaddps xmm1, xmm2, xmm17", "avx512"),
        ("aarch64", "add z0.d, z1.d, z2.d", "scalable"),
        ("aarch64", "add v0.2d, v1.2d, v2.2d", "float"),
        ("riscv64", "vadd.vv v1, v2, v3", "scalable"),
    ],
)
def test_names_of_vectors_that_a_text_needs(isa, text, name):
    assert vectors_of(text, isa) == name


def test_a_file_needs_the_vectors_of_its_text():
    """As a text on the command line does; what has no text, such as an object file, the usual ones."""
    program = SimpleNamespace(lines=["add z0.d, z1.d, z2.d"])
    assert pieces._level(program, "", "aarch64") == "scalable"
    assert pieces._level(SimpleNamespace(lines=()), "", "aarch64") == "float"
    assert pieces._level(SimpleNamespace(lines=()), "", "x86-64") == "avx"
