"""Forms that need kernels of their own: branches, calls, the stack, repeated strings, x87.

Each function returns throughput sequences; what the form cannot be measured without (a return, a
pop, a stack adjustment) is part of the body and named in the variant.
"""

from __future__ import annotations

from collections.abc import Callable

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.chain import Use
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST
from cyclescope.kernel.stream import Stream
from cyclescope.kernel.x86_64.helpers.links import X86Helpers
from cyclescope.kernel.x86_64.registers import ALIAS, BASE, CONSTANT, STACK

_COPIES = 8
_SPACING = 16  # bytes from one taken branch to the next
REPEATS = (1, 8, 64)


class SpecialBuilder:
    """Sequences of forms that the general builder cannot make."""

    def __init__(self, form: InstructionForm, helpers: X86Helpers) -> None:
        self.form = form
        self.helpers = helpers
        self.length = form.encoding.length if form.encoding else 0

    def builder(self) -> Callable[[], list[Stream]] | None:
        """The function that makes this form's sequences, or None for ordinary forms."""
        attributes = self.form.attributes
        if self.form.mnemonic.startswith(("LOOP", "JRCXZ", "JECXZ")):
            return self._counted_branch
        if "conditional_branch" in attributes:
            return self._conditional
        if "call" in attributes or "return" in attributes:
            return self._call
        if "branch" in attributes:
            return self._jump
        if self.form.mnemonic in ("LEAVE", "ENTER"):
            return self._frame
        if "stack" in attributes:
            return self._stack
        if not attributes.isdisjoint(("rep", "repne")):
            return self._repeated
        if "x87" in attributes and self.form.x87_pops:
            return self._x87
        return None

    # --- branches --------------------------------------------------------------------------------

    def _filler(self, count: int) -> list[Instruction]:
        return [self.helpers.make("NOP")] * count

    def _branches(self, before: list[Instruction], taken: bool) -> Stream:
        """Copies of a direct branch, each taken one in 16 bytes of its own."""
        gap = max(_SPACING - self.length, 2) if taken else 0
        items: list[Use | Instruction] = []
        for _ in range(_COPIES):
            items += [*before, Use((), immediates=(gap,)), *self._filler(gap)]
        variant = "taken" if taken else "not taken"
        return Stream(variant, _COPIES, tuple(items), _COPIES, CANARY)

    def _compare(self, wanted: bool) -> list[Instruction]:
        """A comparison that makes the form's condition true or false, and a NOP against fusion."""
        condition = self.form.mnemonic[1:]
        for a, b in ((CONSTANT, CONSTANT), (CONSTANT, 11), (11, CONSTANT), (10, 8)):
            if holds(condition, *COMPARED[a, b]) == wanted:
                return [self.helpers.make("CMP_39 (R64, R64)", a, b), self.helpers.make("NOP")]
        raise ValueError(f"no comparison for {condition}")

    def _conditional(self) -> list[Stream]:
        result = []
        for taken in (False, True):
            once = self._branches([], taken)
            items = (*self._compare(taken), *once.items)
            result.append(Stream(once.variant, _COPIES, items, _COPIES, CANARY))
        return result

    def _counted_branch(self) -> list[Stream]:
        stays = 1 if self.form.mnemonic.startswith("LOOP") else 5
        leaves = 5 if self.form.mnemonic.startswith("LOOP") else 0
        result = []
        for count, taken in ((stays, False), (leaves, True)):
            before = [self.helpers.make("MOV (R32, I32)", 1, immediates=(count,))]
            if self.form.mnemonic in ("LOOPE", "LOOPNE"):
                equal = self.form.mnemonic == "LOOPE"
                before.append(self.helpers.make("CMP_39 (R64, R64)", CONSTANT, CONSTANT if equal else 11))
            result.append(self._branches(before, taken))
        return result

    def _jump(self) -> list[Stream]:
        if "indirect" not in self.form.attributes:
            return [self._branches([], True)]
        items: list[Use | Instruction] = []
        for _ in range(_COPIES):
            items += self._indirect(self.length)
        return [Stream("taken, to the next instruction", _COPIES, tuple(items), _COPIES, CANARY)]

    def _indirect(self, distance: int) -> list[Use | Instruction]:
        """An indirect branch or call to `distance` bytes behind the address computation."""
        if self.form.memory < 0:
            return [self._address(distance), Use((1,))]
        store = self.helpers.make("MOV (M64, R64)", ALIAS, 1)
        return [self._address(distance + len(store.code)), store, Use((BASE,))]

    def _address(self, distance: int) -> Instruction:
        return self.helpers.make("LEA_R_D32 (R64)", 1, displacement=distance)

    # --- calls -----------------------------------------------------------------------------------

    def _call(self) -> list[Stream]:
        """Calls of a function that only returns; the pair is what is measured."""
        if "return" in self.form.attributes:
            function: list[Use | Instruction] = [Use((), immediates=(0,))]
            caller = None
        else:
            function = [self.helpers.make("RET_NEAR")]
            caller = self.form
        size = self.length if caller is None else 1
        items: list[Use | Instruction] = [self.helpers.make("JMP (Rel8)", immediates=(size,)), *function]
        position = 2 + size
        for _ in range(_COPIES):
            call = self._one_call(caller, position)
            items += call
            position += sum(self._size(item) for item in call)
        return [Stream("with its return", _COPIES, tuple(items), _COPIES, CANARY)]

    def _size(self, item: Use | Instruction) -> int:
        return self.length if isinstance(item, Use) else len(item.code)

    def _one_call(self, caller: InstructionForm | None, position: int) -> list[Use | Instruction]:
        target = 2  # behind the jump over the function
        if caller is None:
            return [self.helpers.make("CALL_NEAR (Rel32)", immediates=(target - position - 5,))]
        if "indirect" not in caller.attributes:
            return [Use((), immediates=(target - position - self.length,))]
        lea = len(self._address(0).code)
        if caller.memory < 0:
            return [self._address(target - position - lea), Use((1,))]
        store = self.helpers.make("MOV (M64, R64)", ALIAS, 1)
        return [self._address(target - position - lea), store, Use((BASE,))]

    # --- stack -----------------------------------------------------------------------------------

    def _stack(self) -> list[Stream]:
        """Sixteen pushes or pops, then the stack pointer put back."""
        width = max((o.width for o in self.form.operands if o.is_memory and o.implicit), default=64)
        pops = self.form.mnemonic.startswith("POP")
        count = 16
        distance = count * width // 8 * (-1 if pops else 1)
        back = self.helpers.make("ADD (R64, I32)", STACK, immediates=(distance,))
        registers = [(1,), (2,), (3,), (5,), (6,), (7,), (8,), (9,)]
        slots = self.form.encoding.slots if self.form.encoding else ()
        uses = [self._stack_use(registers[i % 8] if slots else ()) for i in range(count)]
        return [Stream("with stack adjustment", count, (*uses, back), count)]

    def _stack_use(self, registers: tuple[int, ...]) -> Use:
        return Use((BASE,) if self.form.memory >= 0 else registers)

    def _frame(self) -> list[Stream]:
        """ENTER 0, 0 with LEAVE; LEAVE from a frame pointer that is set every time."""
        pointer = self.helpers.make("MOV_89 (R64, R64)", 5, ALIAS)
        if self.form.mnemonic == "LEAVE":
            return [Stream("with frame pointer", _COPIES, (pointer, Use(())) * _COPIES, _COPIES)]
        leave = self.helpers.make("LEAVE")
        items: tuple[Use | Instruction, ...] = (Use((), immediates=(0, 0)), leave) * _COPIES
        return [Stream("with LEAVE", _COPIES, items, _COPIES)]

    # --- strings ---------------------------------------------------------------------------------

    def _repeated(self) -> list[Stream]:
        """REP with several counts; pointers and count are set before each."""
        pointers = [n for n in (6, 7) if self._uses({6: "RSI", 7: "RDI"}[n])]
        result = []
        for count in REPEATS:
            before = [self.helpers.constant_from(n, ALIAS) for n in pointers]
            before.append(self.helpers.make("MOV (R32, I32)", 1, immediates=(count,)))
            items: tuple[Use | Instruction, ...] = (*before, Use(()))
            result.append(Stream(f"count {count}", 4, items * 4, 4, CANARY))
        return result

    def _uses(self, name: str) -> bool:
        return any(op.name == name for op in self.form.operands)

    # --- x87 -------------------------------------------------------------------------------------

    def _x87(self) -> list[Stream]:
        """A push is followed by a pop, a pop is preceded by as many pushes."""
        movement = self.form.x87_pops
        use = self._x87_use()
        if movement < 0:
            pop = self.helpers.make("FSTP (STi)", 0)
            popped: tuple[Use | Instruction, ...] = (use, *([pop] * -movement))
            return [Stream("with FSTP ST(0)", _COPIES, popped * _COPIES, _COPIES)]
        push = self.helpers.make("FLD (STi)", 0)
        pushed: tuple[Use | Instruction, ...] = (*([push] * movement), use)
        return [Stream("with FLD ST(0)", _COPIES, pushed * _COPIES, _COPIES, CANARY | FAST)]

    def _x87_use(self) -> Use:
        slots = self.form.encoding.slots if self.form.encoding else ()
        return Use(tuple(BASE if s.part == 1 else 1 for s in slots))


