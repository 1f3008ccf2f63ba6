"""Searches for disagreements: what is drawn, how it is shrunk, and what it is called."""

from __future__ import annotations

import random
from functools import cache

import msgspec
import pytest

from cyclescope.errors import UsageError
from cyclescope.isa.table import load_table
from cyclescope.kernel.instruction import Instruction
from cyclescope.model.machine import FormCost, Operation
from cyclescope.model.ports import issue_throughput
from cyclescope.report.predictions.search import search_json, search_text
from cyclescope.session.blocks import decoded
from cyclescope.session.predictors import Analytic
from cyclescope.session.search import finding
from cyclescope.session.search.drawing import (
    BlockDraw,
    apart,
    code_of,
    elsewhere,
    is_fit,
    padded,
    usual_forms,
)
from cyclescope.session.search.finding import DisagreementSearch, Variation
from cyclescope.session.search.judges import PredictorJudge
from tests.support.code.blocks import toy

TABLE = load_table("x86-64")
ADD, SUB, IMUL = (TABLE[name] for name in ("ADD_01 (R64, R64)", "SUB_29 (R64, R64)", "IMUL (R64, R64)"))
LOAD, STORE = TABLE["MOV (R64, M64)"], TABLE["MOV (M64, R64)"]


@cache
def machine():
    """The small machine, with throughputs, as measured ones have; SUB takes a cycle, nobody knows why."""
    found = toy()
    told = {name: issue_throughput(cost, found.core) for name, cost in found.forms.items()}
    cycles = {name: one[0] if one else 1.0 for name, one in told.items()} | {SUB.id: 1.0}
    forms = {n: msgspec.structs.replace(cost, throughput=cycles[n]) for n, cost in found.forms.items()}
    return msgspec.structs.replace(found, forms=forms)


def fresh_seed():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - to repeat it
    return seed


def judge(model, name="other"):
    found = PredictorJudge(Analytic(model), "x86-64")
    found.name = name
    return found


def searched(other, count=120, seed=1, most=5):
    draw = BlockDraw(TABLE, machine(), [ADD.id, SUB.id, IMUL.id, LOAD.id, STORE.id], seed)
    search = DisagreementSearch(draw, judge(machine(), "toy"), judge(other), lambda what, done, of: None)
    return search.findings(count, most)


def test_blocks_are_each_another_one_and_read_as_they_were_drawn():
    seed = fresh_seed()
    draw = BlockDraw(TABLE, machine(), [ADD.id], seed)
    blocks = draw.blocks(200)
    assert len({code_of(block) for block in blocks}) == 200
    for block in blocks:
        found = decoded(code_of(block))
        assert [one.form.id for one in found] == [one.form.id for one in block]
    again = BlockDraw(TABLE, machine(), [ADD.id], seed).blocks(200)
    assert [code_of(block) for block in again] == [code_of(block) for block in blocks]
    assert {len(block) for block in blocks} == set(range(1, 8))
    share = sum(one.form.id == ADD.id for block in blocks for one in block) / sum(map(len, blocks))
    assert 0.6 < share < 0.8


def test_addresses_stay_what_they_are():
    """No drawn instruction writes a register that others have as a base."""
    for block in BlockDraw(TABLE, machine(), [], fresh_seed()).blocks(150):
        read = [one for one in decoded(code_of(block)) if one.form is not None]
        written = {
            register[1] for one in read for op, register in zip(one.form.operands, one.registers, strict=True)
            if op.write and register and register[0] in ("R64", "R32", "R16", "R8l")
        }  # fmt: skip
        bases = {a.base[1] for one in read for a in one.memory if a is not None and a.base is not None}
        assert not written & bases


def test_slow_microcoded_and_strange_forms_are_not_drawn():
    slow = machine()
    forms = {
        ADD.id: msgspec.structs.replace(slow.forms[ADD.id], throughput=8.1),
        SUB.id: msgspec.structs.replace(slow.forms[SUB.id], slots=2.1),
        IMUL.id: msgspec.structs.replace(slow.forms[IMUL.id], throughput=7.9, slots=2.0),
        "DIV (R64)": slow.forms["DIV (R64)"], "PUSH (R64)": slow.forms["PUSH (R64)"],
        "REP_MOVSB": FormCost(1.0, (), throughput=1.0), "JZ (Rel8)": FormCost(1.0, (), throughput=1.0),
    }  # fmt: skip
    draw = BlockDraw(TABLE, msgspec.structs.replace(slow, forms=forms), [], 1)
    assert {one.form.id for block in draw.blocks(20) for one in block} == {IMUL.id}


def test_models_that_nobody_timed_are_drawn_from_by_what_their_ports_allow():
    untimed = toy()
    assert all(cost.throughput is None for cost in untimed.forms.values())
    slow = msgspec.structs.replace(untimed.forms[IMUL.id], operations=(Operation((0,), 1, 8.1),))
    forms = {ADD.id: untimed.forms[ADD.id], IMUL.id: slow}
    draw = BlockDraw(TABLE, msgspec.structs.replace(untimed, forms=forms), [], 1)
    assert {one.form.id for block in draw.blocks(20) for one in block} == {ADD.id}
    with pytest.raises(UsageError, match=f"{untimed.name} has no quick instruction"):
        BlockDraw(TABLE, msgspec.structs.replace(untimed, forms={IMUL.id: slow}), [], 1)


