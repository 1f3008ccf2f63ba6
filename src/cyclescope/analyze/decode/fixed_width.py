"""AArch64 and RISC-V machine code with the values of its operands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from cyclescope.analyze.decode.block import Address, BlockInstruction, Register
from cyclescope.analyze.decode.decoder import CodeRun, Flow, FlowStep, Reference
from cyclescope.analyze.decode.kept import Kept
from cyclescope.analyze.decode.system_registers import with_state
from cyclescope.isa.decode import Decoded
from cyclescope.isa.decode import decoder as table_decoder
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.remarks.reading import Undecoded

_FILES = {"r": "X", "v": "V", "p": "P", "f": "F", "t": "T"}
_UNIT = re.compile(r"([rvpft])(\d+)")
_NUMBER = re.compile(r"#?(-?(?:0x[0-9a-f]+|\d+))(?:, lsl #(\d+))?")
_EXTEND = re.compile(r"(lsl|[su]xt[wx])(?: #(\d+))?")
_FLOWS = {"call": Flow.CALL, "return": Flow.END, "trap": Flow.END, "branch": Flow.JUMP}  # by attribute


class _Known(NamedTuple):
    """A decoded instruction with its control flow; `target` counts from its own address."""

    found: Decoded | None
    flow: Flow
    target: int | None


class FixedWidthDecoder:
    """Reads the code of an instruction set whose table has fields of bits."""

    def __init__(self, isa: str) -> None:
        self.isa = isa
        self._known = Kept[bytes, _Known]()

    def _decode(self, code: bytes, at: int) -> tuple[_Known, bytes]:
        """The instruction at an offset and its bytes; programs repeat themselves."""
        own = code[at : at + instruction_set(self.isa).length(code[at])]
        known = self._known.get(own)
        if known is None:
            found = table_decoder(self.isa).decode(own)
            known = _Known(found, _flow(found), _target(found)) if found else _Known(None, Flow.INVALID, None)
            self._known.keep(own, known)
        return known, own

    def steps(self, code: bytes, address: int) -> Iterator[FlowStep]:
        """Every instruction of `code` as control flow."""
        at = 0
        before: Decoded | None = None
        while at < len(code):
            known, own = self._decode(code, at)
            target = known.target
            if known.flow in (Flow.CALL, Flow.JUMP) and target is None and before and known.found:
                target = _joint_target(before, known.found)
            yield FlowStep(
                address + at, len(own), known.flow, None if target is None else address + at + target
            )
            before = known.found
            at += len(own)

    def instruction(
        self,
        code: bytes,
        address: int,
        references: Mapping[int, Reference] = MappingProxyType({}),
        text: str = "",
        line: int = 0,
    ) -> BlockInstruction:
        """The first instruction of `code`."""
        known, own = self._decode(code, 0)
        if known.found is None:
            problem = Undecoded.NOT_IN_TABLE.of(own.hex(" "), self.isa).text
            return BlockInstruction(None, text or "(bad)", line, address, own, problem=problem)
        return _instruction(known.found, own, address, references.get(address), text, line)

    def run(self, code: bytes) -> CodeRun | None:
        """None: its steps are kept."""
        return None

    def in_context(
        self, instructions: Sequence[BlockInstruction], ways: Sequence[Sequence[bytes]]
    ) -> tuple[BlockInstruction, ...]:
        """Instructions under what others in front of them set, if that is the same on all ways to them."""
        types = instruction_set(self.isa).vector_types
        if types is None:
            return tuple(instructions)
        starts = {types.last_type(way) for way in ways}
        start = starts.pop() if len(starts) == 1 else None
        found = []
        for one, seen in zip(instructions, types.types([i.code for i in instructions], start), strict=True):
            form = types.form_under(one.form, one.code, seen) if one.form is not None else None
            found.append(one if form is one.form or form is None else as_form(one, form, self.isa))
        return tuple(found)


def _instruction(
    found: Decoded, code: bytes, address: int, reference: Reference | None, text: str, line: int
) -> BlockInstruction:
    found = with_state(found)
    values = _Values(found, address, reference)
    registers, further = values.registers()
    return BlockInstruction(
        found.form, text or found.text, line, address, code, registers, values.memory(),
        values.immediates(), values.target, "", further,
    )  # fmt: skip


def as_form(one: BlockInstruction, form: InstructionForm, isa: str) -> BlockInstruction:
    """A vector instruction as a form of the same encoding."""
    assert form.bits is not None
    values = form.bits.extract(int.from_bytes(one.code, "little"))
    return _instruction(Decoded(form, values, isa), one.code, one.address, None, one.text, one.line)


class _Values:
    """What the operands of one instruction are."""

    def __init__(self, found: Decoded, address: int, reference: Reference | None) -> None:
        self._found = found
        self._form: InstructionForm = found.form
        self._address = address
        self._reference = reference
        self._fields = _written(found)

    @property
    def target(self) -> str:
        """The symbol that a branch goes to."""
        branch = any(op.kind == "branch" for op in self._form.operands)
        return self._reference.symbol if self._reference and branch else ""

    def registers(self) -> tuple[tuple[Register | None, ...], dict[int, tuple[Register, ...]]]:
        """The first register of every operand, and the others."""
        first: list[Register | None] = []
        further = {}
        for position, op in enumerate(self._form.operands):
            names = self._found.units(position) if op.is_register else ()
            units = tuple(map(_register, names))
            first.append(units[0] if units else None)
            if len(units) > 1:
                further[position] = units[1:]
        return tuple(first), further

    def immediates(self) -> tuple[int | None, ...]:
        """Numbers as they are written; a branch's is the address it goes to."""
        return tuple(self._immediate(i) for i in range(len(self._form.operands)))

    def _immediate(self, position: int) -> int | None:
        kind = self._form.operands[position].kind
        number = _number(self._fields.get(position, "")) if kind in ("immediate", "branch") else None
        if number is None or kind == "immediate":
            return number
        if self._reference and self._reference.target is not None:
            return self._reference.target + self._reference.addend
        return self._address + number

    def memory(self) -> tuple[Address | None, ...]:
        """The address of every memory operand."""
        return tuple(self._memory(op.name) if op.is_memory else None for op in self._form.operands)

    def _memory(self, name: str) -> Address:
        """The address behind an operand called `[op2]`, `[X2]` or `[PC]`."""
        operands = self._form.operands
        roles = {op.role: i for i, op in enumerate(operands) if op.role}
        if name == "[PC]":
            offset = next((n for n in self.immediates() if n is not None), 0)
            return self._referred(Address(displacement=offset - self._found.length, rip_relative=True))
        written = self._fields.get(roles.get("offset", -1), "")
        index = roles.get("index")
        extend, shift = _extension(written or self._fields.get(-1 if index is None else index, ""))
        if "offset" in roles and index is not None and not (self._found.value(roles["offset"]) or 0) & 1:
            shift = 0  # the lowest bit says whether there is a shift
        return self._referred(
            Address(
                base=self._role(roles, "base"),
                index=self._role(roles, "index"),
                scale=1 << shift,
                displacement=_number(written) or 0,
                symbol="vl" if self._form.syntax and "mul vl" in self._form.syntax.template else "",
                writeback=self._writeback("offset" in roles),
                extend=extend,
            )
        )

    def _role(self, roles: Mapping[str, int], role: str) -> Register | None:
        if role not in roles:
            return None
        names = self._found.units(roles[role])
        return _register(names[0]) if names else None

    def _writeback(self, before: bool) -> str:
        if "writeback" not in self._form.attributes:
            return ""
        return "pre" if before else "post"

    def _referred(self, address: Address) -> Address:
        """An address with the symbol of a relocation."""
        if self._reference is None:
            return address
        return Address(
            address.base, address.index, address.scale, self._reference.addend, "", address.rip_relative,
            self._reference.symbol, address.writeback, address.extend,
        )  # fmt: skip


