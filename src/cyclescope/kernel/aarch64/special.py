"""Forms of AArch64 that need sequences of their own."""

from __future__ import annotations

import re

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.aarch64.links import ZERO_REGISTER
from cyclescope.kernel.chain import Use
from cyclescope.kernel.fixed_width.branches import BRANCH_SPACING, COPIES, BranchBuilder, Items
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY
from cyclescope.kernel.stream import Stream

LINK_REGISTER = 30
_STATES = re.compile(r"Matrix|Tile|ZT|SVCR|MatrixIndex")
_SME = re.compile(r"S?SME|SSVE")


def signer(form: InstructionForm) -> str:
    """The id of the instruction that makes the signature that a form checks."""
    return form.id.replace("AUT", "PAC")


def is_check(form: InstructionForm) -> bool:
    """Whether the form checks the signature of an address."""
    return form.id.startswith("AUT") and "SPPC" not in form.id


def is_streaming(form: InstructionForm) -> bool:
    """Whether the form needs SME's streaming mode, or the matrix that comes with it."""
    if any(_STATES.match(op.cls) or op.fixed in ("ZA", "ZT0") for op in form.operands):
        return True
    choices = [feature.split("|") for feature in form.features]
    return any(all(_SME.match(name) for name in some) for some in choices)


class AArch64Branches(BranchBuilder):
    """Branches, calls and exclusive stores."""

    def streams(self) -> list[Stream] | None:
        """See `BranchBuilder`."""
        attributes = self.form.attributes
        if "call" in attributes or "return" in attributes:
            return self._call()
        if "conditional_branch" in attributes:
            return self._conditional()
        if "branch" in attributes:
            return self._indirect() if "indirect" in attributes else self.direct()
        if is_check(self.form):
            return self._signed()
        if "exclusive" in attributes and self.form.mnemonic.startswith("ST"):
            partner = re.sub(r"^STL?X", "LDX", self.form.id)
            return self.exclusive(partner, self.helpers.form(partner).mnemonic)
        return None

    def _signed(self) -> list[Stream]:
        """Checks after the instruction that makes the signature: some cores let no wrong one pass."""
        sign = self.helpers.form(signer(self.form))
        registers = {}
        for number, (operand, _) in enumerate(self.fields):
            registers[operand] = self.numbered(operand, number + 1)
        use = Use(self.values(registers))
        items: Items = [Instruction(sign, use.registers, 0, ()), use]
        return [
            Stream(f"with {sign.mnemonic if self.fields else sign.id}", COPIES, tuple(items * COPIES), COPIES)
        ]

    def _conditional(self) -> list[Stream]:
        name, zero = self.form.mnemonic, self.pools.zero
        compare = self.helpers.make("SUBSXrs", ZERO_REGISTER, self.pools.constant, self.pools.constant, 0)
        if name in ("B", "BC"):
            both = (self.branch(BRANCH_SPACING, ccode=0), self.branch(self.length, ccode=1))
            return self.conditional(*both, before=[compare])
        if name in ("CBZ", "CBNZ"):
            both = (self._of(zero, BRANCH_SPACING), self._of(self.pools.constant, self.length))
            if name == "CBNZ":
                both = (self._of(self.pools.constant, BRANCH_SPACING), self._of(zero, self.length))
            return self.conditional(*both)
        if name in ("TBZ", "TBNZ"):
            both = (self._of(zero, BRANCH_SPACING), self.branch(self.length))
            return self.conditional(*(both if name == "TBZ" else (None, None)))
        return self.conditional(None, None)

    def _of(self, number: int, distance: int) -> Use:
        return self.branch(distance, {self.fields[0][0]: self.numbered(self.fields[0][0], number)})

    def _address(self, distance: int) -> Instruction:
        return self.helpers.make("ADR", 1, distance)

    def _indirect(self) -> list[Stream]:
        items: Items = []
        for _ in range(COPIES):
            items += [self._address(2 * self.length), Use(self.values({self.fields[0][0]: 1}))]
        return [Stream("taken, to the next instruction", COPIES, tuple(items), COPIES, CANARY)]

    def _call(self) -> list[Stream]:
        """Calls of a function that only returns; the pair is what is measured."""
        make = self.helpers.make
        back = self.helpers.make("RET", LINK_REGISTER)
        is_return = "return" in self.form.attributes
        function: Use | Instruction = Use((LINK_REGISTER,)) if is_return and self.fields else back
        items: Items = [make("B", 2), function]
        for _ in range(COPIES):
            position = 4 * len(items)
            if is_return:
                items.append(make("BL", (4 - position) // 4 & (1 << 26) - 1))
            elif self.fields:
                items += [self._address((4 - position) & (1 << 21) - 1), Use((1,))]
            else:
                items.append(self.branch(4 - position))
        return [Stream("with its return", COPIES, tuple(items), COPIES, CANARY)]
