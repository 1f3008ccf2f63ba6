"""What files below / say of a machine: topology, counters, noise."""

from __future__ import annotations

import pytest

from cyclescope.host.counters import CYCLES, EVENTS, availability, events_for
from cyclescope.host.noise import judge
from cyclescope.host.topology import Topology, default_cpu, read_topology


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine with 8 CPUs, of which this process may use three."""
    monkeypatch.setattr("cyclescope.host.topology.os.sched_getaffinity", lambda pid: {1, 2, 5})
    files = {
        "sys/devices/system/cpu/online": "0-3,5-8\n",
        "sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1,5\n",
        "sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "2\n",
        "sys/devices/system/cpu/cpu5/topology/thread_siblings_list": "1,5\n",
        "sys/devices/system/cpu/cpu5/cpufreq/scaling_governor": "performance\n",
        "proc/loadavg": "0.75 0.50 0.25 1/200 12345\n",
        "proc/sys/kernel/perf_event_paranoid": "2\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_topology(root):
    assert read_topology(root) == Topology(
        (1, 2, 5), 8, {1: (1, 5), 5: (1, 5)}, 0.75, "performance", 2
    )  # fmt: skip


def test_the_last_cpu_is_the_one_to_measure_on(root):
    assert default_cpu(read_topology(root)) == 5


def test_a_machine_that_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("cyclescope.host.topology.os.sched_getaffinity", lambda pid: {0})
    assert read_topology(tmp_path) == Topology((0,), 1, {}, 0.0, "", None)


# --- counters -----------------------------------------------------------------------------------


def with_devices(root, *names, paranoid="2"):
    for name in names:
        (root / "sys/bus/event_source/devices" / name).mkdir(parents=True)
    (root / "proc/sys/kernel/perf_event_paranoid").write_text(paranoid)
    return availability(root)


def test_counters_of_a_plain_machine(root):
    assert with_devices(root, "cpu", "software") == ""


def test_counters_of_a_hybrid_machine(root):
    assert with_devices(root, "cpu_core", "cpu_atom") == ""


def test_a_virtual_machine_without_counters(root):
    assert "virtual PMU" in with_devices(root, "software", "msr")


def test_a_kernel_without_events(root):
    assert "not built in" in availability(root)


@pytest.mark.parametrize(("paranoid", "refused"), [("-1", False), ("2", False), ("3", True), ("4", True)])
def test_users_who_may_not_count(root, paranoid, refused):
    assert ("perf_event_paranoid" in with_devices(root, "cpu", paranoid=paranoid)) == refused


def test_a_paranoia_that_cannot_be_read(root):
    assert with_devices(root, "cpu", paranoid="?") == ""


def test_core_cycles_come_first_and_there_are_never_too_many():
    for name in [*EVENTS, "", "unheard-of"]:
        events = events_for(name)
        assert events[0] == CYCLES
        assert len(events) <= 10
        assert [e for e in events if not e[0].startswith("p")] == list(events_for(name, ports=False))
        assert len({config for _, kind, config in events if kind == 4}) == len(events) - 1


# --- noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "quiet"), (0.9, "quiet"), (0.5, "busy"), (0.1, "loud")])
def test_verdicts(share, verdict):
    found = judge(share, 0.0, 4, 0)
    assert found.verdict == verdict
    assert bool(found.remedies) == (verdict != "quiet")


def test_reasons_come_with_their_remedies():
    found = judge(0.2, 3.5, 1, 2)
    assert "load average 3.50" in found.reasons
    assert any("one CPU" in reason for reason in found.reasons)
    assert any("2 hardware threads" in reason for reason in found.reasons)
    assert {"stop other programs", "give this program a second CPU"} <= set(found.remedies)
    assert any("--cpu" in remedy for remedy in found.remedies)
