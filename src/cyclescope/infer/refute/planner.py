"""Kernels of mixes: a few forms over and over, whose instances do not wait for those of another form.

Every form that reads what it writes has registers of its own, the others share the rest, and
nothing reads what another form writes. Loads and stores have addresses of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from functools import lru_cache, partial

import msgspec

from cyclescope.infer.ports.candidates import flags_by_mnemonic
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.block import Register
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import Experiment, Key
from cyclescope.measure.ports import PortPlanner, Question

MIXES = "mix"
ORDERS = 2  # in turn, and two instances of each form at a time
_RING = 4  # registers of a form that reads what it writes: it waits for itself that much less
_BODY = 96  # instructions at least: the loop's own are one in a hundred
_BETWEEN = " + "
_FLOATS = ("f16", "bf16", "f32", "f64")
_WIDEST = 512  # bits of a vector
_APART = frozenset(("x87", "mmx", "d3now"))  # share registers that others would spoil

Forms = tuple[InstructionForm, ...]
Touched = Set[Register]


def mix_key(forms: Sequence[str], phase: str, order: int) -> Key:
    """What identifies a mix in a store: the phase of the run in which it was drawn, and its order."""
    return forms[0], MIXES, _BETWEEN.join(forms[1:]), phase, order_name(order)


def order_name(order: int) -> str:
    """What an order of a mix is called in a store: the first is that of its forms."""
    return f"order {order}"


def mixed_forms(form: str, source: str) -> tuple[str, ...]:
    """The forms of a mix from two parts of its key."""
    return form, *filter(None, source.split(_BETWEEN))


class MixPart(msgspec.Struct, frozen=True):
    """Instances of one form of a mix: what they touch, and the state that they need.

    `ring` is the number of instances that do not wait for each other, 0 where all do.
    """

    instructions: tuple[Instruction, ...]
    reads: frozenset[Register]
    writes: frozenset[Register]
    state: MachineState
    setup: bytes
    ring: int


class MixPlanner:
    """Makes mixes with the kernels of a planner of port experiments.

    A core that `shuts` ports to shorter vectors while it has the widest ones has no mix of both.
    """

    def __init__(self, plans: PortPlanner, shuts: bool = True) -> None:
        self._plans = plans
        self._shuts = shuts
        self._planner = plans.planner
        self._dialect = plans.planner.dialect
        self._known = lru_cache()(self._parts)  # of the last mixes: each is drawn, doubted and made in turn
        self._starts: dict[str, tuple[MachineState, bytes]] = {}
        self._known_touched: dict[tuple[str, tuple[int, ...]], tuple[Touched, Touched]] = {}

    def question(self, forms: Forms, phase: str, order: int) -> Question:
        """The experiment of a mix: `count` is how often its body has the mix."""
        key = mix_key([form.id for form in forms], phase, order)
        return Question(key, partial(self._experiment, key, forms, self.parts(forms), order))

    def parts(self, forms: Sequence[InstructionForm]) -> dict[str, MixPart] | None:
        """Instances of each form; None where registers or states do not go together."""
        return self._known(tuple({form.id: form for form in forms}.values()))

    def _parts(self, every: Forms) -> dict[str, MixPart] | None:
        if (
            not _go_together(every)
            or self._reads_flags_of_others(every)
            or (self._shuts and _differ_in_length(every))
        ):
            return None
        try:
            starts = {form.id: self._start(form) for form in every}
            found = self._chosen(every)
        except Unmeasurable:
            return None
        return {
            name: msgspec.structs.replace(part, state=starts[name][0], setup=starts[name][1])
            for name, part in found.items()
        }

    def _start(self, form: InstructionForm) -> tuple[MachineState, bytes]:
        """State and setup of a form alone."""
        if form.id not in self._starts:
            _, speed = self._planner.uses(form, 1)
            state = self._planner.stream_state(form, speed)
            self._starts[form.id] = state, self._dialect.setup(form, state)
        return self._starts[form.id]

    def _reads_flags_of_others(self, forms: Sequence[InstructionForm]) -> bool:
        """Whether a form reads flags that another one writes, or would with other operands.

        A shift by 0 leaves flags as they are, and what reads them next waits twenty cycles for it on a Zen 5.
        """
        return any(
            one.flags_read & flags_by_mnemonic(self._planner.table)[other.mnemonic]
            for one in forms if one.flags_read
            for other in forms if other is not one
        )  # fmt: skip

    def _chosen(self, forms: Sequence[InstructionForm]) -> dict[str, MixPart]:
        """Those that choose no registers first, then those that wait for themselves, then the others."""
        found: dict[str, MixPart] = {}
        taken: frozenset[Register] = frozenset()
        free = [form for form in forms if self._plans.block(form) is not None]
        for form in forms:
            if form not in free:
                part = self._fixed(form)
                if not (part.writes | part.reads).isdisjoint(taken):
                    raise Unmeasurable("two forms need the same registers")
                taken |= part.writes | part.reads
                found[form.id] = part
        for place, form in enumerate(sorted(free, key=lambda form: not _updates(form))):
            part = self._own(form, taken, len(free) - place)
            taken |= part.writes
            found[form.id] = part
        for name, part in found.items():
            others = [other.writes for some, other in found.items() if some != name]
            if not part.reads.isdisjoint(frozenset().union(*others)):
                raise Unmeasurable("a form would wait for another one")
        return found

    def _fixed(self, form: InstructionForm) -> MixPart:
        some = self._planner.instances(form, _RING)
        same = len(set(some.registers)) == 1 or _counts_on_flags(form)
        ring = 0 if same else len(some.registers)
        return MixPart(some.kernel.body, some.reads, some.writes, some.kernel.state, b"", ring)

    def _own(self, form: InstructionForm, taken: frozenset[Register], sharing: int) -> MixPart:
        """Instances with registers that nothing else touches: as many as have to be, or a fair share."""
        block = self._plans.block(form, taken)
        if block is None:
            raise Unmeasurable("too few registers for a mix")
        have = block.instructions
        count = len(have) if not block.writes else max(_RING, len(have) // sharing)
        if not _updates(form) and block.writes:
            count = max(1, len(have) // sharing)
        some = have[:count]
        touched = [self._touched(form, one.registers) for one in some]
        reads = frozenset().union(*[reads for reads, _ in touched])
        writes = frozenset().union(*[writes for _, writes in touched])
        ring = 0 if _counts_on_flags(form) else len(some)
        return MixPart(some, reads, writes, MachineState(()), b"", ring)

    def _touched(self, form: InstructionForm, registers: tuple[int, ...]) -> tuple[Touched, Touched]:
        """What an instance reads and writes: in many mixes a form has the same registers."""
        found = self._known_touched.get((form.id, registers))
        if found is None:
            both = self._dialect.read(form, registers), self._dialect.written(form, registers)
            found = self._known_touched[form.id, registers] = both
        return found

    def _experiment(
        self, key: Key, forms: Forms, parts: dict[str, MixPart] | None, order: int
    ) -> Experiment | None:
        if parts is None:
            return None
        state = self._state(forms, parts)
        if state is None:
            return None
        times = math.ceil(_BODY / len(forms) / 2) * 2
        taken = dict.fromkeys(parts, 0)
        items = []
        for form in _ordered(forms, times, order):
            part = parts[form.id]
            items.append(part.instructions[taken[form.id] % len(part.instructions)])
            taken[form.id] += 1
        setup = next((part.setup for part in parts.values() if part.setup), b"")
        return Experiment(*key, self._plans.mixed(items, state, setup), times)

    def _state(self, forms: Forms, parts: dict[str, MixPart]) -> MachineState | None:
        """A state in which all forms run; None where two need different ones."""
        essences: dict[object, list[str]] = {}
        for name, part in parts.items():
            essences.setdefault(_essence(part), []).append(name)
        if len(essences) > 2 or (len(essences) == 2 and min(map(len, essences.values())) > 1):
            return None
        special = min(essences.values(), key=len)[0]
        floats = [form.id for form in forms if form.element in _FLOATS]
        chosen = parts[special].state
        if floats:  # integers are no harmless values to them: products of such are too small
            chosen = self._planner.with_values(chosen, parts[floats[0]].state)
        level = max(self._dialect.vector_level(form) for form in forms)
        return self._planner.with_vectors(chosen, level)


def _essence(part: MixPart) -> object:
    """What a state has besides the values of vectors and data."""
    some = part.state
    return some.general, some.pokes, some.flags, some.control, some.x87, some.streaming, part.setup


def _ordered(forms: Forms, times: int, order: int) -> list[InstructionForm]:
    if order == 0:
        return [*forms] * times
    return [form for form in forms for _ in range(2)] * (times // 2)


def _updates(form: InstructionForm) -> bool:
    """Whether a form reads a register or memory that it writes."""
    return any((op.is_register or op.is_memory) and op.read and op.write for op in form.operands)


def _stores(form: InstructionForm) -> bool:
    return any(op.is_memory and op.write for op in form.operands)


def _updates_memory(form: InstructionForm) -> bool:
    return any(op.is_memory and op.read and op.write for op in form.operands)


def _counts_on_flags(form: InstructionForm) -> bool:
    """Whether a form reads flags that it writes."""
    return bool(form.flags_read and form.flags_written)


def _go_together(forms: Sequence[InstructionForm]) -> bool:
    """Whether forms can be beside each other without waiting through flags, memory or whole files."""
    if len(forms) > 1 and any(not form.attributes.isdisjoint(_APART) for form in forms):
        return False
    if sum(map(_counts_on_flags, forms)) > 1:
        return False
    if any("nontemporal" in form.attributes and _stores(form) for form in forms):
        return False  # memory behind the caches limits them, which no port says anything of
    if any(_updates_memory(form) for form in forms) and sum(map(_stores, forms)) > 1:
        return False  # it would read what another one stored, narrower or wider, to the same place
    return len({form.vector_encoding for form in forms if form.vector_encoding}) < 2


def _differ_in_length(forms: Sequence[InstructionForm]) -> bool:
    """Whether vectors of 512 bits are beside shorter ones."""
    return len({form.vector_width == _WIDEST for form in forms if form.vector_width}) > 1
