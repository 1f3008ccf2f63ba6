"""Why a value is what it is, or is missing: causes that code asks for, and the sentences that users see."""

from __future__ import annotations

from enum import Enum, StrEnum, auto

import msgspec


class Cause(Enum):
    """What is behind a value, or behind its absence."""

    NONE = auto()  # nothing that other code asks for
    WITHHELD = auto()  # no value: it broke a law
    LOST_LINK = auto()  # no value: a link of the chain has none
    ELIMINATED = auto()  # by the renamer
    INDEPENDENT = auto()  # the chain is cut there
    HIDDEN = auto()  # by the throughput, if it is shorter
    RESTORED = auto()  # a sequence that restores operands
    CUT = auto()  # a sequence that cuts the form's own chain


class Idiom(StrEnum):
    """What one register for both sources makes of a form, in the words that users see."""

    ZERO = "zero idiom, needs no execution unit"
    BREAKING = "dependency-breaking idiom"


class Remark(msgspec.Struct, frozen=True):
    """A sentence, and what it means."""

    text: str = ""
    cause: Cause = Cause.NONE


NOTHING = Remark()
ELIMINATED = Remark("eliminated at rename", Cause.ELIMINATED)
HIDDEN = Remark("the throughput hides a shorter latency", Cause.HIDDEN)
RESTORED = Remark("operands restored before every instance", Cause.RESTORED)


def withheld(why: str) -> Remark:
    """No value, because the one that was found cannot be."""
    return Remark(f"withheld: {why}", Cause.WITHHELD)


def lost_link(keys: str) -> Remark:
    """No value, because links of the chain have none."""
    return Remark(f"the latency of the link {keys} is not known", Cause.LOST_LINK)


def independent(where: str = "") -> Remark:
    """No dependency; `where` limits that."""
    return Remark(f"no dependency: the chain is cut here{where}", Cause.INDEPENDENT)


def cut(chain: float) -> Remark:
    """What a sequence without the form's own dependency takes; with it, `chain` cycles."""
    return Remark(f"its own dependency chain allows {chain}", Cause.CUT)
