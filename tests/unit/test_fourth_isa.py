"""An instruction set of ten instructions goes all the way; the product knows its record alone."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import closing
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest
from click.testing import CliRunner

import cyclescope
from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.backend.simulated import LOUD, SimulatedBackend
from cyclescope.cli.main import cli
from cyclescope.errors import BackendUnavailable, UnsupportedInstruction
from cyclescope.infer.campaign import PORTS, Campaign, Request
from cyclescope.infer.kept import timings
from cyclescope.infer.machine_model import build_model
from cyclescope.infer.timing.results import EXACT
from cyclescope.isa.decode import decoder
from cyclescope.isa.encode import encode
from cyclescope.isa.find.pattern import select
from cyclescope.isa.registry import isa_names, register, unregister
from cyclescope.isa.table import load_table
from cyclescope.measure.store import Store
from cyclescope.model.check import problems
from cyclescope.model.facts import LOW
from cyclescope.model.machine import DRAWN, Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.model.schema import write_model
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.run import why_none
from tests.support import tiny
from tests.support.tiny.tables import FORMS, write_table

ALU, MULTIPLIER, LOADS, STORES = (0, 1), (1,), (2,), (3,)


def cost(latency, *ports, **more):
    pairs = {f"{source}->op1": latency for source in more.pop("sources", ("op2", "op3"))}
    return FormCost(1.0, tuple(Operation(each) for each in ports), pairs, **more)


MACHINE = MachineModel(
    "drawn tiny", "tiny", Provenance(DRAWN), Core(4.0, reorder_buffer=128, load_latency=4, forward_latency=5),
    ("0", "1", "2", "3"),
    {
        "NOP": FormCost(1.0, ()),
        "SET": cost(1.0, ALU, sources=()),
        **{name: cost(1.0, ALU) for name in ("ADD", "SUB", "XOR")},
        "ADDI": cost(1.0, ALU, sources=("op2",)),
        "MUL": cost(3.0, MULTIPLIER),
        "LD": FormCost(1.0, (Operation(LOADS),), {"op2->op1": 4.0, "[op2].data->op1": 4.0}),
        "ST": FormCost(1.0, (Operation(STORES),), {"op1->[op2].data": 1.0, "op2->[op2].data": 1.0}),
        "BNZ": FormCost(1.0, (Operation((0,)),)),
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The table, from a package outside of the product that nothing but a call makes known."""
    folder = tmp_path_factory.mktemp("isa")
    shutil.copytree(Path(tiny.__path__[0]), folder / "tiny")
    write_table(folder / "tiny" / "isa" / "tables")
    sys.path.insert(0, str(folder))
    invalidate_caches()
    register(import_module("tiny.isa.record").RECORD)
    yield load_table("tiny")
    unregister("tiny")
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "tiny"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def store(table, tmp_path_factory):
    """Everything about all ten, from a noisy simulated core."""
    path = tmp_path_factory.mktemp("tiny") / "store.sqlite"
    request = Request(tuple(table), frozenset(("throughput", "latency", PORTS)))
    backend = SimulatedBackend(MACHINE, noise=LOUD)
    with closing(Store(path, MACHINE.name, isa="tiny")) as opened:
        assert Campaign(table, backend, opened).run(request, {})
        yield opened


@pytest.fixture(scope="module")
def model(store, table):
    return build_model(store, table)


def code(table, *instructions):
    """Machine code of (form, registers, number)."""
    made = (encode(table[name], registers, 0, numbers) for name, registers, numbers in instructions)
    return b"".join(made)


def test_it_is_known_by_its_name(table):
    assert "tiny" in isa_names()
    assert [form.id for form in table] == list(FORMS)
    assert {form.id for form in select(table, ["add*"])} == {"ADD", "ADDI"}


