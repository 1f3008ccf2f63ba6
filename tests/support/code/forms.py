"""Forms of every kind to try a campaign on, and what a truth says about their pairs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from cyclescope.isa.dataflow import Node, Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import domain, register_number
from cyclescope.isa.table import Table
from cyclescope.isa.x86_64.unmeasurable import unmeasurable
from cyclescope.kernel.x86_64.values import is_division
from tests.support.code.decoded import Decoded
from tests.support.made.truth import Truth

_LEFT_OUT = {
    "branch", "call", "return", "rep", "repne", "string", "vsib", "serializing", "state_save", "interrupt",
    "nontemporal", "x87_control", "nop",
}  # fmt: skip
_NO_TIME = {
    "CPUID", "XGETBV", "RDTSC", "RDTSCP", "RDRAND", "RDSEED", "RDPID", "RDPRU", "LEAVE", "ENTER", "PAUSE",
    "EMMS", "FEMMS", "VZEROALL", "VZEROUPPER", "STD", "CLD", "XLATB", "LDMXCSR", "STMXCSR", "VLDMXCSR",
    "VSTMXCSR", "AESENC256KL", "AESDEC256KL", "AESENCWIDE256KL", "AESDECWIDE256KL", "STTILECFG", "CLZERO",
    "WAIT", "LAHF", "SAHF",
}  # fmt: skip


def _files(form: InstructionForm) -> set[str]:
    return {domain(op.cls) for op in form.operands if op.is_register}


def _memory(form: InstructionForm) -> tuple[bool, bool]:
    if form.memory < 0:
        return False, False
    op = form.operands[form.memory]
    return op.read, op.write


def _general(form: InstructionForm) -> bool:
    return _files(form) <= {"r"} and "lea" not in form.attributes and not is_division(form)


GROUPS: dict[str, tuple[int, Callable[[InstructionForm], bool]]] = {
    "general": (45, lambda f: _general(f) and f.memory < 0 and not f.mnemonic.startswith("CMOV")),
    "conditional moves": (8, lambda f: f.mnemonic.startswith("CMOV")),
    "high bytes": (20, lambda f: "h" in _files(f) and f.memory < 0),
    "high bytes and memory": (6, lambda f: "h" in _files(f) and f.memory >= 0),
    "loads": (20, lambda f: _general(f) and _memory(f) == (True, False)),
    "stores": (12, lambda f: _general(f) and _memory(f) == (False, True)),
    "read-modify-write": (14, lambda f: _general(f) and _memory(f) == (True, True)),
    "lea": (8, lambda f: "lea" in f.attributes),
    "stack": (6, lambda f: "stack" in f.attributes),
    "sse": (20, lambda f: _files(f) == {"v"} and not f.is_vex and f.memory < 0),
    "sse memory": (12, lambda f: _files(f) == {"v"} and not f.is_vex and f.memory >= 0),
    "avx": (24, lambda f: _files(f) == {"v"} and "vex" in f.attributes and f.memory < 0),
    "avx memory": (12, lambda f: _files(f) == {"v"} and "vex" in f.attributes and f.memory >= 0),
    "avx-512": (12, lambda f: _files(f) == {"v"} and "evex" in f.attributes and f.memory < 0),
    "masked": (16, lambda f: "masked" in f.attributes and f.memory < 0),
    "masked memory": (12, lambda f: "masked" in f.attributes and f.memory >= 0),
    "broadcast": (6, lambda f: "broadcast" in f.attributes),
    "masks": (10, lambda f: _files(f) == {"k"}),
    "between domains": (16, lambda f: len(_files(f) & set("rvkm")) > 1 and "masked" not in f.attributes),
    "mmx": (8, lambda f: _files(f) == {"m"}),
    "division": (14, lambda f: is_division(f) and "x87" not in f.attributes),
    "x87": (14, lambda f: "x87" in f.attributes),
}  # fmt: skip
ALWAYS = (
    "ADC_11 (R64, R64)", "XOR_31 (R64, R64)", "MOV_89 (R64, R64)", "IMUL (R64, R64)", "MUL (R64)",
    "XADD (R64, R64)", "SHL (R64, CL)", "VPXOR (XMM, XMM, XMM)", "VADDPD (YMM, YMM, YMM)", "PUSH (R64)",
    "POP (R64)", "DIV (R64)", "VDIVPD (YMM, YMM, YMM)", "MOV_88 (R8h, R8l)", "MOV (R64, M64)",
    "MOV (M64, R64)", "ADD (M64, R64)", "VADDPS (ZMM, K, ZMM, ZMM)", "KMOVQ (K, R64)", "VMOVQ (R64, XMM)",
    "FADD (ST0, STi)", "FLD (M64)", "BSF (R64, R64)",
)  # fmt: skip


def usable(form: InstructionForm) -> bool:
    """Whether the simulated core says anything about the form's time."""
    padlock = any(name.startswith("PADLOCK") for name in form.features)  # walks through memory
    return (
        not unmeasurable(form)
        and not padlock
        and form.attributes.isdisjoint(_LEFT_OUT)
        and form.mnemonic not in _NO_TIME
    )


def groups(table: Table, seed: int = 1) -> Iterator[tuple[str, list[InstructionForm]]]:
    """Some forms of every group, always the same ones, that the core has."""
    every = [form for form in table if usable(form)]
    for name, (count, belongs) in GROUPS.items():
        members = [form for form in every if belongs(form)]
        yield name, random.Random(f"{seed} {name}").sample(members, min(count, len(members)))


def chosen(table: Table, seed: int = 1) -> list[InstructionForm]:
    """Some 300 forms over all groups."""
    found = {form.id: form for _, forms in groups(table, seed) for form in forms}
    found |= {form_id: table[form_id] for form_id in ALWAYS}
    return list(found.values())


# --- the truth about a pair ---------------------------------------------------------------------


def role(form: InstructionForm, node: Node, ins: Decoded) -> str:
    """The decoder's role of one end of a pair, "" where the instruction has no such operand."""
    if node.part == "flag":
        return f"flag.{node.flag}"
    op = form.operands[node.operand]
    if "masked" in form.attributes and node.operand == 1:
        return "mask"
    if op.implicit:
        return _implicit(op.fixed, op.is_memory, ins)
    shown = [i for i, o in enumerate(form.operands) if not o.implicit]
    number = shown.index(node.operand) - ("masked" in form.attributes and node.operand > 1)
    return {"register": "op", "data": "data", "address": "base", "index": "index"}[node.part] + str(number)


def _implicit(fixed: str, memory: bool, ins: Decoded) -> str:
    cls, number = register_number(fixed)
    letter = domain(cls)
    where = f"r{number - 4}" if letter == "h" else f"{letter}{number}"
    if memory:
        return f"data.{where}"
    return next((r for r, w in (*ins.targets, *ins.sources) if w == where), "")


def expected(
    truth: Truth, form: InstructionForm, pair: Pair, ins: Decoded, slow: bool = False
) -> float | None:
    """The pair's true latency; None where the instruction has no such source or target."""
    source, target = role(form, pair.source, ins), role(form, pair.target, ins)
    sources = {r for r, _ in ins.sources} | {f"data{m.position}" for m in ins.memory if m.read}
    targets = {r for r, _ in ins.targets} | {f"data{m.position}" for m in ins.memory if m.write}
    if source not in sources and not source.startswith("index"):
        return None
    if target not in targets:
        return None
    return truth.latency(ins, source, target, slow)
