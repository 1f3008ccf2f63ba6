"""What people and compilers write otherwise than a table has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from cyclescope.isa.alias import Alias


def _as_it_is(line: str) -> str:
    return line


def _none(line: str) -> Iterable[str]:
    return ()


class Spelling(msgspec.Struct, frozen=True, kw_only=True):
    """How one instruction set is written.

    `lists` are what the table has around lists of registers, `names` the table's names of registers by other
    ones, `endings` what assemblers let out at the end, `aliases` rules by their mnemonics. `line` gives a
    line in lower case the table's spelling as far as its words say, `alternatives` are what else it may
    mean.
    """

    lists: tuple[str, str] = ("{", "}")
    names: Mapping[str, str] = {}
    endings: tuple[str, ...] = ()
    aliases: Mapping[str, Sequence[Alias]] = {}
    line: Callable[[str], str] = _as_it_is
    alternatives: Callable[[str], Iterable[str]] = _none
