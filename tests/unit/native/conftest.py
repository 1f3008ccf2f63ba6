"""The runners of AArch64 and RISC-V under qemu-user, where it and a cross compiler are installed."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest

from cyclescope.backend.native import NativeBackend
from tests.support.code.emulated import AARCH64, NATIVE, RISCV64, build


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
