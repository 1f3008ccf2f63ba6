"""What is still a machine, and what is none any more: models at the limits, and beyond by a little."""

from __future__ import annotations

import lzma
from itertools import combinations, islice
from typing import get_type_hints

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.dataflow import pairs_by_form
from cyclescope.model.check import ModelError, checked, problems
from cyclescope.model.library import shipped, sound
from cyclescope.model.limits import CLUSTERS, no_form_is_wrong
from cyclescope.model.machine import (
    DRAWN,
    IDEAL,
    PUBLISHED,
    STATIC,
    Core,
    FormCost,
    Halves,
    MachineModel,
    Narrow,
    Operation,
    Provenance,
    Scheduler,
    Wakeup,
    Writeback,
)
from cyclescope.model.schema import decode, encode, read_model

ADD, PAIR = "ADD_01 (R64, R64)", "op1->op1"
SETS = [tuple(ports) for count in range(1, 64) for ports in islice(combinations(range(64), count), 64)]


def model(core=None, cost=None, ports=64, **more):
    fields = {"name": "made", "resources": {"r": 1.0}, "forms": {ADD: FormCost(**(cost or {}))}} | more
    return MachineModel(
        isa="x86-64", provenance=Provenance(DRAWN), core=Core(**({"width": 4} | (core or {}))),
        ports=tuple(f"p{n}" for n in range(ports)), **fields,
    )  # fmt: skip


def vectors(count):
    return {f"VADD_VV@{n}": FormCost() for n in range(count)}


def sets(count):
    chunks = [SETS[n : min(n + 64, count)] for n in range(0, count, 64)]
    names = [form for form in shipped("skylake").forms if form.startswith("ADD")]
    return {
        name: FormCost(operations=tuple(map(Operation, chunk)))
        for name, chunk in zip(names, chunks, strict=False)
    }


AT_AND_BEYOND = {
    "core.width": lambda n: model({"width": n}),
    "core.reorder_buffer": lambda n: model({"reorder_buffer": n}),
    "core.load_buffer": lambda n: model({"load_buffer": n}),
    "core.store_buffer": lambda n: model({"store_buffer": n}),
    "core.load_latency": lambda n: model({"load_latency": n}),
    "core.forward_latency": lambda n: model({"forward_latency": n}),
    "core.mispredict_penalty": lambda n: model({"mispredict_penalty": n}),
    "entries": lambda n: model({"schedulers": (Scheduler("s", (0,), n),)}),
    "core.schedulers": lambda n: model({"schedulers": (Scheduler("s", (0,)),) * n}),
    "ports: ": lambda n: model(ports=n),
    "slots": lambda n: model(cost={"slots": n}),
    "throughput": lambda n: model(cost={"throughput": n}),
    "latencies": lambda n: model(cost={"latencies": {PAIR: n}}),
    "ranges": lambda n: model(cost={"ranges": {PAIR: (0, n)}}),
    "resources: r": lambda n: model(cost={"resources": {"r": n}}),
    "count": lambda n: model(cost={"operations": (Operation((0,), n),)}),
    "cycles": lambda n: model(cost={"operations": (Operation((0,), 1, n),)}),
    "count times cycles": lambda n: model(cost={"operations": (Operation((0,), 1000, n / 1000),)}),
    "capacity": lambda n: model(resources={"r": n}),
    "resources: ": lambda n: model(resources={str(k): 1.0 for k in range(n)}),
    "operations": lambda n: model(cost={"operations": (Operation((0,)),) * n}),
    "different sets": lambda n: model(forms=sets(n)),
    "provenance.notes": lambda n: msgspec.structs.replace(
        model(), provenance=Provenance(DRAWN, notes=("x",) * n)
    ),
    "name: ": lambda n: model(name="x" * n),
    "note": lambda n: model(cost={"note": "x" * n}),
    "forms: ": lambda n: msgspec.structs.replace(model(), isa="riscv64", forms=vectors(n)),
}


@pytest.mark.parametrize(
    ("place", "most", "beyond"),
    [
        ("core.width", 64, 65), ("core.width", 0.125, 0.12),
        ("core.reorder_buffer", 8192, 8193), ("core.load_buffer", 1_048_576, 1_048_577),
        ("core.store_buffer", 1_048_576, 1_048_577), ("core.load_latency", 1e6, 1.01e6),
        ("core.forward_latency", 1e6, 1.01e6), ("core.mispredict_penalty", 1e6, 1.01e6),
        ("entries", 1_048_576, 1_048_577), ("core.schedulers", 64, 65), ("ports: ", 64, 65),
        ("slots", 1e6, 1.01e6), ("slots", 0, -0.5), ("throughput", 1e6, 1.01e6), ("throughput", 1e-6, 9e-7),
        ("latencies", 1e6, 1.01e6), ("latencies", 0, -0.5), ("ranges", 1e6, 1.01e6),
        ("resources: r", 1e6, 1.01e6), ("count", 1e6, 1.01e6), ("cycles", 1e6, 1.01e6),
        ("cycles", 1e-6, 9e-7), ("count times cycles", 1e6, 1.01e6), ("capacity", 1000, 1001),
        ("capacity", 1e-3, 9e-4), ("resources: ", 1024, 1025), ("operations", 64, 65),
        ("different sets", 256, 257), ("provenance.notes", 1000, 1001), ("name: ", 400, 401),
        ("note", 20_000, 20_001), ("forms: ", 65_536, 65_537),
    ],
)  # fmt: skip
def test_the_limits_are_where_they_are_said_to_be(place, most, beyond):
    make = AT_AND_BEYOND[place]
    assert list(problems(make(most))) == []
    (line,) = problems(make(beyond))
    assert place.removesuffix(": ").split(": ")[0].removesuffix("capacity") in line


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**400, -(10**400)])
@pytest.mark.parametrize(
    "place", ["core.width", "slots", "latencies", "ranges", "count", "cycles", "capacity"]
)
def test_what_is_no_number_is_in_no_range(place, value):
    assert list(problems(AT_AND_BEYOND[place](value)))


