"""Pairs of CPUs: simulated ones that share a core or do not, whose other CPU is busy, or stops."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from errno import EPERM

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.host.identity import Hypervisor
from cyclescope.host.topology import Topology
from cyclescope.isa.table import load_table
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe import pairs, run
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.pairs import CpuPair, CpuPairs, OtherCpu
from cyclescope.probe.placing import agreed, doubted
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.probe.run import ask
from cyclescope.remarks.probing import Placing, UnclearPair
from cyclescope.remarks.remark import NOTHING
from cyclescope.session.machines import load_model
from cyclescope.session.probes import pairs_of

SHARED, LINES = PROBES["shared-core"], PROBES["core-to-core"]
CORE = "skylake"


class Thread(SimulatedBackend):
    """One CPU of a pair: `times` as slow while the other one runs something."""

    def __init__(self, times=1.0):
        super().__init__(load_model(CORE))
        self.times, self.others, self.before = times, [], set(threading.enumerate())

    @property
    def running(self):
        """Whether a thread is there that runs kernels over and over, in between two of them, too."""
        return bool(set(threading.enumerate()) - self.before)

    def collect(self):
        slow = self.times if any(other.running for other in self.others) else 1.0
        found = super().collect()
        return [[msgspec.structs.replace(s, cycles=s.cycles * slow) for s in row] for row in found]


class Other(Thread):
    """The other CPU: it runs until it has nothing more to do, and takes some time for that."""

    def collect(self):
        time.sleep(0.01)
        return super().collect()


class Gone(Other):
    def collect(self):
        raise BackendUnavailable("the runner was killed")


def asked(probe, times=1.0, share=1.0, other_kind=Other, quick=False, count=1, doubt=NOTHING):
    """What a probe says of a pair whose other CPU runs its kernels that share of the time."""

    @contextmanager
    def opened():
        one, other = Thread(times), other_kind()
        one.others.append(other)
        yield one, OtherCpu(other, lambda: share * time.monotonic())

    machine = CpuPairs([CpuPair(0, n + 1, opened) for n in range(count)], doubt=doubt)
    table = load_table("x86-64")
    (found,) = ask([probe], SimulatedBackend(load_model(CORE)), table, quick, pairs=machine)
    return {fact.subject: fact for fact in found.facts}


@pytest.mark.parametrize("times", [1.0, 1.4, 2.0])
def test_how_much_longer_it_takes_beside_another(times):
    found = asked(SHARED, times)
    assert len(found) == len(list(SHARED.cases("x86-64")))
    for subject, fact in found.items():
        assert subject.endswith(", CPU 0 and 1")
        assert fact.value == pytest.approx(times, abs=fact.error + 0.01), subject
        assert fact.unit == "times"


def passes(*ratios):
    """The verdict on some passes."""
    (case, *_) = SHARED.cases("x86-64")
    parts = {("alone", x): Interval(0.99, 1.01) for x in range(len(ratios))}
    parts |= {("on both", x): Interval(ratio - 0.01, ratio + 0.01) for x, ratio in enumerate(ratios)}
    readings = Readings(parts, {})
    return SHARED.judge(case, readings), [point.x for point in SHARED.more(case, readings)]


def test_passes_have_to_agree():
    assert passes(2.0, 2.0, 2.0)[0].value.value == pytest.approx(2.0, abs=0.01)
    for ratios in ((2.0, 1.0), (1.0, 1.2), (2.0, 2.0, 1.0)):
        with pytest.raises(Unresolved, match="later"):
            passes(*ratios)


def test_cpus_that_share_something_are_asked_a_third_time():
    assert passes(1.0)[1] == [1, 1]
    assert passes(1.0, 1.0)[1] == []
    assert passes(1.08, 1.08)[1] == []
    assert passes(1.2, 1.2)[1] == [2, 2]
    assert passes(2.0, 2.0, 2.0)[1] == []


def test_another_cpu_that_is_busy_says_nothing():
    assert {fact.reason for fact in asked(SHARED, 2.0, share=0.75).values()} == {UnclearPair.BUSY.value}
    assert all(fact.is_resolved for fact in asked(SHARED, 2.0, share=0.9).values())


def test_another_cpu_that_is_gone_is_said():
    found = asked(SHARED, other_kind=Gone)
    assert len(found) == len(list(SHARED.cases("x86-64")))
    assert {fact.reason for fact in found.values()} == {"the runner was killed"}


def test_without_memory_in_common_other_probes_go_on(monkeypatch):
    def refuse(_):
        raise PermissionError(EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)
    machine = pairs_of(Topology((0, 1), 2, {}, 0.0, "", None), Hypervisor.NONE)
    core = SimulatedBackend(load_model(CORE))
    moves, *others = ask(
        [PROBES["move-elimination"], SHARED, LINES], core, load_table("x86-64"), pairs=machine
    )
    assert any(fact.is_resolved for fact in moves.facts)
    reason = "no memory for several runners (Operation not permitted)"
    assert [{fact.reason for fact in one.facts} for one in others] == [{reason}, {reason}]


def test_the_other_cpu_is_hardly_ever_without_a_kernel_and_ends_soon():
    """At 3 to 5 GHz: a twentieth of a second has too large a share of gaps, a fifth is waited for in vain."""
    batches = []

    class Counted(Other):
        def submit(self, kernels, effort):
            batches.append(len(kernels) * effort.rounds * effort.target * effort.maximum)
            assert effort.want == effort.maximum, "nothing is tried again"
            super().submit(kernels, effort)

    asked(SHARED, other_kind=Counted)
    (cycles,) = set(batches)
    assert cycles / 5e9 > 0.07
    assert cycles / 3e9 < 0.15


def test_nothing_is_read_before_the_other_cpu_runs(monkeypatch):
    waited = []
    monkeypatch.setattr(pairs.time, "sleep", waited.append)
    asked(SHARED)
    long = set(waited) - {0.01, 0.0}
    assert all(0.031 < seconds < 0.1 for seconds in long), "seconds; beside a busy loop 0.031 were seen"
    assert long


def test_in_a_hurry_two_pairs_are_asked():
    names = {subject.rpartition(", ")[2] for subject in asked(SHARED, quick=True, count=5)}
    assert names == {"CPU 0 and 1", "CPU 0 and 2"}
    assert len(asked(SHARED, count=3)) == 3 * len(list(SHARED.cases("x86-64")))


def test_pairs_are_asked_however_long_others_took(monkeypatch):
    """They come last, and had no time left in each of four runs beside busy programs."""
    monkeypatch.setattr(run, "HURRY", -1.0)
    found = asked(SHARED, quick=True)
    assert all(fact.is_resolved for fact in found.values())
    left = []

    def seen(probe, cases, core, *given):
        left.append(core.until - time.monotonic())
        return run.Asked(probe, (), ())

    monkeypatch.setattr(run, "_of_pairs", seen)
    table, backend = load_table("x86-64"), SimulatedBackend(load_model(CORE))
    list(run.ask([PROBES["stack-engine"], SHARED], backend, table, quick=True))
    assert 8 < left[0] < 12, "two minutes are promised for all"


def test_without_pairs_the_reason_is_told():
    table, backend = load_table("x86-64"), SimulatedBackend(load_model(CORE))
    for probe in (SHARED, LINES):
        (found,) = ask([probe], backend, table)
        assert {fact.reason for fact in found.facts} == {"kernels run on one CPU"}


# --- lines -------------------------------------------------------------------------------------------


def judged(handed, alone=20000.0, error=2.0):
    readings = {
        ("there and back", 0): Interval(handed - error, handed + error),
        ("without an answer", 0): Interval(alone - error, alone + error),
    }
    (case,) = LINES.cases("x86-64")
    return LINES.judge(case, Readings(readings, {})).value


def test_a_line_goes_there_and_back():
    assert judged(400.0).value == pytest.approx(200.0)
    assert judged(8000.0).value == 4000.0


def test_minutes_of_one_machine_agree():
    """Medians of a day on a Zen 5 of a cloud, in cycles of one way: each two are within their errors."""
    found = [judged(2 * median) for median in (108.2, 129.5, 151.6, 171.6, 215.0)]
    assert all(one.meets(other) for one in found for other in found)
    assert found[0].error < 0.5 * found[0].value, "neighbours are told from CPUs that are farther"


def test_how_well_a_line_has_to_be_known():
    assert judged(400.0, error=180.0).error == 90
    with pytest.raises(Unresolved, match="differ"):
        judged(400.0, error=220.0)


@pytest.mark.parametrize("handed", [12000.0, 20000.0])
def test_a_line_without_an_answer(handed):
    with pytest.raises(Unresolved, match="does not always answer"):
        judged(handed)


def line(value, error=40.0, subject="CPU 0 and 1"):
    return Fact("core-to-core", subject, CoreAnswer.VALUE, value, error, "cycles", "medium")


def test_two_times_have_to_agree():
    """682 cycles were told of CPUs that were 110 from each other in the run before."""
    (both,) = agreed([line(110.0)], [line(168.0)])
    assert (both.value - both.error, both.value + both.error) == (70.0, 208.0)
    (apart,) = agreed([line(140.0, 48.0)], [line(682.0, 232.0)])
    assert not apart.is_resolved
    assert (apart.reason, apart.detail) == (UnclearPair.CHANGED.value, "92 to 914 cycles")


def test_one_time_says_what_it_says():
    open_one = Fact("core-to-core", "CPU 0 and 1", reason="busy")
    for first, last in (([], [line(110.0)]), ([open_one], [line(110.0)]), ([line(110.0)], [open_one])):
        assert agreed(first, last) == (line(110.0),)
    assert agreed([open_one], [open_one]) == (open_one,)
    assert agreed([line(110.0)], [line(682.0, subject="CPU 0 and 2")])[0].value == 682.0


@pytest.mark.parametrize("doubt", [Placing.GUEST.of(), Placing.UNTOLD.of()])
def test_where_a_host_may_move_cpus_answers_have_no_confidence(doubt):
    found = asked(SHARED, doubt=doubt)
    assert {(fact.is_resolved, fact.confidence, fact.reason) for fact in found.values()} == {
        (True, "low", doubt.text)
    }
    assert "" in {fact.reason for fact in asked(SHARED).values()}
    assert doubted([Fact("core-to-core", "x", reason="busy")], doubt)[0].confidence == ""


@pytest.mark.parametrize(
    ("hypervisor", "meaning"),
    [
        (Hypervisor.THERE, Placing.GUEST), (Hypervisor.UNTOLD, Placing.UNTOLD), (Hypervisor.NONE, None),
    ],
)  # fmt: skip
def test_the_cpu_is_asked_whether_it_is_a_virtual_machines(hypervisor, meaning):
    assert pairs_of(Topology((0, 1), 2, {}, 0.0, "", None), hypervisor).doubt.meaning is meaning


def test_lines_are_asked_before_and_after_everything_else(monkeypatch):
    """What has passes of its own is asked once, and so is everything where only pairs are asked."""
    order, real = [], run._of_pairs

    def seen(probe, *given):
        order.append(probe.name)
        return real(probe, *given)

    monkeypatch.setattr(run, "_of_pairs", seen)
    table, backend = load_table("x86-64"), SimulatedBackend(load_model(CORE))
    order.extend(
        f"{one.probe.name} told" for one in run.ask([PROBES["stack-engine"], LINES, SHARED], backend, table)
    )
    assert order == [
        LINES.name, "stack-engine told", LINES.name, f"{LINES.name} told", SHARED.name, f"{SHARED.name} told",
    ]  # fmt: skip
    order.clear()
    list(run.ask([LINES, SHARED], backend, table))
    assert order == [LINES.name, SHARED.name]


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_how_long_a_kernel_waits_in_vain(isa):
    """Longer than a line takes between packages, some thousand cycles; it has to end within a sample."""
    (case,) = LINES.cases(isa)
    assert 10_000 < sorted(value for _, value in case.points[0].setting.numbers)[-2] < 30_000
