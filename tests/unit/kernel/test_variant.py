"""Variants are spelled and read in one place, and every kernel that is planned has one that is known."""

from __future__ import annotations

import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.variant import AGAIN, Kind, variant_of
from cyclescope.measure.plan import Planner

EVERY = {"x86-64": 40, "aarch64": 40, "riscv64": 20}  # so that all kinds of forms are among them


@pytest.mark.parametrize(
    ("text", "kind", "name", "length", "again"),
    [
        ("plain x8", Kind.PLAIN, "plain", 8, False),
        ("plain x12 again", Kind.PLAIN, "plain", 12, True),
        ("same register again", Kind.SAME, "same register", 0, True),
        ("taken, to the next instruction x8", Kind.TAKEN, "taken, to the next instruction", 8, False),
        ("with FLD ST(0) x8", Kind.WITH, "with FLD ST(0)", 8, False),
        ("count 64 x4", Kind.COUNT, "count 64", 4, False),
        ("integer link", Kind.INTEGER_LINK, "integer link", 0, False),
        ("linked", Kind.OTHER, "linked", 0, False),
        ("x12.2", Kind.OTHER, "x12.2", 0, False),
    ],
)
def test_a_variant_is_read_as_it_is_spelled(text, kind, name, length, again):
    found = variant_of(text)
    assert (found.kind, found.name, found.length, found.again) == (kind, name, length, again)
    assert found.first + AGAIN * found.again == text


@pytest.mark.parametrize("isa", EVERY)
def test_all_planned_kernels_have_known_variants(isa):
    table = load_table(isa)
    planner = Planner(table, lambda form: True)
    found = set()
    for form in list(table)[:: EVERY[isa]]:
        found |= {e.variant for e in (*planner.throughput(form), *planner.latency(form))}
    assert len(found) > 10
    assert {text for text in found if variant_of(text).kind is Kind.OTHER} == set()
