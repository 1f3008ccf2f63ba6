"""What an instruction set has to say about its kernels: everything else is the same for all."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Protocol

from cyclescope.isa.dataflow import Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.kernel.block import BlockingSequence, Register
from cyclescope.kernel.chain import Chain, Unmeasurable, Use
from cyclescope.kernel.cycle import Cycle
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.stream import Stream

Executes = Callable[[InstructionForm], bool]
Items = tuple[Use | Instruction, ...]


class PairChains(Protocol):
    """Makes the latency chains of one form. Methods raise Unmeasurable with the reason."""

    def chains(self, pair: Pair) -> list[Chain]:
        """The chains of a pair, the best first."""

    def unbroken(self, pair: Pair) -> Chain | None:
        """The pair's chain with no other dependency cut, None where none was."""

    def filled(self, pair: Pair, count: int) -> Chain:
        """The pair's chain with `count` one-cycle instructions on its way, and nothing cut."""


def chains_of(builders: Sequence[PairChains], pair: Pair) -> tuple[list[Chain], str]:
    """The chains of a pair by all who make some; none, and the first reason, where nobody does."""
    chains: list[Chain] = []
    reason = ""
    for builder in builders:
        try:
            chains += builder.chains(pair)
        except Unmeasurable as error:
            reason = reason or str(error)
    return chains, "" if chains else reason


class Dialect(Protocol):
    """Kernels of one instruction set, made of helper instructions that this CPU executes."""

    def nop(self) -> Instruction:
        """The instruction that no other is faster than."""

    def signature(self, form: InstructionForm) -> object:
        """What the plan of a form depends on: forms with the same signature share it."""

    def unmeasurable(self, form: InstructionForm) -> str:
        """Why user space cannot measure a form, or ""."""

    def streams(self, form: InstructionForm) -> list[tuple[Stream, str]]:
        """Throughput sequences, each with its class of values ("", `fast` or `slow`). Raises Unmeasurable."""

    def chain_builders(self, form: InstructionForm) -> Sequence[PairChains]:
        """What makes the form's chains, the main one first."""

    def stream_state(self, form: InstructionForm, speed: str) -> MachineState:
        """Registers and memory for throughput sequences with a class of values."""

    def chain_state(self, form: InstructionForm, speed: str) -> MachineState:
        """Registers and memory for latency chains with a class of values."""

    def setup(self, form: InstructionForm, state: MachineState) -> bytes:
        """Machine code that runs once before a kernel of the form."""

    def instruction(self, form: InstructionForm, use: Use) -> Instruction:
        """The form with the values of a plan."""

    def probe(self, form: InstructionForm) -> tuple[Items, MachineState] | None:
        """One instance, to see whether the CPU executes a form; None where it has no encoding."""

    def is_sequence(self, form: InstructionForm) -> bool:
        """Whether the form runs in a sequence of its own only."""

    def cycles(self) -> list[tuple[Cycle, MachineState, bytes]]:
        """Closed chains of all links, with state and setup."""

    @property
    def prefixed(self) -> frozenset[Register]:
        """Registers that make encodings longer."""

    def block(self, form: InstructionForm, avoid: Iterable[Register]) -> BlockingSequence:
        """Blocking instances of a form that touch none of the registers to avoid. Raises Unmeasurable."""

    def written(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """Registers that an instance writes."""

    def read(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """Registers that an instance reads, those of addresses included."""

    def addresses(self, form: InstructionForm, registers: Sequence[int]) -> set[Register]:
        """Registers that an instance's addresses may be made of."""

    def fill(self, form: InstructionForm, position: int, number: int) -> tuple[Instruction, str]:
        """What takes a cycle in place in a register operand, given as a plan has it, and the key of it as a
        link. Raises Unmeasurable.
        """

    def overwrite(self, form: InstructionForm, position: int, number: int) -> Mapping[str, Items]:
        """What gives a register operand, given as a plan has it, a value whatever it was before, by the name
        of the way, the cheapest one first; nothing where nothing does.
        """

    def empty(self, form: InstructionForm, position: int, kept: Container[Register]) -> bytes:
        """Machine code after which the registers of an operand's file, but for those kept, hold no value: by
        idioms, for which a core that renames needs no register. Nothing where there are none.
        """

    def vector_level(self, form: InstructionForm) -> int:
        """How much vector state a form needs."""


def dialect_of(table: Table, executes: Executes) -> Dialect:
    """That of a table's instruction set; helpers are forms that `executes` says may be used.

    It is what `dialect` of its module `kernel/NAME/dialect.py` makes.
    """
    found: Dialect = instruction_set(table.isa).module("kernel", "dialect").dialect(table, executes)
    return found
