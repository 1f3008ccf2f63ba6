"""Kernels of probes, written as forms with registers: no assembler is needed, and cores can be simulated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec

from cyclescope.isa.encode import default_immediates
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.dialect import dialect_of
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST, Kernel
from cyclescope.kernel.state import FIRST_WINDOW, MachineState, chain_start
from cyclescope.measure.bench import default_state

PARALLEL = CANARY | FAST  # flags of kernels that are near the width of something
CHAIN_PLACE = 64  # bytes from the data
DEPENDENT = FAST  # of those that wait for their own results
_SCALED = re.compile(r"[us]imm\d+s(\d+)")  # offsets that count so many bytes


class KernelLine(NamedTuple):
    """An instruction: registers in the order of its operands, a base before its index.

    `at` is the displacement of its address in bytes, `immediates` are its other constants as encoded,
    `indexed` is a register that its address adds, `padding` prefixes say nothing (x86-64). `scale` is what
    that register is multiplied by; an address with one `is_short` without a displacement.
    """

    form: str
    registers: tuple[int, ...] = ()
    at: int = 0
    immediates: tuple[int, ...] | None = None
    indexed: int | None = None
    padding: int = 0
    scale: int = 1
    is_short: bool = False


SOME, MORE = "abcdefgh", "ABCDEF"
_TOO = "opqs"
NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86-64": dict(
        zip(f"{SOME}{MORE}{_TOO}", (0, 1, 2, 3, 8, 9, 10, 11, 12, 5, 13, 14, 6, 7, 5, 6, 7, 4), strict=True)
    ),
    "aarch64": dict(zip(f"{SOME}{MORE}{_TOO}zr", (*range(1, 15), 15, 20, 21, 31, 31, 30), strict=True)),
    "riscv64": dict(
        zip(f"{SOME}{MORE}{_TOO}zr", (*range(10, 18), 5, 6, 7, 28, 29, 30, 31, 9, 8, 2, 0, 1), strict=True)
    ),
}
"""Registers by letter, whose numbers other register files have, too.

General registers a to h hold small numbers, A to F are others that may be overwritten; p and q hold the same
pointer and o another, if it is set; s is the stack's, z holds 0, r is where calls leave what to return to.
"""


def written(isa: str, *texts: str) -> tuple[KernelLine, ...]:
    """Lines of texts such as `MOV (R64, M64): a p *o +8 #1`: registers, an index, displacement, constants.

    An index as `*2o` is scaled, and with `~` an address has no displacement.
    """
    return tuple([_line(isa, text) for text in texts])


@lru_cache(maxsize=1 << 14)  # of all probes
def _line(isa: str, text: str) -> KernelLine:
    numbers = NUMBERS[isa]
    form, _, rest = text.partition(": ")
    words = rest.split()
    constants = tuple(int(word[1:]) for word in words if word[0] == "#")
    at = sum(int(word) for word in words if word[0] in "+-")
    registers = tuple(numbers[word] for word in words if word.isalpha())
    index = next((word[1:] for word in words if word[0] == "*"), "")
    indexed, scale = numbers[index[-1]] if index else None, int(index[:-1] or 1)
    return KernelLine(form, registers, at, constants or None, indexed, scale=scale, is_short="~" in words)


class Setting(msgspec.Struct, frozen=True):
    """What registers and memory hold: `numbers` and `pointers` by register, pointers in bytes from the data.

    `stored` are 64-bit pointers in memory: bytes from the data where each is, and where it leads. `chain` is
    one of so many pointers elsewhere, so many bytes apart; where it begins is stored at `CHAIN_PLACE`.
    `vectors` are contents of vector registers, 64 bytes each, `masks` of mask or predicate registers.
    """

    numbers: tuple[tuple[int, int], ...] = ()
    pointers: tuple[tuple[int, int], ...] = ()
    stored: tuple[tuple[int, int], ...] = ()
    chain: tuple[int, int] = (0, 0)
    vectors: tuple[tuple[int, bytes], ...] = ()
    masks: tuple[tuple[int, int], ...] = ()


PLAIN_SETTING = Setting()


def instruction(table: Table, text: KernelLine) -> Instruction:
    """The instruction of a line. Raises KeyError for a form that the table lacks."""
    form = table[text.form]
    registers = tuple(text.registers[n] for n in _order(form))
    if not form.has_fields:
        return Instruction(
            form, registers, text.at, text.immediates, text.indexed, text.padding, text.scale, text.is_short
        )
    values = default_immediates(form) if text.immediates is None else text.immediates
    return Instruction(form, registers, 0, _with_offset(form, values, text.at))


@cache
def _order(form: InstructionForm) -> tuple[int, ...]:
    """Per register that the encoding asks for, its position among those of a line."""
    keys = form.register_keys
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


class _Made(NamedTuple):
    instruction: Instruction
    code: bytes
    level: int  # of vector state that it needs


_Texts = Sequence[KernelLine]
_Same = tuple[int, int, Setting, int]  # of the same lines, which are kept


class Assembler:
    """Makes kernels of lines, for one instruction set; equal settings share a state."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._dialect = dialect_of(table, lambda form: True)
        self._states: dict[tuple[int, Setting], MachineState] = {}
        self._lines: dict[KernelLine, _Made] = {}
        self._kernels: dict[_Same, tuple[_Texts, _Texts, Kernel]] = {}

    def kernel(
        self, lines: Sequence[KernelLine], flags: int, setting: Setting = PLAIN_SETTING,
        setup: Sequence[KernelLine] = (),
    ) -> Kernel:  # fmt: skip
        """The kernel of some lines, after others. Raises KeyError for a form that the table lacks.

        Several cases ask the same long ones.
        """
        key = id(lines), flags, setting, id(setup)
        if key not in self._kernels:
            self._kernels[key] = lines, setup, self._kernel(lines, flags, setting, setup)
        return self._kernels[key][-1]

    def _kernel(
        self, lines: Sequence[KernelLine], flags: int, setting: Setting, setup: Sequence[KernelLine]
    ) -> Kernel:
        made = [self._made(text) for text in lines]
        level = max(one.level for one in made)
        body, code = tuple(one.instruction for one in made), b"".join([one.code for one in made])
        before = b"".join([self._made(text).code for text in setup])
        return Kernel(code, len(body), self._state(level, setting), before, flags, body)

    def _made(self, text: KernelLine) -> _Made:
        """A line assembled; kernels have many equal ones."""
        if text not in self._lines:
            one = instruction(self.table, text)
            self._lines[text] = _Made(one, one.code, self._dialect.vector_level(one.form))
        return self._lines[text]

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
    pokes = [(FIRST_WINDOW + at, FIRST_WINDOW + to) for at, to in setting.stored]
    if setting.chain[0]:
        pokes.append((FIRST_WINDOW + CHAIN_PLACE, chain_start(setting.chain[1])))
    masks = tuple(dict(setting.masks).get(number, mask) for number, mask in enumerate(state.masks))
    new = {
        "general": tuple(general), "pokes": tuple(pokes), "chain": setting.chain, "vectors": setting.vectors,
        "masks": masks,
    }  # fmt: skip
    return msgspec.structs.replace(state, **new)
