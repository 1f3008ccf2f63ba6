"""The runners of AArch64 and RISC-V under qemu-user: values and outcomes, never times."""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from cyclescope.backend.base import OK, UNCLEAN, Depth, Effort
from cyclescope.backend.native import NativeBackend
from cyclescope.kernel.differential import GROUP_SHIFT, INDEX_SHIFT, INDEXED, VALUES
from cyclescope.kernel.kernel import UNROLLED, Kernel
from cyclescope.kernel.locations import members, names
from cyclescope.kernel.state import (
    FIRST_WINDOW,
    SECOND_WINDOW,
    STACK_TOP,
    VECTOR_FLOAT,
    VECTOR_NONE,
    VECTOR_SCALABLE,
    MachineState,
)
from tests.support.processes import until

NATIVE = Path(__file__).parents[3] / "src/cyclescope/native"
RUNNER_LEAF, EMULATED = (0x43530001, 0), 1
ONCE = Effort(rounds=1, want=2, maximum=4, target=2000.0)


class Isa(NamedTuple):
    """An instruction set: how it is emulated, and words of machine code."""

    name: str
    cpu: str
    vector_bytes: int
    add: int  # adds a register to another
    load: int  # from the first pointer
    wild: int  # loads from address 0x40
    trap: int
    forever: int  # a branch to itself
    lose: tuple[int, ...]  # overwrites registers that C code relies on


AARCH64 = Isa(
    "aarch64", "max,sve-default-vector-length=64", 64,
    add=0x8B010000, load=0xF9400280, wild=0xF9400000, trap=0xD4200000, forever=0x14000000,
    lose=(0xD2800012, 0xD2800013, 0xD280001D, 0xD280001E, 0xD51BD040),  # x18 to x30, TPIDR_EL0
)  # fmt: skip
RISCV64 = Isa(
    "riscv64", "rv64,v=true,vext_spec=v1.0,vlen=256", 32,
    add=0x00B50533, load=0x0004B503, wild=0x00053503, trap=0x00100073, forever=0x0000006F,
    lose=(0x00000193, 0x00000213, 0x00000093, 0x00000413),  # gp, tp, ra, s0
)  # fmt: skip


@pytest.fixture(scope="module", params=[AARCH64, RISCV64], ids=lambda isa: isa.name)
def isa(request):
    return request.param


@pytest.fixture(scope="module")
def runner(isa, tmp_path_factory):
    """A script that runs the runner of an instruction set under qemu-user."""
    qemu = shutil.which(f"qemu-{isa.name}-static") or shutil.which(f"qemu-{isa.name}")
    compiler = shutil.which(f"{isa.name}-linux-gnu-gcc")
    if qemu is None:
        pytest.skip(f"needs qemu-{isa.name} (Debian, Ubuntu: apt install qemu-user-static)")
    if compiler is None:
        pytest.skip(f"needs a cross compiler (Debian, Ubuntu: apt install gcc-{isa.name}-linux-gnu)")
    folder = tmp_path_factory.mktemp(isa.name)
    sources = [*NATIVE.glob("*.c"), *(NATIVE / isa.name).glob("*.c")]
    command = [compiler, "-O1", "-fno-stack-protector", "-static", f"-I{NATIVE}", *map(str, sources), "-lm"]
    subprocess.run([*command, "-o", str(folder / "runner")], check=True)
    script = folder / "emulated"
    script.write_text(f"#!/bin/sh\nexec {qemu} -cpu {isa.cpu} {folder}/runner\n")
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def backend(runner):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CYCLESCOPE_RUNNER", str(runner))
        with closing(NativeBackend()) as opened:
            yield opened


def words(*values):
    return struct.pack(f"<{len(values)}I", *values)


def state(isa, level=VECTOR_NONE, **more):
    """Small numbers, and pointers where forms of the instruction set have them."""
    general = [0x40] * 32
    if isa is AARCH64:
        general[20], general[21], general[31] = FIRST_WINDOW, SECOND_WINDOW, STACK_TOP
    else:
        general[9], general[8], general[2] = FIRST_WINDOW, SECOND_WINDOW, STACK_TOP
    given = {"general": tuple(general), "flags": 0, "control": 0, "vector_level": level}
    return MachineState(**(given | more))


