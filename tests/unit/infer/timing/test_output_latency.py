"""False output dependencies: what two kernels say, and whole campaigns on cores of known truth."""

from __future__ import annotations

from contextlib import closing

import msgspec
import pytest

from cyclescope.backend.simulated import LOUD, QUIET, SimulatedBackend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.machine_model import form_cost
from cyclescope.infer.timing import overwriting
from cyclescope.infer.timing.builder import TimingBuilder
from cyclescope.infer.timing.latency_system import UNCUT, LinkLatency
from cyclescope.infer.timing.overwriting import filling, output_latency
from cyclescope.infer.timing.results import EXACT, INTERVAL, UPPER_BOUND
from cyclescope.isa.dataflow import is_old, overwritten
from cyclescope.isa.table import load_table
from cyclescope.kernel.cycle import NOP
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.record import FAILED, NOISY, STABLE, UNSTABLE, Record
from cyclescope.measure.store import Store
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.model.machine import Operation
from cyclescope.session.machines import load_model
from cyclescope.simulate.draw import draw_machine

TABLE = load_table("x86-64")
FORM = TABLE["POPCNT (R64, R64)"]
(PAIR,) = overwritten(FORM)
LINKS = {"r>r": LinkLatency(1.0, 1.0, 1.0)}
FILLERS = 4
FOUND, ABSENT, HIDDEN, NOT_WHOLE, ONE_CHAIN, CHAINS_DISAGREE = (
    remark.text
    for remark in (
        overwriting.FOUND, overwriting.ABSENT, overwriting.HIDDEN, overwriting.NOT_WHOLE,
        overwriting.ONE_CHAIN, overwriting.CHAINS_DISAGREE,
    )
)  # fmt: skip


def stream(per_instance, variant="plain x16", **more):
    values = {"spread": 0.0, "verdict": STABLE, "links": ()} | more
    return Record("f", "throughput", "", "", variant, 16 * per_instance, count=16, **values)


def kept(per_instance, **more):
    values = {"spread": 0.0, "verdict": STABLE, "links": ()} | more
    return Record("f", "latency", "op1.old", "op1", "kept", 16 * per_instance, count=16, **values)


def filled(one, several, **more):
    """Cycles per instance of a filled chain with one destination, and with several."""
    values = {"spread": 0.0, "verdict": STABLE, "count": 4} | more
    chain = Record(
        "f", "latency", "op1.old", "op1", "filled", 4 * one, links=("r>r",) * 4 * FILLERS, **values
    )
    return chain, msgspec.structs.replace(chain, variant="filled apart", cycles=4 * several, links=())


def found(*records, streams=None, missing=""):
    return output_latency(
        PAIR, records, [stream(0.5)] if streams is None else streams, LINKS, lambda: missing
    )


# --- one kernel ------------------------------------------------------------------------------------


def test_as_fast_as_no_chain_can_be_is_proof_that_there_is_none():
    latency = found(kept(0.5))
    assert (latency.kind, latency.min, latency.max, latency.note) == (EXACT, 0.0, 0.0, ABSENT)
    assert latency.confidence == HIGH
    assert found(kept(0.84)).note == ABSENT
    assert found(kept(0.86)).note != ABSENT


def test_slower_by_a_whole_latency_is_a_dependency():
    latency = found(kept(3.01), *filled(7.0, 2.0))
    assert (latency.source, latency.target) == ("op1.old", "op1")
    assert (latency.kind, latency.min, latency.max, latency.note) == (EXACT, 3.0, 3.0, FOUND)
    assert latency.measured == 3.01
    assert latency.confidence == HIGH


def test_one_cycle_is_seen_beside_two_thirds():
    assert found(kept(1.0), *filled(5.0, 2.0), streams=[stream(2 / 3)]).confidence == HIGH


def test_what_the_throughput_hides_is_told_as_that():
    latency = found(kept(1.0), streams=[stream(1.0)])
    assert (latency.kind, latency.min, latency.max, latency.note) == (UPPER_BOUND, 0.0, 1.0, HIDDEN)
    assert found(kept(1.07), streams=[stream(1.0)]).note == HIDDEN
    assert found(kept(1.1), streams=[stream(0.95)]).note == HIDDEN, "a latency of 1, for which this is noise"


