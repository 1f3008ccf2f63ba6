"""A CPU whose every latency and port is drawn at random, but known.

Every pair of roles of every opcode has a latency of its own, except for what no user-space
measurement can tell apart: the package's conventions (see infer/timing/latency_system.py) hold here, and an
instruction that a link may use from either operand takes equally long from both.
"""

from __future__ import annotations

import random
import zlib
from functools import cache
from typing import NamedTuple

from tests.support.code.decoded import Decoded

ALU, VECTOR, LOAD, STORE, FLOAT = (0, 1, 2, 3), (4, 5, 6, 7), (8, 9), (10, 13), (11, 12)

SIMPLE = 1.0
_NEED_AVX = ("AVX", "FMA", "F16C", "VAES", "VPCLMULQDQ", "XOP")
RARE = (
    "PADLOCK_PHE", "PADLOCK_ACE", "PADLOCK_PMM", "PADLOCK_RNG", "PADLOCK_GMI", "PADLOCK_UNDOC", "D3NOW",
    "D3NOWEXT", "CYRIX_EMMI", "CYRIX_D3NOW", "CYRIX_FPU", "XOP", "FMA4", "TBM", "KNC", "AVX512ER",
    "AVX512PF",
)  # fmt: skip

# One latency for all of them: what links and fillings are made of.
_SIMPLE = ("MOVSX", "MOVSXD", "XOR", "CMP", "TEST", "CMOV", "LAHF")
_TRANSFER = ("MOVD", "MOVQ", "VMOVD", "VMOVQ")
_LOGIC = ("PAND", "PANDD", "POR", "PORD", "ANDPS", "ORPS", "PSHUFD", "PBLENDMD", "PADDUSB", "PSUBUSB")
_PLAIN = ("MOVZX", "MOVD", "MOVQ", "MOVUPS", "MOV", "FLD", "KMOVB", "KMOVW", "KMOVD", "KMOVQ")
_ZERO = ("XOR", "SUB", "PXOR", "XORPS", "XORPD", "PSUBD", "PXORD", "PXORQ")
_CUTS = ("PCMPEQD", "PCMPEQB", "SBB", "PCMPGTD", "PCMPGTB")  # break the dependency, but execute
_ELIMINATED = {
    "MOV_RM64_R64", "MOV_R64_RM64", "MOV_RM32_R32", "MOV_R32_RM32", "MOVAPS_XMM_XMMM128",
    "VEX_VMOVAPS_XMM_XMMM128", "VEX_VMOVAPS_YMM_YMMM256", "EVEX_VMOVAPS_XMM_K1Z_XMMM128",
    "EVEX_VMOVAPS_YMM_K1Z_YMMM256", "EVEX_VMOVAPS_ZMM_K1Z_ZMMM512",
    "MOVDQA_XMM_XMMM128", "VEX_VMOVDQA_YMM_YMMM256",
}  # fmt: skip
_DIVISIONS = (
    "DIVPS", "DIVPD", "DIVSS", "DIVSD", "SQRTPS", "SQRTPD", "SQRTSS", "SQRTSD", "DIVPH", "SQRTPH", "DIVSH",
    "SQRTSH",
)  # fmt: skip


class Uop(NamedTuple):
    """What one micro-operation occupies: one of `ports`, for `cycles`."""

    ports: frozenset[int]
    cycles: float


class Cost(NamedTuple):
    """Micro-operations on ports, and places in the front end."""

    uops: tuple[Uop, ...]
    slots: int


@cache
def bare(mnemonic: str) -> str:
    """The mnemonic without the V of VEX and EVEX."""
    return mnemonic[1:] if mnemonic.startswith("V") and not mnemonic.startswith("VER") else mnemonic


def is_division(ins: Decoded) -> bool:
    """Whether the latency depends on the operands' values."""
    return ins.mnemonic in ("DIV", "IDIV") or bare(ins.mnemonic) in _DIVISIONS


def same_registers(ins: Decoded) -> bool:
    """Whether all sources of an instruction without memory are one register."""
    found = [r for r in ins.registers if r]
    return len(found) > 1 and not ins.memory and len(set(found)) == 1 and min(ins.widths[:2]) >= 32


