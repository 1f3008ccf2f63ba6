"""Measuring over a command, over ssh, and on a cluster: the same answers, and nothing lost on the way."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from cyclescope.backend.build import compilers
from cyclescope.backend.native import MEASURE, STATE, VERSION, NativeBackend
from cyclescope.backend.remote import link_to
from cyclescope.backend.transport import FRAME, MAGIC
from cyclescope.host.topology import read_topology
from cyclescope.host.uname import host_isa
from cyclescope.infer.api import open_backend
from cyclescope.isa.registry import isa_names
from cyclescope.measure.bench import default_state
from cyclescope.measure.store import Store
from tests.support.programs.fake_ssh import FakeSsh
from tests.support.programs.processes import NOISY, patiently, until

pytestmark = pytest.mark.hardware

ROOT = Path(__file__).parents[2]
FORMS = ("IMUL (R64, R64)", "ADD_01 (R64, R64)", "isa:BMI1")


@pytest.fixture
def ssh(cyclescope, tmp_path):
    found = FakeSsh(tmp_path / "ssh")
    cyclescope.environ["PATH"] = found.path
    return found


def forms(out):
    return {form["id"]: form for form in json.loads(out)["forms"]}


def chain(form):
    return next(x["max"] for x in form["latencies"] if (x["source"], x["target"]) == ("op1", "op1"))


# --- the same answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", [[], ["--target", "exec:{runner}"], ["--target", "ssh://board"]])
def test_a_multiplication_takes_the_same_number_of_additions(cyclescope, ssh, tmp_path, target):
    def check():
        words = [word.format(runner=cyclescope.runner) for word in target]
        store = tmp_path / f"{time.monotonic_ns()}.sqlite"
        code, out, err = cyclescope.run("measure", *FORMS[:2], "--json", "--store", store, *words)
        assert code == 0, err
        imul, add = (forms(out)[name] for name in FORMS[:2])
        ratio = chain(imul) / chain(add)
        assert ratio == pytest.approx(round(ratio), rel=0.03)
        code, _, err = cyclescope.run("show", FORMS[0], "--store", store)
        assert code == 0, err
        return round(ratio)

    here = patiently(check)
    assert here >= 2
    with closing(NativeBackend(max(os.sched_getaffinity(0)))) as backend:
        assert backend.capabilities().real_time


def test_a_host_says_the_same_of_itself(cyclescope, ssh):
    found = []
    for target in ([], ["--target", f"exec:{cyclescope.runner}"], ["--target", "ssh://me@board"]):
        code, out, err = cyclescope.run("host", "--json", *target)
        assert code == 0, err
        data = json.loads(out)
        found.append([data[key] for key in ("cpu", "features", "pinned_to", "isa")])
        assert sorted(data["topology"]["usable"]) == sorted(os.sched_getaffinity(0))
    assert found[0] == found[1] == found[2]


def test_the_commands_take_a_target(cyclescope, ssh):
    commands = ("bench", "--hex", "480fafc3"), ("verify-isa", FORMS[0]), ("measure", FORMS[0], "--dry-run")
    for command in commands:
        code, out, err = cyclescope.run(*command, "--target", "ssh://board")
        assert code == 0 or NOISY in err, err
        assert out
    code, _, err = cyclescope.run("host", "--cpu", "4000", "--target", "ssh://board")
    assert code == 2
    assert "may not use CPU 4000" in err


def test_the_files_of_a_remote_machine_are_its_own(runner):
    backend, _ = open_backend(None, link_to(f"exec:{runner}"))
    with closing(backend):
        assert read_topology(read=backend.read).usable == read_topology().usable
        load, names, nothing = backend.read(["proc/loadavg", "sys/devices/system/cpu", "proc/nothing"])
    assert len(load.split()) == 5
    assert "cpu0" in names.split()
    assert nothing is None


# --- what breaks --------------------------------------------------------------------------------


HASTY = """
import sys
from cyclescope.backend import native
from cyclescope.cli.main import main
native.PAUSES = (0.0,)  # before a new connection
main(sys.argv[1:])
"""

# The link is lost as soon as a measurement is stored, however few answers that takes.
LOST = """
from pathlib import Path
from cyclescope.measure.store import Store
write = Store.write
def told(store, settled):
    write(store, settled)
    if store.count():
        Path({flag!r}).touch()
