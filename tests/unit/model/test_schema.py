"""Machine models as JSON."""

from __future__ import annotations

import lzma

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.errors import UsageError
from cyclescope.isa.registry import isa_names
from cyclescope.model.check import ModelError, problems
from cyclescope.model.machine import Core, FormCost, MachineModel, Operation, Provenance, Scheduler
from cyclescope.model.schema import decode, encode, read_model, write_model
from cyclescope.session.machines import load_model

GOOD = MachineModel(
    "toy",
    "x86-64",
    Provenance("drawn"),
    Core(4, schedulers=(Scheduler("all", (0, 1), 20),)),
    ("0", "1"),
    {
        "IMUL (R64, R64)": FormCost(
            1, (Operation((0, 1)),), {"op2->op1": 3, "op2->flags.CF": 3}, resources={"mul": 1}
        )
    },
    {"mul": 1},
)
IMUL = GOOD.forms["IMUL (R64, R64)"]
AT = "forms: IMUL (R64, R64): "
positive = st.floats(0.01, 1e6)
texts = st.text(max_size=8)


@st.composite
def machines(draw):
    ports = draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=6, unique=True))
    some = st.lists(st.sampled_from(range(len(ports))), min_size=1, unique=True).map(tuple)
    operation = st.builds(Operation, some, positive, positive)
    cost = st.builds(
        FormCost,
        st.none() | positive,
        st.none() | st.lists(operation, max_size=3).map(tuple),
        st.dictionaries(texts, positive, max_size=3),
        st.none() | positive,
        st.dictionaries(texts, positive, max_size=2),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["", "zero", "breaking"]),
        texts,
        st.lists(texts, max_size=2).map(tuple),
        texts,
        st.dictionaries(texts, st.tuples(positive, positive), max_size=2),
    )
    core = st.builds(
        Core,
        positive,
        st.integers(0, 999),
        in_order=st.booleans(),
        schedulers=st.lists(st.builds(Scheduler, texts, some, st.integers(0, 99)), max_size=2).map(tuple),
    )
    origin = st.builds(Provenance, texts, texts, texts, notes=st.lists(texts, max_size=2).map(tuple))
    forms = st.dictionaries(texts, cost, max_size=4)
    return MachineModel(draw(texts), "riscv64", draw(origin), draw(core), tuple(ports), draw(forms))


@settings(max_examples=60, deadline=None)
@given(machines())
def test_what_is_written_is_read_again(machine):
    assert decode(encode(machine)) == machine


@pytest.mark.parametrize("name", ["machine.json", "machine.json.xz"])
def test_files(tmp_path, name):
    write_model(GOOD, tmp_path / name)
    assert read_model(tmp_path / name) == GOOD
    assert load_model(str(tmp_path / name)) == GOOD