# Registers 12, 11, 10 and 8 hold 13, 12, the most negative number and 9 in branch kernels.
_MOST_NEGATIVE = 1 << 63


def _flags_of(a: int, b: int) -> tuple[bool, bool, bool, bool, bool]:
    """CF, ZF, SF, OF, PF of a comparison of 64-bit values."""
    result = (a - b) & (1 << 64) - 1
    sign = bool(result >> 63)
    overflow = bool((a ^ b) >> 63) and bool((a ^ result) >> 63)
    return a < b, result == 0, sign, overflow, (result & 0xFF).bit_count() % 2 == 0


COMPARED = {
    (CONSTANT, CONSTANT): _flags_of(13, 13),
    (CONSTANT, 11): _flags_of(13, 12),
    (11, CONSTANT): _flags_of(12, 13),
    (10, 8): _flags_of(_MOST_NEGATIVE, 9),
}


def holds(condition: str, cf: bool, zf: bool, sf: bool, of: bool, pf: bool) -> bool:
    """Whether a condition code (iced's or Intel's spelling) is true."""
    base = {
        "B": cf, "AE": not cf, "NB": not cf, "E": zf, "Z": zf, "NE": not zf, "NZ": not zf,
        "BE": cf or zf, "A": not (cf or zf), "NBE": not (cf or zf), "S": sf, "NS": not sf,
        "P": pf, "NP": not pf, "L": sf != of, "GE": sf == of, "NL": sf == of,
        "LE": zf or sf != of, "G": not (zf or sf != of), "NLE": not (zf or sf != of),
        "O": of, "NO": not of,
    }  # fmt: skip
    return base[condition]
