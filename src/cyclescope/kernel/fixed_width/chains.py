"""Latency chains of AArch64 and RISC-V: kernels whose critical path runs from one operand to another.

As for x86-64 (kernel/x86_64/chains.py): cut what else the form reads and writes; the form; a link from the
target back to the source, unless both can be one register. Addresses keep their value: the result is XORed
twice onto them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from cyclescope.isa.dataflow import Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.chain import Chain, Unmeasurable, Use, chain_of
from cyclescope.kernel.fixed_width.links import FLOAT_SCRATCH, SCALABLE
from cyclescope.kernel.fixed_width.numbers import FLOATS, exponent_operand, keeps_numbers, number_type
from cyclescope.kernel.fixed_width.operands import ChainOperands
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place

Items = list[Use | Instruction]
_MOVES = re.compile(r"MOV|[FSU]MOV|FMV|ORR$|(C\.)?MV|VF?MV|(C\.)?FMV")


def returns_what_was(form: InstructionForm) -> bool:
    """Whether the register that a form writes gets what memory, or a status register, held before."""
    return "atomic" in form.attributes or form.mnemonic.startswith("CSRR")


def may_copy(form: InstructionForm) -> bool:
    """Whether the form may copy a register, so that with one register for both it would do nothing."""
    return bool(_MOVES.match(form.mnemonic))


class ChainBuilder(ChainOperands):
    """Builds the chains of one form; forms with the same signature share them."""

    def chains(self, pair: Pair) -> list[Chain]:
        """The chains of a pair, the best first. Raises Unmeasurable with the reason."""
        if pair.excluded:
            raise Unmeasurable(pair.excluded)
        self._check_values(pair)
        if pair.source.part in ("address", "index"):
            return [self._address_chain(pair)]
        chain = self._self_chain(pair) or self._same_register(pair) or self._swap(pair)
        return [chain or self._linked(pair)]

    def _check_values(self, pair: Pair) -> None:
        """No value passes through some pairs, or not to where a link reads it. Raises Unmeasurable."""
        if pair.source.name == "[PC].data":
            raise Unmeasurable("the data are constants in the code, which no link stores")
        if pair.source.part != "register" or pair.target.part != "register":
            return
        if self.form.operands[pair.source.operand].conditional and pair.source.operand == pair.target.operand:
            raise Unmeasurable(f"{pair.source.name} is written as a whole, whatever it was")
        if returns_what_was(self.form):
            raise Unmeasurable("the result is what was there before: it does not depend on the operand")
        group = self.registers(pair.target.operand)
        if "SLIDE1DOWN" in self.form.mnemonic and pair.source.domain in ("r", "f") and len(group) > 1:
            raise Unmeasurable("it gets into the last register of the group only, and links read the first")

    def unbroken(self, pair: Pair) -> Chain | None:
        """The pair's chain with no other dependency cut, None where none was."""
        broken = self.chains(pair)[0]
        with self._uncut():
            chain = self.chains(pair)[0]
        return None if chain.items == broken.items else msgspec.structs.replace(chain, variant="unbroken")

    @contextmanager
    def _uncut(self) -> Iterator[None]:
        self._cuts = False
        try:
            yield
        finally:
            self._cuts = True

    # --- without links -----------------------------------------------------------------------------

    def _self_chain(self, pair: Pair) -> Chain | None:
        """Source and target are the same place already."""
        if pair.source.operand != pair.target.operand:
            return None
        return chain_of(pair, "self", [*self.breakers(pair.source), self.use()], (), 1)

    def _one_file(self, pair: Pair) -> bool:
        """Whether source and target may be one register as far as their files go."""
        s, t = (self.form.operands[n.operand] for n in (pair.source, pair.target))
        registers = pair.source.part == pair.target.part == "register" and s.role != "mask"
        if s.file in ("v", "f") and not keeps_numbers(self.form):
            return False
        if pair.source.operand == exponent_operand(self.form):
            return False
        return registers and s.file == t.file != "?" and not s.write

    def _same_register(self, pair: Pair) -> Chain | None:
        """One register for a source and a result that is not read."""
        target = self.form.operands[pair.target.operand]
        apart = target.early_clobber or "unique_registers" in self.form.attributes
        if not self._one_file(pair) or target.read or apart or may_copy(self.form):
            return None
        changes = self._joined(pair)
        if changes is None:
            return None
        return chain_of(pair, "same register", [*self.breakers(pair.source), self.use(changes)], (), 1)

    def _joined(self, pair: Pair) -> dict[int, int] | None:
        """Values that make the source the target's register, or the other way round."""
        s, t = pair.source.operand, pair.target.operand
        for mine, other in ((s, t), (t, s)):
            registers = self.registers(other)
            value = self.other_value(mine, registers[0]) if registers else None
            if value is not None and len(self.registers(mine, value)) == len(registers):
                return {mine: value}
        return None

    def _swap(self, pair: Pair) -> Chain | None:
        """Two instances with source and target exchanged, the target's old value cut."""
        s, t = pair.source.operand, pair.target.operand
        operands = self.form.operands
        if not self._one_file(pair) or operands[s].cls != operands[t].cls or not {s, t} <= self.values.keys():
            return None
        if operands[t].early_clobber or "unique_registers" in self.form.attributes or not operands[t].read:
            return None
        items: Items = []
        if not self._legal({s: self.values[t], t: self.values[s]}):
            return None
        for source, target in ((self.values[s], self.values[t]), (self.values[t], self.values[s])):
            if self._cuts:
                items += self.cut_group(t, target)
            items += self.breakers(pair.source, skip=pair.target)
            items.append(self.use({s: source, t: target}))
        return chain_of(pair, "swap", items, (), 2)

    def _legal(self, changes: dict[int, int]) -> bool:
        """Whether fields have the values, and vector groups may be together."""
        values = [changes.get(operand, self.values[operand]) for operand, _ in self.fields]
        known = (value in self.found(field) for value, (_, field) in zip(values, self.fields, strict=True))
        return all(known) and not self.helpers.conflict(self.form, values)

    # --- with links --------------------------------------------------------------------------------

    def _linked(self, pair: Pair) -> Chain:
        """Through a link from the target's place to the source's."""
        source, target = self.place(pair.source), self._read_place(pair)
        self._check_forwarding(pair, source)
        items: Items = [*self.breakers(pair.source), *self._rest(pair), self.use()]
        if self._restores(pair, source, target):
            if not self.helpers.fits(target, source):
                raise Unmeasurable(_no_way(pair, source))
            more, keys = self.helpers.again(target, source, self._value_register(pair))
        elif source.kind == "f" and target.kind == "v" and not keeps_numbers(self.form):
            more, keys = self._float_again(pair, target, source)
        else:
            step = self._path(pair, target, source)
            if step is None:
                raise Unmeasurable(_no_way(pair, source))
            more, keys = self._kept(pair, list(step[0])), step[1]
        return chain_of(pair, "link", [*items, *more], keys, 1)

    def _float_again(
        self, pair: Pair, target: Place, source: Place
    ) -> tuple[list[Instruction], tuple[str, ...]]:
        """An f register gets its value again: the result of a vector form is no such number."""
        middle = Place("f", FLOAT_SCRATCH, source.width)
        step = self._path(pair, target, middle)
        if step is None:
            raise Unmeasurable(_no_way(pair, source))
        more, keys = self.helpers.again(middle, source, self._value_register(pair))
        return [*step[0], *more], (*step[1], *keys)

    def _check_forwarding(self, pair: Pair, source: Place) -> None:
        """A load takes its data from one store, or waits until several are in the cache."""
        loaded = len(self.registers(pair.target.operand)) if source == Place("mem", width=SCALABLE) else 0
        if loaded > self.helpers.group:
            raise Unmeasurable(f"it loads {loaded} registers, and the store of a link writes fewer at once")

    def _rest(self, pair: Pair) -> list[Instruction]:
        """Cuts what of a source of several registers the link does not write, but the form does."""
        op = self.form.operands[pair.source.operand]
        several = self._cuts and op.write and pair.source.part == "register"
        return self.cut_group(pair.source.operand, first=1) if several else []

    def _kept(self, pair: Pair, instructions: list[Instruction]) -> list[Instruction]:
        """The way back to a mask ends in all ones."""
        op = self.form.operands[pair.source.operand]
        return self.helpers.to_mask(instructions) if op.role == "mask" else instructions

    def _read_place(self, pair: Pair) -> Place:
        """Where the result is read from: of data that no single load has, the first part, but of several
        registers that one of the source's.
        """
        place = self.place(pair.target)
        part = self._stored_part(pair, place)
        if part is not None:
            return part
        known = any(width == place.width for _, width in self.helpers.loads)
        if pair.target.part != "data" or (known and place.width != SCALABLE):
            return place
        width = 64 if 64 < place.width < SCALABLE else 8
        return msgspec.structs.replace(place, width=width)

    def _stored_part(self, pair: Pair, whole: Place) -> Place | None:
        """What a store of several registers writes of a source, None where it is no such store."""
        if pair.target.part != "data" or pair.source.part != "register":
            return None
        operands = self.form.operands
        stored = [
            n for n, op in enumerate(operands)
            if op.is_register and op.read and op.width and not op.role and op.file in ("r", "v", "f")
        ]  # fmt: skip
        widths = [operands[n].width for n in stored]
        if len(stored) < 2 or sum(widths) != whole.width or pair.source.operand not in stored:
            return None
        before = sum(widths[: stored.index(pair.source.operand)])
        width = min(widths[0], 64)
        return msgspec.structs.replace(whole, width=width, offset=before // 8)

    def _restores(self, pair: Pair, source: Place, target: Place) -> bool:
        """Whether a floating-point source gets its value again, as the result is no such number."""
        element = self.form.operands[pair.source.operand].element or number_type(self.form)
        return source.kind == target.kind and source.kind in ("v", "f") and element in FLOATS

    def _value_register(self, pair: Pair) -> int:
        exponent = pair.source.operand == exponent_operand(self.form)
        return self.pools.nought if exponent else self.pools.value

    def _path(
        self, pair: Pair, target: Place, source: Place
    ) -> tuple[tuple[Instruction, ...], tuple[str, ...]] | None:
        step = self.helpers.path(target, source)
        if step is not None and not self.scratch and len(step.keys) > 1:
            raise Unmeasurable("the form takes all vector registers: none is left on the way back")
        return None if step is None else (step.instructions, step.keys)

    # --- addresses ---------------------------------------------------------------------------------

    def to_general(self, pair: Pair) -> tuple[list[Instruction], tuple[str, ...]]:
        """Instructions that bring the target into the temporary register, and their keys."""
        temporary = Place("r", self.pools.temporary, 64)
        step = self.helpers.path(self._read_place(pair), temporary)
        if step is None:
            raise Unmeasurable(f"no instruction brings {pair.target.name} to a general register")
        return list(step.instructions), step.keys

    def _address_chain(self, pair: Pair, filling: int = 0) -> Chain:
        op = self.form.operands[pair.source.operand]
        if pair.source.operand == pair.target.operand:  # a base that moves on, by nothing
            return chain_of(pair, "self", [*self.breakers(pair.source), self.use()], (), 1)
        if op.file == "v":
            return self._vector_address(pair)
        back, keys = self.to_general(pair)
        fill = self.helpers.fill(Place("r", self.pools.temporary, 64))
        if filling and fill is not None:
            back, keys = [*back, *[fill[0]] * filling], (*keys, *[fill[1]] * filling)
        number = self.registers(pair.source.operand)[0][1]
        twice = [self.helpers.xor(number, self.pools.temporary)] * 2
        variant = "filled" if filling else "link"
        items: Items = [*self.breakers(pair.source), self.use(), *back, *twice]
        return chain_of(pair, variant, items, (*keys, "xor", "xor"), 1)

    def _vector_address(self, pair: Pair) -> Chain:
        """Gathers: the result is XORed twice onto the vector of addresses or indices."""
        middle = Place("v", self.pools.scratch, SCALABLE)
        target = self._read_place(pair)
        number = self._address_register(pair)
        if target.kind != "v" and not self.scratch:
            raise Unmeasurable("the form takes all vector registers: none is left on the way back")
        xor = self.helpers.xor_vector(number, self.pools.scratch if target.kind != "v" else target.number)
        if xor is None:
            raise Unmeasurable("no helper instruction works on a vector of addresses")
        step = self.helpers.path(target, middle) if target.kind != "v" else None
        if step is None and target.kind != "v":
            raise Unmeasurable(f"no instruction makes a vector of {pair.target.name}")
        back, keys = (list(step.instructions), step.keys) if step else ([], ())
        items: Items = [*self.breakers(pair.source), self.use(), *back, xor, xor]
        return chain_of(pair, "link", items, (*keys, "xor.z", "xor.z"), 1)

    def _address_register(self, pair: Pair) -> int:
        """Where the result is XORed onto a vector of addresses: of a store the last elements of it.

        Those are what is in memory in the end, where all elements have the same address.
        """
        numbers = [number for _, number in self.registers(pair.source.operand)]
        stores = pair.target.part == "data"
        return numbers[-self.helpers.group if stores and len(numbers) > self.helpers.group else 0]

    # --- chains longer than the throughput ---------------------------------------------------------

    def filled(self, pair: Pair, count: int) -> Chain:
        """The pair's chain with `count` one-cycle instructions on its way, and nothing cut."""
        stores = any(op.is_memory and op.write for op in self.form.operands)
        if pair.source.part in ("address", "index"):
            if stores or self.form.operands[pair.source.operand].file == "v":
                raise Unmeasurable(
                    "a core that predicts which store a load takes its data from skips the address"
                )
            with self._uncut():
                return self._address_chain(pair, count)
        with self._uncut():
            chain = self.chains(pair)[0]
        node = pair.source if chain.links else pair.target
        if node.part != "register" or (
            chain.variant == "swap" and pair.source.operand != pair.target.operand
        ):
            node = pair.source
        if chain.variant == "same register" and pair.target.operand in (self._joined(pair) or {}):
            node = pair.source  # the target's register is the source's
        fill = self.helpers.fill(self.place(node)) if node.part == "register" else None
        if fill is None:
            raise Unmeasurable(f"nothing fills a chain through {node.name}")
        return msgspec.structs.replace(
            chain, variant="filled", items=(*chain.items, *[fill[0]] * count),
            links=(*chain.links, *[fill[1]] * count),
        )  # fmt: skip


def _no_way(pair: Pair, source: Place) -> str:
    if source.kind == "mem":
        return f"no single store has the {source.width} bits that it loads"
    return f"no instruction carries a value from {pair.target.name} back to {pair.source.name}"
