"""Where in a piece of code something happened, for every byte of what runs."""

from __future__ import annotations

import pytest

from cyclescope.infer.beside.bursts import BurstPlan
from cyclescope.infer.beside.pieces import Around, Init, code_snippet, text_snippets
from cyclescope.infer.beside.places import places_of

X86 = "x86-64"
CODE = "imul rax, rbx; add rax, rbx"  # 4 and 3 bytes
INIT = Init("inc eax; nop", "inc ebx", "inc ecx")  # 2 + 1, 2, 2 bytes


def told(around, texts=(CODE,)):
    """What is said of every byte of what runs, and of one outside of it."""
    snippets = text_snippets(texts, around, None, X86)
    where, kernel = places_of(snippets, X86), snippets[0].kernel
    burst = snippets[0].burst
    size = len((burst.kernel if burst else kernel).setup) + len((burst.kernel if burst else kernel).code)
    return [where(0, offset).place for offset in range(-1, size)]


FIRST, SECOND = "in instruction 1, `imul rax, rbx`", "in instruction 2, `add rax, rbx`"
BEFORE = [f"in instruction {n} of what comes before, `{text}`"
          for n, text, size in ((1, "inc eax", 2), (2, "nop", 1), (3, "inc ebx", 2), (4, "inc ecx", 2))
          for _ in range(size)]  # fmt: skip


@pytest.mark.parametrize("unroll", [1, 3])
def test_of_copies_in_a_loop(unroll):
    assert told(Around(INIT, unroll)) == ["outside of it", *BEFORE, *([FIRST] * 4 + [SECOND] * 3) * unroll]


def test_of_copies_that_run_once():
    """What runs in every run comes first, then what runs once, what is timed, and the code."""
    once, each, late = BEFORE[:3], ["inc ebx"] * 2, ["inc ecx"] * 2
    alone = [f"in instruction 1 of what comes before, `{text}`" for text in each + late]
    expected = ["outside of it", *alone[:2], *once, *alone[2:], *[FIRST] * 4, *[SECOND] * 3]
    assert told(Around(INIT, 7, plan=BurstPlan())) == expected


def test_several_pieces_are_told_by_name():
    snippets = text_snippets(("nop", CODE), Around(), None, X86)
    where = places_of(snippets, X86)
    assert where(1, 4) == (CODE, SECOND)
    assert where(0, 0) == ("nop", "in instruction 1, `nop`")
    assert places_of(snippets[:1], X86)(0, 0).code == "the code"


def test_bytes_that_are_no_instruction():
    snippet = code_snippet("90 06", bytes.fromhex("9006"), Around(), X86)
    assert places_of([snippet], X86)(0, 1).place.startswith("in instruction 2")


@pytest.mark.parametrize(("isa", "code"), [("aarch64", "1f2003d5 20008052"), ("riscv64", "13000000 0100")])
def test_of_other_instruction_sets(isa, code):
    snippet = code_snippet(code, bytes.fromhex(code), Around(unroll=2), isa)
    where, size = places_of([snippet], isa), len(bytes.fromhex(code))
    for offset in (4, size - 1, size + 4):
        assert where(0, offset).place.startswith("in instruction 2, `")
