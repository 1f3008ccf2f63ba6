"""Front ends that do more than deliver slots: what they take together, and how fast they fetch.

The engine knows slots per cycle. What instructions share, what may not be divided between two cycles, and
how many bytes of code a cycle brings is laid over it: a loop takes as long as the slowest of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.isa.registry import mnemonics
from cyclescope.kernel.instruction import Instruction
from cyclescope.model.behaviour.nops import BeforeNop, is_nop, trails
from cyclescope.model.dispatch_cycles import dispatch_cycles, narrow_cycles
from cyclescope.model.machine import Narrow

_TRAILED = (BeforeNop.GENERAL, BeforeNop.MEMORY)


class FrontEnd(msgspec.Struct, frozen=True):
    """What the front end of a core does; nothing of it by default.

    With `pairs`, two NOPs next to each other share a slot; with `trails`, a NOP and what works on no
    vectors right before it; with `fuses`, a move between general registers and a simple instruction
    right behind it that works on its target. With `whole`, the slots of an instruction are in one cycle.
    `fetch` is in bytes of code per cycle, 0 for no limit. `branches` are mnemonics that share a slot with the
    conditional branch right behind them, each with that of the branch. `narrow` says of which instructions
    a cycle takes fewer.
    """

    pairs: bool = False
    trails: bool = False
    fuses: bool = False
    whole: bool = False
    fetch: float = 0.0
    branches: frozenset[tuple[str, str]] = frozenset()
    narrow: Narrow | None = None

    def shared(self, instructions: Sequence[Instruction]) -> list[bool]:
        """Which instructions of a body take no slot, as they share that of the one before."""
        found: list[bool] = []
        for number, one in enumerate(instructions):
            before = instructions[number - 1] if number and not found[-1] else None
            found.append(before is not None and self._share(before, one))
        return found

    def _share(self, first: Instruction, second: Instruction) -> bool:
        if self.pairs and is_nop(first.form) and is_nop(second.form):
            return True
        if self.trails and trails(first.form, second.form, _TRAILED):
            return True
        if (first.form.mnemonic, second.form.mnemonic) in self.branches:
            return True
        return self.fuses and _is_fused(first, second)

    def cycles(self, instructions: Sequence[Instruction], slots: Sequence[float], width: float) -> float:
        """The least that a loop takes for dividing no instruction, for narrow ones, and for fetching."""
        least = dispatch_cycles(slots, width, self.whole) if self.whole else 0.0
        forms = (one.form for one in instructions)
        least = max(least, narrow_cycles(zip(forms, slots, strict=True), self.narrow))
        if self.fetch:
            least = max(least, sum(len(one.code) for one in instructions) / self.fetch)
        return least

    @property
    def features(self) -> Iterator[str]:
        """What it does, in words."""
        named = {"pairs NOPs": self.pairs, "NOPs trail": self.trails, "fuses moves": self.fuses,
                 "divides nothing": self.whole}  # fmt: skip
        yield from (name for name, has in named.items() if has)
        if self.branches:
            yield f"fuses {len(self.branches)} pairs with branches"
        if self.narrow:
            whole = f", whole cycles beside {self.narrow.beside}" if self.narrow.beside else ""
            yield f"{self.narrow.slots:g} of {', '.join(self.narrow.files)} per cycle{whole}"
        if self.fetch:
            yield f"{self.fetch:g} bytes per cycle"


FEATURELESS = FrontEnd()


def _is_fused(first: Instruction, second: Instruction) -> bool:
    """Whether a move's target is what a simple instruction of the same width works on."""
    both = first.form, second.form
    if first.form.mnemonic not in mnemonics("copies") or second.form.mnemonic not in mnemonics("after_moves"):
        return False
    if any(form.addressed for form in both):
        return False
    if not first.form.operands[-1].is_register or len(first.registers) < 2 or not second.registers:
        return False
    same = first.form.operands[0].cls == second.form.operands[0].cls
    return same and _target(first) == _target(second) is not None


def _target(instruction: Instruction) -> int | None:
    numbers = zip(instruction.form.register_keys, instruction.registers, strict=True)
    return next((number for (operand, _), number in numbers if operand == 0), None)
