"""Machine models to exchange: some forms of every kind, with drawn costs."""

from __future__ import annotations

import random

import msgspec

from cyclescope.isa.dataflow import pairs
from cyclescope.isa.table import load_table
from cyclescope.model.facts import IN_FLIGHT, MISPREDICTION, WRONG_BRANCH, CoreAnswer, Fact, InFlight
from cyclescope.model.machine import MEASURED, Core, FormCost, MachineModel, Operation, Provenance

X86 = (
    "ADD_01 (R64, R64)", "ADD (M64, R64)", "ADD (R64, I8)", "ADC_11 (R64, R64)", "IMUL (R64, R64)",
    "MUL (R64)", "DIV (R64)", "SHL (R64, I8)", "MOV (R64, M64)", "MOV (M64, R64)", "MOVUPS (XMM, M128)",
    "MOVUPS (M128, XMM)", "VADDPD (YMM, YMM, M256)", "VADDPD (YMM, YMM, YMM)", "VADDPD (ZMM, K, ZMM, ZMM)",
    "VFMADD231PD (YMM, YMM, YMM)", "LEA_B_I_D8 (R64)", "MOVSB", "JNZ (Rel8)", "CMOVZ (R64, R64)",
    "SETZ (R8l)", "XCHG (R64, R64)", "VPGATHERDD (XMM, VSIB_XMM, XMM)", "FADD (ST0, STi)",
    "ADD_LOCK (M64, R64)",
)  # fmt: skip
OTHERS = {
    "aarch64": ("FMADDDrrr", "ADDXrs", "LDRXui", "XTNv16i8", "ADCSXr", "ADDVv16i8v"),
    "riscv64": ("ADD", "LD", "FMADD_D", "VMACC_VV", "MULHU", "FADD_D"),
}
# What probes found of a core that has 442 entries for instructions and 205 registers for integers.
SIZES = (
    *(Fact(IN_FLIGHT, InFlight[name], CoreAnswer.VALUE, value, 0.5, "instructions") for name, value in (
        ("NOPS", 442.0), ("ADDITIONS", 205.5), ("VECTORS", 329.5), ("LOADS", 205.0), ("STORES", 104.0))),
    Fact(MISPREDICTION, WRONG_BRANCH, CoreAnswer.VALUE, 18.4, 0.2, "cycles"),
)  # fmt: skip
PORTS = ("0", "1", "2", "3", "4", "a")


def exchanged(seed: int = 0, isa: str = "x86-64") -> MachineModel:
    """A measured machine with costs drawn from a seed."""
    chance = random.Random(seed)
    table = load_table(isa)
    chosen = X86 if isa == "x86-64" else OTHERS.get(isa, [form.id for form in table][:6])
    names = [name for name in chosen if table.get(name) is not None]
    costs = {name: _cost(chance, table[name]) for name in names}
    provenance = Provenance(MEASURED, "drawn in a test", date="2026-11-22T00:00:00+00:00")
    core = Core(6, load_latency=4, forward_latency=7)
    return MachineModel("a machine znver9", isa, provenance, core, PORTS, costs)


def suited(name: str, seed: int = 0) -> MachineModel:
    """A machine that a format can be written of."""
    return exchanged(seed, "aarch64" if name == "slothy" else "x86-64")


def _cost(chance: random.Random, form) -> FormCost:
    latencies, ranges = {}, {}
    for pair in pairs(form):
        name = f"{pair.source.name}->{pair.target.name}"
        kind = chance.choice(("exact", "exact", "fraction", "bound", "interval", "convention", "none"))
        value = float(chance.randint(1, 9))
        if kind in ("exact", "convention"):
            latencies[name] = value
        if kind == "fraction":
            latencies[name] = value + round(chance.random(), 3)
        if kind in ("interval", "convention"):
            ranges[name] = (value - 0.5, value + 1.25)
        if kind == "bound":
            ranges[name] = (0.0, value)
    return FormCost(
        float(chance.randint(1, 4)),
        _operations(chance),
        latencies,
        round(chance.uniform(0.2, 12), 3),
        confidence=chance.choice(("high", "low")),
        idiom=chance.choice(("", "zero")),
        note=chance.choice(("", "a <note> & 'quotes', with commas; and more")),
        ranges=ranges,
    )


def _operations(chance: random.Random) -> tuple[Operation, ...] | None:
    sets = chance.sample(((0, 1), (2,), (3, 4, 5), (0,)), chance.randint(0, 2))
    found = tuple(
        Operation(ports, float(chance.randint(1, 2)), float(chance.choice((1, 1, 4)))) for ports in sets
    )
    return chance.choice((found, found, None))


def plain(model: MachineModel) -> MachineModel:
    """A model with all operations in one order, as sets have none."""

    def ordered(cost: FormCost) -> FormCost:
        found = cost.operations
        return (
            cost if found is None else msgspec.structs.replace(cost, operations=tuple(sorted(found, key=str)))
        )

    return msgspec.structs.replace(model, forms={name: ordered(cost) for name, cost in model.forms.items()})
