"""Runners elsewhere: over an ssh that is made up, and commands."""

from __future__ import annotations

import pytest

from cyclescope.backend import native
from cyclescope.backend.remote import link_to
from cyclescope.errors import UsageError
from tests.support.programs.fake_runner import frames
from tests.support.programs.remote import TELLING, measured, opened, refused

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
        measured(backend)
        assert not any("nothing was lost" in note for note in backend.capabilities().notes)  # in one go


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
