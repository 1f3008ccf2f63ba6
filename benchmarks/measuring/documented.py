"""`bench` on examples whose cycles are documented: nanoBench's, and kernels of Agner Fog's scripts.

    python -m benchmarks.measuring.documented

Each is typed as its source has it. Those of every core take what their chain of additions says; those of one
microarchitecture are compared where it is this one. A reading that is not `ok` claims nothing and is counted
apart.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.lib.common import Check, at_least, parser, present, table
from benchmarks.lib.processes import run
from cyclescope.errors import UsageError
from cyclescope.infer.api import open_backend
from cyclescope.measure.record import STABLE

WITHIN = 0.01  # relative
EVERY, ZEN3, ZENS = (), ("znver3",), ("znver3", "znver4")
NANOBENCH, SCRIPTS = "nanoBench, README", "Agner Fog, test programs"
GUIDE = "AMD, optimization guides 56665 and 57647"  # of a Zen 3, and of a Zen 4
_CHASE = ("-asm_init", "mov [R14], R14")
_COPIES = ("-unroll_count", "100", "-loop_count", "100")


class Documented(NamedTuple):
    """Code with options, cycles of a copy, on which cores, and who says so."""

    code: str
    cycles: float
    cores: tuple[str, ...]
    source: str
    options: tuple[str, ...] = ()


EXAMPLES = (
    Documented("ADD RAX, RBX; add RBX, RAX", 2.0, EVERY, NANOBENCH),
    Documented("ADD RAX, RBX; add RBX, RAX", 2.0, EVERY, NANOBENCH, _COPIES),
    Documented("ADD RAX, RBX; add RBX, RAX", 2.0, EVERY, NANOBENCH, ("-loop_count", "0")),
    Documented(
        "MOV R15, 10000; L: DEC R15; JNZ L", 10_000.0, EVERY, NANOBENCH,
        ("-unroll_count", "1", "-loop_count", "0"),
    ),
    Documented("100*|add rax, rbx; add rax, rcx;|", 200.0, EVERY, NANOBENCH),
    Documented("mov R14, [R14]", 4.0, ZENS, GUIDE, _CHASE),
    Documented("mov R14, [R14]", 4.0, ZENS, GUIDE, (*_CHASE, "-loop_count", "0")),
    Documented("mov R14, [R14]", 4.0, ZENS, GUIDE, (*_CHASE, *_COPIES)),
    Documented("12*|nop|", 2.0, ZEN3, GUIDE),
    Documented("imul rax, rbx", 3.0, ZENS, GUIDE),
    Documented("add rax, 1; mov rbx, rax; mov rax, rbx", 1.0, ZENS, SCRIPTS),
    Documented("add eax, 1; mov ebx, eax; mov eax, ebx", 1.0, ZENS, SCRIPTS),
    Documented("add ax, 1; mov bx, ax; mov ax, bx", 3.0, ZENS, SCRIPTS),
    Documented("movzx eax, bl; movzx ebx, al", 2.0, ZENS, SCRIPTS),
    Documented("inc al; inc ax", 2.0, EVERY, SCRIPTS),
    Documented("paddd xmm0, xmm1; addps xmm0, xmm1", 6.0, ZEN3, SCRIPTS),
    Documented("paddd xmm0, xmm1; por xmm0, xmm1", 2.0, ZENS, SCRIPTS),
    Documented("imul rax, rbx; xor eax, eax", 1.0, ZENS, SCRIPTS),
    Documented("mov r8, [r14]; mov r9, [r14+8]; mov r10, [r14+16]", 1.0, ZENS, SCRIPTS),
    Documented("mov r8, [r14]; mov r9, [r14+8]; mov [r14+16], rax", 1.0, ZENS, SCRIPTS),
    Documented("mov [r14], rax; mov [r14+8], rbx", 1.0, ZENS, SCRIPTS),
    Documented("vmovaps [r14], ymm0", 1.0, ZENS, SCRIPTS),
    Documented("vmovaps ymm0, [r14]; vmovaps ymm1, [r14+32]", 1.0, ZENS, SCRIPTS),
    Documented("mov [rsp+8], rax; mov rax, [rsp+8]; add rax, 1", 1.0, ZENS, SCRIPTS),
    Documented("jmp 1f; 1: jmp 2f; 2:", 2.0, ZEN3, SCRIPTS),
    Documented("2*|cmp rax, rbx; jz 1f; 1: nop; nop; nop; nop; nop;|", 2.0, ZEN3, SCRIPTS),
)  # fmt: skip


class Read(NamedTuple):
    """What was read of an example; `cycles` is None where the reading is not `ok`."""

    example: Documented
    cycles: float | None
    error: float
    told: str

    @property
    def is_off(self) -> bool:
        """Whether it is another number."""
        return self.cycles is not None and abs(self.cycles / self.example.cycles - 1) > WITHIN


def read(examples: Sequence[Documented]) -> Iterator[Read]:
    """All of them, one after the other."""
    for one in examples:
        done = run("bench", "-asm", one.code, *one.options, "--json")
        if not done.out:
            yield Read(one, None, 0.0, done.err.strip())
            continue
        said = json.loads(done.out)
        is_ok = said["verdict"] == STABLE
        yield Read(one, said["cycles"] if is_ok else None, said["spread"], said["verdict"])


def documented() -> list[Check]:
    """Every example that holds on this core."""
    backend, identity = open_backend()
    backend.close()
    known = [one for one in EXAMPLES if not one.cores or identity.llvm in one.cores]
    found = list(read(known))
    head = ("code", "options", "documented", "read", "+-", "by", "")
    rows = [
        (
            one.example.code, " ".join(one.example.options), f"{one.example.cycles:g}",
            "" if one.cycles is None else f"{one.cycles:.4g}", f"{one.error:.3g}", one.example.source,
            "differs" if one.is_off else one.told,
        )
        for one in found
    ]  # fmt: skip
    print(f"{table(head, rows)}\n")
    clean = [one for one in found if one.cycles is not None]
    if not clean:
        raise UsageError("no reading is clean", "stop other programs, and try again")
    apart = [abs(one.cycles / one.example.cycles - 1) for one in clean if one.cycles is not None]
    return [
        Check("readings that are ok", f"{len(clean)} of {len(found)}"),
        at_least(f"the same within {WITHIN:.0%}", sum(not one.is_off for one in clean), len(clean), 1),
        Check("apart, median", f"{statistics.median(apart):.2%}"),
    ]


def main() -> None:
    """Command line."""
    parser(__doc__).parse_args()
    present("documented examples", documented)


if __name__ == "__main__":
    main()
