"""Links to targets that break, are slow or fall silent: nothing is lost, and nothing stays behind."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cyclescope.backend import link as links
from cyclescope.backend import native, transport
from cyclescope.backend.base import Effort
from cyclescope.backend.native import MEASURE
from cyclescope.backend.remote import link_to
from cyclescope.errors import BackendUnavailable
from tests.support.programs.fake_runner import frames
from tests.support.programs.processes import ended, until
from tests.support.programs.remote import ONCE, TARGET, TELLING, kernels, measured, opened

# --- links that break ---------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [[90_000], [5_000, 30_000, 100], [20_000] * 4])
def test_a_link_that_breaks(runner, ssh, cut):
    """Whatever was in flight: every kernel is answered, in order."""
    runner(TELLING)
    ssh.set(cut={"run": cut})
    with opened() as backend:
        measured(backend)
        assert any("nothing was lost" in note for note in backend.capabilities().notes)
    assert ssh.calls.count("run") == len(cut) + 1
    assert ssh.calls.count("look") == 1


@pytest.mark.parametrize("cut", [[], [90_000], [5_000, 30_000, 100]])
def test_threads_have_their_own_answers(runner, ssh, cut):
    """Each in its order, though all ask one runner and a link that breaks is mended by one of them."""
    runner(TELLING)
    ssh.set(cut={"run": cut})
    with opened() as backend, ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(measured, backend, count) for count in (40, 55, 70)]:
            done.result()
    assert ssh.calls.count("run") == len(cut) + 1


def test_what_was_answered_is_not_asked_again(runner, ssh):
    """In smaller pieces, so that a link that carries only some at a time carries all in the end."""
    runner(TELLING)
    one = 144 * 2
    ssh.set(cut={"run": [one * 20, *[one * 90] * 8]})
    with opened() as backend:
        measured(backend, 300, 1)
    (there,) = ssh.runners
    asked = [count for kind, _, count in frames(there) if kind == MEASURE]
    assert asked[0] == 300
    assert max(asked[1:]) <= 75
    assert sum(asked) < 300 * ssh.calls.count("run")


def test_a_link_that_always_breaks_is_given_up(runner, ssh):
    runner(TELLING)
    ssh.set(cut={"run": [2_000] * 9})
    with opened() as backend:
        backend.submit(kernels(400), Effort())
        with pytest.raises(BackendUnavailable, match=r"closed by remote host.*after 3 new connections"):
            backend.collect()
    assert ssh.calls.count("run") == 4


def test_a_host_that_does_not_come_back(runner, ssh):
    runner(TELLING)
    ssh.set(
        cut={"run": [5_000]},
        refuse="ssh: connect: No route to host",
        refuse_from={"run": 2, "look": 9, "copy": 9},
    )
    with opened() as backend, pytest.raises(BackendUnavailable, match="No route to host"):
        measured(backend)


@pytest.mark.parametrize("kind", ["HELLO", "SETUP", "CALIBRATE", "PROBE"])
def test_a_runner_that_is_killed(runner, ssh, kind):
    """At any request, the first on the second connection too."""
    runner(
        f"{TELLING}{ONCE}"
        "def answer(kind, payload, count):\n"
        "    if kind == MEASURE and once(): os.kill(os.getpid(), 9)\n"
        f"    if kind == {kind} and before() and once('again'): os.kill(os.getpid(), 9)\n"
        "    return oldest(kind, payload, count)\n"
    )
    with opened() as backend:
        backend.calibrate()
        assert len(backend.probe(kernels(3))) == 3
        measured(backend)
        assert backend.calibrate().clean_share == 0.75
        assert len(backend.probe(kernels(3))) == 3
    assert ssh.calls.count("run") == 3


def test_a_runner_that_was_removed_is_copied_again(runner, ssh):
    path = runner(
        f"{TELLING}{ONCE}"
        "def answer(kind, payload, count):\n"
        "    if kind == MEASURE and once(): os.remove(sys.argv[0]); sys.exit(1)\n"
        "    return oldest(kind, payload, count)\n"
    )
    with opened() as backend:
        measured(backend)
    assert ssh.calls == ["look", "copy", "run", "run", "look", "copy", "run"]
    assert ssh.runners[0].read_bytes() == path.read_bytes()


def test_a_new_connection_to_another_machine(runner, ssh):
    """Behind one name, as in a cluster: its times have no place beside the first one's."""
    runner(
        f"{TELLING}{ONCE}"
        "if before(): LEAVES[1] = (1, 0, 0x000306c3, 0, 0, 0)\n"
        "def answer(kind, payload, count):\n"
        "    if kind == MEASURE and once(): sys.exit(1)\n"
        "    return oldest(kind, payload, count)\n"
    )
    with opened() as backend, pytest.raises(BackendUnavailable, match=r"another machine now .*haswell"):
        measured(backend)


# --- links that are slow, or silent -------------------------------------------------------------

PATIENCE = 3.0  # seconds: a process may wait for its CPU for long beside others


def test_a_slow_link(runner, ssh, monkeypatch):
    """Patience is for silence: an answer may take longer as long as something comes."""
    runner(TELLING)
    ssh.set(delay=0.05, chunk=512)
    monkeypatch.setattr(links, "WORK_PATIENCE", PATIENCE)
    monkeypatch.setattr(links, "KERNEL_PATIENCE", 0.0)
    start = time.monotonic()
    with opened() as backend:
        measured(backend, 200, 1)
        assert backend.capabilities().notes == ()
    assert time.monotonic() - start > 1.2 * PATIENCE
    assert ssh.calls.count("run") == 1


def test_a_link_that_falls_silent(runner, ssh, monkeypatch):
    runner(
        f"{TELLING}{ONCE}"
        "def answer(kind, payload, count):\n"
        "    if kind == MEASURE and once(): time.sleep(60)\n"
        "    return oldest(kind, payload, count)\n"
    )
    monkeypatch.setattr(links, "WORK_PATIENCE", PATIENCE)
    monkeypatch.setattr(links, "KERNEL_PATIENCE", 0.0)
    with opened() as backend:
        measured(backend)
    assert ssh.calls.count("run") == 2


def test_patience_grows_with_the_work():
    link = link_to("exec:true")
    assert link.patience_for(2000) - link.patience_for(0) >= 2000  # a kernel may take a second
    assert links.Link().patience_for(2000) is None


# --- the end ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [TARGET, "exec:{path}; true"])
def test_closing_ends_a_runner_at_work(runner, ssh, tmp_path, monkeypatch, target):
    monkeypatch.setattr(transport, "GOODBYE", 50.0)
    ready = tmp_path / "ready"
    path = runner(
        "older = answer\n"
        "def answer(kind, payload, count):\n"
        f"    if kind == MEASURE: open({str(ready)!r}, 'w').write(str(os.getpid())); time.sleep(60)\n"
        "    return older(kind, payload, count)\n"
    )
    with opened(target.format(path=path)) as backend:
        backend.submit(kernels(1), Effort())
        assert until(lambda: ready.exists() and ready.read_text())
        start = time.monotonic()
    assert time.monotonic() - start < 40
    assert until(lambda: ended(int(ready.read_text())))


def test_an_idle_runner_is_asked_to_end(runner, ssh):
    runner()
    with opened():
        pass
    assert frames(ssh.runners[0])[-1][0] == native.QUIT