def test_what_is_slower_by_no_whole_latency_is_a_bound():
    latency = found(kept(1.5), streams=[stream(1.0)])
    assert (latency.kind, latency.max, latency.note) == (UPPER_BOUND, 1.5, NOT_WHOLE)


@pytest.mark.parametrize(("spread", "note"), [(0.1, FOUND), (0.2, FOUND), (0.3, HIDDEN)])
def test_the_difference_exceeds_the_errors_of_both(spread, note):
    """Of 2.0 and 1.0 cycles: twice two errors of 0.3 are more than the difference."""
    both = kept(2.0, spread=16 * spread), stream(1.0, spread=16 * spread)
    assert found(both[0], streams=[both[1]]).note == note


def test_without_a_throughput_there_is_a_bound_only():
    latency = found(kept(3.0), streams=[])
    assert (latency.kind, latency.max) == (UPPER_BOUND, 3.0)
    assert "no throughput" in latency.note
    assert found(kept(0.3), streams=[]).note == ABSENT


def test_it_is_compared_with_sequences_of_its_own_kind():
    """What is cut in one takes time in the other."""
    streams = [stream(0.5), stream(1.0, "broken x16")]
    assert found(kept(1.0), streams=streams).note == HIDDEN
    assert found(kept(1.0), streams=streams[:1]).note == FOUND
    assert found(kept(1.0), streams=[stream(0.5), stream(1.0, "unrolled x16")]).note == FOUND


def test_reasons_of_what_has_no_value():
    assert found().reason == "not measured"
    assert found(missing="no register").reason == "no register"
    assert found(kept(0.0, verdict=FAILED, error="SIGILL")).reason == "SIGILL"


# --- two kernels -----------------------------------------------------------------------------------


def test_a_dependency_needs_a_second_kernel_or_two_stable_readings():
    latency = found(kept(438.0, verdict=UNSTABLE), streams=[stream(381.0)])
    assert (latency.kind, latency.min, latency.max, latency.note) == (UPPER_BOUND, 0.0, 438.0, ONE_CHAIN)
    assert found(kept(3.0, verdict=UNSTABLE)).note == ONE_CHAIN
    for second in ((), filled(7.0, 7.0)):  # one that could not tell
        latency = found(kept(3.0), *second)
        assert (latency.note, latency.confidence) == (FOUND, MEDIUM)


def test_disturbed_readings_show_no_dependency():
    """A neighbour makes them longer: one kernel, or the other."""
    assert found(kept(3.0, verdict=NOISY), *filled(7.0, 2.0)).confidence == MEDIUM
    for one, two in ((NOISY, NOISY), (STABLE, NOISY)):
        latency = found(kept(3.0, verdict=one), *filled(7.0, 2.0, verdict=two))
        assert (latency.note == FOUND) == (one == STABLE)
    assert found(kept(1.0, verdict=UNSTABLE), *filled(2.5, 2.5)).note == ABSENT
    assert found(kept(1.0), *filled(2.5, 2.5)).note == CHAINS_DISAGREE


def test_long_latencies_agree_within_their_errors():
    streams = [stream(10.0)]
    latency = found(kept(32.3), *filled(36.7, 20.0), streams=streams)
    assert (latency.kind, latency.min, latency.max, latency.note) == (INTERVAL, 32.3, 32.7, FOUND)
    assert latency.confidence == MEDIUM
    for cycles in (37.0, 37.3):
        assert found(kept(32.3), *filled(cycles, 20.0), streams=streams).note == CHAINS_DISAGREE
    assert found(kept(32.3, spread=4.0), *filled(37.3, 20.0), streams=streams).note == FOUND


def test_nothing_is_faster_than_a_nop():
    floor = {**LINKS, NOP: LinkLatency(0.25, 0.25, 0.25)}
    assert "withheld" in output_latency(PAIR, [kept(0.2)], [stream(0.25)], floor, str).reason
    assert output_latency(PAIR, [kept(0.24)], [stream(0.25)], floor, str).note == ABSENT


def test_a_second_kernel_confirms():
    latency = found(kept(3.0), *filled(7.02, 2.0))
    assert (latency.kind, latency.max, latency.confidence) == (EXACT, 3.0, HIGH)


