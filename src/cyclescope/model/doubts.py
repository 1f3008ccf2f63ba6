"""What a measured model should not lack, and how often its claims have to hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cyclescope.model.calibration import GOOD, NEAR
from cyclescope.model.machine import MEASURED, MachineModel

# What every program uses: each form that is measured has to have a port, on every core that has ports.
PLAIN: Mapping[str, Mapping[str, Sequence[str]]] = {
    "x86-64": {
        "addition": ("ADD_01 (R64, R64)", "ADD_03 (R64, R64)"), "load": ("MOV (R64, M64)",),
        "store": ("MOV (M64, R64)",), "multiplication": ("IMUL (R64, R64)",), "shift": ("SHL (R64, I8)",),
        "vector addition": ("PADDD (XMM, XMM)", "ADDPS (XMM, XMM)"),
    },
    "aarch64": {
        "addition": ("ADDXri",), "load": ("LDRXui",), "store": ("STRXui",),
        "multiplication": ("MADDXrrr",), "shift": ("LSLVXr",), "vector addition": ("ADDv4i32",),
    },
    "riscv64": {
        "addition": ("ADD", "ADDI"), "load": ("LD",), "store": ("SD",), "multiplication": ("MUL",),
        "shift": ("SLL",),
    },
}  # fmt: skip


def doubts(model: MachineModel) -> Iterator[str]:
    """One line for each port that a measured model lacks, and for what its fresh mixes say against it."""
    if model.provenance.kind != MEASURED or not model.ports or model.core.in_order:
        return
    for what, forms in PLAIN.get(model.isa, {}).items():
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
