"""Where LLVM's models contradict what the makers of the cores have published.

FXCH exchanges names of registers: it takes a slot and no time (Intel, IA-32 Optimization Reference Manual,
"Improving Parallelism and the Use of FXCH"; AMD, Software Optimization Guide for AMD64, 25112, 10.4). LLVM
has 12 to 15 micro-operations and 14 or 17 cycles for Intel's cores from Haswell on, one of each for others.

LEA is an operation of Zen's ALUs (AMD, Software Optimization Guide for Family 19h, 56665), in the models of
Zen 1 and 2 as well. Those of Zen 3 and 4 have it on the address units of loads and stores where no index is
scaled.
"""

from __future__ import annotations

from collections.abc import Sequence

from .costs import ELIMINATED, Cost

_ADDRESSES, _ARITHMETIC = ("AGU0", "AGU1", "AGU2"), ("ALU0", "ALU1", "ALU2", "ALU3")


def corrected(form: str, cost: Cost, ports: Sequence[str], in_order: bool) -> Cost:
    """The cost of a form of x86-64, as published where LLVM's is known to be wrong."""
    if form.startswith("FXCH") and not in_order:
        return Cost(1, [], [0] * len(cost.latencies), cost.flags | ELIMINATED)
    if form.startswith("LEA_") and set(_ARITHMETIC) <= set(ports):
        return cost._replace(operations=[[_moved(used, ports), *rest] for used, *rest in cost.operations])
    return cost


def _moved(used: list[int], ports: Sequence[str]) -> list[int]:
    """The arithmetic units in place of the address units."""
    names = tuple(sorted(ports[port] for port in used))
    return [ports.index(name) for name in _ARITHMETIC] if names == _ADDRESSES else used
