"""The ways in which predictions are shown: one record each, from which the options of `analyze` are made.

A view is added here, and in a file of its own. The first is what is printed where none is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cyclescope.analyze.predict.prediction import NotPredicted, Prediction

    Rows = Sequence[Prediction | NotPredicted]  # one per machine


class View(msgspec.Struct, frozen=True):
    """One view. `one`, `regions` and `comparison` are `module:function` of this folder, or "".

    They are of one prediction, of several marked regions, and of several machines. `is_file` says that it is
    written to a file, which the option names, and not printed; `words` are how errors name what is printed.
    `watches` tells of one that shows what the simulated core does, which is computed for it alone.
    """

    name: str
    help: str
    one: str
    regions: str = ""
    comparison: str = ""
    is_file: bool = False
    words: str = ""
    watches: bool = False

    @property
    def parameter(self) -> str:
        """The name of its parameter."""
        return f"as_{self.name.replace('-', '_')}"

    def shown(self, found: Prediction) -> str:
        """One prediction."""
        return _function(self.one)(found)

    def all_shown(self, found: Sequence[Prediction]) -> str:
        """Several regions, one behind the other where the view has no other way."""
        if not self.regions:
            return "\n\n".join(map(self.shown, found))
        return _function(self.regions)(found)

    def compared(self, rows: Rows) -> str:
        """One block on several machines."""
        return _function(self.comparison)(rows)


def _function(path: str) -> Callable[[object], str]:
    module, _, name = path.partition(":")
    found: Callable[[object], str] = getattr(import_module(f"cyclescope.report.predictions.{module}"), name)
    return found


TEXT = View("text", "", "text:analysis_text", "text:regions_text", "text:comparison_text", words="text")
VIEWS = (
    View("dot", "Write the dependency graph for Graphviz here.", "graph:dot", is_file=True),
    View("svg", "Write the dependency graph as a drawing here.", "graph:svg", is_file=True),
    View("html", "Write a page with all of it here.", "html:page", comparison="html:comparison_page",
         is_file=True),
    View("markdown", "Print Markdown.", "markdown:markdown", "markdown:regions_markdown",
         words="Markdown"),
    View("csv", "Print the rows of instructions as comma-separated values.", "csv_table:csv_table",
         "csv_table:regions_csv", words="CSV"),
    View("simulate", "Print also what the simulated core does: where the time goes, what would save some.",
         "simulation:simulation_text", words="the simulation", watches=True),
    View("timeline", "Print what instructions do in each cycle of the first iterations.",
         "simulation:timeline_text", words="a timeline", watches=True),
    View("trace", "Write a page of the same here, with the reason of every wait.", "trace:trace_page",
         is_file=True, watches=True),
    View("json", "Print JSON.", "text:analysis_json", "text:regions_json", "text:comparison_json",
         words="JSON"),
)  # fmt: skip
