"""Plans: which kernels answer what about a form.

Forms with the same signature share one plan, so that generating a kernel is little more than
encoding a few instructions.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.chain import Chain, Unmeasurable, Use
from cyclescope.kernel.chains import ChainBuilder
from cyclescope.kernel.cycles import NOP, CycleBuilder
from cyclescope.kernel.division import DivisionStreams, IntegerDivision, SlowDivision
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST, Kernel
from cyclescope.kernel.links import Helpers
from cyclescope.kernel.registers import Roles
from cyclescope.kernel.special import SpecialBuilder, unmeasurable
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.streams import Stream, StreamBuilder
from cyclescope.kernel.values import (
    INTEGER_DIVISION,
    chain_state,
    immediates,
    is_division,
    is_narrowing,
    origin,
    stream_state,
)

NOPS = 48
PLANS = 400  # kept; forms of one signature are rarely further apart
THROUGHPUT, LATENCY, LINK = "throughput", "latency", "link"


Coded = tuple[Instruction, bytes]


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
    def key(self) -> tuple[str, str, str, str, str]:
        """What identifies the experiment in a store."""
        return self.form, self.quantity, self.source, self.target, self.variant


class Instances(msgspec.Struct, frozen=True):
    """Independent instances of a form, as a kernel, and the registers of each."""

    form: InstructionForm
    kernel: Kernel
    registers: tuple[tuple[int, ...], ...]


class Planner:
    """Makes experiments of forms with this CPU's helper instructions."""

    def __init__(self, helpers: Helpers) -> None:
        self.helpers = helpers
        self._plans: dict[object, FormPlan] = {}
        self._states: dict[object, MachineState] = {}
        self._interned: dict[MachineState, MachineState] = {}
        self._keys: dict[str, object] = {}
        self._fixed: dict[Instruction, Coded] = {}

    # --- plans -----------------------------------------------------------------------------------

    def plan(self, form: InstructionForm) -> FormPlan:
        """The plan of a form; shared by all forms of its signature."""
        key = self._key(form)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= PLANS:
                del self._plans[next(iter(self._plans))]
            found = self._plans[key] = self._make_plan(form)
        return found

    def reason(self, form: InstructionForm, source: str, target: str) -> str:
        """Why a pair (the throughput: "", "") has no kernel, or ""."""
        found = (m.reason for m in self.plan(form).missing if (m.source, m.target) == (source, target))
        return next(found, "")

    def _key(self, form: InstructionForm) -> object:
        found = self._keys.get(form.id)
        if found is None:
            found = self._keys[form.id] = self._make_key(form)
        return found

    def _make_key(self, form: InstructionForm) -> object:
        encoding = form.encoding
        kind = (form.mnemonic.startswith(_MOVES), is_narrowing(form))
        special = form.mnemonic if self._is_special(form) else kind
        return (
            form.signature, form.attributes, form.flags_read, form.flags_written, special,
            encoding and (encoding.slots, encoding.displacement, encoding.modrm >= 0, encoding.immediates),
        )  # fmt: skip

    def _is_special(self, form: InstructionForm) -> bool:
        special = {"branch", "call", "return", "stack", "rep", "repne", "x87", "interrupt", "string"}
        return (
            is_division(form)
            or not form.attributes.isdisjoint(special)
            or form.mnemonic in _SINGULAR
            or bool(unmeasurable(form))
        )

    def _make_plan(self, form: InstructionForm) -> FormPlan:
        reason = unmeasurable(form)
        if reason:
            return FormPlan((), (), tuple(self._all_missing(form, reason)))
        streams, missing = self._streams(form)
        chains: list[Chain] = []
        for pair in pairs(form):
            found, why = self._pair_chains(form, pair)
            chains += found
            if why:
                missing.append(Missing(pair.source.name, pair.target.name, why))
        return FormPlan(tuple(streams), tuple(chains), tuple(missing))

    def _all_missing(self, form: InstructionForm, reason: str) -> Iterator[Missing]:
        yield Missing("", "", reason)
        for pair in pairs(form):
            yield Missing(pair.source.name, pair.target.name, pair.excluded or reason)

    def _streams(self, form: InstructionForm) -> tuple[list[tuple[Stream, str]], list[Missing]]:
        special = SpecialBuilder(form, self.helpers).builder()
        try:
            if special is not None:
                return [(s, "") for s in special()], []
            if is_division(form) and "x87" not in form.attributes:
                both = [(s, DivisionStreams(form, self.helpers, s).streams()) for s in ("fast", "slow")]
                return [(stream, speed) for speed, found in both for stream in found], []
            return [(s, "") for s in StreamBuilder(form, self.helpers).streams()], []
        except Unmeasurable as error:
            return [], [Missing("", "", str(error))]

    def _pair_chains(self, form: InstructionForm, pair: object) -> tuple[list[Chain], str]:
        chains: list[Chain] = []
        reason = ""
        for builder in self._chain_builders(form):
            try:
                chains += builder.chains(pair)  # type: ignore[arg-type]
            except Unmeasurable as error:
                reason = reason or str(error)
        return chains, "" if chains else reason

    def _chain_builders(self, form: InstructionForm) -> list[ChainBuilder]:
        if form.mnemonic in INTEGER_DIVISION:
            return [IntegerDivision(form, self.helpers, s) for s in ("fast", "slow")]
        plain = ChainBuilder(form, self.helpers)
        if is_division(form) and "x87" not in form.attributes:
            return [plain, SlowDivision(form, self.helpers)]
        return [plain]

    # --- experiments -----------------------------------------------------------------------------

    def instances(self, form: InstructionForm, count: int) -> Instances:
        """Independent instances of a form for a mix with others. Raises Unmeasurable with the reason."""
        plan = self.plan(form)
        if not plan.streams:
            raise Unmeasurable(self.reason(form, "", "") or "no throughput sequence")
        stream, speed = plan.streams[0]
        uses = [item for item in stream.items if isinstance(item, Use)]
        if len(uses) < len(stream.items):
            raise Unmeasurable("its instances need other instructions beside them")
        kernel = self._kernel(form, tuple(uses[:count]), self._stream_state(form, speed), 0)
        registers = tuple(use.registers for use in uses[:count])
        return Instances(form, kernel, registers)

    def with_vectors(self, state: MachineState, level: int) -> MachineState:
        """A state with at least so much vector state."""
        if state.vector_level >= level:
            return state
        return self._intern(msgspec.structs.replace(state, vector_level=level))

    def throughput(self, form: InstructionForm) -> list[Experiment]:
        """Throughput experiments of a form."""
        plan = self.plan(form)
        made: dict[Use, Coded] = {}
        return [
            Experiment(
                form.id, THROUGHPUT, "", "", self._stream_name(stream, speed),
                self._kernel(form, stream.items, self._stream_state(form, speed), stream.flags, made),
                stream.count,
            )
            for stream, speed in plan.streams
        ]  # fmt: skip

    def latency(self, form: InstructionForm) -> list[Experiment]:
        """Latency experiments of a form."""
        made: dict[Use, Coded] = {}
        return [self._chain_experiment(form, chain, made) for chain in self.plan(form).chains]

    def _chain_experiment(
        self, form: InstructionForm, chain: Chain, made: dict[Use, Coded] | None = None
    ) -> Experiment:
        return Experiment(
            form.id, LATENCY, chain.source, chain.target, chain.variant,
            self._kernel(form, chain.items, self._chain_state(form, chain), chain.flags, made),
            chain.count, chain.links,
        )  # fmt: skip

    def filled(self, form: InstructionForm, source: str, target: str, count: int) -> Experiment | None:
        """A latency experiment with `count` one-cycle instructions in its chain, or None."""
        pair = next(p for p in pairs(form) if (p.source.name, p.target.name) == (source, target))
        try:
            chain = self._chain_builders(form)[0].filled(pair, count)
        except Unmeasurable:
            return None
        return self._chain_experiment(form, chain)

    def unbroken(self, form: InstructionForm, source: str, target: str) -> Experiment | None:
        """A latency experiment that cuts no other dependency, or None where none was cut."""
        pair = next(p for p in pairs(form) if (p.source.name, p.target.name) == (source, target))
        builder = self._chain_builders(form)[0]
        if type(builder) is not ChainBuilder or is_division(form):
            return None
        try:
            chain = builder.unbroken(pair)
        except Unmeasurable:
            return None
        return None if chain is None else self._chain_experiment(form, chain)

    def link_experiments(self) -> list[Experiment]:
        """The closed chains of links, and their controls with the dependency cut."""
        reference = self._reference_form()
        state = self._intern(chain_state(reference, Roles(reference), self.helpers.avx))
        x87_state = self._intern(msgspec.structs.replace(state, x87=True))
        result = []
        for cycle in CycleBuilder(self.helpers).cycles():
            for variant, items in (("", cycle.items), ("cut", cycle.control)):
                kernel = self._kernel(reference, items, state, 0)
                if any("x" in key.split(".")[0].split(">") or ".x." in key for key in cycle.keys):
                    kernel = msgspec.structs.replace(kernel, setup=self._x87_setup(), state=x87_state)
                result.append(Experiment(cycle.name, LINK, "", "", variant, kernel, 1, cycle.keys))
        nops = self._kernel(reference, (self.helpers.make("NOP"),) * NOPS, state, CANARY | FAST)
        return [*result, Experiment(NOP, LINK, "", "", "", nops, NOPS)]

    def _reference_form(self) -> InstructionForm:
        """A form whose state suits every link."""
        name = "VPADDD (ZMM, ZMM, ZMM)" if self.helpers.avx512 else "VPADDD (YMM, YMM, YMM)"
        return self.helpers.form(name if self.helpers.avx else "PADDD (XMM, XMM)")

    def probe_kernel(self, form: InstructionForm) -> Kernel | None:
        """One instance of a form, to see whether the CPU executes it; None without encoding."""
        if form.encoding is None:
            return None
        if SpecialBuilder(form, self.helpers).builder() is not None and self.plan(form).streams:
            stream, speed = self.plan(form).streams[0]
            return self._kernel(form, stream.items, self._stream_state(form, speed), 0)
        if is_division(form) and "x87" not in form.attributes:
            uses = tuple(StreamBuilder(form, self.helpers).instances(1))
            return self._kernel(form, uses, self._stream_state(form, "fast"), 0)
        try:
            use = ChainBuilder(form, self.helpers).use()
        except Unmeasurable:
            use = Use((0,) * len(form.encoding.slots))
        return self._kernel(form, (use,), self._speed_state(form, ""), 0)

    def _stream_name(self, stream: Stream, speed: str) -> str:
        return speed or (f"{stream.variant} x{stream.length}" if stream.length > 1 else stream.variant)

    def _stream_state(self, form: InstructionForm, speed: str) -> MachineState:
        key = ("stream", self._key(form), form.element, form.mnemonic, speed)
        if key not in self._states:
            self._states[key] = self._intern(stream_state(form, Roles(form), speed))
        return self._states[key]

    def _chain_state(self, form: InstructionForm, chain: Chain) -> MachineState:
        return self._speed_state(form, chain.variant if chain.variant in ("fast", "slow") else "")

    def _speed_state(self, form: InstructionForm, speed: str) -> MachineState:
        """State for chains with a class of values."""
        key = ("chain", self._key(form), form.element, form.mnemonic, speed)
        if key not in self._states:
            state = chain_state(form, Roles(form), self.helpers.avx, speed)
            self._states[key] = self._intern(state)
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
    ) -> Kernel:
        """The kernel of a plan's items; `made` keeps what the kernels of one form have in common."""
        uses = {} if made is None else made
        coded = [self._use(form, i, uses) if isinstance(i, Use) else self._helper(i) for i in items]
        stack = state.x87 and "x87" in form.attributes
        setup = self._x87_setup(form.x87_pops == 0) if stack else b""
        body = tuple([instruction for instruction, _ in coded])
        return Kernel(b"".join([code for _, code in coded]), len(body), state, setup, flags, body)

    def _use(self, form: InstructionForm, use: Use, made: dict[Use, Coded]) -> Coded:
        found = made.get(use)
        if found is None:
            place = origin(form) + use.displacement
            values = use.immediates or immediates(form.mnemonic)
            instruction = Instruction(form, use.registers, place, values, use.index)
            found = made[use] = instruction, instruction.code()
        return found

    def _helper(self, instruction: Instruction) -> Coded:
        found = self._fixed.get(instruction)
        if found is None:
            found = self._fixed[instruction] = instruction, instruction.code()
        return found

    def _x87_setup(self, full: bool = False) -> bytes:
        """Six x87 registers with 1.0, or all eight where nothing is pushed."""
        make = self.helpers.make
        return make("FNINIT").code() + make("FLD1").code() * (8 if full else 6)


_MOVES = ("MOV", "VMOV", "KMOV", "XCHG")
_SINGULAR = {"BT", "BTS", "BTR", "BTC", "XLATB", "MOVDIR64B", "ENQCMD", "CPUID", "XGETBV", "LAHF"}
