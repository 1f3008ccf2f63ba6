"""The runner's side of the conversation, played by a script."""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import closing
from errno import EMFILE

import pytest

from cyclescope.backend import transport
from cyclescope.backend.base import Effort, Outcome
from cyclescope.backend.link import Link
from cyclescope.backend.native import MEASURE, PROBE, QUIT, STATE, NativeBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.host.counters import CYCLES
from cyclescope.host.identity import as_leaves, identify
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state
from tests.support.programs.fake_runner import fake_runner, frames

EVENTS = (CYCLES, ("uops", 4, 0xC1), ("p0", 4, 0x1A1))


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Make the runner that the backend finds; with Python that replaces some of its functions."""
    path = tmp_path / "runner"
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(path))

    def make(changes=""):
        return fake_runner(path, changes)

    return make


def kernel(code=b"\x90", level=0):
    return Kernel(code, 1, default_state(level))


BIG_LITTLE = """
cpu = [0]
def hello(version=10):
    midr = 0x410fd080 if cpu[0] == 5 else 0x410fd034
    leaves = [(1, 0, midr, 0, 0, 0), (0x43530001, 0, 0, 2, 0, 0)]
    head = struct.pack("<4I7Q", version, 2, len(leaves), 4096, *[0] * 7)
    return head + b"".join(struct.pack("<6I", *leaf) for leaf in leaves)

def setup(payload):
    cpu[:] = struct.unpack_from("<i", payload)
    return struct.pack("<4i2I", cpu[0], 0, 0, 0, 0, 0)
