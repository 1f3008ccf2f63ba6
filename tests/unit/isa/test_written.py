"""Examples as people and compilers write them, on all instruction sets, without an assembler."""

from __future__ import annotations

import pytest

from cyclescope.errors import UsageError
from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table


def _pairs(text):
    """What is written, and the forms that it is."""
    return dict(line.strip().split(" = ") for line in text.strip().splitlines())


AARCH64 = _pairs("""
    ldr x1, [x2] = LDRXui
    ldr x1, [x2, 8] = LDRXui
    ldr x1, [x2, #0x10] = LDRXui
    ldr x1, [x2, #-8] = LDURXi
    ldr x1, [x2], 8 = LDRXpost
    ldr d0, [x1, x2, lsl 3] = LDRDroX
    ldr x0, [x1, :lo12:table] = LDRXui
    ldp x0, x1, [sp] = LDPXi
    prfm pldl1keep, [x0] = PRFMui
    mov x1, x2 = ORRXrs
    mov w1, wzr = ORRWrs
    mov x29, sp = ADDXri
    mov fp, sp = ADDXri
    mov x1, #5 = MOVZXi
    mov x1, 0x10000 = MOVZXi
    mov x1, #-1 = MOVNXi
    mov x1, #0xff00ff00ff00ff = ORRXri
    mov w1, #-1 = MOVNWi
    mov v0.16b, v1.16b = ORRv16i8
    mov v0.s[1], w1 = INSvi32gpr
    mov v0.s[1], v2.s[0] = INSvi32lane
    mov w0, v1.s[1] = UMOVvi32
    mov z0.d, z1.d = ORR_ZZZ
    mov z0.s, #1 = DUP_ZI_S
    mov p0.b, p1.b = ORR_PPzPP
    not p0.b, p1/z, p2.b = EOR_PPzPP
    cmp x1, x2 = SUBSXrs
    cmp w0, 3 = SUBSWri
    cmp x1, w2, uxtw = SUBSXrx
    cmp sp, x1 = SUBSXrx64
    tst x0, #1 = ANDSXri
    cset w0, eq = CSINCWr
    cinc x0, x1, cs = CSINCXr
    csetm x0, ne = CSINVXr
    lsl x0, x1, #3 = UBFMXri
    lsl x0, x1, x2 = LSLVXr
    ror x0, x1, 3 = EXTRXrri
    neg x0, x1 = SUBXrs
    mvn x0, x1, lsl 2 = ORNXrs
    mul x0, x1, x2 = MADDXrrr
    smull x0, w1, w2 = SMADDLrrr
    sxtw x0, w1 = SBFMXri
    uxtb w0, w1 = UBFMWri
    ubfx x0, x1, 3, 5 = UBFMXri
    bfi x0, x1, 2, 3 = BFMXri
    sxtl v0.4s, v1.4h = SSHLLv4i16_shift
    fmov d0, #1.0 = FMOVDi
    fcmp d0, #0 = FCMPDri
    ret = RET
    b.any loop = Bcc
    mov z0.d, d1 = DUP_ZZI_D
    and x3, x3, -2 = ANDXri
    and w3, w3, #-2 = ANDWri
    nop = NOP
    b.eq .L3 = Bcc
    beq .L3 = Bcc
    b.cs 1f = Bcc
    bl memcpy = BL
    cbz x0, loop = CBZX
    tbz x0, 3, loop = TBZW
    tbz x0, 33, loop = TBZX
    adrp x0, table = ADRP
    stadd w0, [x1] = LDADDW
    ptrue p0.d = PTRUE_D
    cntd x0 = CNTD_XPiI
    incd x0 = INCD_XPiI
    ld1d z0.d, p0/z, [x0] = LD1D_IMM
    cmplt p0.s, p1/z, z2.s, z3.s = CMPGT_PPzZZ_S
    ld1 {v0.4s-v1.4s}, [x0] = LD1Twov4s
    mrs x0, fpcr = MRS
    add x0, sp, x1 = ADDXrx64
""")
RISCV64 = _pairs("""
    fadd.d fa0, fa1, fa2 = FADD_D
    fadd.d f10, f11, f12 = FADD_D
    fcvt.w.d a0, fa0 = FCVT_W_D
    ld a0, (a1) = LD
    ld a0, 8(sp) = LD
    lw a0, %lo(x)(a1) = LW
    add x10, x11, x12 = ADD
    add a0, a0, 1 = ADDI
    sll a0, a1, 3 = SLLI
    li a0, 5 = ADDI
    li a0, 0x5000 = LUI
    li a0, 100000 = LUI ADDIW
    mv a0, a1 = ADDI
    nop = ADDI
    ret = JALR
    j loop = JAL
    jal f = JAL
    jr a0 = JALR
    jalr a0 = JALR
    call memcpy = AUIPC JALR
    beq a0, a1, loop = BEQ
    beqz a0, 1b = BEQ
    bgt a0, a1, loop = BLT
    sext.w a0, a1 = ADDIW
    zext.w a0, a1 = ADD_UW
    seqz a0, a1 = SLTIU
    neg a0, a1 = SUB
    not a0, a1 = XORI
    fmv.d fa0, fa1 = FSGNJ_D
    fneg.s fa0, fa1 = FSGNJN_S
    fgt.d a0, fa0, fa1 = FLT_D
    csrr a0, vl = CSRRS
    csrw fflags, a0 = CSRRW
    rdcycle a0 = CSRRS
    vneg.v v8, v9 = VRSUB_VX
    vnot.v v8, v9, v0.t = VXOR_VI
    vmsge.vi v8, v9, 3 = VMSGT_VI
    vmclr.m v8 = VMXOR_MM
    vsetvli t0, a0, e32, m1 = VSETVLI
    pause = FENCE
    c.mv a0, a1 = C_MV
""")
X86_64 = _pairs("""
    vaddps (%rax){1to16}, %zmm1, %zmm0{%k1} = VADDPS (ZMM, K, ZMM, M32_1to16)
    vaddps (%rax){1to16}, %zmm1, %zmm0 = VADDPS (ZMM, ZMM, M32_1to16)
    vmovaps %zmm0, (%rax){%k1} = VMOVAPS (M512, K, ZMM)
    vaddps zmm0{k1}, zmm1, dword bcst [rax] = VADDPS (ZMM, K, ZMM, M32_1to16)
    vaddpd zmm0, zmm1, qword bcst [rax] = VADDPD (ZMM, ZMM, M64_1to8)
    movzx eax, byte [rbx] = MOVZX (R32, M8)
    movzx eax, word [rbx] = MOVZX (R32, M16)
    imul %rbx, %rax = IMUL (R64, R64)
    imulq (%rbx), %rax = IMUL (R64, M64)
    retq = RET_NEAR
    movzbl %al, %ecx = MOVZX (R32, R8l)
    movslq %eax, %rcx = MOVSXD (R64, R32)
    cltq = CDQE
    sal rdx, 4 = SHL (R64, I8)
    lea rax, -1[rcx] = LEA_B_D8 (R64)
    lea rax, [rcx-1] = LEA_B_D8 (R64)
    lea rax, table[rcx] = LEA_B_D32 (R64)
    leaq 8(%rax,%rbx,4), %rcx = LEA_B_IS_D8 (R64)
    addl $1, (%rax) = ADD (M32, I8)
    lock addl $1, (%rax) = ADD_LOCK (M32, I8)
    vaddps %ymm1, %ymm2, %ymm3 = VADDPS (YMM, YMM, YMM)
    fadd %st(1), %st = FADD (ST0, STi)
    movabs rax, 1234567890123 = MOV (R64, I64)
    shl rax = SHL (R64, 1)
    movsx rax, eax = MOVSXD (R64, R32)
    imul rax, 5 = IMUL (R64, R64, I8)
    cmpltsd xmm0, xmm1 = CMPSD_XMM (XMM, XMM, I8)
    vcmpeqps ymm0, ymm1, ymm2 = VCMPPS (YMM, YMM, YMM, I8)
    je .L3 = JZ (Rel8)
    call memcpy = CALL_NEAR (Rel32)
""")
MANUALS = _pairs("""
    imul r64, r/m64 = IMUL (R64, M64)
    shl r64, cl = SHL (R64, CL)
    add r8, imm8 = ADD (R8l, I8)
    vpaddd ymm1, ymm2, ymm3/m256 = VPADDD (YMM, YMM, M256)
    vaddps zmm1{k1}, zmm, m32bcst = VADDPS (ZMM, K, ZMM, M32_1to16)
    vpaddd ymm, ymm, m = VPADDD (YMM, YMM, M256)
    lea r64, m = LEA_B_I (R64)
    je rel8 = JZ (Rel8)
""")
BARE = {
    "aarch64": _pairs("""
        mov = ORRXrs MOVZXi ORRv16i8
        cmp = SUBSXrs SUBSWri
        cset = CSINCXr
        mul = MADDXrrr
        ret = RET
        nop = NOP
        lsl = UBFMXri LSLVXr
        tst = ANDSXri
        b.eq = Bcc
    """),
    "riscv64": _pairs("""
        li = ADDI LUI
        mv = ADDI
        j = JAL
        ret = JALR
        nop = ADDI
        call = AUIPC JALR
    """),
    "x86-64": _pairs("""
        ADD_R64_M64 = ADD (R64, M64)
        ADD_R64_R64 = ADD_01 (R64, R64)
        imulq = IMUL (R64, M64)
        mov = MOV_89
        ret = RET_NEAR
        nop = NOP
    """),
}


