"""What a fact buys is what predictions lose without it."""

from __future__ import annotations

import msgspec

from benchmarks.predicting.ablation import NOTHING, ablated, ablation
from cyclescope.model.facts import Fact
from cyclescope.model.machine import FormCost, Operation
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
    facts = (Fact("pages", "a", "4"), Fact("banks", "b", "1"), Fact("banks", "c", "1"))
    core = msgspec.structs.replace(exchanged(1).core, binding="evenly", single=(0,))
    return msgspec.structs.replace(exchanged(1), forms={MUL: cost}, facts=facts, core=core)


def test_each_thing_is_taken_away_alone():
    """And the model itself is what all others are compared with."""
    whole = model()
    found = dict(ablated(whole))
    assert found.pop(NOTHING) == whole
    assert [fact.subject for fact in found["probe banks"].facts] == ["a"]
    assert [fact.subject for fact in found["probe pages"].facts] == ["b", "c"]
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
