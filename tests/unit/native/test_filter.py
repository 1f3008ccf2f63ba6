"""What the filter of system calls answers, on each instruction set: its program is interpreted here."""

from __future__ import annotations

import platform
import re
import shutil
import struct
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.backend.base import Depth, Effort
from cyclescope.backend.native import NativeBackend
from tests.support.code.emulated import AARCH64, NATIVE, RISCV64, build, kernel

ALLOW, TRAP = 0x7FFF0000, 0x00030000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ARCHITECTURES = {
    "x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7, "arm": 0x40000028,
    "riscv64": 0xC00000F3, "riscv32": 0x400000F3, "none": 0, "all": 0xFFFFFFFF,
}  # fmt: skip
X32, ANYWHERE = 0x40000000, 0x60001000
NAMES = {"rt_sigreturn", "exit_group", "clock_gettime"}
FLUSH = "Unknown syscall 259"  # riscv_flush_icache, which this qemu does not know


class Calls(NamedTuple):
    """Numbers of the calls that are allowed, with the values of the argument that counts."""

    rt_sigreturn: int
    exit_group: int
    clock_gettime: int
    flush_icache: int = -1

    def allows(self, number: int, arguments: tuple[int, ...]) -> bool:
        if number == self.exit_group:
            return arguments[0] in (0, 98, 99)
        if number == self.clock_gettime:
            return arguments[0] == 1  # CLOCK_MONOTONIC
        if number == self.flush_icache:
            return arguments[2] == 0
        return number == self.rt_sigreturn


CALLS = {
    "x86_64": Calls(15, 231, 228),
    "aarch64": Calls(139, 94, 113),
    "riscv64": Calls(139, 94, 113, 259),
}


@pytest.fixture(scope="module", params=CALLS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def program(name, tmp_path_factory):
    """The instructions of the filter as the compiler of an instruction set made them."""
    folder = tmp_path_factory.mktemp(name)
    made, sources = folder / "show", [Path(__file__).with_name("show_filter.c"), NATIVE / "filter.c"]
    compiler = "cc" if name == platform.machine() else f"{name}-linux-gnu-gcc"
    qemu = "" if name == platform.machine() else f"qemu-{name}"
    for tool in filter(None, (compiler, qemu)):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}")
    line = [compiler, "-Wall", "-Werror", "-static", f"-I{NATIVE}", *map(str, sources), "-o", str(made)]
    subprocess.run(line, check=True)
    shown = subprocess.run([*filter(None, [qemu]), made], check=True, capture_output=True, text=True).stdout
    return [tuple(map(int, row.split())) for row in shown.splitlines()]


def answer(program, architecture, number, arguments=(), pointer=ANYWHERE):
    """What the filter says of a call, as Linux interprets it: see linux/seccomp.h."""
    arguments = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<II7Q", number, architecture, pointer, *arguments)
    place = word = 0
    while True:
        code, true, false, k = program[place]
        place += 1
        if code == RETURN:
            return k
        if code == LOAD:
            (word,) = struct.unpack_from("<I", data, k)
        else:
            assert code == EQUAL
            place += true if word == k else false


def test_only_the_short_list_is_allowed(program, name):
    """Of all numbers that may be calls, with the arguments that workers use."""
    calls, own = CALLS[name], ARCHITECTURES[name]
    for number in [*range(2048), *range(X32, X32 + 2048), *range((1 << 32) - 64, 1 << 32)]:
        for first in (0, 1, 98, 99):
            wanted = ALLOW if calls.allows(number, (first, 0, 0)) else TRAP
            assert answer(program, own, number, (first,)) == wanted, number


def test_other_architectures_have_no_calls(program, name):
    for other, word in ARCHITECTURES.items():
        if other != name:
            for number in (*CALLS[name], *range(512)):
                assert answer(program, word, number & 0xFFFFFFFF, (0,)) == TRAP


WORDS = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.builds(lambda low, high: low | high << 32, st.sampled_from((0, 1, 98, 99)), st.integers(0, 3)),
)


