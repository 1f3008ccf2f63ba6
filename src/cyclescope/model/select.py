"""Finding forms of a machine model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyclescope.errors import UsageError
from cyclescope.isa.find.pattern import Reader, select
from cyclescope.isa.table import load_table
from cyclescope.model.machine import FormCost, MachineModel


def select_forms(
    model: MachineModel, patterns: Sequence[str], read: Reader | None = None
) -> Mapping[str, FormCost]:
    """Forms that match any of the patterns, all for none; of those, the ones that the model knows.

    Raises UsageError for a pattern that matches nothing, or only forms that the model does not know.
    """
    if not patterns:
        return model.forms
    names = [form.id for form in select(load_table(model.isa), patterns, False, read)]
    chosen = {name: model.forms[name] for name in names if name in model.forms}
    if not chosen:
        raise UsageError(f"{model.name} has no cost of {' '.join(patterns)}", "its model leaves them out")
    return chosen
