"""Which of a store's sequences are what uops.info's file means, and which are not."""

from __future__ import annotations

import pytest

from cyclescope.formats.uops_info.sequences import same_register, throughputs
from cyclescope.infer.timing.results import FormTiming, Latency, Throughput
from cyclescope.isa.table import load_table
from cyclescope.remarks.timing import Idiom

TABLE = load_table("x86-64")
SHLD, XCHG, VPXOR = "SHLD (R64, R64, I8)", "XCHG (R64, R64)", "VPXOR (XMM, XMM, XMM)"


def latency(source, cycles, target="op1", **more):
    parts = {"kind": "exact"} | more
    return Latency(source, target, parts.pop("least", cycles), cycles, spread=0.02, **parts)


def timing(value, times, *latencies, kind="exact", idiom=""):
    return FormTiming(SHLD, {}, "ok", Throughput(value, 0.01, kind, times), latencies, idiom)


def said(value, times, **more):
    found = throughputs(timing(value, times, **more))
    return {name: text for name, text in found.items() if name.startswith("TP")}


def chain(same, *latencies, form=SHLD, value=1.0, idiom=""):
    pairs = latencies or (latency("op1", 3.0), latency("op2", 3.0))
    return same_register(TABLE[form], timing(value, {"same register": same}, *pairs, idiom=idiom))


def test_loops_and_copies_that_agree():
    assert said(0.5, {"plain x8": 0.5, "plain x16": 0.75, "unrolled x16": 0.51}) == {
        "TP_loop": "0.50", "TP_unrolled": "0.51"
    }  # fmt: skip


@pytest.mark.parametrize(("unrolled", "agrees"), [(1.02, True), (1.04, False), (0.98, True), (0.96, False)])
def test_copies_of_one_length_count_where_loops_confirm_them(unrolled, agrees):
    found = said(1.0, {"plain x8": 1.0, "unrolled x8": unrolled})
    assert found == {"TP_loop": "1.00"} | ({"TP_unrolled": f"{unrolled:.2f}"} if agrees else {"TP": "1.00"})


def test_loops_that_take_longer_than_the_value_are_not_it():
    assert said(0.47, {"plain x8": 0.5, "unrolled x8": 0.47}) == {"TP_unrolled": "0.47"}


@pytest.mark.parametrize("name", ["broken x8", "fast", "taken x8", "not taken x8"])
def test_sequences_of_special_forms_are_loops(name):
    assert said(2.0, {name: 2.0}) == {"TP_loop": "2.00", "TP": "2.00"}


@pytest.mark.parametrize("name", ["indexed x8", "same register", "slow", "count 8 x4", "with its return x8"])
def test_sequences_that_answer_other_questions_are_no_loops(name):
    assert said(2.0, {name: 2.0}) == {"TP": "2.00"}


def test_all_sequences_are_told_under_our_name():
    found = throughputs(timing(0.5, {"plain x8": 0.5, "taken, to the next instruction x8": 12.0}))
    assert found["x_sequences"] == "plain x8=0.5;taken, to the next instruction x8=12"


def test_what_is_only_known_to_be_at_most_so_is_no_throughput():
    assert said(0.5, {"plain x8": 0.5, "unrolled x8": 0.5}, kind="upper_bound") == {}
    assert throughputs(timing(None, {"plain x8": 0.1}, kind=None)) == {}


@pytest.mark.parametrize(("idiom", "there"), [(Idiom.ZERO, True), (Idiom.BREAKING, True), ("", False)])
def test_one_register_is_a_throughput_where_nothing_waits(idiom, there):
    found = said(0.25, {"plain x8": 0.25, "same register": 0.167}, idiom=idiom)
    assert found.get("TP_loop_same_reg") == ("0.17" if there else None)


@pytest.mark.parametrize("idiom", [Idiom.ZERO, Idiom.BREAKING])
def test_an_idiom_has_no_latency(idiom):
    assert chain(0.25, idiom=idiom) == {"cycles_same_reg": "0"}


def test_a_chain_through_one_register_that_takes_another_time():
    assert chain(5.02) == {"cycles_same_reg": "5"}
    assert chain(2.02) == {"cycles_same_reg": "2"}
    assert chain(3.02) == {}, "as different registers"
    assert chain(3.5) == {}, "no whole number"
    assert chain(2.02, latency("op1", 2.0, least=1.0), latency("op2", 2.0, least=1.0)) == {}, "no room"


@pytest.mark.parametrize(("distinct", "differs"), [(2.7, False), (2.3, True)])
def test_less_than_half_a_cycle_is_no_difference(distinct, differs):
    both = latency("op1", distinct), latency("op2", distinct)
    assert chain(3.0, *both) == ({"cycles_same_reg": "3"} if differs else {})


@pytest.mark.parametrize(("value", "hidden"), [(1.9, True), (1.8, False)])
def test_a_chain_has_to_be_clearly_longer_than_the_throughput(value, hidden):
    assert ("cycles_same_reg_is_upper_bound" in chain(2.0, value=value)) == hidden


def test_what_the_throughput_hides_is_a_bound():
    assert chain(1.0, value=1.0) == {"cycles_same_reg": "1"}, "no latency is less"
    assert chain(2.0, value=2.0) == {"cycles_same_reg": "2", "cycles_same_reg_is_upper_bound": "1"}
    assert chain(115.0, latency("op1", 106.0), latency("op2", 112.0), value=114.0) == {}


def test_only_two_registers_of_which_one_is_written_are_the_same_experiment():
    both = latency("op1", 3.0), latency("op2", 3.0)
    assert chain(5.0, *both, form=XCHG) == {}
    assert chain(0.2, latency("op2", 1.0), form=VPXOR, idiom=Idiom.ZERO) == {}


def test_latencies_that_are_not_exact_compare_with_nothing():
    assert chain(5.0, latency("op1", 3.0)) == {}
    assert chain(5.0, latency("op1", 3.0), latency("op2", 3.0, kind="upper_bound")) == {}
    assert chain(5.0, latency("op1", 3.0), latency("op2", 3.0, values={"fast": 1.0, "slow": 3.0})) == {}