@pytest.mark.parametrize("which", range(4))
@given(arguments=st.tuples(*[WORDS] * 6), pointer=WORDS)
def test_arguments_are_compared_exactly(program, name, which, arguments, pointer):
    """Both halves; where the call comes from changes nothing."""
    calls, own = CALLS[name], ARCHITECTURES[name]
    number = calls[which] & 0xFFFFFFFF
    wanted = ALLOW if calls.allows(number, arguments) else TRAP
    assert answer(program, own, number, arguments, pointer) == wanted


def test_the_program_is_one_that_linux_takes(program):
    """Jumps lead forward to an instruction, the last one ends it, loads are aligned and inside."""
    for place, (code, true, false, k) in enumerate(program):
        assert code in (LOAD, EQUAL, RETURN)
        assert code != LOAD or (k % 4 == 0 and k < 64)
        assert max(true, false) + place + 1 < len(program) or code == RETURN
    assert program[-1] == (RETURN, 0, 0, TRAP)


# --- what workers ask for -----------------------------------------------------------------------


@pytest.fixture(scope="module", params=[AARCH64, RISCV64], ids=lambda isa: isa.name)
def traced(request, tmp_path_factory):
    """A runner under an emulator that writes down the calls of each process; the file."""
    isa, folder = request.param, tmp_path_factory.mktemp("traced")
    qemu = shutil.which(f"qemu-{isa.name}")
    if not qemu or not shutil.which(f"{isa.name}-linux-gnu-gcc"):
        pytest.skip(f"needs qemu-{isa.name} and a cross compiler")
    files = (*NATIVE.glob("*.c"), *(NATIVE / isa.name).glob("*.c"))
    sources = [path for path in files if path.name != "limits.c"]
    build(isa, [*sources, Path(__file__).with_name("keep_files.c")], folder / "runner")
    script = folder / "emulated"
    log = folder / "log"  # a file: what processes write to standard error at the same time is mixed
    script.write_text(f"#!/bin/sh\nexec {qemu} -d strace -D {log} -cpu {isa.cpu} {folder}/runner\n")
    script.chmod(0o755)
    return isa, script, log


def _behind_the_filter(calls):
    """What comes after the last attempt to set it."""
    return calls[len(calls) - calls[::-1].index("prctl") :]


def test_workers_ask_for_nothing_else(traced, monkeypatch):
    """Where no filter can be active: all that they do, also with faults, hangs and differential execution."""
    isa, script, log = traced
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(script))
    good, bad, slow = kernel(isa, isa.add), kernel(isa, isa.wild), kernel(isa, isa.forever)
    with closing(NativeBackend()) as backend:
        backend.calibrate(20)
        assert [o.describe() for o in backend.probe([good, bad, slow, good])] == [
            "ok", "SIGSEGV at 0x40", "hang", "ok",
        ]  # fmt: skip
        backend.submit([good, bad, good], Effort(rounds=2, want=2, maximum=4, target=1000.0))
        assert len(backend.collect()) == 3
        assert backend.differ([good], Depth(bases=1, perturbations=1))[0].outcome.status == 0
    asked: dict[str, list[str]] = {}
    for pid, call in re.findall(r"(\d+) (\w+(?=\()|Unknown syscall \d+)", log.read_text()):
        asked.setdefault(pid, []).append(call)
    limited = [calls for calls in asked.values() if "setitimer" in calls]
    workers = [_behind_the_filter(calls) for calls in limited if "prctl" in calls]
    assert len(workers) >= 5
    assert len(limited) - len(workers) <= 1, "two may write at the same time, which cuts a number"
    others = Counter(call for calls in workers for call in {*calls} - NAMES)
    if isa is RISCV64:
        del others[FLUSH]
    before = {call for calls in limited if "prctl" in calls for call in calls[: calls.index("prctl") + 2]}
    cut = {call for call, count in others.items() if count == 1 and call in before}
    assert {*others} <= cut, "a line that is cut: its worker seems to ask behind the filter"
    assert any("rt_sigreturn" in calls for calls in workers)
