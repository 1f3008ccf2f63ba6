"""How long one period of an endlessly repeated body takes on an ideal out-of-order core.

The period is the longest of: the worst cycle of dependencies, the fullest set of ports, the front
end. Dependencies go through registers, flags, the x87 stack and memory (stores are forwarded to
loads of the same bytes); a register of 8 or 16 bits is a part of the whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cyclescope.kernel.state import MachineState
from tests.support.code.decoded import Decoded, Memory, body
from tests.support.made.truth import Truth, is_division, shares

Delays = dict[object, float]  # since when a value is known: cycles after each live-in location
_KEEPS = frozenset(("XOR",))  # address registers are XORed twice with the same value
_ONES = {b"\x00\x3c" * 4, b"\x80\x3f" * 4, b"\x00\x00\x80\x3f" * 2, b"\x00\x00\x00\x00\x00\x00\xf0\x3f"}
_MASK64 = (1 << 64) - 1


class Period(NamedTuple):
    """Bounds on the cycles per period, and the worst dependency's locations."""

    dependency: float
    ports: float
    front: float

    @property
    def cycles(self) -> float:
        """Cycles per period."""
        return max(self)


class Access(NamedTuple):
    """Bytes of memory."""

    address: int
    size: int

    def overlaps(self, other: Access) -> bool:
        """Whether they share a byte."""
        return self.address < other.address + other.size and other.address < self.address + self.size

    def within(self, other: Access) -> bool:
        """Whether all of these bytes are the other's."""
        return other.address <= self.address and self.address + self.size <= other.address + other.size


class Addresses:
    """Values of general registers, as far as addresses need them."""

    def __init__(self, state: MachineState) -> None:
        self.values = dict(enumerate(state.general))

    def of(self, memory: Memory) -> Access:
        """The bytes that a memory operand is; vector indices are 0."""
        address = memory.displacement
        if memory.base:
            address += self.values[int(memory.base[1:])]
        if memory.index.startswith("r"):
            address += memory.scale * self.values[int(memory.index[1:])]
        return Access(address & _MASK64, memory.size)

    def step(self, ins: Decoded) -> None:
        """Follow moves, constants and the stack pointer; all else is taken to keep addresses."""
        self.values[4] += ins.stack
        if ins.mnemonic in ("ADD", "SUB") and ins.registers[:1] == ("r4",) and ins.immediate is not None:
            change = ins.immediate - (1 << 64 if ins.immediate >> 63 else 0)
            self.values[4] += change if ins.mnemonic == "ADD" else -change
        elif ins.mnemonic == "MOV" and not ins.memory and ins.registers[0] and min(ins.widths[:1]) >= 32:
            number = int(ins.registers[0][1:] or 0)
            source = ins.registers[1] if len(ins.registers) > 1 else ""
            if source.startswith("r"):
                self.values[number] = self.values[int(source[1:])]
            elif ins.immediate is not None:
                self.values[number] = ins.immediate


class Flow:
    """One pass over a body: every location's value as delays after the values the body began with."""

    def __init__(self, truth: Truth, state: MachineState) -> None:
        self.truth = truth
        self.state = state
        self.now: dict[object, Delays] = {}
        self.top = 0
        self.stores: list[Access] = []

    def run(self, instructions: Sequence[Decoded]) -> dict[object, Delays]:
        """Delays of every location that the body writes."""
        self.stores = list(dict.fromkeys(self._all_stores(instructions)))
        addresses = Addresses(self.state)
        for ins in instructions:
            self._execute(ins, addresses)
            addresses.step(ins)
        return self.now

    def _all_stores(self, instructions: Sequence[Decoded]) -> Iterable[Access]:
        addresses = Addresses(self.state)
        for ins in instructions:
            yield from (addresses.of(m) for m in ins.memory if m.write)
            addresses.step(ins)

    def _execute(self, ins: Decoded, addresses: Addresses) -> None:
        values = [self._read(self._place(where)) for _, where in ins.sources]
        accesses = [addresses.of(m) for m in ins.memory]
        values += [self._load(a) for a, m in zip(accesses, ins.memory, strict=True) if m.read]
        slow = is_division(ins) and is_slow(ins, self.state)
        matrix = self.truth.matrix(ins, slow)
        results = [combine([(values[i], latency) for i, latency in row]) for row in matrix]
        pushed = max(ins.pushes, 0)
        self.top -= pushed
        for (_, where), value in zip(ins.targets, results, strict=False):
            self.now[self._place(where)] = value
        self.top += max(-ins.pushes, 0)
        written = [a for a, m in zip(accesses, ins.memory, strict=True) if m.write]
        for access, value in zip(written, results[len(ins.targets) :], strict=True):
            self.now[access] = value
            self.stores.remove(access)
            self.stores.append(access)

    def _place(self, where: str) -> str:
        return f"x{(int(where[1:]) + self.top) & 7}" if where[0] == "x" else where

    def _read(self, where: object) -> Delays:
        found = self.now.get(where)
        return {where: 0.0} if found is None else found

    def _load(self, access: Access) -> Delays:
        """What the last stores to these bytes stored, of this period or the one before."""
        parts = []
        for store in reversed(self.stores):
            if access.overlaps(store):
                parts.append((self._read(store), 0.0))
                if access.within(store):
                    break
        return combine(parts)


