"""Variants of kernels, as stores spell them: what a kernel does about the dependencies of its form."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

import msgspec

AGAIN = " again"  # ends the variant of a sequence that was measured a second time
_LENGTH = re.compile(r" x(\d+)$")


class Kind(StrEnum):
    """What a kernel does, by the word that its variant begins with."""

    PLAIN = "plain"  # sequences: instances with registers of their own
    UNROLLED = "unrolled"
    BROKEN = "broken"  # with instructions that cut dependencies
    OVERWRITTEN = "overwritten"  # with what writes first the destinations that instances read
    PARTLY = "partly overwritten"  # those of some instances
    EMPTIED = "emptied"  # with one destination, and no value in the other registers of its kind
    SAME = "same register"  # for both sources, or source and target
    INDEXED = "indexed"
    BASES = "bases"  # several, each with memory of its own
    TAKEN = "taken"  # branches
    NOT_TAKEN = "not taken"
    NEXT = "to the next instruction"
    WITH = "with"  # instructions that cannot be left out
    COUNT = "count"  # of repeated string instructions
    FAST = "fast"  # values of divisions, in sequences and in chains
    SLOW = "slow"
    SELF = "self"  # chains: of the form alone
    SWAP = "swap"  # there by one instance, back by the next
    LINK = "link"  # back by helper instructions
    INTEGER_LINK = "integer link"
    FP_LINK = "fp link"
    FILLED = "filled"  # with more links, so that the throughput hides nothing
    LONGER = "filled longer"  # with some more of them: a chain takes so many cycles more
    FILLED_APART = "filled apart"  # the same with several destinations
    KEPT = "kept"  # one destination for all instances
    UNBROKEN = "unbroken"  # without what cuts other dependencies
    THROTTLED = "throttled"  # with NOPs, so that the scheduler has room
    OTHER = ""  # of another version, or no kernel of a form


SPEEDS = (Kind.FAST, Kind.SLOW)
INDEPENDENT = (Kind.OVERWRITTEN, Kind.PARTLY)  # sequences of forms that read their destination
ASIDE = (Kind.SAME, Kind.INDEXED, Kind.SLOW)  # sequences that answer other questions than the throughput
LINKED = (Kind.LINK, Kind.INTEGER_LINK, Kind.FP_LINK)
SECOND_LOOKS = (  # chains and sequences that a first result asks for
    Kind.FILLED, Kind.LONGER, Kind.FILLED_APART, Kind.UNBROKEN, Kind.THROTTLED, Kind.OVERWRITTEN,
    Kind.PARTLY, Kind.EMPTIED,
)  # fmt: skip
UNLINKED = (Kind.SELF, Kind.SAME, Kind.SWAP)  # chains of the form, without links
_WORDS = "|".join(sorted((kind for kind in Kind if kind), key=len, reverse=True))
_NAMED = re.compile(rf"({_WORDS})(?!\w)")


class Variant(msgspec.Struct, frozen=True):
    """A variant: `name` is the kind with its details, `length` the number of instances (0: not said)."""

    kind: Kind
    name: str
    length: int = 0
    again: bool = False

    @property
    def first(self) -> str:
        """How a store spells the first look of this one."""
        return f"{self.name} x{self.length}" if self.length else self.name


@lru_cache(maxsize=4096)  # more than any store of ours has
def variant_of(text: str) -> Variant:
    """A variant from its spelling."""
    first = text.removesuffix(AGAIN)
    length = _LENGTH.search(first)
    name = first[: length.start()] if length else first
    found = _NAMED.match(name)
    kind = Kind(found[0]) if found else Kind.OTHER
    return Variant(kind, name, int(length[1]) if length else 0, first != text)
