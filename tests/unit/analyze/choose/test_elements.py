"""How many elements a pass of a loop is about: arithmetic says it, moves of whole vectors do not."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import read_block
from cyclescope.analyze.read.assembler import tools

X86 = {
    # moves of single precision around arithmetic of double precision: what compilers write
    "vmovups ymm0, [rdi]; vfmadd213pd ymm0, ymm1, [rsi]; vmovups [rdi], ymm0; add rdi, 32": 4,
    "movupd xmm0, [rdi]; addps xmm0, xmm1; movups [rdi], xmm0; add rdi, 16": 4,
    "vmovdqu ymm0, [rdi]; vpaddb ymm0, ymm0, ymm1; vmovdqu [rdi], ymm0; add rdi, 32": 32,
    "vmovdqu ymm0, [rdi]; vpaddq ymm0, ymm0, ymm1; vmovdqu [rdi], ymm0; add rdi, 64": 8,
    "vaddsd xmm0, xmm0, [rdi]; add rdi, 8": 1,
    "mov eax, [rdi]; add eax, 1; mov [rdi], eax; add rdi, 8": 2,
    "mov eax, [rdi]; sub rdi, 12": 3,
    "mov al, [rdi]; inc rdi": 1,
    "mov al, [rdi]; dec rdi": 1,
    "mov al, [rdi]; dec rdi; dec rdi": 2,
    # the same pointer, in bytes and in words of 8: one element
    "movzx eax, byte ptr [rsi + rcx]; mov [rdi + rcx*8], rax; add rcx, 1": 1,
    # what is accessed has a type of its own
    "vcvtps2pd ymm0, [rdi]; vmovups [rsi], ymm0; vmovups [rsi], ymm1; add rdi, 16": 4,
    "vmovdqu32 zmm0{k1}{z}, [rdi]; vmovdqu32 [rdi]{k1}, zmm0; add rdi, 64": 16,
    # nothing says how wide the elements are
    "vmovups ymm0, [rdi]; vmovups [rdi + 4096], ymm0; add rdi, 32": None,
    "vmovdqu ymm0, [rdi]; vpxor ymm0, ymm0, ymm1; vmovdqu [rdi], ymm0; add rdi, 32": None,
    # widths that differ
    "vmovups xmm0, [rdi]; vcvtps2pd ymm0, xmm0; vaddpd ymm1, ymm1, ymm0; add rdi, 16": None,
    "vmovups ymm0, [rdi]; vaddps ymm0, ymm0, ymm1; vaddpd ymm2, ymm2, ymm0; add rdi, 32": None,
    "mov al, [rdi]; mov [rdi + 8], rax; add rdi, 8": None,
    # three bytes make one
    "mov al, [rsi]; mov bl, [rsi + 1]; mov cl, [rsi + 2]; mov [rdi], al; add rsi, 3; inc rdi": None,
    "mov rax, [rdi]; add rdi, 1": None,
}
AARCH64 = {
    "ldr q0, [x0]; fmla v1.2d, v0.2d, v2.2d; str q1, [x0], 16": 2,
    "ldp q0, q1, [x0]; fadd v0.4s, v0.4s, v1.4s; stp q0, q1, [x0], 32": 8,
    "ldr q0, [x0]; add v0.16b, v0.16b, v1.16b; str q0, [x0], 16": 16,
    "ldp x2, x3, [x0]; stp x2, x3, [x1]; add x0, x0, 16": 2,
    "ld1 {v0.8h}, [x0]; st1 {v0.8h}, [x0], 16": 8,
    "ldr d0, [x0]; fadd d1, d1, d0; add x0, x0, 8": 1,
    "ldr d0, [x0]; fadd v1.2s, v1.2s, v0.2s; add x0, x0, 8": 2,
    "ldp q0, q1, [x0]; stp q0, q1, [x0], 32": None,
    "ldr q0, [x0]; eor v0.16b, v0.16b, v1.16b; str q0, [x0], 16": None,
    "ldr d0, [x0]; uxtl v0.8h, v0.8b; add v1.8h, v1.8h, v0.8h; add x0, x0, 8": None,
}

RISCV = {
    "lw a0, 0(a1); addi a1, a1, 8": 2,
    "lw a0, 0(a1); addiw a1, a1, 8": 2,  # of 32 bits, as x86-64's additions are
    "ld a0, 0(sp); addi sp, sp, 32": 4,  # the short form moves the stack pointer alone
    "fld fa0, 0(a1); fadd.d fa1, fa1, fa0; addi a1, a1, 8": 1,
    "lw a0, 0(a1); slli a1, a1, 8": None,
}


def elements(text, isa, branch):
    lines = text.replace("; ", "\n ")
    found = read_block(f".L1:\n {lines}\n {branch}\n", isa, syntax="intel" if isa == "x86-64" else "")
    return found.unroll and found.unroll.elements


@pytest.mark.parametrize(("text", "wanted"), X86.items())
def test_x86(text, wanted):
    assert elements(".intel_syntax noprefix; " + text, "x86-64", "cmp r8, r9\n jne .L1") == wanted


@pytest.mark.skipif(not tools("aarch64"), reason="needs an assembler for aarch64")
@pytest.mark.parametrize(("text", "wanted"), AARCH64.items())
def test_aarch64(text, wanted):
    assert elements(text, "aarch64", "cmp x8, x9\n bne .L1") == wanted


@pytest.mark.skipif(not tools("riscv64"), reason="needs an assembler for riscv64")
@pytest.mark.parametrize(("text", "wanted"), RISCV.items())
def test_riscv(text, wanted):
    assert elements(text, "riscv64", "bne a6, a7, .L1") == wanted
