"""What stores to many lines in turn take, by what the probe `banks` found of rows of them."""

from __future__ import annotations

import random
import shutil

import pytest

from cyclescope.model.behaviour.store_lines import (
    COUNTED_ROWS,
    FEWER_LINES,
    LINE,
    MANY,
    ROWS,
    StoreLines,
    store_lines,
    stores_in_lines,
)
from cyclescope.model.facts import BANKS, CoreAnswer, Fact, stores_apart
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import NUMBERS
from tests.support.code.blocks import predicted

SEED = random.SystemRandom().randrange(1 << 30)


def told(longer, many, fastest=2.0, whole=0.0, error=0.002):
    """What the probe finds on a core whose lines take so much longer, by row, from so many lines on."""

    def rate(row, more):
        return row / (row / fastest + more)

    asked = [(row, lines) for row in ROWS for lines in (*(FEWER_LINES if row in COUNTED_ROWS else ()), MANY)]
    found = {
        stores_in_lines(row, lines): rate(row, longer[row] if lines >= many else 0.0) for row, lines in asked
    }
    found[stores_in_lines(ROWS[-1], MANY, whole=True)] = rate(ROWS[-1], whole)
    found[stores_apart(0)] = fastest
    return [Fact(BANKS, subject, CoreAnswer.VALUE, value, error) for subject, value in found.items()]


def test_drawn_cores_are_found_out():
    draw = random.Random(SEED)
    for _ in range(50):
        fastest, many = draw.choice((1.0, 2.0, 3.0)), draw.choice((*FEWER_LINES, MANY))
        longer = {row: draw.choice((0.0, 0.5, 1.0)) for row in ROWS} | {COUNTED_ROWS[0]: 0.5, 2: 0.0}
        whole = draw.choice((0.0, 0.5))
        found = store_lines(told(longer, many, fastest, whole), fastest)
        assert found is not None, f"seed {SEED}"
        assert (found.size, found.many, found.each) == (LINE, many, 1 / fastest), f"seed {SEED}"
        assert dict(found.rows) == pytest.approx(longer), f"seed {SEED}"
        assert found.whole == pytest.approx(whole), f"seed {SEED}"


@pytest.mark.parametrize("longer", [0.0, 0.1, 0.24])
def test_less_than_a_quarter_of_a_cycle_is_nothing(longer):
    assert store_lines(told(dict.fromkeys(ROWS, 0.0) | {6: longer}, MANY), 2.0) is None
    assert store_lines(told(dict.fromkeys(ROWS, 0.0) | {6: longer + 0.27}, MANY), 2.0) is not None


def test_rows_that_fewer_lines_are_not_asked_for_need_all_of_them():
    found = store_lines(told(dict.fromkeys(ROWS, 0.0) | {8: 0.5}, FEWER_LINES[0]), 2.0)
    assert found is not None and found.many == MANY


def test_what_is_slow_in_every_row_is_no_matter_of_rows():
    assert store_lines(told(dict.fromkeys(ROWS, 0.5), MANY), 2.0) is None
    assert store_lines([], 2.0) is None


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_the_probe_stores_to_the_lines_that_it_names(isa):
    cases = {case.subject: case for case in PROBES[BANKS].cases(isa)}
    for row in ROWS:
        for whole in (False, True) if row == ROWS[-1] else (False,):
            (point,) = cases[stores_in_lines(row, MANY, whole=whole)].points
            bases = dict(point.setting.pointers)
            (stored,) = {NUMBERS[isa]["a"]}
            places = []
            for line in point.lines:
                (base,) = (one for one in line.registers if one != stored)
                places.append(bases[base] + line.at)
            assert [place // LINE for place in places] == [n for n in range(MANY) for _ in range(row)]
            covered = len({place for place in places if place < LINE})
            assert covered == (LINE // 8 if whole else min(row, LINE // 16)), (row, whole)


FOUND = told({1: 0.5, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0, 6: 0.75, 8: 0.5}, 12)
needs_binutils = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


def stores(*rows, lines):
    """Rows of stores by turns, to so many lines one after the other."""
    return "; ".join(
        f"mov [rdi + {LINE * line + 8 * (n % 8)}], rax"
        for line in range(lines) for n in range(rows[line % len(rows)])
    )  # fmt: skip


@needs_binutils
@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        (stores(1, lines=12), 12 * 1),
        (stores(1, lines=11), 0),  # all of them are gathered
        (stores(2, lines=12), 0),
        (stores(1, 2, lines=12), 0),  # neither two lone ones, nor many
        (stores(6, lines=12), 12 * 3.75),
        (stores(5, 6, lines=12), 12 * (2.75 + 0.75)),
        (stores(4, 6, lines=12), 0),
        (stores(7, 8, lines=12), 6 * (7 / 2 + 8 / 2 + 0.5)),  # whole lines take no longer
        (stores(8, lines=12), 0),
        ("mov [rdi], rax; add rdi, 64", 1),
        ("mov [rdi], rax; add rdi, 32", 0),
        ("mov [rdi], rax; add rdi, 64; mov [rsi], rax", 0),  # that is among the latest
        ("mov [rdi], rax; imul rdi, rdi, 3", 1),  # nobody knows where to
    ],
)
def test_lines_take_longer_by_the_rows_of_stores_to_them(text, cycles):
    assert predicted(text, *FOUND).bounds.get("stores", 0.0) == pytest.approx(cycles)


@needs_binutils
@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov rdx, [rsi]; mov [rdx], rax; add rsi, 8", 1.25),  # places that differ
        ("mov rdx, [rsi]; mov [rdi + rdx*4], rax; add rsi, 8", 1),  # of a table: may be one of the latest
        ("mov rdx, [rsi]; inc dword ptr [rdi + rdx*4]; inc dword ptr [rbx + rdx*4]; add rsi, 8", 2),
        ("mov rdx, [rsi]; mov [rdi + rdx*4], rax; mov [rdx], rax; add rsi, 8", 2.25),
        ("mov [rdi + rdx*4], rax; imul rdx, rcx", 1),
    ],
)
def test_stores_to_tables_leave_by_themselves_at_most(text, cycles):
    found = told(dict.fromkeys(ROWS, 0.0) | {1: 0.75}, 12)
    assert predicted(text, *found).bounds["stores"] == pytest.approx(cycles)


@needs_binutils
@pytest.mark.parametrize(("longer", "cycles"), [(0.75, 1), (1.6, 2), (2.6, 3)])
def test_a_line_of_a_table_leaves_in_as_many_whole_cycles_as_were_found(longer, cycles):
    found = told(dict.fromkeys(ROWS, 0.0) | {1: longer}, 12)
    bounds = predicted("mov [rdi + rdx*4], rax; imul rdx, rcx", *found).bounds
    assert bounds["stores"] == pytest.approx(cycles)


def test_rows_count_with_the_one_before():
    found = StoreLines(64, 12, 0.5, ((1, 0.5), (2, 0.0), (5, 0.0), (6, 0.75)))
    assert [found.longer(*rows) for rows in ((1, 1), (1, 2), (5, 5), (5, 6), (6, 5), (4, 7), (9, 9))] == [
        0.5, 0.0, 0.0, 0.75, 0.75, 0.75, 0.75,
    ]  # fmt: skip