def test_a_second_kernel_tells_what_the_throughput_hides():
    streams = [stream(2.0)]
    assert found(kept(2.0), *filled(2.5, 2.5), streams=streams).note == ABSENT
    latency = found(kept(2.0), *filled(5.0, 2.5), streams=streams)
    assert (latency.note, latency.max, latency.confidence) == (FOUND, 1.0, MEDIUM)
    assert found(kept(2.0), *filled(5.0, 5.0), streams=streams).note == HIDDEN
    assert found(kept(2.0), *filled(5.0, 5.0), streams=streams).max == 1.0


def test_kernels_that_disagree_prove_nothing():
    latency = found(kept(3.0), *filled(9.0, 2.0))
    assert (latency.kind, latency.min, latency.max) == (UPPER_BOUND, 0.0, 5.0)
    assert (latency.note, latency.confidence) == (CHAINS_DISAGREE, LOW)
    above = found(kept(1.0), *filled(6.0, 2.0), streams=[stream(1.0)])
    assert (above.note, above.max) == (CHAINS_DISAGREE, 1.0), "a latency of 2 in a chain that takes 1"


def test_a_filled_kernel_without_its_link_tells_nothing():
    chain, apart = filled(7.0, 2.0)
    lost = msgspec.structs.replace(chain, links=("lost",))
    assert found(kept(1.0), lost, apart, streams=[stream(1.0)]).note == HIDDEN


def test_a_link_whose_unit_is_as_busy_as_it_takes_tells_nothing():
    """Its chain takes as long with the dependency cut."""
    busy = {"r>r": LinkLatency(1.0, 1.0, 1.0, UNCUT)}
    streams = [stream(2.0)]
    chain = filled(4.0, 4.0)
    assert output_latency(PAIR, [kept(2.0), *chain], streams, busy, str).note == HIDDEN
    assert output_latency(PAIR, [kept(2.0), *chain], streams, LINKS, str).note == ABSENT


def test_what_asks_for_a_second_kernel():
    assert filling(found(kept(0.5))) == 0
    assert filling(found()) == 0
    assert filling(found(kept(3.0))) == 6
    assert filling(found(kept(1.4), streams=[stream(1.4)])) == 5
    assert filling(found(kept(39.0), streams=[stream(39.0)])) == 42
    assert filling(found(kept(41.0), streams=[stream(41.0)])) == 0, "a window holds too few of its instances"
    other = msgspec.structs.replace(found(kept(3.0)), source="op1")
    assert filling(other) == 0


# --- what is made of it ----------------------------------------------------------------------------


def timing(*records):
    return TimingBuilder(FORM, records, LINKS, lambda source, target: "").build("ok")


def test_it_stands_beside_the_pairs_of_the_form():
    latencies = timing(stream(0.5), kept(3.0)).latencies
    assert [lat.max for lat in latencies if is_old(lat.source)] == [3.0]
    assert latencies[-1].source == "op1.old"


def test_a_chain_through_the_old_value_is_no_sequence_of_the_throughput():
    assert timing(stream(0.5), kept(0.4)).throughput.value == 0.5


def test_the_model_has_what_is_shown_and_nothing_else():
    both = filled(7.0, 2.0)
    assert form_cost(timing(stream(0.5), kept(3.0), *both)).latencies == {"op1.old->op1": 3.0}
    long = timing(stream(5.0), kept(8.3), *filled(12.6, 6.0))
    assert form_cost(long).ranges == {"op1.old->op1": (8.3, 8.6)}
    for records in (
        (stream(0.5), kept(3.0, verdict=UNSTABLE)),
        (stream(0.5), kept(0.5)),
        (stream(1.0), kept(1.0)),
        (stream(1.0),),
    ):
        cost = form_cost(timing(*records))
        assert not any(map(is_old, (*cost.latencies, *cost.ranges)))


# --- campaigns -------------------------------------------------------------------------------------


def with_old_values(machine, forms, every=5):
    """A machine some of whose forms wait for what they overwrite, for a cycle or for their latency."""
    costs = dict(machine.forms)
    for number, form in enumerate(forms[::every]):
        cost = costs[form.id]
        cycles = max(1.0, *cost.latencies.values()) if number % 2 else 1.0
        old = {f"{p.source.name}->{p.target.name}": cycles for p in overwritten(form)}
        costs[form.id] = msgspec.structs.replace(cost, latencies={**cost.latencies, **old})
    return msgspec.structs.replace(machine, forms=costs)


