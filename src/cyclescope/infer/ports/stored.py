"""Facts of port experiments from a store: timed, counted, or of a core that issues in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cyclescope.infer.ports.candidates import candidates
from cyclescope.infer.ports.counted import CountedFacts, ports_of
from cyclescope.infer.ports.facts import PortFacts
from cyclescope.infer.ports.in_order import ORDER, InOrderFacts, issues_in_order
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.front_end import FETCH, WIDTH
from cyclescope.measure.ports import ALONE, PAIRS, PORTS, SLOTS
from cyclescope.measure.record import FrontEndReadings, Record
from cyclescope.measure.store import Store


def read_facts(store: Store, table: Table, forms: Sequence[InstructionForm] | None = None) -> PortFacts:
    """What a store tells, of the given forms or of all."""
    throughputs, events = store.throughputs(), store.events()
    readings = FrontEndReadings(*map(store.readings, (SLOTS, WIDTH, FETCH)))
    in_order = issues_in_order(store.records_of((ORDER,)))

    def facts(records: Iterable[Record]) -> PortFacts:
        if in_order:
            return InOrderFacts(table, throughputs, records, readings)
        if any(map(ports_of, events)):
            return CountedFacts(table, throughputs, records, readings, events)
        return PortFacts(table, throughputs, records, readings)

    if forms is None:
        return facts(store.records_of((ALONE, PAIRS, PORTS)))
    names = [form.id for form in forms]
    known = list(dict.fromkeys([*names, *(form.id for form in candidates(table))]))
    common = [*store.records_of((PAIRS,)), *store.records_of((ALONE,), known)]
    wanted = list(dict.fromkeys([*facts(common).typical, *names]))
    return facts([*common, *store.records_of((PORTS,), wanted)])