Store.write = told
"""


def rows(path):
    with closing(Store(path, readonly=True)) as store:
        return store.count()


def test_a_link_that_breaks_again_and_again(cyclescope, ssh, tmp_path):
    """One that carries no more than some answers at a time: the run gets through, with every measurement."""
    plain, shaky = tmp_path / "plain.sqlite", tmp_path / "shaky.sqlite"
    assert cyclescope.run("measure", *FORMS[:2], "--store", plain)[0] == 0
    ssh.set(cut={"run": [5_000, 15_000, 5_000, 15_000, 5_000]})
    code, out, err = cyclescope.run("measure", *FORMS[:2], "--store", shaky, "--target", "ssh://board")
    assert code == 0, err
    assert "the connection broke" in out
    assert ssh.calls.count("run") == 6
    with closing(Store(plain, readonly=True)) as one, closing(Store(shaky, readonly=True)) as two:
        first = {key for key in one.done() if not key[-1].endswith(("again", "filled", "unbroken"))}
        assert first <= two.done()


def test_a_link_that_is_lost_leaves_what_was_measured(cyclescope, ssh, tmp_path):
    """One clear line and exit code 4; the same command goes on from there."""
    store = tmp_path / "store.sqlite"
    arguments = ["measure", *FORMS, "--store", store, "--target", "ssh://board"]
    gone = {"refuse": "ssh: connect: No route to host", "refuse_from": {"run": 2, "look": 9, "copy": 9}}
    flag = tmp_path / "stored"
    line = [sys.executable, "-c", LOST.format(flag=str(flag)) + HASTY, *map(str, arguments)]
    ssh.set(cut_when=str(flag), **gone)
    done = subprocess.run(line, check=False, capture_output=True, text=True, env=cyclescope.environ)
    assert done.returncode == 4, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: board is not reached")
    assert "after 3 new connections" in last
    before = rows(store)
    assert f"what was measured is kept in {store}, the same command goes on from there" in last
    assert before
    ssh.set()
    code, _, err = cyclescope.run(*arguments)
    assert code == 0, err
    assert rows(store) > before
    with closing(Store(store, readonly=True)) as opened:
        assert len(opened.sessions()) >= 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_remote_runner(cyclescope, ssh, tmp_path, number):
    store = tmp_path / "store.sqlite"
    process = cyclescope.start("measure", "--store", store, "--target", "ssh://board")
    there = ssh.folder / "home"
    running = lambda: [pid for pid in pids() if str(there) in exe(pid)]  # noqa: E731
    assert until(lambda: len(running()) > 1, 30)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, err
    assert err.splitlines()[-1].startswith("error: interrupted")
    assert until(lambda: not running())


def pids():
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def exe(pid):
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


@pytest.mark.parametrize("ends", [socket.socketpair, multiprocessing.Pipe])
def test_a_runner_at_work_ends_when_nobody_listens(runner, ends):
    """sshd gives it a socket, others a pipe."""
    ours, its = socket.socketpair() if ends is socket.socketpair else multiprocessing.Pipe(duplex=False)
    process = subprocess.Popen([str(runner)], stdin=subprocess.PIPE, stdout=its.fileno())
    its.close()
    endless = struct.pack("<I4H", 0, 0, 1, 0, 2) + b"\xeb\xfe\0\0"
    batch = struct.pack("<4Id", 1, 6, 300, 1, 5000.0) + 60 * endless
    state = bytes(8) + default_state(0).packed
    process.stdin.write(FRAME.pack(MAGIC, STATE, len(state), 0) + state)
    process.stdin.write(FRAME.pack(MAGIC, MEASURE, len(batch), 60) + batch)
    process.stdin.flush()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    assert until(lambda: children.read_text().split())
    ours.close()
    assert process.wait(5) == 0
    process.stdin.close()


# --- runners of other machines ------------------------------------------------------------------


def makes_programs(compiler, folder):
    """Whether a compiler has the C library of what it compiles for."""
    source = folder / "empty.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("") < 0; }\n')
    line = (*compiler, "-static", source, "-o", folder / "empty")
    return not subprocess.run(line, check=False, capture_output=True).returncode


@pytest.mark.parametrize("isa", isa_names())
def test_building_a_runner(cyclescope, tmp_path, isa):
    path = tmp_path / "bin/runner"
    code, out, err = cyclescope.run("runner", "build", "--isa", isa, "-o", path)
    if code and not any(makes_programs(one, tmp_path) for one in compilers(isa)):
        pytest.skip(err)
    assert code == 0, err
    assert path.stat().st_mode & 0o111
    assert f"static runner for {isa}" in out
    assert "-static" in out
    if isa == host_isa():
        done = subprocess.run([path, "--version"], check=False, capture_output=True, text=True)
        assert done.stdout == f"cyclescope-runner protocol {VERSION}\n"
        code, out, err = cyclescope.run("bench", "--hex", "480fafc3", "--target", f"exec:{path}")
        assert code == 0 or NOISY in err, err


def test_a_compiler_for_another_machine(cyclescope, tmp_path):
    """It is told, and nothing is left."""
    other = next(isa for isa in isa_names() if isa != host_isa())
    path = tmp_path / "bin/runner"
    code, _, err = cyclescope.run("runner", "build", "--isa", other, "-o", path, "--cc", "cc")
    assert code == 4
    assert f"no runner for {other} could be built (cc: " in err
    code, _, err = cyclescope.run("runner", "build", "-o", path, "--cc", "no-such-compiler -x")
    assert code == 2
    assert "no such program" in err
    assert not list(path.parent.glob("*"))


def test_where_the_runner_is(cyclescope):
    assert cyclescope.run("runner", "path") == (0, f"{cyclescope.runner}\n", "")


EMULATORS = {
    "aarch64": ("qemu-aarch64-static", "-cpu max", "MADDXrrr", "207c019b", "200040f9"),  # mul; ldr x0, [x1]
    "riscv64": ("qemu-riscv64-static", "", "MUL", "3305b502", "03b50500"),  # mul; ld a0, 0(a1)
}


@pytest.mark.parametrize("isa", [isa for isa in EMULATORS if isa != host_isa()])
def test_another_instruction_set_under_an_emulator(cyclescope, tmp_path, isa):
    """From building the runner to results that say what they are, and that nothing is built of."""
    emulator, options, form, mul, load = EMULATORS[isa]
    if not shutil.which(emulator):
        pytest.skip(f"{emulator} is not installed")
    runner, store = tmp_path / "runner", tmp_path / "store.sqlite"
    code, _, err = cyclescope.run("runner", "build", "--isa", isa, "-o", runner)
    if code and not any(makes_programs(one, tmp_path) for one in compilers(isa)):
        pytest.skip(err)
    assert code == 0, err
    target = f"exec:{emulator} {options} {runner}"
    code, out, err = cyclescope.run("measure", form, "--store", store, "--target", target)
    assert code == 0, err
    assert "1 executed by this CPU" in out
    data = json.loads(cyclescope.run("show", form, "--json", "--store", store)[1])
    assert (data["isa"], data["emulated"], len(data["forms"])) == (isa, True, 1)
    assert data["forms"][0]["status"] == "ok"
    assert cyclescope.run("show", form, "--store", store)[1].startswith("emulated: no meaning")
    code, _, err = cyclescope.run("machines", "build", "--store", store)
    assert code == 1
    assert "was measured under emulation" in err
    code, out, err = cyclescope.run("bench", "--hex", mul, "--target", target)
    assert code == 0, err
    assert "emulated: no meaning" in out
    code, _, err = cyclescope.run("bench", "--hex", load, "--target", target)
    assert code == 1
    assert "SIGSEGV at 0x" in err


# --- a cluster ----------------------------------------------------------------------------------

SINFO = "#!/bin/sh\nprintf 'small\\nlarge\\nsmall\\n'\n"
SRUN = """\
#!/bin/sh
case " $* " in *" --unbuffered "*) ;; *) echo srun: frames would wait for a line break >&2; exit 1;; esac
env | grep -q ^SLURM_ && { echo srun: a step of the job, in its partition >&2; exit 1; }
echo "$1" >> ../asked
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""
SBATCH = """\
#!/bin/sh
# Runs at once what would wait for a node, the tasks of an array one after the other.
last=0
while [ "${1#--}" != "$1" ]; do
    case $1 in
    --array=1-*) last=${1#--array=1-} ;;
    --wrap) sh -c "$2"; exit ;;
    esac
    shift
done
task=0
while [ $task -lt "$last" ]; do
    task=$((task + 1))
    SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID=$task sh "$@" >&2 || exit
done
echo "7;cluster"
"""


