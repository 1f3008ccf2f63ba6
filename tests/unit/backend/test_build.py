"""Building runners, with compilers that are scripts: which one is tried, what is kept, what is said."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cyclescope.backend import build as building
from cyclescope.backend.build import build, compilers, runner_for, source_hash, sources
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.host.uname import host_isa

ROOT = Path(__file__).parents[3]
OTHER = next(isa for isa in ("aarch64", "riscv64") if isa != host_isa())
GCC = f"{OTHER}-linux-gnu-gcc"
ELF = {"x86-64": 62, "aarch64": 183, "riscv64": 243}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Make compilers, the only programs there: they write an ELF file for an instruction set, or fail."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CYCLESCOPE_RUNNER", raising=False)
    monkeypatch.setattr(building, "find_spec", lambda name: None)

    def make(name, isa="", said=""):
        head = b"\x7fELF\x02\x01\x01" + bytes(11) + ELF.get(isa, 0).to_bytes(2, "little")
        octal = "".join(f"\\{byte:03o}" for byte in head)
        fails = f"echo {shlex.quote(said)} >&2; exit 1\n" if said else ""
        writes = f"for o; do :; done\nprintf '{octal}' > \"$o\"\n"
        script = f"#!/bin/sh\n{fails}{writes}echo \"$0 $*\" >> '{folder}/log'\n"
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
        return folder / name

    return make


def test_every_source_of_the_package_is_built():
    """The build of the package names its sources; this one takes what is there."""
    text = (ROOT / "meson.build").read_text()
    runner = text[text.index("'runner',\n") : text.index("core = ")]
    named = set(re.findall(r"native / '(\w+\.c)'", runner))
    for isa in ELF:
        found = sources(isa)
        own = {path.name for path in found if path.parent.name != "native"}
        assert {path.name for path in found} - own == named
        assert own == {"arch.c", "machine.c", "marks.c"}


def test_the_first_compiler_that_can(programs, tmp_path):
    programs(GCC, said=f"{GCC}: fatal error: stdio.h: No such file")
    programs("clang", "x86-64" if OTHER != "x86-64" else "riscv64")
    programs("zig", OTHER)
    assert [command[0] for command in compilers(OTHER)] == [GCC, "clang", "zig"]
    made = build(OTHER, tmp_path / "bin/runner")
    assert made.command[:4] == ("zig", "cc", "-target", f"{OTHER}-linux-musl")
    assert "-static-pie" in made.command
    assert not made.fixed
    assert [path.name for path in (tmp_path / "bin").iterdir()] == ["runner"]


def test_a_c_library_without_static_pie(programs, tmp_path):
    """The runner is at fixed addresses then, which is said."""
    path = programs("mine", OTHER)
    refuses = 'case " $* " in *" -static-pie "*) echo "ld: cannot find rcrt1.o" >&2; exit 1;; esac'
    path.write_text(path.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{refuses}\n"))
    made = build(OTHER, tmp_path / "runner", str(path))
    assert made.fixed
    assert "-static" in made.command


def test_no_compiler_can(programs, tmp_path):
    programs(GCC, said=f"{GCC}: fatal error: stdio.h: No such file")
    programs("clang", "x86-64" if OTHER != "x86-64" else "riscv64")
    with pytest.raises(BackendUnavailable) as error:
        build(OTHER, tmp_path / "runner")
    said = str(error.value)
    assert f"{GCC}: {GCC}: fatal error: stdio.h" in said
    assert "clang --target" in said
    assert "it builds for x86-64" in said
    assert f"apt install gcc-{OTHER}-linux-gnu" in said
    assert not list(tmp_path.glob("*runner*"))


def test_no_compiler_at_all(programs, tmp_path):
    for isa, package in ((OTHER, f"gcc-{OTHER}-linux-gnu libc6-dev-"), (host_isa(), "gcc libc6-dev")):
        with pytest.raises(BackendUnavailable, match=rf"{isa} could be built: no compiler: .*{package}"):
            build(isa, tmp_path / "runner")


def test_a_compiler_that_was_asked_for(programs, tmp_path):
    path = programs("mine", OTHER)
    made = build(OTHER, tmp_path / "runner", f"'{path}' -march=native")
    assert made.command[:2] == (str(path), "-march=native")
    for wrong in ("nosuch -x", "'unclosed"):
        with pytest.raises(UsageError, match=r"no such program|no command"):
            build(OTHER, tmp_path / "runner", wrong)


def test_the_compiler_of_the_environment_comes_first(programs, monkeypatch):
    for name in ("mine", "cc", "gcc"):
        programs(name, host_isa())
    monkeypatch.setenv("CC", "mine -O3")
    assert list(compilers(host_isa())) == [("mine", "-O3"), ("cc",), ("gcc",)]


def test_a_runner_is_built_once(programs, tmp_path, monkeypatch):
    programs(GCC, OTHER)
    first = runner_for(OTHER)
    assert runner_for(OTHER) == first
    assert first.is_relative_to(tmp_path / "cache")
    log = tmp_path / "programs/log"
    assert len(log.read_text().splitlines()) == 1
    monkeypatch.setattr(building, "source_hash", lambda isa: "other")
    assert runner_for(OTHER) != first
    assert len(log.read_text().splitlines()) == 2


def test_a_runner_that_is_given(programs, tmp_path, monkeypatch):
    """The environment's, where it is for the instruction set."""
    path = tmp_path / "mine"
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + ELF[OTHER].to_bytes(2, "little"))
    path.chmod(0o755)
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(path))
    assert runner_for(OTHER) == path


def test_sources_tell_runners_apart(tmp_path, monkeypatch):
    folder = tmp_path / "native"
    for name, text in {"runner.c": "a", "arch.h": "b", "riscv64/arch.c": "c", "aarch64/arch.c": "d"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(building, "_source_folder", lambda: folder)
    known = {source_hash("riscv64")}
    for name in ("runner.c", "arch.h", "riscv64/arch.c"):
        (folder / name).write_text("changed")
        known.add(source_hash("riscv64"))
    assert len(known) == 4
    (folder / "aarch64/arch.c").write_text("changed")
    assert source_hash("riscv64") in known
    with pytest.raises(BackendUnavailable, match="no runner for it") as found:
        sources("x86-64")
    assert "reinstall" not in found.value.remedy, "no installation has one"


def test_an_installation_without_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "_source_folder", lambda: tmp_path)
    with pytest.raises(BackendUnavailable, match="no sources") as found:
        sources("x86-64")
    assert "reinstall" in found.value.remedy


def test_a_file_that_cannot_be_written(programs, tmp_path):
    programs(GCC, OTHER)
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendUnavailable, match="cannot be written"):
        build(OTHER, tmp_path / "file/runner")


def test_what_a_compiler_fails_of_is_said_not_where_it_came_from(programs, tmp_path):
    why = "b.h:26:10: fatal error: 'stdio.h' file not found"
    programs(GCC, said=f"In file included from a.c:8:\n{why}\n#include <stdio.h>")
    with pytest.raises(BackendUnavailable) as raised:
        build(OTHER, tmp_path / "runner")
    assert f"({GCC}: {why})" in str(raised.value)