def kernel(isa, *values, level=VECTOR_NONE, **more):
    return Kernel(words(*values), len(values), state(isa, level, **more))


def described(backend, *kernels):
    return [(outcome.describe(), outcome.instruction) for outcome in backend.probe(kernels)]


# --- what it says of itself ---------------------------------------------------------------------


def test_it_knows_what_it_is(backend, isa):
    capabilities = backend.capabilities()
    leaves = {(leaf, sub): rest for leaf, sub, *rest in capabilities.leaves}
    assert capabilities.isa == isa.name
    assert leaves[RUNNER_LEAF][0] & EMULATED
    assert not capabilities.real_time
    where = leaves[3, 0][0] if isa is AARCH64 else leaves[0x100, 0][2]
    assert where == isa.vector_bytes
    assert leaves[2, 0][0] & 1 if isa is AARCH64 else leaves[0x100, 0][0] >> 5 & 1  # FP; F


def test_the_runner_of_this_machine_is_not_emulated(monkeypatch):
    monkeypatch.delenv("CYCLESCOPE_RUNNER", raising=False)
    if not (NATIVE / "runner").is_file():
        pytest.skip("the runner of this machine was not built in the source tree")
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(NATIVE / "runner"))
    with closing(NativeBackend()) as native:
        leaves = {(leaf, sub): rest for leaf, sub, *rest in native.capabilities().leaves}
        assert native.capabilities().isa.replace("-", "_") == platform.machine()
        assert not leaves[RUNNER_LEAF][0] & EMULATED


# --- outcomes -----------------------------------------------------------------------------------


def test_faults_are_records_and_name_the_instruction(backend, isa):
    codes = [(isa.add,), (isa.add, isa.wild), (isa.add, isa.add, 0), (isa.trap,), (isa.load,)]
    assert described(backend, *[kernel(isa, *code) for code in codes]) == [
        ("ok", -1), ("SIGSEGV at 0x80", 4), ("SIGILL", 8), ("SIGTRAP", 0),
        ("ok", -1),
    ]  # fmt: skip


def test_a_hang_is_a_record_and_the_rest_goes_on(backend, isa):
    kernels = [kernel(isa, word) for word in (isa.add, isa.forever, isa.load)]
    assert [text for text, _ in described(backend, *kernels)] == ["ok", "hang", "ok"]


def test_registers_that_c_relies_on_are_brought_back(backend, isa):
    lost = words(*isa.lose)
    kernels = [Kernel(lost + tail, 1, state(isa)) for tail in (b"", words(0), words(isa.wild))]
    texts = [text for text, _ in described(backend, *kernels, kernel(isa, isa.add))]
    assert texts == ["ok", "SIGILL", "SIGSEGV at 0x40", "ok"]


def test_kernels_are_measured(backend, isa):
    kernels = [kernel(isa, isa.add), kernel(isa, isa.load), kernel(isa, isa.wild), kernel(isa, 0)]
    kernels += [Kernel(words(isa.add), 1, state(isa), b"", UNROLLED)]
    backend.submit(kernels, ONCE)
    samples = [rounds[0] for rounds in backend.collect()]
    assert [s.status in (OK, UNCLEAN) for s in samples] == [True, True, False, False, True]
    assert [s.detail for s in samples[2:4]] == [11, 4]


@pytest.mark.parametrize("instructions", [1, 1500, 16000])
def test_loops_of_any_length_come_to_their_end(backend, isa, instructions):
    """Backward branches of three ranges; the loop counter is not to be seen by the kernel."""
    body = Kernel(words(isa.add) * instructions, instructions, state(isa))
    backend.submit([body], Effort(rounds=1, want=1, maximum=2, target=200000.0))
    ((sample,),) = backend.collect()
    assert sample.status in (OK, UNCLEAN)


# --- state --------------------------------------------------------------------------------------


def seen(backend, isa, *check, level=VECTOR_NONE, **more):
    """The value of x0, a0 after some instructions, by the address of a fault."""
    probe = Kernel(words(*check, isa.wild), 1, state(isa, level, **more))
    (outcome,) = backend.probe([probe])
    assert outcome.detail == 11, outcome.describe()
    return outcome.address