def test_a_cluster(cyclescope, runner, tmp_path):
    """One node of every partition, which here all have the same CPU, and one store of them."""
    programs = tmp_path / "programs"
    programs.mkdir()
    command = f'#!/bin/sh\nexec {sys.executable} -m cyclescope "$@"\n'
    for name, text in {"sinfo": SINFO, "srun": SRUN, "sbatch": SBATCH, "cyclescope": command}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    shutil.copy(runner, programs / f"runner-{platform.machine()}")
    work = tmp_path / "work"
    work.mkdir()
    path = f"{programs}:{os.environ['PATH']}"
    environ = cyclescope.environ | {"PATH": path, "CYCLESCOPE_RUNNERS": str(programs)}
    script = [ROOT / "examples/slurm/submit.sh", FORMS[0], "NOP"]
    done = subprocess.run(["sh", *script], check=False, capture_output=True, text=True, cwd=work, env=environ)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "asked").read_text().split() == ["--partition=large", "--partition=small"]
    parts = [work / f"stores/{name}.sqlite" for name in ("large", "small")]
    (merged,) = (work / "machines").glob("*.sqlite")
    with closing(Store(merged, readonly=True)) as store:
        assert store.count() >= max(map(rows, parts))
        assert store.legality()[FORMS[0]] == "ok"
