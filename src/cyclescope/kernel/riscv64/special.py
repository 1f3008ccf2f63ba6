"""Forms of RISC-V that need sequences of their own."""

from __future__ import annotations

from cyclescope.kernel.chain import Use
from cyclescope.kernel.fixed_width.branches import BRANCH_SPACING, COPIES, BranchBuilder, Items
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY
from cyclescope.kernel.stream import Stream

_TARGET = 10  # general register of addresses to jump to
_RETURN = 11  # and of return addresses that no one returns to


class RiscV64Branches(BranchBuilder):
    """Branches, jumps and exclusive stores."""

    unit = 2

    def streams(self) -> list[Stream] | None:
        """See `BranchBuilder`."""
        attributes, name = self.form.attributes, self.form.mnemonic
        if name in ("JALR", "C.JR", "C.JALR"):
            return self._indirect()
        if "conditional_branch" in attributes:
            return self._conditional()
        if "branch" in attributes or "call" in attributes:
            registers = {operand: _RETURN for operand, _ in self.fields}
            return [self.spaced(self.branch(BRANCH_SPACING, registers), "taken")]
        if "exclusive" in attributes and name.startswith("SC."):
            partner = self.form.id.replace("SC_", "LR_")
            return self.exclusive(partner, self.helpers.form(partner).mnemonic)
        return None

    def filler(self) -> Instruction:
        """A NOP as short as the form."""
        return self.helpers.make("C_NOP") if self.length == 2 else self.helpers.nop()

    def _conditional(self) -> list[Stream]:
        name = self.form.mnemonic.removeprefix("C.")
        big, small = self.pools.constant, self.pools.zero
        if self.length == 2:
            big, small = self.pools.base, 14
        pairs = {
            "BEQ": ((big, big), (big, small)), "BNE": ((big, small), (big, big)),
            "BLT": ((small, big), (big, small)), "BGE": ((big, small), (small, big)),
            "BLTU": ((small, big), (big, small)), "BGEU": ((big, small), (small, big)),
            "BEQZ": ((small,), (big,)), "BNEZ": ((big,), (small,)),
        }.get(name)  # fmt: skip
        if pairs is None:
            return self.conditional(None, None)
        return self.conditional(self._of(pairs[0], BRANCH_SPACING), self._of(pairs[1], self.length))

    def _of(self, numbers: tuple[int, ...], distance: int) -> Use:
        operands = [operand for operand, _ in self.fields]
        found = {operand: self.numbered(operand, n) for operand, n in zip(operands, numbers, strict=True)}
        return self.branch(distance, found)

    def _indirect(self) -> list[Stream]:
        """To the next instruction, whose address is made before each jump."""
        make = self.helpers.make
        registers = {operand: _TARGET for operand, _ in self.fields}
        if len(self.fields) > 1:
            registers[self.fields[0][0]] = _RETURN
        plus = 8 + self.length
        items: Items = []
        for _ in range(COPIES):
            items += [make("AUIPC", _TARGET, 0), make("ADDI", _TARGET, _TARGET, plus)]
            items.append(Use(self.values(registers), immediates=tuple(0 for _ in range(self._others()))))
        return [Stream("taken, to the next instruction", COPIES, tuple(items), COPIES, CANARY)]

    def _others(self) -> int:
        return sum(not field.is_register for field in self.form.bits.fields) if self.form.bits else 0
