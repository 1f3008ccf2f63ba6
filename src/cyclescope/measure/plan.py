"""Plans: which kernels answer what about a form.

Forms with the same signature share one plan, so that generating a kernel is little more than
encoding a few instructions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress

import msgspec

from cyclescope.isa.dataflow import Pair, is_in_memory, is_old, overwritten, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.block import Instances, UsedRegisters
from cyclescope.kernel.chain import Chain, Unmeasurable, Use, throttled
from cyclescope.kernel.cycle import NOP
from cyclescope.kernel.dialect import Dialect, Executes, PairChains, chains_of, dialect_of
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST, WATCHED, Kernel
from cyclescope.kernel.overwriting import Streams, chosen_stream, filled, kept
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.stream import Stream
from cyclescope.kernel.variant import SPEEDS, UNLINKED, Kind, variant_of

_NOPS = 48
PLANS = 5000  # kept, 60 MB: all of x86-64's, of which ten stages that go over all forms would make each anew
THROUGHPUT, LATENCY, LINK = "throughput", "latency", "link"

Coded = tuple[Instruction, bytes]
Key = tuple[str, str, str, str, str]  # form, quantity, source, target, variant


class Missing(msgspec.Struct, frozen=True):
    """A pair, or the throughput (no source and target), without a kernel, and why."""

    source: str
    target: str
    reason: str


class FormPlan(msgspec.Struct, frozen=True):
    """Everything to be measured about the forms of one signature."""

    streams: tuple[tuple[Stream, str], ...]  # with the class of values, "" or fast or slow
    chains: tuple[Chain, ...]
    missing: tuple[Missing, ...]


Maker = Callable[[InstructionForm], FormPlan]
Further = Callable[[Dialect, InstructionForm, Streams], Streams]
Another = Callable[[PairChains, Pair], Chain | None]


class Experiment(msgspec.Struct, frozen=True):
    """One kernel and the question it answers.

    `quantity` is `throughput` or `latency`; `count` the number of instances of the form (on the
    critical path) per unit; `links` the keys of the links to subtract.
    """

    form: str
    quantity: str
    source: str
    target: str
    variant: str
    kernel: Kernel
    count: int
    links: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """What identifies the experiment in a store."""
        return self.form, self.quantity, self.source, self.target, self.variant


class Planner:
    """Makes experiments of a table's forms, with helper instructions that the CPU executes."""

    def __init__(self, table: Table, executes: Executes) -> None:
        self.table = table
        self.dialect = dialect_of(table, executes)
        self._plans: dict[int, FormPlan] = {}
        self._sequences: dict[int, FormPlan] = {}
        self._instances: dict[tuple[int, int], tuple[tuple[Use, ...], str]] = {}
        self._states: dict[object, MachineState] = {}
        self._interned: dict[MachineState, MachineState] = {}
        self._keys: dict[str, int] = {}
        self._planned: dict[int, tuple[tuple[str, str, str], ...]] = {}
        self._signatures: dict[object, int] = {}
        self._fixed: dict[Instruction, Coded] = {}

    # --- plans -----------------------------------------------------------------------------------

    def plan(self, form: InstructionForm) -> FormPlan:
        """The plan of a form; shared by all forms of its signature."""
        return self._kept(self._plans, form, self._make_plan)

    def sequences(self, form: InstructionForm) -> FormPlan:
        """The part of a form's plan that is for its throughput."""
        return self._kept(self._sequences, form, self._make_sequences)

    def _kept(self, plans: dict[int, FormPlan], form: InstructionForm, make: Maker) -> FormPlan:
        key = self._key(form)
        found = plans.get(key)
        if found is None:
            if len(plans) >= PLANS:
                del plans[next(iter(plans))]
            found = plans[key] = make(form)
        return found

    def unmeasured(
        self, form: InstructionForm, measured: Container[tuple[str, str, str]]
    ) -> dict[tuple[str, str], tuple[int, int]]:
        """How many kernels of a pair (the throughput: "", "") are not measured, and how many there are.

        `measured` has source, target and variant of those that are. Pairs without any are left out.
        """
        every = self._names(form)
        if not (missing := [one[:2] for one in every if one not in measured]):
            return {}
        planned = Counter(one[:2] for one in every)
        return {pair: (count, planned[pair]) for pair, count in Counter(missing).items()}

    def _names(self, form: InstructionForm) -> tuple[tuple[str, str, str], ...]:
        """Source, target and variant of all kernels of a form; kept for all, as they take little room."""
        key = self._key(form)
        if key not in self._planned:
            plan, streams = self.plan(form), self.sequences(form).streams
            named = (("", "", stream.spelled(speed)) for stream, speed in streams)
            self._planned[key] = (*named, *((c.source, c.target, c.variant) for c in plan.chains))
        return self._planned[key]

    def reason(self, form: InstructionForm, source: str, target: str) -> str:
        """Why a pair (the throughput: "", "") has no kernel, or ""."""
        plan = self.plan(form) if source or target else self.sequences(form)
        return next((m.reason for m in plan.missing if (m.source, m.target) == (source, target)), "")

    def _key(self, form: InstructionForm) -> int:
        if form.id not in self._keys:
            number = len(self._signatures)
            self._keys[form.id] = self._signatures.setdefault(self.dialect.signature(form), number)
        return self._keys[form.id]

    def _make_plan(self, form: InstructionForm) -> FormPlan:
        reason = self.dialect.unmeasurable(form)
        if reason:
            return FormPlan((), (), tuple(self._all_missing(form, reason)))
        sequences = self.sequences(form)
        missing = list(sequences.missing)
        chains: list[Chain] = []
        builders, none = self._chain_builders(form)
        for pair in pairs(form):
            found, why = chains_of(builders, pair) if not none else ([], none)
            chains += found
            if why:
                missing.append(Missing(pair.source.name, pair.target.name, why))
        for pair in overwritten(form):
            try:
                stream, _ = chosen_stream(form, sequences.streams)
                chains.append(kept(self.dialect, form, pair, stream))
            except Unmeasurable as error:
                missing.append(Missing(pair.source.name, pair.target.name, pair.excluded or str(error)))
        return FormPlan(sequences.streams, tuple(chains), tuple(missing))

    def _all_missing(self, form: InstructionForm, reason: str) -> Iterator[Missing]:
        yield Missing("", "", reason)
        for pair in (*pairs(form), *overwritten(form)):
            yield Missing(pair.source.name, pair.target.name, pair.excluded or reason)

    def _make_sequences(self, form: InstructionForm) -> FormPlan:
        reason = self.dialect.unmeasurable(form)
        try:
            streams = () if reason else tuple(self.dialect.streams(form))
        except Unmeasurable as error:
            streams, reason = (), str(error)
        return FormPlan(streams, (), (Missing("", "", reason),) if reason else ())

    def _chain_builders(self, form: InstructionForm) -> tuple[Sequence[PairChains], str]:
        """What makes the chains of all pairs, or why nothing does."""
        try:
            return self.dialect.chain_builders(form), ""
        except Unmeasurable as error:  # too few registers
            return (), str(error)

    # --- experiments -----------------------------------------------------------------------------

    def instances(self, form: InstructionForm, count: int) -> Instances:
        """Independent instances of a form for a mix with others. Raises Unmeasurable with the reason."""
        uses, speed = self.uses(form, count)
        kernel = self._kernel(form, uses, self.stream_state(form, speed), 0)
        used = self.used_registers(form, count)
        return Instances(form, used.registers, used.writes, used.reads, kernel=kernel)

    def used_registers(self, form: InstructionForm, count: int) -> UsedRegisters:
        """What registers such instances use. Raises Unmeasurable with the reason."""
        registers = tuple(use.registers for use in self.uses(form, count)[0])
        writes = frozenset().union(*[self.dialect.written(form, some) for some in registers])
        reads = frozenset().union(*[self.dialect.read(form, some) for some in registers])
        return UsedRegisters(form, registers, writes, reads)

    def uses(self, form: InstructionForm, count: int) -> tuple[tuple[Use, ...], str]:
        """What such instances are, and the class of their values. Raises Unmeasurable with the reason."""
        key = self._key(form), count
        if key in self._instances:
            return self._instances[key]
        streams = self.sequences(form).streams
        if not streams:
            raise Unmeasurable(self.reason(form, "", "") or "no throughput sequence")
        own_bases = (one for one in streams if variant_of(one[0].variant).kind is Kind.BASES)
        stream, speed = next(own_bases, streams[0])  # none waits for where another leaves a base
        uses = [item for item in stream.items if isinstance(item, Use)]
        if len(uses) < len(stream.items):
            raise Unmeasurable("its instances need other instructions beside them")
        found = self._instances[key] = tuple(uses[:count]), speed
        return found

    def with_vectors(self, state: MachineState, level: int) -> MachineState:
        """A state with at least so much vector state."""
        if state.vector_level >= level:
            return state
        return self._intern(msgspec.structs.replace(state, vector_level=level))

    def with_values(self, state: MachineState, other: MachineState) -> MachineState:
        """A state whose vectors and memory hold what another one's do."""
        values = {name: getattr(other, name) for name in ("vector", "vectors", "scalars", "fill")}
        return self._intern(msgspec.structs.replace(state, **values))

    def throughput(
        self, form: InstructionForm, done: Container[Key] = (), others: Streams = ()
    ) -> list[Experiment]:
        """Throughput experiments of a form, of its own sequences or others, but for those that are done."""
        made: dict[Use, Coded] = {}
        return [
            Experiment(*key, self._sequence(form, stream, speed, made), stream.count)
            for stream, speed in others or self.sequences(form).streams
            if (key := (form.id, THROUGHPUT, "", "", stream.spelled(speed))) not in done
        ]

    def _sequence(self, form: InstructionForm, stream: Stream, speed: str, made: dict[Use, Coded]) -> Kernel:
        state = self.stream_state(form, speed)
        return self._kernel(form, stream.items, state, stream.flags, made, stream.setup)

    def further(self, form: InstructionForm, made: Further) -> list[Experiment]:
        """Throughput experiments of what is made of a form's sequences, such as `independent`, or nothing."""
        others = made(self.dialect, form, self.sequences(form).streams)
        return self.throughput(form, (), others) if others else []

    def latency(
        self, form: InstructionForm, done: Container[Key] = (), only: Container[tuple[str, str]] | None = None
    ) -> list[Experiment]:
        """Latency experiments of a form, but for those that are done; `only` of some sources and targets."""
        made: dict[Use, Coded] = {}
        return [
            self._chain_experiment(form, chain, made)
            for chain in self.plan(form).chains
            if (only is None or (chain.source, chain.target) in only)
            and (form.id, LATENCY, chain.source, chain.target, chain.variant) not in done
        ]

    def _chain_experiment(
        self, form: InstructionForm, chain: Chain, made: dict[Use, Coded] | None = None
    ) -> Experiment:
        return Experiment(
            form.id, LATENCY, chain.source, chain.target, chain.variant,
            self._kernel(form, chain.items, self._chain_state(form, chain), _loop_of(chain), made),
            chain.count, chain.links,
        )  # fmt: skip

    def filled(self, form: InstructionForm, source: str, target: str, count: int) -> Experiment | None:
        """A latency experiment with `count` one-cycle instructions in its chain, or None."""
        chain = self._another(form, source, target, lambda chains, pair: chains.filled(pair, count))
        return None if chain is None else self._chain_experiment(form, chain)

    def _another(self, form: InstructionForm, source: str, target: str, made: Another) -> Chain | None:
        pair = next(p for p in pairs(form) if (p.source.name, p.target.name) == (source, target))
        try:
            return made(self.dialect.chain_builders(form)[0], pair)
        except Unmeasurable:
            return None

    def _uncut(self, form: InstructionForm, source: str, target: str) -> Chain | None:
        return self._another(form, source, target, lambda chains, pair: chains.unbroken(pair))

    def filled_output(self, form: InstructionForm, source: str, count: int) -> list[Experiment]:
        """What tells of a destination's old value where the throughput hides it: `count` one-cycle
        instructions behind every instance, with one destination and with several; or nothing.
        """
        pair = next(p for p in overwritten(form) if p.source.name == source)
        try:
            stream, _ = chosen_stream(form, self.sequences(form).streams)
            both = filled(self.dialect, form, pair, stream, count)
        except Unmeasurable:
            return []
        return [self._chain_experiment(form, chain) for chain in both]

    def unbroken(self, form: InstructionForm, source: str, target: str) -> Experiment | None:
        """A latency experiment that cuts no other dependency, or None where none was cut."""
        chain = self._uncut(form, source, target)
        return None if chain is None else self._chain_experiment(form, chain)

    def throttled(
        self, form: InstructionForm, source: str, target: str, cycles: float, per_nop: float
    ) -> list[Experiment]:
        """The chains of a pair without links, with NOPs of `per_nop` cycles each, so that the front end
        delivers an instance in `cycles`; without cuts, where it can be: moves may fill the scheduler again.
        """
        made = []
        for chain in self.plan(form).chains:
            alone = not chain.links and variant_of(chain.variant).kind in UNLINKED
            if alone and (chain.source, chain.target) == (source, target):
                bare = self._uncut(form, source, target) or chain
                nops = cycles * bare.count / per_nop - len(bare.items)
                with suppress(Unmeasurable):
                    made.append(throttled(bare, self.dialect.nop(), nops, f"{Kind.THROTTLED} to {cycles:g}"))
        return [self._chain_experiment(form, chain) for chain in made]

    def link_experiments(self) -> list[Experiment]:
        """The closed chains of links, and their controls with the dependency cut."""
        result = []
        state = MachineState(())
        for cycle, start, setup in self.dialect.cycles():
            state = self._intern(start)
            for variant, items in (("", cycle.items), ("cut", cycle.control)):
                kernel = _kernel_of([self._helper(i) for i in items], state, setup, 0)
                result.append(Experiment(cycle.name, LINK, "", "", variant, kernel, 1, cycle.keys))
        nops = _kernel_of([self._helper(self.dialect.nop())] * _NOPS, state, b"", CANARY | FAST)
        return [*result, Experiment(NOP, LINK, "", "", "", nops, _NOPS)]

    def probe_kernel(self, form: InstructionForm) -> Kernel | None:
        """One instance of a form, to see whether the CPU executes it; None without encoding."""
        if self.dialect.is_sequence(form) and (streams := self.sequences(form).streams):
            stream, speed = streams[0]
            return self._kernel(form, stream.items, self.stream_state(form, speed), 0)
        found = self.dialect.probe(form)
        return None if found is None else self._kernel(form, found[0], self._intern(found[1]), 0)

    def stream_state(self, form: InstructionForm, speed: str) -> MachineState:
        """State for sequences with a class of values."""
        key = ("stream", self._key(form), form.element, form.mnemonic, speed)
        if key not in self._states:
            self._states[key] = self._intern(self.dialect.stream_state(form, speed))
        return self._states[key]

    def _chain_state(self, form: InstructionForm, chain: Chain) -> MachineState:
        if is_old(chain.source):
            _, speed = chosen_stream(form, self.sequences(form).streams)
            return self.stream_state(form, speed)
        speed = chain.variant if chain.variant in SPEEDS else ""
        key = ("chain", self._key(form), form.element, form.mnemonic, speed)
        if key not in self._states:
            self._states[key] = self._intern(self.dialect.chain_state(form, speed))
        return self._states[key]

    def _intern(self, state: MachineState) -> MachineState:
        """One object per distinct state: backends and stores know states by identity."""
        return self._interned.setdefault(state, state)

    def _kernel(
        self,
        form: InstructionForm,
        items: tuple[Use | Instruction, ...],
        state: MachineState,
        flags: int,
        made: dict[Use, Coded] | None = None,
        setup: bytes = b"",
    ) -> Kernel:
        """The kernel of a plan's items; `made` keeps what the kernels of one form have in common."""
        uses = {} if made is None else made
        coded = [self._use(form, i, uses) if isinstance(i, Use) else self._helper(i) for i in items]
        return _kernel_of(coded, state, self.dialect.setup(form, state) + setup, flags)

    def _use(self, form: InstructionForm, use: Use, made: dict[Use, Coded]) -> Coded:
        found = made.get(use)
        if found is None:
            instruction = self.dialect.instruction(form, use)
            found = made[use] = instruction, instruction.code
        return found

    def _helper(self, instruction: Instruction) -> Coded:
        found = self._fixed.get(instruction)
        if found is None:
            found = self._fixed[instruction] = instruction, instruction.code
        return found


def _loop_of(chain: Chain) -> int:
    """The flags of a chain: a long loop through memory, which short ones may know; others hide short ones."""
    through_memory = is_in_memory(chain.source) or is_in_memory(chain.target)
    return chain.flags if through_memory or chain.flags & CANARY else chain.flags | FAST


def _kernel_of(coded: Sequence[Coded], state: MachineState, setup: bytes, flags: int) -> Kernel:
    body = tuple([instruction for instruction, _ in coded])
    watched = flags if flags & CANARY else flags | WATCHED
    return Kernel(b"".join([code for _, code in coded]), len(body), state, setup, watched, body)
