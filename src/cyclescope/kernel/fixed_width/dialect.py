"""Kernels of AArch64 and RISC-V as the planner wants them: what both have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping, Sequence

from cyclescope.isa.dataflow import Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.block import BlockingSequence, Register
from cyclescope.kernel.chain import Chain, Unmeasurable, Use
from cyclescope.kernel.cycle import Cycle
from cyclescope.kernel.dialect import Items, PairChains
from cyclescope.kernel.fixed_width.blocking import BlockBuilder, addresses, touched
from cyclescope.kernel.fixed_width.branches import BranchBuilder
from cyclescope.kernel.fixed_width.chains import ChainBuilder, may_copy
from cyclescope.kernel.fixed_width.cycles import CycleBuilder
from cyclescope.kernel.fixed_width.division import DivisionStreams, IntegerDivision, VectorDivision
from cyclescope.kernel.fixed_width.links import SCALABLE, Helpers
from cyclescope.kernel.fixed_width.numbers import (
    FLOATS,
    exponent_operand,
    is_division,
    is_integer_division,
    is_integer_vector_division,
    is_vector_division,
    keeps_numbers,
    number_type,
)
from cyclescope.kernel.fixed_width.operands import immediates
from cyclescope.kernel.fixed_width.streams import StreamBuilder
from cyclescope.kernel.fixed_width.values import (
    start_state,
    with_integers,
    with_zeros,
)
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place
from cyclescope.kernel.state import FIRST_WINDOW, VECTOR_FLOAT, MachineState
from cyclescope.kernel.stream import Stream

_SPECIAL = frozenset(("branch", "call", "return", "exclusive"))


class FixedWidthDialect(ABC):
    """See `kernel.dialect.Dialect`."""

    def __init__(self, helpers: Helpers) -> None:
        self.helpers = helpers

    # --- of the instruction set --------------------------------------------------------------------

    @abstractmethod
    def unmeasurable(self, form: InstructionForm) -> str:
        """Why user space cannot measure a form, or ""."""

    def helpers_of(self, form: InstructionForm) -> Helpers:
        """Helper instructions of a form's kernels."""
        return self.helpers

    @abstractmethod
    def branches(self, form: InstructionForm) -> BranchBuilder:
        """What makes the sequences of branches."""

    @abstractmethod
    def places(self) -> tuple[Place, ...]:
        """A place in every register file that there are links of, a general register first."""

    @abstractmethod
    def reference(self) -> str:
        """A form whose state suits every link."""

    # --- plans -------------------------------------------------------------------------------------

    def nop(self) -> Instruction:
        """NOP."""
        return self.helpers.nop()

    def signature(self, form: InstructionForm) -> object:
        """Operands, attributes, flags and fields; the mnemonic where it matters."""
        special = is_division(form) or not form.attributes.isdisjoint(_SPECIAL) or self.is_special(form)
        named = special or bool(self.unmeasurable(form)) or may_copy(form) or exponent_operand(form) >= 0
        fields = form.bits and (form.bits.fields, form.bits.length)
        floats = (number_type(form) in FLOATS, keeps_numbers(form))
        return (
            form.signature, form.attributes, form.flags_read, form.flags_written, floats,
            form.id if named else "", fields, form.configuration,
        )  # fmt: skip

    def streams(self, form: InstructionForm) -> list[tuple[Stream, str]]:
        """Throughput sequences; divisions have two classes of values."""
        if self.is_sequence(form):
            return [(stream, "") for stream in self.branches(form).streams() or ()]
        if is_division(form):
            both = [(s, DivisionStreams(form, self.helpers_of(form), s).streams()) for s in ("fast", "slow")]
            return [(stream, speed) for speed, found in both for stream in found]
        return [(stream, "") for stream in StreamBuilder(form, self.helpers_of(form)).streams()]

    def is_sequence(self, form: InstructionForm) -> bool:
        """Whether the form runs in a sequence of its own only."""
        special = not form.attributes.isdisjoint(_SPECIAL) or self.is_special(form)
        return special and self.branches(form).streams() is not None

    def is_special(self, form: InstructionForm) -> bool:
        """Whether a form that is no branch needs other instructions, too."""
        return False

    def chain_builders(self, form: InstructionForm) -> Sequence[PairChains]:
        """Builders of latency chains."""
        if self.is_sequence(form) and not self.is_special(form):
            return [_NoChains()]
        if is_integer_division(form):
            return [IntegerDivision(form, self.helpers_of(form), s) for s in ("fast", "slow")]
        helpers = self.helpers_of(form)
        if is_integer_vector_division(form):
            return [VectorDivision(form, helpers, s) for s in ("fast", "slow")]
        plain = ChainBuilder(form, helpers)
        return [plain, VectorDivision(form, helpers, "slow")] if is_vector_division(form) else [plain]

    def instruction(self, form: InstructionForm, use: Use) -> Instruction:
        """The form with the values of a plan."""
        values = immediates(form) if use.immediates is None else use.immediates
        return Instruction(form, use.registers, 0, values)

    def setup(self, form: InstructionForm, state: MachineState) -> bytes:
        """Nothing."""
        return b""

    def probe(self, form: InstructionForm) -> tuple[Items, MachineState] | None:
        """One instance."""
        if form.bits is None:
            return None
        try:
            use = StreamBuilder(form, self.helpers_of(form)).instances(1)[0]
        except Unmeasurable:
            fields = [field for field in form.bits.fields if field.is_register]
            use = Use(tuple(field.values.legal[0] for field in fields))
        return (use,), self.stream_state(form, "fast" if is_division(form) else "")

    # --- states ------------------------------------------------------------------------------------

    def stream_state(self, form: InstructionForm, speed: str) -> MachineState:
        """Registers and memory for throughput sequences."""
        helpers = self.helpers_of(form)
        state = start_state(form, helpers, helpers.level(form))
        if speed:
            return DivisionStreams(form, helpers, speed).state(state)
        indices = any(op.role == "index" and op.file == "v" for op in form.operands)
        if not indices and exponent_operand(form) < 0:
            return state
        builder = StreamBuilder(form, helpers)
        return with_zeros(state, builder.vector_zeros(builder.instances(1)[0]))

    def chain_state(self, form: InstructionForm, speed: str) -> MachineState:
        """Registers and memory for latency chains, whose helpers may need vectors."""
        helpers = self.helpers_of(form)
        state = start_state(form, helpers, max(helpers.level(form), VECTOR_FLOAT))
        if any(op.role == "base" and op.fixed for op in form.operands):  # links reach data alone
            state = with_integers(state, (helpers.pools.stack,), (FIRST_WINDOW,))
        if is_integer_division(form) and speed:
            return IntegerDivision(form, helpers, speed).state(state)
        if speed:
            return VectorDivision(form, helpers, speed).state(state)
        builder = ChainBuilder(form, helpers)
        return with_zeros(state, builder.vector_zeros(builder.use()))

    def fill(self, form: InstructionForm, position: int, number: int) -> tuple[Instruction, str]:
        """See `links.Helpers.fill`: of a list or group in its first register."""
        builder = StreamBuilder(form, self.helpers_of(form))
        field = next(field for operand, field in builder.fields if operand == position)
        (kind, first), *_ = builder.found(field)[number]
        found = builder.helpers.fill(Place(kind, first, form.operands[position].width or SCALABLE))
        if found is None:
            raise Unmeasurable(f"nothing fills a chain through {form.operands[position].name}")
        return found

    def overwrite(self, form: InstructionForm, position: int, number: int) -> Mapping[str, Items]:
        """See `links.Helpers.cut`: of each register of a list or group."""
        builder = StreamBuilder(form, self.helpers_of(form))
        field = next(field for operand, field in builder.fields if operand == position)
        width = form.operands[position].width or SCALABLE
        places = [Place(kind, one, width) for kind, one in builder.found(field)[number]]
        cut = [item for place in places for item in builder.helpers.cut_one(place)]
        return {"": tuple(cut)} if cut else {}

    def empty(self, form: InstructionForm, position: int, kept: Container[Register]) -> bytes:
        """Nothing: no idiom is known that all cores take a register back for."""
        return b""

    def vector_level(self, form: InstructionForm) -> int:
        """How much vector state a form needs."""
        return self.helpers.level(form)

    def cycles(self) -> list[tuple[Cycle, MachineState, bytes]]:
        """Closed chains of all links, with state and setup."""
        form = self.helpers.form(self.reference())
        state = start_state(form, self.helpers, self.helpers.level(form))
        return [(cycle, state, b"") for cycle in CycleBuilder(self.helpers, self.places()).cycles()]

    # --- ports -------------------------------------------------------------------------------------

    prefixed: frozenset[Register] = frozenset()

    def block(self, form: InstructionForm, avoid: Iterable[Register]) -> BlockingSequence:
        """Blocking instances of a form that touch none of the registers to avoid. Raises Unmeasurable."""
        return BlockBuilder(form, self.helpers_of(form), avoid).block()

    def written(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """Registers that an instance writes."""
        return touched(form, registers, self.helpers.pools.isa, write=True)

    def read(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """Registers that an instance reads, those of addresses included."""
        return touched(form, registers, self.helpers.pools.isa, write=False)

    def addresses(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """Registers that an instance's addresses are made of."""
        return addresses(form, registers, self.helpers.pools.isa)


class _NoChains:
    """Of forms that run in sequences with other instructions."""

    def chains(self, pair: Pair) -> list[Chain]:
        raise Unmeasurable("it runs only with other instructions around it, which are not its latency")

    def unbroken(self, pair: Pair) -> None:
        return None

    def filled(self, pair: Pair, count: int) -> Chain:
        raise Unmeasurable("it runs only with other instructions around it")
