"""What a measured model has to have, and how often its port usages have to hold."""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.isa.registry import instruction_set
from cyclescope.model.calibration import NEAR, Promised
from cyclescope.model.machine import MEASURED, MachineModel
from cyclescope.remarks.model import Doubt
from cyclescope.remarks.remark import Remark

_BROKEN = {Promised.MIXES: Doubt.MIXES, Promised.PORTS: Doubt.PORTS}


def doubts(model: MachineModel) -> Iterator[Remark]:
    """One remark for each port that a measured model lacks, and for what its fresh mixes say against it."""
    if model.provenance.kind != MEASURED or not model.ports or model.core.in_order:
        return
    for what, forms in instruction_set(model.isa).roles.plain.items():
        for form in forms:
            cost = model.forms.get(form)
            if cost is not None and not cost.operations:
                said = Doubt.PLAIN_WITHOUT_PORT_AS if cost.note else Doubt.PLAIN_WITHOUT_PORT
                yield said.of(form, what, cost.note)
    if model.calibration is None:
        yield Doubt.UNTESTED.of()
        return
    for promise in model.calibration.broken:
        tried = promise.tried
        yield _BROKEN[promise.what].of(tried.number, promise.level, tried.share, NEAR, promise.said)
