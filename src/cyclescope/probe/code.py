"""Kernels of probes, written as forms with registers: no assembler is needed, and cores can be simulated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from cyclescope.isa.encode import default_immediates
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.dialect import dialect_of
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST, Kernel
from cyclescope.kernel.state import FIRST_WINDOW, MachineState
from cyclescope.measure.bench import default_state

PARALLEL = CANARY | FAST  # flags of kernels that are near the width of something
CHAIN = FAST  # of those that wait for their own results
_SCALED = re.compile(r"uimm\d+s(\d+)")  # offsets that count so many bytes


class KernelLine(NamedTuple):
    """An instruction: registers in the order of its operands, a base before its index.

    `at` is the displacement of its address in bytes, `immediates` are its other constants as encoded,
    `indexed` is a register that its address adds.
    """

    form: str
    registers: tuple[int, ...] = ()
    at: int = 0
    immediates: tuple[int, ...] | None = None
    indexed: int | None = None


SOME, MORE = "abcdefgh", "ABCDEF"
_TOO = "opqs"
NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86-64": dict(
        zip(f"{SOME}{MORE}{_TOO}", (0, 1, 2, 3, 8, 9, 10, 11, 12, 5, 13, 14, 6, 7, 5, 6, 7, 4), strict=True)
    ),
    "aarch64": dict(zip(f"{SOME}{MORE}{_TOO}z", (*range(1, 15), 15, 20, 21, 31, 31), strict=True)),
    "riscv64": dict(
        zip(f"{SOME}{MORE}{_TOO}z", (*range(10, 18), 5, 6, 7, 28, 29, 30, 31, 9, 8, 2, 0), strict=True)
    ),
}
"""Registers by letter, whose numbers other register files have, too.

General registers a to h hold small numbers, A to F are others that may be overwritten; p and q hold the same
pointer and o another, if it is set; s is the stack's, z holds 0.
"""


def written(isa: str, *texts: str) -> tuple[KernelLine, ...]:
    """Lines of texts such as `MOV (R64, M64): a p *o +8 #1`: registers, an index, displacement, constants."""
    return tuple(_line(text, NUMBERS[isa]) for text in texts)


def _line(text: str, numbers: Mapping[str, int]) -> KernelLine:
    form, _, rest = text.partition(": ")
    words = rest.split()
    constants = tuple(int(word[1:]) for word in words if word[0] == "#")
    at = sum(int(word) for word in words if word[0] in "+-")
    registers = tuple(numbers[word] for word in words if word.isalpha())
    indices = [numbers[word[1:]] for word in words if word[0] == "*"]
    return KernelLine(form, registers, at, constants or None, indices[0] if indices else None)


class Setting(msgspec.Struct, frozen=True):
    """What registers and memory hold: `numbers` and `pointers` by register, pointers in bytes from the data.

    `stored` are 64-bit pointers in memory: bytes from the data where each is, and where it leads.
    """

    numbers: tuple[tuple[int, int], ...] = ()
    pointers: tuple[tuple[int, int], ...] = ()
    stored: tuple[tuple[int, int], ...] = ()


PLAIN = Setting()


def instruction(table: Table, text: KernelLine) -> Instruction:
    """The instruction of a line. Raises KeyError for a form that the table lacks."""
    form = table[text.form]
    registers = tuple(text.registers[n] for n in _order(form))
    if form.bits is None:
        return Instruction(form, registers, text.at, text.immediates, text.indexed)
    values = default_immediates(form) if text.immediates is None else text.immediates
    return Instruction(form, registers, 0, _with_offset(form, values, text.at))


@cache
def _order(form: InstructionForm) -> tuple[int, ...]:
    """Per register that the encoding asks for, its position among those of a line."""
    if form.bits is not None:
        keys = [(field.operand, 0) for field in form.bits.fields if field.is_register]
    else:
        assert form.encoding is not None
        keys = [(slot.operand, slot.part) for slot in form.encoding.slots]
    ranks = sorted(range(len(keys)), key=lambda n: (keys[n], n))
    return tuple(ranks.index(n) for n in range(len(keys)))


def _with_offset(form: InstructionForm, values: Sequence[int], at: int) -> tuple[int, ...]:
    """Constants of a form whose address has its offset in a field."""
    assert form.bits is not None
    fields = [field for field in form.bits.fields if not field.is_register]
    found = []
    for field, value in zip(fields, values, strict=True):
        operand = form.operands[field.operand]
        if operand.role == "offset":
            scaled = _SCALED.fullmatch(operand.cls)
            found.append((at // int(scaled[1]) if scaled else at) & ((1 << field.values.width) - 1))
        else:
            found.append(value)
    return tuple(found)


class Assembler:
    """Makes kernels of lines, for one instruction set; equal settings share a state."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._dialect = dialect_of(table, lambda form: True)
        self._states: dict[tuple[int, Setting], MachineState] = {}

    def kernel(self, lines: Sequence[KernelLine], flags: int, setting: Setting = PLAIN) -> Kernel:
        """The kernel of some lines. Raises KeyError for a form that the table lacks."""
        body = tuple(instruction(self.table, text) for text in lines)
        level = max(self._dialect.vector_level(one.form) for one in body)
        code = b"".join([one.code() for one in body])
        return Kernel(code, len(body), self._state(level, setting), b"", flags, body)

    def _state(self, level: int, setting: Setting) -> MachineState:
        key = level, setting
        if key not in self._states:
            self._states[key] = _set(default_state(level, self.table.isa), setting)
        return self._states[key]


def _set(state: MachineState, setting: Setting) -> MachineState:
    general = list(state.general)
    changes: Mapping[int, int] = dict(setting.numbers) | {
        number: FIRST_WINDOW + offset for number, offset in setting.pointers
    }
    for number, value in changes.items():
        general[number] = value
    pokes = tuple((FIRST_WINDOW + at, FIRST_WINDOW + to) for at, to in setting.stored)
    return msgspec.structs.replace(state, general=tuple(general), pokes=pokes)
