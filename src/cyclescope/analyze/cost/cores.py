"""What is known about cores and no scheduling model says: fusion, renamed memory, forwarding.

These are facts about families of cores, by the machine's name; measured models of hosts have the name of
the CPU that LLVM uses in theirs. Where nothing is known, nothing is assumed.
"""

from __future__ import annotations

from functools import cache

import msgspec

from cyclescope.isa.registry import instruction_set
from cyclescope.model.machine import MachineModel

_LOAD_LATENCY = 4.0  # cycles where the model does not say
FORWARD_EXTRA = 2.0  # cycles that a load from a store in flight takes longer, where the model does not say
STACK_SYNC = 1.0  # cycles until a stack pointer that pushes or pops moved is in its register
STORES_IN_FLIGHT = 64  # where the model has no store buffer
TAKEN_BRANCHES = 1.0  # per cycle

_UNSIGNED = ("JB", "JAE", "JBE", "JA")
_ODD = ("JS", "JNS", "JO", "JNO", "JP", "JNP")
_ADDITIVE, _LOGIC, _COUNT = ("CMP", "ADD", "SUB"), ("TEST", "AND"), ("INC", "DEC")
_ZEN3_FUSED = (*_ADDITIVE, *_LOGIC, *_COUNT, "OR", "XOR")


class CoreBehaviour(msgspec.Struct, frozen=True):
    """What the front end and the renamer of a core do.

    `fused` are mnemonics that fuse with a conditional branch behind them, each with the branches it does
    not fuse with. `renamed` says by which base a load gets the value of an earlier store without waiting for
    memory: "" none, "stack" the stack pointer, "any" the register that the store used. `store_chunk` are the
    aligned bytes that stores one after the other are written to at once, one such chunk a cycle; 0 where
    nothing is known. `plain_store` names ports that make addresses of stores, but none with an index.
    `forward_extra` are the cycles that a load from a store in flight takes longer than one from the cache.
    `x87_most` are the most cycles of x87 additions and multiplications, where LLVM has those of SSE: 0 for as
    LLVM says.
    """

    fused: tuple[tuple[str, tuple[str, ...]], ...] = ()
    renamed: str = ""
    store_chunk: int = 0
    plain_store: tuple[str, ...] = ()
    forward_extra: float = FORWARD_EXTRA
    x87_most: float = 0

    def fuses(self, first: str, branch: str) -> bool:
        """Whether an instruction and the conditional branch behind it are one micro-operation."""
        return any(first == name and branch not in never for name, never in self.fused)


def _pairs(names: tuple[str, ...], never: tuple[str, ...] = ()) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, never) for name in names)


_INTEL_FUSED = _pairs(_LOGIC) + _pairs(_ADDITIVE, _ODD) + _pairs(_COUNT, _ODD + _UNSIGNED)
# From Sandy Bridge on a load takes 4 to 5 cycles, out of the cache or of a store (docs/method/analyze.md).
_INTEL = CoreBehaviour(_INTEL_FUSED, forward_extra=0)
_HASWELL = CoreBehaviour(_INTEL_FUSED, plain_store=("7",), forward_extra=0)
_ZEN_X87 = 7.0
_FAMILIES = {
    "znver1": CoreBehaviour(_pairs(("CMP", "TEST")), x87_most=_ZEN_X87),
    "znver2": CoreBehaviour(_pairs(("CMP", "TEST")), x87_most=_ZEN_X87),
    "znver3": CoreBehaviour(_pairs(_ZEN3_FUSED), "stack", 32, x87_most=_ZEN_X87),
    "znver4": CoreBehaviour(_pairs(_ZEN3_FUSED), "any", 32, x87_most=_ZEN_X87),
    "znver5": CoreBehaviour(_pairs(_ZEN3_FUSED)),
    "bdver2": CoreBehaviour(_pairs(("CMP", "TEST"))),
    **dict.fromkeys(("haswell", "broadwell", "skylake", "skylake-avx512"), _HASWELL),
    **dict.fromkeys(("sandybridge", "icelake-server", "sapphirerapids", "alderlake", "lunarlake"), _INTEL),
}  # fmt: skip


@cache
def behaviour_of(machine: str) -> CoreBehaviour:
    """The facts about a machine by its name, nothing where it has none of the known names."""
    words = machine.lower().replace("_", "-").split()
    return next((found for name, found in _FAMILIES.items() if name in words), CoreBehaviour())


def load_latency(machine: MachineModel) -> float:
    """Cycles from the address to a general register: of the plain load, else what the core says."""
    plain = machine.forms.get(instruction_set(machine.isa).roles.load)
    known = plain.latencies if plain else {}
    found = known.get("op2.address->op1") or known.get("op2->op1")  # x86-64; others have a register for it
    return found or machine.core.load_latency or _LOAD_LATENCY


def forward_latency(machine: MachineModel) -> float:
    """Cycles from stored data to the register that loads them."""
    return machine.core.forward_latency or load_latency(machine) + behaviour_of(machine.name).forward_extra
