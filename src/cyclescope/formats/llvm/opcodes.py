"""Which opcodes a program of LLVM knows: names come and go from version to version.

LLVM's programs have the names in one string of words with zeros between; where a name is the end of another,
they share their characters. The file is read as bytes, nothing of it is run.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from cyclescope.formats.exchange import FormatError, Item
from cyclescope.isa.table import load_table
from cyclescope.model.machine import MachineModel

MOST_BYTES = 1 << 30  # a library with all targets and debug information has a few hundred MB
_WORD = re.compile(rb"[A-Za-z0-9_]{2,64}(?=\0)")
_SHARE = 0.5  # of the opcodes: versions 14 and 22 share nine in ten, another file hardly any


def known_opcodes(path: Path, isa: str) -> frozenset[str]:
    """LLVM's opcodes of an instruction set that a program or library of LLVM has. Raises FormatError."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FormatError(f"{path} is larger than {MOST_BYTES >> 20} MiB", "is it llvm-exegesis?")
    words = {match[0].decode("ascii") for match in _WORD.finditer(data)}
    ends = {word[start:] for word in words for start in range(len(word))}
    wanted = set(_names(isa).values())
    found = frozenset(wanted & ends)
    if len(found) < _SHARE * len(wanted):
        raise FormatError(
            f"{path} has {len(found)} of {len(wanted)} opcodes of {isa}",
            "name llvm-exegesis, or the library libLLVM that it is linked with",
        )
    return found


def with_opcodes(model: MachineModel, known: frozenset[str]) -> tuple[MachineModel, tuple[Item, ...]]:
    """A model without the forms whose opcodes are not known, and which these are."""
    names = _names(model.isa)
    left = {one: names[one] for one in model.forms if one in names and names[one] not in known}
    kept = {one: cost for one, cost in model.forms.items() if one not in left}
    items = tuple(Item(one, "this LLVM has no such opcode", name) for one, name in left.items())
    return msgspec.structs.replace(model, forms=kept), items


def _names(isa: str) -> dict[str, str]:
    """LLVM's opcodes by forms that have one."""
    return {form.id: form.llvm for form in load_table(isa) if form.llvm}