def test_all_operations_together_have_a_limit():
    forms = {
        form: FormCost(operations=(Operation((0,)),) * 64) for form in list(shipped("skylake").forms)[:4097]
    }
    assert not list(problems(model(forms=dict(list(forms.items())[:-1]))))
    (line,) = problems(model(forms=forms))
    assert line == "forms: 262208 operations together, more than 262144"


@pytest.mark.parametrize("name", ["znver5", "cortex-a76", "sifive-u54"])
def test_machines_with_another_core_s_model_are_sound(name):
    assert shipped(name).borrowed
    assert not list(problems(shipped(name)))


def test_of_sound_models_no_form_is_looked_at_alone():
    made = shipped("znver4")
    pairs = pairs_by_form(made.isa, made.forms)
    assert no_form_is_wrong(made, pairs)
    assert not no_form_is_wrong(made, {**pairs, ADD: pairs[ADD] - {PAIR}})


def test_files_beyond_the_limit_are_not_read(tmp_path):
    path = tmp_path / "m.json"
    good = encode(model())
    path.write_bytes(good + b" " * (24 * 2**20 - len(good)))
    assert read_model(path) == model()
    path.write_bytes(good + b" " * (24 * 2**20 + 1 - len(good)))
    with pytest.raises(ModelError, match="more than 24 MiB"):
        read_model(path)
    packed = tmp_path / "m.json.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    with pytest.raises(ModelError, match="more than 24 MiB"):
        read_model(packed)


