"""CPUs that are known by the files that their runner reads, and what `host` says of them."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.backend.native import NativeBackend
from cyclescope.measure import survey
from cyclescope.report.host import host_text
from tests.support.programs.fake_runner import fake_runner

CPUINFO = (
    "processor: 0\nuarch: sifive,u74-mc\n\n"
    "processor: 3\nmvendorid: 0x710\nmarchid: 0x8000000058000001\nmimpid: 0x20\n"
)
BOARD = f"""
READ = 10
LEAVES = [(0x100, 0, 0x112d, 0, 0, 0), (0x43530001, 0, 0, 3, 0, 0)]
FILES = {{b"/proc/cpuinfo": {CPUINFO.encode()!r}, b"/proc/device-tree/model": bytes("A board", "ascii")}}
def hello(version=10):
    head = struct.pack("<4I7Q", version, LEAVES[-1][3], len(LEAVES), 4096, *[0] * 7)
    return head + b"".join(struct.pack("<6I", *leaf) for leaf in LEAVES)
older = answer
def answer(kind, payload, count):
    return FILES.get(payload, b"") if kind == READ else older(kind, payload, count)
"""
REFUSES = """
def answer(kind, payload, count):
    if kind == READ:
        write(ERROR, b"unknown request")
    return None if kind == READ else older(kind, payload, count)
plain = write
def write(kind, payload, magic=MAGIC):
    if payload is not None:
        plain(kind, payload, magic)
"""


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Make the runner that the backend finds."""
    path = tmp_path / "runner"
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(path))
    monkeypatch.setattr(survey, "_PAUSE", 0.0)
    return lambda changes: fake_runner(path, changes)


def identity():
    with closing(NativeBackend(0)) as backend:
        return backend.capabilities().identity


def described():
    with closing(NativeBackend(0)) as backend:
        return host_text(survey.survey(backend))


def test_the_cpu_that_kernels_run_on(runner):
    runner(BOARD)
    with closing(NativeBackend(0)) as backend:
        found = backend.capabilities().identity
        assert (found.llvm, found.brand) == ("sifive-u74", "sifive,u74-mc on A board")
        backend.configure(3, ())
        found = backend.capabilities().identity
        assert found.machine == "SpacemiT 8000000058000001-20-0 spacemit-x60"
        assert found.brand == "A board"


def test_an_emulator_shows_files_of_another_machine(runner):
    runner(BOARD + "LEAVES[1] = (0x43530001, 0, 1, 3, 0, 0)")
    assert identity().machine == "RISC-V 0-0-0 unknown emulated"


def test_a_runner_that_reads_no_files(runner):
    runner(BOARD + REFUSES)
    assert identity().machine == "RISC-V 0-0-0 unknown"


def test_host_speaks_of_parts_and_of_architectures(runner):
    runner(BOARD + "LEAVES[:] = [(1, 0, 0x410fd034, 0, 0, 0), (0x43530001, 0, 0, 2, 0, 0)]")
    assert "A board (Arm part 0xd03 variant 0 revision 4)" in described()
    runner(BOARD + f"FILES[b'/proc/cpuinfo'] = {CPUINFO.encode()[-90:].replace(b': 3', b': 0')!r}")
    assert "A board (SpacemiT marchid 0x8000000058000001 mimpid 0x20)" in described()
