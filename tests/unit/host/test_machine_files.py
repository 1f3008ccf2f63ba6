"""What files below / say of a machine: topology, counters, noise."""

from __future__ import annotations

import pytest

from cyclescope.host.counters import CYCLES, EVENTS, RAW, availability, events_for, events_on
from cyclescope.host.files import files_of
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


@pytest.mark.parametrize(
    "text", ["nonsense", "-1", "1e999", "9" * 400, "0-", "0-99999999999999999999", "\x1b[2J", "0,,1-x", "nan"]
)
def test_files_that_make_no_sense(root, text):
    """Of another machine they are what a stranger sends."""
    for path in root.rglob("*"):
        if path.is_file():
            path.write_text(text)
    (root / "proc/self").mkdir()
    (root / "proc/self/status").write_text(f"Cpus_allowed_list:\t{text}\n")
    found = read_topology(read=files_of(root))
    assert found.load == 0.0
    assert found.paranoid in (None, -1)
    assert len(found.usable) <= 8192


def test_a_list_of_too_many_cpus(root):
    (root / "sys/devices/system/cpu/online").write_text("0-999999999\n")
    assert read_topology(root).online == 8192


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


def a_big_little(root, **kinds):
    for name, (number, cpus) in kinds.items():
        folder = root / "sys/bus/event_source/devices" / name
        folder.mkdir(parents=True)
        (folder / "cpus").write_text(f"{cpus}\n")
        (folder / "type").write_text(f"{number}\n")
    return files_of(root)


def test_events_of_the_kind_of_core_that_is_measured(root):
    """Without the number of its source, the kernel counts on the first kind that it finds."""
    read = a_big_little(
        root, armv8_cortex_a53=(7, "0-3"), armv8_cortex_a72=(8, "4,5"), armv8_other=("?", "6")
    )
    wanted = (CYCLES, ("uops", RAW, 0x3A))
    assert events_on(wanted, 2, read) == (("cycles", 7, 0x11), ("uops", 7, 0x3A))
    assert events_on(wanted, 5, read) == (("cycles", 8, 0x11), ("uops", 8, 0x3A))
    for nowhere in (6, 9, -1):
        assert events_on(wanted, nowhere, read) == wanted


def test_events_of_hybrids(root):
    """The smaller cores have other raw codes."""
    read = a_big_little(root, cpu_core=(4, "0-7"), cpu_atom=(10, "8-15"), uncore_imc=(12, "0"))
    wanted = (CYCLES, ("p0", RAW, 0x1B2))
    assert events_on(wanted, 3, read) == (("cycles", 0, 4 << 32), ("p0", 4, 0x1B2))
    assert events_on(wanted, 9, read) == (("cycles", 0, 10 << 32),)


def test_events_where_there_is_one_source(root):
    (root / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    assert events_on((CYCLES,), 0, files_of(root)) == (CYCLES,)
    assert events_on((CYCLES,), 0, files_of(root / "nowhere")) == (CYCLES,)


@pytest.mark.parametrize(
    ("device", "user", "said"),
    [
        ("armv8_pmuv3_0", "1", ""),
        ("armv8_pmuv3_0", "0", "kernel.perf_user_access is 0"),
        ("armv8_pmuv3_0", None, "5.17"),
        ("apple_icestorm_pmu", "0", "kernel.perf_user_access is 0"),
        ("cpu", None, ""),
        ("cpu", "0", "kernel.perf_user_access"),  # RISC-V
    ],
)
def test_counters_that_programs_may_not_read(root, device, user, said):
    if user is not None:
        (root / "proc/sys/kernel/perf_user_access").write_text(f"{user}\n")
    found = with_devices(root, device)
    assert said in found
    assert bool(said) == bool(found)


def test_rdpmc_that_is_switched_off(root):
    with_devices(root, "cpu")
    (root / "sys/bus/event_source/devices/cpu/rdpmc").write_text("0\n")
    assert "rdpmc is 0" in availability(root)


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
