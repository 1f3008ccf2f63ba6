"""Results of forms from a store: timings with port usage, each part of the store read once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from operator import attrgetter

import msgspec

from cyclescope.host.features import lacking
from cyclescope.infer.copies import by_copies
from cyclescope.infer.ports.approach import Approach, OtherEvidence, read_approach
from cyclescope.infer.ports.builder import PortBuilder, PortUsage
from cyclescope.infer.refute.calibration import NOTE, Verdicts, stored_verdicts
from cyclescope.infer.timing.builder import TimingBuilder
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.links import stored_links
from cyclescope.infer.timing.results import NOT_RUN, FormTiming, without_cycles
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.overwriting import share_of_one
from cyclescope.measure.database import is_still
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Planner
from cyclescope.measure.ports import PORTS
from cyclescope.measure.record import Record
from cyclescope.measure.rows import Unreadable
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel
from cyclescope.remarks.ports import NoPorts
from cyclescope.remarks.timing import Timing

_UNKNOWN = PortUsage(None, None)
_NO_EVIDENCE = OtherEvidence({}, frozenset())
PART = 500  # forms that are read at once
Found = tuple[FormTiming, PortUsage]
_Elsewhere = tuple[bytes, Sequence[Unreadable]]  # timings, packed, and rows that were left out
TIMED = (THROUGHPUT, LATENCY)
_NUMBER = attrgetter("id")


class Circumstances(msgspec.Struct, frozen=True):
    """What timings rest on beside a form's records; `features` are those that the CPU announced, if any."""

    links: Mapping[str, LinkLatency]
    stopped: bool
    features: Sequence[str] | None
    emulated: bool

    @classmethod
    def of(cls, store: Store) -> Circumstances:
        """Those of a store."""
        told = next((s["features"] for s in reversed(store.sessions()) if s.get("features")), None)
        features = told if isinstance(told, list) else None
        return cls(stored_links(store), store.stopped(), features, store.emulated)


def ground_of(store: Store, table: Table, evidence: OtherEvidence | None = None) -> str:
    """A digest of what the results of forms rest on, beside their own readings and port experiments.

    `evidence` is what ports rest on, where that was read before.
    """
    found = evidence or OtherEvidence.of(store, table) if store.has(PORTS) else _NO_EVIDENCE
    throughputs, free = found
    ports = throughputs, sorted(free), store.events(), store.note(NOTE)
    every = Circumstances.of(store), store.legality(), ports
    return hashlib.blake2b(msgspec.json.encode(every, order="deterministic"), digest_size=16).hexdigest()


