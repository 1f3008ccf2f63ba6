"""Closed chains of links alone: the experiments that determine the links' latencies.

Every link is part of at least one round trip; round trips, single self chains and chains of three
links form a linear system over all unknown latencies (see infer/timing/latency_system.py). For every link
there is a control with the dependency cut, which has to be faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.cycle import MASK_SYNC, TRANSFER, Cycle, spaced
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place
from cyclescope.kernel.x86_64.helpers.links import CONDITIONS, X86Helpers
from cyclescope.kernel.x86_64.registers import (
    BASE,
    CONSTANT,
    TEMPORARY,
    VECTOR_CONSTANT,
    VECTOR_ZERO,
)

_GENERAL = Place("r", 1, 64)


class X86CycleBuilder:
    """All closed chains of the links this CPU has."""

    def __init__(self, helpers: X86Helpers) -> None:
        self.helpers = helpers

    def cycles(self) -> list[Cycle]:
        """Every closed chain; a link is determined by those whose `keys` contain it."""
        return [
            *self._identities(),
            *self._flags(),
            *self._round_trips(),
            *self._memory(),
            *self._loads(),
            *self._triples(),
        ]

    # --- one link --------------------------------------------------------------------------------

    def _identities(self) -> Iterator[Cycle]:
        h, n = self.helpers, 1
        yield Cycle("r>r", (h.make("MOVSXD (R64, R32)", n, n),), ("r>r",), (h.constant(n),))
        xor = h.make("XOR_31 (R64, R64)", n, CONSTANT)
        yield Cycle("xor", (xor,), ("xor",), (h.constant(n),))
        for width in (128, 256, 512):
            if h.has_bypass(width):
                yield from self._vector_identities(width)
        if h.avx512:
            sync = h.make("VPTESTNMB (K, K, ZMM, ZMM)", n, n, VECTOR_CONSTANT, VECTOR_ZERO)
            yield Cycle(MASK_SYNC, (sync,), (MASK_SYNC,), (h.mask_constant(n),))
            kor = h.make("KORD (K, K, K)", n, n, n)
            yield Cycle("k>k", (kor,) * 4, ("k>k",) * 4, (h.mask_constant(n),))

    def _vector_identities(self, width: int) -> Iterator[Cycle]:
        h = self.helpers
        vector = Place("v", 1, width)
        cut = (h.vector_constant(1, VECTOR_CONSTANT, width),)
        for kind in ("integer", "fp"):
            name = f"bypass.{kind}.{width}"
            yield Cycle(name, (h.bypass(1, width, kind),), (name,), cut)
        fill, key = h.fill(vector)
        if key != f"bypass.integer.{width}":
            yield Cycle(key, (fill,), (key,), cut)
        step = h.step(vector, vector)
        if step is not None:
            yield Cycle(step.keys[0], step.instructions, step.keys, cut)
        restore = tuple(h.again(1, 1, VECTOR_CONSTANT, width))
        if restore:
            yield Cycle(f"restore.{width}", restore, (f"restore.{width}",), cut)

    # --- round trips -----------------------------------------------------------------------------

    def _round(self, name: str, *places: Place, cut: tuple[Instruction, ...]) -> Iterator[Cycle]:
        """Links along `places` and back to the first one."""
        items: tuple[Instruction, ...] = ()
        keys: tuple[str, ...] = ()
        for source, target in zip(places, (*places[1:], places[0]), strict=True):
            step = self.helpers.step(source, target)
            if step is None:
                return
            items += step.instructions
            keys += step.keys
        yield Cycle(name, items, keys, cut)

    def _flags(self) -> Iterator[Cycle]:
        for flag in CONDITIONS:
            place = Place("flag", flag=flag)
            cut = (self.helpers.constant(_GENERAL.number),)
            yield from self._round(f"r>{flag}>r", _GENERAL, place, cut=cut)
        if self.helpers.has("LAHF"):
            cut = (self.helpers.constant(_GENERAL.number),)
            yield from self._round("r>AF>r", _GENERAL, Place("flag", flag="AF"), cut=cut)

    def _round_trips(self) -> Iterator[Cycle]:
        h = self.helpers
        cut = (h.constant(_GENERAL.number),)
        name = "VMOVD (XMM, R32)" if h.avx else "MOVD (XMM, R32)"
        back = h.step(Place("v", 1, 128), _GENERAL)
        if back is not None:
            there = h.make(name, 1, _GENERAL.number)
            yield Cycle(TRANSFER, (there, *back.instructions), (TRANSFER, *back.keys), cut)
        for width in (128, 256, 512):
            if h.has_bypass(width) or width == 128:
                yield from self._round(f"r>v.{width}>r", _GENERAL, Place("v", 1, width), cut=cut)
        yield from self._round("r>h>r", _GENERAL, Place("h", 2), cut=cut)
        yield from self._round("r>m>r", _GENERAL, Place("m", 1), cut=cut)
        yield from self._round("r>k>r", _GENERAL, Place("k", 1), cut=cut)
        for width in (128, 256, 512):
            if h.avx512:
                cut_mask = (h.mask_constant(1),)
                places = (Place("k", 1), Place("v", 1, width))
                yield from self._round(f"k>v.{width}>k", *places, cut=cut_mask)

    def _triples(self) -> Iterator[Cycle]:
        """Three links in a row tie masks to general registers."""
        if not self.helpers.avx512:
            return
        mask, vector = Place("k", 1), Place("v", 1, 128)
        cut = (self.helpers.constant(_GENERAL.number),)
        yield from self._round("r>v>k>r", _GENERAL, vector, mask, cut=cut)
        yield from self._round("r>k>v>r", _GENERAL, mask, vector, cut=cut)

    # --- memory ----------------------------------------------------------------------------------

    def _memory(self) -> Iterator[Cycle]:
        """A value through memory and back: store and load forwarding together."""
        h = self.helpers
        cut = (h.constant(_GENERAL.number),)
        vector = Place("v", 1, 128)
        for width in (8, 16, 32, 64):
            memory = Place("mem", width=width)
            yield from self._through_memory(f"r>mem.{width}>r", cut, _GENERAL, memory)
            if width >= 32:
                yield from self._through_memory(f"r>mem.{width}>v>r", cut, _GENERAL, memory, vector)
                yield from self._through_memory(f"r>v>mem.{width}>r", cut, _GENERAL, vector, memory)
        yield from self._narrower()
        for width in (32, 64, 128, 256, 512):
            if width <= 128 or h.has_bypass(width):
                vector = Place("v", 1, max(width, 128))
                cut = (h.vector_constant(1, VECTOR_CONSTANT, vector.width),)
                memory = Place("mem", width=width)
                yield from self._through_memory(f"v>mem.{width}>v", cut, vector, memory)
        for width in (32, 64) if h.has("MOVQ (MM, M64)") else ():
            cut = (h.make("MOVQ_0F6F (MM, MM)", 1, 7),)
            memory = Place("mem", width=width)
            yield from self._through_memory(f"m>mem.{width}>m", cut, Place("m", 1), memory)
        if h.has("FST (M64)"):
            yield from self._x87()
        for width in (8, 16, 32, 64) if h.avx512 else ():
            cut = (h.mask_constant(1),)
            memory = Place("mem", width=width)
            yield from self._through_memory(f"k>mem.{width}>k", cut, Place("k", 1), memory)

    def _narrower(self) -> Iterator[Cycle]:
        """A load of less than was stored says how long the store takes: loads of all go through a vector."""
        there = self.helpers.step(_GENERAL, Place("mem", width=64))
        back = self.helpers.step(Place("mem", width=16), _GENERAL)
        if there is None or back is None:
            return
        items, keys = there.instructions + back.instructions, there.keys + back.keys
        cut = (self.helpers.constant(_GENERAL.number),)
        yield from self._and_spaced(Cycle("r>mem.64>16>r", items, keys, cut), _GENERAL)

    def _x87(self) -> Iterator[Cycle]:
        """Popping stores and pushing loads: the stack stays balanced."""
        cut = (self.helpers.make("FSTP (STi)", 0), self.helpers.make("FLD1"))
        for width in (32, 64):
            stack, memory = Place("x", 1), Place("mem", width=width)
            yield from self._through_memory(f"x>mem.{width}>x", cut, stack, memory)

    def _through_memory(self, name: str, cut: tuple[Instruction, ...], *places: Place) -> Iterator[Cycle]:
        for cycle in self._round(name, *places, cut=cut):
            yield from self._and_spaced(cycle, places[0])

    def _and_spaced(self, cycle: Cycle, place: Place) -> Iterator[Cycle]:
        through = msgspec.structs.replace(cycle, items=_other_base(cycle.items))
        yield through
        with suppress(Unmeasurable):  # nothing takes a cycle in place there
            yield spaced(through, self.helpers.fill(place))

    def _loads(self) -> Iterator[Cycle]:
        """From the address to the loaded register, by XORing it twice onto the address."""
        h = self.helpers
        cut = (h.constant(TEMPORARY),)
        for kind, widths in (("r", (8, 16, 32, 64)), ("v", (32, 64, 128, 256, 512)),
                             ("m", (32, 64)), ("k", (8, 16, 32, 64)), ("x", (32, 64))):  # fmt: skip
            for width in widths:
                if kind == "v" and width > 128 and not h.has_bypass(width):
                    continue
                number = 1 if kind == "x" else 2
                target = Place(kind, number, max(width, 128) if kind == "v" else width)
                back = h.path(target if kind != "r" else Place("r", 2, 64), Place("r", TEMPORARY, 64))
                load = h.load(target, width)
                if load is None or back is None:
                    continue
                items = _other_base((load,)) + back.instructions
                xor = h.make("XOR_31 (R64, R64)", BASE, TEMPORARY)
                keys = (f"load.{kind}.{width}", *back.keys, "xor", "xor")
                yield Cycle(keys[0], (*items, xor, xor), keys, cut, len(items))


def _other_base(items: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Loads through the other base register: the same address, but the CPU cannot rename memory."""
    return tuple(
        msgspec.structs.replace(
            i, registers=tuple(BASE if _is_base(i, p) else n for p, n in enumerate(i.registers))
        )
        if _is_load(i)
        else i
        for i in items
    )


def _is_load(instruction: Instruction) -> bool:
    form = instruction.form
    return form.memory >= 0 and form.operands[form.memory].read


def _is_base(instruction: Instruction, position: int) -> bool:
    encoding = instruction.form.encoding
    return encoding is not None and encoding.slots[position].part == 1
