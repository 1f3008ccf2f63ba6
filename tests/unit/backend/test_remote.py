"""Runners elsewhere: over an ssh that is made up, and commands; links that break, stall or crawl."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from cyclescope.backend import link as links
from cyclescope.backend import native
from cyclescope.backend.base import Effort
from cyclescope.backend.native import MEASURE, NativeBackend
from cyclescope.backend.remote import link_to
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state
from tests.support.fake_runner import fake_runner, frames
from tests.support.fake_ssh import FakeSsh
from tests.support.processes import ended, until

# A runner whose answers tell the kernels apart: the first byte of the body is the number of cycles.
TELLING = """
def bodies(payload, count):
    place = 24
    for _ in range(count):
        state, flags, instructions, setup, body = struct.unpack_from("<I4H", payload, place)
        yield payload[place + 12 + setup] if state in STATES else 255
        place += (12 + setup + body + 3) // 4 * 4

older = answer
def answer(kind, payload, count):
    if kind != MEASURE:
        return older(kind, payload, count)
    rounds, = struct.unpack_from("<I", payload)
    return b"".join(result(float(body)) * rounds for body in bodies(payload, count))
"""
ONCE = """
def before(name="once"):
    return os.path.exists(os.path.dirname(sys.argv[0]) + "/" + name)

def once(name="once"):
    try:
        os.close(os.open(os.path.dirname(sys.argv[0]) + "/" + name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
oldest = answer
"""
TARGET = "ssh://someone@board:2222"


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Make the runner of this machine, which ssh then copies."""
    path = tmp_path / "runner"
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(path))
    monkeypatch.setattr(native, "PAUSES", (0.0,))
    return lambda changes="": fake_runner(path, changes)


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    found = FakeSsh(tmp_path / "ssh")
    monkeypatch.setenv("PATH", found.path)
    return found


def opened(target=TARGET):
    return closing(NativeBackend(0, link=link_to(target)))


STATES = [default_state(level) for level in range(4)]


def kernels(count):
    return [Kernel(bytes([n % 251]), 1, STATES[n % 4], b"\xcc" * (n % 3)) for n in range(count)]


def measured(backend, count=200, batches=2, rounds=2):
    """What comes back of some batches, in flight together; the cycles tell the kernels apart."""
    for _ in range(batches):
        backend.submit(kernels(count), Effort(rounds=rounds))
    answers = [backend.collect() for _ in range(batches)]
    expected = [[float(n % 251)] * rounds for n in range(count)]
    assert [[[s.cycles for s in samples] for samples in answer] for answer in answers] == [expected] * batches


def refused(target=TARGET):
    with pytest.raises(BackendUnavailable) as error, opened(target):
        pass
    assert "\n" not in str(error.value)
    assert error.value.remedy
    return str(error.value)


# --- what --target names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "login"),
    [
        ("ssh://board", ["board"]),
        ("ssh://me@board.lan/", ["me@board.lan"]),
        ("ssh://me@10.0.0.2:2222", ["-p", "2222", "me@10.0.0.2"]),
        ("ssh://[fe80::1%eth0]:22", ["-p", "22", "fe80::1%eth0"]),
    ],
)
def test_hosts(target, login):
    command = link_to(target)._command("true")
    assert command[-len(login) - 1 : -1] == login
    assert "-oBatchMode=yes" in command


@pytest.mark.parametrize(
    "target",
    ["", "board", "ssh:board", "ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://b:0", "ssh://b:99999",
     "ssh://b/path", "exec:", "exec:  ", "http://b", "ssh://-l@b"],
)  # fmt: skip
def test_targets_that_are_none(target):
    with pytest.raises(UsageError, match=r"ssh://.*exec:COMMAND"):
        link_to(target)


# --- ssh ----------------------------------------------------------------------------------------


def test_a_runner_is_copied_once(runner, ssh):
    runner(TELLING)
    for calls in (["look", "copy", "run"], ["look", "run"]):
        ssh.set()
        with opened() as backend:
            measured(backend)
            assert backend.capabilities().notes == ()
        assert ssh.calls == calls
    assert len(ssh.runners) == 1
    assert "-p 2222 someone@board" in (ssh.folder / "log").read_text()