def test_a_form_that_costs_more_is_found_alone():
    forms = dict(machine().forms)
    cost = forms[SUB.id]
    forms[SUB.id] = msgspec.structs.replace(cost, operations=cost.operations * 8)
    result = searched(msgspec.structs.replace(machine(), forms=forms), count=200)
    best = result.findings[0]
    assert best.block.text.startswith("sub ") and ";" not in best.block.text
    assert best.effect == "what SUB costs: its ports, slots or latencies"
    assert best.seen > 3 and result.drawn == result.judged == 200 and result.far >= best.seen
    assert (result.model, result.reference) == ("toy", "other")
    assert best.block.error < 0 and best.block.is_far


def test_a_latency_is_found_by_a_result_that_is_waited_for():
    forms = dict(machine().forms)
    cost = forms[IMUL.id]
    forms[IMUL.id] = msgspec.structs.replace(
        cost, latencies={k: 9.0 for k in cost.latencies if k != "op1->op1"} | {"op1->op1": 3.0}
    )
    result = searched(msgspec.structs.replace(machine(), forms=forms), count=400, most=12)
    found = [one for one in result.findings if "imul" in one.block.text and ";" in one.block.text]
    assert any(one.effect.startswith("results that others wait for") for one in found)


def test_nothing_is_found_where_both_say_the_same():
    result = searched(machine(), count=60)
    assert (result.far, result.findings) == (0, ())
    assert "60 blocks drawn, 60 with both answers: 0 of them further off than noise" in search_text(result)


def test_variants_change_one_thing():
    add, load = Instruction(ADD, (0, 1)), Instruction(LOAD, (0, 6), 8)
    assert all(len(one.code) >= 5 for one in padded((add, load), 5))
    chain = (Instruction(ADD, (0, 1)), Instruction(IMUL, (2, 0)))
    first, second = decoded(code_of(apart(chain)))
    assert first.registers[0] != second.registers[1] and first.registers[0] != second.registers[0]
    assert first.registers[1] == second.registers[1]
    assert apart(tuple(Instruction(ADD, (0, 1)) for _ in range(7))) is None
    same = (Instruction(STORE, (6, 0), 8), Instruction(LOAD, (1, 6), 8))
    addresses = [next(filter(None, one.memory)) for one in decoded(code_of(elsewhere(same)))]
    assert addresses[0].displacement != addresses[1].displacement
    assert usual_forms([code_of(chain)], "x86-64") == {ADD.id, IMUL.id}
    assert is_fit("x86-64") and not is_fit("aarch64")


@pytest.mark.parametrize(
    ("gone", "effect"),
    [
        ((Variation.LONG_ENCODINGS, Variation.INDEPENDENT), "how the front end gets short encodings"),
        ((Variation.OTHER_PLACES, Variation.INDEPENDENT), "accesses to the same place in memory"),
        ((Variation.INDEPENDENT, Variation.AS_A_LOOP), "results that others wait for"),
        ((Variation.AS_A_LOOP,), "copies alone"), ((), "ports or slots that these take together"),
    ],
)  # fmt: skip
def test_what_experiments_speak_for(gone, effect):
    block = (Instruction(ADD, (0, 1)), Instruction(IMUL, (2, 0)))
    off = finding.Disagreement("", "", 1.0, 2.0)
    tried = [
        finding.SearchExperiment(change, off, change not in gone)
        for change in (
            Variation.LONG_ENCODINGS,
            Variation.INDEPENDENT,
            Variation.OTHER_PLACES,
            Variation.AS_A_LOOP,
        )
    ]
    assert finding.effect_of(block, tried).startswith(effect)
    unknown = [msgspec.structs.replace(one, found=None) for one in tried]
    assert finding.effect_of(block, unknown) == "ports or slots that these take together"


@pytest.mark.parametrize(
    ("predicted", "taken", "far"),
    [
        (1.0, 1.13, False),
        (1.0, 1.15, True),
        (1.13, 1.0, True),
        (1.11, 1.0, False),
        (0.28, 0.21, False),
        (0.3, 0.21, True),
    ],
)
def test_how_far_is_further_than_noise(predicted, taken, far):
    assert finding.Disagreement("", "", predicted, taken).is_far is far


@pytest.mark.parametrize(
    ("by", "part", "same"), [(1.5, 0.5, True), (1.2, 0.5, False), (0.8, 0.5, False), (2.0, 1.0, True)]
)
def test_what_shows_the_same(by, part, same):
    like = finding.Disagreement("", "", 2.0, 1.0)
    assert finding._is_same(finding.Disagreement("", "", by, 1.0), like, part) is same


def test_reports_have_all_of_it():
    forms = dict(machine().forms)
    cost = forms[SUB.id]
    forms[SUB.id] = msgspec.structs.replace(cost, operations=cost.operations * 8)
    result = searched(msgspec.structs.replace(machine(), forms=forms))
    text = search_text(result)
    assert (
        "1. sub" in text and "drawn blocks came down to it" in text and "looks like: what SUB costs" in text
    )
    assert "longer encodings: the same" in text
    assert msgspec.json.decode(search_json(result))["findings"][0]["effect"].startswith("what SUB costs")
