"""NOPs that share the slot of what is before them."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.analyze.depend.pairs import trailing_nops
from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.behaviour.nops import BeforeNop
from cyclescope.model.behaviour.published import CoreBehaviour
from tests.support.code.blocks import block

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)
BEHIND = frozenset((BeforeNop.GENERAL, BeforeNop.MEMORY))


@pytest.mark.parametrize(
    ("text", "nops", "trailed", "shared"),
    [
        ("nop; nop; nop; nop", 1, frozenset(), set()),
        ("nop; nop; nop; nop", 2, frozenset(), {1, 3}),
        ("nop; nop; nop; nop; jmp .", 3, frozenset(), {1, 2}),
        ("nop; nop; nop", 2, frozenset(), {0, 2}),  # in copies the last is before the first
        ("add rax, rbx; nop; nop; nop", 1, BEHIND, {1}),
        ("add rax, rbx; nop; nop; nop", 2, BEHIND, {1, 3}),
        ("add rax, rbx; nop; nop; nop", 2, frozenset(), {2}),
        ("vpxor xmm0, xmm0, xmm0; nop; nop; nop", 2, BEHIND, {2}),
        ("nop; nop; mov rax, [rdi]", 2, BEHIND, {0}),
        ("nop; nop; jmp .", 2, BEHIND, {1}),
    ],
)
def test_nops_share_a_slot_with_each_other_or_with_what_is_before(text, nops, trailed, shared):
    found = trailing_nops(block(text).instructions, CoreBehaviour(trailed=trailed, nops=nops))
    assert found == shared


def test_a_measured_core_has_as_many_in_a_slot_as_its_front_end_was_found_to_take():
    assert measured_behaviour((), nops=2, isa="x86-64").nops == 2
    assert measured_behaviour((), isa="x86-64").nops == 1
