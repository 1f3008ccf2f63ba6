"""Plans of port experiments: forms between NOP-like fillers, and forms among blocking instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import product

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.block import BlockingSequence, Instances, Register, UsedRegisters
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST, LONG, Kernel
from cyclescope.kernel.variant import Kind, variant_of
from cyclescope.measure.plan import Experiment, Key, Planner

ALONE, SLOTS, PORTS, PAIRS, BACKLOG = "alone", "slots", "ports", "pairs", "backlog"
_CYCLES = 4  # that the instances of each of two blocking forms take alone
COUNTED = 4  # of the form whose slots are counted: an error of the loop is so much less for each
INSTANCES = 2  # of the form under test among blocking instructions
_ENOUGH = 4  # blocking instances with registers of their own
_GATES = 4  # slow instructions, of three cycles at least: twelve of the front end gather meanwhile
_GATHERED = 40  # instances of two forms that gather: any scheduler holds them, with those that follow
_LAST = 3  # of each form that a chain goes on after, one at a time, and as many numbers of instances
_LONG = 100  # instructions: above, a body is a loop of its own


@cache
def blocked(variant: str) -> int:
    """Cycles of blocking in the variant of an experiment."""
    return int(variant.partition(".")[0].removeprefix("x"))


@cache
def in_rounds(variant: str) -> tuple[int, ...]:
    """Instances of each form in a round, and then the rounds."""
    return tuple(map(int, variant.split(".")))


@cache
def together(variant: str) -> int:
    """Instances in a cycle of two forms that fill ports together; 0 where each would fill its own alone."""
    return sum(beside(variant))


@cache
def beside(variant: str) -> tuple[int, ...]:
    """The same by form."""
    return tuple(map(int, variant.split(".")[2:]))


class Question(msgspec.Struct, frozen=True):
    """A port experiment that is yet to be made, by the key that it has in a store.

    `make` returns None or raises Unmeasurable where there is no such kernel.
    """

    key: Key
    make: Callable[[], Experiment | None]


Stage = tuple[str, Callable[[], Iterable[Question]]]  # a name, and what is asked when it begins


class Filling(msgspec.Struct, frozen=True):
    """`count` instances of a form to stand between others, in groups of `together` at least.

    The others get prefixes where they are shorter than `bytes`.
    """

    form: InstructionForm
    count: int
    together: int = 1
    bytes: int = 0

    def part(self, number: int, parts: int) -> tuple[int, int]:
        """First and last of the instances in one of so many equal parts."""
        groups = self.count // self.together
        return self.together * (groups * number // parts), self.together * (groups * (number + 1) // parts)


class Company(msgspec.Struct, frozen=True):
    """What a form's sequence has beside its instances: the kind of sequence, and the others' mnemonics.

    `restores` says whether the others write what an instance reads and overwrites.
    """

    kind: Kind
    others: tuple[str, ...]
    restores: bool


class PortPlanner:
    """Makes port experiments with a planner's kernels."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self._dialect = planner.dialect
        self._blocks: dict[tuple[str, frozenset[Register]], BlockingSequence | None] = {}
        self._found: Instances | None = None  # of the last form asked for
        self._asked = "", 0

    def company(self, form: InstructionForm) -> Company | None:
        """What stands beside the instances of a form; None where they stand alone, or there are none."""
        streams = self.planner.sequences(form).streams
        items = streams[0][0].items if streams else ()
        others = [item for item in items if isinstance(item, Instruction)]
        if not others:
            return None
        use = next(item for item in items if isinstance(item, Use))
        mine = self._dialect.written(form, use.registers) & self._dialect.read(form, use.registers)
        theirs = frozenset().union(*[self._dialect.written(one.form, one.registers) for one in others])
        names = tuple(dict.fromkeys(one.form.mnemonic for one in others))
        return Company(variant_of(streams[0][0].variant).kind, names, not mine.isdisjoint(theirs))

    # --- kernels ---------------------------------------------------------------------------------

    def block(
        self, form: InstructionForm, avoid: frozenset[Register] = frozenset()
    ) -> BlockingSequence | None:
        """Blocking instances of a form, or None where the registers do not suffice."""
        key = form.id, avoid
        if key not in self._blocks:
            try:
                self._blocks[key] = self._dialect.block(form, avoid)
            except Unmeasurable:
                self._blocks[key] = None
        return self._blocks[key]

    def beside(self, blocker: InstructionForm, found: UsedRegisters) -> BlockingSequence | None:
        """Blocking instances that do not wait for the instances found.

        Nor, if there are registers for it, do those wait for them: all micro-operations of an instance
        that waited would be ready at once, and older than the blocking instructions beside them. They
        never change its addresses.
        """
        writes, reads = found.writes, found.reads
        block = self.block(blocker)
        if block is not None and block.reads.isdisjoint(writes) and block.writes.isdisjoint(reads):
            return block
        apart = self.block(blocker, writes | reads)
        if apart is not None and len(apart.instructions) >= _ENOUGH:
            return apart
        fixed = frozenset().union(*[self._dialect.addresses(found.form, some) for some in found.registers])
        if block is not None and block.reads.isdisjoint(writes) and block.writes.isdisjoint(fixed):
            return block
        return self.block(blocker, writes | fixed)

    def _instances(self, form: InstructionForm, count: int = INSTANCES) -> Instances:
        """Instances of a form; raises Unmeasurable. A form's experiments are made one after the other."""
        if self._found is None or self._asked != (form.id, count):
            self._found = self.planner.instances(form, count)
            self._asked = form.id, count
        return self._found

    def against(
        self,
        form: InstructionForm,
        blocker: InstructionForm,
        width: int,
        cycles: int,
        together: bool = False,
        look: int = 1,
        setter: InstructionForm | None = None,
    ) -> Question:
        """`INSTANCES` of a form among blocking instructions that fill their ports for `cycles` cycles.

        They are spread evenly, or stand `together` at the end: an instance that takes both of two ports
        loses a cycle where the blocking instructions before it are odd in number. `look` counts the times
        that it is measured. A `setter` before each instance writes what that would read of those.
        """
        before = setter.id if setter else ""
        key = form.id, PORTS, blocker.id, before, f"x{cycles}" + (f".{look}" if look > 1 else "")
        return Question(key, partial(self._among, key, form, blocker, width * cycles, together, setter))

    def slots(self, form: InstructionForm, filling: Filling, instances: int) -> Question:
        """Instances of a form spread evenly among instructions that need a front-end slot and no port."""
        key = form.id, SLOTS, filling.form.id, "", f"x{filling.count}.{instances}"
        return Question(key, partial(self._slots, key, form, filling, instances))

    def alone(self, form: InstructionForm) -> Question:
        """`INSTANCES` of a form with nothing around them: the least time of any mix with it."""
        return Question((form.id, ALONE, "", "", ""), partial(self._alone, form))

    def pair(
        self, first: InstructionForm, second: InstructionForm, widths: tuple[int, int], order: int
    ) -> Question:
        """Two blocking forms for as long as `_CYCLES` of each alone, mixed or one after the other."""
        return self._question((first, second), widths, order, f"x{_CYCLES}.{order}")

    def filling(self, forms: Sequence[InstructionForm], counts: tuple[int, ...], order: int) -> Question:
        """Two or three blocking forms: so many of each in a cycle, for `_CYCLES` of these."""
        return self._question(forms, counts, order, ".".join([f"x{_CYCLES}", *map(str, (order, *counts))]))

    def backlogs(self, forms: Sequence[InstructionForm], widths: tuple[int, int]) -> Iterator[Question]:
        """Two forms for a cycle of each alone, and for many, that all wait for a slow chain.

        What has gathered in the scheduler by then issues as fast as its ports let it, however little the
        front end delivers. The chain goes on after one of the last; which is the last to issue depends on
        how they are dealt out. One instance more takes a whole cycle more or none.
        """
        first, second = (form.id for form in forms)
        for cycles, more in product((1, _GATHERED // sum(widths)), range(_LAST)):
            counts = tuple(cycles * width + more for width in widths)
            for end in range(min(_LAST, *counts)):
                key = first, BACKLOG, second, "", ".".join([f"x{cycles}", *map(str, (end, *counts))])
                yield Question(key, partial(self._gathered, key, forms, counts, end))

    def gates(self, form: InstructionForm) -> frozenset[Register]:
        """Registers that all blocking instances of a form read and none writes: not those of addresses."""
        block = self.block(form)
        if block is None or any(op.is_memory for op in form.operands):
            return frozenset()
        return frozenset.intersection(*map(self._read, block.instructions)) - block.writes

    def _question(
        self, forms: Sequence[InstructionForm], counts: tuple[int, ...], order: int, variant: str
    ) -> Question:
        first, second, *third = (form.id for form in forms)
        key = first, PAIRS, second, "".join(third), variant
        return Question(key, partial(self._filling, key, forms, counts, order))

    # --- making them -----------------------------------------------------------------------------

    def _among(
        self,
        key: Key,
        form: InstructionForm,
        other: InstructionForm,
        count: int,
        together: bool = False,
        setter: InstructionForm | None = None,
    ) -> Experiment | None:
        """`INSTANCES` of a form among `count` of another one, each behind a `setter`."""
        found = self._instances(form)
        sets = self.block(setter, found.writes | found.reads) if setter else None
        before = sets.take(1) if sets else []
        if setter and not before:
            return None
        used: UsedRegisters = found
        for one in before:
            writes, reads = found.writes | self._written(one), found.reads | self._read(one)
            used = UsedRegisters(form, found.registers, writes, reads)
        block = self.beside(other, used)
        if block is None:
            return None
        kernel = self._mixed(found, block, count, self._dialect.vector_level(other), together, before)
        setup = kernel.setup + self._emptied(other, used.writes | used.reads | block.writes | block.reads)
        return Experiment(*key, msgspec.structs.replace(kernel, setup=setup), INSTANCES)

    def _emptied(self, blocker: InstructionForm, kept: frozenset[Register]) -> bytes:
        """What takes the values of registers that nobody uses, of the kind that blocking instructions write:
        how many of them are left for what is in flight may depend on what else the core runs.
        """
        places = [place for place, op in enumerate(blocker.operands) if op.is_register and op.write]
        return b"".join(self._dialect.empty(blocker, place, kept) for place in places)

    def _slots(self, key: Key, form: InstructionForm, filling: Filling, instances: int) -> Experiment | None:
        """As many instances as there are registers for, in turn, among the filler, as short as it can be.

        Of longer fillers some front ends fetch no more bytes, and what is longer than these looks like slots.
        """
        found = self._instances(form, COUNTED)
        block = self._short(filling.form, found) or self.beside(filling.form, found)
        if block is None:
            return None
        body = [_longer(one, filling.bytes) for one in found.kernel.body]
        items: list[Instruction] = []
        for number in range(instances):
            first, last = filling.part(number, instances)
            items += [*block.take(last - first, first), body[number % len(body)]]
        level = self._dialect.vector_level(filling.form)
        state = self.planner.with_vectors(found.kernel.state, level)
        return Experiment(*key, self._kernel(items, state, found.kernel.setup), instances)

    def _short(self, filler: InstructionForm, found: Instances) -> BlockingSequence | None:
        """Fillers without the registers that make them longer, None where there are none or none longer."""
        block, prefixed = self.block(filler), self._dialect.prefixed
        longer = block is not None and not prefixed.isdisjoint(block.reads | block.writes)
        return self.block(filler, found.writes | found.reads | prefixed) if longer else None

    def _alone(self, form: InstructionForm) -> Experiment:
        found = self._instances(form)
        kernel = msgspec.structs.replace(found.kernel, flags=CANARY)
        return Experiment(form.id, ALONE, "", "", "", kernel, INSTANCES)

    def _filling(
        self, key: Key, forms: Sequence[InstructionForm], counts: tuple[int, ...], order: int
    ) -> Experiment | None:
        """So many of each form; each has registers of its own if there are enough."""
        parts: list[list[Instruction]] = []
        taken: frozenset[Register] = frozenset()
        for form, count in zip(forms, counts, strict=True):
            block = self.block(form, taken) or self.block(form)
            if block is None:
                return None
            parts.append(block.take(_CYCLES * count))
            taken |= block.writes
        wide = max(forms, key=self._dialect.vector_level)
        state = self.planner.instances(wide, 1).kernel.state
        state = self.planner.with_vectors(state, self._dialect.vector_level(wide))
        return Experiment(*key, self._kernel(_spread(parts, order), state, b""), 1)

    def _gathered(
        self, key: Key, forms: Sequence[InstructionForm], counts: tuple[int, ...], end: int
    ) -> Experiment | None:
        """A chain after one of the last of each part, then the parts mixed, which read what it writes."""
        first = self.block(forms[0])
        second = first and (self.block(forms[1], first.writes) or self.block(forms[1]))
        if first is None or second is None:
            return None
        parts = self._apart(first, second, counts)
        read = frozenset.intersection(*[self._read(one) for part in parts for one in part])
        for gate in sorted(read - first.writes - second.writes):
            ends = [*(min(self._written(part[-1 - end]), default=gate) for part in parts), *[gate] * _GATES]
            chain = [self._slow(gate, one) for one in ends[:_GATES]]
            if all(chain):
                state = self.planner.instances(forms[0], 1).kernel.state
                items = [*filter(None, chain), *_spread(parts, 0)]
                return Experiment(*key, self._kernel(items, state, b""), 1)
        return None

    def _apart(
        self, first: BlockingSequence, second: BlockingSequence, counts: tuple[int, ...]
    ) -> tuple[list[Instruction], list[Instruction]]:
        """So many instances of two blocks, the last of which write no register of each other if possible."""
        part, found = first.take(counts[0]), second.take(counts[1])
        mine = frozenset().union(*map(self._written, part[-_LAST:]))
        for place in range(len(second.instructions)):
            found = second.take(counts[1], place)
            if mine.isdisjoint(frozenset().union(*map(self._written, found[-_LAST:]))):
                break
        return part, found

    def _slow(self, gate: Register, end: Register) -> Instruction | None:
        """A slow instruction that waits for two registers and writes the first; None where there is none."""
        table = self.planner.table
        form = table.get(instruction_set(table.isa).roles.slow)
        if form is None or gate[0] != end[0]:
            return None
        (one,) = self.planner.instances(form, 1).kernel.body
        numbers = (*[gate[1]] * (len(one.registers) - 1), end[1])
        found = msgspec.structs.replace(one, registers=numbers)
        fits = self._written(found) == {gate} and self._read(found) == {gate, end}
        return found if fits else None

    def _written(self, one: Instruction) -> frozenset[Register]:
        return frozenset(self._dialect.written(one.form, one.registers))

    def _read(self, one: Instruction) -> frozenset[Register]:
        return frozenset(self._dialect.read(one.form, one.registers))

    def _mixed(
        self,
        found: Instances,
        block: BlockingSequence,
        count: int,
        level: int,
        together: bool = False,
        before: Sequence[Instruction] = (),
    ) -> Kernel:
        """The blocking instructions in equal parts, or in one, an instance of the form after each part.

        `before` stands before each instance.
        """
        items: list[Instruction] = []
        body = found.kernel.body
        for number, instruction in enumerate(body):
            first, last = count * number // len(body), count * (number + 1) // len(body)
            if together:
                first, last = (count, count) if number else (0, count)
            items += [*block.take(last - first, first), *before, instruction]
        return self._kernel(items, self.planner.with_vectors(found.kernel.state, level), found.kernel.setup)

    def mixed(self, items: Sequence[Instruction], state: object, setup: bytes) -> Kernel:
        """A kernel of instructions in their order."""
        return self._kernel(items, state, setup)

    def _kernel(self, items: Sequence[Instruction], state: object, setup: bytes) -> Kernel:
        code = b"".join([item.code for item in items])
        flags = CANARY | (LONG if len(items) > _LONG else FAST)
        return Kernel(code, len(items), state, setup, flags, tuple(items))  # type: ignore[arg-type]


def _longer(instruction: Instruction, least: int) -> Instruction:
    """An instruction of at least so many bytes."""
    missing = least - len(instruction.code) if least else 0
    return msgspec.structs.replace(instruction, padding=missing) if missing > 0 else instruction


def _spread(parts: Sequence[Sequence[Instruction]], order: int) -> list[Instruction]:
    """All after each other, or evenly mixed."""
    if order:
        return [one for part in parts for one in part]
    places = [((i + 0.5) / len(part), n, x) for n, part in enumerate(parts) for i, x in enumerate(part)]
    return [x for _, _, x in sorted(places, key=lambda place: place[:2])]
