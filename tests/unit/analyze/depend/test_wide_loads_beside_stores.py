"""What loops take that load and store vectors, on a core that was found to take longer for both."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.model.facts import (
    BANKS,
    CROSSING,
    CoreAnswer,
    Fact,
    WideLoad,
    beside_stores,
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
