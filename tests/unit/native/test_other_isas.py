"""The runners of AArch64 and RISC-V under qemu-user: values and outcomes, never times."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from cyclescope.backend.base import OK, SIGNAL, UNCLEAN, BlockEffort, Effort
from cyclescope.backend.native import NativeBackend
from cyclescope.infer.beside.bursts import BurstPlan
from cyclescope.infer.beside.pieces import Around, Init, text_snippets
from cyclescope.kernel.kernel import WITHOUT_LOOP, Kernel
from cyclescope.kernel.state import (
    VECTOR_FLOAT,
    VECTOR_NONE,
    VECTOR_SCALABLE,
)
from cyclescope.session import blocks as program_blocks
from tests.support.code.emulated import AARCH64, NATIVE, RISCV64, build, kernel, state, words
from tests.support.programs.processes import until

RUNNER_LEAF, EMULATED = (0x43530001, 0), 1
ONCE = Effort(rounds=1, want=2, maximum=4, target=2000.0)


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


def test_what_is_timed_is_longer_than_a_step_of_the_clock(backend):
    """However coarse it is: the clock of an emulated AArch64 has steps of a microsecond."""
    found = backend.calibrate(40)
    assert found.step > 0
    assert found.canary * found.ticks_per_cycle > 4 * found.step


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
    kernels += [Kernel(words(isa.add), 1, state(isa), b"", WITHOUT_LOOP)]
    backend.submit(kernels, ONCE)
    samples = [rounds[0] for rounds in backend.collect()]
    assert [s.status in (OK, UNCLEAN) for s in samples] == [True, True, False, False, True]
    assert [s.detail for s in samples[2:4]] == [11, 4]


@pytest.mark.parametrize("instructions", [3, 60, 600])
def test_loops_of_any_length(backend, isa, instructions):
    """Up to 60 times as long as the body; a trip needs its first instruction."""
    body = words(*isa.first_needed) * (instructions // 3)
    long = Kernel(body, 1, state(isa))
    backend.submit([long], Effort(rounds=1, want=1, maximum=2, target=5.0 * 60 * instructions))
    ((sample,),) = backend.collect()
    assert sample.status in (OK, UNCLEAN)


@pytest.fixture(scope="module")
def loop_ends(runner, isa, tmp_path_factory):
    """Prints the code at the end of loops."""
    path = tmp_path_factory.mktemp("loops") / isa.name
    sources = [Path(__file__).with_name("loop_ends.c"), NATIVE / isa.name / "arch.c"]
    build(isa, sources, path)
    return [*runner.read_text().split("exec ")[1].split()[:-2], str(path)]


def signed(value, bits):
    return value - (value >> bits - 1 << bits)


def test_the_end_of_a_loop_leads_to_its_start(loop_ends, isa):
    """Also where the branch does not reach that far: then it leads around a jump."""
    lengths = (4, 4000, 4088, 4092, 4096, 0xFFFF0, 0xFFFF8, 0xFFFFC, 0x100000, 0x1BFFF0)
    done = subprocess.run([*loop_ends, *map(str, lengths)], check=True, capture_output=True, text=True)
    reached = _aarch64_target if isa is AARCH64 else _riscv64_target
    for length, line in zip(lengths, done.stdout.split(), strict=True):
        code = struct.unpack(f"<{len(line) // 8}I", bytes.fromhex(line))
        assert reached(code[1:]) + 4 == -length, f"{length:#x}"


def _aarch64_target(code):
    """Where control goes, from the first branch on, while the counter is not 0."""
    first = signed(code[0] >> 5 & 0x7FFFF, 19) * 4
    if code[0] >> 24 == 0xB5:  # cbnz
        return first
    assert (code[0] >> 24, first, code[1] >> 26) == (0xB4, 8, 5)  # cbz past b
    return 4 + signed(code[1] & 0x3FFFFFF, 26) * 4


def _riscv64_target(code):
    word, *jump = code
    first = signed(
        word >> 31 << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 63) << 5 | (word >> 8 & 15) << 1, 13
    )
    if word >> 12 & 7 == 1:  # bnez
        return first
    assert (word >> 12 & 7, first) == (0, 4 + 4 * len(jump))  # beqz past the jump
    word = jump[0]
    if len(jump) == 1:
        assert word & 0xFFF == 0x6F  # j
        return 4 + signed(
            word >> 31 << 20 | (word >> 12 & 255) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 1023) << 1,
            21,
        )
    assert (word & 0xFFF, jump[1] & 0xFFFFF) == (0xF97, 0xF8067)  # auipc t6; jr t6
    return 4 + signed(word & 0xFFFFF000, 32) + signed(jump[1] >> 20, 12)


def test_branches_out_of_a_kernel_land_on_pads(isa, runner, tmp_path):
    """Distributions mark their programs for branch target identification; the C library here may not be."""
    if isa is RISCV64:
        pytest.skip("the pads are of AArch64")
    sources = [Path(__file__).with_name("guarded_pages.c"), *(NATIVE / isa.name).glob("*.c")]
    build(isa, sources, tmp_path / "guarded", "-mbranch-protection=bti")
    emulator = runner.read_text().split("exec ")[1].split()[:-2]
    done = subprocess.run([*emulator, tmp_path / "guarded"], check=False, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this qemu has no branch target identification")
    assert (done.stdout, done.returncode) == ("landed\n", 0)


# --- state --------------------------------------------------------------------------------------


def seen(backend, isa, *check, level=VECTOR_NONE, **more):
    """The value of x0, a0 after some instructions, by the address of a fault.

    It is shifted to where nothing is, and since newer versions of qemu align the address.
    """
    shift, bits = (0xD374CC00, 12) if isa is AARCH64 else (0x01451513, 20)  # lsl x0, x0, #12; slli a0, a0, 20
    probe = Kernel(words(*check, shift, isa.wild), 1, state(isa, level, **more))
    (outcome,) = backend.probe([probe])
    assert outcome.detail == 11, outcome.describe()
    return outcome.address >> bits


@pytest.mark.parametrize("register", [1, 5, 8, 17, 18, 22, 26, 28, 29, 30, 31])
def test_every_general_register_has_its_value(backend, isa, register):
    if isa is AARCH64 and register in (28, 31):
        pytest.skip("the loop counter, and the stack pointer")
    general = [0x1000 + 0x10 * n for n in range(32)]
    move = 0xAA0003E0 | register << 16 if isa is AARCH64 else 0x00000513 | register << 15
    assert seen(backend, isa, move, general=tuple(general)) == 0x1000 + 0x10 * register


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
    outside = kernel(isa, 0xD53B4240, isa.wild)  # at the address that SVCR is
    kernels = (inside, neon, kernel(isa, 0, **given), neon, inside, outside)
    texts = [text for text, _ in described(backend, *kernels)]
    assert texts == ["ok", "ok", "SIGILL", "ok", "ok", "SIGSEGV at 0x0"]
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


# --- basic blocks -------------------------------------------------------------------------------

ADDS = {"aarch64": "2000018b", "riscv64": "3385b500"}  # add x0, x1, x1; add a0, a1, a1
LOADS = {"aarch64": "020040f9 230040f9", "riscv64": "03b50500 03b70600"}  # of x0, x1; of a1, a3


def block(isa, code, notion=program_blocks.UNROLLED):
    origin = program_blocks.ProgramBlock(bytes.fromhex(code), isa=isa.name)
    (case,) = program_blocks.cases([origin], notion)
    assert case.kernel is not None, case.reason
    return case.kernel


def blocks_of(backend, *kernels):
    return backend.blocks(kernels, BlockEffort(want=2, maximum=4, target=2000.0))


def test_blocks_run_with_the_pages_that_they_touch(backend, isa):
    adds, reads = blocks_of(backend, block(isa, ADDS[isa.name]), block(isa, LOADS[isa.name]))
    assert {adds.status, reads.status} <= {OK, UNCLEAN}
    assert reads.pages == adds.pages + 2


def test_loops_count_down_the_register_that_they_are_told(backend, isa):
    (found,) = blocks_of(backend, block(isa, ADDS[isa.name], program_blocks.LOOP))
    assert found.status in (OK, UNCLEAN)
    assert found.copies > 50  # trips, fewer where an emulator takes long


def test_a_block_that_faults_is_an_answer(backend, isa):
    good = block(isa, ADDS[isa.name])
    bad = Kernel(bytes(4), 1, good.state)
    first, second = blocks_of(backend, bad, good)
    assert (first.status, first.detail, first.instruction) == (SIGNAL, 4, 0)
    assert second.status in (OK, UNCLEAN)


# --- copies that run once -----------------------------------------------------------------------

PAUSE_MARK, RESUME_MARK = ".quad 0xF0B513B1C2813F04", ".quad 0xE0B513B1C2813F04"
# Registers that the reads use hold what they held, and branches across marks lead where they led.
SURVIVES = {
    "aarch64": "mov x0, #5; mov x1, #7; mov x2, #3; cmp x0, x0; 1: {pause}; b.ne 2f; {resume}; b.ne 2f; "
    "cmp x0, #5; b.ne 2f; cmp x1, #7; b.ne 2f; subs x2, x2, #1; b.eq 3f; cmp x0, x0; b 1b; 2: udf #0; 3: nop",
    "riscv64": "li t0, 5; li t1, 7; li t2, 3; 1: {pause}; li t3, 5; bne t0, t3, 2f; {resume}; li t3, 7; "
    "bne t1, t3, 2f; addi t2, t2, -1; beqz t2, 3f; j 1b; 2: unimp; 3: nop",
}


def burst(isa, text, plan=BurstPlan(), **before):  # noqa: B008
    (snippet,) = text_snippets([text], Around(Init(**before), plan=plan), None, isa.name)
    return snippet.burst


@pytest.mark.parametrize("loop", [0, 3])
def test_marks_leave_registers_and_branches_alone(backend, isa, loop):
    text = SURVIVES[isa.name].format(pause=PAUSE_MARK, resume=RESUME_MARK)
    made = burst(isa, text, BurstPlan(5, loop))
    assert made.pairs == 1
    assert backend.burst(made.kernel, structs.replace(made.effort, measurements=1)).status in (OK, UNCLEAN)


def test_what_comes_before_copies_runs_in_order(backend, isa):
    """Once, before each run, behind the first read: sums that the copies look for."""
    one, two, three, check = {
        "aarch64": ("mov x0, #1; str x0, [x20]", "ldr x1, [x20]; mov x2, #2", "add x1, x1, x2",
                    "cmp x1, #3; b.eq 1f; udf #0; 1: nop"),
        "riscv64": ("li t0, 1; sd t0, 0(s0)", "ld a1, 0(s0); li a2, 2", "add a1, a1, a2",
                    "li t0, 3; beq a1, t0, 1f; unimp; 1: nop"),
    }[isa.name]  # fmt: skip
    made = burst(isa, check, one_time=one, each=two, late=three)
    assert backend.burst(made.kernel, structs.replace(made.effort, measurements=2)).status in (OK, UNCLEAN)


# The fence stands 1088 bytes before the first copy: its line, and 1 KiB of NOPs.
BEHIND_FENCE = {
    "aarch64": "adr x0, .; sub x0, x0, #1088; ldr w1, [x0]; movz w2, #0x3fdf; movk w2, #0xd503, lsl 16; "
    "cmp w1, w2; b.eq 1f; udf #0; 1: nop",
    "riscv64": "auipc a0, 0; lw a1, -1088(a0); li a2, 0x0ff0000f; beq a1, a2, 1f; unimp; 1: nop",
}


@pytest.mark.parametrize("drain", [True, False])
def test_the_front_end_is_drained_where_that_is_asked_for(backend, isa, drain):
    made = burst(isa, BEHIND_FENCE[isa.name], BurstPlan(1, basic=True, drain=drain))
    found = backend.burst(made.kernel, structs.replace(made.effort, measurements=1))
    assert found.status in ((OK, UNCLEAN) if drain else (SIGNAL,))


def test_copies_that_fault_name_the_instruction(backend, isa):
    made = burst(isa, "nop; nop")
    for code, offset in ((words(isa.add, isa.wild), 4), (words(isa.trap), 0)):
        sample = backend.burst(
            structs.replace(made.kernel, code=code), structs.replace(made.effort, measurements=1)
        )
        assert (sample.status, sample.instruction) == (SIGNAL, offset)
