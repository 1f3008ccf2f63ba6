"""When a core chooses ports: the policy that makes the readings of its probe likeliest."""

from __future__ import annotations

import random
from itertools import product

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.infer.scheduler import (
    NOT_TOLD,
    Scheduling,
    scheduling_of,
    ways,
    with_clusters,
    with_dealt,
    with_turns,
)
from cyclescope.isa.table import load_table
from cyclescope.model.facts import SCHEDULER, CoreAnswer, Fact
from cyclescope.model.machine import (
    BINDINGS,
    EVENLY,
    GROUPED,
    IDEAL,
    ROUND_ROBIN,
    STATIC,
    Operation,
    Scheduler,
    Wakeup,
    Writeback,
)
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.core.scheduler import vector_cases
from cyclescope.probe.run import ask
from cyclescope.session.machines import load_model
from tests.support.made.probed import NOISE
from tests.unit.infer.schedule.found import binding_of, predicted, read, with_wakeup

CORES = {"skylake": "x86-64", "neoverse-v2": "aarch64", "sifive-p670": "riscv64"}
ADD, ADD_VECTORS = "ADD_01 (R64, R64)", "VPADDD (YMM, YMM, YMM)"
SENDING = "PMOVMSKB (R64, XMM)"  # what a vector unit makes, to a general register
SEED = random.SystemRandom().randrange(1 << 30)


@pytest.fixture(scope="module")
def skylake():
    return load_model("skylake")


@pytest.mark.parametrize(
    ("core", "policy"),
    [
        pytest.param(core, policy, marks=() if turn % len(CORES) == 0 else pytest.mark.slow)
        for turn, (core, policy) in enumerate(product(CORES, BINDINGS))
    ],
)
def test_the_policy_of_a_simulated_core_is_found(core, policy):
    """Policies that a core cannot be told apart by make the same cycles: any of those is right, or none."""
    machine, table = load_model(core), load_table(CORES[core])
    backend = SimulatedBackend(machine, policy, noise=msgspec.structs.replace(NOISE, seed=SEED))
    (asked,) = ask([PROBES["scheduler"]], backend, table)
    assert sum(fact.is_resolved for fact in asked.facts) >= 8, f"seed {SEED}"
    found, way = scheduling_of(machine, asked.facts, table), Scheduling(policy)
    truth, told = (predicted(machine, table, one) for one in (way, way if found == NOT_TOLD else found))
    far = [name for name in truth if abs(told[name] - truth[name]) > 0.15 * truth[name]]
    assert far == [], f"seed {SEED}"


@pytest.mark.parametrize(
    ("core", "policy"),
    [
        ("skylake", GROUPED),
        ("alderlake", ROUND_ROBIN),
        pytest.param("haswell", STATIC, marks=pytest.mark.slow),
        pytest.param("znver3", EVENLY, marks=pytest.mark.slow),
    ],
)
def test_policies_that_make_a_difference_are_told(core, policy, table):
    machine = load_model(core)
    assert binding_of(machine, read(machine, table, policy), table) == policy
    assert binding_of(machine, read(machine, table, IDEAL), table) == ""


def test_without_ports_or_readings_nothing_is_told(table):
    machine = load_model("alderlake")
    some = read(machine, table, ROUND_ROBIN)
    assert binding_of(msgspec.structs.replace(machine, ports=()), some, table) == ""
    ideal = predicted(machine, table, Scheduling(IDEAL))
    telling = sorted(some, key=lambda fact: ideal[fact.subject] - fact.value)
    assert binding_of(machine, telling[:3], table) == ""
    assert binding_of(machine, telling[:4], table) == ROUND_ROBIN
    others = [Fact("fusion", fact.subject, fact.answer, fact.value, fact.error) for fact in some]
    assert binding_of(machine, others, table) == ""


def test_early_announcement_is_told_from_ports_chosen_late_or_at_the_start(skylake, table):
    early = with_wakeup(skylake)
    facts = read(skylake, table, IDEAL, wakeup=early)
    assert scheduling_of(skylake, facts, table) == Scheduling(IDEAL, early)
    parts = with_wakeup(skylake, (early.ports[:2], early.ports[2:]))
    told = scheduling_of(skylake, read(skylake, table, IDEAL, wakeup=parts), table)
    assert told.binding == IDEAL
    assert len(told.wakeup.clusters) == 2
    assert scheduling_of(skylake, read(skylake, table, IDEAL), table) == NOT_TOLD


def test_blurred_ages_and_results_that_are_lost_are_told(skylake, table):
    ports = with_wakeup(skylake).ports
    for way in (
        Scheduling(IDEAL, Wakeup(ports, blur=16)),
        Scheduling(IDEAL, Wakeup(ports, blur=16, one_result=True)),
    ):
        cycles = predicted(skylake, table, way)
        facts = [Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01) for name, value in cycles.items()]
        assert scheduling_of(skylake, facts, table) == way


