"""A block: the instructions that are analysed, decoded, with the places they came from."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set

Register = tuple[str, int]  # class and number, as `isa.register` counts them: ("R32", 0) is EAX


class Address(msgspec.Struct, frozen=True, gc=False):
    """Where an instruction accesses memory, or what LEA computes.

    The address is `base + index * scale + displacement` (bytes, signed), plus the base of `segment`
    ("FS" or "GS", else ""). A base or an index narrower than 64 bits (class `R32`) means that the
    sum is cut to that width; a vector index is one address per element. With `rip_relative` there is
    no base: `displacement` counts from the end of the instruction. `symbol` is the name that the code
    refers to, where it is known; the displacement is then relative to it. `writeback` is "pre" or
    "post" where the base becomes the address (AArch64), `extend` how the index is widened (`sxtw`,
    `uxtw`).

    An implicit address is that of the access itself: PUSH stores at RSP - 8, POP loads at RSP.
    """

    base: Register | None = None
    index: Register | None = None
    scale: int = 1
    displacement: int = 0
    segment: str = ""
    rip_relative: bool = False
    symbol: str = ""
    writeback: str = ""
    extend: str = ""

    @property
    def is_moved(self) -> bool:
        """Whether the code has a displacement; one of 0, which some bases have to have, is not seen."""
        return bool(self.displacement or self.symbol or self.rip_relative or self.base is None)


class SourcePlace(msgspec.Struct, frozen=True):
    """A line of a source file that machine code was compiled from."""

    file: str
    line: int


class BlockInstruction(msgspec.Struct, frozen=True, gc=False):
    """One instruction with its values.

    `form` is None where the instruction is unknown, `problem` then says why. `text` is the line of the
    source without label and comment, or the disassembly. `line` is the source line, counted from 1; 0
    where there is no source text. `address` is where the code lies, in the file or in the section.

    `registers`, `memory` and `immediates` have one entry per operand of the form, explicit and
    implicit ones, by position; None where the operand is of another kind. An immediate is a signed
    number; that of a branch is the target's address. `target` is the name the branch goes to, or "".

    An operand that stands for several registers (`{v0.2d, v1.2d}`) has the first in `registers` and the
    others in `further`, by position. AArch64's registers are of the classes `X`, `V` and `P` whatever part
    of them is meant, RISC-V's `X`, `F` and `V`; state like `VL` is a class of its own. The zero register is
    None.

    `latency` are the cycles that the source says its results take, None where the model knows; `later` by how
    many more than usually what it loads takes, where somebody asks what then would be. `place` is
    where debugging information says that machine code is from.
    """

    form: InstructionForm | None
    text: str
    line: int = 0
    address: int = 0
    code: bytes = b""
    registers: tuple[Register | None, ...] = ()
    memory: tuple[Address | None, ...] = ()
    immediates: tuple[int | None, ...] = ()
    target: str = ""
    problem: str = ""
    further: dict[int, tuple[Register, ...]] = {}
    latency: float | None = None
    later: float = 0.0
    place: SourcePlace | None = None

    @property
    def constants(self) -> tuple[int, int]:
        """Constants in its code, short ones and those that take more places; a NOP's mean nothing."""
        form = self.form
        if form is None or "nop" in form.attributes:
            return 0, 0
        parts = zip(form.operands, self.immediates, self.memory, strict=False)
        named = [(op, value, at) for op, value, at in parts if not op.implicit]
        coded = [op.width for op, value, _ in named if value is not None and op.cls != "1"]
        short = instruction_set(form.isa).short_constant
        wide = sum(width > short for width in coded)
        return len(coded) - wide + sum(at is not None and at.is_moved for *_, at in named), wide

    @property
    def machine_address(self) -> int | None:
        """The address of machine code; text has lines instead."""
        return None if self.line else self.address


class Unroll(msgspec.Struct, frozen=True):
    """By how much one pass of a loop moves its pointer.

    `register` is the one that the loop's end depends on, or that addresses memory; `step` is what one
    pass adds to it, `stride` the bytes that addresses move by it (step times scale), `access` the
    widest access through it, in bytes; `elements` how many elements of an array that is, None where the
    instructions do not say how wide these are.
    """

    register: Register
    step: int
    stride: int
    access: int
    elements: int | None


class Block(msgspec.Struct, frozen=True):
    """What is analysed: the body of a loop, in the order of execution.

    `source` names where it is from (a file, `standard input`, `machine code`), `name` the region, the
    function or the loop's label, or "". `found` says in words how the block was chosen. `line_texts`
    has the text of every line that an instruction refers to, by line number. `loop` tells whether the
    block ends with a branch to its beginning. `unroll` is None where no pointer moves by a constant. `notes`
    say what of the source was not understood, or taken to mean. Addresses are final, or else a linker adds
    multiples of `alignment` bytes.
    """

    instructions: tuple[BlockInstruction, ...]
    isa: str
    source: str = ""
    name: str = ""
    found: str = ""
    line_texts: dict[int, str] = {}
    loop: bool = False
    unroll: Unroll | None = None
    notes: tuple[str, ...] = ()
    alignment: int = 0

    def __iter__(self) -> Iterator[BlockInstruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    @property
    def unknown(self) -> tuple[BlockInstruction, ...]:
        """Instructions without a form."""
        return tuple(one for one in self.instructions if one.form is None)
