"""What `perf annotate --stdio2` and its terminal show: labels and arrows in place of addresses."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.read.assemblers import tools

pytestmark = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
TERMINAL = """\
Samples: 1K of event 'cpu-clock', 4000 Hz, Event count (approx.): 286500000
f() /tmp/f
Percent

            Disassembly of section .text:

            00000000000011c0 <f>:
            f():
            void f(float *a, unsigned n) {
              for (unsigned i = 0; i < n; i++)
  0.17        test   %rdx,%rdx
            ↓ je     30
              xor    %eax,%eax
        10:   vmovaps (%rdi,%rax,4),%zmm0{%k1}
              int x = a[i]
            → call   g
  3.14        add    $0x1,%rax
 88.57        cmp    %rax,%rdx
  2.27      ↑ jne    10
        30: ← ret
            ↑ jmp    other
"""


def test_what_perf_shows_on_a_terminal_is_assembly_text():
    found = read_block(TERMINAL)
    assert [one.text for one in found] == [
        "vmovaps (%rdi,%rax,4),%zmm0{%k1}", "call g", "add $0x1,%rax", "cmp %rax,%rdx", "jne .L10"
    ]  # fmt: skip
    assert (found.isa, found.loop, found.name, found.instructions[0].line) == (
        "x86-64",
        True,
        ".L10 in f",
        14,
    )
    whole = read_block(TERMINAL, choice=Choice(function="f", whole=True))
    assert [one.text.split()[0] for one in whole][-2:] == ["ret", "jmp"]
