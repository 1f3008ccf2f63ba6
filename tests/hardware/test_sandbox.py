"""Measured code tries to leave its process: by system calls, and by what it writes for its supervisor.

Whether a way out exists at all is seen in a runner without a filter.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from cyclescope.backend.base import DIED, OK, Effort
from cyclescope.backend.link import Link
from cyclescope.backend.native import NativeBackend
from cyclescope.backend.transport import Transport
from cyclescope.errors import BackendUnavailable
from cyclescope.host.counters import CYCLES
from cyclescope.kernel.kernel import Kernel
from tests.support.code import escapes
from tests.support.code.escapes import FOLDERS, MARKER, NATIVE, RETURNS, STATE, Escapes, call, forge
from tests.support.programs.processes import patiently, until

pytestmark = [
    pytest.mark.hardware,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the attempts are x86-64 code"),
    pytest.mark.skipif(bool(escapes.missing_tool()), reason="needs a compiler and an assembler"),
]

ADD = Kernel(b"\x48\x01\xd8", 1, STATE)
HANG = Kernel(b"\xeb\xfe", 1, STATE)
STOPPED = "SIGSYS"
RETURNED = f"SIGSEGV at {MARKER:#x}"
EXIT_GROUP, CLOCK = 231, 228
HIGHEST, X32 = 520, 0x40000000
# rt_sigreturn may be called; what uretprobe and uprobe ask, Linux answers past every filter, and only to its
# own code: others get SIGILL or an error.
PASSING = {(15, "0f05"), (335, "0f05"), (336, "0f05")}


class Impatient(Link):
    """A runner that is given up when it does not answer."""

    def __init__(self, runner: Path) -> None:
        self._runner = runner

    def connect(self) -> Transport:
        return self._start([str(self._runner)])

    def patience_for(self, rounds: int) -> float | None:
        return 20.0


def sources():
    return [*NATIVE.glob("*.c"), *(NATIVE / "x86_64").glob("*.c")]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    return Escapes(tmp_path_factory.mktemp("guarded"), sources())


@pytest.fixture(scope="module")
def open_door(tmp_path_factory):
    """A runner without a filter and without limits."""
    others = [path for path in sources() if path.name not in ("filter.c", "limits.c")]
    return Escapes(tmp_path_factory.mktemp("open"), [*others, Path(__file__).with_name("no_filter.c")])


@pytest.fixture
def backend(guarded):
    with closing(NativeBackend(link=Impatient(guarded.runner))) as opened:
        assert not opened.capabilities().notes, "the filter is not active here"
        yield opened


def outcomes(backend, *kernels):
    return [outcome.describe() for outcome in backend.probe(kernels)]


# --- system calls -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FOLDERS)
def test_no_way_leads_to_a_folder(backend, guarded, tmp_path, name):
    folder = tmp_path / "made"
    how, after = outcomes(backend, guarded.kernel(FOLDERS[name].source, folder), ADD)
    assert not folder.exists()
    assert how in (STOPPED, "SIGILL", "killed the worker (1099)")  # no such instruction; a fault in C
    assert after == "ok"


@pytest.mark.parametrize("name", FOLDERS)
def test_every_way_is_one_without_a_filter(open_door, tmp_path, name):
    folder = tmp_path / "made"
    with closing(NativeBackend(link=Impatient(open_door.runner))) as backend:
        outcomes(backend, open_door.kernel(FOLDERS[name].source, folder))
    found = folder.exists()
    if not found and not FOLDERS[name].everywhere:
        pytest.skip("this machine or its kernel has no such way")
    assert found


@pytest.mark.parametrize("name", RETURNS)
def test_no_other_call_returns(backend, guarded, name):
    (how,) = outcomes(backend, guarded.kernel(RETURNS[name].source))
    if how == "SIGSEGV at 0xffffffffff600400":
        pytest.skip("this kernel has no vsyscall page")
    assert how == STOPPED


@pytest.mark.parametrize("name", RETURNS)
def test_every_other_call_returns_without_a_filter(open_door, name):
    with closing(NativeBackend(link=Impatient(open_door.runner))) as backend:
        (how,) = outcomes(backend, open_door.kernel(RETURNS[name].source))
    if not RETURNS[name].everywhere and how != RETURNED:
        pytest.skip("this machine or its kernel has no such way")
    assert how == RETURNED


@pytest.mark.parametrize(
    ("instruction", "base"), [("0f05", 0), ("0f05", X32), ("cd80", 0)], ids=("64 bits", "x32", "32 bits")
)
def test_no_number_is_forgotten(backend, guarded, instruction, base):
    """All system calls that there are, with arguments that the allowed ones do not have."""
    any_number = 0x1234567
    code = guarded.code(call(any_number, 7), Path("/")).replace(b"\x0f\x05", bytes.fromhex(instruction))
    place = code.index(any_number.to_bytes(4, "little"))
    numbers = [n for n in range(HIGHEST) if (n, instruction) not in PASSING]
    kernels = [
        Kernel(code[:place] + (n | base).to_bytes(4, "little") + code[place + 4 :], 1, STATE) for n in numbers
    ]
    found = dict(zip(numbers, outcomes(backend, *kernels), strict=True))
    no_such_gate = "SIGSEGV at 0x0"  # of a kernel without 32-bit calls
    assert {n: how for n, how in found.items() if how not in (STOPPED, no_such_gate)} == {}
    assert instruction != "0f05" or set(found.values()) == {STOPPED}


@pytest.mark.parametrize("status", [1, 7, 97, 100, 1 << 32, (1 << 32) + 98, (1 << 64) - 1])
def test_a_worker_ends_only_as_it_may(backend, guarded, status):
    assert outcomes(backend, guarded.kernel(call(EXIT_GROUP, status)), ADD) == [STOPPED, "ok"]


@pytest.mark.parametrize("status", [0, 98, 99])
def test_allowed_ends_are_the_end_of_one_kernel(backend, guarded, status):
    """Also of one that says all is well, or that the counters are lost."""
    assert outcomes(backend, guarded.kernel(call(EXIT_GROUP, status)), ADD) == [
        f"killed the worker ({1000 + status})", "ok",
    ]  # fmt: skip


def test_who_says_that_counters_are_lost_loses_them(guarded):
    """Times go on, by the other clock."""
    cpu = max(os.sched_getaffinity(0))
    with closing(NativeBackend(cpu, (CYCLES,), Impatient(guarded.runner))) as backend:
        if not backend.capabilities().counters:
            pytest.skip("no counters here")
        backend.submit([ADD, guarded.kernel(call(EXIT_GROUP, 98)), ADD], Effort(rounds=1))
        before, (bad,), after = backend.collect()
    assert (bad.status, bad.detail) == (DIED, 1098)
    assert before[0].usable
    assert after[0].usable


def test_the_allowed_clock_is_only_a_clock(backend, guarded):
    """Its answer goes where code can write anyway; elsewhere the kernel refuses."""
    for address, end in ((0x70004000, RETURNED), (0, RETURNED), ((1 << 64) - 4096, RETURNED)):
        assert outcomes(backend, guarded.kernel(call(CLOCK, 1, address)), ADD) == [end, "ok"]


def test_a_forged_frame_changes_registers_alone(backend, guarded):
    assert outcomes(backend, guarded.kernel(escapes.RETURN_FROM_NO_SIGNAL), ADD) == [RETURNED, "ok"]


def test_the_supervisor_is_not_signalled(backend, guarded, open_door):
    assert outcomes(backend, guarded.kernel(escapes.KILL_PARENT), ADD) == [STOPPED, "ok"]
    with (
        closing(NativeBackend(link=Impatient(open_door.runner))) as another,
        pytest.raises(BackendUnavailable, match="Killed"),
    ):
        another.probe([open_door.kernel(escapes.KILL_PARENT)])


def test_nothing_is_written_to_the_client(open_door, guarded):
    """Not even without a filter: a worker has no files."""
    for made in (guarded, open_door):
        with closing(NativeBackend(link=Impatient(made.runner))) as backend:
            assert outcomes(backend, made.kernel(escapes.WRITE_TO_PIPE), ADD)[1] == "ok"


# --- what a worker has --------------------------------------------------------------------------


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_worker_has_no_files_and_may_have_none(backend):
    backend.submit([HANG] * 3, Effort(rounds=1))  # beside neighbours the first may have ended unseen
    supervisor = backend._transport.process.pid
    seen = []

    def found():
        for worker in children(supervisor):
            folder = Path(f"/proc/{worker}")
            with suppress(OSError):  # it ends at any moment
                if "Seccomp:\t2" in (folder / "status").read_text():
                    seen.append(((folder / "limits").read_text(), list((folder / "fd").iterdir())))
        return bool(seen)

    assert until(found)
    limits, files = seen[0]
    assert not files
    words = {line[:25].strip(): line[26:].split()[:2] for line in limits.splitlines()[1:]}
    assert words["Max open files"] == words["Max file size"] == words["Max processes"] == ["0", "0"]
    assert words["Max core file size"] == ["1", "1"]  # neither a file nor a program for it
    assert int(words["Max stack size"][1]) <= 8 << 20
    backend.collect()
    assert not children(supervisor)


def test_the_runner_is_at_another_address_each_time(guarded):
    if not guarded.moves:
        pytest.skip("this C library has no static-pie")
    if Path("/proc/sys/kernel/randomize_va_space").read_text().strip() == "0":
        pytest.skip("this kernel randomizes nothing")
    found = set()
    for _ in range(4):
        with closing(NativeBackend(link=Impatient(guarded.runner))) as backend:
            maps = Path(f"/proc/{backend._transport.process.pid}/maps").read_text()
        found.add(next(line.split("-")[0] for line in maps.splitlines() if line.endswith("/runner")))
    assert len(found) > 1


def test_the_stack_of_a_worker_does_not_grow_without_end(guarded):
    before = resource.getrlimit(resource.RLIMIT_STACK)
    if before[1] != resource.RLIM_INFINITY:
        pytest.skip("stacks are limited here")
    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        with closing(NativeBackend(link=Impatient(guarded.runner))) as backend:
            how, after = outcomes(backend, guarded.kernel(escapes.GROW_STACK), ADD)
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, before)
    assert how.startswith("SIGSEGV at 0x7f")
    assert after == "ok"


# --- what a worker writes -----------------------------------------------------------------------

FORGED = [0, 1, 2, 3, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


@pytest.mark.parametrize("active", FORGED)
def test_a_forged_index_leads_nowhere_else(backend, guarded, active):
    """The record of the dead worker is written within the batch, and everything is answered."""
    bad = guarded.kernel(forge(1, active, escapes.UNARMED_FAULT))
    found = outcomes(backend, ADD, bad, ADD, ADD)
    assert sum(text == "killed the worker (1099)" for text in found) >= 1
    assert set(found) <= {"killed the worker (1099)", "ok", "not run"}
    backend.submit([ADD, bad, ADD], Effort(rounds=2))
    assert [len(samples) for samples in backend.collect()] == [2, 2, 2]


def test_who_says_that_all_is_done_has_done_nothing(backend, guarded):
    assert outcomes(backend, ADD, guarded.kernel(forge(4, 3, escapes.END_WELL)), ADD, ADD) == [
        "ok", "not run", "not run", "not run",
    ]  # fmt: skip


def test_forged_results_are_none(backend, guarded):
    """The first one's record is written again when it has run."""
    found = outcomes(backend, guarded.kernel(escapes.SPOIL_RESULTS), ADD, ADD)
    assert found == ["killed the worker (2000)"] * 3


