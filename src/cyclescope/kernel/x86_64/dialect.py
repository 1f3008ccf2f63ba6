"""Kernels of x86-64 as the planner wants them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import domain
from cyclescope.isa.table import Table
from cyclescope.isa.x86_64.unmeasurable import unmeasurable
from cyclescope.kernel.block import BlockingSequence, Register
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.cycle import Cycle, LinkKey
from cyclescope.kernel.dialect import Dialect, Executes, Items
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.stream import Stream
from cyclescope.kernel.x86_64 import blocking
from cyclescope.kernel.x86_64.chains import X86ChainBuilder
from cyclescope.kernel.x86_64.cycles import X86CycleBuilder
from cyclescope.kernel.x86_64.division import SlowDivision, X86DivisionStreams, X86IntegerDivision
from cyclescope.kernel.x86_64.helpers.links import X86Helpers
from cyclescope.kernel.x86_64.registers import MASK_ONES, MASKS, X86RegisterRoles
from cyclescope.kernel.x86_64.special import SpecialBuilder
from cyclescope.kernel.x86_64.streams import X86StreamBuilder
from cyclescope.kernel.x86_64.values import (
    INTEGER_DIVISION,
    chain_state,
    immediates,
    is_division,
    is_narrowing,
    may_copy,
    origin,
    stream_state,
    vector_level,
)

_SPECIAL = frozenset(("branch", "call", "return", "stack", "rep", "repne", "x87", "interrupt", "string"))
_SINGULAR = frozenset(
    ("BT", "BTS", "BTR", "BTC", "XLATB", "MOVDIR64B", "ENQCMD", "CPUID", "XGETBV", "LAHF")
)  # mnemonics with kernels of their own


class X86Dialect:
    """See `kernel.dialect.Dialect`."""

    def __init__(self, table: Table, executes: Executes) -> None:
        self.helpers = X86Helpers(table, executes)

    def nop(self) -> Instruction:
        """NOP."""
        return self.helpers.make("NOP")

    def signature(self, form: InstructionForm) -> object:
        """Operands, attributes, flags and layout; the mnemonic where it matters."""
        encoding = form.encoding
        kind = (may_copy(form), is_narrowing(form))
        special = form.mnemonic if self._is_special(form) else kind
        return (
            form.signature, form.attributes, form.flags_read, form.flags_written, special,
            encoding and (encoding.slots, encoding.displacement, encoding.modrm >= 0, encoding.immediates),
        )  # fmt: skip

    def _is_special(self, form: InstructionForm) -> bool:
        return (
            is_division(form)
            or not form.attributes.isdisjoint(_SPECIAL)
            or form.mnemonic in _SINGULAR
            or bool(unmeasurable(form))
        )

    def unmeasurable(self, form: InstructionForm) -> str:
        """See `unmeasurable.unmeasurable`."""
        return unmeasurable(form)

    def streams(self, form: InstructionForm) -> list[tuple[Stream, str]]:
        """Throughput sequences; divisions have two classes of values."""
        special = SpecialBuilder(form, self.helpers).builder()
        if special is not None:
            return [(s, "") for s in special()]
        if _divides_vectors_or_integers(form):
            both = [(s, X86DivisionStreams(form, self.helpers, s).streams()) for s in ("fast", "slow")]
            return [(stream, speed) for speed, found in both for stream in found]
        return [(s, "") for s in X86StreamBuilder(form, self.helpers).streams()]

    def chain_builders(self, form: InstructionForm) -> Sequence[X86ChainBuilder]:
        """Builders of latency chains."""
        if form.mnemonic in INTEGER_DIVISION:
            return [X86IntegerDivision(form, self.helpers, s) for s in ("fast", "slow")]
        plain = X86ChainBuilder(form, self.helpers)
        return [plain, SlowDivision(form, self.helpers)] if _divides_vectors_or_integers(form) else [plain]

    def stream_state(self, form: InstructionForm, speed: str) -> MachineState:
        """See `values.stream_state`."""
        return stream_state(form, X86RegisterRoles(form), speed)

    def chain_state(self, form: InstructionForm, speed: str) -> MachineState:
        """See `values.chain_state`."""
        return chain_state(form, X86RegisterRoles(form), self.helpers.avx, speed)

    def setup(self, form: InstructionForm, state: MachineState) -> bytes:
        """x87 registers with 1.0 for forms of the x87, MMX registers written as such for those of MMX."""
        if state.x87 and "x87" in form.attributes:
            return self._x87(form.x87_pops == 0)
        return b"" if form.attributes.isdisjoint(("mmx", "d3now")) else self._mmx()

    def _x87(self, full: bool = False) -> bytes:
        """Six x87 registers with 1.0, or all eight where nothing is pushed."""
        make = self.helpers.make
        return make("FNINIT").code + make("FLD1").code * (8 if full else 6)

    def _mmx(self) -> bytes:
        """Zeros in all MMX registers: one that the x87 wrote last takes eight cycles more at each read on a
        Golden Cove.
        """
        return b"".join(self.helpers.make("PXOR (MM, MM)", n, n).code for n in range(8))

    def instruction(self, form: InstructionForm, use: Use) -> Instruction:
        """The form with the values of a plan."""
        place = origin(form) + use.displacement
        values = use.immediates or immediates(form)
        return Instruction(form, use.registers, place, values, use.index)

    def probe(self, form: InstructionForm) -> tuple[Items, MachineState] | None:
        """One instance."""
        if form.encoding is None:
            return None
        if _divides_vectors_or_integers(form):
            uses = tuple(X86StreamBuilder(form, self.helpers).instances(1))
            return uses, self.stream_state(form, "fast")
        try:
            use = X86ChainBuilder(form, self.helpers).use()
        except Unmeasurable:
            use = Use((0,) * len(form.encoding.slots))
        return (use,), self.chain_state(form, "")

    def is_sequence(self, form: InstructionForm) -> bool:
        """Whether the form runs in a sequence of its own only."""
        return SpecialBuilder(form, self.helpers).builder() is not None

    # --- links -------------------------------------------------------------------------------------

    def cycles(self) -> list[tuple[Cycle, MachineState, bytes]]:
        """Closed chains of all links, with state and setup."""
        reference = self._reference_form()
        state = chain_state(reference, X86RegisterRoles(reference), self.helpers.avx)
        x87 = msgspec.structs.replace(state, x87=True)
        return [
            (cycle, x87, self._x87())
            if _is_x87(cycle)
            else (cycle, state, self._mmx() if _is_mmx(cycle) else b"")
            for cycle in X86CycleBuilder(self.helpers).cycles()
        ]

    def _reference_form(self) -> InstructionForm:
        """A form whose state suits every link."""
        name = "VPADDD (ZMM, ZMM, ZMM)" if self.helpers.avx512 else "VPADDD (YMM, YMM, YMM)"
        return self.helpers.form(name if self.helpers.avx else "PADDD (XMM, XMM)")

    # --- ports -------------------------------------------------------------------------------------

    prefixed = blocking.NAMED_LONGER

    def block(self, form: InstructionForm, avoid: Iterable[Register]) -> BlockingSequence:
        """See `blocking.block_of`."""
        return blocking.block_of(form, avoid)

    def written(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """See `blocking.written`."""
        return blocking.written(form, registers)

    def read(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """See `blocking.read`."""
        return blocking.read(form, registers)

    def addresses(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """See `blocking.addresses`."""
        return blocking.addresses(form, registers)

    def fill(self, form: InstructionForm, position: int, number: int) -> tuple[Instruction, str]:
        """See `links.Helpers.fill`."""
        op = form.operands[position]
        return self.helpers.fill(Place(domain(op.cls), number, min(op.width, self.helpers.widest)))

    def overwrite(self, form: InstructionForm, position: int, number: int) -> Mapping[str, Items]:
        """See `breakers.Breakers.overwrite`."""
        return self.helpers.overwrite(domain(form.operands[position].cls), number)

    def empty(self, form: InstructionForm, position: int, kept: Container[Register]) -> bytes:
        """See `breakers.Breakers.mask_zero`: masks, of which cores have few more than eight. A form under a
        mask runs under one of zeros then, which takes no register either.
        """
        if domain(form.operands[position].cls) != "k":
            return b""
        masked = "masked" in form.attributes
        free = [n for n in range(MASKS) if ("k", n) not in kept or (masked and n == MASK_ONES)]
        return b"".join(self.helpers.mask_zero(number).code for number in free)

    def vector_level(self, form: InstructionForm) -> int:
        """See `values.vector_level`."""
        return vector_level(form)


def _divides_vectors_or_integers(form: InstructionForm) -> bool:
    return is_division(form) and "x87" not in form.attributes


def _is_mmx(cycle: Cycle) -> bool:
    return any("mmx" in instruction.form.attributes for instruction in cycle.items)


def _is_x87(cycle: Cycle) -> bool:
    return any("x" in LinkKey.read(key).files or ".x." in key for key in cycle.keys)


def dialect(table: Table, executes: Executes) -> Dialect:
    """See `kernel.dialect.dialect_of`."""
    return X86Dialect(table, executes)
