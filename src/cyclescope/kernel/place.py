"""Places that a chain runs through, and the steps between them."""

from __future__ import annotations

import msgspec

from cyclescope.kernel.instruction import Instruction


class Place(msgspec.Struct, frozen=True):
    """Where a value is: `kind` is a register file (`r`, `h`, `v`, `k`, `m`, `x`), `mem` or `flag`.

    `number` is the register (for `h` the general register it is part of), `width` the bits of
    memory or of the vector, `flag` the flag's name, `offset` the memory's distance from the alias
    base register.
    """

    kind: str
    number: int = 0
    width: int = 0
    flag: str = ""
    offset: int = 0


class LinkStep(msgspec.Struct, frozen=True):
    """A piece of a chain: instructions and the keys of the links they are made of."""

    instructions: tuple[Instruction, ...]
    keys: tuple[str, ...]
