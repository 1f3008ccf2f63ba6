"""Assembly texts and binaries to be damaged, and what happens to them."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

CC = shutil.which("cc")
TEXTS = {
    "x86-64": """\
\t.file "k.c"
\t.text
\t.globl f
\t.type f, @function
f:
\t.loc 1 3 1
\ttestq %rsi, %rsi
\tje .L4
\t.p2align 4,,10
# OSACA-BEGIN
.L3:
\t# LLVM-MCA-LATENCY 20
\tvmovsd (%rdi,%rax,8), %xmm1 /* a load */
\t# LLVM-MCA-LATENCY
\tvfmadd231sd .LC0(%rip), %xmm1, %xmm0
\taddq $1, %rax; cmpq %rax, %rsi
\tjne .L3
# OSACA-END
.L4:
\tmovl $222, %ebx
\t.byte 100, 103, 144
\t.rept 3
\tnop
\t.endr
\tret
\t.size f, .-f
\t.section .rodata
.LC0:\t.quad 0x3ff0000000000000
\t.ascii "# OSACA-BEGIN\\n"
\t.skip 24
""",
    "aarch64": """\
f:\tmov x1, #111 // OSACA START MARKER
\t.byte 213,3,32,31 // OSACA START MARKER
# LLVM-MCA-BEGIN a loop
.L3:\tldr d1, [x0], 8
\tfmadd d0, d1, d2, d0
\tsubs x2, x2, #1
\tb.ne .L3
# LLVM-MCA-END a loop
\tmov x1, #222 // OSACA END MARKER
\t.byte 213,3,32,31
\tret
""",
    "riscv64": """\
f:\tvsetvli a5, a2, e32, m2, ta, ma
# LLVM-MCA-RISCV-LMUL M4
# LLVM-MCA-BEGIN
.L3:\tvle32.v v8, (a0)
\tvfmacc.vv v16, v8, v24
\taddi a0, a0, 64
\tbne a0, a1, .L3
# LLVM-MCA-END
\tret
""",
}
TOKENS = [
    *("# OSACA-BEGIN\n", "# OSACA-END\n", "# LLVM-MCA-BEGIN b\n", "# LLVM-MCA-END b\n", "# IACA START\n"),
    *("# LLVM-MCA-LATENCY 99\n", "# LLVM-MCA-LATENCY x\n", "# LLVM-MCA-RISCV-SEW E8\n", "/*", "*/", '"'),
    *(".rept 999999999\n", ".endr\n", ".skip 99999999999\n", ".macro m\n", "m\n", ".endm\n", "m x\n"),
    *(".p2align 40\n", '.incbin "/dev/zero"\n', '.include "/dev/zero"\n', ".org 0x7fffffffffff\n", "\x1b[2J"),
    *("\0", "\r", "\x0c", "\u2028", "\u202e", "#", "//", ";", ":", ",", "$", "%", "(", "[", "{", "\t", "\n"),
    *("0x", "99999999999999999999", "nan", "LOCK ", ".text\n", ".data\n", "\udc80", "jne .L3\n", "a" * 5000),
    *("include listing.inc\n", "f PROC\n", "f ENDP\n", "_TEXT SEGMENT\n", "  401000:\t55 \tpush %rbp\n"),
]  # fmt: skip
EDITS = st.lists(
    st.tuples(st.sampled_from(["replace", "insert", "delete", "copy"]), st.floats(0, 1), st.floats(0, 0.2),
              st.sampled_from(TOKENS) | st.text(max_size=4)),
    max_size=5,
)  # fmt: skip


def edited(text, edits):
    for what, where, length, token in edits:
        first = int(where * len(text))
        last = first + int(length * len(text)) if what != "insert" else first
        middle = {"delete": "", "copy": text[first:last] * 2}.get(what, token)
        text = text[:first] + middle + text[last:]
    return text


SOURCE = """
static double square(double x) { return x * x; }
double norm(const double *a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++)
    s += square(a[i]);
  return s;
}
int main(int argc, char **argv) { double x[2] = {1, argc}; return (int)norm(x, 2); }
"""
BUILDS = {
    "object": ("-c", "-gdwarf-5"), "library": ("-shared", "-fPIC", "-gdwarf-4", "-nostdlib"),
    "packed": ("-c", "-g", "-gz"), "plain": ("-c",),
}  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8) | st.sampled_from([b"\xff" * 8, b"\0" * 8])),
    max_size=6,
)


@cache
def built(name):
    with TemporaryDirectory() as folder:
        source, output = Path(folder) / "k.c", Path(folder) / "k"
        source.write_text(SOURCE)
        subprocess.run([CC, "-O2", *BUILDS[name], str(source), "-o", str(output)], check=True)
        return output.read_bytes()


def changed(data, edits):
    """Bytes with others in their place, behind the first four, which say what it is."""
    found = bytearray(data)
    for where, new in edits:
        at = 4 + int(where * (len(found) - 5))
        found[at : at + len(new)] = new
    return bytes(found)
