"""What blocks are drawn of, and how far a search goes, from both sides of each limit."""

from __future__ import annotations

import itertools
import math
import random

import msgspec
import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.instruction import Instruction
from cyclescope.model.machine import FormCost
from cyclescope.session.blocks import decoded
from cyclescope.session.search.drawing import BlockDraw, _side, code_of
from cyclescope.session.search.finding import DisagreementSearch, Variation
from tests.support.code.blocks import toy

TABLE = load_table("x86-64")
ADD, IMUL = TABLE["ADD_01 (R64, R64)"], TABLE["IMUL (R64, R64)"]
VECTORS = ("ADDPS (XMM, XMM)", "VADDPS (XMM, XMM, XMM)")


def draw(*names):
    """Of these forms alone, with a fresh seed."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - to repeat it
    forms = {name: FormCost(1.0, (), throughput=1.0) for name in names}
    return BlockDraw(TABLE, msgspec.structs.replace(toy(), forms=forms), names, seed)


# --- what is drawn ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("ADD_01 (R64, R64)", {0, 1, 2, 3, 8, 9}), ("ADD_00 (R8h, R8h)", {0, 1, 2, 3}),
        ("ADDPS (XMM, XMM)", set(range(6))), ("KANDW (K, K, K)", {1, 2, 3}), ("PADDB (MM, MM)", {0, 1, 2}),
    ],
)  # fmt: skip
def test_blocks_have_few_registers_so_that_results_are_waited_for(name, numbers):
    drawn = [one for block in draw(name).blocks(200) for one in block]
    assert {number for one in drawn for number in one.registers} == numbers


def test_what_reads_as_another_form_is_not_drawn():
    """Reserved NOPs have the codes of what MPX has."""
    drawn = [one for block in draw(ADD.id, "RESERVEDNOP_0F1B (R16, R16)").blocks(50) for one in block]
    assert {one.form.id for one in drawn} == {ADD.id}


def test_accesses_go_to_four_places_of_four_registers():
    drawn = [one for block in draw("MOV (R64, M64)").blocks(200) for one in block]
    addresses = [next(filter(None, one.memory)) for one in decoded(b"".join(one.code for one in drawn))]
    assert {address.base[1] for address in addresses} == {6, 7, 13, 14}
    assert {address.displacement for address in addresses} == {0, 8, 16, 24}


def test_one_of_nine_blocks_mixes_instructions_before_and_since_avx():
    """As compilers do not: what one leaves of registers the other may wait for."""
    sides = [{_side(one.form) for one in b} for b in draw(*VECTORS).blocks(6000) if len(b) > 4]
    assert 0.078 < sum(len(some) == 2 for some in sides) / len(sides) < 0.145


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("ADDPS (XMM, XMM)", "legacy"), ("VADDPS (XMM, XMM, XMM)", "vex"), ("KANDW (K, K, K)", "vex"),
        ("ADD_01 (R64, R64)", ""), ("ANDN (R64, R64, R64)", ""),
    ],
)  # fmt: skip
def test_masks_are_of_those_since_avx(name, side):
    """Upper halves are set where masks are used."""
    assert _side(TABLE[name]) == side


@pytest.mark.parametrize(("vain", "drawn"), [(38, True), (40, False)])
def test_forty_draws_for_registers_that_can_be_encoded(monkeypatch, vain, drawn):
    some, tries = draw(ADD.id), itertools.count()
    with_registers = some._with_registers
    monkeypatch.setattr(some, "_with_registers", lambda f: None if next(tries) < vain else with_registers(f))
    if drawn:
        assert some._instruction("").form is ADD
    else:
        with pytest.raises(AssertionError, match="no form can be encoded"):
            some._instruction("")


# --- how far a search goes ------------------------------------------------------------------------------


class Given:
    """Blocks that are given in place of drawn ones, and forms like each."""

    def __init__(self, *blocks, like=()):
        self._blocks, self._like = blocks, like

    def blocks(self, count):
        return list(self._blocks)

    def like(self, one, most):
        return list(self._like[:most])


class Told:
    """A judge that says what it is told of code, as copies and as loops, and else one cycle."""

    def __init__(self, name, copies=None, loops=None):
        self.name, self._copies, self._loops = name, copies or {}, loops or {}
        self.asked = []

    def cycles(self, codes, loop=False):
        self.asked += codes
        return [(self._loops if loop else self._copies).get(code, 1.0) for code in codes]


def found(blocks, like=(), most=1, **told):
    model = Told("model", **told)
    search = DisagreementSearch(Given(*blocks, like=like), model, Told("other"), lambda *_: None)
    return search.findings(len(blocks), most), model


def part(share):
    """Cycles that are off by such a part of twice."""
    return math.exp(share * math.log(2))


BLOCK = (Instruction(ADD, (0, 1)), Instruction(IMUL, (2, 3)))


@pytest.mark.parametrize(("share", "left"), [(0.75, 1), (0.65, 2)])
def test_a_smaller_block_has_seven_tenths_of_the_disagreement(share, left):
    result, _ = found([BLOCK], copies={code_of(BLOCK): 2.0, code_of(BLOCK[:1]): part(share)})
    assert len(decoded(bytes.fromhex(result.findings[0].block.code))) == left


@pytest.mark.parametrize(("share", "shows"), [(0.55, True), (0.45, False)])
def test_a_variant_shows_half_of_it(share, shows):
    code = code_of(BLOCK[:1])
    result, _ = found([BLOCK[:1]], copies={code: 2.0}, loops={code: part(share)})
    experiments = {one.change: one.shows for one in result.findings[0].experiments}
    assert experiments[Variation.AS_A_LOOP] is shows


def test_four_times_as_many_blocks_are_made_smaller_as_are_told():
    blocks = [(Instruction(ADD, pair),) for pair in itertools.permutations(range(4), 2)]
    result, _ = found(blocks, copies={code_of(block): 2.0 for block in blocks})
    assert (result.far, result.findings[0].seen) == (12, 4)


def test_each_instruction_is_replaced_by_three_others():
    names = ("SUB", "AND", "OR", "XOR", "CMP", "ADC", "SBB")
    pairs = [form for form in TABLE if form.id.endswith("(R64, R64)")]
    others = [Instruction(next(f for f in pairs if f.mnemonic == name), (0, 1)) for name in names]
    result, _ = found([BLOCK[:1]], others, copies={code_of(BLOCK[:1]): 2.0})
    assert result.findings[0].unlike == names[:3]


def test_long_encodings_have_five_bytes():
    """No front end gets too few of them, and none is slowed by prefixes."""
    _, model = found([BLOCK[:1]], copies={code_of(BLOCK[:1]): 2.0})
    padded = [code for code in model.asked if len(code) > len(code_of(BLOCK[:1]))]
    assert [len(code) for code in padded] == [5]