class Readout:
    """Results of some forms of a store, or of all of its table.

    `known` is a machine that gives ports their names where they match, and nothing else. `approach` is what
    tells the ports of the store, where it was read before, `made` timings by form that were made before.
    """

    def __init__(
        self,
        store: Store,
        table: Table,
        known: MachineModel | None = None,
        forms: Sequence[InstructionForm] | None = None,
        planner: Planner | None = None,
        approach: Approach | None = None,
        made: Mapping[str, FormTiming] | None = None,
    ) -> None:
        self._told = approach
        self._made = made or {}
        self.store = store
        self.table = table
        self.known = known
        self.forms = list(table) if forms is None else list(forms)
        self.legality = store.legality()
        self.planner = planner or Planner(table, lambda form: self.legality.get(form.id) == "ok")
        self._everything = forms is None

    @cached_property
    def approach(self) -> Approach | None:
        """What port experiments tell; None where no port was measured."""
        if self._told is not None or not self.store.has(PORTS):
            return self._told
        some = None if self._everything else self.forms
        return read_approach(self.store, self.table, self.known, some, self.evidence)

    @cached_property
    def evidence(self) -> OtherEvidence:
        """What ports rest on beside their own experiments."""
        return OtherEvidence.of(self.store, self.table)

    @property
    def ports(self) -> PortBuilder | None:
        """What tells ports; None where a core shows none, none were measured, or not all that tells them."""
        return self.approach.ports if self.approach is not None and self.is_complete else None

    @cached_property
    def is_complete(self) -> bool:
        """Whether all that port usage rests on was measured.

        A run may have been stopped before: classes that were not compared make no structure.
        """
        approach = self.approach
        return approach is not None and (approach is self._told or approach.is_complete(self.planner))

    @cached_property
    def verdicts(self) -> Verdicts | None:
        """What fresh mixes said of the ports; None where none were measured."""
        return stored_verdicts(self.store)

    def each(
        self, report: Callable[[int, int], None] = lambda done, total: None, copies: int = 0
    ) -> Iterator[Found]:
        """Timing and port usage of the forms, in their order; `report` is told how many are done.

        So many `copies` of this process make the timings while this one reads what tells ports, if all of the
        store is in its file; where it knows the ports, it makes some itself.
        """
        parts = [self.forms[start : start + PART] for start in range(0, len(self.forms), PART)]
        circumstances = Circumstances.of(self.store)

        def elsewhere(number: int) -> _Elsewhere:
            with closing(Store(self.store.path, readonly=True, still=True)) as store:
                made = list(self._timings(store, parts[number], circumstances))
                return msgspec.msgpack.encode(made), store.unreadable  # pickled they take six times as long

        left = [number for number, some in enumerate(parts) if not self._are_made(some, circumstances)]
        useful = len(left) > copies and is_still(self.store.path)
        own = copies + 1 if self._told else len(left) + 1  # every so manieth part is made here
        others = [number for place, number in enumerate(left, 1) if place % own]
        with by_copies(elsewhere, others, copies if useful else 0) as made:
            for number, some in enumerate(parts):
                report(number * PART, len(self.forms))
                if number == 0:
                    _ = self.ports
                timings = self._taken(made(number)) or self._timings(self.store, some, circumstances)
                by_id = {form.id: form for form in some}
                yield from (self._with_usage(timing, by_id[timing.id]) for timing in timings)
        report(len(self.forms), len(self.forms))

    def _taken(self, made: _Elsewhere | None) -> Sequence[FormTiming]:
        """What another process made, with the damage that it met."""
        if made is None:
            return ()
        packed, unreadable = made
        self.store.note_damage(unreadable)
        return msgspec.msgpack.decode(packed, type=list[FormTiming])

    def _timings(
        self, store: Store, forms: Sequence[InstructionForm], circumstances: Circumstances
    ) -> Iterator[FormTiming]:
        """Timings of some forms from their records, unless they were made before: of each one."""
        made = self._made_under(circumstances)
        others = self._timings_now(store, [f for f in forms if f.id not in made], circumstances)
        for form in dict.fromkeys(forms):
            yield made[form.id] if form.id in made else next(others)

    def _timings_now(
        self, store: Store, forms: Sequence[InstructionForm], circumstances: Circumstances
    ) -> Iterator[FormTiming]:
        stopped = circumstances.stopped
        for form, records in grouped(store, forms):
            outcome = self.legality.get(form.id, NOT_RUN)
            damaged = store.is_damaged(form.id, TIMED)
            timing = timing_of(form, records, circumstances.links, self.planner, outcome, stopped or damaged)
            if circumstances.emulated:
                timing = without_cycles(timing)
            if timing.status not in ("ok", NOT_RUN):
                reason = self.planner.dialect.unmeasurable(form)
                timing = explained(form, timing, circumstances.features, reason)
            yield timing

    def _made_under(self, circumstances: Circumstances) -> Mapping[str, FormTiming]:
        """What was made before, as if all had been measured: after a run that was stopped nothing."""
        return {} if circumstances.stopped or circumstances.emulated else self._made

    def _are_made(self, forms: Sequence[InstructionForm], circumstances: Circumstances) -> bool:
        """Whether only forms are left that the CPU does not execute, whose timings say no more than that."""
        made = self._made_under(circumstances)
        return all(form.id in made or self.legality.get(form.id) != "ok" for form in forms)

    def without_ports(self) -> Iterator[FormTiming]:
        """The timings without what port experiments tell, in the order of the forms."""
        return self._timings(self.store, self.forms, Circumstances.of(self.store))

    def timings(self) -> Iterator[FormTiming]:
        """The timings, in the order of the forms."""
        return (timing for timing, _ in self.each())

    def _with_usage(self, timing: FormTiming, form: InstructionForm) -> Found:
        approach = self.approach
        if timing.status != "ok" or approach is None:
            return timing, _UNKNOWN
        if not self.is_complete:
            return _stopped(timing), _UNKNOWN
        usage = approach.usage(form, self.planner)
        usage = self.verdicts.lowered(form.id, usage) if self.verdicts else usage
        return msgspec.structs.replace(
            timing, slots=usage.slots, slot_range=usage.slot_range, ports=usage.ports,
            ports_confidence=usage.confidence, ports_throughput=usage.throughput,
            ports_alternatives=usage.alternatives, ports_note=usage.note,
            resources=dict(usage.resources), ports_reason=usage.group,
        ), usage  # fmt: skip


