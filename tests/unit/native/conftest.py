"""The runners of AArch64 and RISC-V under qemu-user, where it and a cross compiler are there; a fake core."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from cyclescope.backend.base import Effort
from cyclescope.backend.native import NativeBackend
from tests.support.code.emulated import AARCH64, NATIVE, RISCV64, build
from tests.support.code.sampled import Answer, Reading
from tests.support.code.traced import Runs, Tracer

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc")
TARGET = Effort().target  # of usual readings


@pytest.fixture(scope="session", params=[AARCH64, RISCV64], ids=lambda isa: isa.name)
def isa(request):
    return request.param


@pytest.fixture(scope="session")
def runner(isa, tmp_path_factory):
    """A script that runs the runner of an instruction set under qemu-user."""
    qemu = shutil.which(f"qemu-{isa.name}-static") or shutil.which(f"qemu-{isa.name}")
    if qemu is None:
        pytest.skip(f"needs qemu-{isa.name} (Debian, Ubuntu: apt install qemu-user-static)")
    if shutil.which(f"{isa.name}-linux-gnu-gcc") is None:
        pytest.skip(f"needs a cross compiler (Debian, Ubuntu: apt install gcc-{isa.name}-linux-gnu)")
    folder = tmp_path_factory.mktemp(isa.name)
    build(isa, [*NATIVE.glob("*.c"), *(NATIVE / isa.name).glob("*.c")], folder / "runner")
    script = folder / "emulated"
    script.write_text(f'#!/bin/sh\nexec {qemu} -cpu {isa.cpu} {folder}/runner "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def backend(runner):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CYCLESCOPE_RUNNER", str(runner))
        with closing(NativeBackend()) as opened:
            yield opened


@pytest.fixture(scope="module", params=[AARCH64, RISCV64], ids=lambda isa: isa.name)
def runs(request, tmp_path_factory):
    """Runs points of an instruction set on an emulator that tells what they do."""
    isa, folder = request.param.name, tmp_path_factory.mktemp("values")
    qemu = shutil.which(f"qemu-{isa}-static") or shutil.which(f"qemu-{isa}")
    if qemu is None or not shutil.which(f"{isa}-linux-gnu-gcc"):
        pytest.skip(f"needs qemu-{isa} and a cross compiler")
    files = (*NATIVE.glob("*.c"), *(NATIVE / isa).glob("*.c"))
    sources = [path for path in files if path.name != "limits.c"]
    build(request.param, [*sources, HERE / "keep_files.c"], folder / "runner")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as opened:
        emulators = []
        for floats in (False, True):
            tracer, script = Tracer(isa, folder, floats), folder / f"emulated {floats}"
            script.write_text(f'#!/bin/sh\n{tracer.command(qemu, folder / "runner")} "$@"\n')
            script.chmod(0o755)
            patch.setenv("CYCLESCOPE_RUNNER", str(script))
            emulators.append((tracer, opened.enter_context(closing(NativeBackend()))))
        yield Runs(isa, emulators)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The fake core."""
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("core") / "core"
    parts = ("sampling.c", "region.c", "clock.c", "canary.c", "clusters.c")
    sources = [HERE / "fake_core.c", *(NATIVE / part for part in parts)]
    options = ["-O2", "-w", "-I", str(NATIVE), "-Wl,--wrap=clock_gettime", "-no-pie"]
    subprocess.run([COMPILER, *options, *map(str, sources), "-lm", "-o", str(program)], check=True)
    return program


@pytest.fixture(scope="session")
def core(program):
    """Measures bodies of a fake core; options are those of its environment."""

    def run(*kernels, rounds=4, want=6, target=TARGET, **options):
        words = [str(word) for body, flags in kernels for word in (body, flags)]
        environment = os.environ | {name: str(value) for name, value in options.items()}
        done = subprocess.run(
            [program, str(rounds), str(want), str(target), *words],
            check=True, capture_output=True, text=True, env=environment, timeout=60,
        )  # fmt: skip
        first, *lines, last = (line.split() for line in done.stdout.splitlines())
        readings = [
            Reading(*(float(w) if n in (2, 9) else int(w) for n, w in enumerate(line))) for line in lines
        ]
        return Answer(*map(float, first), readings, float(last[0]), *map(int, last[1:]))

    return run