def test_another_runner_is_copied_beside_it(runner, ssh):
    for changes in ("", "# newer\n"):
        runner(changes)
        with opened():
            pass
    assert len(ssh.runners) == 2


def test_a_copy_that_is_cut_is_none(runner, ssh):
    size = runner().stat().st_size
    ssh.set(cut={"copy": [size - 1]})
    assert "board" in refused()
    assert not ssh.runners
    ssh.set()
    with opened():
        pass
    assert len(ssh.runners) == 1
    assert not list(ssh.runners[0].parent.glob(".*"))


@pytest.mark.parametrize(
    ("said", "meaning", "remedy"),
    [
        ("me@board: Permission denied (publickey).", "does not let us in", "ssh-copy-id"),
        ("Host key verification failed.", "not known to ssh", "by hand: `ssh -p 2222 someone@board`"),
        ("ssh: Could not resolve hostname board: Name or service not known", "not known here", "name"),
        ("ssh: connect to host board port 22: Connection refused", "is not reached", "`ssh"),
        ("ssh: connect to host board port 22: No route to host", "is not reached", "`ssh"),
        ("kex_exchange_identification: nothing heard", "ssh to board failed", "`ssh"),
    ],
)
@pytest.mark.parametrize("first", [{"look": 1}, {"look": 9, "copy": 9, "run": 1}])
def test_an_ssh_that_refuses(runner, ssh, said, meaning, remedy, first):
    runner()
    ssh.set(refuse=said, refuse_from={"look": 9, "copy": 9, "run": 9} | first)
    found = refused()
    assert meaning in found
    assert said in found
    assert remedy in found


def test_no_ssh(runner, monkeypatch, tmp_path):
    runner()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "openssh-client" in refused()


@pytest.mark.parametrize(
    ("system", "said"),
    [("Linux armv7l", "runs Linux on armv7l"), ("Darwin arm64", "runs Darwin on arm64"), ("", "no system")],
)
def test_hosts_without_a_runner(runner, ssh, system, said):
    runner()
    ssh.uname(system)
    found = refused()
    assert said in found
    assert "x86-64, aarch64, riscv64" in found


def test_no_compiler_for_the_host(ssh, monkeypatch, tmp_path):
    ssh.uname("Linux riscv64")
    monkeypatch.setenv("PATH", str(ssh.folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "apt install gcc-riscv64-linux-gnu libc6-dev-riscv64-cross" in refused()
    assert ssh.calls == ["look"]


def test_a_runner_of_another_architecture(ssh, monkeypatch, tmp_path):
    """`uname` tells the kernel's; programs may have to be of another one."""
    path = tmp_path / "runner"
    machine = (243).to_bytes(2, "little")  # RISC-V
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0" + machine + bytes(200))
    path.chmod(0o755)
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(path))
    ssh.uname("Linux riscv64")
    assert "another instruction set" in refused()


def test_a_runner_of_another_version(runner, ssh):
    runner("def answer(*_): return hello(3)\n")
    assert f"speaks protocol 3, not {native.VERSION}" in refused()


def test_a_home_folder_without_programs(runner, ssh):
    runner()
    with opened():
        pass
    ssh.runners[0].write_text(
        "#!/\n"
    )  # a folder as interpreter: the shell says what noexec would make it say
    assert "may not be executed" in refused()


# --- commands -----------------------------------------------------------------------------------


def test_a_command(runner):
    path = runner(TELLING)
    with opened(f"exec:cd / && exec {path}") as backend:
        measured(backend)
    assert frames(path)[0][0] == native.HELLO


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/nowhere/runner", "no such program"),
        ("/", "may not be executed"),
        ("echo the qemu: Invalid ELF image for this architecture >&2; exit 1", "another instruction set"),
        ("echo Welcome to the board; sleep 9", "after text on standard output (Welcome to the"),
        ("echo Hi, you; sleep 9", "after text on standard output (Hi, you"),
        ("cat", "speaks protocol 0"),
        ("exit 3", "exit status 3"),
        ("kill -9 $$", "was killed"),
    ],
)
def test_commands_that_start_no_runner(command, said):
    assert said in refused(f"exec:{command}")