"""


def test_cores_of_several_kinds(runner):
    """The one that kernels run on is the machine."""
    runner(BIG_LITTLE)
    with closing(NativeBackend(5)) as backend:
        assert backend.capabilities().identity.llvm == "cortex-a72"
        backend.configure(0)
        assert backend.capabilities().identity.llvm == "cortex-a53"


def refused(*, remedy=True):
    """The error of a backend that cannot be."""
    with pytest.raises(BackendUnavailable) as error:
        NativeBackend(0).close()
    assert bool(error.value.remedy) == remedy
    assert "\n" not in str(error.value)
    return str(error.value)


# --- what it says -------------------------------------------------------------------------------


def test_capabilities(runner):
    runner()
    with closing(NativeBackend(3)) as backend:
        found = backend.capabilities()
    assert (found.isa, found.cpu, found.clock, found.notes) == ("x86-64", 3, "time-stamp counter", ())
    assert (found.xcr0, len(found.leaves)) == (7, 2)
    identity = identify(as_leaves(found.leaves))
    assert (identity.vendor, identity.family, identity.model, identity.llvm) == (
        "GenuineIntel",
        6,
        0x9E,
        "skylake",
    )


def test_calibration(runner):
    runner()
    with closing(NativeBackend(0)) as backend:
        found = backend.calibrate()
    assert (found.ticks_per_cycle, found.clean_share) == (0.5, 0.75)
    assert found.frequency == pytest.approx(2e9)


def test_batches_are_answered_in_order(runner):
    path = runner("def result(cycles=3.0, n=[0], old=result): n[0] += 1; return old(float(n[0]))\n")
    with closing(NativeBackend(0)) as backend:
        backend.submit([kernel()], Effort(rounds=2))
        backend.submit([kernel(), kernel(b"\xcc")], Effort(rounds=1))
        first, second = backend.collect(), backend.collect()
    assert [[s.cycles for s in samples] for samples in first] == [[1.0, 1.0]]
    assert [[s.cycles for s in samples] for samples in second] == [[2.0], [2.0]]
    assert [count for kind, _, count in frames(path) if kind == MEASURE] == [1, 2]


@pytest.mark.parametrize(("gives_way", "order"), [(True, [1, 2, 3]), (False, [1, 3, 2])])
def test_a_thread_that_gives_way_waits_until_nothing_is_under_way(runner, gives_way, order):
    slow = (
        "quick = answer\ndef answer(*asked): time.sleep(0.3 * (asked[0] == MEASURE)); return quick(*asked)\n"
    )
    path = runner(slow)
    with closing(NativeBackend(0)) as backend:

        def ask():
            if gives_way:
                backend.give_way()
            backend.submit([kernel()] * 3, Effort())
            backend.collect()

        backend.submit([kernel()], Effort())
        other = threading.Thread(target=ask)
        other.start()
        time.sleep(0.1)
        backend.submit([kernel()] * 2, Effort())
        assert [len(backend.collect()), len(backend.collect())] == [1, 2]
        other.join()
    assert [count for kind, _, count in frames(path) if kind == MEASURE] == order


def test_every_field_of_a_sample(runner):
    runner("old = result\ndef result(): return old(float('nan'), 1, 11, 0x123456789A, (), 7)\n")
    with closing(NativeBackend(0)) as backend:
        backend.submit([kernel()], Effort(rounds=1))
        ((sample,),) = backend.collect()
    assert math.isnan(sample.cycles)
    assert (sample.status, sample.detail, sample.address, sample.instruction) == (1, 11, 0x123456789A, 7)
    assert (sample.accepted, sample.rejected, sample.exceptions, sample.spread) == (12, 3, 32, 0.5)
    assert (sample.counters, sample.usable) == ((), False)


def test_outcomes_of_probing(runner):
    runner(
        "old = answer\n"
        "def answer(kind, payload, count):\n"
        "    if kind != PROBE: return old(kind, payload, count)\n"
        "    return struct.pack('<Q2IiI', 16, 1, 11, 2, 0) + struct.pack('<Q2IiI', 0, 3, 9, -1, 0)\n"
    )
    with closing(NativeBackend(0)) as backend:
        outcomes = backend.probe([kernel(), kernel()])
    assert outcomes == [Outcome(1, 11, 16, 2), Outcome(3, 9, 0, -1)]
    assert [o.describe() for o in outcomes] == ["SIGSEGV at 0x10", "killed the worker (9)"]


def test_a_state_is_sent_once(runner):
    path = runner()
    first, second = kernel(), kernel(level=3)
    with closing(NativeBackend(0)) as backend:
        backend.probe([first, second, first])
        backend.probe([second])
    assert [kind for kind, _, _ in frames(path)][2:] == [STATE, STATE, PROBE, PROBE, QUIT]


# --- counters -----------------------------------------------------------------------------------


def test_refused_counters_are_a_note(runner):
    runner("old = setup\ndef setup(payload): return old(payload, counter=2)\n")
    with closing(NativeBackend(0, EVENTS)) as backend:
        found = backend.capabilities()
        backend.submit([kernel()], Effort(rounds=1))
        ((sample,),) = backend.collect()
    assert found.notes == ("performance counters: No such file or directory",)
    assert (found.counters, found.clock) == ((), "time-stamp counter")
    assert (sample.cycles, sample.counters) == (3.0, ())


def test_counters_that_open_are_read(runner):
    runner(
        "old, older = setup, result\n"
        "def setup(payload): return old(payload, counter=95, opened=2)\n"
        "def result(): return older(counters=(1.5,))\n"
    )
    with closing(NativeBackend(0, EVENTS)) as backend:
        found = backend.capabilities()
        backend.submit([kernel()], Effort(rounds=1))
        ((sample,),) = backend.collect()
    assert found.counters == ("cycles", "uops")
    assert found.clock == "core cycles (perf_event)"
    assert len(found.notes) == 1
    assert sample.counters == (1.5,)


def test_counters_lost_on_the_way_are_no_numbers(runner):
    runner("old = setup\ndef setup(payload): return old(payload, opened=3)\n")
    with closing(NativeBackend(0, EVENTS)) as backend:
        backend.submit([kernel()], Effort(rounds=1))
        ((sample,),) = backend.collect()
    assert sample.counters == ()
    assert sample.usable


def test_what_could_not_be_set_up_is_noted(runner):
    runner("old = setup\ndef setup(payload): return old(payload, pin=22, filtered=1)\n")
    with closing(NativeBackend(5)) as backend:
        found = backend.capabilities()
    assert found.cpu == -1
    assert found.notes[0] == "not pinned to CPU 5: Invalid argument"
    assert found.notes[1].startswith("system calls of kernels are not stopped")


# --- runners that are wrong ---------------------------------------------------------------------


def test_a_missing_runner(runner):
    assert "is missing" in refused()


def test_a_runner_that_is_not_executable(runner):
    path = runner()
    path.chmod(0o644)
    assert "chmod +x" in refused()


def test_a_runner_of_another_architecture(runner):
    path = runner()
    machine = (243).to_bytes(2, "little")  # RISC-V
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0" + machine + bytes(200))
    assert "no program for this CPU" in refused()


def test_a_system_without_room_for_a_runner(runner, monkeypatch):
    """Installing again would not help."""

    def scarce(*args, **more):
        raise OSError(EMFILE, "Too many open files")

    runner()
    monkeypatch.setattr(transport.subprocess, "Popen", scarce)
    said = refused()
    assert "cannot be started (Too many open files)" in said
    assert "ulimit" in said


def test_a_system_without_room_for_a_thread(runner, monkeypatch):
    processes = []

    class Scarce:
        def __init__(self, target, daemon):
            processes.append(target.__self__.process)

        def start(self):
            raise RuntimeError("can't start new thread")

    runner()
    monkeypatch.setattr(transport.threading, "Thread", Scarce)
    assert "ulimit" in refused()
    assert gone(processes[0].pid)


def test_a_runner_without_its_interpreter(runner):
    path = runner()
    path.write_text("#!/nowhere/interpreter\n")
    assert "No such file" in refused()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("sys.exit(7)", "ended with exit status 7"),
        ("sys.exit('cannot map\\nmemory')", "ended with exit status 1 (cannot map memory)"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed: Segmentation fault"),
        ("def answer(*_): return hello(1)", "speaks protocol 1, not 10"),
        ("def answer(*_): return b''", "speaks protocol 0"),
        ("write(HELLO, b'', magic=7)", "another protocol"),
        ("write(SETUP, hello())", "another protocol"),
        ("print('Welcome to the runner!', flush=True); time.sleep(60)", "another protocol"),
        ("read(16); write(ERROR, b'no memory')", "refused: no memory"),
    ],
)
def test_a_strange_runner(runner, changes, said):
    runner(changes + "\n")
    assert said in refused()


@pytest.mark.parametrize(
    ("begins", "said"), [("", "has not answered for 0.3 s"), ("os.close(1); ", "closed its output")]
)
def test_a_runner_that_says_nothing(runner, monkeypatch, begins, said):
    path = runner(f"{begins}open(sys.argv[0] + '.started', 'w').close(); time.sleep(60)\n")
    connect = Link.connect

    def connected(link):
        made = connect(link)
        while not path.with_suffix(".started").exists():
            time.sleep(0.01)
        return made

    monkeypatch.setattr(Link, "connect", connected)
    monkeypatch.setattr(transport, "GOODBYE", 0.3)
    monkeypatch.setenv("CYCLESCOPE_PATIENCE", "0.3")
    assert said in refused()


def test_a_runner_that_dies_at_work(runner):
    runner(
        "old = answer\n"
        "def answer(kind, payload, count):\n"
        "    if kind == MEASURE: sys.stderr.write('out of memory'); sys.exit(2)\n"
        "    return old(kind, payload, count)\n"
    )
    with closing(NativeBackend(0)) as backend:
        backend.submit([kernel()], Effort())
        with pytest.raises(BackendUnavailable, match=r"exit status 2 \(out of memory\)"):
            backend.collect()
        with pytest.raises(BackendUnavailable, match="exit status 2"):
            backend.calibrate()


def test_a_truncated_answer(runner):
    runner(
        "old = answer\n"
        "def answer(kind, payload, count):\n"
        "    if kind != PROBE: return old(kind, payload, count)\n"
        "    os.write(1, FRAME.pack(MAGIC, PROBE, 24, 1) + b'half')\n"
        "    sys.exit(0)\n"
    )
    with closing(NativeBackend(0)) as backend, pytest.raises(BackendUnavailable, match="exit status 0"):
        backend.probe([kernel()])


# --- the end ------------------------------------------------------------------------------------


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_closing_ends_the_runner(runner):
    path = runner()
    backend = NativeBackend(0)
    backend.close()
    assert gone(backend._transport.process.pid)
    assert frames(path)[-1][0] == QUIT


def test_closing_does_not_wait_for_a_runner_at_work(runner, monkeypatch):
    monkeypatch.setattr(transport, "GOODBYE", 50.0)
    runner(
        "old = answer\n"
        "def answer(kind, payload, count):\n"
        "    if kind == MEASURE: time.sleep(60)\n"
        "    return old(kind, payload, count)\n"
    )
    backend = NativeBackend(0)
    backend.submit([kernel()], Effort())
    start = time.monotonic()
    backend.close()
    assert time.monotonic() - start < 40
    assert gone(backend._transport.process.pid)


def test_closing_a_runner_that_does_not_listen(runner, monkeypatch):
    runner(
        "old = answer\n"
        "def answer(kind, payload, count):\n"
        "    if kind != CALIBRATE: return old(kind, payload, count)\n"
        "    write(kind, old(kind, payload, count))\n"
        "    time.sleep(60)\n"
    )
    backend = NativeBackend(0)
    backend.calibrate()
    monkeypatch.setattr(transport, "GOODBYE", 0.3)
    backend.close()
    assert gone(backend._transport.process.pid)


def test_closing_twice_does_no_harm(runner):
    runner()
    backend = NativeBackend(0)
    backend.close()
    backend.close()
    assert backend._transport.process.returncode == 0
