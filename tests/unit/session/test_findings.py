"""What is found in a machine's results: what is there, and nothing that is within the noise."""

from __future__ import annotations

import json

import msgspec
import pytest

from cyclescope.infer.timing.results import FormTiming, Latency, Throughput
from cyclescope.isa.table import load_table
from cyclescope.model.machine import MEASURED, Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.remarks.timing import Idiom
from cyclescope.report.findings import SHOWN, finding_rows, findings_json, findings_text
from cyclescope.session.findings import findings
from cyclescope.session.subjects import Subject

SHLD, ADC, MUL = "SHLD (R64, R64, I8)", "ADC_11 (R64, R64)", "IMUL (R64, R64)"

MANY = [form.id for form in load_table("x86-64") if form.id.endswith(" (R64, R64)")][: SHOWN + 3]


def latency(source="op1", target="op1", cycles=3.0, **more):
    parts = {"kind": "exact", "spread": 0.02, "confidence": "high"} | more
    return Latency(source, target, cycles, cycles, **parts)


def timing(form=SHLD, *latencies, same=None, value=1.0, **more):
    variants = {"plain x8": value} | ({} if same is None else {"same register": same})
    throughput = Throughput(value, 0.01, "exact", variants, confidence=more.pop("confidence", "high"))
    return FormTiming(form, {}, "ok", throughput, latencies, **more)


def subject(*timings, costs=None):
    model = MachineModel("m", "x86-64", Provenance(MEASURED), Core(4), ("0", "1", "5"), costs or {})
    return Subject(model, {one.id: one for one in timings})


def found(key, one, *others):
    (group,) = [group for group in findings(one, others) if group.key.startswith(key)]
    return [finding.text for finding in group.findings]


def test_pairs_that_differ():
    slow = timing(SHLD, latency("op1", cycles=3.0), latency("op2", cycles=4.0))
    assert found("pairs", subject(slow)) == ["op2 -> op1 takes 4 cycles, op1 -> op1 3"]
    assert found("pairs", subject(timing(SHLD, latency("op1"), latency("op2", cycles=3.6)))) != []


@pytest.mark.parametrize(
    "other",
    [
        latency("op2", cycles=3.45),
        latency("op2", cycles=4.0, confidence="low"),
        latency("op2", cycles=4.0, spread=0.6),
        latency("op2", cycles=4.0, kind="upper_bound"),
        latency("op2", "flags.CF", 4.0),
        latency("op2", cycles=4.0, convention="loads"),
    ],
)
def test_what_is_no_pair_that_differs(other):
    assert found("pairs", subject(timing(SHLD, latency("op1"), other))) == []


def test_one_register_for_all_operands():
    chain = [latency("op1"), latency("op2")]
    assert found("same", subject(timing(SHLD, *chain, same=1.0))) != []
    assert found("same", subject(timing(SHLD, *chain, same=3.2))) == []
    assert found("same", subject(timing(SHLD, *chain, same=1.0, idiom=Idiom.BREAKING))) == [], (
        "said elsewhere"
    )


def test_idioms_that_no_manual_lists_come_first():
    told = subject(timing("XOR_31 (R64, R64)", idiom=Idiom.ZERO), timing(SHLD, idiom=Idiom.BREAKING))
    first, second = found("idioms", told)
    assert "no manual" in first
    assert second == Idiom.ZERO


def test_false_dependencies():
    waits = timing(MUL, latency("op1.old", "op1", 4.0))
    free = timing(ADC, latency("op1.old", "op1", 0.0))
    assert found("outputs", subject(waits, free)) == ["waits 4 cycles for the old value of op1"]


def test_consumers():
    late = timing(MUL, latency(bypass={"fp": 5.0, "integer": 3.0}))
    assert found("consumers", subject(late)) == ["op1 -> op1 3 cycles, 5 to fp instructions"]
    assert found("consumers", subject(timing(MUL, latency(bypass={"fp": 3.4})))) == []


@pytest.mark.parametrize(
    ("value", "ports", "slots", "is_found"),
    [(1.0, 0.5, 1.0, True), (1.0, 0.97, 1.0, False), (1.0, 0.5, 4.0, False), (1.0, 0.5, None, False)],
)
def test_hidden_units(value, ports, slots, is_found):
    one = timing(MUL, value=value, ports="1*p0", ports_confidence="high", ports_throughput=ports, slots=slots)
    assert bool(found("hidden", subject(one))) is is_found
    low = msgspec.structs.replace(one, ports_confidence="low")
    assert found("hidden", subject(low)) == []