@pytest.mark.parametrize("blur", [8, 16, 32])
def test_parts_of_a_scheduler_are_told_however_blurred_ages_are(blur, table):
    machine = load_model("znver4")
    ports = with_wakeup(machine).ports
    way = Scheduling(IDEAL, Wakeup(ports, (ports[::2], ports[1::2]), blur))
    cycles = predicted(machine, table, way)
    facts = [Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01) for name, value in cycles.items()]
    assert scheduling_of(machine, facts, table) == way


def test_the_part_whose_ports_are_dealt_first_is_told(skylake, table):
    """Additions of vectors of a Skylake have ports of both parts, and not all of these."""
    for leading in ((0, 6), (1, 5)):
        way = Scheduling(IDEAL, Wakeup((0, 1, 5, 6), ((0, 6), (1, 5)), 8, leading=leading))
        facts = read(skylake, table, IDEAL, wakeup=way.wakeup)
        assert scheduling_of(skylake, facts, table) == way


def test_a_noisy_core_that_announces_early_is_found(skylake, table):
    early = with_wakeup(skylake)
    core = msgspec.structs.replace(skylake.core, wakeup=early)
    backend = SimulatedBackend(
        msgspec.structs.replace(skylake, core=core), IDEAL, noise=msgspec.structs.replace(NOISE, seed=SEED)
    )
    (asked,) = ask([PROBES["scheduler"]], backend, table)
    assert scheduling_of(skylake, asked.facts, table).wakeup is not None, f"seed {SEED}"


@pytest.mark.parametrize(
    ("core", "policy"), [pytest.param("skylake", GROUPED, marks=pytest.mark.slow), ("znver3", EVENLY)]
)
def test_ports_that_get_one_operation_in_a_cycle_are_told(core, policy, table):
    machine = load_model(core)
    (operation,) = machine.forms["ADD_01 (R64, R64)"].operations
    single = Scheduling(policy, single=tuple(sorted(operation.ports)))
    assert scheduling_of(machine, read(machine, table, policy, single=single.single), table) == single
    assert scheduling_of(machine, read(machine, table, policy), table) == Scheduling(policy)
    known = msgspec.structs.replace(machine, core=single.of(machine.core))
    backend = SimulatedBackend(known, policy, noise=msgspec.structs.replace(NOISE, seed=SEED))
    (asked,) = ask([PROBES["scheduler"]], backend, table)
    assert scheduling_of(machine, asked.facts, table) == single, f"seed {SEED}"


def test_ports_that_are_chosen_for_a_whole_cycle_are_told(table):
    machine = load_model("znver3")
    (operation,) = machine.forms["ADD_01 (R64, R64)"].operations
    ports = tuple(sorted(operation.ports))
    ahead = Scheduling(EVENLY, single=ports, ahead=True)
    for way in (ahead, msgspec.structs.replace(ahead, writeback=Writeback(ports, 4))):
        cycles = predicted(machine, table, way)
        facts = [Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01) for name, value in cycles.items()]
        assert scheduling_of(machine, facts, table) == way


def test_ports_that_write_one_result_in_a_cycle_are_told(table):
    machine = load_model("znver3")
    (operation,) = machine.forms["ADD_01 (R64, R64)"].operations
    ports = tuple(sorted(operation.ports))
    for writeback in (Writeback(ports, 0), Writeback(ports, 4)):
        way = Scheduling(EVENLY, single=ports, writeback=writeback)
        cycles = predicted(machine, table, way)
        facts = [Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01) for name, value in cycles.items()]
        assert scheduling_of(machine, facts, table) == way
    known = msgspec.structs.replace(machine, core=way.of(machine.core))
    backend = SimulatedBackend(known, EVENLY, noise=msgspec.structs.replace(NOISE, seed=SEED))
    (asked,) = ask([PROBES["scheduler"]], backend, table)
    assert scheduling_of(machine, asked.facts, table).writeback is not None, f"seed {SEED}"


@pytest.mark.parametrize("crossing", [False, True])
def test_ports_that_write_what_vector_units_send_are_told(table, crossing):
    machine = load_model("znver3")
    (shift,) = machine.forms["RORX (R64, R64, I8)"].operations
    ports = tuple(sorted(machine.forms["ADD_01 (R64, R64)"].operations[0].ports))
    sent = msgspec.structs.replace(machine.forms[SENDING], operations=(Operation(shift.ports, 2.0),))
    machine = msgspec.structs.replace(machine, forms={**machine.forms, SENDING: sent})
    way = Scheduling(EVENLY, single=ports, writeback=Writeback(ports, 4, crossing))
    known = msgspec.structs.replace(machine, core=way.of(machine.core))
    backend = SimulatedBackend(known, EVENLY, noise=msgspec.structs.replace(NOISE, seed=SEED))
    (asked,) = ask([PROBES["scheduler"]], backend, table)
    found = scheduling_of(machine, asked.facts, table).writeback
    assert found is not None, f"seed {SEED}"
    assert (found.ports, found.crossing) == (ports, crossing), f"seed {SEED}"
    cycles = predicted(machine, table, way)
    facts = [Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01) for name, value in cycles.items()]
    assert scheduling_of(machine, facts, table) == way


