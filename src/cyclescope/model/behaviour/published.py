"""What is published of cores that were not measured here: by LLVM's names, each with its source.

Scheduling models do not say which instructions fuse, what memory the renamer follows or where stores go,
and have some costs that vendors' guides contradict. `CORES` has what is known in addition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from cyclescope.model.behaviour.late_loads import LateLoads
from cyclescope.model.behaviour.lines import CodeLines
from cyclescope.model.behaviour.nops import BeforeNop
from cyclescope.model.behaviour.passing import MemoryPassing
from cyclescope.model.behaviour.registers import (
    EARLY_ADDITIONS,
    GOLDEN_COVE,
    RegisterCorrection,
    with_corrections,
)
from cyclescope.model.behaviour.store_lines import StoreLines
from cyclescope.model.facts import Addressed, AddressMade, mnemonic_of
from cyclescope.model.machine import FormCost, Operation

STACK_SYNC = 1.0  # cycles until a stack pointer that pushes moved is in its register, where nothing says
FORWARD_EXTRA = 2.0  # cycles that a load from a store in flight takes longer, where nothing says

_FOG = "A. Fog, The microarchitecture of Intel, AMD and VIA CPUs"
_AMD_19H = "AMD, Software Optimization Guide for Family 19h (56665)"
_AMD_17H = "AMD, Software Optimization Guide for Family 17h (55723)"
_INTEL = "Intel, 64 and IA-32 Architectures Optimization Reference Manual"
_MEASURED = "kernels measured on a Zen 3 and a Zen 4 (docs/method/analyze.md)"


class LoadBanks(msgspec.Struct, frozen=True):
    """Of loads of the same `width` bytes in every `period` bytes, a bank, `most` are done in a cycle."""

    width: int
    period: int
    most: float


class BesideAdditions(msgspec.Struct, frozen=True):
    """What loads take where nothing but additions of registers is beside them.

    `each` has pairs, in rising order: additions for each load, and cycles of a load.
    """

    each: tuple[tuple[float, float], ...]

    def cycles(self, loads: int, additions: int) -> float:
        """Cycles of so many loads beside so many additions, 0 for shares that are outside of those known."""
        share = additions / loads
        for (less, few), (more, many) in pairwise(self.each):
            if less <= share <= more:
                return loads * (few + (many - few) * (share - less) / (more - less))
        return 0.0


class LoadedStores(msgspec.Struct, frozen=True):
    """Stores that loads read while they are in flight leave one by one, where enough of them are.

    Each takes `each` cycles then, if `share` loads or more come for each store; of others `most` leave in a
    cycle.
    """

    each: float
    share: float
    most: float


class PartialWords(msgspec.Struct, frozen=True):
    """A write to a part of a word of `size` bytes has to read the rest of it.

    It waits `longer` cycles if the word was written less than `within` cycles before.
    """

    size: int
    longer: float
    within: int


class StoreChunks(msgspec.Struct, frozen=True):
    """Stores leave for the cache a chunk of `size` bytes a cycle, at most `most` of them at once.

    With `joins`, the parts of a store in two chunks leave with other stores to these; `partial` is about
    parts of words.
    """

    size: int
    most: int
    joins: bool = False
    partial: PartialWords | None = None


class WideLoads(msgspec.Struct, frozen=True):
    """Loads of so many bytes, side by side, take so many cycles each: inside a line, or with bytes in two.

    `halves` is for those of which a half is in each line: some cores do every half by itself.
    """

    size: int
    inside: float
    across: float
    halves: float


class BesideStores(msgspec.Struct, frozen=True):
    """Loads and stores of so many bytes: together each load takes `load` cycles, each store `store`."""

    size: int
    load: float
    store: float


class LineCrossing(msgspec.Struct, frozen=True):
    """A load, or store, takes `each` cycles of the time of all, `extra` more with bytes in two lines.

    `wide` are vectors, whose loads also have a time of their own.
    """

    line: int
    each: float
    extra: float
    wide: tuple[WideLoads, ...] = ()


class MoreWork(NamedTuple):
    """What an instruction needs beyond the costs of its form: slots, and operations of additions.

    Of what is `stored`, a constant, it is what it needs beyond a store of a register; `alone` are the cycles
    of each where nothing is beside them, 0 where these are those of any store.
    """

    slots: int = 0
    additions: int = 0
    stored: bool = False
    alone: float = 0.0


class Addressing(msgspec.Struct, frozen=True):
    """What addresses with an index need in addition, and operations on the stack pointer.

    `constants` has what constants need more that are stored by it, `stored` what those need that are stored
    by any base alone, both by the number of bits that are stored. `later` are the cycles that a result comes
    later from the base, and from the index, of an address with both than the form's own.
    """

    indexed: Mapping[Addressed, MoreWork] = {}
    constants: Mapping[int, MoreWork] = {}
    stored: Mapping[int, MoreWork] = {}
    later: Mapping[AddressMade, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.indexed or self.constants or self.stored or self.later)


class CoreBehaviour(msgspec.Struct, frozen=True):
    """What the front end, the renamer and the memory of a core do.

    `fused` are mnemonics that fuse with a conditional branch behind them, each with the branches it does not
    fuse with; `pairs` are mnemonics next to each other that were found to share a slot, `apart_in_memory`
    those that do not with an operand in memory. `renamed` says by which base a load gets the value of an
    earlier store without waiting for memory: "" none, "stack" the stack pointer, "any" the register that the
    store used. `passing` is the same as probes found it, `banks` says which loads wait for each other,
    `crossing` and `store_crossing` what loads and stores with bytes in two lines take, `store_chunk` and
    `store_lines` how stores leave. `plain_store` names ports that make addresses of stores, but none with an
    index.
    `forward_extra` are the cycles that a load from a store in flight takes longer than one from the cache.
    `x87_most` are the most cycles of x87 additions and multiplications, where LLVM has those of SSE; 0 if
    LLVM's are used. `merges`: writes of 8 and 16 bits of a register wait for the rest of it. `early` are
    mnemonics whose results reach others later than each other, by so many cycles. `stack_update` are the
    cycles until the register has a stack pointer that pushes or pops moved. `stack_moves`: moves of the stack
    pointer are executed, even if others are not. `late_loads` says what loads that are ready late take,
    `beside_additions` what loads among additions do,
    `lines` how loops get their code, `addressing` what addresses cost in addition. `branches_apart`: what
    only compares, fused with a branch, is executed where branches are, and takes no port of additions.
    `counted_as`: forms of whose ports those that all have execute what counts, or computes, and branches.
    `loaded_stores` says what stores take that are loaded again at once, `beside_stores` what vectors take
    that are loaded among stores of others, `together` the cycles of a store of the narrowest,
    by the number of loads before it.
    `trailed` are kinds of instructions that share their slots with a NOP right behind them, `nops` of which
    share a slot next to each other.
    `stack_reads` are the cycles of each operation that computes with the stack pointer, one after the other.
    `clears_at_once`: what clears the upper halves of all vectors takes chains through them no time.
    `held` has by mnemonic how long what is behind a barrier waits when all before it has ended: what has to
    do with general registers alone, and vectors.
    """

    fused: tuple[tuple[str, tuple[str, ...]], ...] = ()
    renamed: str = ""
    store_chunk: StoreChunks | None = None
    store_lines: StoreLines | None = None
    plain_store: tuple[str, ...] = ()
    forward_extra: float = FORWARD_EXTRA
    x87_most: float = 0
    merges: bool = False
    banks: LoadBanks | None = None
    crossing: LineCrossing | None = None
    store_crossing: LineCrossing | None = None
    passing: MemoryPassing = MemoryPassing(())
    pairs: frozenset[tuple[str, str]] = frozenset()
    apart_in_memory: frozenset[str] = frozenset()
    early: Mapping[str, float] = {}
    stack_update: float = STACK_SYNC
    stack_moves: bool = False
    stack_reads: float = 0.0
    late_loads: LateLoads | None = None
    beside_additions: BesideAdditions | None = None
    beside_stores: tuple[BesideStores, ...] = ()
    together: Mapping[int, float] = {}
    loaded_stores: LoadedStores | None = None
    lines: CodeLines | None = None
    addressing: Addressing = Addressing()
    branches_apart: bool = False
    counted_as: tuple[str, ...] = ()
    trailed: frozenset[BeforeNop] = frozenset()
    nops: int = 1
    clears_at_once: bool = False
    held: Mapping[str, tuple[float, float]] = {}

    def fuses(self, first: str, branch: str) -> bool:
        """Whether an instruction and the one behind it are one micro-operation."""
        return (first, branch) in self.pairs or any(
            first == name and branch not in never for name, never in self.fused
        )


class CostCorrection(msgspec.Struct, frozen=True):
    """Corrections for mnemonics whose costs in a scheduling model are wrong.

    `pipelined` are beginnings of names of units that a micro-operation keeps busy for one cycle, not for as
    many as the model says; with `unused` it takes none. `load_latency` are the cycles from an address
    to a result of what is loaded there.
    """

    mnemonics: frozenset[str]
    pipelined: tuple[str, ...] = ()
    unused: bool = False
    load_latency: float | None = None

    def of(self, cost: FormCost, ports: Sequence[str]) -> FormCost:
        """The cost as it is published, on a machine with these ports."""
        operations = cost.operations
        if self.unused:
            operations = ()
        elif self.pipelined and operations:
            operations = tuple(
                msgspec.structs.replace(op, cycles=1.0) if op.cycles > 1 and self._has(op, ports) else op
                for op in operations
            )
        latencies = cost.latencies
        if self.load_latency is not None:
            latencies = {
                pair: self.load_latency if pair.startswith(_ADDRESSES) else cycles
                for pair, cycles in latencies.items()
            }
        return msgspec.structs.replace(cost, operations=operations, latencies=latencies)

    def _has(self, op: Operation, ports: Sequence[str]) -> bool:
        return all(ports[port].startswith(self.pipelined) for port in op.ports)


class PublishedCore(msgspec.Struct, frozen=True):
    """What is published of a core beside its scheduling model, and where."""

    behaviour: CoreBehaviour
    sources: tuple[str, ...]
    corrections: tuple[CostCorrection, ...] = ()
    registers: tuple[RegisterCorrection, ...] = ()

    @property
    def corrected_names(self) -> str:
        """The mnemonics whose costs are corrected."""
        return ", ".join(sorted(name for one in self.corrections for name in one.mnemonics))


_ADDRESSES = ("op1.address->", "op1.index->", "op2.address->", "op2.index->")
_UNSIGNED = ("JB", "JAE", "JBE", "JA")
_ODD = ("JS", "JNS", "JO", "JNO", "JP", "JNP")
_ADDITIVE, _LOGIC, _COUNT = ("CMP", "ADD", "SUB"), ("TEST", "AND"), ("INC", "DEC")


def _pairs(names: tuple[str, ...], never: tuple[str, ...] = ()) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, never) for name in names)


_SETS = ("O", "NO", "B", "NB", "Z", "NZ", "BE", "NBE", "S", "NS", "P", "NP", "L", "NL", "LE", "NLE")
_ARITHMETIC = ("ADD", "ADC", "SUB", "SBB", "AND", "OR", "XOR", "CMP", "TEST", "INC", "DEC", "NEG", "NOT")
# The guide has four additions and moves of immediates a cycle, two SETcc, three loads and two stores; LLVM
# has units that are busy for two to four cycles. What loads and stores has an address unit for each, as LLVM
# says. NOPs are not executed, loads of general registers take four cycles.
_ZEN3_COSTS = (
    CostCorrection(
        frozenset(("MOV", "MOVZX", "MOVSX", "MOVSXD")), pipelined=("ALU", "AGU", "LSU"), load_latency=4.0
    ),
    CostCorrection(frozenset(_ARITHMETIC), pipelined=("ALU",), load_latency=5.0),
    CostCorrection(
        frozenset(("PUSH", "CALL", *(f"SET{condition}" for condition in _SETS))), pipelined=("ALU", "LSU")
    ),
    CostCorrection(frozenset(("NOP",)), unused=True),
)
_SYSTEM = re.compile(r"\b(SEG|CR|DR)\b")  # registers of forms that no table of arithmetic and moves is about
_INTEL_FUSED = _pairs(_LOGIC) + _pairs(_ADDITIVE, _ODD) + _pairs(_COUNT, _ODD + _UNSIGNED)
_ZEN_X87 = 7.0
_CHUNKS_OF_ZEN = StoreChunks(32, 32)
_ZEN3_FUSED = _pairs((*_ADDITIVE, *_LOGIC, *_COUNT, "OR", "XOR"))
# From Sandy Bridge on a load takes 4 to 5 cycles, out of the cache or of a store (docs/method/analyze.md).
_SANDY_BRIDGE = PublishedCore(CoreBehaviour(_INTEL_FUSED, forward_extra=0), (_INTEL, _FOG))
_HASWELL = PublishedCore(
    CoreBehaviour(_INTEL_FUSED, plain_store=("7",), forward_extra=0, merges=True), (_INTEL, _FOG)
)
_ICE_LAKE = PublishedCore(CoreBehaviour(_INTEL_FUSED, forward_extra=0, merges=True), (_INTEL, _FOG))
_GOLDEN_COVE = PublishedCore(
    CoreBehaviour(_INTEL_FUSED, forward_extra=0, merges=True, early=EARLY_ADDITIONS),
    (_INTEL, _FOG, "kernels measured on family 6 model 207 (docs/method/analyze.md)"),
    registers=GOLDEN_COVE,
)
_ZEN = PublishedCore(CoreBehaviour(_pairs(("CMP", "TEST")), x87_most=_ZEN_X87, merges=True), (_AMD_17H, _FOG))
CORES: Mapping[str, PublishedCore] = {
    "znver1": _ZEN,
    "znver2": _ZEN,
    "znver3": PublishedCore(
        CoreBehaviour(_ZEN3_FUSED, "stack", _CHUNKS_OF_ZEN, x87_most=_ZEN_X87, merges=True),
        (_AMD_19H, _FOG, _MEASURED), _ZEN3_COSTS,
    ),
    "znver4": PublishedCore(
        CoreBehaviour(_ZEN3_FUSED, "any", _CHUNKS_OF_ZEN, x87_most=_ZEN_X87, merges=True),
        (_AMD_19H, _FOG, _MEASURED), _ZEN3_COSTS,
    ),
    "znver5": PublishedCore(CoreBehaviour(_ZEN3_FUSED, x87_most=_ZEN_X87, merges=True), (_FOG,)),
    "bdver2": PublishedCore(CoreBehaviour(_pairs(("CMP", "TEST")), merges=True), (_FOG,)),
    **dict.fromkeys(("haswell", "broadwell", "skylake", "skylake-avx512"), _HASWELL),
    **dict.fromkeys(("sandybridge", "ivybridge"), _SANDY_BRIDGE),
    **dict.fromkeys(("icelake-server", "rocketlake", "tigerlake"), _ICE_LAKE),
    **dict.fromkeys(("sapphirerapids", "alderlake", "raptorlake", "emeraldrapids"), _GOLDEN_COVE),
    **dict.fromkeys(("meteorlake", "graniterapids", "graniterapids-d"), _GOLDEN_COVE),
    **dict.fromkeys(("lunarlake", "arrowlake", "arrowlake-s"), _ICE_LAKE),
}  # fmt: skip


def corrected(name: str, forms: Mapping[str, FormCost], ports: Sequence[str]) -> Mapping[str, FormCost]:
    """Costs of forms, by their ids, as they are published where LLVM's model of a core contradicts it.

    What the renamer eliminates has no micro-operation for LLVM, but takes a slot (Intel's manual,
    "Zero-Latency MOV Instructions"; Fog).
    """
    forms = {f: cost if cost.slots else msgspec.structs.replace(cost, slots=1.0) for f, cost in forms.items()}
    core = CORES.get(name)
    if core is None:
        return forms
    if core.registers:
        forms = with_corrections(forms, core.registers)
    by_mnemonic = {mnemonic: one for one in core.corrections for mnemonic in one.mnemonics}
    wrong = {form: one for form in forms if (one := by_mnemonic.get(mnemonic_of(form))) is not None}
    user = ((form, one) for form, one in wrong.items() if not _SYSTEM.search(form))
    return {**forms, **{form: one.of(forms[form], ports) for form, one in user}}