def ids(isa, pattern):
    return {form.id for form in select(load_table(isa), [pattern], expand=False)}


@pytest.mark.parametrize(("line", "expected"), AARCH64.items())
def test_aarch64(line, expected):
    assert ids("aarch64", line) == set(expected.split())


@pytest.mark.parametrize(("line", "expected"), RISCV64.items())
def test_riscv64(line, expected):
    assert ids("riscv64", line) == set(expected.split())


@pytest.mark.parametrize(("line", "expected"), [*X86_64.items(), *MANUALS.items()])
def test_x86_64(line, expected):
    assert expected in ids("x86-64", line)


@pytest.mark.parametrize(
    "line",
    ["movzx eax, byte [rbx]", "vaddps zmm0, zmm1, dword bcst [rax]", "mov r64, imm64", "shl m32, cl"],
)
def test_a_size_leaves_one_form(line):
    assert len(ids("x86-64", line)) == 1


@pytest.mark.parametrize(("isa", "name"), [(isa, name) for isa, names in BARE.items() for name in names])
def test_the_name_alone_finds_what_it_stands_for(isa, name):
    found = {each for form in ids(isa, name) for each in (form, form.partition(" ")[0])}
    expected = BARE[isa][name]
    assert expected in found or set(expected.split()) <= found


