"""Latency chains: kernels whose critical path runs from one operand to another.

For a pair (source, target) the chain is: break what else the form reads and writes; the form; a link
from the target back to the source. Where source and target can be the same place there is no link
(self chain), or two instances pass the value to and fro (swap). `links` are the keys of the links on
the way, `count` how often the pair's latency occurs in one period.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from cyclescope.isa.dataflow import Node, Pair
from cyclescope.isa.register import domain
from cyclescope.kernel.chain import Chain, Unmeasurable, Use, chain_of
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import LinkStep, Place
from cyclescope.kernel.x86_64.addresses import AddressChains
from cyclescope.kernel.x86_64.helpers.memory import SCRATCH_VECTOR
from cyclescope.kernel.x86_64.registers import (
    TEMPORARY,
    VECTOR_CONSTANT,
    VECTOR_ONES,
)
from cyclescope.kernel.x86_64.values import is_division, is_narrowing, may_copy


class X86ChainBuilder(AddressChains):
    """Builds the chains of one form; forms with the same signature share them."""

    # --- chains ----------------------------------------------------------------------------------

    def chains(self, pair: Pair) -> list[Chain]:
        """The chains of a pair, the best first. Raises Unmeasurable with the reason."""
        if pair.excluded:
            raise Unmeasurable(pair.excluded)
        if self.form.mnemonic in ("LEAVE", "ENTER"):
            raise Unmeasurable("a chain would move the stack pointer away")
        if pair.source.part in ("address", "index"):
            return [self._balanced(self._address_chain(pair))]
        if self._narrows(pair):
            return [self.restored(pair, VECTOR_CONSTANT)]
        if self.form.x87_pops:
            return [self._linked(pair)]
        if self._cuts and pair.source.part in ("flag", "register") and self._updated_places() > 1:
            places = self._updated_places()
            return [self.in_turn(pair, places, lambda: self._plain(pair)[0])]
        return self._plain(pair)

    def _updated_places(self) -> int:
        """How many places the form's instances can update in turn, 0 where it reads and writes no memory.

        Then memory need not be cut: a store that did would be what the form waits for.
        """
        op = self.form.operands[self.form.memory] if self.form.memory >= 0 else None
        updates = op is not None and op.read and op.write and not op.implicit
        return self._places() if updates and not is_division(self.form) else 0

    def _plain(self, pair: Pair) -> list[Chain]:
        chain = self._self_chain(pair) or self._same_register(pair) or self._swap(pair)
        if chain is None:
            return [self._linked(pair)]
        return [chain, *self._bypass(pair, chain)]

    def unbroken(self, pair: Pair) -> Chain | None:
        """The pair's chain without anything that cuts other dependencies, where that is possible.

        No less true (a loop takes as long as its longest cycle), and shorter where the cutting
        instructions get in the way. None where there is nothing to leave out, or not safely.
        """
        if is_division(self.form):
            return None
        broken = self.chains(pair)[0]
        with self._uncut():
            chain = self.chains(pair)[0]
        return None if chain.items == broken.items else msgspec.structs.replace(chain, variant="unbroken")

    @contextmanager
    def _uncut(self) -> Iterator[None]:
        """Chains without cuts, unless what is cut has to keep its value."""
        implicit = any(op.is_memory and op.implicit for op in self.form.operands)
        self._cuts = implicit or "vsib" in self.form.attributes or is_division(self.form)
        try:
            yield
        finally:
            self._cuts = True

    def _self_chain(self, pair: Pair) -> Chain | None:
        """Source and target are the same place already."""
        if pair.source != pair.target:
            return None
        return chain_of(pair, "self", [*self.breakers(pair.source), self.use()], (), 1)

    def _slot(self, node: Node) -> tuple[int, int] | None:
        key = (node.operand, 0)
        return key if key in self.registers else None

    def _compatible(self, pair: Pair) -> bool:
        """Whether source and target may be one register."""
        s, t = pair.source, pair.target
        if s.part != "register" or t.part != "register" or s.domain != t.domain:
            return False
        if "unique_registers" in self.form.attributes:
            return False
        a, b = self.form.operands[s.operand], self.form.operands[t.operand]
        return a.cls == b.cls or s.domain == "v" or (s.domain == "r" and not self.roles.narrow)

    def _same_register(self, pair: Pair) -> Chain | None:
        """One register for a read source and a written-only target."""
        s, t = pair.source, pair.target
        if not self._compatible(pair) or self.form.operands[t.operand].read or may_copy(self.form):
            return None
        if self.form.operands[s.operand].write:
            return None
        slot, other = self._slot(s), self._slot(t)
        if slot is not None and other is not None:
            changes = {slot: self.registers[other]}
        elif slot is not None:
            changes = {slot: self.place(t).number}
        elif other is not None:
            changes = {other: self.place(s).number}
        else:
            return None
        if not self._allowed(changes):
            return None
        return chain_of(pair, "same register", [*self.breakers(s), self.use(changes)], (), 1)

    def _allowed(self, changes: dict[tuple[int, int], int]) -> bool:
        for (operand, part), number in changes.items():
            op = self.form.operands[operand]
            if part == 0 and op.cls == "R8l" and self.roles.narrow and number > 3:
                return False
            if op.fixed in ("block4", "pair"):
                return False
        return True

    def _swap(self, pair: Pair) -> Chain | None:
        """Two instances with source and target exchanged, the target's old value broken."""
        s, t = pair.source, pair.target
        slot, other = self._slot(s), self._slot(t)
        if not self._compatible(pair) or slot is None or other is None:
            return None
        if self.form.operands[s.operand].cls != self.form.operands[t.operand].cls:
            return None
        if self.form.operands[s.operand].write:
            return None
        forward, back = self.registers[slot], self.registers[other]
        if self.roles.narrow and forward == 3 and self.roles.pool(self.form.operands[t.operand], "chain"):
            forward = next(n for n in (0, 1, 2) if n != back)
        first = {slot: forward, other: back}
        second = {slot: back, other: forward}
        items: list[Use | Instruction] = []
        for changes in (first, second):
            items += self._break_target(pair, changes[other])
            items += self.breakers(s, skip=t)
            items.append(self.use(changes))
        return chain_of(pair, "swap", items, (), 2)

    def _break_target(self, pair: Pair, number: int) -> list[Instruction]:
        op = self.form.operands[pair.target.operand]
        if not op.read or not self._cuts:
            return []
        kind = domain(op.cls)
        if kind == "h":
            return [self.helpers.constant(number - 4)]
        if kind == "r":
            return [self.helpers.constant(number)]
        if kind == "v":
            return [self.helpers.vector_constant(number, VECTOR_CONSTANT, op.width)]
        return [self.helpers.mask_constant(number)] if kind == "k" else []

    def _bypass(self, pair: Pair, chain: Chain) -> list[Chain]:
        """The same chain with an integer and with a floating-point identity behind the form."""
        op = self.form.operands[pair.target.operand] if pair.target.operand >= 0 else None
        plain = self.form.attributes.isdisjoint(("masked", "memory", "rounding", "sae", "broadcast"))
        if op is None or pair.target.domain != "v" or not plain or chain.count != 1:
            return []
        if not self.helpers.has_bypass(op.width):
            return []
        place = self.place(pair.target)
        return [
            msgspec.structs.replace(
                chain,
                variant=f"{kind} link",
                items=(*chain.items, self.helpers.bypass(place.number, op.width, kind)),
                links=(f"bypass.{kind}.{op.width}",),
            )
            for kind in ("integer", "fp")
        ]

    def _linked(self, pair: Pair) -> Chain:
        """Through a link from the target's place to the source's."""
        s, t = pair.source, pair.target
        target, source = self.place(t), self.place(s)
        if self._needs_value(s):
            return self._restoring(pair)
        if target.kind == "r" and source.kind == "r" and target.number == source.number:
            raise Unmeasurable("source and target are parts of one register")
        if target.flag == "AF" and self._uses_rax(s):
            raise Unmeasurable("AF is only readable through AH, and the form needs RAX")
        step = self._path(target, source, s)
        if step is None:
            raise Unmeasurable(f"no instruction carries a value from {t.name} back to {s.name}")
        instructions = list(step.instructions)
        if self._is_vector_mask(s.operand):
            instructions = [*instructions[:-1], self._onto_ones(target, source)]
        items: list[Use | Instruction] = [*self.breakers(s), self.use(), *instructions]
        if s.part == "flag":  # the loop counter destroys flags: they must not cross the body's end
            items = [instructions[-1], *self.breakers(s), self.use(), *instructions[:-1]]
        return chain_of(pair, "link", items, step.keys, 1)

    def _path(self, target: Place, source: Place, node: Node) -> LinkStep | None:
        """The way back; to floating-point data through a vector register that gets its value again."""
        element = self.form.operands[node.operand].element if node.part == "data" else ""
        if target.kind not in ("r", "flag") or element not in ("f16", "f32", "f64"):
            return self.helpers.path(target, source)
        general = Place("r", TEMPORARY, 64)
        vector = Place("v", SCRATCH_VECTOR, max(128, source.width))
        middle = (general, vector) if target.kind == "flag" else (vector,)
        return self.helpers.through(target, middle, source)

    def _onto_ones(self, target: Place, source: Place) -> Instruction:
        """The mask again: all ones, depending on the result."""
        if target.kind != "v" or not self.helpers.avx:
            raise Unmeasurable("no vector to make a mask of")
        name = "VORPS (YMM, YMM, YMM)" if source.width == 256 else "VPOR (XMM, XMM, XMM)"
        return self.helpers.make(name, source.number, target.number, VECTOR_ONES)

    def _balanced(self, chain: Chain) -> Chain:
        """With what a form pops to memory pushed before; what it pushes, its link pops."""
        pops = self.form.x87_pops
        if pops <= 0:
            return chain
        items: list[Use | Instruction] = []
        for item in chain.items:
            if isinstance(item, Use):
                items += [self.helpers.make("FLD (STi)", 0)] * pops
            items.append(item)
        return msgspec.structs.replace(chain, items=tuple(items))

    # --- values that a chain would spoil -----------------------------------------------------------

    def _narrows(self, pair: Pair) -> bool:
        """Whether the result, read as the source's wider floating-point type, would be denormal."""
        s, t = pair.source, pair.target
        data = s.part not in ("address", "index") and {s.domain, t.domain} <= {"v", "mem"}
        return data and s.operand != t.operand and is_narrowing(self.form)

    def restored(self, pair: Pair, value: int) -> Chain:
        """The source is brought back to the value in register `value`, depending on the target."""
        s, target, place = pair.source, self.place(pair.target), self.place(pair.source)
        width = max(128, place.width, target.width)
        items: list[Use | Instruction] = [*self.breakers(s), self.use()]
        keys: tuple[str, ...] = ()
        if target.kind == "mem":
            into, keys = self._through(target, Place("v", SCRATCH_VECTOR, max(target.width, 128)))
            items += into
            target = Place("v", SCRATCH_VECTOR, width)
        number = SCRATCH_VECTOR if s.part == "data" else place.number
        again = self.helpers.again(target.number, number, value, width)
        if not again:
            raise Unmeasurable("bringing back the source's value needs AVX")
        items += again
        keys = (*keys, f"restore.{width}")
        if s.part == "data":
            out, more = self._through(Place("v", number, width), place)
            items, keys = [*items, *out], (*keys, *more)
        return chain_of(pair, "link", items, keys, 1)

    def _through(self, source: Place, target: Place) -> tuple[tuple[Instruction, ...], tuple[str, ...]]:
        step = self.helpers.step(source, target)
        if step is None:
            raise Unmeasurable("no load or store of this width")
        return step.instructions, step.keys

    # --- chains longer than the throughput -------------------------------------------------------

    def filled(self, pair: Pair, count: int) -> Chain:
        """The pair's chain with `count` one-cycle instructions on its way, and nothing cut.

        Needed where a form's throughput is longer than its latency: then the chain alone runs at
        the throughput. Other dependencies are shorter than this chain. Raises Unmeasurable where
        nothing can be put in. What is locked waits for the stores before it, and so for its address.
        """
        stores = any(op.is_memory and op.write for op in self.form.operands)
        if stores and "lock" not in self.form.attributes and pair.source.part in ("address", "index"):
            raise Unmeasurable(
                "a core that predicts which store a load takes its data from skips the address"
            )
        with self._uncut():
            return self._filled(pair, count)

    def _filled(self, pair: Pair, count: int) -> Chain:
        s = pair.source
        at_end = (s.part == "register" and s.domain in ("r", "v", "k")) or s.domain == "v"
        if at_end and not self._needs_value(s):
            return self._filled_at_end(pair, count)
        filling = [self.helpers.fill(Place("r", TEMPORARY, 64))[0]] * count
        back, keys = self.to_general(pair)
        explicit = s.part == "index" and (s.operand, 2) not in self.registers
        use = self.use(index=explicit)
        items: list[Use | Instruction] = [*self.breakers(s), use, *back, *filling]
        keys = (*keys, *["r>r"] * count)
        if s.part in ("address", "index") or self._needs_value(s):
            number = self._address_register(s) if s.part != "register" else self.place(s).number
            if s.part == "register" and self.form.operands[s.operand].write:
                items.append(self._general_constant(self.form.operands[s.operand], self.place(s)))
            items += self._xor_twice(number)
            return chain_of(pair, "filled", items, (*keys, "xor", "xor"), 1)
        step = self.helpers.path(Place("r", TEMPORARY, 64), self.place(s))
        if step is None:
            raise Unmeasurable(f"no instruction carries a value back to {s.name}")
        if s.part == "flag":
            items = [step.instructions[-1], *self.breakers(s), self.use(), *back, *filling]
            items += step.instructions[:-1]
        else:
            items += step.instructions
        return chain_of(pair, "filled", items, (*keys, *step.keys), 1)

    def _filled_at_end(self, pair: Pair, count: int) -> Chain:
        chain = self.chains(pair)[0]
        place = self.place(pair.source if chain.links or pair.source.part == "index" else pair.target)
        if chain.variant == "swap":  # the second instance's target is the first one's source
            first = next(item for item in chain.items if isinstance(item, Use))
            slots = [(slot.operand, slot.part) for slot in self.slots]
            number = first.registers[slots.index((pair.source.operand, 0))]
            place = msgspec.structs.replace(place, number=number - 4 if place.kind == "h" else number)
        fill, key = self.helpers.fill(place)
        items = (*chain.items, *[fill] * count)
        return msgspec.structs.replace(
            chain, variant="filled", items=items, links=(*chain.links, *[key] * count)
        )
