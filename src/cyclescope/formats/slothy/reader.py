"""Reading a target module of SLOTHY that `writer` made: its table alone, as JSON; nothing of it is run.

SLOTHY's own targets go by classes of instructions that only SLOTHY knows: they have no such table.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from cyclescope.formats.exchange import Draft, FormatError, Imported, ImportRequest, cycles, operation
from cyclescope.formats.slothy.spelling import spelling
from cyclescope.formats.slothy.writer import END, ISA, MARK, Known
from cyclescope.formats.text import contents
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.isa.text import example
from cyclescope.model.machine import Core

_UNIT = re.compile(r"P_\w{1,32}")
_RATE = re.compile(r"(?m)^issue_rate = (\d{1,3})$")


def read(path: Path, request: ImportRequest) -> Imported:
    """The machine of a module. Raises FormatError."""
    text = contents(path)
    _, mark, rest = text.partition(MARK)
    table, end, _ = rest.partition(END)
    if not mark or not end:
        raise FormatError(f"{path} has no table of costs", "only targets that cyclescope wrote are read")
    try:
        raw = msgspec.json.decode(table, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(f"{path}: its table of costs is no JSON: {error}") from None
    draft, forms = Draft(load_table(ISA), request), _forms()
    for key, value in raw.items():
        _add(draft, key, forms.get(key), value)
    rate = _RATE.search(text)
    return draft.imported(Core(float(rate[1])) if rate and int(rate[1]) else None)


@cache
def _forms() -> Mapping[str, InstructionForm]:
    """The first form of each spelling."""
    forms: dict[str, InstructionForm] = {}
    for form in load_table(ISA):
        forms.setdefault(spelling(example(form)), form)
    return forms


def _add(draft: Draft, key: str, form: InstructionForm | None, raw: msgspec.Raw) -> None:
    try:
        known = msgspec.json.decode(raw, type=Known)
        if form is None:
            raise ValueError("no form looks like it")
        if known.busy < 1 or known.latency < 0 or not known.units or not all(known.units):
            raise ValueError("no cost of an instruction")
        if not all(_UNIT.fullmatch(name) for choice in known.units for name in choice):
            raise ValueError("no name of a unit")
        latency, busy = cycles(known.latency), cycles(known.busy)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        draft.refuse(key, str(error))
        return
    sets = _sets(known)
    if sets is None:
        draft.refuse(key, "units that are no product of sets")
    else:
        draft.add(form, operations=tuple(operation(names, count, draft, busy) for names, count in sets))
    for pair in pairs(form):
        if pair.target.part in ("register", "flag") and not is_old(pair.source.name):
            draft.latency(form, f"{pair.source.name}->{pair.target.name}", 0.0, latency)


def _sets(known: Known) -> list[tuple[tuple[str, ...], int]] | None:
    """The set of units of an instruction that takes some of one set; None where there are several sets."""
    size = len(known.units[0])
    names = Counter(name.removeprefix("P_") for choice in known.units for name in set(choice))
    whole = len(known.units) == math.comb(len(names), size) and all(len(set(c)) == size for c in known.units)
    return [(tuple(sorted(names)), size)] if whole else None
