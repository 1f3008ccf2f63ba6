"""Small kernels whose time was measured on a Zen 3, or whose analysis was published, with LLVM's models.

The cycles are medians of seven runs on a Zen 3 cloud VM; `lcd` is what they show of dependencies. Where the
prediction is another, `why` says whose data it is: the analysis is exact for what the model states.
"""

from __future__ import annotations

import shutil
from typing import NamedTuple

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.session.predict import predict

pytestmark = pytest.mark.skipif(shutil.which("as") is None, reason="needs as of binutils")
WHOLE = Choice(whole=True)


class Kernel(NamedTuple):
    """AT&T text; measured cycles and loop-carried part; what comes out where that is not the same."""

    text: str
    measured: float
    lcd: float
    predicted: float | None = None
    predicted_lcd: float | None = None
    why: str = ""


ZEN3 = {
    "carry chain": Kernel("adcq %rbx, %rax; adcq %rcx, %rdx", 1.988, 2),
    "sum": Kernel(
        "addsd (%rdi), %xmm0; addsd 8(%rdi), %xmm0; addsd 16(%rdi), %xmm0; addsd 24(%rdi), %xmm0", 11.94, 12
    ),
    "five additions": Kernel("; ".join(f"addq $1, %r{r}" for r in ("ax", "bx", "cx", "dx", "si")), 1.24, 1),
    "rbp and ebp": Kernel("addq $1, %rbp; addl $1, %ebp", 1.99, 2),
    "cmp to cmov": Kernel("cmpl $60, %esi; movl $60, %eax; cmovgl %eax, %esi", 1.988, 2),
    "division": Kernel("vdivsd %xmm1, %xmm2, %xmm3", 4.477, 0, 5, why="LLVM: the divider is busy 5 cycles"),
    "accumulator": Kernel("vfmadd231sd %xmm1, %xmm2, %xmm0", 3.976, 4),
    "multiplicand": Kernel("vfmadd213sd %xmm1, %xmm2, %xmm0", 3.976, 4),
    "forwarding": Kernel(
        "movq %rax, 8(%rdi); movq 8(%rdi), %rax; addq $1, %rax", 7.558, 7.5, 7, 7,
        "no forwarding latency is published: the load's 4 and 2",
    ),
    "forwarding by the stack": Kernel("movq %rax, 8(%rsp); movq 8(%rsp), %rax", 0.997, 1, None, 0,
                                      "renamed: nothing is left of the chain but a store each cycle"),
    "multiplication": Kernel("imulq %rax, %rax", 2.979, 3),
    "lea and mov": Kernel("leaq 1(%rbx), %r12; movq %r12, %rbx", 0.997, 1),
    "three loads": Kernel("movq (%rdi), %rax; movq 8(%rdi), %rbx; movq 16(%rdi), %rcx", 1.005, 0),
    "moves": Kernel("movq %rax, %rbx; movq %rbx, %rcx; movq %rcx, %rax", 0.517, 0),
    "movzx": Kernel("movzbl %al, %eax; addl $1, %eax", 1.988, 2),
    "nops": Kernel("nop; nop; nop; nop", 0.711, 0, 4 / 6,
                   why="a loop of four instructions is not quite as fast"),
    "pops": Kernel("; ".join(f"popq %r{r}" for r in (15, 14, 13, 12, "bp", "bx")), 4.423, 0, 2,
                   why="the measured loop walks out of the cache lines that are at hand"),
    "pointer": Kernel("movq (%rax), %rax", 3.983, 4),
    "pushes": Kernel("; ".join(f"pushq %r{r}" for r in (15, 14, 13, 12, "bp", "bx")), 6.835, 0, 3,
                     why="as the pops"),
    "memory destination": Kernel("addq $1, (%rax)", 6.193, 6, 7, 7, "no forwarding latency is published"),
    "memory destination on the stack": Kernel("addq $1, 64(%rsp)", 1.026, 1),
    "shld": Kernel("shldq $3, %rax, %rbx", 1.988, 2),
    "stores apart": Kernel("movq %rsi, (%rdi); movq %rsi, 64(%rdi)", 1.988, 0),
    "stores together": Kernel("movq %rsi, (%rdi); movq %rsi, 8(%rdi)", 0.991, 0),
    "swap": Kernel("movq %rax, %rcx; movq %rbx, %rax; imulq %rcx, %rcx; movq %rcx, %rbx", 1.487, 1.5),
    "two kinds of pipes": Kernel(
        "vaddpd %ymm1, %ymm2, %ymm3; vaddpd %ymm1, %ymm2, %ymm4; vmulpd %ymm1, %ymm2, %ymm5; "
        "vmulpd %ymm1, %ymm2, %ymm6", 0.992, 0,
    ),
    "zero idiom": Kernel("xorl %eax, %eax; addq %rbx, %rax; imulq %rax, %rbx", 3.976, 4),
}  # fmt: skip


