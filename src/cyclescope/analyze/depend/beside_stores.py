"""What vectors take that are loaded and stored together, where that is more than either takes alone.

Of cores that do the widest vectors by halves some lose turns of the ports that loads and stores have in
common. The probe `banks` found how much at two and at three loads for each store; the reason is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.model.behaviour.published import BesideStores


def beside_stores(costs: Sequence[PlacedCost], core: Sequence[BesideStores], longer: float) -> float:
    """Cycles of one iteration's loads and stores of a size, the most of all sizes; 0 without one of both.

    So much `longer` its loads take for bytes in two lines.
    """
    found = 0.0
    for one in core:
        same = [access for placed in costs for access in placed.form.accesses if access.size == one.size]
        loads, stores = sum(access.read for access in same), sum(access.write for access in same)
        if loads and stores:
            found = max(found, loads * one.load + stores * one.store + longer)
    return found