def test_states_of_later_kernels_are_not_what_a_kernel_writes(backend, guarded):
    show = Kernel(bytes.fromhex("498b06488b00"), 1, STATE)
    before = outcomes(backend, show)
    assert outcomes(backend, guarded.kernel(escapes.SPOIL_STATES))
    assert outcomes(backend, show) == before


def test_memory_of_later_workers_is_not_what_a_kernel_writes(backend, guarded):
    spoil, show = guarded.kernel(escapes.SPOIL_DATA), guarded.kernel(escapes.SHOW_DATA)
    assert outcomes(backend, spoil, show) == ["ok", RETURNED]  # in the same worker
    assert outcomes(backend, show) == ["SIGSEGV at 0x0"]


def cycles(backend):
    backend.submit([ADD], Effort(rounds=2))
    ((first, second),) = backend.collect()
    assert first.status == second.status == OK
    return min(first.cycles, second.cycles)


def test_the_clock_is_not_what_a_kernel_writes(backend, guarded):
    def check():
        backend.calibrate()
        before = cycles(backend)
        outcomes(backend, guarded.kernel(escapes.SPOIL_CLOCK))
        assert 0.75 < cycles(backend) / before < 1.33

    patiently(check)


def test_who_blocks_all_signals_and_says_it_moves_is_killed(backend, guarded):
    start = time.monotonic()
    assert outcomes(backend, guarded.kernel(escapes.LOOP_WITHOUT_SIGNALS), ADD) == [
        "killed the worker (9)", "ok",
    ]  # fmt: skip
    assert time.monotonic() - start < 60
