"""Facts of port experiments from a store, timed or counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cyclescope.infer.port_candidates import is_candidate
from cyclescope.infer.port_counters import CountedFacts, ports_of
from cyclescope.infer.port_facts import PortFacts
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.ports import ALONE, PAIRS, PORTS, SLOTS
from cyclescope.measure.record import Record
from cyclescope.measure.store import Store


def read_facts(store: Store, table: Table, forms: Sequence[InstructionForm] | None = None) -> PortFacts:
    """What a store tells, of the given forms or of all."""
    throughputs, events, readings = store.throughputs(), store.events(), store.readings(SLOTS)

    def facts(records: Iterable[Record]) -> PortFacts:
        if any(map(ports_of, events)):
            return CountedFacts(table, throughputs, records, readings, events)
        return PortFacts(table, throughputs, records, readings)

    if forms is None:
        return facts(store.records_of((ALONE, PAIRS, PORTS)))
    names = [form.id for form in forms]
    known = list(dict.fromkeys([*names, *(form.id for form in table if is_candidate(form))]))
    common = [*store.records_of((PAIRS,)), *store.records_of((ALONE,), known)]
    wanted = list(dict.fromkeys([*facts(common).classes, *names]))
    return facts([*common, *store.records_of((PORTS,), wanted)])
