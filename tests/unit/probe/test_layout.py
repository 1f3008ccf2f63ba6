"""Code with branches: every one leads to its label, and nothing else is where it should not be."""

from __future__ import annotations

import random

import pytest

from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import instruction
from cyclescope.probe.layout import Branch, Distance, Fill, Label, laid_out

SEED = random.SystemRandom().randrange(1 << 30)
BRANCHES = {"x86-64": "JMP (Rel32): #@", "aarch64": "B: #@", "riscv64": "JAL: z #@"}
WORK = {"x86-64": "DEC (R64): a", "aarch64": "MADDXrrr: a a e z", "riscv64": "MUL: a a e"}


def decoded(isa, code):
    """How far a branch leads from its own beginning."""
    word = int.from_bytes(code[:4], "little")
    if isa == "x86-64":
        assert code[0] == 0xE9
        return int.from_bytes(code[1:5], "little", signed=True) + 5
    if isa == "aarch64":
        assert word >> 26 == 5
        return ((word & 0x3FFFFFF) ^ 0x2000000) - 0x2000000 << 2
    assert word & 0xFFF == 0x6F
    parts = (word >> 31 << 20) | (word >> 12 & 255) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 1023) << 1
    return (parts ^ 0x100000) - 0x100000


@pytest.mark.parametrize("isa", list(BRANCHES))
def test_branches_lead_to_their_labels(isa):
    draw, table = random.Random(SEED), load_table(isa)
    names = [f"n{number}" for number in range(20)]
    items, aims = [], []
    for name in names:
        items.append(Label(name))
        items += [WORK[isa]] * draw.randint(0, 5)
        aims.append(draw.choice(names))
        items += [Branch(BRANCHES[isa], aims[-1]), Fill(64)]
    made = [instruction(table, line).code for line in laid_out(isa, items)]
    at, found = 0, []
    for code in made:
        if isa != "x86-64" or code[0] == 0xE9:
            try:
                found.append(at + decoded(isa, code))
            except AssertionError:
                assert isa != "x86-64"
        at += len(code)
    begins = {}
    for position, name in enumerate(names):
        begins[name] = position * 64
    assert at == 64 * len(names)
    assert found == [begins[name] for name in aims], f"seed {SEED}"


def test_what_a_branch_cannot_reach():
    items = [Branch("BNE: a z #@", "end"), *[WORK["riscv64"]] * 1022, Label("end")]
    assert len(laid_out("riscv64", items)) == 1023
    with pytest.raises(ValueError, match="does not reach"):
        laid_out("riscv64", [items[0], *items])


def test_distances_count_from_another_label():
    (_, line, _) = laid_out(
        "aarch64", [Label("a"), "NOP", Distance("ADDXri: r r #@", "a", "b"), "NOP", Label("b")]
    )
    assert line.immediates == (12,)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_no_kernel_is_longer_than_the_runner_takes(isa):
    """What the protocol and stores count in two bytes."""
    table = load_table(isa)
    sizes = {}
    for probe in PROBES.values():
        for point in (point for case in probe.cases(isa) for point in case.points):
            for lines in (point.lines, point.setup, point.beside):
                new = set(lines) - set(sizes)
                sizes |= {line: len(instruction(table, line).code) for line in new}
                assert sum(sizes[line] for line in lines) <= 0xFFFF, (probe.name, point.part, point.x)