def combine(parts: Sequence[tuple[Delays, float]]) -> Delays:
    """The latest of several values, each so many cycles later."""
    result: Delays = {}
    for delays, latency in parts:
        for where, delay in delays.items():
            if result.get(where, -1.0) < delay + latency:
                result[where] = delay + latency
    return result


def is_slow(ins: Decoded, state: MachineState) -> bool:
    """Whether a division works on values other than ones, judged by the state before the kernel."""
    if ins.mnemonic in ("DIV", "IDIV"):
        return _divisor(ins, state) != 1
    vectors = dict(state.vectors)
    used = [int(w[1:]) for role, w in ins.sources if w[0] == "v"]
    values = [vectors.get(n, state.vector)[:8] for n in used]
    values += [state.fill[0][:8] for m in ins.memory if m.read]
    return any(value not in _ONES for value in values)


def _divisor(ins: Decoded, state: MachineState) -> int:
    if ins.memory:
        return int.from_bytes(state.fill[0][: ins.memory[0].size], "little")
    value = state.general[int(ins.registers[0][1:])]
    return value & 0xFF if ins.widths[0] == 8 else value


def worst_cycle(delays: dict[object, Delays]) -> float:
    """Maximum over all cycles of dependencies of delay per period (Karp's theorem)."""
    edges = {t: {s: d for s, d in found.items() if s in delays} for t, found in delays.items()}
    while True:
        feeding = {s for found in edges.values() for s in found}
        kept = {t: found for t, found in edges.items() if found and t in feeding}
        if len(kept) == len(edges):
            break
        edges = {t: {s: d for s, d in found.items() if s in kept} for t, found in kept.items()}
    if all(len(found) == 1 and t in found for t, found in edges.items()):
        return max((found[t] for t, found in edges.items()), default=0.0)
    return _karp(edges)


def _karp(edges: dict[object, Delays]) -> float:
    count = len(edges)
    rows: list[dict[object, float]] = [dict.fromkeys(edges, 0.0)]
    for _ in range(count):
        last = rows[-1]
        rows.append({t: max(last[s] + d for s, d in found.items()) for t, found in edges.items()})
    final = rows[-1]
    return max(min((final[t] - rows[k][t]) / (count - k) for k in range(count)) for t in edges)


def period(truth: Truth, code: bytes, state: MachineState, drop: Iterable[str] = ()) -> Period:
    """The bounds of a body that runs from a state; values in `drop` do not cross the body's end."""
    instructions = body(code)
    turns = 8 if sum(i.pushes for i in instructions) & 7 else 1  # until the x87 stack is where it was
    delays = Flow(truth, state).run(instructions * turns)
    for where in drop:
        delays.pop(where, None)
    costs = [truth.cost(i, is_division(i) and is_slow(i, state)) for i in instructions]
    uops = [uop for cost in costs for uop in cost.uops]
    return Period(worst_cycle(delays) / turns, shares(uops), sum(c.slots for c in costs) / truth.width)
