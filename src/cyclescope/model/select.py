"""Finding forms of a machine model."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from cyclescope.errors import UsageError
from cyclescope.isa.pattern import select
from cyclescope.isa.table import load_table
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.schema import WITH_TABLE


def select_forms(model: MachineModel, patterns: Sequence[str]) -> Mapping[str, FormCost]:
    """Forms that match any of the patterns, all for none; of those, the ones that the model knows.

    Raises UsageError for a pattern that matches nothing, or only forms that the model does not know.
    """
    if not patterns:
        return model.forms
    if model.isa in WITH_TABLE:
        names: Iterable[str] = [form.id for form in select(load_table(model.isa), patterns)]
    else:
        names = [name for pattern in patterns for name in _named(model, pattern)]
    chosen = {name: model.forms[name] for name in names if name in model.forms}
    if not chosen:
        raise UsageError(f"{model.name} has no cost of {' '.join(patterns)}", "its model leaves them out")
    return chosen


def _named(model: MachineModel, pattern: str) -> list[str]:
    wanted = pattern.strip().upper().replace("[", "[[]")
    found = [name for name in model.forms if fnmatchcase(name.upper(), wanted)]
    if found:
        return found
    upper = {name.upper(): name for name in model.forms}
    close = [upper[word] for word in difflib.get_close_matches(pattern.upper(), upper, n=3)]
    remedy = (
        f"did you mean {', '.join(close)}?"
        if close
        else "forms are LLVM's opcode names, or globs such as ADD*"
    )
    raise UsageError(f"no form of {model.name} matches {pattern!r}", remedy)
