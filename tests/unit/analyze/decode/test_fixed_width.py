"""AArch64 and RISC-V: text by an assembler, machine code back to forms, addresses and control flow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyclescope.analyze.choose.source import Choice, read_block, read_program
from cyclescope.analyze.decode.block import Address
from cyclescope.analyze.decode.decoder import Flow, decoder
from cyclescope.analyze.read.assemblers import tools
from cyclescope.analyze.read.program import Code
from cyclescope.errors import UnsupportedInstruction
from cyclescope.isa.table import load_table
from cyclescope.session.predict import predict

ISAS = ("aarch64", "riscv64")
needs = {
    isa: pytest.mark.skipif(
        not tools(isa), reason=f"needs an assembler for {isa}: a cross as, llvm-mc, clang or zig"
    )
    for isa in ISAS
}
AT = 0x1000
SNIPPETS = Path(__file__).parents[1] / "snippets"


def x(number):
    return ("X", number)


# --- machine code ---------------------------------------------------------------------------------


@pytest.mark.parametrize("isa", ISAS)
def test_every_form_is_read_back(isa):
    """With the plainest operands: a form, its operands, and an address for every memory operand."""
    reader, wrong = decoder(isa), []
    for form in load_table(isa):
        if form.bits is None or "optional" in form.attributes:
            continue
        code = form.bits.encode([field.values.legal[-1] for field in form.bits.fields])
        got = reader.instruction(code, AT)
        if got.form is None or got.code != code:
            wrong.append((form.id, got.problem))
            continue
        kinds = zip(got.form.operands, got.memory, strict=True)
        if any(op.is_memory != (address is not None) for op, address in kinds):
            wrong.append((form.id, "memory"))
    assert wrong == []


ADDRESSES = {
    "ldr d1, [x20, x8]": Address(x(20), x(8)),
    "ldr d1, [x20, x8, lsl 3]": Address(x(20), x(8), 8),
    "ldr x1, [x20, w8, sxtw 3]": Address(x(20), x(8), 8, extend="sxtw"),
    "ldr w1, [x20, w8, uxtw]": Address(x(20), x(8), extend="uxtw"),
    "ldr d0, [x15, 8]": Address(x(15), displacement=8),
    "ldur d0, [x15, -3]": Address(x(15), displacement=-3),
    "str d5, [x14], 8": Address(x(14), writeback="post"),
    "str d5, [x14, -8]!": Address(x(14), displacement=-8, writeback="pre"),
    "ldp x0, x1, [sp, 16]": Address(("SP", 0), displacement=16),
    "ld1d {z0.d}, p0/z, [x0, x1, lsl 3]": Address(x(0), x(1), 8),
    "ld1d {z0.d}, p0/z, [x0, #2, mul vl]": Address(x(0), displacement=2, symbol="vl"),
    "ld1d {z0.d}, p0/z, [x0, z1.d, lsl 3]": Address(x(0), ("V", 1), 8),
    "ldaddal x0, x1, [x2]": Address(x(2)),
}


@needs["aarch64"]
def test_addresses_of_aarch64():
    found = read_block("\n".join(ADDRESSES), "aarch64")
    got = {one.text: [a for a in one.memory if a is not None] for one in found}
    assert got == {text: [address] for text, address in ADDRESSES.items()}


@needs["riscv64"]
def test_addresses_of_riscv():
    text = "ld a0, 8(a1)\nfsd fa0, -16(sp)\nvle64.v v8, (a0)\nvluxei32.v v8, (a0), v4\namoadd.d a0, a1, (a2)"
    found = [a for one in read_block(text, "riscv64") for a in one.memory if a is not None]
    assert found == [
        Address(x(11), displacement=8), Address(x(2), displacement=-16), Address(x(10)),
        Address(x(10), ("V", 4)), Address(x(12)),
    ]  # fmt: skip


@needs["aarch64"]
def test_operands_of_aarch64():
    text = (
        "mov x14, x15\nfmadd d0, d1, d2, d3\nld1 {v31.2d, v0.2d}, [x0], 32\n"
        "add x0, x0, 1, lsl 12\ncmp x7, x15\n"
    )
    move, fma, load, add, compare = read_block(text, "aarch64")
    assert move.registers[:3] == (x(14), None, x(15))  # ORR with the zero register
    assert fma.registers[:4] == (("V", 0), ("V", 1), ("V", 2), ("V", 3))
    assert (load.registers[1], load.further) == (("V", 31), {1: (("V", 0),)})
    assert 4096 in add.immediates
    assert compare.registers[0] is None


FLOWS = {
    "aarch64": {
        "b.ne 1b": Flow.BRANCH, "cbz x0, 1b": Flow.BRANCH, "tbz x0, 3, 1b": Flow.BRANCH,
        "b 1b": Flow.JUMP, "bl 1b": Flow.CALL, "br x1": Flow.JUMP, "blr x1": Flow.CALL, "ret": Flow.END,
        "brk 1": Flow.END, "add x0, x0, 1": Flow.NEXT, "svc 0": Flow.NEXT,
    },
    "riscv64": {
        "bne a0, a1, 1b": Flow.BRANCH, "beqz a0, 1b": Flow.BRANCH, "j 1b": Flow.JUMP,
        "jal 1b": Flow.CALL, "jr a0": Flow.JUMP, "ret": Flow.END,
        "jalr a0": Flow.CALL, "jalr a0, 8(a1)": Flow.CALL, "addi a0, a0, 8": Flow.NEXT,
    },
}  # fmt: skip


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=needs[isa]) for isa in ISAS])
def test_control_flow(isa):
    program = read_program("1: nop\n" + "\n".join(FLOWS[isa]), isa)
    (piece,) = program.pieces
    steps = list(decoder(isa).steps(piece.code, piece.address))[1:]
    assert dict(zip(FLOWS[isa], [step.flow for step in steps], strict=True)) == FLOWS[isa]
    direct = [step for step, text in zip(steps, FLOWS[isa], strict=True) if text.endswith("1b")]
    assert {step.target for step in direct} == {0}


@needs["riscv64"]
def test_jumps_in_two_instructions():
    """RISC-V's `call` and `tail` make the address first."""
    program = read_program("f:\n nop\n call f\n tail f\n tail g\n call g\n", "riscv64")
    code = Code(program, decoder("riscv64"))
    found = [(step.flow, step.target) for step in code.steps if step.flow != Flow.NEXT]
    assert found == [(Flow.CALL, 0), (Flow.JUMP, 0), (Flow.END, None), (Flow.CALL, None)]
    linked = bytes.fromhex("17030000 670003ff".replace(" ", ""))  # auipc t1, 0; jr -16(t1)
    assert [step.target for step in decoder("riscv64").steps(linked, AT)] == [None, AT - 16]