@pytest.mark.parametrize("register", [1, 5, 8, 17, 18, 22, 26, 28, 29, 30, 31])
def test_every_general_register_has_its_value(backend, isa, register):
    counter, zero = (28, 31) if isa is AARCH64 else (27, 0)
    if register in (counter, 31 if isa is AARCH64 else -1):
        pytest.skip("the loop counter and the stack pointer are not for kernels")
    general = [0x1000 + 0x10 * n for n in range(32)]
    move = 0xAA0003E0 | register << 16 if isa is AARCH64 else 0x00000513 | register << 15
    assert seen(backend, isa, move, general=tuple(general)) == 0x1000 + 0x10 * register
    assert zero in (0, 31)


def test_flags_and_control(backend, isa):
    if isa is AARCH64:
        assert seen(backend, isa, 0xD53B4200, flags=0x90000000) == 0x90000000  # mrs x0, nzcv
        assert seen(backend, isa, 0xD53B4400, control=0x01000000) == 0x01000000  # mrs x0, fpcr
    else:
        assert seen(backend, isa, 0x00302573, control=0x60) == 0x60  # csrr a0, fcsr


def test_floating_point_registers(backend, isa):
    pattern = struct.pack("<8Q", *[0x2000 + n for n in range(8)])
    last = struct.pack("<8Q", *[0x3000 + n for n in range(8)])
    given = {"vector": pattern, "vectors": ((31, last),), "level": VECTOR_FLOAT}
    if isa is AARCH64:
        assert seen(backend, isa, 0x9E660060, **given) == 0x2000  # fmov x0, d3
        assert seen(backend, isa, 0x9EAE03E0, **given) == 0x3001  # fmov x0, v31.d[1]
    else:
        assert seen(backend, isa, 0xE2018553, **given) == 0x2000  # fmv.x.d a0, f3
        assert seen(backend, isa, 0xE20F8553, scalars=tuple(range(0x100, 0x120)), **given) == 0x11F


def test_scalable_registers_are_whole(backend, isa):
    """The last element of the longest registers."""
    last = struct.pack("<8Q", *[0x4000 + n for n in range(8)])
    given = {"vectors": ((30, last),), "level": VECTOR_SCALABLE, "masks": tuple(range(0x50, 0x60))}
    if isa is AARCH64:
        assert seen(backend, isa, 0x05E1A3C0, **given) == 0x4007  # lastb x0, p0, z30.d
    else:
        check = (
            0x0D8072D7,
            0x3FE1B257,
            0x42402557,
        )  # vsetvli e64, m1; vslidedown.vi v4, v30, 3; vmv.x.s a0, v4
        assert seen(backend, isa, *check, **given) == 0x4003


def test_the_vector_configuration_of_riscv(backend, isa):
    if isa is AARCH64:
        pytest.skip("AArch64 has none")
    assert seen(backend, isa, 0xC2002573, level=VECTOR_SCALABLE) == isa.vector_bytes  # csrr a0, vl
    assert seen(backend, isa, 0xC2102573, level=VECTOR_SCALABLE) == 0xC0  # csrr a0, vtype: e8, m1, ta, ma


def test_predicates_and_the_first_fault_register(backend, isa):
    if isa is RISCV64:
        pytest.skip("RISC-V has none")
    masks = tuple(0xFF << n for n in range(16))
    given = {"level": VECTOR_SCALABLE, "masks": masks}
    assert seen(backend, isa, 0x2519F003, 0x25208C60, **given) == 64  # rdffr p3.b; cntp x0, p3, p3.b
    assert seen(backend, isa, 0x25208C40, **given) == 7  # cntp x0, p3, p2.b