def test_forms_are_counted_before_they_are_read():
    forms = ",".join(f'"{n}":{{}}' for n in range(65_537))
    with pytest.raises(ModelError, match="forms: 65537, more than 65536"):
        decode(f'{{"forms": {{{forms}}}}}'.encode())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"a":' * 100_000, "nested too deeply"),
        (encode(model(cost={"slots": 1})).replace(b'"slots": 1', b'"slots": "x"'),
         r"forms: ADD_01 \(R64, R64\): Expected `float | null`, got `str` - at `\$.slots`"),
        (b'{"schema_version": 0}', "schema version 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_with_its_form(data, said):
    with pytest.raises(ModelError, match=said):
        decode(data)


def test_texts_that_would_reach_a_terminal_are_escaped():
    bad = "\x1b[31mred\n"
    machine = model(name=bad, resources={bad: 1.0}, forms={bad: FormCost()}, cost=None)
    machine = msgspec.structs.replace(machine, ports=(bad,))
    lines = list(problems(machine))
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


def test_a_published_width_has_a_source():
    machine = model({"width_kind": PUBLISHED})
    assert list(problems(machine)) == ["core.width_source: missing, a published width needs one"]
    assert next(problems(model({"width_kind": "x"}))).startswith("core.width_kind: unknown 'x'")
    assert next(problems(model({"binding": "x"}))).startswith("core.binding: unknown 'x'; there are ideal, ")
    assert not list(problems(model({"binding": "grouped"})))


@pytest.mark.parametrize(("evenness", "fine"), [(-0.01, False), (0.0, True), (1.0, True), (1.01, False)])
def test_ports_are_used_evenly_at_most(evenness, fine):
    said = list(problems(model({"evenness": evenness})))
    assert any("core.evenness" in one for one in said) is not fine


@pytest.mark.parametrize(("sets", "said"), [
    (((0, 1),), None), (((0, 99),), "core.in_turn: [99] do not exist"), (((),), "core.in_turn: none"),
    (((0, 1),) * 999, "core.in_turn: 999, more than"),
])  # fmt: skip
def test_ports_that_are_dealt_out_in_turn_are_there(sets, said):
    found = next(problems(model({"in_turn": sets})), None)
    assert found is None if said is None else found.startswith(said)


@pytest.mark.parametrize(("narrow", "said"), [
    (Narrow(("v",), 6.0, 3), None), (Narrow(("v",), 0.0), "core.narrow: slots"),
    (Narrow(("v",), 6.0, 65), "core.narrow: beside"),
])  # fmt: skip
def test_slots_of_instructions_of_which_a_cycle_takes_fewer_are_those_of_a_core(narrow, said):
    found = next(problems(model({"narrow": narrow})), None)
    assert found is None if said is None else found.startswith(said)


@pytest.mark.parametrize(("halves", "said"), [
    (Halves((0,), (1,), 0.5), None), (Halves((0,), (99,)), "core.halves: [99] do not exist"),
    (Halves((), (1,)), "core.halves: none"), (Halves((0,), (0,)), "core.halves: [0, 0] repeat"),
    (Halves((0,), (1,), 1.01), "core.halves: astray"), (Halves((0,), (1,), 0.5, 7), None),
    (Halves((0,), (1,), 0.5, 8), "core.halves: late"),
])  # fmt: skip
def test_halves_that_are_dealt_out_by_turns_are_there_and_apart(halves, said):
    found = next(problems(model({"halves": halves})), None)
    assert found is None if said is None else found.startswith(said)


def test_single_ports_are_there_and_chosen_at_dispatch():
    assert not list(problems(model({"single": (0,), "binding": STATIC})))
    for core, said in (
        ({"single": (0,)}, "core.single: needs a binding of ports at dispatch"),
        ({"single": (99,), "binding": STATIC}, "core.single: [99] do not exist"),
        ({"ahead": True, "binding": STATIC}, "core.ahead: needs core.single"),
    ):
        assert next(problems(model(core))).startswith(said)


def test_ports_that_take_operations_in_turn_are_there_and_chosen_at_dispatch():
    assert not list(problems(model({"rotating": (0,), "binding": STATIC})))
    for core, said in (
        ({"rotating": (0,)}, "core.rotating: needs a binding of ports at dispatch"),
        ({"rotating": (99,), "binding": STATIC}, "core.rotating: [99] do not exist"),
    ):
        assert next(problems(model(core))).startswith(said)


def test_ports_that_write_one_result_are_there():
    assert not list(problems(model({"writeback": Writeback((0,), 7), "binding": STATIC})))
    assert not list(problems(model({"writeback": Writeback((0,)), "binding": IDEAL})))
    for core, said in (
        ({"writeback": Writeback((0,))}, "core.writeback: needs a binding of ports"),
        ({"writeback": Writeback((99,)), "binding": STATIC}, "core.writeback: [99] do not exist"),
        ({"writeback": Writeback((0,), 8), "binding": STATIC}, "core.writeback: patience"),
        ({"writeback": Writeback((0,), entries=7), "binding": IDEAL}, "core.writeback: entries"),
    ):
        assert next(problems(model(core))).startswith(said)


def test_results_are_announced_on_ports_that_there_are():
    said = "core.wakeup: "
    assert not list(problems(model({"wakeup": Wakeup((0,))})))
    assert not list(problems(model({"wakeup": Wakeup((0,), ((0,),))})))
    assert next(problems(model({"wakeup": Wakeup(())}))) == f"{said}ports: none"
    assert next(problems(model({"wakeup": Wakeup((99,))}))).startswith(f"{said}ports: [99] do not exist")
    assert next(problems(model({"wakeup": Wakeup((0,), ((99,),))}))).startswith(f"{said}clusters: [99]")
    assert not list(problems(model({"wakeup": Wakeup((0,), ((0,),), leading=(0,))})))
    assert next(problems(model({"wakeup": Wakeup((0,), leading=(99,))}))).startswith(f"{said}clusters: [99]")
    assert not list(problems(model({"wakeup": Wakeup((0,), blur=64)})))
    assert next(problems(model({"wakeup": Wakeup((0,), blur=65)}))).startswith(f"{said}blur")
    twice = model({"wakeup": Wakeup((0,), ((0,), (0,)))})
    assert next(problems(twice)) == f"{said}clusters: every one of its ports has to be in one of them"
    many = model({"wakeup": Wakeup((0,), ((0,),) * (CLUSTERS + 1))})
    assert next(problems(many)) == f"{said}clusters: {CLUSTERS + 1}, more than {CLUSTERS}"


def test_simulated_backends_and_predictions_ask_too():
    import cyclescope

    bad = model({"width": -3})
    for way_in in (checked, sound, SimulatedBackend, lambda one: cyclescope.predict("nop", one)):
        with pytest.raises(ModelError, match=r"made: no machine can be so: core\.width: -3 is not from"):
            way_in(bad)
    assert sound(shipped("skylake")) is shipped("skylake")


NUMBERS = [field for field, kind in get_type_hints(Core).items() if kind in (int, float)]


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("value", [-1, 1 << 40])
def test_every_number_of_a_core_has_a_range(field, value):
    assert any(f"core.{field}: " in problem for problem in problems(model(core={field: value})))


@pytest.mark.parametrize(("value", "good"), [(0, True), (1, True), (0.99, False), (5e-324, False)])
def test_code_of_less_than_a_byte_in_a_cycle_is_no_limit_of_a_core(value, good):
    assert (list(problems(model(core={"fetch": value}))) == []) is good