def test_what_running_alone_would_get_wrong():
    two = FormCost(operations=(Operation((0, 1, 2), 2), Operation((2,), 1)))
    one = FormCost(operations=(Operation((0, 1, 2), 2),))
    apart = FormCost(operations=(Operation((0,), 1), Operation((1,), 1)))
    uneven = FormCost(operations=(Operation((0, 1, 2), 1), Operation((2,), 3)))
    told = subject(costs={MUL: two, ADC: one, SHLD: apart, "ADD_01 (R64, R64)": uneven})
    assert found("isolation", told) == ["1*p5+2*p015, and not 3*p015"], "as `notation` has it"


def test_published_numbers_are_explained_by_pair_and_by_register():
    costs = {
        SHLD: FormCost(latencies={"op1->op1": 3.0, "op2->op1": 4.0}),
        MUL: FormCost(latencies={"op1->op1": 3.0}),
        ADC: FormCost(latencies={"op1->op1": 1.0}),
    }
    theirs = {
        SHLD: FormCost(latencies={"op1->op1": 4.0}),
        MUL: FormCost(latencies={"op1->op1": 1.0}),
        ADC: FormCost(latencies={"op1->op1": 7.0}),
    }
    other = MachineModel("other", "x86-64", Provenance(MEASURED), Core(4), (), theirs)
    told = found("against", subject(timing(MUL, same=1.0), costs=costs), other)
    assert told[-1].endswith("unexplained"), "although it is the farthest apart"
    first, second, last = sorted(told)
    assert first.endswith("1 cycles here, 7 cycles there, unexplained")
    assert second.endswith("which is what it takes here with one register")
    assert last.endswith("which is what op2->op1 takes here")


def against(ours, theirs, form=ADC):
    """What is told of a form with a published number, at most so many cycles or from so many to so many."""
    other = MachineModel("other", "x86-64", Provenance(MEASURED), Core(4), (), {form: theirs})
    return found("against", subject(timing(form), costs={form: ours}), other)


def test_a_published_bound_is_no_number_of_its_own():
    ours = FormCost(latencies={"op1->op1": 2.0, "op2->op1": 1.0})
    bound = FormCost(ranges={"op1->op1": (0.0, 1.04)})
    assert against(ours, bound) == [
        "op1->op1 2 cycles here, at most 1.04 cycles there, which is what op2->op1 takes here"
    ]
    ours = FormCost(latencies={"op1->op1": 9.0})
    assert against(ours, FormCost(ranges={"op1->op1": (2.0, 4.0)})) == [
        "op1->op1 9 cycles here, 2 to 4 cycles there, unexplained"
    ]
    assert against(ours, FormCost(ranges={"op1->op1": (1.9, 2.1)})) == [
        "op1->op1 9 cycles here, 2 cycles there, unexplained"
    ]


def test_what_a_comparison_explains_is_not_unexplained():
    ours = FormCost(latencies={"op1->op1": 9.0}, ranges={"op1->op1": (1.0, 9.0)})
    (told,) = against(ours, FormCost(latencies={"op1->op1": 4.0}))
    assert told.endswith("9 cycles here, 4 cycles there, within what is proved without a convention")


def test_a_model_has_no_findings_and_says_why():
    text = findings_text(findings(subject()))
    assert "none: the source has no measurements of its own" in text


def test_text_and_json():
    chains = [(form, latency(), latency("op2", cycles=9.0 + n)) for n, form in enumerate(MANY)]
    groups = findings(subject(*(timing(*one) for one in chains)))
    text = findings_text(groups)
    pairs = groups[0]
    assert pairs.total == len(MANY) > SHOWN
    assert f"and {len(MANY) - SHOWN} more" in text
    assert pairs.findings[0].form == MANY[-1], "the farthest apart first"
    data = json.loads(findings_json("m", groups))
    assert data["groups"][0]["total"] == len(MANY)
    assert finding_rows(groups)[0]["kinds"] == len(MANY)