def _written(found: Decoded) -> dict[int, str]:
    """How the fields are written, by the position of their operand."""
    form = found.form
    if form.syntax is None or form.bits is None:
        return {}
    fields = form.bits.fields
    return {fields[i].operand: notation.text(found.values[i]) for i, notation in form.syntax.places}


def _register(unit: str) -> Register:
    match = _UNIT.fullmatch(unit)
    return (_FILES[match[1]], int(match[2])) if match else (unit, 0)


def _number(text: str) -> int | None:
    """A number as assemblers write it, shifted where they say so."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match[1], 0) << int(match[2] or 0) if match else None


def _extension(text: str) -> tuple[str, int]:
    """How an index is widened, and by how many bits it is shifted."""
    match = _EXTEND.search(text)
    return ("" if match[1] == "lsl" else match[1], int(match[2] or 0)) if match else ("", 0)


def _target(found: Decoded) -> int | None:
    """Distance of a direct branch from its own address."""
    for position, op in enumerate(found.form.operands):
        if op.kind == "branch":
            return _number(_written(found).get(position, ""))
    return None


def _joint_target(first: Decoded, second: Decoded) -> int | None:
    """Distance of a jump whose address RISC-V's AUIPC in front of it makes, from the jump."""
    if first.form.id != "AUIPC" or second.form.id != "JALR" or first.register(0) != second.register(1):
        return None
    high, low = first.value(1) or 0, second.value(2) or 0
    signed = (high ^ 1 << 19) - (1 << 19), (low ^ 1 << 11) - (1 << 11)
    return (signed[0] << 12) + signed[1] - first.length


def _flow(found: Decoded) -> Flow:
    attributes = found.form.attributes
    if "conditional_branch" in attributes:
        return Flow.BRANCH
    returns = instruction_set(found.isa).registers.returns
    if returns and "return" not in attributes and not attributes.isdisjoint(("branch", "call")):
        return _linked(found, returns)
    return next((flow for attribute, flow in _FLOWS.items() if attribute in attributes), Flow.NEXT)


def _linked(found: Decoded, kept: tuple[str, ...]) -> Flow:
    """RISC-V: a jump that keeps the way back is a call, one by the kept way a return."""
    registers = [found.register(i) for i, op in enumerate(found.form.operands) if op.is_register]
    written = [found.register(i) for i, op in enumerate(found.form.operands) if op.is_register and op.write]
    if any(name != "X0" for name in written):
        return Flow.CALL
    returns = "indirect" in found.form.attributes and registers[-1] in kept
    return Flow.END if returns else Flow.JUMP