@pytest.fixture(scope="module")
def in_turn():
    """A core whose vector ports take operations in turn, and the way of that."""
    machine = load_model("znver4")
    ports, vectors = (tuple(sorted(machine.forms[form].operations[0].ports)) for form in (ADD, ADD_VECTORS))
    half = len(vectors) // 2
    queues = (Scheduler("vector 0", vectors[:half], 32), Scheduler("vector 1", vectors[half:], 32))
    way = Scheduling(EVENLY, single=ports, rotating=vectors, schedulers=queues)
    return msgspec.structs.replace(machine, core=msgspec.structs.replace(machine.core, schedulers=())), way


def both(machine, table, way):
    """What the probe would read, of general registers and of vectors."""
    return predicted(machine, table, way) | predicted(machine, table, way, vector_cases)


def test_vector_ports_that_take_operations_in_turn_are_told(table, in_turn):
    machine, way = in_turn
    known = msgspec.structs.replace(machine, core=way.of(machine.core))
    backend = SimulatedBackend(known, EVENLY, noise=msgspec.structs.replace(NOISE, seed=SEED))
    (asked,) = ask([PROBES["scheduler"]], backend, table)
    found = scheduling_of(machine, asked.facts, table)
    assert (found.rotating, found.single) == (way.rotating, way.single), f"seed {SEED}"
    truth, told = both(machine, table, way), both(machine, table, found)
    far = [name for name in truth if abs(told[name] - truth[name]) > 0.1 * truth[name]]
    assert far == [], f"seed {SEED}"


def test_vector_ports_that_got_fewest_are_not_taken_for_others(table, in_turn):
    machine, way = in_turn
    evenly = msgspec.structs.replace(way, rotating=(), schedulers=())
    facts = [
        Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01)
        for name, value in both(machine, table, evenly).items()
    ]
    assert scheduling_of(machine, facts, table) == evenly


def facts_of(read):
    return [Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01) for name, value in read.items()]


@pytest.mark.parametrize("patience", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_vector_ports_that_write_one_result_in_a_cycle_are_told(table, in_turn, patience):
    machine, way = in_turn
    late = Scheduling(IDEAL, Wakeup(way.single))
    assert scheduling_of(machine, facts_of(both(machine, table, late)), table) == late
    dealt = msgspec.structs.replace(late, writeback=Writeback(way.rotating, patience))
    found = scheduling_of(machine, facts_of(both(machine, table, dealt)), table)
    assert (found.binding, found.wakeup) == (IDEAL, late.wakeup)
    assert found.writeback is not None
    assert found.writeback.ports == way.rotating
    assert not with_dealt(Scheduling(EVENLY), machine, "x86-64")


@pytest.mark.parametrize("entries", [16, pytest.param(8, marks=pytest.mark.slow)])
def test_room_in_front_of_vector_ports_is_told(table, in_turn, entries):
    machine, way = in_turn
    late = Scheduling(IDEAL, Wakeup(way.single))
    dealt = msgspec.structs.replace(late, writeback=Writeback(way.rotating, entries=entries))
    found = scheduling_of(machine, facts_of(both(machine, table, dealt)), table)
    assert found.writeback is not None
    assert (found.writeback.ports, found.writeback.entries) == (way.rotating, entries)


def test_vector_ports_of_general_operations_and_ports_chosen_late_take_none_in_turn(skylake, in_turn):
    machine, way = in_turn
    assert len(with_turns(way, machine, "x86-64")) % 5 == 0  # sizes from 8 to 128
    assert not with_turns(Scheduling(IDEAL), machine, "x86-64")
    assert not with_turns(Scheduling(EVENLY), skylake, "x86-64")
    assert not with_turns(way, machine, "riscv64")


def test_schedulers_in_front_of_other_ports_stay(in_turn):
    machine, way = in_turn
    memory = Scheduler("memory", (way.single[0],), 24)
    core = msgspec.structs.replace(machine.core, schedulers=(memory,))
    assert way.of(core).schedulers == (memory, *way.schedulers)
    assert way.of(way.of(core)).schedulers == (memory, *way.schedulers)


def test_ways_differ_in_what_ports_can_tell(skylake, table):
    """Ports of one kind stand for each other; without ports of additions nothing is announced."""
    (early,) = (way for way in ways(skylake, "x86-64") if way.wakeup)
    assert early.wakeup == with_wakeup(skylake)
    assert 2 <= len(with_clusters(early, skylake)) <= 1 + 3
    add = "ADD_01 (R64, R64)"
    unknown = msgspec.structs.replace(skylake.forms[add], operations=None)
    blind = msgspec.structs.replace(skylake, forms=dict(skylake.forms) | {add: unknown})
    assert [way.binding for way in ways(blind, "x86-64")] == list(BINDINGS)
