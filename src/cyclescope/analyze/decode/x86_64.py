"""x86-64 machine code to forms of the table: iced-x86 decodes, the form says what is what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import msgspec

from cyclescope.analyze.decode.block import Address, BlockInstruction, Register
from cyclescope.analyze.decode.decoder import CodeRun, Flow, FlowStep, Reference
from cyclescope.analyze.decode.kept import Kept
from cyclescope.analyze.decode.x86_forms import UNSAID, FormsOfCode
from cyclescope.errors import BackendUnavailable
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import BLOCKS, Operand
from cyclescope.isa.register import register_name, register_number
from cyclescope.isa.table import load_table
from cyclescope.model.limits import LENGTHS
from cyclescope.remarks.reading import Undecoded

_FLOWS = {
    "NEXT": Flow.NEXT, "INTERRUPT": Flow.NEXT, "XBEGIN_XABORT_XEND": Flow.NEXT, "CALL": Flow.CALL,
    "INDIRECT_CALL": Flow.CALL, "UNCONDITIONAL_BRANCH": Flow.JUMP, "INDIRECT_BRANCH": Flow.JUMP,
    "CONDITIONAL_BRANCH": Flow.BRANCH, "RETURN": Flow.END, "EXCEPTION": Flow.END,
}  # fmt: skip
_GOING = frozenset((Flow.BRANCH, Flow.JUMP, Flow.CALL))  # to an address, if it is in the code
_SEGMENTS = ("FS", "GS")


def _library() -> ModuleType:
    try:
        import iced_x86
    except ImportError:
        remedy = "pip install iced-x86 (it has wheels for x86-64 Linux, macOS and Windows)"
        raise BackendUnavailable("reading x86-64 code needs iced-x86", remedy) from None
    return iced_x86


@cache
def _names(enum: object) -> dict[int, str]:
    items = ((getattr(enum, name), name) for name in dir(enum) if name[0].isupper())
    return {value: name for value, name in items if isinstance(value, int)}


def _register(name: str) -> Register | None:
    """Class and number of one of iced's registers: its R8L is Intel's R8B."""
    if name[0] == "R" and name[-1] == "L" and name[1:-1].isdigit():
        name = name[:-1] + "B"
    try:
        return register_number(name)
    except KeyError:
        return None


class _Filling(NamedTuple):
    """How the operands of a form are filled: what it fixes, and where iced-x86 has the rest."""

    form: InstructionForm
    registers: tuple[Register | None, ...]
    memory: tuple[Address | None, ...]
    explicit: tuple[tuple[int, int, str], ...]  # position, iced's number, kind
    mask: int  # position or -1
    blocks: tuple[tuple[int, int], ...]  # positions that stand for several registers, and how many
    goes: bool  # whether an operand is relative to the address


class _Placed(NamedTuple):
    """References for the displacement and for the immediate of an instruction."""

    displacement: Reference | None = None
    immediate: Reference | None = None


_NOTHING = _Placed()


def _fixed_memory(form: InstructionForm, op: Operand) -> Address:
    """An implicit access: the stack grows before a store."""
    below = op.fixed == "RSP" and op.write and "stack" in form.attributes
    return Address(base=register_number(op.fixed), displacement=-(op.width // 8) if below else 0)


class X86Decoder:
    """Reads x86-64 code.

    Intel's CPUs ignore an operand-size prefix before a near branch, AMD's do not: `vendor` "amd" is
    the second reading. Raises BackendUnavailable without iced-x86.
    """

    isa = "x86-64"

    def __init__(self, vendor: str = "", syntax: str = "") -> None:
        self._att = syntax == "att"
        self._iced = iced = _library()
        options = iced.DecoderOptions
        self._options = options.MPX | options.PCOMMIT | (options.AMD if vendor == "amd" else options.NONE)
        self._flows = {value: _FLOWS[name] for value, name in _names(iced.FlowControl).items()}
        self._registers = {value: _register(name) for value, name in _names(iced.Register).items()}
        self._segments = {getattr(iced.Register, name): name for name in _SEGMENTS}
        kinds = _names(iced.OpKind)
        self._strings = {value for value, name in kinds.items() if name.startswith("MEMORY_")}
        self._immediates = {value for value, name in kinds.items() if name.startswith("IMMEDIATE")}
        self._near = {value for value, name in kinds.items() if name.startswith("NEAR_")}
        self._codes = _names(iced.Code)
        self._in_register, self._in_memory = iced.OpKind.REGISTER, iced.OpKind.MEMORY
        self._lea = iced.Mnemonic.LEA
        self._prefixed = (iced.EncodingKind.EVEX, iced.EncodingKind.MVEX)
        self._forms: dict[int, FormsOfCode] = {}
        self._known = Kept[bytes, BlockInstruction]()
        self._fillings: dict[str, _Filling] = {}
        self._formatter: Any = None

    def steps(self, code: bytes, address: int) -> Iterator[FlowStep]:
        """Every instruction of `code` as control flow; a byte that begins none is a step of its own."""
        decoder = self._iced.Decoder(64, code, options=self._options, ip=address)
        while decoder.can_decode:
            at = decoder.ip
            ins = decoder.decode()
            if ins.is_invalid:
                decoder.position, decoder.ip = at - address + 1, at + 1
                yield FlowStep(at, 1, Flow.INVALID, None)
                continue
            yield FlowStep(at, ins.len, self._flows[ins.flow_control], self._target(ins))

    def _target(self, ins: Any) -> int | None:
        """The address that a direct branch, jump or call goes to."""
        near = self._flows[ins.flow_control] in _GOING and ins.op0_kind in self._near
        return ins.near_branch_target if near else None

    def in_context(
        self, instructions: Sequence[BlockInstruction], ways: Sequence[Sequence[bytes]]
    ) -> tuple[BlockInstruction, ...]:
        """The instructions: none depends on what others set."""
        return tuple(instructions)

    def instruction(
        self,
        code: bytes,
        address: int,
        references: Mapping[int, Reference] = MappingProxyType({}),
        text: str = "",
        line: int = 0,
    ) -> BlockInstruction:
        """The first instruction of `code`."""
        decoder = self._iced.Decoder(64, code[:LENGTHS], options=self._options, ip=address)
        ins = decoder.decode()
        if ins.is_invalid:
            return _undecoded(code, address, text, line)
        own = code[: ins.len]
        if not (references or text or line):
            return self._read(ins, own, address)
        return self._made(ins, own, address, _placed(decoder, ins, address, references), text, line)

    def run(self, code: bytes) -> CodeRun | None:
        """All instructions of code at address 0, None where some of its bytes begin none."""
        found: list[BlockInstruction] = []
        at, ins = 0, None
        for ins in self._iced.Decoder(64, code, options=self._options):
            if ins.is_invalid:
                return None
            found.append(self._read(ins, code[at : at + ins.len], at))
            at += ins.len
        return CodeRun(tuple(found), ins is not None and self._target(ins) == 0)

    def _read(self, ins: Any, own: bytes, address: int) -> BlockInstruction:
        """An instruction without what a source says of it, once for all addresses if it is no branch."""
        known = self._known.get(own)
        if known is not None:
            return known if known.address == address else msgspec.structs.replace(known, address=address)
        found = self._made(ins, own, address)
        if found.form is not None and not self._fillings[found.form.id].goes:
            self._known.keep(own, found)
        return found

    def _made(
        self, ins: Any, own: bytes, address: int, placed: _Placed = _NOTHING, text: str = "", line: int = 0
    ) -> BlockInstruction:
        text = text or self._text(ins)
        form = self._find(ins)
        if form is None:
            why = Undecoded.PRIVILEGED if ins.is_privileged else Undecoded.UNLISTED
            return BlockInstruction(None, text, line, address, own, problem=why.of(text).text)
        filling = self._fillings.get(form.id) or self._filled(form, ins)
        registers, memory, immediates = self._values(filling, ins, placed)
        target = placed.immediate.symbol if placed.immediate else ""
        made = BlockInstruction(form, text, line, address, own, registers, memory, immediates, target)
        if not filling.blocks:
            return made
        further = {position: _following(registers[position], count) for position, count in filling.blocks}
        return msgspec.structs.replace(made, further=further)

    def _find(self, ins: Any) -> InstructionForm | None:
        """The form of an instruction; prefixes that mean nothing to it are passed over."""
        forms = self._forms.get(ins.code) or self._forms_of(ins)
        if forms.only is not None:
            return forms.only
        kinds = [ins.op_kind(i) for i in range(ins.op_count)]
        if forms.plain is not None and not (
            forms.repeated and (ins.has_lock_prefix or ins.has_rep_prefix or ins.has_repne_prefix)
        ):
            return forms.plain[self._in_memory in kinds]
        key = (self._in_memory in kinds, *(_said_by_evex(ins) if forms.prefixed else UNSAID))
        prefixes = ins.has_lock_prefix, ins.has_rep_prefix, ins.has_repne_prefix
        marks = self._marks(ins, kinds)
        rest = tuple([mark for mark in marks if mark[1] != "0"])
        for tried in (prefixes, (prefixes[0], False, False), (False, False, False)):
            form = forms.by_key.get((*key, *tried, marks)) or forms.by_key.get((*key, *tried, rest))
            if form is not None:
                return form
        return None

    def _forms_of(self, ins: Any) -> FormsOfCode:
        """The forms of an instruction's code."""
        same = load_table(self.isa).of_code(self._codes[ins.code])
        found = self._forms[ins.code] = FormsOfCode.of(same, ins.encoding in self._prefixed)
        return found

    def _marks(self, ins: Any, kinds: list[int]) -> tuple[tuple[int, str], ...]:
        """What `_marks_of` says of the form, read from an instruction."""
        found = []
        for i, k in enumerate(kinds):
            if k == self._in_register:
                register = self._registers[ins.op_register(i)]
                if register is not None and register[0] == "R8h":
                    found.append((i, "R8h"))
            elif k == self._in_memory:
                if ins.mnemonic == self._lea:
                    found.append((i, _lea_class(ins)))
            elif k in self._immediates and ins.immediate(i) == 0:
                found.append((i, "0"))
        return tuple(found)

    def _filled(self, form: InstructionForm, ins: Any) -> _Filling:
        """Where the operands of a form are in iced-x86's instructions."""
        operands = form.operands
        masked = "masked" in form.attributes
        explicit = [i for i, op in enumerate(operands) if not op.implicit and not (masked and i == 1)]
        fixed = {op.fixed for op in operands if op.implicit}
        strings = any(ins.op_kind(i) in self._strings for i in range(ins.op_count))
        shown = [i for i in range(ins.op_count) if not (strings and self._is_implied(ins, i, fixed))]
        filling = _Filling(
            form,
            tuple(register_number(op.fixed) if op.implicit and op.is_register else None for op in operands),
            tuple(_fixed_memory(form, op) if op.implicit and op.is_memory else None for op in operands),
            tuple((p, i, operands[p].kind) for p, i in zip(explicit, shown, strict=False)),
            1 if masked else -1,
            tuple((i, BLOCKS[op.fixed]) for i, op in enumerate(operands) if op.fixed in BLOCKS),
            any(op.kind == "branch" for op in operands),
        )
        self._fillings[form.id] = filling
        return filling

    def _is_implied(self, ins: Any, index: int, fixed: set[str]) -> bool:
        """Operands of string instructions that the table counts as implicit."""
        if ins.op_kind(index) in self._strings:
            return True
        register = self._registers[ins.op_register(index)]
        return register is not None and register_name(*register) in fixed

    def _values(
        self, filling: _Filling, ins: Any, placed: _Placed
    ) -> tuple[tuple[Register | None, ...], tuple[Address | None, ...], tuple[int | None, ...]]:
        """Registers, addresses and immediates of an instruction by position."""
        registers, memory = list(filling.registers), list(filling.memory)
        immediates: list[int | None] = [None] * len(registers)
        if filling.mask >= 0:
            registers[filling.mask] = self._registers[ins.op_mask]
        for position, i, kind in filling.explicit:
            if kind == "register":
                registers[position] = self._registers[ins.op_register(i)]
            elif kind == "immediate":
                addend = placed.immediate.addend if placed.immediate else 0
                immediates[position] = addend or _signed(
                    ins.immediate(i), filling.form.operands[position].width
                )
            elif kind == "branch":
                immediates[position] = ins.near_branch_target
            else:
                memory[position] = self._address(ins, placed.displacement)
        return tuple(registers), tuple(memory), tuple(immediates)

    def _address(self, ins: Any, reference: Reference | None) -> Address:
        relative = ins.is_ip_rel_memory_operand
        displacement = _signed(ins.memory_displacement - (ins.next_ip if relative else 0), 64)
        return Address(
            base=None if relative else self._registers[ins.memory_base],
            index=self._registers[ins.memory_index],
            scale=ins.memory_index_scale,
            displacement=reference.addend if reference else displacement,
            segment=self._segments.get(ins.segment_prefix, ""),
            rip_relative=relative,
            symbol=reference.symbol if reference else "",
        )

    def _text(self, ins: Any) -> str:
        """Disassembly, with addresses in hexadecimal."""
        if self._formatter is None:
            syntaxes = self._iced.FormatterSyntax
            formatter = self._iced.Formatter(syntaxes.GAS if self._att else syntaxes.INTEL)
            formatter.space_after_operand_separator = True
            formatter.hex_prefix, formatter.hex_suffix = "0x", ""
            formatter.uppercase_hex = False
            formatter.rip_relative_addresses = True
            formatter.show_branch_size, formatter.branch_leading_zeros = False, False
            self._formatter = formatter
        return str(self._formatter.format(ins))


