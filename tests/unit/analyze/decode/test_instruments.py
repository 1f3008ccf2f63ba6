"""What comments for llvm-mca say about latencies and RISC-V's vectors."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.analyze.read.assemblers import tools
from cyclescope.session.machines import load_model

pytestmark = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
needs_riscv = pytest.mark.skipif(not tools("riscv64"), reason="needs an assembler for riscv64")


def predicted(text, machine="skylake", **more):
    return Predictor(load_model(machine)).predict(read_block(text), **more)


def test_latencies_count_from_comment_to_comment():
    text = """\
mov (%rdi), %rdi
# LLVM-MCA-LATENCY 100
mov (%rsi), %rsi
# LLVM-MCA-LATENCY 7
imul %rax, %rax
# LLVM-MCA-LATENCY
imul %rcx, %rcx
"""
    assert [one.latency for one in read_block(text)] == [None, 100, 7, None]
    found = predicted(text)
    chains = {chain.lines: chain.cycles for chain in found.loop_carried}
    assert chains == {(3,): 100, (5,): 7, (1,): 5, (7,): 3}
    assert found.upper >= 100  # the simulated core as well
    assert [row.remarks for row in found.instructions][1:3] == [
        ("latency 100 by a comment",), ("latency 7 by a comment",)
    ]  # fmt: skip


def test_a_latency_replaces_what_the_model_knows_of_idioms_and_moves():
    plain, said = "xor %eax, %eax\nadd %rax, %rbx\n", "# LLVM-MCA-LATENCY 9\nxor %eax, %eax\n"
    assert predicted(plain).lcd == 1
    found = predicted(f"{said}# LLVM-MCA-LATENCY\nadd %rax, %rbx\n")
    assert found.cp == 10
    assert predicted("# LLVM-MCA-LATENCY 6\nmov %rax, %rbx\nmov %rbx, %rax\n").lcd == 12


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# LLVM-MCA-LATENCY x", "it wants a number of cycles"),
        ("# LLVM-MCA-LATENCY 2000000", "it wants a number of cycles, at most 1000000"),
        ("# LLVM-MCA-LATENCY: 3", "it wants a number of cycles"),
        ("# LLVM-MCA-COST 3", "known are LLVM-MCA-BEGIN, -END, -LATENCY, -RISCV-LMUL, -RISCV-SEW"),
        ("# LLVM-MCA-RISCV-SEW E32", "it is for riscv64 code"),
    ],
)
def test_what_is_not_understood_is_said(comment, said):
    block = read_block(f"nop\n{comment}\nimul %rax, %rax\n")
    assert [one.latency for one in block] == [None, None]
    (note,) = block.notes
    assert note.startswith(f"line 2: {comment!r} has no effect: {said}")
    assert note in predicted(f"nop\n{comment}\nimul %rax, %rax\n").notes


def configurations(text):
    block = read_block(text, "riscv64", Choice(whole=True))
    found = [one.form.configuration for one in block if not one.text.startswith("vset")]
    return [f"e{c.sew},{c.lmul}" if c else "" for c in found], block.notes


@needs_riscv
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("# LLVM-MCA-RISCV-LMUL M2\n# LLVM-MCA-RISCV-SEW E32\nvadd.vv v8,v8,v8\n", ["e32,2"]),
        ("vsetvli a0,a1,e16,m1,ta,ma\n# LLVM-MCA-RISCV-LMUL M8\nvadd.vv v8,v8,v8\n", ["e16,8"]),
        ("vsetvli a0,a1,e16,m1,ta,ma\n# LLVM-MCA-RISCV-SEW E64\nvadd.vv v8,v8,v8\n", ["e64,1"]),
        ("# LLVM-MCA-RISCV-LMUL M8\nvsetvli a0,a1,e16,m1,ta,ma\nvadd.vv v8,v8,v8\n", ["e16,1"]),
        (
            "vsetvl a0,a1,a2\n# LLVM-MCA-RISCV-LMUL MF4\n# LLVM-MCA-RISCV-SEW E8\nvadd.vv v8,v8,v8\n",
            ["e8,1/4"],
        ),
    ],
)
def test_vectors_are_as_comments_say_until_the_code_does(text, wanted):
    assert configurations(text) == (wanted, ())


@needs_riscv
def test_comments_that_do_not_say_enough():
    found, notes = configurations("# LLVM-MCA-RISCV-LMUL M2\nvadd.vv v8,v8,v8\nvfadd.vv v8,v8,v8\n")
    assert found == ["e8,2", "e16,2"]
    assert notes == ("lines 2, 3: nothing says how wide elements are: the narrowest",)
    found, notes = configurations("# LLVM-MCA-RISCV-SEW E32\nvadd.vv v8,v8,v8\n")
    assert found == [""]
    assert notes == ("line 2: LLVM-MCA-RISCV-SEW has no effect without a length multiplier",)
    _, notes = configurations("# LLVM-MCA-RISCV-LMUL M3\nvadd.vv v8,v8,v8\n")
    assert notes[0].endswith("has no effect: it wants one of M1, M2, M4, M8, MF2, MF4, MF8")


@needs_riscv
@pytest.mark.parametrize(
    ("count", "lines"), [(8, "2, 3, 4, 5, 6, 7, 8, 9"), (9, "2, 3, 4, 5, 6, 7, 8, 9, ...")]
)
def test_eight_lines_are_named(count, lines):
    _, notes = configurations("# LLVM-MCA-RISCV-LMUL M2\n" + count * "vadd.vv v8,v8,v8\n")
    assert notes == (f"lines {lines}: nothing says how wide elements are: the narrowest",)


@needs_riscv
def test_a_comment_changes_the_cost():
    division = "vsetvli a0,a1,e32,m1,ta,ma\n{}vdiv.vv v8,v16,v24\n"
    costs = [
        predicted(division.format(comment), "sifive-x280").cycles
        for comment in ("", "# LLVM-MCA-RISCV-LMUL M2\n", "# LLVM-MCA-RISCV-LMUL M4\n")
    ]
    assert costs[1] == pytest.approx(2 * costs[0], rel=0.1)
    assert costs[2] == pytest.approx(4 * costs[0], rel=0.1)
