"""Resources of forms from the facts of port experiments."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.resources import ResourceView, Shares, with_resources
from cyclescope.model.machine import FormCost, Operation

SETS = {
    "wide": (0, 1, 2, 3),
    "left": (0, 1),
    "left too": (0, 1),
    "right": (1, 2),
    "load": (4, 5, 6),
    "vector load": (4, 5),
}
WIDTHS = {name: len(ports) for name, ports in SETS.items()} | {"transfer": 1, "renamed move": 5}
FILES = {name: frozenset("m" if "load" in name else "r") for name in WIDTHS}


STACKED = "STACKED"  # a form of another register file


@pytest.fixture(autouse=True)
def register_files(monkeypatch):
    monkeypatch.setattr("cyclescope.infer.ports.resources.domains", lambda form: frozenset(form.files))


def resources(
    confined,
    form_reads_memory=False,
    waits=None,
    late=(),
    uneven=0.5,
    counts=1.0,
    looks=None,
    wide=(),
    wider=True,
    **costs,
):
    operands = [SimpleNamespace(is_memory=form_reads_memory, read=True, write=False, width=64)]
    table = {
        name: SimpleNamespace(
            operands=operands, files="s" if name == STACKED else "r",
            addressed=operands[0] if form_reads_memory else None,
        ) for name in costs
    }  # fmt: skip
    facts = SimpleNamespace(
        classes=SimpleNamespace(widths=WIDTHS, files=FILES), front_end=SimpleNamespace(width=6.0),
        confined=confined, table=table, waits=waits or {},
        renamed=frozenset({"renamed move"}), looks=lambda form: looks or {},
    )  # fmt: skip
    ports = SimpleNamespace(
        facts=facts, structure=Structure(7, SETS), names=tuple("0123abc"), memory=frozenset((4, 5, 6)),
        wide_loads=SimpleNamespace(heads=frozenset(wide), of=lambda _, heads: heads if wider else {}),
    )  # fmt: skip
    found, capacities = with_resources(costs, ports, late, Shares(uneven, counts))
    view = ResourceView(ports, late)
    for shares in (Shares(0.9, 0.9), Shares(uneven, counts)):
        anew = view.with_resources(costs, shares)
    assert anew == (found, capacities), "other shares before change nothing"
    assert {name for cost in found.values() for name in cost.resources} == capacities.keys()
    return {form: dict(cost.resources) for form, cost in found.items()}, capacities


def one(cost, **confined):
    return resources({"F": {name.replace("_", " "): v for name, v in confined.items()}}, F=cost)[0]["F"]


def test_known_operations_count_where_they_cannot_escape():
    cost = FormCost(1, (Operation((0, 1)),), throughput=0.5)
    found = one(cost, left=1.02, right=0.4, wide=1.6)
    assert found == {"p01": 1, "p012": 1, "p0123": 1}


def test_unions_of_sets_are_resources():
    _, capacities = resources({}, F=FormCost(2, (Operation((0, 1)), Operation((1, 2))), throughput=0.7))
    assert capacities == {"p01": 2, "p12": 2, "p012": 3, "p0123": 4}


def test_sets_without_a_port_in_common_make_no_union():
    _, capacities = resources({}, F=FormCost(2, (Operation((0, 1)), Operation((4, 5))), throughput=0.5))
    assert not any("0" in name and "a" in name for name in capacities)


def test_unknown_operations_take_what_was_measured():
    assert one(FormCost(2, None, throughput=1), left=1.98, right=0.03, transfer=0.97) == {
        "p01": 1.98, "unit of transfer": 0.97,
    }  # fmt: skip


def test_of_classes_of_the_same_ports_the_one_that_loses_most_counts():
    assert one(FormCost(2, None, throughput=1), left=1.5, left_too=1.1) == {"p01": 1.5}
    assert one(FormCost(2, None, throughput=1), left_too=1.1, left=1.5) == {"p01": 1.5}
    assert one(FormCost(2, None, throughput=1), left=1.1, left_too=1.5) == {"p01": 1.5}


def test_no_more_micro_operations_than_slots():
    cost = FormCost(1, None, throughput=9, microcoded=True)
    assert one(cost, left=1.98, transfer=2.5) == {"p01": 1, "unit of transfer": 2.5}
    confined = {"F": {"left": 3.1}}
    assert resources(confined, form_reads_memory=True, F=cost)[0]["F"] == {"p01": 2}


def test_twice_as_many_where_no_usage_fits_but_the_form_is_no_microcode():
    cost = FormCost(1, None, throughput=9)
    assert one(cost, left=1.9, wide=3.9) == {"p01": 1.9, "p0123": 2}


def test_no_more_than_the_throughput_lets_a_form_take():
    assert one(FormCost(1, None, throughput=0.5), left=40.0) == {"p01": 1}
    assert one(FormCost(1, None, throughput_most=0.5), left=40.0) == {"p01": 1}  # nor one that it is at most
    assert one(FormCost(None, None), left=40.0) == {"p01": 40}


def test_ports_of_memory_take_what_was_measured_up_to_the_accesses():
    cost = FormCost(2, (Operation((4, 5, 6)),), throughput=0.38)
    assert one(cost, load=0.96, vector_load=0.7) == {"pabc": 1, "pab": 0.7}
    slower = FormCost(2, (Operation((4, 5, 6)),), throughput=0.55)
    assert one(slower, load=0.96, vector_load=1.98) == {"pabc": 1, "pab": 1}


@pytest.mark.parametrize(("reads", "wide", "wider", "taken"), [
    (True, ["load"], True, 2.4), (True, ["load"], False, 1), (True, [], True, None),
    (False, ["load"], True, None),
])  # fmt: skip
def test_wide_loads_take_of_others_what_they_were_measured_to_take_beside_them(reads, wide, wider, taken):
    """However fast they are alone: three of these start in two cycles. Narrower ones take what they are."""
    cost = FormCost(1, (Operation((4, 5)),), throughput=0.5)
    told = {"form_reads_memory": reads, "wide": wide, "wider": wider}
    found, capacities = resources({"F": {"load": 2.4}}, **told, F=cost)
    assert found["F"].get("beside pabc") == taken
    assert capacities.get("beside pabc") == (3 if taken else None)
    assert found["F"]["pab"] == found["F"]["pabc"] == 1


@pytest.mark.parametrize(("uneven", "taken"), [(0.0, None), (0.5, 0.3), (1.0, 0.6)])
def test_accesses_are_in_the_way_of_those_with_fewer_ports(uneven, taken):
    """As much as those side by side cost them, from the best order of a mix to the worst."""
    beside = {"vector load": [Look(0.0, 0.05), Look(0.6, 0.05, together=True)]}
    cost = FormCost(1, (Operation((4, 5, 6)),), throughput=0.34)
    found = resources({"F": {"load": 1.0}}, looks=beside, uneven=uneven, F=cost)[0]["F"]
    assert found.get("pab") == taken
    assert found["pabc"] == 1


@pytest.mark.parametrize(("throughput", "taken"), [(0.34, 0.68), (0.51, 1.0)])
def test_no_access_is_so_much_in_its_own_way_that_it_would_be_slower_than_it_is(throughput, taken):
    """Loads that one reading gave two of three ports, and that run three a cycle."""
    beside = {"vector load": [Look(0.0, 0.05), Look(1.1, 0.05, together=True)]}
    cost = FormCost(1, (Operation((4, 5, 6)),), throughput=throughput)
    found = resources({"F": {"load": 1.0}}, looks=beside, uneven=1.0, F=cost)[0]["F"]
    assert found == {"pab": taken, "pabc": 1}


@pytest.mark.parametrize(("uneven", "taken"), [(0.0, None), (0.5, 0.3), (1.0, 0.6)])
def test_accesses_that_cannot_have_a_port_are_in_the_way_as_well(uneven, taken):
    beside = {"vector load": [Look(0.6, 0.05, together=True)]}
    cost = FormCost(1, (Operation((6,)),), throughput=1.0)
    assert resources({"F": {}}, looks=beside, uneven=uneven, F=cost)[0]["F"].get("pab") == taken


def test_a_late_result_takes_the_turns_that_it_costs_others():
    """But no more than its own throughput lets it, and none of ports that it does not have."""
    cost, confined = (
        FormCost(1, (Operation((0, 1)),), throughput=0.5),
        {"F": {"left": 2.1, "wide": 2.0, "right": 0.4}},
    )
    assert resources(confined, F=cost)[0]["F"] == {"p01": 1, "p012": 1, "p0123": 1}
    assert resources(confined, late=("F",), F=cost)[0]["F"] == {"p01": 1, "p012": 1, "p0123": 2}
    quarter = resources(confined, late=("F",), counts=0.25, F=cost)[0]["F"]
    assert quarter == {"p01": 1, "p012": 1, "p0123": 1.25}


def test_units_take_what_was_measured():
    cost = FormCost(1, (Operation((0, 1)),), throughput=1)
    assert one(cost, left=1.0, transfer=1.01)["unit of transfer"] == 1


@pytest.fixture
def slow():
    return FormCost(1, (Operation((0, 1)),), throughput=2)


def test_what_renaming_limits_is_no_resource():
    found, capacities = resources(
        {"F": {"renamed move": 1.3, "transfer": 0.7}}, F=FormCost(1, None, throughput=1)
    )
    assert found["F"] == {"unit of transfer": 0.7}
    assert capacities.keys() == found["F"].keys()


def test_forms_that_are_equal_share_what_limits_them(slow):
    other = FormCost(1, (Operation((1, 2)),), throughput=2)
    found, capacities = resources({}, A=slow, B=slow, C=other)
    assert found["A"]["what limits A"] == found["B"]["what limits A"] == 2
    assert "what limits A" not in found["C"]
    assert capacities["what limits A"] == 1


def test_forms_that_wait_for_each_other_share_what_limits_them(slow):
    other = FormCost(1, (Operation((1, 2)),), throughput=3)
    waits = {"A": {"A": 2.0, "B": 1.97}, "B": {"A": 2.9, "B": 3.0}, "left": {"A": 0.02, "B": 0.01}}
    found, capacities = resources({}, waits=waits, A=slow, B=other)
    assert found["A"]["what limits A"] == 2
    assert found["B"]["what limits A"] == 3
    assert "what limits B" not in capacities


def test_a_form_that_its_ports_explain_may_hold_what_limits_others(slow):
    explained = FormCost(1, (Operation((1,)), Operation((2,))), throughput=1)
    waits = {"A": {"A": 2.0}, "C": {"A": 1.6}, "D": {"A": 0.3}, "left": {"A": 0.02}}
    costs = {"A": slow, "C": explained, "D": FormCost(1, (Operation((0, 1, 2)),), throughput=0.33)}
    found, _ = resources({}, waits=waits, **costs)
    assert found["C"]["what limits A"] == 1  # no longer than it runs
    assert "what limits A" not in found["D"]


def test_who_holds_a_unit_keeps_all_waiting_that_need_it(slow):
    """One of them alone may wait for a port."""
    slower, held = (
        FormCost(1, (Operation((1, 2)),), throughput=3),
        FormCost(3, (Operation((2, 3)),), throughput=1),
    )
    waits = {
        "A": {"A": 2.0, "B": 2.0}, "B": {"A": 3.0, "B": 3.0}, "left": {"A": 0.0, "B": 0.0},
        "C": {"A": 2.5, "B": 2.4}, "D": {"A": 1.5, "B": 0.2},
    }  # fmt: skip
    found, _ = resources({}, waits=waits, A=slow, B=slower, C=held, D=msgspec.structs.replace(held, slots=2))
    assert (found["A"]["what limits A"], found["B"]["what limits A"]) == (2, 3)
    assert found["C"]["what limits A"] == 1
    assert "what limits A" not in found["D"]


@pytest.mark.parametrize(("cycles", "holds"), [(2.9, True), (3.1, False), (340.0, False)])
def test_what_takes_longer_than_both_in_turn_holds_no_unit(slow, cycles, holds):
    """Legacy vector instructions beside upper halves that are set take hundreds of cycles on a Zen 3."""
    fast = FormCost(1, (Operation((2, 3)),), throughput=1)
    waits = {"A": {"A": 2.0}, "C": {"A": cycles}, "left": {"A": 0.0}}
    found, _ = resources({}, waits=waits, A=slow, C=fast)
    assert ("what limits A" in found["C"]) == holds


def test_forms_of_other_register_files_do_not_stand_for_each_other(slow):
    waits = {STACKED: {STACKED: 2.0}, "B": {"B": 2.0}, "C": {"B": 1.5}, "left": {"B": 0.0, STACKED: 0.0}}
    fast = FormCost(1, (Operation((0, 1)), Operation((1, 2))), throughput=1)
    found, capacities = resources({}, waits=waits, **{STACKED: slow, "B": slow, "C": fast})
    assert {"what limits B", f"what limits {STACKED}"} <= capacities.keys()
    assert found["C"]["what limits B"] == 1


@pytest.mark.parametrize("blocking", [{}, {"left": {"A": 0.5}}])
def test_nothing_shares_what_may_be_a_port(slow, blocking):
    other = FormCost(1, (Operation((1, 2)),), throughput=3)
    waits = {"A": {"A": 2.0, "B": 1.97}, "B": {"A": 2.9, "B": 3.0}} | blocking
    found, _ = resources({}, waits=waits, A=slow, B=other)
    assert found["A"].keys().isdisjoint(name for name in found["B"] if name.startswith("what"))


@pytest.mark.parametrize(
    "fast",
    [
        FormCost(1, (Operation((0, 1)),), throughput=0.5),
        FormCost(9, (Operation((0, 1)),), throughput=1.5),  # the front end
        FormCost(1, None, throughput=2),
        FormCost(1, (), throughput=2),
        FormCost(1, (Operation((0, 1)),)),
    ],
)
def test_no_unit_where_nothing_or_something_known_limits(fast):
    found, _ = resources({}, F=fast)
    assert not any(name.startswith("what limits") for name in found["F"])
