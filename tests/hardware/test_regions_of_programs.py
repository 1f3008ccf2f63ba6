"""Regions of C, C++ and Python programs, beside what the same code takes by itself."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cyclescope.host.uname import host_isa
from tests.support.programs.processes import NOISY, environment, patiently

pytestmark = pytest.mark.hardware

PROGRAMS = Path(__file__).with_name("programs")
COMPILERS = {"chain.c": "cc", "chain.cpp": "c++"}
MULTIPLICATION = {"x86-64": "imul rax, rax", "aarch64": "mul x0, x0, x0", "riscv64": "mul a0, a0, a0"}
CHAINS = """#include "chain.h"
long chains(long x, int n)
{
    while (n--)
        x = chain(x);
    return x;
}
"""
LENGTH = 1000  # multiplications in the chain


def compiled(name, folder, *flags):
    compiler = shutil.which(COMPILERS[name])
    if compiler is None:
        pytest.skip(f"needs a compiler: {COMPILERS[name]}")
    said = run(sys.executable, "-m", "cyclescope", "counters", "--cflags", "--libs")
    program = folder / "program"
    run(compiler, "-O2", *flags, PROGRAMS / name, *shlex.split(said), "-o", program)
    return program


def run(*words):
    done = subprocess.run([*map(str, words)], check=False, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


def results(*words):
    return [json.loads(line) for line in run(*words).splitlines()]


def latency(cyclescope):
    """Core cycles of a multiplication that waits for another one, as `bench` has them."""
    code, out, err = cyclescope.run("bench", "--json", "--asm", MULTIPLICATION[host_isa()])
    assert code == 0 or NOISY in err, err
    return json.loads(out)["cycles"]


def check(found, wanted):
    """Within its error and 5 %; numbers of an emulator or a core that was never ours say so themselves."""
    assert found["verdict"] in ("ok", "disturbed")
    assert found["median"] == pytest.approx(wanted, rel=0.05, abs=found["error"])
    assert found["error"] < 0.1 * wanted


@pytest.mark.parametrize("name", COMPILERS)
def test_a_chain_takes_as_often_what_one_takes(cyclescope, tmp_path, name):
    program = compiled(name, tmp_path)

    def prove():
        chain, empty = results(program)
        wanted = LENGTH * latency(cyclescope)
        check(chain, wanted)
        assert abs(empty["median"]) <= max(empty["error"], 0.01 * wanted)

    patiently(prove)


def test_a_region_of_python(cyclescope, tmp_path):
    source, library = tmp_path / "chains.c", tmp_path / "chains.so"
    source.write_text(CHAINS)
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    run("cc", "-O2", "-shared", "-fPIC", "-I", PROGRAMS, source, "-o", library)

    def prove():
        chain, call, empty = results(sys.executable, PROGRAMS / "chain.py", library)
        wanted = 100 * LENGTH * latency(cyclescope)
        check({**chain, "median": chain["median"] - call["median"]}, wanted)
        assert abs(empty["median"]) <= max(empty["error"], 0.001 * wanted)

    patiently(prove)


PAGE = Path(__file__).parents[2] / "docs/howto/regions.md"


def pieces(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("language", "compiler", "number"), [("c", "cc", 0), ("c", "cc", 1), ("cpp", "c++", 0)]
)
def test_programs_of_the_page(tmp_path, language, compiler, number):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs a compiler: {compiler}")
    source = tmp_path / f"program.{language}"
    source.write_text(pieces(language)[number])
    said = shlex.split(run(sys.executable, "-m", "cyclescope", "counters", "--cflags", "--libs"))
    run(compiler, "-O2", "-Wall", "-Wextra", "-Werror", source, *said, "-o", tmp_path / "program")
    assert " core cycles (median of " in run(tmp_path / "program")


def test_the_python_program_of_the_page(tmp_path):
    (text,) = pieces("python")
    (tmp_path / "program.py").write_text(text)
    first, second = run(sys.executable, tmp_path / "program.py").splitlines()
    assert first.startswith("sum: ")
    assert len(second.split()) == 2
