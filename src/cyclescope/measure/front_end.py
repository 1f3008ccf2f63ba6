"""Plans of front-end experiments: loops of simple instructions, alone and mixed, and of every length.

What is simple is a choice of what to try, and none of what comes out: forms that some core may deliver as
fast as it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.block import Register
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, LONG, Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import Experiment, Key
from cyclescope.measure.ports import PortPlanner, Question

WIDTH, FETCH, NARROW_LOOPS = "width", "fetch", "narrow"
NOPS, MOVES, IDIOMS, GENERAL, VECTOR = "NOP", "move", "zero idiom", "general", "vector"  # kinds
AND = " + "  # between the kinds and the forms of a mix
BODY = 24  # instructions: what 2, 3 and 4 forms share evenly
MOST_BESIDE = 4  # fillers beside moves: as many as slots leave faster than whole cycles on all cores
FULL_OF_MOVES = (1, 2)  # cycles full of moves, and one more move
ROUNDS_APART = 4  # after which an instance comes again, which may wait for itself: for no more cycles
_FEW = 4  # instances of a form in a mix: half of the registers

MIXED = (
    (NOPS, GENERAL), (NOPS, VECTOR), (NOPS, MOVES), (NOPS, IDIOMS), (GENERAL, VECTOR), (GENERAL, IDIOMS),
    (NOPS, GENERAL, VECTOR), (NOPS, GENERAL, IDIOMS, VECTOR), (NOPS, NOPS, NOPS, GENERAL),
)  # fmt: skip


class Simple(msgspec.Struct, frozen=True):
    """Instances of a simple form, of the kind that it is tried for, and the registers that they touch."""

    form: InstructionForm
    kind: str
    instructions: tuple[Instruction, ...]
    touched: frozenset[Register]

    def take(self, count: int, first: int = 0) -> list[Instruction]:
        """`count` instances, beginning with number `first`."""
        have = self.instructions
        return [have[(first + n) % len(have)] for n in range(count)]


class FrontEndPlanner:
    """Makes front-end experiments with the kernels of port experiments."""

    def __init__(self, plans: PortPlanner, isa: str) -> None:
        self.planner = plans.planner
        self.isa = isa
        self.plans = plans

    # --- instances -------------------------------------------------------------------------------

    def simple(
        self, form: InstructionForm, kind: str, avoid: frozenset[Register] = frozenset()
    ) -> Simple | None:
        """Instances of a form, None where the registers do not suffice."""
        block = self.plans.block(form, avoid)
        if block is None:
            return None
        made = tuple(map(_zeroing, block.instructions)) if kind == IDIOMS else block.instructions
        reads = frozenset() if kind == IDIOMS else block.reads
        return Simple(form, kind, made, reads | block.writes)

    def _few(self, part: Simple) -> Simple:
        """So few instances that others find registers, where none waits for the one before."""
        some = part.instructions[:_FEW]
        written, read = (
            frozenset().union(*[touch(part.form, one.registers) for one in some])
            for touch in (self.planner.dialect.written, self.planner.dialect.read)
        )
        apart = part.kind == IDIOMS or written.isdisjoint(read)
        return Simple(part.form, part.kind, some, written | read) if apart else part

    def _forms(self, known: Mapping[str, InstructionForm]) -> Iterator[tuple[InstructionForm, str]]:
        for kind, names in instruction_set(self.isa).roles.simple.items():
            yield from ((known[name], kind) for name in names if name in known)

    # --- questions -------------------------------------------------------------------------------

    def widths(self, known: Mapping[str, InstructionForm]) -> Iterator[Question]:
        """Simple forms alone, and mixes of the first of each kind; `known` are those the CPU executes."""
        first: dict[str, InstructionForm] = {}
        for form, kind in self._forms(known):
            first.setdefault(kind, form)
            key = form.id, WIDTH, "", "", kind
            yield Question(key, partial(self._mixture, key, ((form, kind),)))
        for kinds in MIXED:
            if all(kind in first for kind in kinds):
                forms = tuple((first[kind], kind) for kind in kinds)
                names = [form.id for form, _ in forms]
                key = names[0], WIDTH, names[1], AND.join(names[2:]), AND.join(kinds)
                yield Question(key, partial(self._mixture, key, forms))

    def _mixture(self, key: Key, forms: Sequence[tuple[InstructionForm, str]]) -> Experiment | None:
        """The forms in turn, each with registers of its own."""
        parts: list[Simple] = []
        for form, kind in forms:
            avoid = frozenset().union(*[part.touched for part in parts if kind != NOPS])
            part = self.simple(form, kind, avoid)
            if part is None:
                return None
            parts.append(part if len(forms) == 1 else self._few(part))
        rows = [part.take(BODY // len(parts)) for part in parts]
        return self._experiment(key, [one for row in zip(*rows, strict=True) for one in row])

    def lengths(self, known: Mapping[str, InstructionForm]) -> Iterator[Question]:
        """NOPs of every length that there is."""
        plain = [part for name in instruction_set(self.isa).roles.sized if name in known
                 if (part := self.simple(known[name], NOPS)) is not None]  # fmt: skip
        for size in range(1, instruction_set(self.isa).longest + 1):
            found = [made for part in plain if (made := _of_length(part, size, self.isa)) is not None]
            if found:
                body = min(found, key=lambda some: some[0].padding)
                key = body[0].form.id, FETCH, "", "", f"x{size}"
                yield Question(key, partial(self._experiment, key, body))

    def narrow(
        self, form: InstructionForm, each: int, filler: InstructionForm, others: Iterable[InstructionForm]
    ) -> Iterator[Question]:
        """Loops of moves, of which a cycle takes `each`, and one of another form; and with a few fillers."""
        for other in (filler, *others):
            yield self._rounds(form, other, (each, 1), ROUNDS_APART)
        for cycles, count in product(FULL_OF_MOVES, range(1, MOST_BESIDE + 1)):
            yield self._rounds(form, filler, (cycles * each + 1, count), 1)

    def _rounds(
        self, form: InstructionForm, other: InstructionForm, counts: tuple[int, int], rounds: int
    ) -> Question:
        key = form.id, NARROW_LOOPS, other.id, "", ".".join(map(str, (*counts, rounds)))
        return Question(key, partial(self._beside, key, (form, other), counts, rounds))

    def _beside(
        self, key: Key, forms: tuple[InstructionForm, InstructionForm], counts: tuple[int, int], rounds: int
    ) -> Experiment | None:
        moves = self.simple(forms[0], MOVES)
        first = moves and self._few(moves)
        second = first and self.simple(forms[1], GENERAL, first.touched)
        if first is None or second is None:
            return None
        parts = list(zip((first, second), counts, strict=True))
        items = [one for n in range(rounds) for part, count in parts for one in part.take(count, n * count)]
        return self._experiment(key, items)

    def _experiment(self, key: Key, items: Sequence[Instruction]) -> Experiment:
        state = MachineState(())
        for form in {item.form.id: item.form for item in items}.values():
            kernel = self.planner.instances(form, 1).kernel if self._has_state(form) else None
            if kernel is not None and kernel.state.vector_level >= state.vector_level:
                state = kernel.state
        code = b"".join([item.code for item in items])
        kernel = Kernel(code, len(items), state, b"", CANARY | LONG, tuple(items))  # long ones as well
        return Experiment(*key, kernel, len(items))

    def _has_state(self, form: InstructionForm) -> bool:
        try:
            self.planner.instances(form, 1)
        except Unmeasurable:
            return False
        return True


def _zeroing(instruction: Instruction) -> Instruction:
    """The instruction with one register for all."""
    first = instruction.registers[0]
    return msgspec.structs.replace(instruction, registers=(first,) * len(instruction.registers))


def _of_length(part: Simple, size: int, isa: str) -> list[Instruction] | None:
    """A body of instances of so many bytes, with prefixes where they are shorter."""
    missing = size - len(part.instructions[0].code)
    if missing < 0 or (missing and not instruction_set(isa).padded):
        return None
    return [msgspec.structs.replace(one, padding=missing) for one in part.take(BODY)]
