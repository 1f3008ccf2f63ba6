"""Damaged inputs: whatever a file has become, a result or one clear line, soon and in little room."""

from __future__ import annotations

import resource
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cyclescope.analyze.choose.source import Choice, read_blocks
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import CyclescopeError
from cyclescope.report.predictions.text import analysis_text
from cyclescope.session.machines import load_model

CC = shutil.which("cc")
SECONDS, MEGABYTES = 5, 500
MACHINES = {"x86-64": "skylake", "aarch64": "neoverse-v1", "riscv64": "sifive-p670"}
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
FEW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(
    max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)

pytestmark = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")


def edited(text, edits):
    for what, where, length, token in edits:
        first = int(where * len(text))
        last = first + int(length * len(text)) if what != "insert" else first
        middle = {"delete": "", "copy": text[first:last] * 2}.get(what, token)
        text = text[:first] + middle + text[last:]
    return text


@cache
def predictor(isa):
    return Predictor(load_model(MACHINES[isa]))


def analysed(path):
    """Read and predict; what is raised is one line that says enough."""
    try:
        block = read_blocks(path, choice=Choice())[0]
        analysis_text(predictor(block.isa).predict(block, ignore_unknown=True))
    except CyclescopeError as error:
        assert "\n" not in str(error)
        assert 10 < len(str(error)) < 2000
        assert error.exit_code in (1, 2, 3)


def within_limits(path):
    """The same, in time (of the CPU: tests run beside each other) and memory."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    children, largest = sum(usage[:2]), usage.ru_maxrss  # of other tests: compilers, perhaps
    analysed(path)
    took = time.process_time() - start + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - children
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert took < SECONDS
    assert grown / 1024 < MEGABYTES
    copy = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # a child is one until it starts its program
    most = max(largest, copy, 1024 * MEGABYTES)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= most


def check_text(isa, edits):
    if not tools(isa):
        pytest.skip(f"no assembler for {isa}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k.s"
        path.write_text(edited(TEXTS[isa], edits), errors="surrogatepass")
        within_limits(path)


@pytest.mark.parametrize("isa", TEXTS)
@FEW
@given(edits=EDITS)
def test_damaged_texts(isa, edits):
    check_text(isa, edits)


@pytest.mark.slow
@pytest.mark.parametrize("isa", TEXTS)
@MANY
@given(edits=EDITS)
def test_many_damaged_texts(isa, edits):
    check_text(isa, edits)


# --- executables ----------------------------------------------------------------------------------

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
BYTES = st.lists(
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


def check_binary(name, edits, kept):
    data = bytearray(built(name))
    for where, new in edits:
        at = 4 + int(where * (len(data) - 5))
        data[at : at + len(new)] = new
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k"
        path.write_bytes(data[: 4 + int(kept * len(data))])
        within_limits(path)


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", BUILDS)
@FEW
@given(edits=BYTES, kept=st.just(1.0) | st.floats(0, 1))
def test_damaged_binaries(name, edits, kept):
    check_binary(name, edits, kept)


@pytest.mark.slow
@pytest.mark.skipif(CC is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", BUILDS)
@MANY
@given(edits=BYTES, kept=st.just(1.0) | st.floats(0, 1))
def test_many_damaged_binaries(name, edits, kept):
    check_binary(name, edits, kept)
