"""Linear programs, with whole numbers where wanted, by HiGHS: the one place that knows its names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple


class Optimum(NamedTuple):
    """The least total cost, the value of every unknown in their order, and whether these are a solution.

    No solution that was not found costs less than `bound`, infinite where the search was through.
    """

    cost: float
    values: list[float]
    feasible: bool
    bound: float


class LinearProgram:
    """Unknowns with costs, and sums of them that lie between bounds; `solve` makes the total cost least."""

    def __init__(self) -> None:
        self._model = _silent()
        self._count = 0

    def unknown(
        self, least: float = 0.0, most: float = math.inf, cost: float = 0.0, whole: bool = False
    ) -> int:
        """A new unknown between two bounds, by its number."""
        number = self._count
        self._count += 1
        self._model.addVar(least, most)
        if cost:
            self._model.changeColCost(number, cost)
        if whole:
            import highspy

            self._model.changeColIntegrality(number, highspy.HighsVarType.kInteger)
        return number

    def bound(self, least: float, weights: Mapping[int, float], most: float) -> None:
        """Unknowns times their weights are together between two bounds."""
        self._model.addRow(least, most, len(weights), list(weights), list(weights.values()))

    def limit(self, number: int, least: float, most: float) -> None:
        """Other bounds for an unknown."""
        self._model.changeColBounds(number, least, most)

    def charge(self, costs: Mapping[int, float]) -> None:
        """Other costs for all unknowns, none where not given."""
        for number in range(self._count):
            self._model.changeColCost(number, costs.get(number, 0.0))

    def solve(self, nodes: int | None = None) -> Optimum:
        """The optimum, or the best of so many `nodes` of a search for whole numbers.

        Nodes are counted, not seconds: results do not depend on what else the computer does.
        """
        import highspy

        if nodes is not None:
            self._model.setOptionValue("mip_max_nodes", nodes)
        self._model.run()
        info = self._model.getInfo()
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        values = list(self._model.getSolution().col_value)
        return Optimum(info.objective_function_value, values, feasible, self._bound(info))

    def _bound(self, info: Any) -> float:
        """What no solution costs less than that was not found."""
        import highspy

        through = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
        return math.inf if self._model.getModelStatus() in through else float(info.mip_dual_bound)


def _silent() -> Any:
    """An empty `highspy.Highs` that prints nothing, not even while it is made."""
    import highspy

    class Silent(highspy.Highs):
        """Of version 1.16 on, `Highs()` prints its version and licence when it sets up its callbacks."""

        def enableCallbacks(self) -> None:  # noqa: N802 - the library's name
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    made = Silent()  # type: ignore[no-untyped-call]
    made.setOptionValue("output_flag", False)  # version 1.7 has no callbacks to set up
    return made
