"""What mixes say of claims: which they refute, which units they prove, how often levels hold."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.refute.calibration import DRAWN_FIRST, Judge, Trial, Verdict, Verdicts
from cyclescope.model.calibration import ClaimCalibration
from cyclescope.model.machine import Operation
from cyclescope.remarks.ports import Usage


def judge(*trials, units=(), decide=(), uneven=0.0):
    """Of mixes that a model predicts to take one cycle for each form, half of it without a unit.

    They may take as much more as ports are dealt out unevenly.
    """
    usage = PortUsage(1, "1*p0", (Operation((0,)),), confidence="high")

    def cycles(forms, without=frozenset()):
        return len(forms) * (0.5 if without and not set(forms).isdisjoint(decide) else 1.0)

    model = SimpleNamespace(
        cycles=cycles,
        predicted=cycles,
        span=lambda forms: (cycles(forms), cycles(forms) + uneven),
        usages=dict.fromkeys("ABCDEFG", usage),
        units=units,
        taken=lambda forms: set() if set(forms).isdisjoint(decide) else set(units),
        matters=lambda *_: True,
    )
    return Judge(
        model, [Trial(tuple(forms), DRAWN_FIRST, took, error, 0.01) for forms, took, error in trials]
    )


@pytest.mark.parametrize(("took", "error", "holds"), [
    (2.15, 0.0, True), (1.85, 0.0, True), (2.26, 0.0, False), (1.74, 0.0, False), (2.26, 0.05, True),
])  # fmt: skip
def test_a_mix_holds_within_a_tenth_and_its_own_error(took, error, holds):
    one = judge(("AB", took, error))
    assert one.holds(one.trials[0]) == holds


@pytest.mark.parametrize(("took", "holds"), [(2.5, True), (2.7, True), (2.8, False), (1.7, False)])
def test_a_mix_may_take_anything_that_the_order_of_its_forms_lets_it(took, holds):
    one = judge(("AB", took, 0.0), uneven=0.5)
    assert one.holds(one.trials[0]) == holds


def test_ports_are_no_worse_for_what_orders_add_but_predictions_are():
    found = judge(("AB", 2.5, 0.0), uneven=0.5).calibration(0, 0, 0)
    assert found.ports["high"].share == 1.0
    assert not found.mixes
    assert (found.dealt.number, found.dealt.held, found.dealt.error) == (1, 0, 0.25)


@pytest.mark.parametrize(("uneven", "is_dealt"), [(0.0, False), (0.19, False), (0.21, True), (0.5, True)])
def test_what_ways_to_deal_out_ports_change_by_a_tenth_depends_on_them(uneven, is_dealt):
    one = judge(("AB", 2.5, 0.0), uneven=uneven)
    assert one.is_dealt(one.trials[0]) == is_dealt


def test_nobody_is_doubted_for_what_depends_on_how_ports_are_dealt_out():
    mixes = [((f"x{n}", f"y{n}"), 2.5, 0) for n in range(30)]
    kinds = {form: ("1*p1", form[0]) for mix, _, _ in mixes for form in mix}
    for uneven, is_doubted in ((0.19, True), (0.5, False)):
        one = judge(*mixes, uneven=uneven)
        one._model.usages = dict.fromkeys(kinds, one._model.usages["A"])
        assert bool(one.doubted(kinds)) == is_doubted


def test_the_form_that_wrong_mixes_have_in_common_is_refuted():
    verdicts = judge(
        ("AB", 4, 0), ("AC", 4, 0), ("BD", 2, 0), ("CD", 2, 0), ("BE", 2, 0), ("CE", 2, 0)
    ).refuted()
    assert {form: verdict.confidence for form, verdict in verdicts.items()} == {"A": "low"}


def test_half_of_the_mixes_is_not_most():
    assert judge(("AB", 4, 0), ("AC", 2, 0), ("BC", 2, 0)).refuted() == {}


def test_a_single_mix_leaves_some_confidence():
    verdicts = judge(("AB", 4, 0), ("BC", 2, 0), ("BD", 2, 0)).refuted()
    assert {form: verdict.confidence for form, verdict in verdicts.items()} == {"A": "medium"}


def of_a_divider(*trials):
    """Of mixes of which A takes three and a half cycles, and the others a quarter each of one port set."""
    one = judge(*trials)

    def cycles(forms):
        return max(3.5 * forms.count("A"), 0.25 * len(forms))

    one._model.cycles = one._model.predicted = cycles
    one._model.span = lambda forms: (cycles(forms), cycles(forms))
    return Judge(one._model, one.trials)


@pytest.mark.parametrize(
    ("took", "error", "blamed"), [(3.0, 0.0, "A"), (3.3, 0.0, "A"), (3.0, 0.1, "ABC"), (4.0, 0.0, "ABC")]
)
def test_what_is_faster_than_predicted_is_no_fault_of_forms_without_which_it_would_be_too(
    took, error, blamed
):
    """What takes longer may wait for any; 3.3 is within a tenth of 3.5 without all but A."""
    found = of_a_divider(("ABC", took, error)).failing
    holds = abs(took / 3.5 - 1) <= 0.1 + error
    assert {*found} == ({*blamed} if not holds else set())


def test_partners_of_a_form_that_is_faster_in_mixes_than_alone_keep_their_confidence():
    one = of_a_divider(("AB", 3.0, 0), ("AC", 3.0, 0), ("AD", 3.0, 0), ("DE", 0.5, 0))
    assert {form: verdict.confidence for form, verdict in one.refuted().items()} == {"A": "low"}
    assert one.sound == ["B", "C", "D", "E"]
    slower = of_a_divider(("AB", 4.0, 0), ("AC", 4.0, 0), ("AD", 4.0, 0), ("DE", 0.5, 0))
    assert {*slower.refuted()} == {"A", "B", "C"}


def test_kinds_of_such_partners_are_not_doubted():
    mixes = [((f"x{n}", "A"), 3.0, 0) for n in range(30)] + [
        ((f"x{n}", f"x{n + 1}"), 0.5, 0) for n in range(40)
    ]
    one = of_a_divider(*mixes)
    one._model.usages = {f"x{n}": one._model.usages["B"] for n in range(41)} | {"A": one._model.usages["A"]}
    found = one.doubted({name: (name[0], name[0]) for name in one._model.usages})
    assert found == {"A": "low"}


def test_a_unit_is_proved_by_two_mixes_that_it_decides():
    assert judge(("AB", 2, 0), ("AC", 2, 0), units=("u",), decide="A").proved_units() == ["u"]
    assert judge(("AB", 2, 0), ("CD", 2, 0), units=("u",), decide="A").proved_units() == []
    assert (
        judge(("AB", 2, 0), ("AC", 2, 0), ("AD", 1, 0), ("AE", 1, 0), units=("u",), decide="A").proved_units()
        == []
    )


@pytest.mark.parametrize(("as_fast", "proved"), [(0, True), (1, True), (2, False)])
def test_what_many_mixes_are_faster_than_is_no_limit(as_fast, proved):
    mixes = [("AB", 2, 0)] * (5 - as_fast) + [("AC", 1, 0)] * as_fast
    assert judge(*mixes, units=("u",), decide="A").proved_units() == ["u"] * proved


def test_mixes_that_are_slower_say_nothing_against_what_counts_only_beside_others():
    mixes = [("AB", 2, 0), ("AC", 2, 0), *((f"A{other}", 3, 0) for other in "DEF")]
    assert judge(*mixes, units=("u",), decide="A").proved_units() == []
    assert judge(*mixes, units=("beside u",), decide="A").proved_units() == ["beside u"]
    assert judge(*mixes, *[("AB", 1, 0)] * 2, units=("beside u",), decide="A").proved_units() == []
    assert judge(*mixes[1:], units=("beside u",), decide="A").proved_units() == []


def test_shares_are_of_mixes_within_a_tenth():
    found = judge(("AB", 2, 0), ("AC", 2.3, 0), ("BC", 2.1, 0), ("CD", 4, 0)).calibration(9, 8, 1)
    assert (found.mixes["high"].number, found.mixes["high"].held) == (4, 2)
    assert found.mixes["high"].error == pytest.approx((0 + 0.15 + 0.05 + 1) / 4)
    assert found.orders == (0.01, 0.01)
    assert (found.claims, found.covered, found.refuted) == (9, 8, 1)


def test_ports_are_judged_by_mixes_in_which_no_form_is_less_sure():
    """Of a mix that does not hold the form that is least sure is the likeliest cause."""
    one = judge(("AB", 2, 0), ("BC", 4, 0), ("CD", 4, 0))
    unsure = msgspec.structs.replace(one._model.usages["A"], confidence="low")
    one._model.usages["C"] = unsure
    found = one.calibration(9, 8, 1, 2)
    assert {level: (held.number, held.held) for level, held in found.ports.items()} == {
        "high": (2, 2), "low": (2, 0)
    }  # fmt: skip
    assert found.doubted == 2


def test_forms_with_the_ports_of_those_that_spoil_mixes_are_doubted():
    bad = PortUsage(1, "1*p1", (Operation((1,)),), confidence="high")
    names = [f"{kind}{number}" for kind in "xy" for number in range(40)]
    mixes = [((f"x{n}", f"y{n}"), 4 if n % 2 else 2, 0) for n in range(30)]
    mixes += [((f"x{n}", f"x{n + 1}"), 2, 0) for n in range(39)]
    one = judge(*mixes)
    usages = {name: bad if name[0] == "y" else one._model.usages["A"] for name in names}
    one._model.usages = usages
    found = one.doubted({name: (name[0], name[0]) for name in names})
    assert {name for name in names[40:] if found.get(name) == "low"} == set(names[40:])
    assert not [name for name in names[:40] if name in found]
    usages["y39"] = msgspec.structs.replace(bad, confidence="low")
    assert "y39" not in one.doubted({name: (name[0], name[0]) for name in names}), "what is lost already"


@pytest.mark.parametrize(("uneven", "took", "each", "level"), [
    (0.0, 4, 1, "low"), (0.19, 2.3, 10, "medium"), (0.19, 2.3, 1, "low"),
])  # fmt: skip
def test_what_mixes_do_not_predict_is_not_sure_although_its_ports_may_be(uneven, took, each, level):
    """Within what ports allow in some order `medium` is left, unless most is not predicted; else nothing."""
    mixes = [((f"y{n}", f"y{n + 1}"), took if n % each == each // 2 else 2, 0) for n in range(30)]
    one = judge(*mixes, uneven=uneven)
    usage = one._model.usages["A"]
    one._model.usages = {f"y{n}": usage for n in range(32)}
    found = one.doubted(dict.fromkeys(one._model.usages, ("y", "y")))
    assert found == dict.fromkeys(one._model.usages, level)


# --- verdicts -----------------------------------------------------------------------------------------


def test_another_usage_is_not_what_was_refuted():
    verdicts = Verdicts(0, {"F": Verdict("1*2", "low", "refuted")}, {}, ClaimCalibration())
    same = PortUsage(1, "1*p01", (Operation((0, 1)),), confidence="high")
    others = Operation((0,)), Operation((0, 1), 1, 2)
    assert verdicts.lowered("F", same).confidence == "low"
    for other in others:
        usage = PortUsage(1, "", (other,), confidence="high")
        assert verdicts.lowered("F", usage).confidence == "high"
    assert verdicts.lowered("G", same).confidence == "high"


def test_what_is_doubted_has_the_confidence_that_is_left():
    verdicts = Verdicts(0, {}, {}, ClaimCalibration(), {"F": "medium"})
    usage = PortUsage(1, "1*p0", (Operation((0,)),), confidence="high", remarks=(Usage.AS_KEPT.of("first"),))
    found = verdicts.lowered("F", usage)
    assert found.confidence == "medium"
    assert found.note == f"first; {Usage.DOUBTED_KIND.value}"
    assert verdicts.lowered("G", usage) == usage
    unsure = msgspec.structs.replace(usage, confidence="low")
    assert verdicts.lowered("F", unsure).confidence == "low"


def test_units_are_known_by_their_forms():
    verdicts = Verdicts(0, {}, {"what limits A": ("A", "B", "C")}, ClaimCalibration())
    assert verdicts.proved({"new name": ["A", "B"], "other": ["D"]}) == {"new name"}
    assert verdicts.proved({"what limits A": ["A"], "other": ["A", "B", "D", "E", "F"]}) == set()
    assert verdicts.proved({"a wider one": ["A", "B", "C", "D"], "what limits A": ["A", "B", "C"]}) == {
        "what limits A"
    }
