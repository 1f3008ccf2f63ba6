"""The simulated backend: the protocol, what fails, noise, counters, and latencies found on it."""

from __future__ import annotations

import pytest

from cyclescope.backend.base import NOT_RUN, OK, SIGNAL, UNCLEAN, Effort, Sample
from cyclescope.backend.simulated import LOUD, SIGILL, Noise, SimulatedBackend
from cyclescope.errors import UsageError
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.kept import timings
from cyclescope.infer.timing.results import EXACT
from cyclescope.isa.dataflow import is_old
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, Kernel, kernel_of
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.store import Store
from cyclescope.model.machine import (
    DRAWN,
    ROUND_ROBIN,
    STATIC,
    Core,
    FormCost,
    MachineModel,
    Operation,
    Provenance,
)
from cyclescope.model.ports import port_throughput
from cyclescope.simulate.draw import draw_machine
from tests.support.code.forms import chosen

STATE = MachineState((0,) * 16)
ADD, IMUL, MISSING = "ADD_01 (R64, R64)", "IMUL (R64, R64)", "CPUID"
COSTS = {
    ADD: FormCost(1, (Operation((0, 1, 2)),)),
    IMUL: FormCost(1, (Operation((1,)),), {"op1->op1": 3.0, "op2->op1": 3.0}),
}
MACHINE = MachineModel("small", "x86-64", Provenance(DRAWN), Core(4), ("0", "1", "6"), COSTS)


@pytest.fixture
def kernel(table):
    def make(form, *registers, copies=1, flags=0):
        body = [Instruction(table[form], registers or (n, 12)) for n in range(copies)]
        return kernel_of(body, STATE, flags=flags)

    return make


def measured(backend, *kernels, **effort):
    backend.submit(kernels, Effort(**effort))
    return backend.collect()


# --- the protocol ---------------------------------------------------------------------------------


def test_samples_are_cycles_per_unit_of_the_body(kernel):
    backend = SimulatedBackend(MACHINE)
    samples = measured(backend, kernel(IMUL, 0, 0), kernel(ADD, copies=6), rounds=3)
    assert [[s.cycles for s in rows] for rows in samples] == [[3.0] * 3, [2.0] * 3]
    assert {(s.status, s.spread, s.counters) for rows in samples for s in rows} == {(OK, 0.0, ())}


def test_batches_are_answered_in_order(kernel):
    backend = SimulatedBackend(MACHINE)
    backend.submit([kernel(IMUL, 0, 0)], Effort(rounds=1))
    backend.submit([kernel(ADD, 0, 0), kernel(IMUL, 0, 0)], Effort(rounds=1))
    assert [len(backend.collect()), len(backend.collect())] == [1, 2]


def test_it_says_what_it_is():
    capabilities = SimulatedBackend(MACHINE, STATIC).capabilities()
    assert (capabilities.isa, capabilities.real_time, capabilities.counters) == ("x86-64", False, ())
    assert "small" in capabilities.description
    assert "static" in capabilities.description


def test_the_policy_matters(kernel, table):
    body = [Instruction(table[form], (n, 12)) for n, form in enumerate((ADD, IMUL, IMUL, IMUL, IMUL))]
    mix = kernel_of(body, STATE)
    cycles = {p: measured(SimulatedBackend(MACHINE, p), mix)[0][0].cycles for p in ("ideal", ROUND_ROBIN)}
    assert cycles == {"ideal": 4.0, ROUND_ROBIN: pytest.approx(13 / 3)}  # a third of the additions on port 1
    with pytest.raises(UsageError, match="no port binding policy best"):
        SimulatedBackend(MACHINE, "best")


def test_a_closed_backend_forgets(kernel):
    backend = SimulatedBackend(MACHINE)
    backend.submit([kernel(ADD)], Effort())
    backend.close()
    with pytest.raises(IndexError):
        backend.collect()


# --- what fails -----------------------------------------------------------------------------------


def test_unknown_forms_raise_sigill(kernel, table):
    backend = SimulatedBackend(MACHINE)
    body = [Instruction(table[ADD], (0, 1)), Instruction(table[MISSING], ())]
    bad, good = kernel_of(body, STATE), kernel(ADD)
    outcomes = backend.probe([good, bad])
    assert [o.describe() for o in outcomes] == ["ok", "SIGILL"]
    assert outcomes[1].instruction == 1
    assert measured(backend, bad, rounds=2) == [[Sample(0.0, 0.0, SIGNAL, SIGILL, instruction=1)] * 2]


def test_bytes_alone_are_not_run_and_say_so(kernel):
    backend = SimulatedBackend(MACHINE)
    alone = Kernel(kernel(ADD).code, 1, STATE)
    assert backend.probe([alone])[0].describe() == "not run"
    assert [s.status for s in measured(backend, alone)[0]] == [NOT_RUN, NOT_RUN]
    assert "list of instructions" in backend.capabilities().notes[0]
    assert measured(backend, kernel_of([], STATE))[0][0] == Sample(0.0, 0.0, OK, accepted=Effort().want)


