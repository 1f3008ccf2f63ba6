"""Differential execution on AArch64 and RISC-V, under qemu-user: what instructions read and write."""

from __future__ import annotations

import struct
from contextlib import closing

import msgspec
import pytest

from cyclescope.backend.base import OK, Depth
from cyclescope.backend.native import NativeBackend
from cyclescope.kernel.differential import GROUP_SHIFT, INDEX_SHIFT, INDEXED, VALUES
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.locations import members, names
from cyclescope.kernel.state import FIRST_WINDOW
from tests.support.code.emulated import AARCH64, RISCV64, kernel, state, words

# A word, what it reads and what it writes.
AARCH64_EFFECTS = [
    (0x8B020020, {"X1", "X2"}, {"X0"}),  # add x0, x1, x2
    (0xEB02003F, {"X1", "X2"}, {"flags.N", "flags.Z", "flags.C"}),  # cmp x1, x2
    (0x9A820020, {"X1", "X2", "flags.Z"}, {"X0"}),  # csel x0, x1, x2, eq
    (0xF9400280, {"X20", "memory"}, {"X0"}),  # ldr x0, [x20]
    (0xA8810680, {"X0", "X1", "X20"}, {"memory", "X20"}),  # stp x0, x1, [x20], #16
    (0x910043FF, {"SP"}, {"SP"}),  # add sp, sp, #16
    (0x54000200, {"flags.Z"}, {"next instruction"}),  # b.eq
    (0x9EAF0020, {"X1", "V0"}, {"V0", "Z0[VL:128]"}),  # fmov v0.d[1], x1
    (0x1E622820, {"V1", "V2", "FPCR", "FPSR"}, {"V0", "Z0[VL:128]", "FPSR"}),  # fadd d0, d1, d2
    (0x04800020, {"V0", "V1", "Z0[VL:128]", "Z1[VL:128]", "P0"}, {"V0", "Z0[VL:128]"}),  # add z0.s, p0/m, ...
    (0x25289020, {"P1"}, {"FFR"}),  # wrffr p1.b
    (0x2519F003, {"FFR"}, {"P3"}),  # rdffr p3.b
]
RISCV64_EFFECTS = [
    (0x00C58533, {"x11", "x12"}, {"x10"}),  # add a0, a1, a2
    (0x0004B503, {"x9", "memory"}, {"x10"}),  # ld a0, (s1)
    (0x00A4B023, {"x9", "x10"}, {"memory"}),  # sd a0, (s1)
    (0x04B50063, {"x10", "x11"}, {"next instruction"}),  # beq a0, a1
    (0x0220F053, {"f1", "f2", "frm", "fflags"}, {"f0", "fflags"}),  # fadd.d f0, f1, f2
    (0x00102573, {"fflags"}, {"x10"}),  # frflags a0
    (0x00B4B52F, {"x9", "x11", "memory"}, {"x10", "memory"}),  # amoadd.d a0, a1, (s1)
    (0x022180D7, {"v1", "v2", "v3", "vl"}, {"v1"}),  # vadd.vv v1, v2, v3
    (0x002180D7, {"v0", "v1", "v2", "v3", "vl"}, {"v1"}),  # vadd.vv v1, v2, v3, v0.t
    (0x2621A0D7, {"v1", "v2", "v3", "vl", "vxrm"}, {"v1"}),  # vaadd.vv v1, v2, v3
]


def test_what_instructions_read_and_write(backend, isa):
    effects = AARCH64_EFFECTS if isa is AARCH64 else RISCV64_EFFECTS
    called = names(isa.name)
    doubles = Kernel(b"", 1, state(isa), b"", VALUES["f64"])
    kernels = [msgspec.structs.replace(doubles, code=words(word)) for word, _, _ in effects]
    for (word, reads, writes), seen_ in zip(effects, backend.differ(kernels, Depth(4, 3)), strict=True):
        assert seen_.outcome.status == OK, f"{word:#x}"
        assert {called[n] for n in members(seen_.written)} == writes, f"{word:#x}"
        assert {called[source] for source, _ in seen_.depends} == reads, f"{word:#x}"


