"""Whether the renamer executes a form: this follows from its chains, not from its name."""

from __future__ import annotations

from cyclescope.infer.timing.builder import TimingBuilder
from cyclescope.infer.timing.links import stored_links
from cyclescope.isa.dataflow import is_old
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.store import Store
from cyclescope.remarks.timing import Cause


def takes_no_time(store: Store, form: InstructionForm) -> bool:
    """Whether every value of a form is there at once, as that of a move that is eliminated.

    Not where nothing was measured.
    """
    records = list(store.records_of((THROUGHPUT, LATENCY), [form.id]))
    timing = TimingBuilder(form, records, stored_links(store), lambda source, target: "").build("ok")
    known = [one for one in timing.latencies if not is_old(one.source)]
    return bool(known) and all(one.cause is Cause.ELIMINATED for one in known)