def test_a_command_that_says_nothing(monkeypatch):
    monkeypatch.setenv("CYCLESCOPE_PATIENCE", "0.3")
    said = refused("exec:sleep 60")
    assert "has not answered for 0.3 s" in said
    assert "CYCLESCOPE_PATIENCE=10" in said


def test_patience_that_is_no_number(runner, monkeypatch):
    monkeypatch.setenv("CYCLESCOPE_PATIENCE", "long")
    with pytest.raises(UsageError, match="CYCLESCOPE_PATIENCE"), opened(f"exec:{runner()}"):
        pass


def test_a_runner_that_talks_on_standard_error(runner):
    path = runner(TELLING + "for _ in range(20): sys.stderr.write('x' * 100_000)\n")
    with opened(f"exec:{path}") as backend:
        measured(backend)  # every answer is looked at there


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


def test_a_slow_link(runner, ssh, monkeypatch):
    """Patience is for silence: an answer may take longer as long as something comes."""
    runner(TELLING)
    ssh.set(delay=0.05, chunk=2048)
    monkeypatch.setattr(links, "WORK_PATIENCE", 1.0)
    monkeypatch.setattr(links, "KERNEL_PATIENCE", 0.0)
    start = time.monotonic()
    with opened() as backend:
        measured(backend, 200, 1)
        assert backend.capabilities().notes == ()
    assert time.monotonic() - start > 1.2
    assert ssh.calls.count("run") == 1


def test_a_link_that_falls_silent(runner, ssh, monkeypatch):
    runner(
        f"{TELLING}{ONCE}"
        "def answer(kind, payload, count):\n"
        "    if kind == MEASURE and once(): time.sleep(60)\n"
        "    return oldest(kind, payload, count)\n"
    )
    monkeypatch.setattr(links, "WORK_PATIENCE", 1.0)
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
def test_closing_ends_a_runner_at_work(runner, ssh, tmp_path, target):
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
    assert time.monotonic() - start < 10
    assert until(lambda: ended(int(ready.read_text())))


def test_an_idle_runner_is_asked_to_end(runner, ssh):
    runner()
    with opened():
        pass
    assert frames(ssh.runners[0])[-1][0] == native.QUIT


# --- the machine --------------------------------------------------------------------------------


def test_files_of_the_machine(runner):
    path = runner(
        "older = answer\n"
        "def answer(kind, payload, count):\n"
        "    if kind != 10: return older(kind, payload, count)\n"
        "    return {b'/proc/loadavg': b'0.5 0.4'}.get(payload, b'')\n"
    )
    with opened(f"exec:{path}") as backend:
        assert backend.read(["proc/loadavg", "proc/none"]) == ["0.5 0.4", None]


def test_an_older_runner_reads_no_files(runner):
    path = runner(
        "older, write_it = answer, write\n"
        "def answer(kind, payload, count): return b'' if kind == 10 else older(kind, payload, count)\n"
        "def write(kind, payload): write_it(ERROR if kind == 10 else kind, payload)\n"
    )
    with opened(f"exec:{path}") as backend:
        assert backend.read(["proc/loadavg"]) == [None]
        backend.calibrate()


@pytest.mark.parametrize(
    ("changes", "command", "emulated"),
    [
        ("", "{path}", False),
        ("", ": qemu-riscv64; {path}", True),
        ("", ": /usr/bin/qemu-system-aarch64 -M virt; {path}", True),
        ("", ": qemu-guests/board; {path}", False),
        ("LEAVES.append((0x43530001, 0, 1, 1, 0, 0))\n", "{path}", True),
        ("LEAVES.append((0x43530001, 0, 2, 1, 0, 0))\n", "{path}", False),
    ],
)
def test_emulators(runner, changes, command, emulated):
    path = runner(changes)
    with opened(f"exec:{command.format(path=path)}") as backend:
        found = backend.capabilities()
    assert found.real_time != emulated
    assert found.identity.machine.endswith(" emulated") == emulated