def shares(uops: list[Uop] | tuple[Uop, ...]) -> float:
    """Least cycles in which the ports do some micro-operations: the fullest set of ports decides."""
    occupied: dict[frozenset[int], float] = {}
    for uop in uops:
        occupied[uop.ports] = occupied.get(uop.ports, 0.0) + uop.cycles
    unions: set[frozenset[int]] = set()
    for ports in occupied:
        unions |= {ports | other for other in unions} | {ports}
    return max(
        (sum(c for p, c in occupied.items() if p <= union) / len(union) for union in unions), default=0.0
    )


class Truth:
    """The CPU drawn from a seed.

    `missing` are CPUID features it lacks, as iced-x86 names them. Flags that an instruction reads are
    equally early unless `flags_apart`; `conventional` says whether the package's conventions hold.
    """

    def __init__(
        self,
        seed: int = 1,
        width: int = 6,
        missing: tuple[str, ...] = RARE,
        *,
        flags_apart: bool = False,
        conventional: bool = True,
    ) -> None:
        self.seed = seed
        self.width = width
        self.missing = frozenset(missing)
        self.flags_apart = flags_apart
        self.conventional = conventional
        self._latencies: dict[
            tuple[str, str, bool, bool, bool], tuple[tuple[tuple[int, float], ...], ...]
        ] = {}
        self._costs: dict[tuple[str, bool, bool, bool, bool], Cost] = {}

    def random(self, *what: object) -> random.Random:
        """Random numbers that belong to something."""
        return random.Random(zlib.crc32(repr((self.seed, *what)).encode()))

    def executes(self, ins: Decoded) -> bool:
        """Whether the CPU has the instruction; what needs AVX or AVX-512F is missing with it."""
        return not any(
            feature in self.missing
            or ("AVX512F" in self.missing and feature.startswith("AVX512"))
            or ("AVX" in self.missing and feature.startswith(_NEED_AVX))
            for feature in ins.features
        )

    def _transfer(self, files: str) -> float:
        """Between register files: equally long there and back, by convention."""
        return self.random("transfer", *(() if self.conventional else files)).randint(1, 4)

    # --- latencies -------------------------------------------------------------------------------

    def latency(self, ins: Decoded, source: str, target: str, slow: bool = False) -> float:
        """Cycles from one role to another."""
        if source.startswith("flag") and not self.flags_apart:
            source, target = "flag", "flag" if target.startswith("flag") else target
        return self._latency(ins, source, target, slow)

    def _latency(self, ins: Decoded, source: str, target: str, slow: bool) -> float:
        if self.is_idiom(ins) or self.is_eliminated(ins):
            return 0.0
        if is_division(ins):
            base = self.random("division", ins.mnemonic, ins.code).randint(9, 14)
            return base + self.random(ins.code, source, target).randint(0, 2) + (8 if slow else 0)
        return self._plain_latency(ins, source, target)

    def _plain_latency(self, ins: Decoded, source: str, target: str) -> float:
        loads = any(m.read for m in ins.memory)
        name = bare(ins.mnemonic)
        if not ins.memory and ins.mnemonic.startswith(_SIMPLE) and ins.mnemonic not in ("CMPXCHG",):
            return SIMPLE
        if not ins.memory and ins.code in ("MOV_RM8_R8", "MOV_R8_RM8", "AND_RM64_R64"):
            return SIMPLE
        if not ins.memory and (ins.mnemonic in _TRANSFER or ins.mnemonic.startswith("KMOV")):
            files = ins.registers[0][:1] + ins.registers[1][:1]
            return self._transfer(files) if files[0] != files[1] else self.random(ins.code).randint(1, 2)
        if name == "PTESTNMB":
            return self.random(name).randint(2, 5)
        if name in _LOGIC and not ins.memory:
            return self.random(ins.code).randint(1, 2)
        if ins.mnemonic.startswith("FCMOV") or name == "KORD":
            return self.random(ins.code).randint(1, 3)
        opcode = ins.code.replace("FSTP", "FST")  # a link may use either
        draw = self.random(opcode, source, target)
        if loads and name in _PLAIN and not source.startswith(("op", "reg", "mask")):
            return self._load(ins, source[:4])
        if source == target == "flag":
            return SIMPLE
        if source == target and not source.startswith("data"):
            return draw.randint(1, self._own_chain(ins, source))
        return draw.randint(4, 7) if loads and source[:4] in ("base", "inde", "data") else draw.randint(1, 7)

    def _load(self, ins: Decoded, part: str) -> float:
        """Plain loads: from the data as from the address, x87's like vectors', by convention."""
        file = next(where[0] for role, where in ins.targets if role.startswith(("op", "reg")))
        kind = ("v" if file == "x" else file,) if self.conventional else (file, part)
        return self.random("load", *kind, ins.memory[0].size).randint(4, 7)

    def _own_chain(self, ins: Decoded, role: str) -> int:
        """A result that is a source too must not hide the throughput behind a dependency."""
        where = next(w for r, w in ins.sources if r == role)
        ring = {"r": 2 if ins.high else 5, "v": 8, "k": 4, "m": 4, "x": 3}.get(where[0], 1)
        return max(1, min(6, int(ring * self.throughput(ins))))

    def matrix(self, ins: Decoded, slow: bool) -> tuple[tuple[tuple[int, float], ...], ...]:
        """Per target (registers and flags, then written memory) the (source, latency) pairs.

        Sources are the registers and flags, then the memory that is read.
        """
        key = (ins.code, ins.shape, slow, same_registers(ins), ins.high)
        found = self._latencies.get(key)
        if found is None:
            found = self._latencies[key] = self._make_matrix(ins, slow)
        return found

    def _make_matrix(self, ins: Decoded, slow: bool) -> tuple[tuple[tuple[int, float], ...], ...]:
        sources = [role for role, _ in ins.sources] + [f"data{m.position}" for m in ins.memory if m.read]
        targets = [role for role, _ in ins.targets] + [f"data{m.position}" for m in ins.memory if m.write]
        if self.is_idiom(ins):
            return tuple(() for _ in targets)
        return tuple(
            tuple((i, float(self.latency(ins, source, target, slow))) for i, source in enumerate(sources))
            for target in targets
        )

    # --- throughput ------------------------------------------------------------------------------

    def is_idiom(self, ins: Decoded) -> bool:
        """Whether the registers make it independent of its sources."""
        return bare(ins.mnemonic) in (*_ZERO, *_CUTS) and same_registers(ins)

    def is_eliminated(self, ins: Decoded) -> bool:
        """Whether rename does the move."""
        return ins.code in _ELIMINATED and not ins.memory and all(r != "mask" for r, _ in ins.sources)

    def cost(self, ins: Decoded, slow: bool = False) -> Cost:
        """Micro-operations of an instruction."""
        key = (ins.code, slow, same_registers(ins), bool(ins.memory), ins.high)
        found = self._costs.get(key)
        if found is None:
            found = self._costs[key] = self._make_cost(ins, slow)
        return found

    def _make_cost(self, ins: Decoded, slow: bool) -> Cost:
        free = self.is_idiom(ins) and bare(ins.mnemonic) in _ZERO
        if free or self.is_eliminated(ins) or ins.mnemonic in ("NOP", "FNOP"):
            return Cost((), 1)
        uops = [Uop(frozenset(LOAD), 1.0) for m in ins.memory if m.read]
        uops += [Uop(frozenset(STORE), 1.0) for m in ins.memory if m.write]
        if not (ins.memory and bare(ins.mnemonic).startswith("MOV")):
            uops += self._computing(ins, slow)
        return Cost(tuple(uops), len(uops))

    def _computing(self, ins: Decoded, slow: bool) -> list[Uop]:
        draw = self.random("ports", ins.code)
        if is_division(ins):
            return [Uop(frozenset((VECTOR[3],)), draw.randint(3, 6) + (4 if slow else 0))]
        files = {w[0] for _, w in (*ins.sources, *ins.targets) if w not in ("CF", "PF", "OF")}
        pool = FLOAT if "x" in files else VECTOR if files & {"v", "k", "m"} else ALU
        if ins.mnemonic.startswith((*_SIMPLE, "MOV", "VMOV", "KMOV")) or bare(ins.mnemonic) in _LOGIC:
            return [
                Uop(frozenset(pool[:2] if ins.high else pool), 1.0)
            ]  # what helpers are made of never gets in the way
        count = draw.choice((1, 1, 1, 2, 3))
        most = 2 if ins.high else len(pool)
        return [Uop(frozenset(draw.sample(pool, draw.randint(1, most))), 1.0) for _ in range(count)]

    def throughput(self, ins: Decoded, slow: bool = False) -> float:
        """Cycles per instruction when nothing depends on anything."""
        cost = self.cost(ins, slow)
        return max(shares(cost.uops), cost.slots / self.width)
