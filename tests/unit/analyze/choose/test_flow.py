"""Loops found from control flow alone, and which of them is taken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.analyze.choose.flow import loops
from cyclescope.analyze.choose.loops import hottest, innermost_loops, loops_of
from cyclescope.analyze.choose.source import read_program
from cyclescope.analyze.decode.decoder import Flow, FlowStep, Reference, decoder
from cyclescope.analyze.read.assembler import text_program
from cyclescope.analyze.read.assemblers import tools
from cyclescope.analyze.read.program import Code, Piece, Program

SNIPPETS = Path(__file__).parents[1] / "snippets"
needs_assembler = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")


def steps(*flows):
    """Steps of one byte each: `n`ext, `e`nd, `i`ndirect jump, or b/j with a target: `b0`."""
    kinds = {"n": Flow.NEXT, "e": Flow.END, "b": Flow.BRANCH, "j": Flow.JUMP, "i": Flow.JUMP}
    found = [FlowStep(i, 1, kinds[f[0]], int(f[1:]) if f[1:] else None) for i, f in enumerate(flows)]
    return found, {i: i for i in range(len(found))}


def found(*flows, entries=()):
    return [(one.body, one.depth, one.innermost) for one in loops(*steps(*flows), entries)]


def test_one_loop():
    assert found("n", "n", "b1", "e") == [((1, 2), 1, True)]


def test_a_loop_of_one_instruction():
    assert found("n", "b1", "e") == [((1,), 1, True)]


def test_no_loop():
    assert found("n", "b3", "n", "e") == []
    assert loops([], {}) == []


def test_nested_loops():
    assert found("n", "n", "n", "b2", "b1", "e") == [((1, 2, 3, 4), 1, False), ((2, 3), 2, True)]


def test_two_ways_back_are_one_loop():
    assert found("n", "b4", "n", "j0", "b0", "e") == [((0, 1, 2, 3, 4), 1, True)]


def test_a_loop_entered_in_its_middle():
    """`while` without a test ahead: jmp to the condition at the end."""
    (one,) = loops(*steps("j3", "n", "n", "n", "b1", "e"))
    assert (one.head, one.body) == (3, (1, 2, 3, 4))


def test_code_behind_the_return_is_part_of_its_loop():
    (one,) = loops(*steps("n", "b5", "n", "b0", "e", "n", "j2"))
    assert one.body == (0, 1, 2, 3, 5, 6)


def test_a_jump_back_to_a_place_that_does_not_dominate_is_no_loop():
    assert found("b3", "n", "e", "n", "j1") == []


def test_padding_that_nothing_reaches_is_no_way_in():
    """jmp over the padding in front of a loop, whose head it would otherwise run into."""
    assert found("j3", "n", "n", "n", "b3", "e") == [((3, 4), 1, True)]


def test_padding_within_an_outer_loop_is_no_way_in():
    assert found("n", "j4", "n", "n", "n", "b4", "b0", "e") == [
        ((0, 1, 4, 5, 6), 1, False),
        ((4, 5), 2, True),
    ]


def test_cases_of_an_indirect_jump_stay_in_its_loop():
    """An interpreter: dispatch, three cases that go back."""
    assert found("n", "i", "n", "j0", "n", "j0", "n", "b0", "e") == [((0, 1, 2, 3, 4, 5, 6, 7), 1, True)]


def test_a_table_says_where_an_indirect_jump_goes():
    """Two ways back to the head by the table; the block at 5 is no case, but the end."""
    flows = steps("n", "n", "i", "j1", "n", "e", "j1")
    assert [one.body for one in loops(*flows, tables=[(0, [3, 6])])] == [(1, 2, 3, 6)]
    assert [one.body for one in loops(*flows, tables=[(0, [5])])] == []


def test_every_jump_has_the_table_named_before_it():
    """Two loops with a table each, then a call through a register at the end."""
    flows = steps("n", "i", "j1", "n", "i", "j4", "n", "i")
    tables = [(0, [2, 3]), (3, [5, 6])]
    assert [one.body for one in loops(*flows, tables=tables)] == [(1, 2), (4, 5)]


def test_functions_have_entries_of_their_own():
    assert found("n", "b0", "e", "n", "b3", "e", entries=(0, 3)) == [((0, 1), 1, True), ((3, 4), 1, True)]


@given(st.lists(st.tuples(st.sampled_from("nnnbbje"), st.integers(0, 14)), min_size=1, max_size=15))
def test_loops_of_any_code_are_loops(drawn):
    """From the head every step of a body is reached within it, and reaches the head again."""
    flows = [kind + str(target) * (kind in "bj") for kind, target in drawn]
    every, index = steps(*flows)
    for one in loops(every, index):
        body = set(one.body)
        after = {p: _after(every, index, p) & body for p in body}
        assert _reached(after, one.head) == body
        before = {p: {q for q in body if p in after[q]} for p in body}
        assert _reached(before, one.head) == body
        assert one.head in after[one.last]


def _after(every, index, position):
    step = every[position]
    following = {position + 1} if step.flow in (Flow.NEXT, Flow.BRANCH) else set()
    return {p for p in following | {step.target} if p in index}


def _reached(edges, start):
    seen, stack = {start}, [start]
    while stack:
        for one in edges[stack.pop()] - seen:
            seen.add(one)
            stack.append(one)
    return seen


# --- what a compiler says -------------------------------------------------------------------------

SEEN = re.compile(r"=>\s*This (Inner )?Loop Header: Depth=(\d+)")


def seen_by_llvm(lines):
    """Depth and innermost, by the label of each loop, from the comments of a listing."""
    found, label = {}, ""
    for line in lines:
        if match := re.match(r"(\.LBB\d+_\d+):|(?:#|//) %bb", line):
            label = match[1] or ""
        if match := SEEN.search(line):
            found[label] = (int(match[2]), bool(match[1]))
    return found


@pytest.mark.parametrize("path", sorted(SNIPPETS.glob("*clang14*.s")), ids=lambda path: path.stem)
def test_loops_are_those_that_the_compiler_saw(path):
    isa = next((isa for isa in ("aarch64", "riscv64") if path.name.startswith(isa)), "x86-64")
    if not tools(isa):
        pytest.skip(f"needs an assembler for {isa}")
    program = read_program(path)
    code = Code(program, decoder(program.isa))
    found = {program.labels[code.steps[one.head].address]: one for one in loops_of(code)}
    wanted = seen_by_llvm(program.lines)
    assert len(wanted) > 7
    assert {label: (one.depth, one.innermost) for label, one in found.items()} == wanted


AUIPC, ADDI, JUMP_ON, CALLED = "97 09 00 00", "93 89 09 00", "11 a0", "e7 80 00 00"


@pytest.mark.parametrize(
    ("code", "reference", "target"),
    [
        ([AUIPC, ADDI, JUMP_ON], 4, 12),  # what the ADDI refers to is not where the jump goes
        ([AUIPC, JUMP_ON], 0, 8),
        ([AUIPC.replace("97 09", "97 00"), CALLED], 0, 0x40),  # one call of both
    ],
)
def test_a_relocation_in_front_of_a_jump_of_riscv_is_its_own_only_with_jalr(code, reference, target):
    places = {reference: Reference("elsewhere", 0, False, 0x40)}
    program = Program("riscv64", "bytes", (Piece("", 0, bytes.fromhex("".join(code))),), references=places)
    assert Code(program, decoder("riscv64")).steps[-1].target == target


# --- candidates -----------------------------------------------------------------------------------


def candidates(text):
    return innermost_loops(Code(text_program(text, "text"), decoder("x86-64")))


@needs_assembler
def test_the_deeper_loop_is_taken_then_the_one_with_more_vector_work():
    text = (
        "f:\n.L1: mov rax, rdi\n.L2: add rax, 8\n cmp rax, rsi\n jne .L2\n inc rcx\n jne .L1\n"
        ".L3: vaddpd ymm0, ymm0, [rdi]\n add rdi, 32\n jne .L3\n"
    )
    deep, wide = candidates(text)
    assert (deep.name, deep.depth, wide.name, wide.depth) == (".L2 in f", 2, ".L3 in f", 1)
    assert hottest([deep, wide]) is deep
    shallow = candidates(text.replace("jne .L1", "nop"))
    assert hottest(shallow).name == ".L3 in f"


@needs_assembler
def test_a_loop_that_calls_comes_last():
    text = ".L1: vaddps zmm0, zmm1, zmm2\n call f\n jne .L1\n.L2: add eax, 1\n jne .L2\n"
    assert hottest(candidates(text)).name == ".L2"
    nested = text.replace(".L1:", ".L0: nop\n.L1:").replace(".L2:", "jne .L0\n.L2:")
    assert hottest(candidates(nested)).name == ".L1"  # a deeper one counts for more


@needs_assembler
def test_a_loop_is_named_by_the_label_that_is_used():
    (one,) = candidates(".LVL7:\n.L3:\n.LBB2:\n add eax, 1\n jne .L3\n")
    assert one.name == ".L3"


@needs_assembler
def test_unlikely_code_of_a_loop_is_left_out():
    text = "f:\n.L1: cmp [rdi], eax\n je .L5\n.L2: add rdi, 4\n jne .L1\n ret\n.L5: inc ecx\n jmp .L2\n"
    (one,) = candidates(text)
    assert (len(one.steps), one.left_out, one.lines) == (4, 2, (2, 5))
    assert "2 more out of line" in one.where


@needs_assembler
def test_a_loop_whose_way_back_lies_elsewhere_is_taken_whole():
    (one,) = candidates("f:\n.L1: inc rax\n jmp .L4\n.L2: ret\n.L4: cmp rax, rdi\n je .L2\n jmp .L1\n")
    assert (len(one.steps), one.left_out) == (5, 0)


@needs_assembler
def test_branches_within_a_loop_are_mentioned():
    (one,) = candidates(".L1: cmp rax, rcx\n je .L2\n inc rdx\n.L2: inc rcx\n jne .L1\n")
    assert one.branches == 1
    assert one.where.endswith("both ways of its branches in each iteration, none predicted wrongly")
