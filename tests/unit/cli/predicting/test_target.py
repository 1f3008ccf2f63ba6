"""Other machines than this one: which instructions they have, and emulators, whose cycles mean nothing."""

from __future__ import annotations

import json

import msgspec
import pytest

from cyclescope.measure.store import Store
from tests.support.files.stores import spoil
from tests.support.made.machine import FORMS, IDENTITY, Machine

USAGE, FAILURE, NO_BACKEND = 2, 1, 4


class Emulated(Machine):
    """The simulated machine, of another instruction set or played by an emulator."""

    isa = "x86-64"

    def capabilities(self):
        return msgspec.structs.replace(super().capabilities(), isa=self.isa, real_time=False, emulated=True)


@pytest.fixture
def emulated(monkeypatch):
    """Let the commands find the emulated machine; how its link is asked for."""
    asked = []

    def open_backend(cpu=None, link=None):
        asked.append(link)
        return Emulated(), msgspec.structs.replace(IDENTITY, emulated=True)

    monkeypatch.setattr("cyclescope.infer.api.open_backend", open_backend)
    return asked


@pytest.fixture
def filled(cyclescope, emulated, tmp_path):
    path = tmp_path / "emulated.sqlite"
    done = cyclescope("measure", FORMS[0], "--target", "exec:qemu-x86_64 runner", "--store", path)
    assert done.code == 0
    assert "emulated: no meaning" in done.out
    return path


def test_a_store_of_an_emulator_says_so(cyclescope, filled):
    shown = cyclescope("show", FORMS[0], "--store", filled).out
    assert shown.startswith("emulated: no meaning")
    data = json.loads(cyclescope("show", FORMS[0], "--json", "--store", filled).out)
    assert data["emulated"] is True
    assert data["note"].startswith("emulated: no meaning")
    assert data["machine"] == f"{IDENTITY.machine} emulated"
    info = cyclescope("store", "info", "--store", filled).out
    assert cyclescope("store", "info", filled).out == info
    assert cyclescope("store", "info", filled, "--store", filled).code == 2
    assert ", emulated" in info
    assert "instruction set: x86-64" in info


def test_a_store_of_a_machine_does_not(cyclescope, store):
    assert "emulated" not in cyclescope("show", FORMS[0], "--store", store).out
    data = json.loads(cyclescope("show", FORMS[0], "--json", "--store", store).out)
    assert data["emulated"] is False
    assert "note" not in data


def test_no_model_is_built_of_an_emulator(cyclescope, filled, monkeypatch, tmp_path):
    done = cyclescope("machines", "build", "--store", filled)
    assert done.code == FAILURE
    assert "was measured under emulation" in done.error
    path = tmp_path / "data/cyclescope" / f"{IDENTITY.machine.replace(' ', '-')}-emulated.sqlite"
    path.parent.mkdir(parents=True)
    filled.rename(path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    host = msgspec.structs.replace(IDENTITY, emulated=True)
    monkeypatch.setattr("cyclescope.infer.host_model.this_machine", lambda: host)
    done = cyclescope("machines", "show", "native")
    assert done.code == FAILURE
    assert "was measured under emulation" in done.error


def test_an_emulator_and_a_machine_have_no_store_in_common(cyclescope, filled, store, machine):
    for arguments in (
        ["measure", FORMS[0], "--store", filled],
        ["store", "merge", filled, store, "-o", filled.with_name("both.sqlite")],
    ):
        done = cyclescope(*arguments)
        assert done.code == FAILURE
        assert f"{IDENTITY.machine} emulated" in done.error


def test_a_bench_of_an_emulator_says_so(cyclescope, emulated):
    assert cyclescope("bench", "--hex", "480fafc3").out.splitlines()[-1].startswith("emulated: no meaning")
    for form in ((), ("--csv",), ("--markdown",), ("--json",)):
        done = cyclescope("bench", "--asm", "nop", "--asm", "imul rax, rbx", *form)
        assert done.code == 0
        assert "emulated" in done.out
        assert ".00" not in done.out


def test_a_target_is_handed_on(cyclescope, emulated, monkeypatch, tmp_path):
    monkeypatch.setattr("cyclescope.measure.survey._PAUSE", 0)
    for command in (
        ["host"],
        ["bench", "--hex", "90"],
        ["measure", FORMS[0], "--store", tmp_path / "s.sqlite"],
    ):
        assert cyclescope(*command, "--target", "ssh://me@board").code == 0
        assert cyclescope(*command).code == 0
    assert [link.name for link in emulated] == ["the runner on board", "the runner"] * 3
    assert [link.remote for link in emulated] == [True, False] * 3


@pytest.mark.parametrize("command", [["host"], ["bench", "--hex", "90"], ["measure"], ["verify-isa"]])
def test_a_target_that_is_none(cyclescope, emulated, command):
    done = cyclescope(*command, "--target", "board")
    assert done.code == USAGE
    assert "ssh://[user@]host[:port]" in done.error
    assert not emulated


def test_a_target_that_cannot_be_reached(cyclescope):
    done = cyclescope("measure", FORMS[0], "--target", "exec:/nowhere/runner")
    assert done.code == NO_BACKEND
    assert "no such program" in done.error


# --- other instruction sets ---------------------------------------------------------------------


def test_a_store_of_another_instruction_set_shows_its_forms(cyclescope, store):
    spoil(store, "UPDATE meta SET value = 'riscv64' WHERE key = 'isa'")
    assert cyclescope("show", "FADD_D", "--store", store).out.startswith("FADD_D ")
    assert "FADD_D" not in cyclescope("show", "imul", "--store", store).err
    assert json.loads(cyclescope("show", "FADD_D", "--json", "--store", store).out)["isa"] == "riscv64"


def test_code_of_another_instruction_set(cyclescope, emulated, monkeypatch, store):
    monkeypatch.setattr(Emulated, "isa", "aarch64")
    for arguments, said in (
        (["--hex", "90"], "no whole instructions of aarch64"),
        (["--asm", "add x28, x0, x1"], "x28 counts"),
        (["--rerun", "1", "--store", store], "the code is x86-64, the machine executes aarch64"),
    ):
        done = cyclescope("bench", *arguments)
        assert done.code == USAGE
        assert said in done.error


def test_forms_are_those_of_the_target(cyclescope, emulated, monkeypatch, tmp_path):
    monkeypatch.setattr(Emulated, "isa", "aarch64")
    path = tmp_path / "s.sqlite"
    done = cyclescope("measure", "imul", "--target", "ssh://board", "--store", path)
    assert done.code == USAGE
    assert "'imul'" in done.error
    assert not path.exists()


def test_where_to_merge_to(cyclescope, store, tmp_path):
    for options in ([], ["-o", tmp_path / "a", "-d", tmp_path / "b"]):
        done = cyclescope("store", "merge", store, *options)
        assert done.code == USAGE
        assert "--output, --directory and --table" in done.error
    done = cyclescope("store", "merge", store, "-d", tmp_path / "b")
    (merged,) = (tmp_path / "b").iterdir()
    assert str(merged) in done.out
    assert Store(merged, readonly=True).close() is None
