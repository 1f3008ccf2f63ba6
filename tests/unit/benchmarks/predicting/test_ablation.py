"""What a fact buys is what predictions lose without it."""

from __future__ import annotations

import msgspec

from benchmarks.predicting.ablation import NOTHING, PARTS, ablated, ablation
from cyclescope.model.facts import Fact, fused_subject, stores_loaded
from cyclescope.model.machine import FormCost, Operation
from cyclescope.probe.catalogue import NEEDED, PROBES
from tests.support.made.models import exchanged

MUL = "IMUL (R64, R64)"


def model():
    cost = FormCost(
        1,
        (Operation((0,), 1, 1),),
        {"op1->op1": 1, "op2->op1": 1},
        4.0,
        resources={"front": 3.0},
        indexed_throughput=8.0,
    )
    facts = (
        Fact("pages", "a", "4"), Fact("banks", "b", "1"), Fact("banks", stores_loaded(2), "1"),
        Fact("fusion", fused_subject(MUL, "NOP (M32)"), "fused"),
    )  # fmt: skip
    core = msgspec.structs.replace(
        exchanged(1).core, binding="evenly", single=(0,), whole=True, nops=2, fetch=16.0
    )
    return msgspec.structs.replace(exchanged(1), forms={MUL: cost}, facts=facts, core=core)


def gone(whole, other):
    """Subjects of the answers that a model lacks."""
    return {fact.subject for fact in whole.facts} - {fact.subject for fact in other.facts}


def test_each_thing_is_taken_away_alone():
    """And the model itself is what all others are compared with."""
    whole = model()
    found = dict(ablated(whole))
    assert found.pop(NOTHING) == whole
    every = {fact.subject for fact in whole.facts}
    assert gone(whole, found["probe banks"]) == {"b", stores_loaded(2)}
    assert gone(whole, found["probe pages"]) == {"a"}
    assert gone(whole, found["stores that are loaded again"]) == {stores_loaded(2)}
    assert gone(whole, found["NOPs behind others"]) == gone(whole, found["probe fusion"]) == every - {
        "a", "b", stores_loaded(2)
    }  # fmt: skip
    assert "loads across lines" not in found, "of which nothing was asked"
    assert not found["instructions that are not divided"].core.whole
    assert found["NOPs that share slots"].core.nops == 1
    assert found["bytes of code in a cycle"].core.fetch == 0
    assert (found["how ports are chosen"].core.binding, found["how ports are chosen"].core.single) == ("", ())
    assert found["shared resources"].forms[MUL].resources == {}
    assert found["throughputs with an index"].forms[MUL] == msgspec.structs.replace(
        whole.forms[MUL], indexed_throughput=None
    )
    bare = found["throughputs"].forms[MUL]
    assert (bare.throughput, bare.indexed_throughput) == (None, None)
    for one in found.values():
        kept = [getattr(one, name) == getattr(whole, name) for name in ("facts", "core", "forms")]
        assert kept.count(False) == 1


def test_what_a_fact_buys_is_printed(tmp_path, capsys):
    """Four cycles by a throughput that nothing else explains, one without it."""
    path = tmp_path / "timed.csv"
    path.write_text("hex,cycles,clean\n480fafc1,4,1\n480fafc2,4,1\n")
    (check,) = ablation(model(), path, "analytic")
    assert check.found == "0.00 %"
    lines = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    rows = {cells[0].strip(): cells[1:] for cells in lines}
    assert next(name for name in rows if name.split()[0] in ("throughputs", "probe")) == "throughputs"
    assert float(rows["throughputs"][1]) == 75.0
    assert (int(rows["throughputs"][-1]), int(rows["probe banks"][-1])) == (2, 0)


def test_moves_idioms_slots_and_latencies_of_forms_are_taken_away_too():
    move = FormCost(0, (), {"op2->op1": 0.0}, 0.2, eliminated=True)
    zero = FormCost(2, (Operation((0,), 1, 1),), {"op1->op1": 1, "op2->op1": 3}, 0.25, idiom="zero")
    whole = msgspec.structs.replace(model(), forms={MUL: zero, "MOV": move})
    found = dict(ablated(whole))
    assert not found["moves that the renamer does"].forms["MOV"].eliminated
    assert found["moves that the renamer does"].forms[MUL] == zero
    assert found["idioms"].forms[MUL].idiom == ""
    assert found["slots of forms"].forms[MUL].slots == 1
    assert found["latencies of single pairs"].forms[MUL].latencies == {"op1->op1": 3, "op2->op1": 3}


def test_names_of_things_are_of_subjects_that_probes_have():
    """Else their rows would say that they buy nothing."""
    asked = {case.subject for name in NEEDED for case in PROBES[name].cases("x86-64")}
    assert {name for name, subjects in PARTS.items() if not subjects & asked} == set()
