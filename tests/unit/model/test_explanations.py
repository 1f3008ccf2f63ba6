"""What explains that two sources have another number."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.comparison.agreement import Quantity, compare
from cyclescope.model.comparison.explanations import Reason
from cyclescope.model.machine import EXTRACTED, MEASURED, PUBLISHED, FormCost, Operation
from tests.support.made.models import exchanged

FORM = "IMUL (R64, R64)"
LOADING = "ADD (R64, M64)"
ONE, TWO = Operation((0,)), Operation((0, 1))


def reasons(first, second, form=FORM, origin=MEASURED):
    """The reasons of all differences of a form, by quantity or pair, from something else of this `origin`."""
    model = exchanged(1)
    here, there = (
        msgspec.structs.replace(
            model,
            name=name,
            forms={form: cost},
            provenance=msgspec.structs.replace(model.provenance, kind=kind),
        )
        for name, cost, kind in (("here", first, MEASURED), ("there", second, origin))
    )
    found = compare(here, there)
    return {one.pair or one.quantity: one.reason for one in found.comparisons if one.reason is not None}


def latencies(**pairs):
    return {name.replace("_", "->"): cycles for name, cycles in pairs.items()}


def test_what_agrees_has_no_reason():
    cost = FormCost(1.0, (ONE,), latencies(op1_op1=3.0), 1.0)
    assert reasons(cost, cost) == {}


def test_a_difference_that_nothing_explains_is_open():
    assert reasons(
        FormCost(latencies=latencies(op1_op1=3.0)), FormCost(latencies=latencies(op1_op1=4.0))
    ) == {"op1->op1": Reason.OPEN}
    assert reasons(FormCost(throughput=1.0), FormCost(throughput=2.0)) == {Quantity.THROUGHPUT: Reason.OPEN}
    count = FormCost(operations=(ONE,), throughput=1.0)
    more, wider = (FormCost(operations=found, throughput=1.0) for found in ((ONE, ONE), (TWO,)))
    assert reasons(count, more) == {Quantity.OPERATIONS: Reason.OPEN}
    assert reasons(count, wider) == {Quantity.PORTS: Reason.OPEN}


def test_a_throughput_is_that_of_the_fastest_sequence():
    """One that was measured proves that it can be so fast; a published one that is slower proves nothing."""
    slow, fast = FormCost(throughput=2.0), FormCost(throughput=1.0)
    assert reasons(fast, slow, origin=PUBLISHED) == {Quantity.THROUGHPUT: Reason.SLOWER}
    assert reasons(slow, fast, origin=PUBLISHED) == {Quantity.THROUGHPUT: Reason.OPEN}
    assert reasons(fast, slow) == {Quantity.THROUGHPUT: Reason.OPEN}, "two of ours should be the same"


@pytest.mark.parametrize(("there", "reason"), [(4.0, Reason.CONVENTION), (6.0, Reason.OPEN)])
def test_what_is_proved_without_a_convention(there, reason):
    first = FormCost(latencies=latencies(op1_op1=3.0), ranges={"op1->op1": (2.0, 5.0)})
    second = FormCost(latencies=latencies(op1_op1=there))
    assert reasons(first, second) == {"op1->op1": reason}
    assert reasons(second, first) == {"op1->op1": reason}


def test_the_number_of_another_pair():
    first = FormCost(latencies=latencies(op1_op1=1.0, op2_op1=3.0))
    second = FormCost(latencies=latencies(op1_op1=3.0, op2_op1=3.0))
    assert reasons(first, second) == {"op1->op1": Reason.OTHER_PAIR}
    assert reasons(second, first) == {"op1->op1": Reason.OTHER_PAIR}


@pytest.mark.parametrize(("there", "reason"), [(9.0, Reason.LOAD), (8.5, Reason.OPEN)])
def test_a_load_that_one_side_leaves_out(there, reason):
    """A load takes four cycles there."""
    first = FormCost(latencies={"op2.address->op1": 5.0})
    assert reasons(first, FormCost(latencies={"op2.address->op1": there}), LOADING) == {
        "op2.address->op1": reason
    }


def test_idioms_and_moves_at_rename():
    first = FormCost(latencies=latencies(op1_op1=0.0), throughput=0.2, idiom="zero")
    second = FormCost(latencies=latencies(op1_op1=1.0), throughput=0.5)
    assert reasons(first, second) == {"op1->op1": Reason.IDIOM, Quantity.THROUGHPUT: Reason.IDIOM}
    first = msgspec.structs.replace(first, idiom="", eliminated=True)
    assert reasons(first, second) == {"op1->op1": Reason.ELIMINATED, Quantity.THROUGHPUT: Reason.ELIMINATED}


def test_the_latency_of_a_chain_is_no_throughput():
    first = FormCost(latencies=latencies(op1_op1=3.0), throughput=1.0)
    second = FormCost(latencies=latencies(op1_op1=3.0), throughput=3.0)
    assert reasons(first, second) == {Quantity.THROUGHPUT: Reason.CHAIN}
    assert reasons(second, first) == {Quantity.THROUGHPUT: Reason.CHAIN}
    fast = FormCost(latencies=latencies(op1_op1=3.0), throughput=0.5)
    assert reasons(first, fast) == {Quantity.THROUGHPUT: Reason.OPEN}


def test_throughputs_that_are_computed_from_ports():
    first, second = FormCost(operations=(ONE,), throughput=1.0), FormCost(operations=(TWO,), throughput=0.5)
    assert reasons(first, second, origin=EXTRACTED)[Quantity.THROUGHPUT] == Reason.FROM_PORTS
    limited = FormCost(operations=(TWO,), throughput=1.0)
    assert reasons(limited, second, origin=EXTRACTED) == {Quantity.THROUGHPUT: Reason.NOT_PORTS}
    assert reasons(limited, second) == {Quantity.THROUGHPUT: Reason.OPEN}
    unread = msgspec.structs.replace(second, throughput=None)
    assert reasons(first, unread)[Quantity.THROUGHPUT] == Reason.FROM_PORTS
    doubtful = msgspec.structs.replace(first, confidence="low")
    assert reasons(doubtful, second, origin=EXTRACTED)[Quantity.THROUGHPUT] == Reason.DOUBTFUL


def test_counts_and_ports():
    first, second = (FormCost(1.0, found, throughput=2.0) for found in ((ONE, ONE), (ONE,)))
    assert reasons(first, second) == {Quantity.OPERATIONS: Reason.SLOTS}
    doubtful = FormCost(2.0, (ONE, ONE), throughput=2.0, confidence="low")
    assert reasons(doubtful, second) == {Quantity.OPERATIONS: Reason.DOUBTFUL}
    doubtful = FormCost(1.0, (TWO,), throughput=2.0, confidence="low")
    assert reasons(doubtful, second) == {Quantity.PORTS: Reason.DOUBTFUL}


def test_open_differences_come_first():
    first = {"IMUL (R64, R64)": FormCost(latencies=latencies(op1_op1=1.0, op2_op1=90.0)),
             "ADC_11 (R64, R64)": FormCost(throughput=1.0)}  # fmt: skip
    second = {"IMUL (R64, R64)": FormCost(latencies=latencies(op1_op1=90.0, op2_op1=90.0)),
              "ADC_11 (R64, R64)": FormCost(throughput=2.0)}  # fmt: skip
    here, there = (msgspec.structs.replace(exchanged(1), forms=forms) for forms in (first, second))
    found = compare(here, there)
    assert [one.reason for one in found.differences()] == [Reason.OPEN, Reason.OTHER_PAIR]
    counts = found.reasons()
    assert counts[Reason.OPEN] == {Quantity.THROUGHPUT: 1}
    assert counts[Reason.OTHER_PAIR] == {Quantity.LATENCY: 1}


def classes(measured, modelled, extracted=True):
    """Reasons of latencies of forms, measured and as a model has them."""
    model = exchanged(1)
    kinds = (model.provenance.kind, EXTRACTED if extracted else model.provenance.kind)
    here, there = (
        msgspec.structs.replace(
            model, name=kind, provenance=msgspec.structs.replace(model.provenance, kind=kind),
            forms={name: FormCost(latencies={"op1->op1": cycles}) for name, cycles in some.items()},
        )
        for kind, some in zip(kinds, (measured, modelled), strict=True)
    )  # fmt: skip
    return {one.form: one.reason for one in compare(here, there).comparisons if one.reason is not None}


FORMS = ("IMUL (R64, R64)", "ADD_01 (R64, R64)", "ADC_11 (R64, R64)", "VADDPD (YMM, YMM, YMM)")


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        ((3.0, 3.0, 3.0, 5.0), Reason.SHARED),
        ((3.0, 3.0, 5.0, 5.0), Reason.OPEN),
        ((3.0, 5.0, 5.0, 5.0), Reason.OPEN),
    ],
)
def test_a_number_that_is_right_for_most_of_a_class(measured, reason):
    found = classes(dict(zip(FORMS, measured, strict=True)), dict.fromkeys(FORMS, 3.0))
    assert set(found.values()) == {reason}
    assert len(found) == measured.count(5.0)


def test_only_scheduling_models_have_classes():
    measured = dict(zip(FORMS, (3.0, 3.0, 3.0, 5.0), strict=True))
    assert classes(measured, dict.fromkeys(FORMS, 3.0), extracted=False) == {FORMS[3]: Reason.OPEN}


def test_other_classes_say_nothing():
    measured = dict(zip(FORMS, (4.0, 4.0, 4.0, 5.0), strict=True))
    assert classes(measured, measured | {FORMS[3]: 3.0}) == {FORMS[3]: Reason.OPEN}


@pytest.mark.parametrize(("cycles", "extracted", "reason"), [
    (100.0, True, Reason.NOT_KNOWN), (100.0, False, Reason.OPEN), (50.0, True, Reason.OPEN),
    (200.0, True, Reason.OPEN),
])  # fmt: skip
def test_a_hundred_cycles_of_llvm_are_not_known(cycles, extracted, reason):
    assert classes({FORMS[0]: 3.0}, {FORMS[0]: cycles}, extracted) == {FORMS[0]: reason}


@pytest.mark.parametrize("form", ["RDRAND (R64)", "CLFLUSH (M8)", "MOVNTPD (M128, XMM)", "MFENCE"])
def test_what_waits_for_more_than_the_core(form):
    first, second = FormCost(throughput=3000.0), FormCost(throughput=60.0)
    assert reasons(first, second, form) == {Quantity.THROUGHPUT: Reason.OUTSIDE}
    assert reasons(first, second, form, origin=EXTRACTED) == {Quantity.THROUGHPUT: Reason.OUTSIDE}
    assert reasons(first, second, "MOVUPS (M128, XMM)") == {Quantity.THROUGHPUT: Reason.OPEN}


def test_latencies_of_what_waits_for_more_than_the_core():
    first, second = (FormCost(latencies=latencies(op1_op1=cycles)) for cycles in (119.0, 29.0))
    assert reasons(first, second, "RDRAND (R64)") == {"op1->op1": Reason.OUTSIDE}


@pytest.mark.parametrize(("there", "reason"), [(0.17, Reason.RATE), (0.99, Reason.RATE), (1.01, Reason.OPEN)])
def test_what_takes_no_time_told_as_a_rate(there, reason):
    first, second = (FormCost(latencies=latencies(op2_op1=cycles)) for cycles in (0.0, there))
    assert reasons(first, second, "MOVAPS_0F28 (XMM, XMM)") == {"op2->op1": reason}
    assert reasons(second, first, "MOVAPS_0F28 (XMM, XMM)") == {"op2->op1": reason}


@pytest.mark.parametrize(
    ("rate", "there", "reason"),
    [(4.0, 3.98, Reason.SELF_LIMITED), (4.0, 3.85, Reason.OPEN), (4.0, 3.0, Reason.OPEN), (1.0, 1.0, None)],
)
def test_the_rate_of_a_chain_alone_is_no_latency(rate, there, reason):
    """A latency of 2 cycles shows only among others where an instruction is executed once in four."""
    first = FormCost(latencies=latencies(op1_op1=min(2.0, rate)), throughput=rate)
    told = {"op1->op1": reason} if reason else {}
    for throughput in (rate, None):
        second = FormCost(latencies=latencies(op1_op1=there), throughput=throughput)
        assert reasons(first, second, "RCL (R64, I8)") == told
        assert reasons(second, first, "RCL (R64, I8)") == told


@pytest.mark.parametrize(
    ("there", "reason"), [(19.85, Reason.CLOCK), (19.7, Reason.OPEN), (20.3, Reason.OPEN)]
)
def test_clocks_are_off_by_a_hundredth(there, reason):
    first, second = (FormCost(latencies=latencies(op2_op1=cycles)) for cycles in (20.0, there))
    assert reasons(first, second, "SQRTPD (XMM, XMM)") == {"op2->op1": reason}
    bound = FormCost(ranges={"op2->op1": (0.0, there)})
    assert reasons(first, bound, "SQRTPD (XMM, XMM)") == ({"op2->op1": reason} if there < 20 else {})
