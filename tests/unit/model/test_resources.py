"""Throughput of mixes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.model.machine import (
    MEASURED,
    Core,
    FormCost,
    Halves,
    MachineModel,
    Narrow,
    Operation,
    Provenance,
    Wakeup,
)
from cyclescope.model.ports import halves_throughput, resource_ports
from cyclescope.model.resources import SLOTS_OF_ALL, mix_throughput, resource_bounds, resource_throughput

ADD = FormCost(1, (Operation((0, 1)),), throughput=0.5, resources={"p01": 1})
MUL = FormCost(1, (Operation((1,)),), throughput=1, resources={"p01": 1, "p1": 1})
SLOW = FormCost(2, (Operation((0, 1)),), throughput=3, resources={"p01": 1, "unit": 1.5})
NO_SLOTS, NO_PORTS = FormCost(None, ()), FormCost(1, None, throughput=0.25)
MODEL = MachineModel(
    "toy", "x86-64", Provenance(MEASURED), Core(4), ("0", "1"),
    {"ADD": ADD, "MUL": MUL, "SLOW": SLOW, "NO_SLOTS": NO_SLOTS, "NO_PORTS": NO_PORTS},
    {"p01": 2, "p1": 1, "unit": 2},
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ports"),
    [("pcd", (2, 3)), ("pa", (0,)), ("pabcd", (0, 1, 2, 3)), ("pdc", ()), ("pcx", ()), ("p", ()),
     ("unit", ()), ("what limits ADD", ()), ("ab", ())],
)  # fmt: skip
def test_resources_are_sets_of_ports_or_units(name, ports):
    assert resource_ports(name, ("a", "b", "c", "d")) == ports


def test_names_of_ports_may_be_words():
    assert resource_ports("pAGU0ALU1", ("AGU0", "AGU1", "ALU0", "ALU1")) == (0, 3)
    assert resource_ports("pAGU0,ALU1", ("AGU0", "AGU1", "ALU0", "ALU1")) == (0, 3)


def test_every_resource_has_a_bound():
    assert resource_bounds(MODEL, {"ADD": 2, "MUL": 1}) == {
        "p01": 1.5, "ADD": 1, "MUL": 1, "p1": 1, SLOTS_OF_ALL: 0.75,
    }  # fmt: skip


@pytest.mark.parametrize(("mix", "cycles"), [({"ADD": 1, "WIDE": 2}, 2.9), ({"WIDE": 2, "MUL": 1}, None)])
def test_what_counts_beside_some_operations_does_so_only_there(mix, cycles):
    """What loads of the widest vectors cost others, which start in the same cycles."""
    wide = FormCost(1, (Operation((1,)),), throughput=0.5, resources={"p1": 1, "beside p01": 2.4})
    add = msgspec.structs.replace(ADD, resources={"p01": 1, "beside p01": 1})
    model = msgspec.structs.replace(
        MODEL, forms={**MODEL.forms, "WIDE": wide, "ADD": add}, resources={**MODEL.resources, "beside p01": 2}
    )
    found = resource_bounds(model, mix)
    assert found is not None
    assert found.get("beside p01") == (None if cycles is None else pytest.approx(cycles))


@pytest.mark.parametrize(
    ("mix", "cycles", "bound"),
    [
        ({"ADD": 2, "MUL": 1}, 1.5, "p01"),
        ({"ADD": 1, "MUL": 3}, 3, "MUL"),
        ({"SLOW": 1, "ADD": 1}, 3, "SLOW"),
        ({"SLOW": 0.25, "NO_PORTS": 8}, 2.125, SLOTS_OF_ALL),
        ({}, 0, SLOTS_OF_ALL),
    ],
)
def test_the_fullest_resource_decides(mix, cycles, bound):
    found = resource_throughput(MODEL, mix)
    assert found[0] == cycles
    assert found[1] == bound


@pytest.mark.parametrize(
    ("single", "operations", "slots", "cycles"),
    [
        ((), (Operation((0, 1), 2),), 2, 1.5),
        ((0, 1), (Operation((0, 1), 2),), 2, 2.0),  # two of the three in a cycle, then one
        ((0, 1), (Operation((0, 1)), Operation((2,))), 2, 1.0),
        ((0, 1), (Operation((0, 1), 2),), 1, 1.5),  # the second comes with the first
        ((0, 1), (Operation((0, 1)), Operation((2,))), 1, 1.0),  # as what is not dealt a port does
        ((0,), (Operation((0, 1), 2),), 2, 1.5),
    ],
)
def test_a_cycle_of_dispatch_has_one_operation_for_a_single_port(single, operations, slots, cycles):
    """Beside an addition, and what fills the slots of two cycles."""
    forms = {
        "ADD": FormCost(1, (Operation((0, 1)),)),
        "IT": FormCost(slots, operations),
        "NOP": FormCost(1, ()),
    }
    core = Core(6, single=single)
    model = MachineModel("toy", "x86-64", Provenance(MEASURED), core, tuple("012"), forms)
    assert mix_throughput(model, {"IT": 1, "ADD": 1, "NOP": 5 - slots}) == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("mix", "evenness", "cycles"),
    [
        ({"ADD": 2, "MUL": 1}, 0.5, 1.75),  # 1.5 at least, 2 where the additions go to each of two ports
        ({"ADD": 2, "MUL": 1}, 1.0, 2.0),
        ({"MUL": 3, "SLOW": 1}, 0.5, 3.25),
        ({"ADD": 2, "SLOW": 1}, 0.5, 3.0),  # what SLOW takes alone
        ({"ADD": 2}, 0.5, 1.0),
        ({"ADD": 2, "NO_PORTS": 1}, 0.5, 1.0),
    ],
)
def test_an_even_use_of_ports_adds_its_part_to_mixes_of_several_forms(mix, evenness, cycles):
    model = msgspec.structs.replace(MODEL, core=Core(4, evenness=evenness))
    assert resource_throughput(model, mix)[0] == pytest.approx(cycles)


def test_an_even_use_adds_nothing_where_ports_get_one_operation_in_a_cycle():
    core = Core(4, evenness=1.0, single=(0, 1))
    mix = {"ADD": 2, "MUL": 1}
    assert resource_throughput(msgspec.structs.replace(MODEL, core=core), mix)[0] == pytest.approx(1.5)


@pytest.mark.parametrize(("order", "cycles"), [
    ("ZX", 2.0), ("ZXXX", 3.0), ("ZXZXXX", 5.0), ("XXZ", 2.0), ("XZZ", 2.5), ("XZXZX", 3.5), ("ZZXX", 3.0),
    ("XXL", 1.0),
])  # fmt: skip
def test_ports_that_are_dealt_out_in_turn_are_as_busy_as_the_fullest(order, cycles):
    """Loads of one and of two cycles on two ports as a Zen 4 takes them, and one on any of three."""
    loads = {"X": Operation((0, 1)), "Z": Operation((0, 1), 1, 2.0), "L": Operation((0, 1, 2))}
    forms = {f"{kind}{n}": FormCost(1, (loads[kind],)) for n, kind in enumerate(order)}
    least = {"p01": 2.0, "p012": 3.0}
    for name, cost in forms.items():
        busy = sum(op.count * op.cycles for op in cost.operations)
        taken = {"p012": busy} | ({"p01": busy} if name[0] != "L" else {})
        forms[name] = msgspec.structs.replace(cost, resources=taken)
    core = Core(6, in_turn=((0, 1),))
    model = MachineModel("toy", "x86-64", Provenance(MEASURED), core, tuple("012"), forms, least)
    mix = dict.fromkeys(forms, 1.0)
    assert resource_throughput(model, mix) == (pytest.approx(cycles), "p012" if order == "XXL" else "p01")
    assert max(resource_bounds(model, mix).values()) == pytest.approx(cycles)
    evenly = msgspec.structs.replace(model, core=Core(6, in_turn=((0, 1),), evenness=1.0))
    assert resource_throughput(evenly, mix)[0] == pytest.approx(max(cycles, 4 / 3 if order == "XXL" else 0.0))


@pytest.mark.parametrize(("order", "cycles"), [
    ("sv", 0.5625), ("svv", 1.0), ("svvv", 1.5625), ("svvvv", 2.0), ("ssvv", 1.4375), ("svsvv", 1.5625),
])  # fmt: skip
def test_none_goes_astray_behind_one_for_each_port_of_the_half_that_keeps_its_own(order, cycles):
    """A Zen 5, where an eighth does behind one load of vectors, or three, or behind another store."""
    ports = {"s": Operation((0, 1, 2, 3)), "v": Operation((2, 3))}
    turns = [ports[kind] for kind in order]
    assert halves_throughput(turns, Halves((0, 1), (2, 3), 0.125), 0.0) == pytest.approx(cycles)
    assert halves_throughput(turns, Halves((0, 1), (2, 3)), 0.0) == halves_throughput(
        turns, Halves((0, 1), (2, 3))
    )


@pytest.mark.parametrize(("order", "astray", "cycles"), [
    ("s", 0.0, 0.25), ("ss", 0.0, 0.5), ("sss", 0.0, 0.75), ("v", 0.0, 0.5), ("sv", 0.0, 0.5),
    ("ssv", 0.0, 1.0), ("svsv", 0.0, 1.0), ("ssvv", 0.0, 1.5), ("svvsvv", 0.0, 2.0), ("ssvvvv", 0.0, 2.5),
    ("st", 0.0, 0.5), ("tv", 0.0, 0.5), ("ttv", 0.0, 1.0), ("svWv", 0.0, 1.5), ("WWv", 0.0, 1.5),
    ("sv", 0.125, 0.5625), ("ssv", 0.125, 0.953125), ("ss", 0.125, 0.5), ("sv", 0.5, 0.75),
    ("ssvv", 0.5, 1.5), ("sa", 0.0, 0.25), ("sav", 0.0, 0.5),
])  # fmt: skip
def test_ports_that_are_dealt_out_by_turns_are_as_busy_as_the_fuller_half(order, astray, cycles):
    """Loads and stores of a Zen 5: any unit, those of vectors, of stores; W keeps one for two cycles."""
    ports = {"s": Operation((0, 1, 2, 3)), "v": Operation((2, 3)), "t": Operation((0, 1)),
             "W": Operation((0, 1, 2, 3), 1, 2.0), "a": Operation((4,), 1, 0.01)}  # fmt: skip
    halves = Halves((0, 1), (2, 3), astray)
    assert halves_throughput([ports[kind] for kind in order], halves) == pytest.approx(cycles)
    forms = {f"{kind}{n}": FormCost(1, (ports[kind],)) for n, kind in enumerate(order)}
    core = Core(64, halves=halves, evenness=1.0)
    model = MachineModel("toy", "x86-64", Provenance(MEASURED), core, tuple("01234"), forms)
    mix = dict.fromkeys(forms, 1.0)
    assert resource_throughput(model, mix) == (pytest.approx(cycles), "p0123")
    assert resource_bounds(model, mix)["p0123"] == pytest.approx(cycles)


@pytest.mark.parametrize(("mix", "wakeup", "cycles"), [
    ({"CMP": 1, "SET": 1}, (0, 1), 1.5), ({"CMP": 1, "SET": 1}, None, 1.0),
    ({"CMP": 1, "SET": 2}, (0, 1), 2.5), ({"CMP": 1, "LEA": 1}, (0, 1), 1.0),
    ({"LEA": 1, "SET": 1}, (0, 1), 1.0), ({"LATE": 1, "SET": 1}, (0, 1), 1.0),
    ({"FCMP": 1, "SET": 3}, (0, 1), 1.5), ({"CMP": 1, "FSET": 1, "LEA": 1}, (0, 1), 1.0),
    ({"CMP": 1, "CARRY": 1}, (0, 1), 1.0), ({"CMP": 1, "SET": 1}, (0, 1, 2), 1.0),
])  # fmt: skip
def test_what_a_flag_wakes_up_too_early_takes_a_port_in_vain(mix, wakeup, cycles):
    """One operation of either of two ports each, FCMP and FSET of the third; SET and FSET read ZF."""
    reads, writes = {"flags.ZF->op1": 1.0}, {"op1->flags.ZF": 1.0, "op2->flags.ZF": 5.0}
    latencies = {
        "CMP": writes, "SET": reads, "LEA": {"op2->op1": 1.0}, "LATE": {"op1->flags.ZF": 3.0},
        "FCMP": writes, "FSET": reads, "CARRY": {"flags.CF->op1": 1.0},
    }  # fmt: skip
    forms = {
        name: FormCost(1, (Operation((2,) if name[0] == "F" else (0, 1)),), some,
                       resources={"p2": 1} if name[0] == "F" else {"p01": 1})
        for name, some in latencies.items()
    }  # fmt: skip
    core = Core(6, wakeup=Wakeup(wakeup) if wakeup else None)
    model = MachineModel(
        "toy", "x86-64", Provenance(MEASURED), core, tuple("012"), forms, {"p01": 2.0, "p2": 1.0}
    )
    assert resource_throughput(model, mix)[0] == pytest.approx(cycles)


def test_a_shared_unit_adds_up():
    assert resource_bounds(MODEL, {"SLOW": 2, "ADD": 1})["unit"] == 1.5


@pytest.mark.parametrize("mix", [{"DIV": 1}, {"NO_SLOTS": 1}, {"ADD": 1, "DIV": 2}])
def test_nothing_is_said_of_what_is_not_known(mix):
    assert resource_throughput(MODEL, mix) is None
    assert mix_throughput(MODEL, mix) is None


@pytest.mark.parametrize(
    ("mix", "cycles"),
    [({"ADD": 2, "MUL": 1}, 1.5), ({"ADD": 1, "MUL": 3}, 3), ({"SLOW": 4}, 2), ({"ADD": 0.5}, 0.25)],
)
def test_ports_and_front_end(mix, cycles):
    assert mix_throughput(MODEL, mix) == cycles


def test_ports_that_are_not_known_are_not_guessed():
    assert mix_throughput(MODEL, {"ADD": 1, "NO_PORTS": 1}) is None
    assert resource_throughput(MODEL, {"ADD": 1, "NO_PORTS": 1})[0] == 0.5


def test_a_front_end_that_divides_nothing_takes_the_order_into_account():
    model = msgspec.structs.replace(MODEL, core=Core(3, whole=True))
    assert resource_bounds(model, {"SLOW": 2})[SLOTS_OF_ALL] == 2
    assert resource_bounds(model, {"SLOW": 1, "ADD": 1})[SLOTS_OF_ALL] == 1
    assert mix_throughput(model, {"SLOW": 2}) == 2
    assert mix_throughput(MODEL, {"SLOW": 2}) == 1


amounts = st.dictionaries(st.sampled_from(["ADD", "MUL", "SLOW"]), st.integers(1, 9), min_size=1)


@given(amounts, st.integers(2, 5))
def test_twice_the_mix_takes_twice_as_long(mix, times):
    more = {form: times * count for form, count in mix.items()}
    assert resource_throughput(MODEL, more)[0] == pytest.approx(times * resource_throughput(MODEL, mix)[0])
    assert mix_throughput(MODEL, more) == pytest.approx(times * mix_throughput(MODEL, mix))


@given(amounts)
def test_resources_that_have_the_ports_are_never_faster_than_these(mix):
    assert resource_throughput(MODEL, mix)[0] >= mix_throughput(MODEL, mix) - 1e-9


@pytest.mark.parametrize(("count", "cycles"), [(6, 9 / 8), (7, 2.0), (13, 3.0)])
def test_a_cycle_may_take_fewer_slots_of_some_instructions(count, cycles):
    """Three others make whole cycles of more than six."""
    vectors, others = "PADDD (XMM, XMM)", "ADD_01 (R64, R64)"
    forms = {vectors: FormCost(1.0, (), throughput=1 / 8), others: FormCost(1.0, (), throughput=1 / 8)}
    core = Core(8, narrow=Narrow(("v",), 6.0, 3))
    model = MachineModel("toy", "x86-64", Provenance(MEASURED), core, ("0",), forms)
    assert resource_throughput(model, {vectors: count, others: 3}) == (pytest.approx(cycles), SLOTS_OF_ALL)
    assert mix_throughput(model, {vectors: count, others: 3}) == pytest.approx(cycles)