def core(isa, name, seed):
    """A core, and forms that overwrite registers on it."""
    table = load_table(isa)
    if isa == "x86-64":
        able = [f for f in table if overwritten(f) and f.encoding]
        return draw_machine(seed, table), able[seed :: 301 if seed == 5 else 83]
    machine = load_model(name)
    able = [f for f in table if overwritten(f) and f.id in machine.forms and machine.forms[f.id].latencies]
    forms = able[seed :: 37 if isa == "aarch64" else 2]
    return with_old_values(machine, forms), forms


def outcomes(machine, forms, path, noise=QUIET):
    """Per pair: form, latency, and the true cycles or None."""
    table = load_table(machine.isa)
    with closing(Store(path, machine.name, isa=machine.isa)) as store:
        run = Campaign(table, SimulatedBackend(machine, noise=noise), store)
        run.run(Request(tuple(forms), frozenset((THROUGHPUT, LATENCY))), {})
        timings = list(run.results(forms))
    for form, timing_ in zip(forms, timings, strict=True):
        for latency in timing_.latencies:
            if is_old(latency.source) and latency.kind is not None:
                true = machine.forms[form.id].latencies.get(f"{latency.source}->{latency.target}")
                yield form.id, latency, true


CORES = [
    pytest.param("x86-64", "", 4, QUIET, marks=pytest.mark.slow),
    ("x86-64", "", 5, LOUD),
    pytest.param("aarch64", "neoverse-v2", 1, QUIET, marks=pytest.mark.slow),
    pytest.param("aarch64", "cortex-a510", 2, QUIET, marks=pytest.mark.slow),
    pytest.param("riscv64", "sifive-p670", 0, QUIET, marks=pytest.mark.slow),
    ("riscv64", "sifive-u74", 1, QUIET),
]


@pytest.mark.parametrize(("isa", "name", "seed", "noise"), CORES)
def test_cores_tell_the_truth(isa, name, seed, noise, tmp_path):
    machine, forms = core(isa, name, seed)
    results = list(outcomes(machine, forms, tmp_path / "s.sqlite", noise))
    shown = [(form, lat, true) for form, lat, true in results if lat.kind == EXACT and lat.max]
    absent = [(form, lat, true) for form, lat, true in results if lat.kind == EXACT and not lat.max]
    bounds = [(form, lat, true) for form, lat, true in results if lat.kind == UPPER_BOUND]
    assert [one for one in shown if one[2] != one[1].max] == []
    assert [one for one in absent if one[2]] == []
    assert [one for one in bounds if (one[2] or 0) > one[1].max + 0.15] == []
    waiting = sum(true is not None for _, _, true in results)
    assert len(shown) > (0.5 if machine.core.in_order else 0.7) * waiting > 0
    if not machine.core.in_order:  # where an instruction waits, what uses its result waits as well
        assert len(absent) > 0.8 * (len(results) - waiting)


@pytest.mark.parametrize(("ports", "sure"), [(4, False), (1, True)])
def test_what_few_registers_allow_is_no_throughput(ports, sure, tmp_path):
    """Six registers of MMX, each of which waits four cycles: 0.67 cycles at best, for a quarter of one."""
    table = load_table("x86-64")
    form = table["PABSD (MM, MM)"]
    machine = draw_machine(5, table)
    (pair,) = overwritten(form)
    cost = msgspec.structs.replace(
        machine.forms[form.id], operations=(Operation(tuple(range(ports))),),
        latencies={f"{pair.source.name}->{pair.target.name}": 4.0, "op2->op1": 4.0},
    )  # fmt: skip
    machine = msgspec.structs.replace(machine, forms={**machine.forms, form.id: cost})
    with closing(Store(tmp_path / "s.sqlite", machine.name, isa=machine.isa)) as store:
        run = Campaign(table, SimulatedBackend(machine, noise=QUIET), store)
        run.run(Request((form,), frozenset((THROUGHPUT, LATENCY))), {})
        (timing_,) = run.results((form,))
    assert timing_.throughput.value == pytest.approx(1.0 if sure else 4 / 6, rel=0.02)
    assert (timing_.throughput.kind == EXACT) is sure, timing_.throughput