@pytest.mark.parametrize(
    ("isa", "line"),
    [
        ("aarch64", "mov x1, w2"),
        ("aarch64", "mov x1, #0x12345678"),  # takes two
        ("aarch64", "add x0, x1, foo"),  # no symbol there
        ("aarch64", "cset x0, x1"),
        ("riscv64", "mv a0, 5"),
        ("riscv64", "li a0, x"),
        ("riscv64", "add a0, a1, 5000"),
        ("x86-64", "vaddpd zmm0, zmm1, dword bcst [rax]"),
        ("x86-64", "vaddps zmm0, zmm1, zmmword bcst [rax]"),
        ("x86-64", "mov rax, dword [rbx]"),
        ("x86-64", "cmp 3, eax"),  # in AT&T's order, without its signs
        ("x86-64", "imul (R64, R32)"),
    ],
)
def test_what_no_assembler_takes_is_no_example(isa, line):
    with pytest.raises(UsageError, match="no instruction form matches"):
        ids(isa, line)


def test_an_assembler_is_asked_for_what_the_table_does_not_know():
    table = load_table("aarch64")
    asked = []

    def read(isa, text):
        asked.append((isa, text))
        return [table["MOVZXi"]]

    assert [form.id for form in select(table, ["frob x1, #1"], False, read)] == ["MOVZXi"]
    assert asked == [("aarch64", "frob x1, #1")]
    select(table, ["mov x1, x2", "LDRX*"], False, read)
    assert len(asked) == 1


def test_why_an_assembler_could_not_help_is_said():
    def read(isa, text):
        raise UsageError(f"no assembler for {isa} found")

    with pytest.raises(UsageError) as error:
        select(load_table("aarch64"), ["mov x1, #0x12345678"], False, read)
    assert "(no assembler for aarch64 found)" in error.value.message
    assert "there are" in error.value.remedy
