"""Links of AArch64.

None is a move that the renamer may execute: signs are extended, AND works with a register of ones. What ends
in a vector register gets the form's value again, so that no operand decays.
"""

from __future__ import annotations

from functools import cached_property

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.aarch64.registers import POOLS
from cyclescope.kernel.fixed_width.links import CONSTANT_VALUE, SCALABLE, Helpers
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.paths import Edges, Emitter
from cyclescope.kernel.place import Place
from cyclescope.kernel.state import VECTOR_FLOAT, VECTOR_NONE, VECTOR_SCALABLE

ZERO_REGISTER = 31
_CONDITIONS = {"Z": 0, "C": 2, "N": 4, "V": 6}  # EQ, CS, MI, VS: each reads one flag
_LETTERS = {8: "B", 16: "H", 32: "S", 64: "D", 128: "Q"}


class AArch64Links(Helpers):
    """Links and constants of AArch64."""

    pools = POOLS
    flags = tuple(_CONDITIONS)
    stores = {
        ("r", 8): "STRBBui", ("r", 16): "STRHHui", ("r", 32): "STRWui", ("r", 64): "STRXui",
        ("r", 128): "STPXi", ("v", 256): "STPQi", ("v", SCALABLE): "STR_ZXI", ("p", SCALABLE): "STR_PXI",
    } | {("v", bits): f"STR{letter}ui" for bits, letter in _LETTERS.items()}  # fmt: skip
    loads = {
        ("r", 8): "LDRBBui", ("r", 16): "LDRHHui", ("r", 32): "LDRWui", ("r", 64): "LDRXui",
        ("r", 128): "LDRXui", ("v", 256): "LDRQui", ("v", SCALABLE): "LDR_ZXI", ("p", SCALABLE): "LDR_PXI",
    } | {("v", bits): f"LDR{letter}ui" for bits, letter in _LETTERS.items()}  # fmt: skip
    general = Place("r", POOLS.temporary, 64)
    vector = Place("v", POOLS.scratch, 128)
    long_vector = Place("v", POOLS.scratch, SCALABLE)
    routes = (
        (), (general,), (vector,), (general, vector), (vector, general), (long_vector,),
        (general, long_vector), (long_vector, general),
    )  # fmt: skip

    @cached_property
    def sve(self) -> bool:
        """Whether there are scalable vectors and predicates."""
        return self.has("ORR_ZZZ") and self.has("PTRUE_B")

    @cached_property
    def edges(self) -> Edges:
        """See `Links`."""
        found: dict[tuple[str, str], tuple[str, Emitter]] = {
            ("r", "r"): ("r>r", lambda s, t: [self.make("SBFMXri", t.number, s.number, 0, 31)]),
            ("r", "flag"): ("r>flag", self._compare),
            ("flag", "r"): ("flag>r", self._condition),
            ("r", "mem"): ("r>mem", lambda s, t: [self._memory(self.stores, s, t)]),
            ("mem", "r"): ("mem>r", lambda s, t: [self._memory(self.loads, t, s)]),
        }
        if self.has("FMOVXDr"):
            found |= {
                ("r", "v"): ("r>v", self._general_to_vector),
                ("v", "r"): ("v>r", lambda s, t: [self.make("FMOVDXr", t.number, s.number)]),
                ("v", "v"): ("v>v", lambda s, t: [self._and(t, s, self.pools.ones)]),
                ("v", "mem"): ("v>mem", lambda s, t: [self._memory(self.stores, s, t)]),
                ("mem", "v"): ("mem>v", lambda s, t: [self._memory(self.loads, t, s)]),
            }
        if self.sve:
            found |= self._predicates()
        return found

    def _predicates(self) -> Edges:
        (truth, governing), value = self.pools.truths, self.pools.value
        return {
            ("r", "p"): ("r>p", self._general_to_predicate),
            ("p", "r"): ("p>r", lambda s, t: [self.make("CNTP_XPP_B", t.number, truth, s.number)]),
            ("p", "p"): ("p>p", lambda s, t: [self.make("AND_PPzPP", t.number, truth, s.number, truth)]),
            ("v", "p"): (
                "v>p",
                lambda s, t: [self.make("CMPEQ_PPzZZ_B", t.number, governing, s.number, s.number)],
            ),
            ("p", "v"): ("p>v", lambda s, t: [self.make("SEL_ZPZZ_B", t.number, s.number, value, value)]),
            ("p", "mem"): ("p>mem", lambda s, t: [self._memory(self.stores, s, t)]),
            ("mem", "p"): ("mem>p", lambda s, t: [self._memory(self.loads, t, s)]),
        }

    def nop(self) -> Instruction:
        """NOP."""
        return self.make("NOP")

    # --- links -------------------------------------------------------------------------------------

    def _compare(self, source: Place, target: Place) -> list[Instruction]:
        return [self.make("SUBSXrs", ZERO_REGISTER, source.number, self.pools.constant, 0)]

    def _condition(self, source: Place, target: Place) -> list[Instruction]:
        zero = ZERO_REGISTER
        return [self.make("CSINCXr", target.number, zero, zero, _CONDITIONS[source.flag])]

    def _general_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        move = self.make("FMOVXDr", target.number, source.number)
        return [move, *self.again(target, target, self.pools.value)[0]]

    def transfer(self, place: Place, source: Place) -> Instruction | None:
        """FMOV."""
        if place.kind != "v" or place.width == SCALABLE:
            return None
        return self.make("FMOVXDr", place.number, source.number)

    def _general_to_predicate(self, source: Place, target: Place) -> list[Instruction]:
        """All ones again, whatever the count."""
        n, truth = target.number, self.pools.truths[0]
        count = self.make("WHILELO_PXX_B", n, ZERO_REGISTER, source.number)
        return [count, self.make("ORR_PPzPP", n, truth, n, truth)]

    def to_mask(self, instructions: list[Instruction]) -> list[Instruction]:
        """OR with all ones in place of an AND that copies a predicate, whose elements may be false."""
        last, truth = instructions[-1], self.pools.truths[0]
        if last.form.id != "AND_PPzPP":
            return instructions
        number, _, source, _ = last.registers
        return [*instructions[:-1], self.make("ORR_PPzPP", number, truth, source, truth)]

    def _and(self, target: Place, source: Place, other: int) -> Instruction:
        scalable = SCALABLE in (target.width, source.width)
        return self.make("AND_ZZZ" if scalable else "ANDv16i8", target.number, source.number, other)

    def _or(self, target: Place, source: Place, other: int) -> Instruction:
        scalable = SCALABLE in (target.width, source.width)
        return self.make("ORR_ZZZ" if scalable else "ORRv16i8", target.number, source.number, other)

    def again(self, source: Place, target: Place, value: int) -> tuple[list[Instruction], tuple[str, ...]]:
        """(source AND 0) OR value."""
        both = [self._and(target, source, self.pools.nought), self._or(target, target, value)]
        return both, (f"restore{self.detail(target, target)}",)

    def _offset(self, memory: Place) -> tuple[int, ...]:
        """Fields hold multiples of what is accessed."""
        return (8 * memory.offset // memory.width,)

    # --- constants ---------------------------------------------------------------------------------

    def constant(self, number: int) -> Instruction:
        """MOVZ."""
        return self.make("MOVZXi", number, CONSTANT_VALUE, 0)

    def copy(self, number: int, source: int) -> Instruction:
        """MOV."""
        return self.make("ORRXrs", number, ZERO_REGISTER, source, 0)

    def xor(self, number: int, source: int) -> Instruction:
        """EOR."""
        return self.make("EORXrs", number, number, source, 0)

    def xor_vector(self, number: int, source: int) -> Instruction | None:
        """EOR of scalable vectors."""
        return self.make("EOR_ZZZ", number, number, source) if self.sve else None

    def cut(self, place: Place) -> list[Instruction]:
        """A constant of the file, or nothing for memory."""
        value = self.pools.value
        if place.kind == "r":
            return [self.constant(place.number)]
        if place.kind == "flag":
            return self._compare(Place("r", self.pools.constant, 64), place)
        if place.kind == "v":
            return [self._or(place, Place("v", value, place.width), value)]
        if place.kind == "p":
            truth = self.pools.truths[0]
            return [self.make("ORR_PPzPP", place.number, truth, truth, truth)]
        if place.kind == "mem" and ("v", place.width) in self.stores:
            return [self._memory(self.stores, Place("v", value), place)]
        return []

    def level(self, form: InstructionForm) -> int:
        """Scalable registers need all of it."""
        files = {op.file for op in form.operands if op.is_register}
        scalable = any(op.file == "v" and not op.width for op in form.operands)
        if "p" in files or scalable:
            return VECTOR_SCALABLE
        return VECTOR_FLOAT if "v" in files else VECTOR_NONE
