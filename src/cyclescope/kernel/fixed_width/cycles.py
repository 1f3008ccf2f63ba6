"""Closed chains of links of AArch64 and RISC-V: the experiments that determine the links' latencies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from cyclescope.kernel.cycle import TRANSFER, Cycle, spaced
from cyclescope.kernel.fixed_width.links import SCALABLE, Helpers
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place

_LINKS = 4  # of one kind in a row: one cut of the chain has to show


class CycleBuilder:
    """All closed chains of the links that this CPU has; `places` has one or more of every register file."""

    def __init__(self, helpers: Helpers, places: tuple[Place, ...]) -> None:
        self.helpers = helpers
        self.places = places
        self.general = next(place for place in places if place.kind == "r")

    def cycles(self) -> list[Cycle]:
        """Every closed chain; a link is determined by those whose `keys` contain it."""
        found = [*self._identities(), *self._rounds(), *self._transfers(), *self._memory(), *self._loads()]
        return list({cycle.name: cycle for cycle in found}.values())

    # --- one link ----------------------------------------------------------------------------------

    def _identities(self) -> Iterator[Cycle]:
        h = self.helpers
        for place in self.places:
            cut = tuple(h.cut(place))
            fill = h.fill(place)
            if fill is not None:
                yield Cycle(fill[1], (fill[0],) * _LINKS, (fill[1],) * _LINKS, cut)
            if place.kind in ("v", "f"):
                items, keys = h.again(place, place, h.pools.value)
                yield Cycle(keys[0], tuple(items) * _LINKS, keys * _LINKS, cut)
        xor = h.xor(self.general.number, h.pools.constant)
        yield Cycle("xor", (xor,), ("xor",), tuple(h.cut(self.general)))
        vector = next((p for p in self.places if p.kind == "v" and p.width == SCALABLE), None)
        xor_vector = h.xor_vector(vector.number, h.pools.nought) if vector else None
        if vector and xor_vector is not None:
            yield Cycle("xor.z", (xor_vector,) * _LINKS, ("xor.z",) * _LINKS, tuple(h.cut(vector)))

    # --- round trips -------------------------------------------------------------------------------

    def _round(self, *places: Place) -> Iterator[Cycle]:
        """Links along `places` and back to the first one."""
        items: tuple[Instruction, ...] = ()
        keys: tuple[str, ...] = ()
        for source, target in zip(places, (*places[1:], places[0]), strict=True):
            step = self.helpers.step(source, target)
            if step is None:
                return
            items += step.instructions
            keys += step.keys
        names = (
            f"{p.kind}.{p.flag or p.width}" if p.kind in ("v", "f", "mem", "flag") else p.kind for p in places
        )
        yield Cycle(">".join([*names, places[0].kind]), items, keys, tuple(self.helpers.cut(places[0])))

    def _rounds(self) -> Iterator[Cycle]:
        """There and back, and three links in a row, which tie the register files together."""
        for flag in self.helpers.flags:
            yield from self._round(self.general, Place("flag", flag=flag))
        for number, first in enumerate(self.places):
            for second in self.places[number + 1 :]:
                if first.kind != second.kind:
                    yield from self._round(first, second)
        floats = [place for place in self.places if place.kind == "f"]
        for others in permutations([p for p in self.places[1:] if p not in floats[1:]], 2):
            if others[0].kind != others[1].kind:
                yield from self._round(self.general, *others)
        for narrow in floats[1:]:
            yield from self._two_widths(floats[0], narrow)
            yield from self._two_widths(narrow, floats[0])

    def _two_widths(self, there: Place, back: Place) -> Iterator[Cycle]:
        """To a register with one width and back with another."""
        one, other = self.helpers.step(self.general, there), self.helpers.step(back, self.general)
        if one and other:
            name = f"r>f.{there.width}>f.{back.width}>r"
            cut = tuple(self.helpers.cut(self.general))
            yield Cycle(name, (*one.instructions, *other.instructions), (*one.keys, *other.keys), cut)

    def _transfers(self) -> Iterator[Cycle]:
        """The move to a vector register alone, without restoring the value."""
        for place in self.places:
            there = self.helpers.step(self.general, place)
            back = self.helpers.step(place, self.general)
            move = self.helpers.transfer(place, self.general)
            if there and back and move is not None:
                name = TRANSFER.replace("v", place.kind) + self.helpers.detail(self.general, place)
                cut = tuple(self.helpers.cut(self.general))
                yield Cycle(name, (move, *back.instructions), (name, *back.keys), cut)

    # --- memory ------------------------------------------------------------------------------------

    def _memory(self) -> Iterator[Cycle]:
        """A value through memory and back, also to another register file."""
        h = self.helpers
        widths = sorted({width for _, width in (*h.stores, *h.loads)})
        for place in self.places:
            for width in widths:
                if place.kind == "f" and place.width != width:
                    continue
                memory = Place("mem", width=width)
                yield from self._through(place, memory)
                if place.kind != "r":
                    yield from self._through(self.general, memory, place)
                    yield from self._through(self.general, place, memory)

    def _through(self, *places: Place) -> Iterator[Cycle]:
        """The round through memory, also with other instructions on its way."""
        fill = self.helpers.fill(places[0])
        for cycle in self._round(*places):
            yield cycle
            if fill is not None:
                yield spaced(cycle, fill)

    def _loads(self) -> Iterator[Cycle]:
        """From the address to the loaded register, by XORing it twice onto the address."""
        h = self.helpers
        temporary = Place("r", h.pools.temporary, 64)
        xor = h.xor(h.pools.alias, h.pools.temporary)
        for kind, width in h.loads:
            place = next((p for p in self.places if p.kind == kind), None)
            if place is None or (width == SCALABLE and kind == "v" and place.width != SCALABLE):
                place = next((p for p in self.places if (p.kind, p.width) == (kind, SCALABLE)), None)
            load = h.load(place, width) if place else None
            back = h.path(place, temporary) if place else None
            if load is None or back is None:
                continue
            keys = (f"load.{kind}.{width}", *back.keys, "xor", "xor")
            items = (load, *back.instructions, xor, xor)
            cut = tuple(h.cut(temporary))
            yield Cycle(keys[0], items, keys, cut, len(items) - 2)