def test_a_shipped_machine_in_a_file_is_the_same(tmp_path):
    machine = load_model("sifive-p550")
    write_model(machine, tmp_path / "m.json.xz")
    assert read_model(tmp_path / "m.json.xz") == machine


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no machine model"),
        (b"SQLite format 3\0 and more", "a store of measurements, no machine model"),
        (b"[]", "no machine model: Expected `object`"),
        (b"{}", "missing required field `name`"),
        (encode(GOOD).replace(b'"width": 4', b'"width": "4"'), r"\$.core.width"),
        (encode(GOOD)[:-9], "no machine model"),
        (b'{"schema_version": 2, "ports": 7}', "schema version 2: this one reads up to 1"),
        (b"\xff\xfe", "no machine model"),
    ],
)
def test_what_is_no_model_gets_one_line(tmp_path, data, said):
    path = tmp_path / "m.json"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=said) as error:
        read_model(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_not_compressed_is_said(tmp_path):
    path = tmp_path / "m.json.xz"
    path.write_bytes(encode(GOOD))
    with pytest.raises(ModelError, match=r"m\.json\.xz"):
        read_model(path)
    path.write_bytes(lzma.compress(encode(GOOD))[:-20])
    with pytest.raises(ModelError, match=r"m\.json\.xz"):
        read_model(path)


def test_a_file_that_is_not_there():
    with pytest.raises(UsageError, match="no such file"):
        load_model("./nowhere.json")


def test_nothing_is_wrong_with_a_good_model():
    assert not list(problems(GOOD))


def changed(**fields):
    return msgspec.structs.replace(GOOD, **fields)


def cost(**fields):
    return changed(forms={"IMUL (R64, R64)": msgspec.structs.replace(IMUL, **fields)})


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (changed(name=" "), "name: a name is empty"),
        (changed(isa="z80", forms={}), f"isa: unknown 'z80'; there are {', '.join(isa_names())}"),
        (changed(provenance=Provenance("guessed")), "provenance.kind: unknown 'guessed'"),
        (
            changed(provenance=Provenance("extracted", "LLVM", "22")),
            "provenance.licence: missing, an extracted model needs one",
        ),
        (changed(ports=("0", "0")), "ports: '0' exists 2 times"),
        (changed(ports=("0", "")), "ports: a name is empty"),
        (changed(core=Core(0)), "core.width: 0 is not from 0.125 to 64"),
        (changed(core=Core(4, load_latency=-1)), "core.load_latency: -1 is not from 0 to 1000000"),
        (
            changed(core=Core(4, schedulers=(Scheduler("s", (2,)),))),
            "core.schedulers: s: ports: [2] do not exist, there are 2",
        ),
        (
            changed(core=Core(4, schedulers=(Scheduler("s", (1,), -1),))),
            "core.schedulers: s: entries: -1 is not from 0 to 1048576",
        ),
        (cost(ranges={"op2->op1": (3, 2)}), AT + "ranges: op2->op1: from 3 to 2"),
        (
            cost(ranges={"op2->op1": (-1, 2)}),
            AT + "ranges: op2->op1: -1 is not from 0 to 1000000",
        ),
        (
            cost(latencies={"op2->op1": 2}, with_room={"op2->op1": 3}),
            AT + "with_room: op2->op1: 3 cycles are more than those of a chain alone",
        ),
        (
            cost(latencies={"op2->op1": 2}, with_room={"op2->op1": -1}),
            AT + "with_room: op2->op1: -1 is not from 0 to 1000000",
        ),
        (
            cost(ranges={"op2->op9": (1, 2)}),
            AT + "latencies: op2->op9: the form has no such pair",
        ),
        (changed(resources={"mul": 0}), "resources: mul: 0 is not from 0.001 to 1000"),
        (changed(resources={}), AT + "resources: mul does not exist"),
        (changed(forms={"IMULL": IMUL}), "forms: IMULL: not in the instruction table of x86-64"),
        (cost(slots=-1), AT + "slots: -1 is not from 0 to 1000000"),
        (cost(throughput=0), AT + "throughput: 0 is not from 1e-06 to 1000000"),
        (cost(idiom="ones"), AT + "idiom: unknown 'ones'"),
        (cost(operations=(Operation(()),)), AT + "operations[0]: ports: none"),
        (
            cost(operations=(Operation((0, 0)),)),
            AT + "operations[0]: ports: [0, 0] repeat",
        ),
        (
            cost(operations=(Operation((-1, 0)),)),
            AT + "operations[0]: ports: [-1] do not exist, there are 2",
        ),
        (
            cost(operations=(Operation((0,), 0),)),
            AT + "operations[0]: count: 0 is not from 1e-06 to 1000000",
        ),
        (
            cost(operations=(Operation((0,), 1, -2),)),
            AT + "operations[0]: cycles: -2 is not from 1e-06 to 1000000",
        ),
        (cost(resources={"mul": -1}), AT + "resources: mul: -1 is not from 0 to 1000000"),
        (
            cost(latencies={"op1": 1}),
            AT + "latencies: 'op1' is not of the form source->target",
        ),
        (
            cost(latencies={"op3->op1": 1}),
            AT + "latencies: op3->op1: the form has no such pair",
        ),
        (
            cost(latencies={"op2->op1": -1}),
            AT + "latencies: op2->op1: -1 is not from 0 to 1000000",
        ),
    ],
)
def test_every_mistake_is_named(machine, said):
    assert list(problems(machine)) == [said]


def test_forms_of_an_unknown_isa_are_not_looked_up():
    machine = changed(isa="z80", forms={"ADDXrr": FormCost(1, (), {"op2->op1": 1})})
    assert list(problems(machine)) == [f"isa: unknown 'z80'; there are {', '.join(isa_names())}"]


def test_forms_of_other_isas_are_looked_up():
    cost = FormCost(1, (), {"op2->op1": 1, "op4->op1": 1, "FPCR->op1": 1, "op1->op1": 1})
    machine = changed(isa="aarch64", forms={"FMADDDrrr": cost, "FMADD": cost}, resources={})
    assert list(problems(machine)) == [
        "forms: FMADDDrrr: latencies: op1->op1: the form has no such pair",
        "forms: FMADD: not in the instruction table of aarch64",
    ]


@pytest.mark.parametrize("name", ["neoverse-v2", "a64fx", "sifive-p670"])
def test_shipped_machines_of_other_isas_fit_their_table(name):
    assert not list(problems(load_model(name)))