def _stopped(timing: FormTiming) -> FormTiming:
    """A timing without ports, as not all was measured that they rest on."""
    note = NoPorts.STOPPED.of().text
    return msgspec.structs.replace(timing, ports_note=note, ports_unfinished=True)


def explained(
    form: InstructionForm, timing: FormTiming, announced: Sequence[str] | None, reason: str
) -> FormTiming:
    """With what is known of it in the status of a form that cannot be run alone.

    Those are the extensions that the CPU lacks, if it does not execute the form, or else `reason`: why user
    space cannot measure it, for which a CPU that lacks nothing may refuse, or code end elsewhere.
    """
    refused = timing.status == "SIGILL"
    if refused and announced is None:
        return timing
    missing = lacking(form.features, announced or ()) if refused else ()
    why = Timing.LACKS.of(", ".join(missing)).text if missing else reason
    if not why:
        return timing
    return msgspec.structs.replace(timing, status=f"{timing.status}: {why}", lacks=tuple(missing))


def grouped(store: Store, forms: Sequence[InstructionForm]) -> Iterator[tuple[InstructionForm, list[Record]]]:
    """Each form with its records of throughput and latency."""
    by_id = {form.id: form for form in forms}
    for start in range(0, len(forms), PART):
        some = forms[start : start + PART]
        found: dict[str, list[Record]] = {form.id: [] for form in some}
        for record in store.records_of(TIMED, [f.id for f in some], "form"):
            found[record.form].append(record)
        for form_id, records in found.items():
            records.sort(key=_NUMBER)
            yield by_id[form_id], records


def timing_of(
    form: InstructionForm,
    records: Sequence[Record],
    links: Mapping[str, LinkLatency],
    planner: Planner,
    outcome: str,
    stopped: bool = False,
) -> FormTiming:
    """Timing of a form from its records; a form that the CPU does not execute has no plan.

    After a run that was stopped, what was not measured to its end has no value.
    """
    if outcome != "ok":
        return TimingBuilder(form, (), links, lambda source, target: "").build(outcome)
    unmeasured = planner.unmeasured(form, _measured(records)) if stopped else {}
    return builder_of(form, records, links, planner, unmeasured).build(outcome)


def builder_of(
    form: InstructionForm,
    records: Sequence[Record],
    links: Mapping[str, LinkLatency],
    planner: Planner,
    unmeasured: Mapping[tuple[str, str], tuple[int, int]] | None = None,
) -> TimingBuilder:
    """What makes the timing of a form that the CPU executes."""

    def share() -> float:
        return share_of_one(form, planner.sequences(form).streams)

    return TimingBuilder(form, records, links, lambda s, t: planner.reason(form, s, t), unmeasured, share)


def _measured(records: Iterable[Record]) -> set[tuple[str, str, str]]:
    return {(record.source, record.target, record.variant) for record in records}