def test_narrow_numbers_are_boxed(backend, isa):
    if isa is AARCH64:
        pytest.skip("AArch64 does not box")
    add = Kernel(words(0x0020F053), 1, state(isa), b"", VALUES["f32"])  # fadd.s f0, f1, f2
    (seen_,) = backend.differ([add], Depth(bases=2))
    assert {names(isa.name)[n] for n, _ in seen_.depends} == {"f1", "f2", "frm", "fflags"}


def test_a_vector_of_pointers_stays_one(backend, isa):
    if isa is RISCV64:
        pytest.skip("RISC-V has none")
    pointers = ((1, struct.pack("<8Q", *[FIRST_WINDOW] * 8)),)
    flags = VALUES["f64"] | INDEXED | 1 << INDEX_SHIFT
    load = Kernel(words(0xC5A0C020), 1, state(isa, vectors=pointers), b"", flags)  # ld1d z0.d, p0/z, [z1.d]
    (seen_,) = backend.differ([load], Depth(bases=2))
    assert seen_.outcome.status == OK
    assert seen_.bases == 2
    called = names(isa.name)
    assert {called[n] for n, _ in seen_.depends} == {"memory", "V1", "Z1[VL:128]", "P0"}


def test_the_length_of_vectors_stays_where_it_has_to(backend, isa):
    if isa is AARCH64:
        pytest.skip("AArch64 has none")
    add = words(0x022180D7)  # vadd.vv v1, v2, v3
    flags = (0, 32)
    kernels = [Kernel(add, 1, state(isa), b"", flag) for flag in flags]
    free, whole = (
        {names(isa.name)[n] for n, _ in seen.depends} for seen in backend.differ(kernels, Depth(1, 2))
    )
    assert free - whole == {"v1", "vl"}  # the elements past VL are those of before


def test_all_registers_of_an_index_are_small(backend, isa):
    if isa is AARCH64:
        pytest.skip("indices of AArch64 are single registers")
    flags = INDEXED | 8 << INDEX_SHIFT | 3 << GROUP_SHIFT
    load = Kernel(words(0x0684F087), 1, state(isa), b"", flags)  # vluxei64.v v1, (s1), v8: eight registers
    (seen_,) = backend.differ([load], Depth(bases=2))
    assert (seen_.outcome.status, seen_.bases) == (OK, 2)
    assert {names(isa.name)[n] for n, _ in seen_.depends} >= {
        "memory",
        "x9",
        "v8",
        "v9",
    }


def test_faults_and_hangs_in_differential_execution(backend, isa):
    kernels = [kernel(isa, word) for word in (0, isa.forever, isa.wild, isa.add)]
    found = [seen.outcome.describe() for seen in backend.differ(kernels, Depth(1, 1))]
    assert found[:2] == ["SIGILL", "hang"]
    assert found[2].startswith("SIGSEGV")
    assert found[3] == "ok"


def test_a_core_that_has_less(runner, isa, tmp_path, monkeypatch):
    """Registers it lacks are no locations, and bits that it does not keep are not seen as written."""
    script = tmp_path / "runner"
    script.write_text(runner.read_text().replace(isa.cpu, "cortex-a53" if isa is AARCH64 else "sifive-u54"))
    script.chmod(0o755)
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(script))
    word = 0x1E622820 if isa is AARCH64 else 0x0220F053  # fadd d0, d1, d2; fadd.d f0, f1, f2
    add = Kernel(words(word), 1, state(isa), b"", VALUES["f64"])
    with closing(NativeBackend()) as backend:
        (seen,) = backend.differ([add], Depth(4, 3))
    called = names(isa.name)
    status = "FPSR" if isa is AARCH64 else "fflags"
    assert {called[n] for n in members(seen.written)} == {"V0" if isa is AARCH64 else "f0", status}
    assert {"P0", "Z0[VL:128]", "v0"}.isdisjoint(called[n] for n in members(seen.present))
