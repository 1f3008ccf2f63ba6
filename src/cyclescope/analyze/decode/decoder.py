"""Machine code to instructions: the interface of decoders, and which there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import NamedTuple, Protocol

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.errors import UsageError
from cyclescope.isa.registry import instruction_set, isa_names

REASON = 2  # bytes that tell why they begin no instruction


class Flow(StrEnum):
    """Where the processor goes after an instruction."""

    NEXT = "next"
    BRANCH = "branch"  # or to the next
    JUMP = "jump"
    CALL = "call"
    END = "end"  # a return, or a trap
    INVALID = "invalid"


class FlowStep(NamedTuple):
    """One instruction as control flow sees it.

    `target` is the address a direct branch, jump or call goes to, else None.
    """

    address: int
    length: int
    flow: Flow
    target: int | None

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.length


class CodeRun(NamedTuple):
    """Instructions that lie one behind the other; `loops` if the last one goes back to the first."""

    instructions: tuple[BlockInstruction, ...]
    loops: bool


class Reference(NamedTuple):
    """What a relocation puts into the code at an address: a symbol, and what is added to it.

    `relative` tells that the field counts from its own address (`addend` then makes up for the rest of
    the instruction). `target` is the symbol's address where this code defines it.
    """

    symbol: str
    addend: int
    relative: bool
    target: int | None


class Decoder(Protocol):
    """Reads the machine code of one instruction set."""

    @property
    def isa(self) -> str:
        """Name of the instruction set, as `isa.table` has it."""
        ...

    def steps(self, code: bytes, address: int) -> Iterator[FlowStep]:
        """Every instruction of `code`, which lies at `address`, as control flow."""
        ...

    def instruction(
        self,
        code: bytes,
        address: int,
        references: Mapping[int, Reference] = ...,
        text: str = "",
        line: int = 0,
    ) -> BlockInstruction:
        """The first instruction of `code`; one without a form says why in its `problem`.

        `references` are those of the code, by address. Without a `text` the disassembly is taken.
        """
        ...

    def run(self, code: bytes) -> CodeRun | None:
        """All of plain code in less time than by its steps, None where these have to be looked at."""
        ...

    def in_context(
        self, instructions: Sequence[BlockInstruction], ways: Sequence[Sequence[bytes]]
    ) -> tuple[BlockInstruction, ...]:
        """Instructions as they are behind others: RISC-V's vectors under the VTYPE that is set.

        `ways` are what may run in front of them, each as machine code in order.
        """
        ...


@cache
def decoder(isa: str, vendor: str = "", syntax: str = "") -> Decoder:
    """The decoder of an instruction set; the vendor matters to branches with an operand-size prefix.

    x86 code without text is shown in Intel syntax unless `syntax` is `att`.

    Raises UsageError where there is none, BackendUnavailable where its library is missing.
    """
    if isa not in isa_names():
        raise UsageError(f"code of {isa} cannot be decoded", f"choose one of {', '.join(isa_names())}")
    if instruction_set(isa).fixed_width:
        from cyclescope.analyze.decode.fixed_width import FixedWidthDecoder

        return FixedWidthDecoder(isa)
    from cyclescope.analyze.decode.x86_64 import X86Decoder

    return X86Decoder(vendor, syntax)
