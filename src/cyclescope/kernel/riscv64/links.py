"""Links of RISC-V.

None is a move that a core may execute by renaming: signs are extended, ANDs have an immediate of ones. Floats
are copied by the sign of another register, so that the value is the form's again. Vectors are worked on
as the configuration says that the form under test has.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration
from cyclescope.isa.riscv64 import overlap
from cyclescope.isa.table import Table
from cyclescope.kernel.dialect import Executes
from cyclescope.kernel.fixed_width.links import CONSTANT_VALUE, FLOAT_SCRATCH, SCALABLE, Helpers
from cyclescope.kernel.fixed_width.values import DIVISOR_BITS, FLOAT_BITS
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.paths import Edges, Emitter
from cyclescope.kernel.place import Place
from cyclescope.kernel.riscv64.registers import POOLS
from cyclescope.kernel.state import VECTOR_FLOAT, VECTOR_NONE, VECTOR_SCALABLE

FLOAT_VALUE = 27  # f register with the form's value
_SIZES = {16: "H", 32: "W", 64: "D"}
_FLOATS = {16: "H", 32: "S", 64: "D"}
USUAL_CONFIGURATION = Configuration(64, Fraction(1))


class RiscV64Links(Helpers):
    """Links and constants of RISC-V, under a vector configuration."""

    pools = POOLS
    general = Place("r", POOLS.temporary, 64)
    floating = Place("f", FLOAT_SCRATCH, 64)
    vector = Place("v", POOLS.scratch, SCALABLE)
    routes = (
        (), (general,), (floating,), (vector,), (general, floating), (floating, general), (vector, general),
        (general, vector),
    )  # fmt: skip

    def __init__(
        self, table: Table, executes: Executes, configuration: Configuration = USUAL_CONFIGURATION
    ) -> None:
        super().__init__(table, executes)
        self.configuration = configuration
        whole = max(1, int(configuration.lmul))
        self.stores = {
            ("r", 8): "SB", ("r", 16): "SH", ("r", 32): "SW", ("r", 64): "SD",
            ("f", 16): "FSH", ("f", 32): "FSW", ("f", 64): "FSD", ("v", SCALABLE): f"VS{whole}R_V",
        }  # fmt: skip
        self.loads = {
            ("r", 8): "LB", ("r", 16): "LH", ("r", 32): "LW", ("r", 64): "LD",
            ("f", 16): "FLH", ("f", 32): "FLW", ("f", 64): "FLD", ("v", SCALABLE): f"VL{whole}RE8_V",
        }  # fmt: skip

    def conflict(self, form: InstructionForm, registers: Sequence[int]) -> str:
        """See `overlap.conflict`: groups of vectors may overlap or not."""
        return overlap.conflict(form, registers) if form.configuration else ""

    @property
    def group(self) -> int:
        """As many as a group has under the configuration."""
        return max(1, int(self.configuration.lmul))

    @cached_property
    def vectors(self) -> bool:
        """Whether there are vectors."""
        return self.has("VSETVLI") and self.has("VAND_VI")

    @cached_property
    def edges(self) -> Edges:
        """See `Links`."""
        found: dict[tuple[str, str], tuple[str, Emitter]] = {
            ("r", "r"): ("r>r", lambda s, t: [self.make("ADDIW", t.number, s.number, 0)]),
            ("r", "mem"): ("r>mem", lambda s, t: [self._memory(self.stores, s, t)]),
            ("mem", "r"): ("mem>r", lambda s, t: [self._memory(self.loads, t, s)]),
        }
        if self.has("FMV_W_X"):
            found |= {
                ("r", "f"): ("r>f", self._general_to_float),
                ("f", "r"): ("f>r", lambda s, t: [self.make(f"FMV_X_{_size(s)}", t.number, s.number)]),
                ("f", "f"): ("f>f", lambda s, t: [self._sign(_whole(t), s.number, FLOAT_VALUE)]),
                ("f", "mem"): ("f>mem", lambda s, t: [self._memory(self.stores, s, t)]),
                ("mem", "f"): ("mem>f", lambda s, t: [self._memory(self.loads, t, s)]),
            }
        if self.vectors:
            found |= self._vector_edges()
        return found

    def _vector_edges(self) -> dict[tuple[str, str], tuple[str, Emitter]]:
        found: dict[tuple[str, str], tuple[str, Emitter]] = {
            ("r", "v"): ("r>v", self._general_to_vector),
            ("v", "r"): ("v>r", lambda s, t: [self._vector("VMV_X_S", t.number, s.number)]),
            ("v", "v"): ("v>v", lambda s, t: [self._and(t, s, 31)]),
            ("v", "mem"): ("v>mem", lambda s, t: [self._memory(self.stores, s, t)]),
            ("mem", "v"): ("mem>v", lambda s, t: [self._memory(self.loads, t, s)]),
        }
        if self.configuration.sew >= 32 and self.has(f"VFMV_F_S@{self.configuration.plain}"):
            found |= {
                ("f", "v"): ("f>v", lambda s, t: [self._vector("VFMV_V_F", t.number, s.number)]),
                ("v", "f"): ("v>f", lambda s, t: [self._vector("VFMV_F_S", t.number, s.number)]),
            }
        return found

    def nop(self) -> Instruction:
        """NOP."""
        return self.make("ADDI", 0, 0, 0)

    def _vector(self, form_id: str, *values: int) -> Instruction:
        """A vector instruction without a mask, under the configuration."""
        return self.make(f"{form_id}@{self.configuration.plain}", *values)

    # --- links -------------------------------------------------------------------------------------

    def _general_to_float(self, source: Place, target: Place) -> list[Instruction]:
        """(register AND 0) OR the value's bits, then moved."""
        n = self.pools.temporary
        return [
            self.make("AND", n, source.number, self.pools.zero),
            self.make("OR", n, n, FLOAT_BITS),
            self.make(f"FMV_{_size(target)}_X", target.number, n),
        ]

    def transfer(self, place: Place, source: Place) -> Instruction | None:
        """FMV or VMV."""
        if place.kind == "v":
            return self._vector("VMV_V_X", place.number, source.number)
        return self.make(f"FMV_{_size(place)}_X", place.number, source.number) if place.kind == "f" else None

    def _sign(self, target: Place, magnitude: int, sign: int) -> Instruction:
        return self.make(f"FSGNJ_{_FLOATS.get(target.width, 'D')}", target.number, magnitude, sign)

    def _general_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        move = self._vector("VMV_V_X", target.number, source.number)
        return [move, *self.again(target, target, 0)[0]]

    def _and(self, target: Place, source: Place, immediate: int) -> Instruction:
        return self._vector("VAND_VI", target.number, source.number, immediate)

    def again(self, source: Place, target: Place, value: int) -> tuple[list[Instruction], tuple[str, ...]]:
        """(source AND 0) OR value; the sign of the source on the value in an f register."""
        if source.kind == "f":
            number = FLOAT_VALUE if value == self.pools.value else value
            return [self._sign(target, number, source.number)], (f"restore.f.{target.width}",)
        bits = DIVISOR_BITS if value == self.pools.scratch else FLOAT_BITS
        both = [self._and(target, source, 0), self._vector("VOR_VX", target.number, target.number, bits)]
        return both, (f"restore{self.detail(target, target)}",)

    def fits(self, source: Place, target: Place) -> bool:
        """Vectors begin where groups of their length do."""
        group = self.group
        vectors = (place.number for place in (source, target) if place.kind == "v")
        return not any(number % group for number in vectors) and super().fits(source, target)

    def detail(self, source: Place, target: Place) -> str:
        """Bits of memory and of floating-point registers, and the length of vectors."""
        kinds = {source.kind, target.kind}
        if kinds == {"r", "f"}:
            return f".{source.width if source.kind == 'f' else target.width}"
        if "mem" in kinds and "v" not in kinds:
            return super().detail(source, target)
        length = str(self.configuration).split(",")[1]
        return f".{length}" if target.kind == "v" or kinds == {"v", "mem"} else ""

    def to_mask(self, instructions: list[Instruction]) -> list[Instruction]:
        """OR with ones in place of the last instruction, which reads a vector register or ORs the value."""
        last = instructions[-1]
        ones = self._vector("VOR_VI", last.registers[0], last.registers[1], 31)
        return [*instructions[:-1], ones]

    # --- constants ---------------------------------------------------------------------------------

    def constant(self, number: int) -> Instruction:
        """LI."""
        return self.make("ADDI", number, 0, CONSTANT_VALUE)

    def copy(self, number: int, source: int) -> Instruction:
        """MV."""
        return self.make("ADDI", number, source, 0)

    def xor(self, number: int, source: int) -> Instruction:
        """XOR."""
        return self.make("XOR", number, number, source)

    def xor_vector(self, number: int, source: int) -> Instruction | None:
        """XOR of vectors of indices."""
        return self._vector("VXOR_VV", number, number, source) if self.vectors else None

    def cut(self, place: Place) -> list[Instruction]:
        """A constant of the file, or nothing for memory."""
        if place.kind == "r":
            return [self.constant(place.number)]
        if place.kind == "f":
            return [self.make(f"FMV_{_size(place)}_X", place.number, FLOAT_BITS)]
        if place.kind == "v":
            return [self._vector("VMV_V_X", place.number, FLOAT_BITS)]
        if place.kind == "mem" and place.width == 128:
            return [self.make("SD", self.pools.constant, self.pools.alias, offset) for offset in (0, 8)]
        if place.kind == "mem" and ("r", place.width) in self.stores:
            return [self._memory(self.stores, Place("r", self.pools.constant), place)]
        return []

    def cut_one(self, place: Place) -> list[Instruction]:
        """Vectors are cut by groups, whose length the configuration says."""
        group = self.group
        return [] if place.kind == "v" and place.number % group else self.cut(place)

    def _offset(self, memory: Place) -> tuple[int, ...]:
        return () if memory.width == SCALABLE else (0,)

    def level(self, form: InstructionForm) -> int:
        """Vectors need all of it."""
        files = {op.file for op in form.operands if op.is_register}
        if "v" in files or any(op.fixed in ("VL", "VTYPE") for op in form.operands):
            return VECTOR_SCALABLE
        return VECTOR_FLOAT if "f" in files else VECTOR_NONE


def _whole(place: Place) -> Place:
    """A whole register: one latency for all, where a core takes a cycle less for the narrow ones."""
    return Place(place.kind, place.number, 64)


def _size(place: Place) -> str:
    return _SIZES.get(place.width, "D")
