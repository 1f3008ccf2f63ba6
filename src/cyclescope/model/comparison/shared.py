"""Differences of forms that share one cost in a scheduling model with others, for most of which it is right.

LLVM has one number for all instructions of a class. Where most of these take as long as it says, those that
do not are in a class that is too wide. Forms of equal cost stand for a class: its name is in no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from cyclescope.model.machine import FormCost


def cost_class(cost: FormCost) -> Hashable:
    """What forms of a class have in common: micro-operations, ports, and the cycles that occur."""
    return cost.slots, cost.operations, frozenset(cost.latencies.values())


def too_wide(
    forms: Mapping[str, FormCost], agreeing: Iterable[tuple[str, str]], differing: Iterable[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """Those of the differing forms, each with a quantity, in whose class more agree in it than differ."""
    apart = frozenset(differing)
    right = Counter((cost_class(forms[form]), what) for form, what in frozenset(agreeing) - apart)
    wrong = Counter((cost_class(forms[form]), what) for form, what in apart)
    wide = {one for one, number in wrong.items() if right[one] > number}
    return frozenset((form, what) for form, what in apart if (cost_class(forms[form]), what) in wide)
