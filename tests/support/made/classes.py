"""Classes of blocking instructions of which a test says everything itself, and what is found of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.classes import Classes, Grouping
from cyclescope.infer.ports.evidence import ERROR, ClassCounts, Costs, PortFacts
from cyclescope.infer.ports.timed import TimedEvidence
from cyclescope.isa.table import Table
from cyclescope.measure.ports import INSTANCES, PORTS
from cyclescope.measure.record import Record
from tests.support.made.front_ends import StatedFrontEnd


def classes_of(
    table: Table,
    widths: Mapping[str, int],
    files: Mapping[str, Collection[str]],
    members: Mapping[str, Sequence[str]] | None = None,
    pairs: Mapping[tuple[str, str], float] | None = None,
) -> Classes:
    """Classes by their representatives, each of itself alone where no members are said.

    `pairs` are times of two, in those of one of them alone.
    """
    blockers = defaultdict(list)
    for name, width in widths.items():
        blockers["".join(sorted(files[name])), width].append(name)
    grouping = Grouping(members or {name: [name] for name in widths}, [])
    ratios = {frozenset(pair): ratio for pair, ratio in (pairs or {}).items()}
    return Classes(table, blockers, grouping, ratios)


@dataclass(frozen=True)
class StatedEvidence:
    """Readings of forms and the ports of classes, in place of what would show them."""

    classes: Classes
    readings: Mapping[str, Mapping[str, Sequence[Look]]]
    structure: Structure
    units: Mapping[str, str] = field(default_factory=dict)
    sure: Mapping[str, float] = field(default_factory=dict)
    shuts: bool = False
    crowded: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    fillings: Sequence[ClassCounts] = ()

    @property
    def confined(self) -> dict[str, dict[str, float]]:
        """Micro-operations of a form that are confined to a class: the first reading's."""
        return {
            form: {n: some[0].value for n, some in found.items()} for form, found in self.readings.items()
        }

    def looks(self, form: str) -> Mapping[str, Sequence[Look]]:
        """Readings of a form."""
        return self.readings.get(form, {})


def facts_by_time(
    classes: Classes, records: Sequence[Record] = (), front_end: StatedFrontEnd | None = None
) -> PortFacts:
    """What records tell of classes; of a front end as it is stated, else of one of six slots."""
    known = front_end or StatedFrontEnd(classes.table)
    return PortFacts(known, TimedEvidence(classes, known, Costs(classes, records)), records)


def cost_records(classes: Classes, confined: Mapping[str, Mapping[str, float]]) -> list[Record]:
    """Records of forms that cost so many micro-operations among the blocking instructions of classes."""
    return [
        Record(
            form, PORTS, head, "", "x8", 8 + value / (scale := classes.widths[head] / INSTANCES),
            ERROR / scale, "ok", 2, (),
        )
        for form, some in confined.items() for head, value in some.items()
    ]  # fmt: skip
