"""Blocks from Intel-syntax text, and a small machine whose costs can be counted on fingers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice

import msgspec

from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.isa.assembly.assemble import assemble
from cyclescope.isa.dataflow import sources, targets
from cyclescope.isa.table import load_table
from cyclescope.model.facts import Fact
from cyclescope.model.machine import DRAWN, MEASURED, Core, FormCost, MachineModel, Operation, Provenance

LOAD, FORWARD = 4.0, 7.0  # cycles from an address, from stored data
A, B, C, LOADS, STORES = range(5)
_LATENCY = {"IMUL": 3, "VADDPD": 4, "VMULPD": 4, "VFMADD231PD": 4, "DIV": 20, "BSR": 3}
_PORTS = {"IMUL": (A,), "VADDPD": (A, B), "VMULPD": (B,), "VFMADD231PD": (B,), "DIV": (A,)}
_NO_LATENCY = ("NOP", "PUSH", "POP")
SUM_LOOP = """sum:
    movq %rdi, %rdx
.L3:
    imulq (%rdx), %rax
    addq $8, %rdx
    cmpq %rcx, %rdx
    jne .L3
    ret
"""


def block(text: str, loop: bool = False) -> Block:
    """The block of a text in Intel syntax; lines are counted by semicolons."""
    return of_code(assemble(text).code, loop)


def of_code(code: bytes, loop: bool = False) -> Block:
    """The block of machine code."""
    reader, at, found = decoder("x86-64"), 0, []
    while at < len(code):
        one = reader.instruction(code[at:], at)
        found.append(msgspec.structs.replace(one, line=len(found) + 1))
        at += len(one.code)
    return Block(tuple(found), "x86-64", "test", loop=loop)


def pieces(texts: Sequence[str]) -> list[tuple[BlockInstruction, ...]]:
    """The instructions of each text, assembled together."""
    whole = iter(block("; ".join(texts)).instructions)
    return [tuple(islice(whole, text.count(";") + 1)) for text in texts]


def cost(form) -> FormCost:
    """One operation, loads and stores on ports of their own; every pair takes the form's latency."""
    latency = _LATENCY.get(form.mnemonic, 1)
    memory = [op for op in form.operands if op.is_memory]
    reads, writes = any(op.read for op in memory), any(op.write for op in memory)
    moves = form.mnemonic in ("MOV", "VMOVUPD", "PUSH", "POP", "VMOVSD")
    operations = [Operation((LOADS,))] * reads + [Operation((STORES,))] * writes
    if not (moves and memory) and "nop" not in form.attributes:
        operations.append(Operation(_PORTS.get(form.mnemonic, (A, B, C))))
    return FormCost(1.0, tuple(operations), _latencies(form, 0 if moves and memory else latency))


def _latencies(form, latency):
    if form.mnemonic in _NO_LATENCY:
        return {}
    found = {}
    for source in sources(form):
        for target in targets(form):
            through = source.part in ("address", "index") and form.operands[source.operand].is_memory
            if source.part != "data" and target.part != "data" and target.name != "RSP":
                found[f"{source.name}->{target.name}"] = latency + LOAD * through
    return found


def _is_wanted(form) -> bool:
    return "evex" not in form.attributes or form.mnemonic == "VADDPD"


@cache
def toy(name: str = "toy", **core) -> MachineModel:
    """Four slots a cycle, five ports: three that compute, one that loads, one that stores."""
    settings = {"width": 4.0, "load_latency": LOAD, "forward_latency": FORWARD} | core
    forms = {form.id: cost(form) for form in load_table("x86-64") if _is_wanted(form)}
    return MachineModel(
        name, "x86-64", Provenance(DRAWN), Core(**settings), ("a", "b", "c", "load", "store"), forms
    )


def changed(machine: MachineModel, **costs) -> MachineModel:
    """The machine with other costs; `_` stands for all that is no letter or digit in a form's id."""
    forms = dict(machine.forms)
    for name in machine.forms:
        key = "_".join("".join(c if c.isalnum() else " " for c in name).split())
        if key in costs:
            forms[name] = msgspec.structs.replace(forms[name], **costs[key])
    return msgspec.structs.replace(machine, forms=forms)


@cache
def predictor(name: str = "toy") -> Predictor:
    """The predictor of a toy machine."""
    return Predictor(toy(name))


def predict(text: str, name: str = "toy", loop: bool = False, **more):
    """The prediction of a text on a toy machine."""
    return predictor(name).predict(block(text, loop), **more)


def measured(*facts: Fact) -> MachineModel:
    """The toy machine as if it were measured, with what probes found."""
    return msgspec.structs.replace(toy(), provenance=Provenance(MEASURED), facts=facts)


def predicted(text: str, *facts: Fact, loop: bool = False, machine: MachineModel | None = None) -> Prediction:
    """What a text takes on a machine, or on the measured toy with these facts."""
    return Predictor(machine or measured(*facts)).predict(block(text, loop), simulate=False)