def test_streaming_mode_is_left_again(backend, isa):
    if isa is RISCV64:
        pytest.skip("SME is of AArch64")
    given = {"level": VECTOR_SCALABLE, "streaming": True}
    neon = kernel(isa, 0x4E22D420, level=VECTOR_FLOAT)  # fadd v0.4s, v1.4s, v2.4s
    inside = kernel(isa, 0xD53B4240, 0x92400000, **given)  # mrs x0, svcr
    texts = [text for text, _ in described(backend, inside, neon, kernel(isa, 0, **given), neon)]
    assert texts == ["ok", "ok", "SIGILL", "ok"]
    assert seen(backend, isa, 0xD53B4240, **given) == 3  # streaming mode and the array


def test_exceptions_in_one_order(backend, isa):
    """1 divided by 0, then the square root of -1; what is raised is told as on x86-64."""
    one, minus = struct.pack("<d", 1.0) * 8, struct.pack("<d", -1.0) * 8
    zero = bytes(64)
    vectors = ((1, one), (2, zero), (3, minus))
    scalars = tuple(int.from_bytes(v[:8], "little") for v in (zero, one, zero, minus))
    codes = (0x1E621820, 0x1E61C060) if isa is AARCH64 else (0x1A20F053, 0x5A01F053)
    kernels = [kernel(isa, code, level=VECTOR_FLOAT, vectors=vectors, scalars=scalars) for code in codes]
    backend.submit(kernels, ONCE)
    assert [rounds[0].exceptions for rounds in backend.collect()] == [4, 1]


# --- the process --------------------------------------------------------------------------------


def test_nothing_stays_behind(runner, isa, monkeypatch):
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(runner))
    before = processes(runner)
    with closing(NativeBackend()) as opened:
        opened.submit([kernel(isa, isa.forever)] * 50, ONCE)  # close() does not wait for these
        assert until(lambda: len(processes(runner) - before) == 2)
    assert until(lambda: processes(runner) == before)


def processes(runner):
    """Numbers of the processes that run a runner, their emulators."""
    program = os.fsencode(runner.parent / "runner")
    return {path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline") if program in _line(path)}


def _line(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


# --- differential execution ---------------------------------------------------------------------

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
    for (word, reads, writes), seen_ in zip(effects, backend.differ(kernels, Depth(bases=6)), strict=True):
        assert seen_.outcome.status == OK, f"{word:#x}"
        assert {called[n] for n in members(seen_.written)} == writes, f"{word:#x}"
        assert {called[source] for source, _ in seen_.depends} == reads, f"{word:#x}"


def test_a_vector_of_pointers_stays_one(backend, isa):
    if isa is RISCV64:
        pytest.skip("RISC-V has none")
    pointers = ((1, struct.pack("<8Q", *[FIRST_WINDOW] * 8)),)
    flags = VALUES["f64"] | INDEXED | 1 << INDEX_SHIFT
    load = Kernel(words(0xC5A0C020), 1, state(isa, vectors=pointers), b"", flags)  # ld1d z0.d, p0/z, [z1.d]
    (seen_,) = backend.differ([load], Depth(bases=6))
    assert seen_.outcome.status == OK
    assert seen_.bases == 6
    called = names(isa.name)
    assert {called[n] for n, _ in seen_.depends} == {"memory", "V1", "Z1[VL:128]", "P0"}


def test_all_registers_of_an_index_are_small(backend, isa):
    if isa is AARCH64:
        pytest.skip("indices of AArch64 are single registers")
    flags = INDEXED | 8 << INDEX_SHIFT | 3 << GROUP_SHIFT
    load = Kernel(words(0x0684F087), 1, state(isa), b"", flags)  # vluxei64.v v1, (s1), v8: eight registers
    (seen_,) = backend.differ([load], Depth(bases=6))
    assert (seen_.outcome.status, seen_.bases) == (OK, 6)
    assert {names(isa.name)[n] for n, _ in seen_.depends} >= {
        "memory",
        "x9",
        *[f"v{n}" for n in range(8, 16)],
    }


def test_faults_and_hangs_in_differential_execution(backend, isa):
    kernels = [kernel(isa, word) for word in (0, isa.forever, isa.wild, isa.add)]
    found = [seen.outcome.describe() for seen in backend.differ(kernels, Depth(1, 1))]
    assert found[:2] == ["SIGILL", "hang"]
    assert found[2].startswith("SIGSEGV")
    assert found[3] == "ok"