def _said_by_evex(ins: Any) -> tuple[bool, ...]:
    """Masked, zeroing, a broadcast, a rounding, no exceptions: as in the key of a form."""
    rounding = ins.rounding_control != 0
    return (
        ins.op_mask != 0, ins.zeroing_masking, ins.is_broadcast, rounding,
        ins.suppress_all_exceptions and not rounding,
    )  # fmt: skip


def _undecoded(code: bytes, address: int, text: str, line: int) -> BlockInstruction:
    """A byte that begins no instruction."""
    shown = code[:1].hex()
    apx = Undecoded.APX.of(repr(text) if text else shown)
    why = apx if _is_apx(code) else Undecoded.INVALID.of(shown)
    return BlockInstruction(None, text or "(bad)", line, address, code[:1], problem=why.text)


def _is_apx(code: bytes) -> bool:
    """Whether code that is no instruction here begins with prefixes of Intel's APX: REX2, or EVEX's map 4."""
    return code[:1] == b"\xd5" or (code[:1] == b"\x62" and len(code) > 1 and code[1] & 7 == 4)


def _following(first: Register | None, count: int) -> tuple[Register, ...]:
    """The registers behind the first of a block."""
    return tuple((first[0], first[1] + n) for n in range(1, count)) if first else ()


def _lea_class(ins: Any) -> str:
    """The class of LEA's address: base, index, scale and the size of the displacement."""
    if ins.is_ip_rel_memory_operand:
        return "LEA_R_D32"
    base, index = "B" if ins.memory_base else "", "I" if ins.memory_index else ""
    scaled = "S" if index and ins.memory_index_scale > 1 else ""
    size = {0: "", 1: "D8"}.get(ins.memory_displ_size, "D32")
    return "_".join(filter(None, ("LEA", base, index + scaled, size)))


def _signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width if value >> width - 1 else 0)


def _placed(decoder: Any, ins: Any, address: int, references: Mapping[int, Reference]) -> _Placed:
    """The references that lie in an instruction, by the field they are for."""
    places = decoder.get_constant_offsets(ins)
    found = []
    for present, offset in (
        (places.has_displacement, places.displacement_offset),
        (places.has_immediate, places.immediate_offset),
    ):
        reference = references.get(address + offset) if present else None
        if reference is not None and reference.relative:
            reference = reference._replace(addend=reference.addend + ins.len - offset)
        found.append(reference)
    return _Placed(*found)
