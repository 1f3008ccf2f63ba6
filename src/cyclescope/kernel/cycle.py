"""Closed chains of links alone, and the keys of links that their latencies are found under."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from cyclescope.kernel.instruction import Instruction

NOP, PLAIN = "nop", "plain"  # no links: sequences of what runs as often as anything does
TRANSFER = "transfer.r>v"  # a move to a vector register alone, without restoring the value
SPACED = " spaced"  # ends the name of a chain through memory with other instructions on its way
LINK_SPACING = (
    8  # one-cycle instructions there; from five on, the loads of a Golden Cove need not be repeated
)
_ROLES = ("load", "transfer")
MASK_SYNC = "sync.mask"  # mask operand to result of the instruction that makes masks of vectors


class LinkKey(NamedTuple):
    """The key of a link, taken apart: `mem>r.32` leads from memory to a general register, with 32 bits.

    `role` is `load` of a load by its address and `transfer` of a move alone, "" of others. A key of one word
    (`load.r.64`, `restore.f.64`) has no target.
    """

    role: str
    source: str
    target: str
    detail: str

    @classmethod
    def read(cls, key: str) -> LinkKey:
        """The parts of a key."""
        first, _, rest = key.partition(".")
        role, key = (first, rest) if first in _ROLES else ("", key)
        way, _, detail = key.partition(".")
        source, _, target = way.partition(">")
        return cls(role, source, target, detail)

    @property
    def text(self) -> str:
        """The key."""
        way = ">".join(filter(None, (self.source, self.target)))
        return ".".join(filter(None, (self.role, way, self.detail)))

    @property
    def files(self) -> frozenset[str]:
        """Register files, or memory, that it leads from and to."""
        return frozenset(filter(None, (self.source, self.target)))


class Cycle(msgspec.Struct, frozen=True):
    """A closed chain: `keys` are the links in one period.

    The control is the chain with `cut` inserted before instruction number `at`.
    """

    name: str
    items: tuple[Instruction, ...]
    keys: tuple[str, ...]
    cut: tuple[Instruction, ...]
    at: int = 0

    @property
    def control(self) -> tuple[Instruction, ...]:
        """The same instructions with the dependency cut."""
        return self.items[: self.at] + self.cut + self.items[self.at :]


def spaced(cycle: Cycle, fill: tuple[Instruction, str]) -> Cycle:
    """A chain through memory with instructions between the load and the next store.

    A load right behind the store that it waits for takes longer on some cores, and no whole number of cycles.
    """
    instruction, key = fill
    return msgspec.structs.replace(
        cycle,
        name=cycle.name + SPACED,
        items=(*cycle.items, *[instruction] * LINK_SPACING),
        keys=(*cycle.keys, *[key] * LINK_SPACING),
    )
