"""Widths of front ends that are published or were measured, by LLVM's names of cores.

LLVM's issue width is what makes good schedules, not what a core dispatches. The guides count instructions
before they are taken apart ("MOPs"), so these are instructions per cycle.
"""

from __future__ import annotations

from cyclescope.model.machine import MEASURED, PUBLISHED, Width


def _guide(core: str) -> str:
    return f"Arm {core} Core Software Optimization Guide, dispatch constraints"


def _nops(core: str) -> str:
    return f"rate of NOP on a {core}"


WIDTHS = {
    "cortex-a76": Width(4, PUBLISHED, _guide("Cortex-A76")),
    "neoverse-n1": Width(4, PUBLISHED, _guide("Neoverse N1")),
    "neoverse-n2": Width(5, PUBLISHED, _guide("Neoverse N2")),
    "neoverse-v1": Width(8, PUBLISHED, _guide("Neoverse V1")),
    "neoverse-v2": Width(8, PUBLISHED, _guide("Neoverse V2")),
    "znver3": Width(6, MEASURED, _nops("Zen 3")),
    "znver5": Width(8, MEASURED, _nops("Zen 5")),
}