# --- counters -------------------------------------------------------------------------------------


def test_counters_are_named_by_port_and_exact(kernel):
    backend = SimulatedBackend(MACHINE, noise=LOUD, counters=True)
    assert backend.capabilities().counters == ("cycles", "uops", "p0", "p1", "p6")
    [rows] = measured(backend, kernel(IMUL, copies=5))
    assert {s.counters for s in rows} == {(5.0, 0.0, 5.0, 0.0)}  # as the runner: cycles left out
    [rows] = measured(backend, kernel(ADD, copies=6))
    assert rows[0].counters == pytest.approx((6, 2, 2, 2))


# --- noise ----------------------------------------------------------------------------------------


def test_noise_is_repeatable_and_differs_by_seed(kernel):
    kernels = [kernel(IMUL, 0, 0)] * 50

    def run(seed, batch=1):
        backend = SimulatedBackend(MACHINE, noise=Noise(jitter=0.01, seed=seed))
        return measured(backend, *kernels, seed=batch)

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert run(1) != run(1, batch=2)


def test_jitter_is_relative(kernel):
    backend = SimulatedBackend(MACHINE, noise=Noise(jitter=0.01))
    values = [s.cycles for rows in measured(backend, *[kernel(IMUL, 0, 0)] * 400) for s in rows]
    mean = sum(values) / len(values)
    deviation = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
    assert mean == pytest.approx(3.0, rel=0.002)
    assert deviation == pytest.approx(0.03, rel=0.1)


def test_neighbours_slow_throughput_kernels_and_canaries_catch_most(kernel):
    backend = SimulatedBackend(MACHINE, noise=Noise(burst=0.4, leak=0.1))
    chain, stream = kernel(IMUL, 0, 0), kernel(IMUL, 0, 0, flags=CANARY)
    rows = measured(backend, *[chain] * 500, rounds=1)
    assert {s.cycles for row in rows for s in row} == {3.0}
    samples = [s for row in measured(backend, *[stream] * 2000, rounds=1) for s in row]
    slow = [s for s in samples if s.cycles > 3.1]
    caught = [s for s in samples if s.status == UNCLEAN]
    assert len(slow) == pytest.approx(800, rel=0.1)
    assert len(caught) == pytest.approx(720, rel=0.1)
    assert all(s.cycles > 3.1 and s.accepted == 0 and s.rejected for s in caught)


def test_a_coarse_clock_matters_less_over_long_regions(kernel):
    def error(target):
        backend = SimulatedBackend(MACHINE, noise=Noise(step=30.0))
        rows = measured(backend, *[kernel(IMUL, 0, 0)] * 200, target=target)
        return max(abs(s.cycles - 3.0) for row in rows for s in row)

    assert 0 < error(50_000.0) < 0.2 * error(5_000.0) < 3.0 * 0.001
    assert SimulatedBackend(MACHINE, noise=Noise(step=30.0)).calibrate().step == 30.0


# --- what measuring finds on it -------------------------------------------------------------------


@pytest.fixture(scope="module")
def round_trip(table, tmp_path_factory):
    """A campaign over forms of every kind on a drawn machine, noise on."""
    machine = draw_machine(3, table)
    forms = [f for f in chosen(table) if not machine.forms[f.id].microcoded]
    backend = SimulatedBackend(machine, noise=LOUD)
    store = Store(tmp_path_factory.mktemp("simulated") / "store.sqlite", "drawn")
    request = Request(tuple(forms), frozenset((THROUGHPUT, LATENCY)), 0.0)
    Campaign(table, backend, store, lambda progress: None).run(request, {"machine": "drawn", "features": []})
    found = timings(store, table, forms)
    store.close()
    return machine, [(machine.forms[timing.id], timing) for timing in found]


@pytest.mark.slow
def test_measured_latencies_are_those_of_the_machine(round_trip):
    claimed = [
        (latency.min, cost.latencies.get(f"{latency.source}->{latency.target}"))
        for cost, timing in round_trip[1]
        for latency in timing.latencies
        if latency.kind == EXACT and not is_old(latency.source)
    ]
    wrong = [pair for pair in claimed if pair[1] is None or abs(pair[0] - pair[1]) > 0.1]
    assert len(claimed) > 1300
    assert len(wrong) <= 0.03 * len(claimed), wrong


def test_measured_throughputs_are_those_of_the_ports_and_slots(round_trip):
    machine, rows = round_trip
    found = [
        (
            t.throughput.value,
            max(port_throughput(c.operations), c.slots / machine.core.width),
            t.throughput.kind,
        )
        for c, t in rows
        if t.throughput is not None and t.throughput.value is not None
    ]
    claimed = [(value, true) for value, true, kind in found if kind == EXACT]
    assert len(claimed) > 200
    assert [pair for pair in claimed if abs(pair[0] - pair[1]) > 0.02 * pair[1] + 0.004] == []
    assert [row for row in found if row[0] < 0.98 * row[1] - 0.004] == []
