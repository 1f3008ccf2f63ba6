"""What a measured model should not lack, and how often its claims have to hold."""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.isa.registry import instruction_set
from cyclescope.model.calibration import GOOD, NEAR
from cyclescope.model.machine import MEASURED, MachineModel


def doubts(model: MachineModel) -> Iterator[str]:
    """One line for each port that a measured model lacks, and for what its fresh mixes say against it."""
    if model.provenance.kind != MEASURED or not model.ports or model.core.in_order:
        return
    for what, forms in instruction_set(model.isa).roles.plain.items():
        for form in forms:
            cost = model.forms.get(form)
            if cost is not None and not cost.operations:
                yield f"forms: {form}: a plain {what} has no port{f': {cost.note}' if cost.note else ''}"
    if model.calibration is None:
        yield "calibration: no fresh mixes say whether its ports hold"
        return
    for level, held in model.calibration.bad.items():
        yield (
            f"calibration: {held.share:.0%} of {held.number} fresh mixes of {level} confidence are within "
            f"{NEAR:.0%} of what ports say, less than {GOOD[level]:.0%}"
        )
