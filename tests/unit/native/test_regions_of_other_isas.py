"""Programs with regions, for AArch64 and RISC-V: cross compilers, the command's words, qemu-user."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.processes import environment

PROGRAMS = Path(__file__).parents[2] / "hardware/programs"


@pytest.fixture(params=["aarch64", "riscv64"])
def other(request):
    return request.param


def needed(program, package):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"needs {program} (Debian, Ubuntu: apt install {package})")
    return path


@pytest.mark.parametrize(("source", "compiler"), [("chain.c", "gcc"), ("chain.cpp", "g++")])
def test_a_program_with_regions(other, source, compiler, tmp_path):
    needed(f"{other}-linux-gnu-gcc", f"gcc-{other}-linux-gnu")
    cross = needed(f"{other}-linux-gnu-{compiler}", f"{compiler.replace('gcc', 'gcc-')}-{other}-linux-gnu")
    own = environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    line = [sys.executable, "-m", "cyclescope", "counters", "--cflags", "--libs", "--isa", other]
    said = subprocess.run(line, check=True, capture_output=True, text=True, env=own).stdout
    program = tmp_path / "program"
    subprocess.run([cross, "-Wall", PROGRAMS / source, *shlex.split(said), "-o", program], check=True)
    qemu = needed(f"qemu-{other}", "qemu-user")
    place = f"/usr/{other}-linux-gnu"
    done = subprocess.run([qemu, "-L", place, program], check=True, capture_output=True, text=True)
    chain, empty = map(json.loads, done.stdout.splitlines())
    assert (chain["verdict"], empty["verdict"]) == ("emulated", "emulated")
    assert chain["entries"] == empty["entries"] == 500
    assert chain["median"] > empty["median"]
