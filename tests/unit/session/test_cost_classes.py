"""The compiler's view: what a model takes for the same and measurements do not."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.results import FormTiming, Latency, Throughput
from cyclescope.model.machine import EXTRACTED, MEASURED, Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.report.comparison.classes import CLASSES_INDEX, class_files
from cyclescope.session.cost_classes import CostClass, Difference, differing_classes, with_kernels
from cyclescope.session.subjects import Subject
from tests.support.files.stores import experiment, filled, measurement

MUL, ADC, ADD, SUB = "IMUL (R64, R64)", "ADC_11 (R64, R64)", "ADD_01 (R64, R64)", "SUB_29 (R64, R64)"


def machine(name, kind=MEASURED, **latencies):
    ids = {"mul": MUL, "adc": ADC, "add": ADD, "sub": SUB}
    operations = (Operation((0,)),)
    costs = {
        ids[key]: FormCost(1, operations, {"op2->op1": cycles}, 1.0) for key, cycles in latencies.items()
    }
    return MachineModel(name, "x86-64", Provenance(kind, f"source of {name}"), Core(4), ("0",), costs)


def subject(model, **more):
    def timing(name, cost):
        latency = Latency("op2", "op1", cost.latencies["op2->op1"], cost.latencies["op2->op1"],
                          **({"kind": "exact", "spread": 0.01, "confidence": "high"} | more))  # fmt: skip
        return FormTiming(name, {}, "ok", Throughput(1.0, 0.0, "exact", confidence="high"), (latency,))

    return Subject(model, {name: timing(name, cost) for name, cost in model.forms.items()})


OURS = machine("cpu", mul=3.0, adc=1.0, add=1.0, sub=1.0)
THEIRS = machine("model", EXTRACTED, mul=4.0, adc=2.0, add=2.0, sub=1.0)


def test_forms_of_one_cost_are_one_class():
    first, second = differing_classes(subject(OURS), THEIRS)
    assert {one.form for one in first.differences} == {ADC, ADD}
    assert (first.forms, first.differing) == (2, 2)
    assert first.cost == "latency 2, 1 micro-operation, 1*p0"
    assert [(one.form, one.what, one.measured, one.modelled) for one in second.differences] == [
        (MUL, "op2->op1", (3.0, 3.0), (4.0, 4.0))
    ]


@pytest.mark.parametrize("more", [{"confidence": "low"}, {"kind": "interval"}, {"convention": "loads"}])
def test_only_what_is_sure_is_held_against_a_model(more):
    assert differing_classes(subject(OURS, **more), THEIRS) == []


def test_the_four_farthest_forms_have_their_kernels(tmp_path):
    names = [f"FORM {n}" for n in range(7)]
    some = [(experiment(form=name, source="op2", target="op1"), measurement(3.0)) for name in names]
    apart = tuple(
        Difference(name, "", "op2->op1", (3.0, 3.0), (4.0 + n, 4.0 + n), "high")
        for n, name in enumerate(names)
    )
    found = with_kernels(
        CostClass("cost", 7, apart), Subject(OURS, path=filled(tmp_path / "a.sqlite", *some))
    )
    assert [one.form for one in found.differences if one.kernel] == names[-4:]


def test_texts():
    found = differing_classes(subject(OURS), THEIRS)
    files = class_files(subject(OURS), THEIRS, found)
    assert set(files) == {CLASSES_INDEX, "001-ADC64rr.md", "002-IMUL64rr.md"}
    assert "3 forms in 2 texts" in files[CLASSES_INDEX]
    text = files["002-IMUL64rr.md"]
    assert "| IMUL64rr | IMUL (R64, R64) | op2->op1 | 4 | 3 | high |" in text
    assert "source of cpu" in text