def analysed(text, machine="znver3"):
    return predict(read_block(text.replace("; ", "\n") + "\n", "x86-64", WHOLE), machine)


@pytest.mark.parametrize("name", ZEN3)
def test_zen3(name):
    kernel = ZEN3[name]
    found = analysed(kernel.text)
    cycles = kernel.measured if kernel.predicted is None else kernel.predicted
    assert found.cycles == pytest.approx(cycles, rel=0.04)
    assert found.lcd == pytest.approx(kernel.lcd if kernel.predicted_lcd is None else kernel.predicted_lcd)
    deviates = kernel.predicted is not None or kernel.predicted_lcd is not None
    assert bool(kernel.why) == deviates


# STREAM triad as clang 20.1 -O3 compiles it; ports and LCD as published for Sandy Bridge in the thesis on
# WINIC (FAU 2025, figure 2).
TRIAD = """.L8:
    movsd (%rsi,%rcx,8), %xmm1
    mulsd (%rdx,%rcx,8), %xmm1
    addsd %xmm0, %xmm1
    movsd %xmm1, (%rax,%rcx,8)
    incq %rcx
    cmpq %rcx, %rdi
    jne .L8
"""


def test_triad_on_sandy_bridge():
    found = predict(TRIAD, "snb")
    assert (found.loop, found.lcd) == (True, 1)
    ports = {name: round(cycles, 2) for name, cycles in found.ports.items() if cycles}
    assert [ports[p] for p in ("0", "1", "5", "23.0", "23.1", "4")] == [1.33, 1.33, 1.33, 1.5, 1.5, 1]
    assert found.bounds["ports"] == 1.5
    # 7 slots: LLVM counts micro-operations, of which a core of four slots fuses none with an index
    assert found.bounds["front_end"] == 7 / 4
    assert found.cp == 6 + 5 + 3  # LLVM's latencies; published 12 with loads of 4 cycles


# The same with vectors, by hand; OSACA has 1.5 cycles and LCD 1 for a Cascade Lake, 1 and 1 for a Zen 3.
VECTOR_TRIAD = """.L10:
    vmovapd (%r15,%rax), %ymm0
    vfmadd213pd (%r12,%rax), %ymm3, %ymm0
    vmovapd %ymm0, 0(%r13,%rax)
    addq $32, %rax
    cmpq %rax, %r14
    jne .L10
"""


def test_vector_triad_on_cascade_lake():
    found = predict(VECTOR_TRIAD, "csx")
    assert (found.cycles, found.lcd) == (1.5, 1)
    assert (found.full, found.bounds["ports_fixed"]) == (("2", "3"), 1.5)
    # port 7 makes addresses of stores, but none with an index
    plain = predict(VECTOR_TRIAD.replace("0(%r13,%rax)", "(%r13)"), "csx")
    assert plain.bounds["ports"] == 1
    assert plain.ports["7"] > 0
    assert "7" in found.ports
    assert found.ports["7"] == 0


def test_vector_triad_on_zen_3():
    found = predict(VECTOR_TRIAD, "zen3")
    assert found.lcd == 1
    # LLVM: vector loads and stores take one of the two ports to general registers as well; without, it is 1
    assert (found.bounds["ports"], found.full) == (1.5, ("FP45.0", "FP45.1"))
    assert max(cycles for name, cycles in found.ports.items() if not name.startswith("FP45")) == 1
