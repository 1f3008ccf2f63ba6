"""What a draft of a scheduling model costs a prediction, said with what it lacks."""

from __future__ import annotations

import msgspec

from benchmarks.predicting.draft import compare, drafted, without
from cyclescope.model.facts import Fact
from cyclescope.model.machine import FormCost, Operation
from tests.support.made.models import exchanged

MUL = "IMUL (R64, R64)"
LATENCIES = {"op1->op1": 2.6, "op2->op1": 2.6}


def model():
    forms = {
        MUL: FormCost(
            1.4, (Operation((0,), 1, 1.2),), LATENCIES, 1.2, idiom="zero", resources={"front": 0.25}
        )
    }
    core = msgspec.structs.replace(exchanged(1).core, fetch=16)
    return msgspec.structs.replace(exchanged(1), forms=forms, facts=(Fact("pages", "a", "4"),), core=core)


def test_a_draft_has_whole_cycles_and_nothing_of_the_core():
    found = drafted(model())
    assert found.forms[MUL].latencies["op1->op1"] == 3
    assert not found.facts
    assert not found.core.fetch


def test_each_thing_is_lost_alone():
    """Also moves and idioms, where LLVM has no words for them."""
    whole = model()
    cost = msgspec.structs.replace(whole.forms[MUL], eliminated=True)
    whole = msgspec.structs.replace(whole, forms={MUL: cost})
    lost = without(whole, drafted(whole))
    changed = {
        name: {
            field
            for field in ("facts", "core", "forms", "ports")
            if getattr(one, field) != getattr(whole, field)
        }
        for name, one in lost.items()
    }
    assert sorted(map(sorted, changed.values()))[:2] == [["core"], ["facts"]]
    forms = [one.forms[MUL] for name, one in lost.items() if "forms" in changed[name]]
    assert [one.latencies["op1->op1"] for one in forms].count(3) == 1
    assert [one.slots for one in forms].count(1) == 1
    assert [one.operations[0].cycles for one in forms].count(1) == 1
    assert [one.idiom for one in forms].count("") == 1
    assert [bool(one.resources) for one in forms].count(False) == 1


def test_a_file_of_blocks_is_judged(tmp_path, capsys):
    """A chain of a multiplication: 2.6 cycles measured, 3 by the draft."""
    path = tmp_path / "timed.csv"
    path.write_text("hex,cycles,clean\n480fafc1,2.6,1\n")
    (check,) = compare(model(), path, "")
    assert check.found == "15.4 %"
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if "the whole model" in line]
    assert [float(row[4]) for row in rows] == [0.0]
