"""Wrong requests: one clear line, the right exit code, nothing lost."""

from __future__ import annotations

import errno
import os
import sqlite3

import pytest

from cyclescope.host.topology import Topology
from tests.support.made.machine import simulate

USAGE, FAILURE, UNSUPPORTED, NO_BACKEND = 2, 1, 3, 4


# --- patterns and options -----------------------------------------------------------------------


@pytest.mark.parametrize("command", ["measure", "show", "forms", "verify-isa"])
def test_an_unknown_pattern_is_met_with_a_suggestion(cyclescope, machine, store, command):
    option = ["--store", store] if command in ("measure", "show") else []
    done = cyclescope(command, "imuli", *option)
    assert done.code == USAGE
    assert "'imuli'" in done.error
    assert "did you mean IMUL" in done.error
    assert not done.out


@pytest.mark.parametrize("command", ["measure", "show", "forms", "verify-isa"])
@pytest.mark.parametrize("pattern", ["", "  "])
def test_an_empty_pattern_is_no_wish_for_every_form(cyclescope, machine, command, pattern):
    done = cyclescope(command, "imul", pattern)
    assert done.code == USAGE
    assert "empty pattern" in done.error
    assert not machine


def test_an_unknown_feature_is_met_with_a_suggestion(cyclescope):
    assert "did you mean AVX" in cyclescope("forms", "isa:AVX9").error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["measure", "--what", "latncy"], "choose from throughput, latency"),
        (["measure", "--what", ","], "choose from throughput, latency"),
        (["measure", "--cpu", "one"], "--cpu"),
        (["measure", "--cpu", "-1"], "x>=0"),
        (["measure", "--time-budget", "soon"], "10m"),
        (["measure", "--time-budget", "0"], "10m"),
        (["measure", "--time-budget", "-5s"], "10m"),
        (["measure", "--store", os.sep], "is a directory"),
        (["measure", "--stoer", "x"], "--store"),
        (["mesure"], "did you mean 'measure'"),
        (["nonsense"], "nonsense"),
        (["show"], "give one"),
        (["forms", "--isa", "z80"], "x86-64"),
        (["bench"], "nothing to time"),
        (["bench", "--asm", "nop", "--hex", "90"], "more than one thing"),
        (["bench", "--rerun", str(2**63)], "--rerun"),
        (["bench", "--rerun", "0"], "--rerun"),
        (["bench", "--asm", ""], "no instruction"),
        (["bench", "--asm", "# nothing"], "no instruction"),
        (["bench", "--hex", ""], "no instruction"),
        (["bench", "--hex", "9"], "hexadecimal"),
        (["bench", "--hex", "no"], "hexadecimal"),
        (["bench", "--asm", "mov r15d, 1"], "use another register, or --loop 0"),
        (["bench", "--hex", "90", "--unroll", "0"], "--unroll"),
        (["bench", "--hex", "90" * 700, "--unroll", "100"], "unroll less"),
        (["store", "merge"], "SOURCES"),
        (["store", "mrege"], "mrege"),
    ],
)
def test_a_wrong_request_is_one_line(cyclescope, machine, arguments, said):
    done = cyclescope(*arguments)
    assert done.code == USAGE
    assert said in done.error
    assert not done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench", "--hex"], ["bench", "--asm"], ["analyze"], ["frob"], ["bench", "--frob"],
        ["show", "--store"], ["host", "--target"], ["compare", "a"],
        ["export", "a", "-o", "b.csv", "--format"],
    ],
)  # fmt: skip
def test_nonsense_of_any_length_is_met_with_a_line_that_one_can_read(cyclescope, machine, arguments):
    done = cyclescope(*arguments[:-1], arguments[-1], "x" * 100_000)
    assert done.code
    assert len(done.err) < 2000
    done = cyclescope(*arguments[:-1], f"{arguments[-1]}{'x' * 100_000}")
    assert len(done.err) < 2000


@pytest.mark.parametrize("cpu", [2, 4095, 10**12])
def test_a_cpu_that_is_not_ours(cyclescope, monkeypatch, cpu):
    """Whether it does not exist or the affinity mask or a cgroup keeps us from it."""
    ours = Topology((0, 1), 4, {}, 0.0, "", None)
    monkeypatch.setattr("cyclescope.infer.api.read_topology", lambda: ours)
    done = cyclescope("host", "--cpu", cpu)
    assert done.code == USAGE
    assert f"CPU {cpu}" in done.error
    assert "choose from 0, 1" in done.error


def test_a_command_without_a_subcommand_shows_its_help(cyclescope):
    done = cyclescope()
    assert done.code == USAGE
    assert "Commands:" in done.err
    assert not done.err.startswith("error")


# --- what the CPU does not execute --------------------------------------------------------------


def test_forms_this_cpu_does_not_execute(cyclescope, machine, tmp_path):
    done = cyclescope("measure", "isa:XOP", "--store", tmp_path / "s.sqlite")
    assert done.code == UNSUPPORTED
    assert "lacks XOP" in done.error
    assert "0 executed by this CPU" in done.out
    assert [backend.closed for backend in machine] == [True]


def test_one_form_that_executes_is_enough(cyclescope, machine, tmp_path):
    done = cyclescope("measure", "VPROTB*", "NOP", "--store", tmp_path / "s.sqlite")
    assert done.code == 0


