"""Whole campaigns on a simulated core of known truth: what they find out is that truth."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.readout import grouped, timing_of
from cyclescope.infer.timing.links import stored_links
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND
from cyclescope.isa.dataflow import is_old, overwritten, pairs
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Planner
from cyclescope.measure.store import Store
from tests.support.code.forms import chosen
from tests.support.made.comparison import MACHINE, campaign, compared, exact, instance, near
from tests.support.made.simulated import LOUD, SimulatedBackend
from tests.support.made.truth import RARE, Truth

BOTH = frozenset((THROUGHPUT, LATENCY))


@pytest.fixture(scope="module", params=[pytest.param("quiet", marks=pytest.mark.slow), "noisy"])
def noise(request):
    return request.param


@pytest.fixture(scope="module")
def truth():
    return Truth(1)


@pytest.fixture(scope="module")
def run(table, truth, noise, tmp_path_factory):
    """Some 300 forms of every kind."""
    backend = SimulatedBackend(truth, LOUD) if noise == "noisy" else SimulatedBackend(truth)
    path = tmp_path_factory.mktemp("campaign") / "store.sqlite"
    return campaign(table, truth, chosen(table), path, backend)


@pytest.fixture(scope="module")
def results(run, truth):
    return list(compared(run, truth))


# --- latencies ----------------------------------------------------------------------------------


def is_open(latency):
    """Stands for what decides: few values of this core are open."""
    return bool(latency.measured) and round(latency.measured) == 2


def test_what_few_rounds_leave_undecided_is_looked_at_again(table, truth, tmp_path, monkeypatch):
    """Of all forms, though only those are looked through of which more was asked, or first looks are open."""
    forms, asked = chosen(table)[::4], []
    for module in ("ahead.looks", "timing.second_looks"):
        monkeypatch.setattr(f"cyclescope.infer.{module}.is_undecided", is_open)
    with closing(Store(tmp_path / "store.sqlite", MACHINE)) as store:
        runner = Campaign(table, SimulatedBackend(truth, LOUD), store)
        assert runner.run(Request(tuple(forms), BOTH), {})
        links, planner = stored_links(store), runner.planner()
        for form, records in grouped(store, forms):
            timing = timing_of(form, [r for r in records if not r.look.again], links, planner, "ok")
            wanted = {(lat.source, lat.target) for lat in timing.latencies if is_open(lat)}
            asked += wanted
            assert wanted <= {(r.source, r.target) for r in records if r.look.again}, form.id
    assert len(asked) > 10


def test_the_campaign_covers_all_kinds_of_forms(run):
    assert run.finished
    assert len(run.decoded) > 280
    assert len({f.mnemonic for f in run.forms}) > 200


def test_exact_latencies_are_the_truth(results):
    claimed = exact(results)
    wrong = [str(c) for c in claimed if not c.true]
    assert len(claimed) > 1400
    assert len(wrong) <= 0.01 * len(claimed), wrong


def test_intervals_and_upper_bounds_contain_the_truth(results):
    open_ones = [c for c in results if c.latency.kind != EXACT]
    assert open_ones
    assert [str(c) for c in open_ones if not c.contained] == []


def test_proved_bounds_contain_the_truth(results):
    bounded = [c for c in results if c.latency.bounds]
    assert len(bounded) > 100
    outside = [c for c in bounded if not c.latency.bounds[0] - 0.15 <= c.fast <= c.latency.bounds[1] + 0.15]
    assert [str(c) for c in outside] == []


def test_every_pair_has_a_value_or_a_reason(run):
    for form, timing in zip(run.forms, run.timings, strict=True):
        if timing.status != "ok":
            continue
        assert [(p.source.name, p.target.name) for p in (*pairs(form), *overwritten(form))] == [
            (lat.source, lat.target) for lat in timing.latencies
        ]
        for latency in timing.latencies:
            assert (latency.kind is None) == bool(latency.reason), (form.id, latency)
            assert latency.kind is None or latency.min <= latency.max


def test_no_false_dependency_is_found_where_there_is_none(run):
    found = [lat for t in run.timings for lat in t.latencies if is_old(lat.source) and lat.kind is not None]
    absent = [lat for lat in found if (lat.kind, lat.max) == (EXACT, 0.0)]
    assert [lat for lat in found if lat.kind == EXACT and lat.max] == []
    assert len(absent) > 0.95 * len(found) > 80


def test_divisions_have_fast_and_slow_values(results):
    divided = [c for c in results if {"fast", "slow"} <= set(c.latency.values)]
    differing = [c for c in divided if c.slow > c.fast]  # not the approximations
    assert len(differing) > 30
    assert all(c.latency.values["slow"] - c.latency.values["fast"] > 7 for c in differing)
    assert all((c.latency.min, c.latency.max) == tuple(sorted(c.latency.values.values())) for c in divided)


# --- throughput ---------------------------------------------------------------------------------


def with_company(timing, form):
    """Whether instructions next to the form, or its own dependencies, may take part in the time."""
    if sum(op.write and op.is_register and not op.fixed for op in form.operands) > 1:
        return True  # XCHG and XADD: chains through both registers
    throughput = timing.throughput
    return (
        throughput.kind == UPPER_BOUND
        or throughput.note.startswith(("its own dependency chain", "operands restored"))
        or any(name.startswith("broken") for name in throughput.variants)
    )


def test_throughput_is_the_truth(run, truth):
    timed = [(t, f) for t, f in zip(run.timings, run.forms, strict=True) if t.status == "ok"]
    plain = [t for t, f in timed if t.throughput.value and not with_company(t, f)]
    wrong = [
        (t.id, t.throughput.value, truth.throughput(run.decoded[t.id]))
        for t in plain
        if not near_share(t.throughput.value, truth.throughput(run.decoded[t.id]))
    ]
    assert len(plain) > 200
    assert len(wrong) <= 0.015 * len(plain), wrong


def test_throughput_is_never_better_than_the_truth(run, truth):
    timed = [t for t in run.timings if t.status == "ok" and t.throughput.value is not None]
    better = [
        (t.id, t.throughput.value, truth.throughput(run.decoded[t.id]))
        for t in timed
        if t.throughput.value < 0.98 * truth.throughput(run.decoded[t.id]) - 0.005
    ]
    assert better == []


def near_share(value, expected):
    return abs(value - expected) <= max(0.02 * expected, 0.006)


def test_every_form_has_a_throughput_or_a_reason(run):
    for timing in run.timings:
        if timing.status == "ok":
            assert (timing.throughput.value is None) == bool(timing.throughput.reason), timing.id


# --- idioms and eliminated moves ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "idiom"),
    [
        ("XOR_31 (R64, R64)", "zero idiom, needs no execution unit"),
        ("VPXOR (XMM, XMM, XMM)", "zero idiom, needs no execution unit"),
        ("VPCMPEQD (XMM, XMM, XMM)", "dependency-breaking idiom"),
        ("ADD_01 (R64, R64)", ""),
        ("VADDPD (YMM, YMM, YMM)", ""),
    ],
)
def test_idioms(table, tmp_path, form, idiom):
    truth = Truth(4)
    found = campaign(table, truth, [table[form]], tmp_path / "s", quantities=BOTH)
    assert found.timings[0].idiom == idiom


@pytest.mark.parametrize("form", ["MOV_89 (R64, R64)", "VMOVAPS_28 (YMM, YMM)"])
def test_eliminated_moves_take_no_time_and_say_so(table, tmp_path, form):
    latency = campaign(table, Truth(4), [table[form]], tmp_path / "s").latency(form, "op2", "op1")
    assert (latency.max, latency.kind, latency.note) == (0.0, EXACT, "eliminated at rename")


# --- other cores --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param("AVX512F", marks=pytest.mark.slow),
        "AVX",
    ],
)
def test_a_core_without_wide_vectors(table, tmp_path, missing):
    truth = Truth(6, missing=(*RARE, missing))
    run = campaign(table, truth, chosen(table, seed=6), tmp_path / "s")
    everything = Planner(table, lambda form: True)
    illegal = {f.id for f in run.forms if not truth.executes(instance(everything, f))}
    assert len(illegal) > 40
    assert {t.id for t in run.timings if t.status == "SIGILL"} == illegal
    assert {t.id for t in run.timings if t.status == "ok"} == {f.id for f in run.forms} - illegal
    claimed = exact(list(compared(run, truth)))
    wrong = [str(c) for c in claimed if not c.true]
    assert len(claimed) > 800
    assert len(wrong) <= 0.01 * len(claimed), wrong


def test_results_are_read_without_the_machine(table, truth, tmp_path, monkeypatch):
    """The runner is closed then, and forms that nobody asked for need instructions that nobody tried."""
    asked, reached = [table["IMUL (R64, R64)"], table["NOP"]], []
    with closing(Store(tmp_path / "store.sqlite", MACHINE)) as store:
        runner = Campaign(table, SimulatedBackend(truth), store)
        assert runner.run(Request(tuple(asked), BOTH), {})
        monkeypatch.setattr(runner.backend, "probe", reached.append)
        found = {timing.id: timing.status for timing, _ in runner.readout().each()}
    assert found["IMUL (R64, R64)"] == "ok"
    assert reached == []


def test_a_throughput_hides_no_latency(table, tmp_path):
    """Where a form is slower in a row than its latency, a longer chain shows the latency."""
    form = table["ROR (R64, I8)"]
    truth = Truth(1)
    run = campaign(table, truth, [form], tmp_path / "s")
    assert all(near(c.latency.max, c.fast) for c in exact(list(compared(run, truth))))


@pytest.mark.parametrize("seed", [20, 21, 22])
def test_where_conventions_do_not_hold_the_bounds_do(table, tmp_path, seed):
    truth = Truth(seed, conventional=False)
    forms = [
        table[i] for i in ("MOV (R64, M64)", "ADD (R64, M64)", "MOVD (XMM, R32)", "VPEXTRQ (R64, XMM, I8)")
    ]
    run = campaign(table, truth, forms, tmp_path / "s")
    for c in compared(run, truth):
        least, most = c.latency.bounds or (c.latency.min, c.latency.max)
        assert least - 0.15 <= c.fast <= most + 0.15, str(c)


# --- what an exact value must not be ------------------------------------------------------------

SEVERAL_FLAGS = ["CMOVBE (R64, R64)", "CMOVNLE (R32, R32)", "SHL (R64, CL)", "SETBE (R8l)"]


def test_flags_that_are_set_together_are_no_exact_values(table, tmp_path):
    truth = Truth(3, flags_apart=True)
    run = campaign(table, truth, [table[i] for i in SEVERAL_FLAGS], tmp_path / "s")
    flags = [c for c in compared(run, truth) if c.latency.source.startswith("flags")]
    assert len(flags) > 10
    assert [str(c) for c in exact(flags) if not c.true] == []


def test_x87_chains_follow_the_stack(table, tmp_path):
    truth = Truth(3)
    run = campaign(table, truth, [table["FLD (STi)"], table["FDIVP (STi, ST0)"]], tmp_path / "s")
    claimed = exact(list(compared(run, truth)))
    assert [str(c) for c in claimed if not c.true] == []
    assert all(lat.reason for t in run.timings for lat in t.latencies if lat.max is None)


@pytest.mark.parametrize("seed", range(1, 5))
def test_an_exact_throughput_is_the_truth_for_every_core(table, tmp_path, seed):
    truth = Truth(seed)
    forms = [
        table[name]
        for name in (
            "XADD (R64, R64)", "ADC_11 (R64, R64)", "FSTP_DFD8 (STi)", "ADD_01 (R64, R64)",
            "IMUL (R64, R64)", "VADDPD (YMM, YMM, YMM)",
        )
    ]  # fmt: skip
    run = campaign(table, truth, forms, tmp_path / "store", quantities=BOTH)
    exact_ones = [timing for timing in run.timings if timing.throughput.kind == EXACT]
    assert exact_ones
    for timing in exact_ones:
        assert near_share(timing.throughput.value, truth.throughput(run.decoded[timing.id])), timing.id


# --- forms that fault ---------------------------------------------------------------------------


def test_a_form_that_faults_when_timed_has_the_reason(table, tmp_path):
    form = table["IMUL (R64, R64)"]
    truth = Truth(1)
    backend = SimulatedBackend(truth, faulting=[form.code])
    run = campaign(table, truth, [form, table["ADD_01 (R64, R64)"]], tmp_path / "s", backend)
    assert run.timing(form.id).throughput.reason == "SIGFPE"
    assert {lat.reason for lat in run.timing(form.id).latencies if lat.kind is None} >= {"SIGFPE"}
    assert all(lat.kind is None for lat in run.timing(form.id).latencies)
    assert run.timing("ADD_01 (R64, R64)").throughput.value is not None
