"""Plans of latency kernels: the form with registers, and the chain it is part of."""

from __future__ import annotations

from math import ceil

import msgspec

from cyclescope.isa.dataflow import Pair
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, WITHOUT_LOOP


class Use(msgspec.Struct, frozen=True):
    """The form under test with values; becomes an Instruction of each form of a signature."""

    registers: tuple[int, ...]
    displacement: int = 0
    index: int | None = None
    immediates: tuple[int, ...] | None = None


class Chain(msgspec.Struct, frozen=True):
    """Plan of one latency kernel."""

    source: str
    target: str
    variant: str
    items: tuple[Use | Instruction, ...]
    links: tuple[str, ...]
    count: int
    flags: int = 0
    note: str = ""


class Unmeasurable(Exception):
    """Why a pair has no chain (data, not an error: it is recorded with the pair)."""


def chain_of(
    pair: Pair, variant: str, items: list[Use | Instruction], links: tuple[str, ...], count: int
) -> Chain:
    """A pair's chain; without a loop where the loop counter would destroy the flag."""
    flags = WITHOUT_LOOP if pair.source.part == "flag" and not links else 0
    return Chain(pair.source.name, pair.target.name, variant, tuple(items), links, count, flags)


def throttled(chain: Chain, nop: Instruction, nops: float, name: str) -> Chain:
    """A chain with about so many NOPs, spread evenly. Raises Unmeasurable where there is room for none."""
    uses = sum(isinstance(item, Use) for item in chain.items)
    each = ceil(nops / uses)  # rather one more: one less, and the scheduler fills up
    if each < 1:
        raise Unmeasurable("the chain is as long as the front end needs for it")
    items = [one for item in chain.items for one in (item, *([nop] * each if isinstance(item, Use) else ()))]
    return msgspec.structs.replace(
        chain, variant=f"{name} {chain.variant}", items=tuple(items), flags=chain.flags | CANARY
    )