def test_a_card_says_which_extension_is_missing(cyclescope, store):
    done = cyclescope("show", "VADDPH (XMM, XMM, XMM)", "--store", store)
    assert "not executed by this CPU: SIGILL: this CPU lacks AVX512_FP16" in done.out


def test_a_store_without_features_still_shows_the_signal(cyclescope, store):
    with sqlite3.connect(store) as db:
        db.execute("UPDATE session SET conditions = '{}'")
    db.close()
    done = cyclescope("show", "VADDPH (XMM, XMM, XMM)", "--store", store)
    assert "not executed by this CPU: SIGILL\n" in done.out


def test_bench_of_code_that_faults(cyclescope, monkeypatch):
    simulate(monkeypatch, faulting=("DIV_RM64",))
    done = cyclescope("bench", "--hex", "48f7f1")
    assert done.code == FAILURE
    assert "SIGFPE" in done.error
    assert "--init" in done.error


def test_bench_of_code_this_cpu_lacks(cyclescope, machine):
    done = cyclescope("bench", "--hex", "62f5741858c2")  # vaddph with rounding
    assert done.code == UNSUPPORTED
    assert "SIGILL" in done.error


def test_bench_of_bad_assembly(cyclescope, machine):
    done = cyclescope("bench", "--asm", "nop; imull rax rbx")
    assert done.code == UNSUPPORTED
    assert "'imull rax rbx' cannot be assembled" in done.error


def test_bench_without_an_assembler(cyclescope, machine, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cyclescope("bench", "--asm", "nop")
    assert done.code == NO_BACKEND
    assert "binutils" in done.error
    assert "--hex" in done.error


def test_bench_of_a_file_that_cannot_be_assembled(cyclescope, machine, tmp_path):
    path = tmp_path / "included.s"
    path.write_text("nonsense\n")
    done = cyclescope("bench", "--asm", f'nop; .include "{path}"')
    assert done.code == UNSUPPORTED
    assert f"{path}:1: " in done.error
    assert "nonsense" in done.error


def test_bench_where_no_program_can_be_started(cyclescope, machine, monkeypatch):
    def scarce(*args, **more):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("cyclescope.isa.assembly.limits.subprocess.Popen", scarce)
    done = cyclescope("bench", "--asm", "nop")
    assert done.code == NO_BACKEND
    assert "cannot be started (Resource temporarily unavailable)" in done.error


# --- the runner ---------------------------------------------------------------------------------


def test_a_missing_runner(cyclescope, monkeypatch, tmp_path):
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(tmp_path / "none"))
    done = cyclescope("measure", "imul", "--store", tmp_path / "s")
    assert done.code == NO_BACKEND
    assert "pip install" in done.error
    assert not (tmp_path / "s").exists()


def test_a_backend_that_dies_keeps_what_was_written(cyclescope, machine, monkeypatch, tmp_path):
    path = tmp_path / "s.sqlite"
    assert cyclescope("measure", "NOP", "--store", path).code == 0
    before = rows(path)
    simulate(monkeypatch, dies_after=1)
    done = cyclescope("measure", "imul", "--store", path)
    assert done.code == NO_BACKEND
    assert "gone" in done.error
    assert before <= rows(path)


def rows(path):
    with sqlite3.connect(path) as db:
        found = set(db.execute("SELECT form, variant, cycles FROM measurement"))
    db.close()
    return found


# --- the world around ---------------------------------------------------------------------------


def test_no_home_directory(cyclescope, machine, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("cyclescope.infer.api.Path.home", nowhere)
    for command in ("measure", "show"):
        done = cyclescope(command, "imul")
        assert done.code == FAILURE
        assert "--store" in done.error


def test_no_store_yet(cyclescope, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    done = cyclescope("show", "imul")
    assert done.code == FAILURE
    assert "cyclescope measure" in done.error


def test_several_stores_have_to_be_told_apart(cyclescope, monkeypatch, tmp_path):
    (tmp_path / "cyclescope").mkdir()
    for name in ("a.sqlite", "b.sqlite"):
        (tmp_path / "cyclescope" / name).touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert "a.sqlite, b.sqlite" in cyclescope("show", "imul").error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (OSError(errno.EACCES, "Permission denied", "a file"), "a file: Permission denied"),
    ],
)
def test_a_refusal_of_the_system_is_not_blamed_on_the_output(cyclescope, monkeypatch, error, said):
    def refused(isa):
        raise error

    monkeypatch.setattr("cyclescope.isa.table.load_table", refused)
    done = cyclescope("forms")
    assert (done.code, done.error) == (FAILURE, said)


def test_an_error_nobody_thought_of(cyclescope, monkeypatch):
    def broken(isa):
        raise KeyError("surprise")

    monkeypatch.setattr("cyclescope.isa.table.load_table", broken)
    done = cyclescope("forms")
    assert done.code == FAILURE
    assert done.err == "error: internal error: KeyError: 'surprise' (--debug shows where)\n"


def test_debug_shows_where(monkeypatch):
    from cyclescope.cli.main import main
    from cyclescope.errors import UsageError

    with pytest.raises(UsageError):
        main(["--debug", "forms", "imuli"])


def test_a_store_with_nothing_in_it(cyclescope, machine, tmp_path, store):
    done = cyclescope("show", "CPUID", "--store", store)
    assert done.code == 0
    assert 'not measured yet: cyclescope measure "CPUID' in done.out
