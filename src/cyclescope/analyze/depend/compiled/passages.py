"""Which load reads what which store of a block wrote, in C, and what loads and stores keep busy.

What instructions have by their form and registers is made into numbers once for all that are alike, what each
has of its own once for all that have the same code.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cyclescope.analyze.decode.block import Address, BlockInstruction, Register
from cyclescope.analyze.decode.kept import Kept
from cyclescope.analyze.decode.known_values import (
    implied_amount,
    is_overwritten,
    keeps_value,
    moved_by,
    rule_of,
)
from cyclescope.analyze.decode.locations import Places, location_of
from cyclescope.analyze.depend.compiled.library import library
from cyclescope.analyze.depend.compiled.numbers import (
    FORM_NUMBERS,
    NO_NUMBER,
    PLACE_NUMBERS,
    location_number,
)
from cyclescope.isa.dataflow import AMOUNT
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.record import ResultKind
from cyclescope.model.behaviour.found import WIDE_BITS
from cyclescope.model.behaviour.published import CoreBehaviour, LineCrossing, PartialWords
from cyclescope.model.behaviour.store_lines import ROWS

_SEEN = ("nothing", "memory", "register", "zero", "immediate")  # in the order of native/bounds/search.h
_NOTHING, _MEMORY, _REGISTER, _ZERO, _IMMEDIATE = range(len(_SEEN))
_WRITEBACK = ("", "pre", "post")  # the same


class _Chunks(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("size", "most", "joins", "word")),
        *((name, ctypes.c_double) for name in ("longer", "within")),
    ]


class _StoreRow(ctypes.Structure):
    _fields_ = [("stores", ctypes.c_int64), ("longer", ctypes.c_double)]


class _StoreLines(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_int64), ("many", ctypes.c_int64), ("each", ctypes.c_double),
        ("whole", ctypes.c_double), ("alone", ctypes.c_double), ("rows", _StoreRow * len(ROWS)),
    ]  # fmt: skip


class _Banks(ctypes.Structure):
    _fields_ = [("width", ctypes.c_int64), ("period", ctypes.c_int64), ("most", ctypes.c_double)]


class _WideLoads(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_int64), *((name, ctypes.c_double) for name in ("inside", "across", "halves")),
    ]  # fmt: skip


class _Crossing(ctypes.Structure):
    _fields_ = [
        ("line", ctypes.c_int64), ("each", ctypes.c_double), ("extra", ctypes.c_double),
        ("wide", _WideLoads * len(WIDE_BITS)),
    ]  # fmt: skip


class _Core(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("locations", "in_flight", "rounds", "most_terms")),
        ("chunks", _Chunks), ("lines", _StoreLines), ("banks", _Banks), ("crossing", _Crossing),
        ("store_crossing", _Crossing),
    ]  # fmt: skip


class _Memory(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in ("chunks", "banks", "crossing", "longer")),
        ("found", ctypes.c_int64),
    ]


class Found(NamedTuple):
    """A load of what was stored, as native/bounds/search.h has it.

    `offset` are bytes behind the store, `between` stores that come between them.
    """

    load: int
    load_operand: int
    store: int
    store_operand: int
    iterations: int
    offset: int
    between: int


class MemoryFound(NamedTuple):
    """Rows of loads of what was stored, and what `Memory` has of one iteration: all in cycles."""

    passages: list[Found]
    chunks: float
    banks: float
    crossing: float
    longer: float


class CompiledMemory:
    """Looks at blocks on one core; `results` has by mnemonic what kind of value an instruction makes.

    Blocks are gone through `rounds` times, values of more than `most_terms` terms are not followed.
    """

    def __init__(
        self,
        behaviour: CoreBehaviour,
        in_flight: int,
        results: Mapping[str, ResultKind],
        rounds: int,
        most_terms: int,
    ) -> None:
        self._results = results
        self._core = _core(behaviour)
        self._core.in_flight, self._core.rounds, self._core.most_terms = in_flight, rounds, most_terms
        self._forms: dict[str, _FormNumbers] = {}
        self._own = Kept[bytes, tuple[object, object, bytes]]()

    def core_words(self) -> bytes:
        """What is known of the core, as compiled code reads it."""
        self._core.locations = len(PLACE_NUMBERS)
        return bytes(self._core)

    @property
    def is_there(self) -> bool:
        """Whether compiled code is there."""
        return library() is not None

    def form_words(self, one: BlockInstruction, places: Places) -> bytes:
        """What all instructions of a form and the same registers have, as numbers."""
        form = one.form
        assert form is not None
        known = self._forms.get(form.id)
        if known is None:
            known = self._forms[form.id] = _FormNumbers.of(form, self._results.get(form.mnemonic))
        accesses = [row for row in known.accesses if one.memory[row[0]] is not None]
        addresses = [(position, a) for position, a in enumerate(one.memory) if a is not None]
        words = [
            known.number, len(known.operands), len(places.read), len(places.written), len(accesses),
            len(addresses),
        ]  # fmt: skip
        for register, address, op in zip(one.registers, one.memory, known.operands, strict=True):
            words += _seen(register, address, op)
        words += map(PLACE_NUMBERS.of, places.read)
        for position, location in places.written:
            rule, pushed = known.writes[position] if position >= 0 else (0, 0)
            words += (position, PLACE_NUMBERS.of(location), rule, pushed)
        for row in accesses:
            words += row
        for position, a in addresses:
            words += (position, location_number(location_of(a.base)), location_number(location_of(a.index)))
        return array("q", words).tobytes()

    def found(
        self, instructions: Sequence[BlockInstruction], forms: Sequence[bytes], room: int
    ) -> MemoryFound | None:
        """What a block with `room` for so many loads does to memory, None where Python has to look."""
        native = library()
        if native is None:
            return None
        try:
            own = b"".join(self.own_words(instructions))
        except OverflowError:
            return None
        words = b"".join(forms)
        core, out = self._core, _Memory()
        core.locations = len(PLACE_NUMBERS)
        rows = array("q", [0]) * (room * len(Found._fields))
        status = native.bounds_memory(
            words, len(words) // rows.itemsize, own, len(own) // rows.itemsize, len(instructions),
            ctypes.byref(core), rows.buffer_info()[0], room, ctypes.byref(out),
        )  # fmt: skip
        if status < 0:
            return None
        numbers = iter(rows[: out.found * len(Found._fields)])
        found = map(Found._make, zip(*[numbers] * len(Found._fields), strict=True))
        return MemoryFound(list(found), out.chunks, out.banks, out.crossing, out.longer)

    def own_words(self, instructions: Sequence[BlockInstruction]) -> list[bytes]:
        """What each instruction has of its own, by its code where nothing else tells."""
        found, names = [], dict[str, int]()
        for one in instructions:
            known = self._own.get(one.code)
            if known is not None and known[0] is one.memory and known[1] is one.immediates:
                found.append(known[2])
                continue
            numbers = _own_numbers(one, names)
            found.append(numbers)
            if not any(a is not None and (a.rip_relative or a.symbol or a.segment) for a in one.memory):
                self._own.keep(one.code, (one.memory, one.immediates, numbers))
        return found


def _core(behaviour: CoreBehaviour) -> _Core:
    chunks, banks = behaviour.store_chunk, behaviour.banks
    core = _Core(crossing=_crossing(behaviour.crossing), store_crossing=_crossing(behaviour.store_crossing))
    core.chunks.most = 1
    if chunks is not None:
        parts = chunks.partial or PartialWords(0, 0.0, 0)
        core.chunks = _Chunks(chunks.size, chunks.most, chunks.joins, parts.size, parts.longer, parts.within)
    if behaviour.store_lines is not None:
        lines = behaviour.store_lines
        core.lines = _StoreLines(lines.size, lines.many, lines.each, lines.whole, lines.alone)
        for place, row in enumerate(lines.rows):
            core.lines.rows[place] = _StoreRow(*row)
    if banks is not None:
        core.banks = _Banks(banks.width, banks.period, banks.most)
    return core


def _crossing(crossing: LineCrossing | None) -> _Crossing:
    if crossing is None:
        return _Crossing()
    found = _Crossing(crossing.line, crossing.each, crossing.extra)
    for place, one in enumerate(crossing.wide):
        found.wide[place] = _WideLoads(one.size, one.inside, one.across, one.halves)
    return found


class _Operand(NamedTuple):
    is_memory: bool
    is_empty: bool  # where it has no register: it is the zero register
    rest: tuple[int, int, int]  # as native/bounds/search.h has it: flags, width, amount


class _FormNumbers(NamedTuple):
    """What all instructions of a form have: rows of accesses, by operand its rule and what a push moves."""

    number: int
    operands: tuple[_Operand, ...]
    accesses: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, form: InstructionForm, kind: ResultKind | None) -> _FormNumbers:
        """Those of a form whose results are of a kind."""
        accesses = ((*one, keeps_value(form.operands[one.position])) for one in form.accesses)
        rules = (
            kind.value if kind is not None and rule_of(form, n, kind) else 0
            for n in range(len(form.operands))
        )
        pushed = (moved_by(form, n) for n in range(len(form.operands)))
        operands = tuple(map(_operand, form.operands))
        both = tuple(zip(rules, pushed, strict=True))
        return cls(FORM_NUMBERS.of(form.id), operands, tuple(accesses), both)


def _operand(op: Operand) -> _Operand:
    amount = op.cls.startswith(AMOUNT)
    flags = op.is_memory | op.implicit << 1 | bool(op.role) << 2 | (op.kind == "immediate") << 3 | amount << 4
    flags |= is_overwritten(op) << 5
    rest = flags, op.width, implied_amount(op) if amount else 0
    return _Operand(op.is_memory, op.is_register and bool(op.file), rest)


def _seen(register: Register | None, address: Address | None, op: _Operand) -> tuple[int, ...]:
    """What is seen of an operand, and what it is."""
    location = location_of(register)
    number = location_number(location)
    if op.is_memory and address is not None:
        return _MEMORY, number, *op.rest
    if location is not None:
        return _REGISTER, number, *op.rest
    return _ZERO if op.is_empty else _IMMEDIATE, number, *op.rest


def _own_numbers(one: BlockInstruction, names: dict[str, int]) -> bytes:
    """Immediates, and of each address what is no register; `names` have numbers of their own in a block."""
    present = sum([1 << n for n, number in enumerate(one.immediates) if number is not None])
    numbers = [present, *[number for number in one.immediates if number is not None]]
    for address in one.memory:
        if address is not None:
            numbers += _address(one, address, names)
    return array("q", numbers).tobytes()


def _address(one: BlockInstruction, address: Address, names: dict[str, int]) -> tuple[int, ...]:
    constant = 0 if address.writeback == "post" else address.displacement
    if address.rip_relative and not address.symbol:
        constant = address.displacement + one.address + len(one.code)
    symbol, segment = (
        names.setdefault(name, len(names)) if name else NO_NUMBER
        for name in (address.symbol, address.segment)
    )
    return constant, address.scale, _WRITEBACK.index(address.writeback), symbol, segment