def test_a_text_of_it_has_no_assembler(table):
    """Where LLVM's are there, they have no such target; it was refused as code of another instruction set."""
    said = "no assembler for tiny found|fails: .*(target|triple|architecture)"
    with pytest.raises((BackendUnavailable, UnsupportedInstruction), match=f"(?i){said}"):
        read_block("mul r4, r1, r1\n", "tiny", Choice(whole=True))


def test_code_is_decoded(table):
    found = decoder("tiny").decode(code(table, ("LD", (3, 4), (16,))))
    assert found.text == "ld r3, [r4, 16]"
    assert found.units(1) == ("r4",)


def test_latencies_are_found(store, table):
    found = {timing.id: timing for timing in timings(store, table, list(table))}
    latencies = {
        (f, f"{x.source}->{x.target}"): x.max for f, timing in found.items() for x in timing.latencies
    }
    for form_id, known in MACHINE.forms.items():
        for pair, cycles in known.latencies.items():
            if "data" not in pair:
                assert latencies[form_id, pair] == cycles, (form_id, pair)
    assert latencies["ST", "op1->[op2].data"] + latencies["LD", "[op2].data->op1"] == 5


def test_throughputs_are_found(store, table):
    found = {timing.id: timing.throughput.value for timing in timings(store, table, list(table))}
    expected = {"NOP": 0.25, "SET": 0.5, "ADD": 0.5, "MUL": 1.0, "LD": 1.0, "ST": 1.0, "BNZ": 1.0}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=0.02)


def test_a_branch_by_a_known_register_needs_nothing_beside_it(store, table):
    """Its own time counts, so that ports which let it run faster are doubted: one of two executes it, and no
    class has that one alone.
    """
    (branch,) = timings(store, table, [table["BNZ"]])
    assert branch.throughput.kind == EXACT
    assert (branch.ports, branch.ports_confidence) == ("1*p01", LOW)


def test_the_model_is_that_of_the_core(model):
    assert model.isa == "tiny"
    assert list(problems(model)) == []
    assert model.core.width == 4
    sizes = {name: [len(op.ports) for op in cost.operations or ()] for name, cost in model.forms.items()}
    assert sizes["ADD"] == [2]
    assert sizes["MUL"] == sizes["LD"] == sizes["ST"] == [1]
    shared = model.forms["ADD"].operations[0].ports
    assert set(model.forms["MUL"].operations[0].ports) < set(shared)


@pytest.mark.parametrize("measured", [False, True])
def test_a_loop_is_predicted(model, table, measured):
    """Four additions behind each other, and a multiplication beside them."""
    body = code(
        table, *[("ADD", (1, 1, 2), ())] * 4, ("MUL", (3, 3, 2), ()), ("BNZ", (1,), ((-20 // 4) & 0xFFF,))
    )
    block = read_block(body, "tiny", Choice())
    assert len(block) == 6, "the loop that the branch closes"
    found = Predictor(model if measured else MACHINE).predict(block)
    assert found.cycles == pytest.approx(4.0, rel=0.02)
    assert next(one.text for one in block) == "add r1, r1, r2"


def test_the_command_analyses_it(model, table, tmp_path):
    file = tmp_path / "tiny.json"
    write_model(model, file)
    body = code(table, ("ADD", (1, 1, 2), ()), ("BNZ", (1,), ((-4 // 4) & 0xFFF,)))
    found = CliRunner().invoke(cli, ["analyze", "-mcpu", str(file), "--json", "-"], input=body.hex())
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["isa"] == "tiny"


def test_probes_without_kernels_for_it_say_so():
    said = {str(why_none(probe, "tiny")) for probe in PROBES.values()}
    assert "it has no kernels for tiny yet" in said
    for probe in PROBES.values():
        assert bool(why_none(probe, "tiny")) != any(True for _ in probe.cases("tiny"))


def test_the_product_does_not_name_it():
    package = Path(cyclescope.__file__).parent
    assert [path for path in package.rglob("*.py") if "tiny" in path.read_text().split()] == []
