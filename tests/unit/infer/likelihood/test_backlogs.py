"""Instructions that gather in the scheduler show ports that the front end hides: on cores of known ports."""

from __future__ import annotations

import math

import pytest

from cyclescope.backend.base import Effort
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.infer.likelihood.evidence import Class, ClassPair, evidence_of, is_hidden
from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.unions import UnionEvidence
from cyclescope.infer.ports.classes import backlogs_of
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import BACKLOG, PortPlanner
from cyclescope.measure.record import Record
from cyclescope.model.machine import DRAWN, Core, FormCost, MachineModel, Operation, Provenance, Scheduler

SLOW, SHIFT, LOGIC = "IMUL (R64, R64)", "RORX (R64, R64, I8)", "ANDN (R64, R64, R64)"
LOAD, FLIP, VECTOR = "MOV (R64, M64)", "BSWAP (R64)", "VPADDB (XMM, XMM, XMM)"
SHIFTS = 0, 1, 2
PORTS = 6
QUEUE = 60  # entries: of drawn cores none has fewer


def machine(logic, queue=QUEUE):
    """A core of four slots, and shifts with three ports."""
    names = tuple(map(str, range(PORTS)))
    core = Core(
        width=4.0, reorder_buffer=128, load_latency=4.0, forward_latency=5.0,
        schedulers=(Scheduler("all", tuple(range(PORTS)), queue),),
    )  # fmt: skip
    latency = {
        SLOW: {"op1->op1": 3.0, "op2->op1": 3.0},
        SHIFT: {"op2->op1": 1.0},
        LOGIC: {"op2->op1": 1.0, "op3->op1": 1.0},
    }
    ports = {SLOW: (0,), SHIFT: SHIFTS, LOGIC: logic}
    forms = {name: FormCost(1.0, (Operation(some),), latency[name]) for name, some in ports.items()}
    return MachineModel("made", "x86-64", Provenance(DRAWN), core, names, forms)


def plans_of(table):
    return PortPlanner(Planner(table, lambda form: True))


def looks_of(table, model, policy="ideal"):
    """What the core takes for shifts and logic that gathered, in both orders."""
    plans, backend = plans_of(table), SimulatedBackend(model, policy)
    forms, widths = (table[SHIFT], table[LOGIC]), (3, len(model.forms[LOGIC].operations[0].ports))
    asked = [*plans.backlogs(forms, widths), *plans.backlogs(forms[::-1], widths[::-1])]
    experiments = [question.make() for question in asked]
    backend.submit([one.kernel for one in experiments], Effort())
    records = [
        Record(*one.key, some[0].cycles, some[0].spread, "ok", 1, ())
        for one, some in zip(experiments, backend.collect(), strict=True)
    ]
    return list(backlogs_of(records).values()), records


def pair_of(looks):
    one, other = (Class(name, 3, frozenset("r")) for name in "ab")
    return ClassPair(one, other, None, (), (), backlogs=looks)


@pytest.mark.parametrize("policy", ["ideal", "grouped", "static", "evenly"])
@pytest.mark.parametrize(("logic", "union"), [((0, 1, 3), 4), ((0, 3, 4), 5), ((3, 4, 5), 6)])
def test_what_gathers_issues_at_the_rate_of_its_ports(table, logic, union, policy):
    looks, _ = looks_of(table, machine(logic), policy)
    [found] = evidence_of([pair_of(looks)], 4.0)
    assert found.nats[union] == found.best


def test_without_a_backlog_the_front_end_hides_ports(table):
    alone = pair_of(())._replace(together=Look(1.5, 0.02))
    [hidden] = evidence_of([alone], 4.0)
    assert hidden.nats[4] == hidden.nats[5] == hidden.nats[6]
    assert is_hidden(hidden, 4.0)
    [told] = evidence_of([alone._replace(backlogs=looks_of(table, machine((0, 3, 4)))[0])], 4.0)
    assert min(told.nats[size] for size in (3, 4, 6)) > told.nats[5] + 3


@pytest.mark.parametrize(
    ("sides", "sizes", "slots", "asked"),
    [
        ("", (5, 6), 4.0, True),
        ("", (5, 6), 8.0, False),  # a loop of both tells
        ("", (6,), 4.0, False),
        ("rv", (5, 6), 4.0, False),  # nothing keeps both waiting
    ],
)
def test_what_the_front_end_hides_is_asked(sides, sizes, slots, asked):
    nats = {n: 0.0 if n in sizes else 20.0 for n in range(3, 7)}
    evidence = UnionEvidence("a", "b", nats, sides=frozenset(sides))
    assert is_hidden(evidence, slots) is asked
    assert not is_hidden(UnionEvidence("a", "b", nats, asked=False), slots)


def test_a_cycle_more_or_less_of_many_is_no_surprise(table):
    """Each issues in a whole cycle: a quarter of one remains of that."""
    [look], _ = looks_of(table, machine((0, 3, 4)))
    assert look.error == pytest.approx(0.25 / 5, rel=0.02)


def test_orders_that_differ_tell_less():
    """Where ports are chosen early, what is last in one order may issue sooner than others."""
    times = {("a", "b", 1): 10.0, ("a", "b", 5): 14.0, ("b", "a", 1): 10.0, ("b", "a", 5): 15.6}
    records = [
        Record(one, BACKLOG, other, "", f"x{n}.0.{3 * n}.{3 * n}", cycles, 0.0, "ok", 1, ())
        for (one, other, n), cycles in times.items()
    ]
    [look] = backlogs_of(records).values()
    assert look.value == pytest.approx(1.2)
    assert look.error == pytest.approx(math.hypot(0.2, 0.25 / 4))


def test_any_scheduler_holds_a_backlog(table):
    """Drawn cores have queues of 60 entries at least, or of 16 for each port."""
    for logic in ((0, 3, 4), (3, 4, 5)):
        assert looks_of(table, machine(logic, 48))[0] == looks_of(table, machine(logic))[0]


def test_one_slow_chain_keeps_all_waiting(table):
    forms = table[SHIFT], table[LOGIC]
    found = [question.make() for question in plans_of(table).backlogs(forms, (3, 3))]
    few, many = (found[at].kernel.body for at in (0, -1))
    assert (len(found), len(few), len(many)) == (18, 10, 44)
    chain, rest = many[:4], many[4:]
    [gate] = {one.registers[0] for one in chain}
    assert {one.form.id for one in chain} == {SLOW}
    assert all(gate in one.registers[1:] for one in rest)
    assert not any(one.registers[0] == gate for one in rest)
    ends = [one.registers[1] for one in chain[:2]]
    assert ends == [one.registers[0] for one in rest[-6:-4]]  # the third from behind of each
    assert not set(ends) & {one.registers[0] for one in rest[-4:]}


def test_instances_are_as_many_as_wait_for_one_chain(table):
    """Wider classes gather for fewer cycles; one of each has no other end."""
    asked = [q.key[4] for q in plans_of(table).backlogs((table[SHIFT], table[LOGIC]), (1, 4))]
    assert asked[0] == "x1.0.1.4"
    assert asked[-1] == "x8.2.10.34"
    assert sum(name.startswith("x1.") for name in asked) == 1 + 2 + 3


def test_what_nothing_keeps_waiting_has_no_backlog(table):
    plans = plans_of(table)
    assert plans.gates(table[SHIFT]) & plans.gates(table[LOGIC])
    assert not plans.gates(table[LOAD])  # a slow result is no address
    assert not plans.gates(table[FLIP])
    few, *_ = plans.backlogs((table[VECTOR], table[VECTOR]), (4, 4))
    assert few.make() is None
    assert few.key[1] == BACKLOG