@needs["aarch64"]
def test_a_table_whose_address_is_made_in_two_steps():
    program = read_program(SNIPPETS / "aarch64_clang14_O2.s")
    assert [len(table.targets) for table in program.tables] == [6, 5]


@pytest.mark.parametrize(
    ("isa", "code", "lengths"),
    [
        ("aarch64", "ffffffff 1f2003d5", [4, 4]),
        ("riscv64", "0400 0100", [2, 2]),
        ("riscv64", "ffffffff 0100", [6]),
    ],
)
def test_what_is_no_instruction(isa, code, lengths):
    steps = list(decoder(isa).steps(bytes.fromhex(code.replace(" ", "")), AT))
    assert [step.length for step in steps] == lengths
    assert steps[0].flow == Flow.INVALID
    got = decoder(isa).instruction(bytes.fromhex(code.replace(" ", "")), AT)
    assert got.form is None
    assert "is no instruction" in got.problem


# --- text -----------------------------------------------------------------------------------------

KERNELS = {
    "aarch64": """\
triad:                                  // @triad
        cbz     x3, .L1
        mov     x8, xzr
        .p2align 4
.L2:
        ldr     d1, [x1, x8, lsl 3]     // b[i]
        ldr     d2, [x2, x8, lsl 3]
        fmadd   d1, d2, d0, d1
        str     d1, [x0, x8, lsl 3]
        add     x8, x8, 1
        cmp     x3, x8
        bne     .L2
.L1:
        ret
""",
    "riscv64": """\
triad:
        beqz    a3, .L1
        slli    a3, a3, 3
        add     a3, a3, a1
.L2:
        fld     fa5, 0(a2)
        fld     fa4, 0(a1)
        fmadd.d fa5, fa5, fa0, fa4
        fsd     fa5, 0(a0)
        addi    a1, a1, 8  # next
        addi    a2, a2, 8
        addi    a0, a0, 8
        bne     a1, a3, .L2
.L1:
        ret
""",
}


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=needs[isa]) for isa in ISAS])
@pytest.mark.parametrize("given", [False, True])
def test_the_hot_loop_of_a_listing(isa, given):
    block = read_block(KERNELS[isa], isa if given else "")
    assert (block.isa, block.name, block.loop, block.unknown) == (isa, ".L2 in triad", True, ())
    written = [line.split("  //")[0].split("  #")[0].split() for line in block.line_texts.values()]
    assert [one.text.split() for one in block] == written
    assert block.instructions[-1].target == ".L2"
    assert (block.unroll.stride, block.unroll.elements) == (8, 1)


