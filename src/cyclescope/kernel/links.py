"""Links: helper instructions that carry a dependency from one register file to another.

A latency chain runs through the form under test and back through a link. Every link has a key; its
latency is measured first (see infer/latency_system.py) and subtracted. Links never use eliminated
moves, zero idioms or XCHG, whose cost depends on history. A link that ends in floating-point data
restores the form's value, so that no operand decays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.registers import (
    ALIAS,
    CONSTANT,
    MASK_ONES,
    TEMPORARY,
    VECTOR_CONSTANT,
    VECTOR_ONES,
    VECTOR_ZERO,
)

CONDITIONS = {"CF": "B", "PF": "P", "ZF": "Z", "SF": "S", "OF": "O"}
SCRATCH_VECTOR = 8  # on the way between general registers and memory
SPILL = 64  # distance of the place through which x87 values reach general registers
LOW_SCRATCH = 5  # RBP: reachable without a REX prefix, in no pool of high-byte forms


class Place(msgspec.Struct, frozen=True):
    """Where a value is: `kind` is a register file (`r`, `h`, `v`, `k`, `m`, `x`), `mem` or `flag`.

    `number` is the register (for `h` the general register it is part of), `width` the bits of
    memory or of the vector, `flag` the flag's name, `offset` the memory's distance from the alias
    base register.
    """

    kind: str
    number: int = 0
    width: int = 0
    flag: str = ""
    offset: int = 0


class Step(msgspec.Struct, frozen=True):
    """A piece of a chain: instructions and the keys of the links they are made of."""

    instructions: tuple[Instruction, ...]
    keys: tuple[str, ...]


Emitter = Callable[[Place, Place], list[Instruction]]


class Helpers:
    """Helper instructions that this CPU executes.

    `legal` says whether a form may be used; forms of extensions the CPU lacks are replaced by older
    ones (MOVD for VMOVD), or the link does not exist.
    """

    def __init__(self, table: Table, legal: Callable[[InstructionForm], bool]) -> None:
        self._table = table
        self._legal = legal
        self.avx = self.has("VPXOR (XMM, XMM, XMM)")
        self.avx512 = self.has("VPTESTNMB (K, ZMM, ZMM)") and self.has("KMOVQ (K, R64)")

    def has(self, form_id: str) -> bool:
        """Whether this CPU executes a form."""
        form = self._table.get(form_id)
        return form is not None and self._legal(form)

    def form(self, form_id: str) -> InstructionForm:
        """A form of the table."""
        return self._table[form_id]

    def make(self, form_id: str, *registers: int, **values: object) -> Instruction:
        """An instruction of a form."""
        return Instruction(self._table[form_id], registers, **values)  # type: ignore[arg-type]

    # --- breaking a dependency -------------------------------------------------------------------

    def constant(self, number: int) -> Instruction:
        """General register := a constant, without reading anything and without flags."""
        return self.make("MOV (R32, I32)", number, immediates=(5,))

    def constant_from(self, number: int, source: int) -> Instruction:
        """General register := a register that never changes."""
        return self.make("MOV_89 (R64, R64)", number, source)

    def zero(self, number: int) -> Instruction:
        """General register := 0 by the zero idiom (writes flags)."""
        return self.make("XOR_31 (R32, R32)", number, number)

    def vector_constant(self, number: int, source: int, width: int) -> Instruction:
        """Vector register := a register that never changes."""
        if width == 512:
            return self.make("VMOVAPS (ZMM, ZMM)", number, source)
        cls = "YMM" if width == 256 else "XMM"
        suffix = "_EVEX" if max(number, source) > 15 else "_28"
        name = f"VMOVAPS{suffix} ({cls}, {cls})" if self.avx else "MOVAPS_0F28 (XMM, XMM)"
        return self.make(name, number, source)

    def vector_zero(self, number: int) -> Instruction:
        """Vector register := 0 by the zero idiom that needs no execution port."""
        if not self.avx:
            return self.make("PXOR (XMM, XMM)", number, number)
        if number < 16:
            return self.make("VPXOR (XMM, XMM, XMM)", number, number, number)
        return self.make("VPXORD (XMM, XMM, XMM)", number, number, number)

    def flags_constant(self) -> Instruction:
        """All arithmetic flags from a register that never changes."""
        return self.make("TEST (R64, R64)", CONSTANT, CONSTANT)

    def mask_constant(self, number: int) -> Instruction:
        """Mask register := all ones from a register that never changes."""
        return self.make("KMOVQ (K, K)", number, MASK_ONES)

    # --- links -----------------------------------------------------------------------------------

    @cached_property
    def edges(self) -> dict[tuple[str, str], tuple[str, Emitter]]:
        """(source kind, target kind) -> (key, emitter), for one-step links."""
        found: dict[tuple[str, str], tuple[str, Emitter]] = {
            ("r", "r"): ("r>r", self._general_to_general),
            ("h", "r"): ("h>r", self._high_to_general),
            ("r", "h"): ("r>h", self._general_to_high),
            ("r", "flag"): ("r>flag", lambda s, t: [self.make("CMP_39 (R64, R64)", s.number, CONSTANT)]),
            ("flag", "r"): ("flag>r", self._flag_to_general),
            ("r", "v"): ("r>v", self._general_to_vector),
            ("v", "r"): ("v>r", self._vector_to_general),
            ("r", "mem"): ("r>mem", self._general_to_memory),
            ("mem", "r"): ("mem>r", self._memory_to_general),
            ("v", "mem"): ("v>mem", self._vector_to_memory),
            ("mem", "v"): ("mem>v", self._memory_to_vector),
            ("v", "v"): ("v>v", self._vector_to_vector),
        }
        if self.has("MOVD (MM, R32)"):
            found |= {
                ("r", "m"): ("r>m", lambda s, t: [self.make("MOVD (MM, R32)", t.number, s.number)]),
                ("m", "r"): ("m>r", lambda s, t: [self.make("MOVD (R32, MM)", t.number, s.number)]),
                ("m", "mem"): ("m>mem", self._mmx_to_memory),
                ("mem", "m"): ("mem>m", self._memory_to_mmx),
            }
        if self.has("FST (M64)"):
            found |= {
                ("x", "mem"): ("x>mem", self._x87_to_memory),
                ("mem", "x"): ("mem>x", self._memory_to_x87),
            }
        if self.avx512:
            found |= {
                ("r", "k"): ("r>k", lambda s, t: [self.make("KMOVQ (K, R64)", t.number, s.number)]),
                ("k", "r"): ("k>r", lambda s, t: [self.make("KMOVQ (R64, K)", t.number, s.number)]),
                ("v", "k"): ("v>k", self._vector_to_mask),
                ("k", "v"): ("k>v", self._mask_to_vector),
                ("k", "mem"): ("k>mem", self._mask_to_memory),
                ("mem", "k"): ("mem>k", self._memory_to_mask),
            }
        return found

    def _general_to_general(self, source: Place, target: Place) -> list[Instruction]:
        name = {8: "MOVSX (R64, R8l)", 16: "MOVSX (R64, R16)"}.get(source.width, "MOVSXD (R64, R32)")
        return [self.make(name, target.number, source.number)]

    def _high_to_general(self, source: Place, target: Place) -> list[Instruction]:
        low = target.number if target.number < 8 else LOW_SCRATCH  # AH excludes a REX prefix
        move = self.make("MOVSX (R32, R8h)", low, source.number + 4)
        return [move] if low == target.number else [move, *self._copy(low, target.number)]

    def _copy(self, source: int, target: int) -> list[Instruction]:
        return self._general_to_general(Place("r", source, 64), Place("r", target))

    def _general_to_high(self, source: Place, target: Place) -> list[Instruction]:
        n = target.number
        move = [] if source.number == n else self._general_to_general(source, Place("r", n))
        return [*move, self.make("MOV_88 (R8h, R8l)", n + 4, n)]

    def _flag_to_general(self, source: Place, target: Place) -> list[Instruction]:
        if source.flag == "AF":
            return [
                self.constant(0),
                self.make("LAHF"),
                self.make("MOVSXD (R64, R32)", target.number, 0),
            ]
        name = f"CMOV{CONDITIONS[source.flag]} (R64, R64)"
        return [self.constant(target.number), self.make(name, target.number, CONSTANT)]

    def _general_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        name = "VMOVD (XMM, R32)" if self.avx else "MOVD (XMM, R32)"
        move = self.make(name, target.number, source.number)
        return [move, *self._restore(target)]

    def _restore(self, target: Place) -> list[Instruction]:
        """(register AND 0) OR constant: the form's value again, still depending on the register."""
        n, width = target.number, target.width
        if width == 512:
            return [
                self.make("VPANDD (ZMM, ZMM, ZMM)", n, n, VECTOR_ZERO),
                self.make("VPORD (ZMM, ZMM, ZMM)", n, n, VECTOR_CONSTANT),
            ]
        if width == 256:
            return [
                self.make("VANDPS (YMM, YMM, YMM)", n, n, VECTOR_ZERO),
                self.make("VORPS (YMM, YMM, YMM)", n, n, VECTOR_CONSTANT),
            ]
        if self.avx:
            return [
                self.make("VPAND (XMM, XMM, XMM)", n, n, VECTOR_ZERO),
                self.make("VPOR (XMM, XMM, XMM)", n, n, VECTOR_CONSTANT),
            ]
        return [
            self.make("PAND (XMM, XMM)", n, VECTOR_ZERO),
            self.make("POR (XMM, XMM)", n, VECTOR_CONSTANT),
        ]

    def _vector_to_general(self, source: Place, target: Place) -> list[Instruction]:
        name = "VMOVD (R32, XMM)" if self.avx else "MOVD (R32, XMM)"
        return [self.make(name, target.number, source.number)]

    def _vector_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        if not self.avx:
            return [self.make("PSHUFD (XMM, XMM, I8)", target.number, source.number, immediates=(0xE4,))]
        if max(source.width, target.width) == 512:
            return [self.make("VPANDD (ZMM, ZMM, ZMM)", target.number, source.number, VECTOR_ONES)]
        if max(source.width, target.width) == 256:
            return [self.make("VANDPS (YMM, YMM, YMM)", target.number, source.number, VECTOR_ONES)]
        return [self.make("VPAND (XMM, XMM, XMM)", target.number, source.number, VECTOR_ONES)]

    def bypass(self, number: int, width: int, kind: str) -> Instruction:
        """An identity in the `integer` or `fp` domain, in place, that shows the bypass delay."""
        names = {
            ("integer", 128): "VPAND (XMM, XMM, XMM)" if self.avx else "PAND (XMM, XMM)",
            ("fp", 128): "VANDPS (XMM, XMM, XMM)" if self.avx else "ANDPS (XMM, XMM)",
            ("integer", 256): "VPAND (YMM, YMM, YMM)",
            ("fp", 256): "VANDPS (YMM, YMM, YMM)",
            ("integer", 512): "VPANDD (ZMM, ZMM, ZMM)",
            ("fp", 512): "VANDPS (ZMM, ZMM, ZMM)",
        }
        registers = (number, number, VECTOR_ONES) if self.avx else (number, VECTOR_ONES)
        return self.make(names[kind, width], *registers)

    def has_bypass(self, width: int) -> bool:
        """Whether both identities exist at this width."""
        needed = {128: "PAND (XMM, XMM)", 256: "VPAND (YMM, YMM, YMM)", 512: "VANDPS (ZMM, ZMM, ZMM)"}
        return width in needed and self.has(needed[width])

    def _vector_to_mask(self, source: Place, target: Place) -> list[Instruction]:
        return [self.make("VPTESTNMB (K, ZMM, ZMM)", target.number, source.number, VECTOR_ZERO)]

    def _mask_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        name = {512: "VPBLENDMD (ZMM, K, ZMM, ZMM)", 256: "VPBLENDMD (YMM, K, YMM, YMM)"}.get(
            target.width, "VPBLENDMD (XMM, K, XMM, XMM)"
        )
        constant = VECTOR_CONSTANT
        return [self.make(name, target.number, source.number, constant, constant)]

    # --- memory, always through another base register than the form's ----------------------------
    # Some CPUs rename memory: a load of 32 or 64 bits gets its value from the register that an
    # earlier store stored, whatever the address. A vector register in between rules that out.

    def _general_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        if target.width < 32:
            name = {8: "MOV (M8, R8l)", 16: "MOV (M16, R16)"}[target.width]
            return [self._memory(name, (ALIAS, source.number), target)]
        name = self._transfer_name(target.width, to_vector=True)
        middle = Place("v", SCRATCH_VECTOR, 128)
        move = self.make(name, SCRATCH_VECTOR, source.number)
        return [move, *self._vector_to_memory(middle, target)]

    def _memory_to_general(self, source: Place, target: Place) -> list[Instruction]:
        if source.width < 32:
            name = {8: "MOVZX (R32, M8)", 16: "MOVZX (R32, M16)"}[source.width]
            return [self._memory(name, (target.number, ALIAS), source)]
        name = self._transfer_name(source.width, to_vector=False)
        load = self._memory_to_vector(source, Place("v", SCRATCH_VECTOR, 128))
        return [*load, self.make(name, target.number, SCRATCH_VECTOR)]

    def _transfer_name(self, width: int, *, to_vector: bool) -> str:
        general = f"R{width}"
        pair = f"XMM, {general}" if to_vector else f"{general}, XMM"
        return f"{'V' if self.avx else ''}MOV{'D' if width == 32 else 'Q'} ({pair})"

    def store_constant(self, width: int) -> list[Instruction]:
        """Memory := a constant, in a way that cannot be renamed."""
        if width < 32:
            return self._general_to_memory(Place("r", CONSTANT), Place("mem", width=width))
        return self._vector_to_memory(Place("v", VECTOR_CONSTANT, 128), Place("mem", width=width))

    def _memory(self, form_id: str, registers: tuple[int, ...], place: Place) -> Instruction:
        return self.make(form_id, *registers, displacement=place.offset)

    def _vector_name(self, width: int, store: bool) -> str:
        classes = {32: "XMM", 64: "XMM", 128: "XMM", 256: "YMM", 512: "ZMM"}
        mnemonic = {32: "MOVD", 64: "MOVQ"}.get(width, "MOVUPS")
        prefix = "V" if self.avx else ""
        pair = (f"M{width}", classes[width]) if store else (classes[width], f"M{width}")
        return f"{prefix}{mnemonic} ({pair[0]}, {pair[1]})"

    def _vector_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        return [self._memory(self._vector_name(target.width, True), (ALIAS, source.number), target)]

    def _memory_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        return [self._memory(self._vector_name(source.width, False), (target.number, ALIAS), source)]

    def _mmx_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        name = "MOVD (M32, MM)" if target.width == 32 else "MOVQ (M64, MM)"
        return [self._memory(name, (ALIAS, source.number), target)]

    def _memory_to_mmx(self, source: Place, target: Place) -> list[Instruction]:
        name = "MOVD (MM, M32)" if source.width == 32 else "MOVQ (MM, M64)"
        return [self._memory(name, (target.number, ALIAS), source)]

    def _x87_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        """Store ST(0); `number` 1 says that the form pushed it, so it is popped."""
        name = "FSTP" if source.number else "FST"
        return [self._memory(f"{name} (M{target.width})", (ALIAS,), target)]

    def _memory_to_x87(self, source: Place, target: Place) -> list[Instruction]:
        """Load ST(0) in place of the old one, unless the form popped that (`number` 1)."""
        drop = [] if target.number else [self.make("FSTP (STi)", 0)]
        return [*drop, self._memory(f"FLD (M{source.width})", (ALIAS,), source)]

    def _mask_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        letter = {8: "B", 16: "W", 32: "D", 64: "Q"}[target.width]
        name = f"KMOV{letter} (M{target.width}, K)"
        return [self._memory(name, (ALIAS, source.number), target)]

    def _memory_to_mask(self, source: Place, target: Place) -> list[Instruction]:
        letter = {8: "B", 16: "W", 32: "D", 64: "Q"}[source.width]
        name = f"KMOV{letter} (K, M{source.width})"
        return [self._memory(name, (target.number, ALIAS), source)]

    def load(self, target: Place, width: int) -> Instruction | None:
        """A plain load into a register of any file, or None."""
        source = Place("mem", width=width)
        if target.kind == "r":
            names = {8: "MOVZX (R32, M8)", 16: "MOVZX (R32, M16)", 32: "MOV (R32, M32)"}
            name = names.get(width, "MOV (R64, M64)")
            return self._memory(name, (target.number, ALIAS), source)
        step = self.step(source, target)
        return step.instructions[0] if step else None

    # --- paths -----------------------------------------------------------------------------------

    def step(self, source: Place, target: Place) -> Step | None:
        """A one-step link, or None where none exists."""
        edge = self.edges.get((source.kind, target.kind))
        if edge is None or not self._fits(source, target):
            return None
        key, emit = edge
        instructions = tuple(emit(source, target))
        extra = ("r>r",) if "h" in (source.kind, target.kind) and len(instructions) == 2 else ()
        return Step(instructions, (key + _detail(source, target), *extra))

    def _fits(self, source: Place, target: Place) -> bool:
        kinds = {source.kind, target.kind}
        if "mem" not in kinds:
            return True
        width = source.width if source.kind == "mem" else target.width
        allowed = {
            "x": (32, 64),
            "r": (8, 16, 32, 64),
            "v": (32, 64, 128, 256, 512),
            "m": (32, 64),
            "k": (8, 16, 32, 64),
        }
        other = (kinds - {"mem"}).pop() if len(kinds) == 2 else ""
        return width in allowed.get(other, ())

    def path(self, source: Place, target: Place) -> Step | None:
        """The shortest way from one place to another: directly, or through up to two registers."""
        general = Place("r", TEMPORARY, 64)
        vector = Place("v", SCRATCH_VECTOR, max(128, _vector_width(source), _vector_width(target)))
        spill = Place("mem", width=64, offset=SPILL)
        routes = [(), (general,), (vector,), (general, vector), (vector, general)]
        routes += [(spill, general), (general, spill), (spill, general, vector)]
        for middle in routes:
            found = self._through(source, middle, target)
            if found is not None:
                return found
        return None

    def _through(self, source: Place, middle: tuple[Place, ...], target: Place) -> Step | None:
        places = (source, *middle, target)
        instructions: tuple[Instruction, ...] = ()
        keys: tuple[str, ...] = ()
        for a, b in pairwise(places):
            step = self.step(a, b)
            if step is None:
                return None
            instructions += step.instructions
            keys += step.keys
        return Step(instructions, keys)


def _vector_width(place: Place) -> int:
    return place.width if place.kind in ("v", "mem") else 0


def _detail(source: Place, target: Place) -> str:
    """What distinguishes links between the same register files: widths and flags."""
    if source.kind == "flag":
        return f".{source.flag}"
    if target.kind == "flag":
        return f".{target.flag}"
    if "mem" in (source.kind, target.kind):
        return f".{source.width if source.kind == 'mem' else target.width}"
    if target.kind == "v":
        return f".{max(target.width, source.width if source.kind == 'v' else 0, 128)}"
    return ""
