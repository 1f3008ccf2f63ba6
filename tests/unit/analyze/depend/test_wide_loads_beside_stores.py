"""What loops take that load and store vectors, on a core that was found to take longer for both."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.model.behaviour.found import SPACINGS
from cyclescope.model.facts import (
    BANKS,
    CROSSING,
    CoreAnswer,
    Fact,
    WideLoad,
    beside_stores,
    loads_across,
    loads_apart,
    stores_across,
    stores_apart,
    wide_loads,
    wide_stores,
)
from tests.support.code.blocks import predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

LOAD, STORE = 7.5, 10.0  # cycles of each, together
FOUND = [
    Fact(BANKS, wide_stores(256), CoreAnswer.VALUE, 1 / 20, 0.001),
    Fact(BANKS, beside_stores(256, 2), CoreAnswer.VALUE, 3 / (2 * LOAD + STORE), 0.001),
    Fact(BANKS, beside_stores(256, 3), CoreAnswer.VALUE, 4 / (3 * LOAD + STORE), 0.001),
    Fact(CROSSING, wide_loads(256, WideLoad.INSIDE), CoreAnswer.VALUE, 10.0, 0.01),
]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("vmovupd ymm0, [rdi]; vmovupd [rsi], ymm1", LOAD + STORE),
        ("vmovupd ymm0, [rdi]; vaddpd ymm1, ymm0, [rsi]; vmovupd [rdx], ymm1", 2 * LOAD + STORE),
        ("vmovupd ymm0, [rdi]; vmovupd ymm2, [rsi]", None),
        ("vmovupd [rdi], ymm0; vmovupd [rsi], ymm1", None),
        ("vmovupd ymm0, [rdi]; vmovupd [rsi], xmm1", None),
        ("vmovupd xmm0, [rdi]; vmovupd xmm1, [rdi]; vmovupd [rsi], xmm1", None),
    ],
)
def test_loads_and_stores_of_a_size_take_what_both_take_together(text, cycles):
    found = predicted(text, *FOUND)
    assert found.bounds.get("beside_stores") == (None if cycles is None else pytest.approx(cycles))
    assert found.cycles >= (cycles or 0.0)
    assert found.lower == predicted(text).lower  # it is assumed
    assert "beside_stores" not in predicted(text).bounds


EACH, LONGER = 0.5, 6.0  # cycles of a load, and what one takes more across lines
ACROSS = [
    *(Fact(BANKS, apart(spacing), CoreAnswer.VALUE, 1 / EACH, 0.001)
      for spacing in SPACINGS for apart in (loads_apart, stores_apart)),
    Fact(CROSSING, loads_across("64 bytes"), CoreAnswer.VALUE, LONGER, 0.01),
    Fact(CROSSING, stores_across("64 bytes"), CoreAnswer.VALUE, LONGER, 0.01),
]  # fmt: skip
BY_THEMSELVES = [
    Fact(CROSSING, wide_loads(256, where), CoreAnswer.VALUE, cycles, 0.01)
    for where, cycles in zip(WideLoad, (4.0, 9.0, 6.0), strict=True)
]


@pytest.mark.parametrize(
    ("text", "by_all", "by_themselves"),
    [
        ("vmovupd ymm0, [rdi + 40]; vmovupd [rsi], ymm1", LONGER, 9 - 4),
        ("vmovupd ymm0, [rdi + 48]; vmovupd [rsi], ymm1", LONGER, 6 - 4),
        ("vmovupd ymm0, [rdi + 40]; vmovupd [rsi], ymm1; add rdi, 32", LONGER / 2, (9 - 4) / 2),
        ("vmovupd ymm0, [rdi]; vmovupd [rsi + 40], ymm1", 0.0, 0.0),  # a store is
        ("vmovupd ymm0, [rdi]; vmovupd [rsi], ymm1", 0.0, 0.0),
    ],
)
def test_loads_across_lines_take_as_much_longer_beside_stores(text, by_all, by_themselves):
    facts = FOUND[:-1] + ACROSS
    assert predicted(text, *facts, FOUND[-1]).bounds["beside_stores"] == pytest.approx(LOAD + STORE + by_all)
    found = predicted(text, *facts, *BY_THEMSELVES).bounds.get("beside_stores")
    assert found == pytest.approx(LOAD + STORE + by_themselves)