@pytest.mark.parametrize(
    ("compiler", "function", "label", "count", "elements"),
    [
        ("aarch64_gcc_O2", "triad", ".L3 in triad", 7, 1),
        ("aarch64_gcc_O3", "triad", ".L4 in triad", 7, 2),
        ("aarch64_gcc_O2", "", ".L12 in gemm", 6, 1),
        ("aarch64_gcc_O3_sve", "triad", ".L3 in triad", 7, 0),  # moved by the length of a vector
        ("aarch64_llvm22_O3", "", ".LBB0_6 in triad", 12, 8),
        ("riscv64_gcc_O2", "", ".L12 in gemm", 6, 1),
        ("riscv64_gcc_O3", "count", ".L21 in count", 5, 1),
        ("riscv64_llvm22_O3_rvv", "", ".LBB0_2 in triad", 11, 0),
    ],
)
def test_the_hot_loop_of_what_compilers_write(compiler, function, label, count, elements):
    isa = compiler.partition("_")[0]
    if not tools(isa):
        pytest.skip(f"needs an assembler for {isa}")
    block = read_block(SNIPPETS / f"{compiler}.s", choice=Choice(function=function))
    assert (block.isa, block.name, len(block), block.loop) == (isa, label, count, True)
    assert not block.unknown
    assert (block.unroll.elements if block.unroll else 0) == elements
    assert all(one.text in " ".join(block.line_texts[one.line].split()) for one in block)


@pytest.mark.parametrize("path", sorted(SNIPPETS.glob("*64_*.s")), ids=lambda path: path.stem)
def test_everything_of_a_listing_is_known(path):
    isa = path.stem.partition("_")[0]
    if not tools(isa):
        pytest.skip(f"needs an assembler for {isa}")
    block = read_block(path, choice=Choice(whole=True))
    assert not block.unknown
    written = [n for n, line in enumerate(path.read_text().splitlines(), 1) if re.match(r"\s+[a-z]", line)]
    padded = [n for n, line in enumerate(path.read_text().splitlines(), 1) if "align" in line]
    assert set(written) <= {one.line for one in block} <= set(written) | set(padded)


@needs["aarch64"]
def test_a_pointer_moved_by_its_accesses():
    text = ".L1:\n ldr q0, [x0], 16\n fadd v1.2d, v1.2d, v0.2d\n cmp x0, x1\n bne .L1\n"
    unroll = read_block(text, "aarch64").unroll
    assert (unroll.register, unroll.step, unroll.stride, unroll.access) == (x(0), 16, 16, 16)


@needs["aarch64"]
def test_a_pointer_moved_by_what_is_accessed():
    """`ld1` and `st1` write the amount down, but encode the zero register."""
    text = ".L1:\n st1 {v0.2d}, [x0], 16\n ldr q0, [x0, -16]\n cmp x0, x1\n bne .L1\n"
    block = read_block(text, "aarch64")
    assert (block.unroll.register, block.unroll.step) == (x(0), 16)
    found = predict(text, "neoverse-n2")
    assert (0, 1, 0) in {
        (one.source, one.target, one.distance) for one in found.dependencies if "data" in one.by
    }


@needs["aarch64"]
@pytest.mark.parametrize("nop", [".byte 213, 3, 32, 31", "nop"])
def test_markers_in_bytes(nop):
    text = f"mov x1, #111\n{nop}\nadd x0, x0, 1\nfadd d0, d0, d1\nmov x1, #222\n{nop}\n ret\n"
    block = read_block(text, "aarch64")
    assert [one.text for one in block] == ["add x0, x0, 1", "fadd d0, d0, d1"]


@needs["aarch64"]
def test_a_refused_line_is_named():
    with pytest.raises(UnsupportedInstruction, match="text, line 2: "):
        read_block("fadd d0, d0, d1\nfrobnicate x0, [x1]\nret", "aarch64")


@needs["aarch64"]
def test_references_of_relocations():
    text = "adrp x0, table\nldr d0, [x0, :lo12:table+8]\nbl sin\nb .L9\n"
    found = read_block(text, "aarch64", Choice(whole=True)).instructions
    assert found[1].memory[-1] == Address(x(0), displacement=8, symbol="table")
    assert found[2].target == "sin"
