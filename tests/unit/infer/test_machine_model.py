"""The machine model that measurements make."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import StoreError
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.machine_model import build_model, form_cost
from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.ports.naming import known_machine
from cyclescope.infer.timing.results import EXACT, INTERVAL, UPPER_BOUND, FormTiming, Latency, Throughput
from cyclescope.infer.workload import CORE_FACTS
from cyclescope.measure.store import Store
from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.check import problems
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.model.machine import MEASURED, Core, Operation
from cyclescope.model.ports import notation
from cyclescope.model.schema import decode, encode
from cyclescope.probe.catalogue import NEEDED, PROBES
from cyclescope.remarks.ports import NoPorts, Usage
from cyclescope.remarks.timing import Cause
from cyclescope.session.machines import load_model
from cyclescope.simulate.passing import Passing

MACHINE = "MadeByHand 6-1-1 skylake"
FORMS = (
    "IMUL (R64, R64)", "SHL (R64, I8)", "VPADDD (XMM, XMM, XMM)", "MOV (R64, M64)", "MOV (M64, R64)",
    "VPXOR (XMM, XMM, XMM)",
)  # fmt: skip


def fill(path, table, names, quantities, **conditions):
    """A store with some forms measured on a simulated Skylake."""
    with closing(SimulatedBackend(load_model("skylake"))) as backend, closing(Store(path, MACHINE)) as store:
        request = Request(tuple(table[name] for name in names), frozenset(quantities))
        Campaign(table, backend, store).run(request, {"brand": "Made by hand", **conditions})
    return path


def built(path, table, known=None):
    with closing(Store(path, readonly=True)) as store:
        return build_model(store, table, known)


@pytest.fixture(scope="module")
def filled(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "store.sqlite"
    return fill(path, table, FORMS, ("throughput", "latency", "ports"), cpu=3, clock="simulated")


@pytest.fixture(scope="module")
def truth():
    return load_model("skylake")


@pytest.fixture(scope="module")
def model(filled, table, truth):
    return built(filled, table, truth)


# --- the whole --------------------------------------------------------------------------------------

BUILD = """
import sys
from pathlib import Path
from cyclescope.infer.host_model import build_file
from cyclescope.model.schema import encode
sys.stdout.buffer.write(encode(build_file(Path(sys.argv[1]))))
"""


@pytest.mark.slow
def test_it_is_the_same_in_every_process_and_after_reading_it(filled):
    once, again = (
        subprocess.run(
            [sys.executable, "-c", BUILD, filled], check=True, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )  # fmt: skip
    assert once == again
    assert encode(decode(once)) == once


def test_it_is_a_model_without_problems(model):
    assert not list(problems(model))
    assert (model.name, model.isa) == (MACHINE, "x86-64")
    assert set(FORMS) < set(model.forms)


def test_what_was_put_in_comes_out(model, truth):
    for name in ("IMUL (R64, R64)", "SHL (R64, I8)", "VPADDD (XMM, XMM, XMM)", "MOV (R64, M64)"):
        cost, true = model.forms[name], truth.forms[name]
        assert cost.slots == true.slots
        assert notation(cost.operations, model.ports) == notation(true.operations, truth.ports)
        known = {pair: cycles for pair, cycles in cost.latencies.items() if pair in true.latencies}
        assert known
        assert known == {pair: true.latencies[pair] for pair in known}
    assert model.forms["IMUL (R64, R64)"].throughput == pytest.approx(1, rel=0.02)


def test_the_core_is_what_plain_moves_show(model, truth):
    forward = model.core.forward_latency
    expected = Core(
        truth.core.width, load_latency=5, forward_latency=forward, whole=False, width_kind=MEASURED,
        width_source=model.core.width_source, lengths=model.core.lengths,
    )  # fmt: skip
    assert model.core == expected
    assert model.core.forward_latency >= model.core.load_latency


def test_the_width_has_its_proof_and_lengths_have_no_limit(model):
    assert "loops agree (" in model.core.width_source
    assert [(size, round(cycles, 1)) for size, cycles in model.core.lengths] == [
        (n, 1.0) for n in range(1, 16)
    ]


def test_moves_and_idioms_of_the_renamer(model):
    assert not any(model.forms[name].eliminated for name in FORMS)  # LLVM's Skylake has no such moves
    assert model.forms["VPXOR (XMM, XMM, XMM)"].idiom == "zero"
    assert model.forms["VPADDD (XMM, XMM, XMM)"].idiom == ""


def test_every_resource_of_a_form_has_a_capacity(model):
    assert model.resources["p1"] == 1
    assert model.forms["IMUL (R64, R64)"].resources["p1"] == pytest.approx(1, abs=0.1)
    assert all(cost.resources.keys() <= model.resources.keys() for cost in model.forms.values())


def test_where_it_comes_from(model):
    origin = model.provenance
    assert (origin.kind, origin.source) == ("measured", "Made by hand, measured by cyclescope")
    assert origin.date
    assert any("CPU 3, simulated" in note for note in origin.notes)
    assert any("the names, and nothing else, of the machine skylake" in note for note in origin.notes)


def test_nothing_but_names_comes_from_the_known_machine(model, filled, table, truth):
    nonsense = {
        name: msgspec.structs.replace(
            cost, slots=9, latencies=dict.fromkeys(cost.latencies, 77.0), eliminated=True, idiom="breaking"
        )
        for name, cost in truth.forms.items()
    }
    other = msgspec.structs.replace(
        truth, forms=nonsense, core=Core(99, load_latency=99), ports=tuple(f"q{p}" for p in truth.ports)
    )
    found = built(filled, table, other)
    assert [name.removeprefix("q") for name in found.ports] == list(model.ports)
    assert found.core == model.core
    bare = [
        {f: msgspec.structs.replace(c, resources={}, alternatives=()) for f, c in m.forms.items()}
        for m in (found, model)
    ]
    assert bare[0] == bare[1]
    assert [c.resources.values() for c in found.forms.values()] != []


def test_without_a_known_machine_names_are_neutral(filled, table, model):
    found = built(filled, table)
    assert found.ports == tuple("0123456789a"[: len(model.ports)])
    imul = notation(found.forms["IMUL (R64, R64)"].operations, found.ports)
    assert imul.startswith("1*p")
    assert any("neutral names" in note for note in found.provenance.notes)


def test_a_store_without_ports(table, tmp_path):
    model = built(fill(tmp_path / "s.sqlite", table, ["IMUL (R64, R64)", "NOP"], ("throughput",)), table)
    assert not list(problems(model))
    assert (model.ports, model.resources, model.core.width) == ((), {}, 6)
    assert model.forms["IMUL (R64, R64)"].operations is None
    assert any("no ports: `cyclescope measure --what ports`" in note for note in model.provenance.notes)


def test_the_width_without_a_form_that_shows_it(table, tmp_path):
    model = built(fill(tmp_path / "s.sqlite", table, ["IMUL (R64, R64)"], ("throughput",)), table)
    assert model.core.width == 6


def test_a_store_filled_under_emulation_is_refused(table, tmp_path):
    path = fill(tmp_path / "s.sqlite", table, ["IMUL (R64, R64)"], ("throughput",), real_time=False)
    with pytest.raises(StoreError, match="under emulation"):
        built(path, table)


@pytest.mark.parametrize(("cycles", "kept"), [(9e5, True), (1.1e6, False)])
def test_a_form_that_takes_what_no_machine_can_is_left_out(table, tmp_path, cycles, kept):
    """A model is made, and read, however much a neighbour or a host disturbed one form."""
    path = fill(tmp_path / "s.sqlite", table, ["IMUL (R64, R64)", "NOP"], ("throughput", "latency"))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE measurement SET cycles = ? WHERE form LIKE 'IMUL%'", (cycles,))
    model = built(path, table)
    assert not list(problems(model))
    assert "NOP" in model.forms
    assert ("IMUL (R64, R64)" in model.forms) is kept
    told = [line for line in model.provenance.missing if "no machine can be so: IMUL (R64, R64): " in line]
    assert bool(told) is not kept


def test_a_store_of_nothing_is_refused(table, tmp_path):
    Store(tmp_path / "s.sqlite", MACHINE).close()
    with pytest.raises(StoreError, match=r"no value of any form: run `cyclescope.measure_forms"):
        built(tmp_path / "s.sqlite", table)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("AuthenticAMD 1a-2-1 znver5", "znver4"),
        ("X 1-1-1 znver3", "znver3"),
        ("X 6-1-1 unknown", None),
        ("X ./a.json", None),
        ("", None),
    ],
)
def test_the_known_machine_of_a_store(machine, name):
    found = known_machine(machine)
    assert ((found.borrowed.core if found.borrowed else found.name) if found else None) == name


# --- one form ---------------------------------------------------------------------------------------


def timing(*latencies, throughput=None, **more):
    return FormTiming("F", {}, "ok", throughput, latencies, **more)


def latency(least, most, kind=EXACT, **more):
    return Latency("op1", "op2", least, most, kind, 0.0, **more)


@pytest.mark.parametrize(
    ("found", "value", "limits"),
    [
        (latency(3.0, 3.0), 3.0, None),
        (latency(7.0, 7.0, convention="loads", bounds=(2.0, 9.0)), 7.0, (2.0, 9.0)),
        (latency(3.0, 3.4, INTERVAL), None, (3.0, 3.4)),
        (latency(6.0, 6.5, INTERVAL, convention="loads", bounds=(0.0, 13.9)), None, (0.0, 6.5)),
        (latency(0.0, 5.0, UPPER_BOUND), None, (0.0, 5.0)),
        (latency(9.0, 17.0, values={"fast": 9.0, "slow": 17.0}), None, (9.0, 17.0)),
        (latency(9.0, 9.0, values={"fast": 9.0, "slow": 9.0}), 9.0, None),
        (latency(None, None, None, reason="not measured"), None, None),
    ],
)
def test_only_what_is_determined_is_a_latency(found, value, limits):
    cost = form_cost(timing(found))
    assert cost.latencies == ({} if value is None else {"op1->op2": value})
    assert cost.ranges == ({} if limits is None else {"op1->op2": limits})


@pytest.mark.parametrize(
    ("found", "value", "said"),
    [
        (Throughput(0.5, 0.0, EXACT), 0.5, ""),
        (Throughput(3.0, 0.0, UPPER_BOUND, note="with its return"), None, "at most 3: with its return"),
        (Throughput(7.0, 0.0, EXACT, {"fast": 7.0, "slow": 12.0}), 7.0, "of slow ones 12"),
        (Throughput(None, None, None, reason="it enters the kernel"), None, "it enters the kernel"),
        (None, None, ""),
    ],
)
def test_only_an_exact_throughput_is_one(found, value, said):
    cost = form_cost(timing(throughput=found))
    assert cost.throughput == value
    assert said in cost.note
    assert bool(said) == bool(cost.note)


def test_what_the_port_experiments_tell():
    usage = PortUsage(
        2.0, "1*p0+1*p1", (Operation((0,)), Operation((1,))), 1.0, "medium", ("2*p01",), {"p0": 1.0},
        True, (Usage.AS_KEPT.of("odd"),),
    )  # fmt: skip
    cost = form_cost(timing(throughput=Throughput(1.0, 0.0, EXACT, confidence="low")), usage)
    assert (cost.slots, cost.operations) == (2.0, usage.operations)
    assert (cost.confidence, cost.alternatives, cost.microcoded, cost.note) == (
        "medium", ("2*p01",), True, "odd",
    )  # fmt: skip


def test_a_form_without_port_usage_says_why():
    cost = form_cost(timing(), PortUsage(1.0, None, remarks=(NoPorts.NO_SLOTS.of(),)))
    assert (cost.operations, cost.note) == (None, NoPorts.NO_SLOTS.value)


@pytest.mark.parametrize(
    ("causes", "operations", "eliminated"),
    [
        ([Cause.ELIMINATED], (), True),
        ([Cause.ELIMINATED], None, True),
        ([Cause.ELIMINATED, Cause.NONE], None, False),
        ([Cause.ELIMINATED], (Operation((0,)),), False),
        ([Cause.NONE], (), False),
    ],
)
def test_eliminated_needs_no_time_and_no_port(causes, operations, eliminated):
    latencies = [latency(0.0, 0.0, cause=cause) for cause in causes]
    cost = form_cost(timing(*latencies), PortUsage(1.0, None, operations))
    assert cost.eliminated == eliminated


@pytest.mark.parametrize(
    ("said", "idiom"),
    [("zero idiom, needs no execution unit", "zero"), ("dependency-breaking idiom", "breaking"), ("", "")],
)
def test_idioms(said, idiom):
    assert form_cost(timing(idiom=said)).idiom == idiom


def test_a_throughput_beside_others_is_kept_as_what_it_is_at_most():
    """PUSH needs something that puts the stack pointer back: a loop of pushes is no slower than that."""
    timing = FormTiming("PUSH (R64)", {}, "ok", Throughput(0.5, 0.0, UPPER_BOUND, note="with its return"), ())
    cost = form_cost(timing)
    assert (cost.throughput, cost.throughput_most) == (None, 0.5)
    exact = FormTiming("PUSH (R64)", {}, "ok", Throughput(0.5, 0.0, EXACT), ())
    assert (form_cost(exact).throughput, form_cost(exact).throughput_most) == (0.5, None)


def test_a_throughput_has_its_error():
    for kind, error in ((EXACT, 0.31), (UPPER_BOUND, 0.0)):
        timing = FormTiming("ADD (R64, M64)", {}, "ok", Throughput(0.4, 0.31, kind), ())
        assert form_cost(timing).throughput_error == error


def test_a_throughput_with_an_index_stands_beside_that_without():
    for kind, value in ((EXACT, 2.0), (UPPER_BOUND, None)):
        found = Throughput(0.5, 0.0, kind, indexed=2.0)
        assert form_cost(FormTiming("TZCNT (R64, M64)", {}, "ok", found, ())).indexed_throughput == value


# --- facts ------------------------------------------------------------------------------------------


def test_a_run_for_a_model_asks_what_predictions_need(table, tmp_path):
    told = []
    names = ("IMUL (R64, R64)", "MOV (R64, M64)", "MOV (M64, R64)")
    request = Request(tuple(table[name] for name in names), frozenset(("throughput",)), facts=True)
    with closing(Store(tmp_path / "store.sqlite", MACHINE)) as store:
        for _ in range(2):
            backend = SimulatedBackend(load_model("skylake"), passing=Passing(failed=9.0))
            assert Campaign(table, backend, store, told.append).run(request, {})
        facts = store.facts()
        model = build_model(store, table)
    assert {fact.probe for fact in facts} == set(NEEDED)
    unanswered = set(NEEDED) - {fact.probe for fact in facts if fact.is_resolved}
    assert [(p.done, p.total) for p in told if p.stage == CORE_FACTS][len(NEEDED) :] == (
        [(1, 1)] if unanswered else []
    )  # the second run asked again only what had no answer
    assert len(unanswered) <= 1
    assert model.facts == tuple(fact for fact in facts if fact.is_resolved)
    assert behaviour_of(model).passing


def test_a_run_asks_again_where_a_probe_has_new_cases(table, tmp_path):
    """A store of an earlier version has answers of a probe, but not of what it asks since."""
    told = []
    request = Request((table["MOV (R64, M64)"],), frozenset(("throughput",)), facts=True)
    with closing(Store(tmp_path / "store.sqlite", MACHINE)) as store:
        backend = SimulatedBackend(load_model("skylake"))
        for _ in range(2):
            for name in NEEDED if not told else ():
                subjects = [case.subject for case in PROBES[name].cases("x86-64")]
                some = subjects[1:] if name == "fusion" else subjects
                store.write_probe(name, [Fact(name, one, CoreAnswer.EXECUTED) for one in some], ())
            assert Campaign(table, backend, store, told.append).run(request, {})
        asked = {fact.subject for fact in store.facts() if fact.probe == "fusion"}
    assert [(p.done, p.total) for p in told if p.stage == CORE_FACTS] == [(1, 1)], "once, and only that one"
    assert asked == {case.subject for case in PROBES["fusion"].cases("x86-64")}


def test_a_run_of_some_forms_asks_nothing_of_the_core(filled):
    with closing(Store(filled, readonly=True)) as store:
        assert store.facts() == []
