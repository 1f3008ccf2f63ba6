"""A measuring campaign: from an empty or partly filled store to a complete one.

First it finds out which forms the CPU executes, then it measures the links, then every form's throughput and
latencies, and at last what the results ask for: longer chains where a throughput hides a latency, and a
second look with more effort at values that break a law.
"""

from __future__ import annotations

import math
import random
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from cyclescope.backend.base import Backend
from cyclescope.infer.again import Disturbed, disturbed
from cyclescope.infer.ahead.later import Batch, LaterLooks
from cyclescope.infer.ahead.looks import FurtherLooks
from cyclescope.infer.ahead.thinking import ThinkingBeside, ThoughtAhead
from cyclescope.infer.ahead.timings import TimingsAhead
from cyclescope.infer.kept import is_current, results_file
from cyclescope.infer.ports.approach import Approach
from cyclescope.infer.ports.candidates import candidates
from cyclescope.infer.ports.experiments import CAREFUL, PortCampaign, idle
from cyclescope.infer.ports.in_order import order_forms
from cyclescope.infer.ports.questions import simple_forms
from cyclescope.infer.progress import Progress, nobody
from cyclescope.infer.readout import PART, Readout
from cyclescope.infer.refute.refutation import Refutation
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.link_chains import LinkChains, fastest, plain_sequences, solve_links
from cyclescope.infer.timing.links import is_latency, stored_links
from cyclescope.infer.timing.results import FormTiming
from cyclescope.infer.timing.throttling import ThrottledChains
from cyclescope.infer.workload import (
    CORE_FACTS,
    LINKS,
    MEASURING,
    MODEL,
    THROUGHPUTS,
    TIMED_AGAIN,
    TRYING,
    Workload,
)
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.measure.plan import LATENCY, LINK, THROUGHPUT, Experiment, Planner
from cyclescope.measure.ports import PORTS
from cyclescope.measure.sampling import Measurement, Sampler
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel
from cyclescope.probe.catalogue import unanswered
from cyclescope.probe.meanwhile import AskedMeanwhile


class Request(msgspec.Struct, frozen=True):
    """What to measure: forms, quantities, and until when (seconds, 0 for no limit).

    `facts` asks for what predictions need to know of the core beside forms.
    """

    forms: tuple[InstructionForm, ...]
    quantities: frozenset[str] = frozenset((THROUGHPUT, LATENCY))
    budget: float = 0.0
    facts: bool = False

    @property
    def told(self) -> dict[str, object]:
        """What a session keeps of it."""
        ids = "\n".join(sorted(form.id for form in self.forms))
        return {"what": sorted(self.quantities), "forms": zlib.crc32(ids.encode())}


class Campaign:
    """Runs a request on a backend and writes a store.

    Fresh mixes are drawn with `draw`. `known` is a machine that gives ports that match their names alone.
    """

    def __init__(
        self,
        table: Table,
        backend: Backend,
        store: Store,
        report: Callable[[Progress], None] = nobody,
        draw: random.Random | None = None,
        known: MachineModel | None = None,
    ) -> None:
        self._known = known
        self._draw = draw or random.Random()  # noqa: S311 - so that nobody can have tuned on its mixes
        self.table = table
        self.backend = backend
        self.store = store
        self._report = report
        self._failed = 0
        self._workload = Workload(frozenset())
        self._legality = store.legality()
        self._planner: Planner | None = None
        self._again = Disturbed({})
        self._chains: LinkChains | None = None
        self._ports_told: Approach | None = None  # by a run that came to its end
        self._timed: TimingsAhead | None = None  # since all but ports was measured
        self._later = LaterLooks(backend, (), self._keep_later)
        self.found_kept = is_current(results_file(store.path), store.path)
        self._everything = Planner(table, lambda form: True)
        self._runs = True  # the backend: when results are read, it may be closed

    def run(self, request: Request, conditions: dict[str, object]) -> bool:
        """Measure. Returns whether everything was finished within the budget."""
        deadline = time.monotonic() + request.budget if request.budget else math.inf
        events = self.backend.capabilities().counters[1:]  # cycles are the first, and always there
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._workload, self._runs = Workload(request.quantities, request.facts), True
        self._ports_told = self._timed = None
        self._later = LaterLooks(self.backend, (), self._keep_later)
        self.store.begin_session(started, {**conditions, "events": events, "asked": request.told})
        if finished := self._run(request, deadline):
            forms = {form.id for form in request.forms}
            if unasked := self._again.unasked(forms, request.quantities):
                self.store.forget(unasked)
                self._ports_told = self._timed = None
            self.store.end_session()
        self._runs = False
        return finished

    def _run(self, request: Request, deadline: float) -> bool:
        self.find_legal(request.forms)
        self._again = self.disturbed(request)
        self.links()
        planner = self.planner()
        forms = [f for f in request.forms if self._legality[f.id] == "ok"]
        real = not self.store.emulated  # results that mean nothing ask for nothing
        if LATENCY in request.quantities and real:
            experiments = self._by_form(planner, forms, request.quantities)
            later = PORTS in request.quantities and self._asks_apart(deadline)
            finished = self._looks(planner, forms, experiments, deadline, later)
        else:
            every = self._experiments(planner, forms, request.quantities)
            finished = self._settle(MEASURING, every, forms, Sampler(self.backend), deadline)
        facts = self._facts_to_ask(deadline) if finished and request.facts else None
        if finished and PORTS in request.quantities:
            asked = frozenset(form.id for form in forms) if THROUGHPUT in request.quantities else frozenset()
            finished = self._ports(forms, asked, deadline, facts.begin if facts else idle)
        if finished and facts is not None:
            finished = self._facts(facts, deadline)
        if finished:
            self._links_again()  # what rests on them is computed from the store
        return finished

    def _looks(
        self,
        planner: Planner,
        forms: Sequence[InstructionForm],
        experiments: Iterable[tuple[InstructionForm, Iterable[Experiment]]],
        deadline: float,
        later: bool,
    ) -> bool:
        """First looks at forms, and those that these ask for; whether there was time for all.

        The last ones are taken `later` of forms by which no ports are found.
        """
        looks = FurtherLooks(self.store, planner, stored_links(self.store))
        sampler = Sampler(ThinkingBeside(self.backend, looks.first.think))
        first = looks.first.asking(experiments)
        if not self._settle(MEASURING, first, forms, sampler, deadline, looks.first):
            return False
        questions = looks.questions(forms, self._links_again(), self._again.keys)
        sampler = Sampler(ThinkingBeside(self.backend, looks.second.think), CAREFUL, batch=500)
        if not self._settle(TIMED_AGAIN, questions, forms, sampler, deadline, looks.second):
            return False
        last = looks.last(self._again.keys)
        at_once = {form.id for form in (candidates(self.table) if later else forms)}
        for look in (one.of(at_once.__contains__) for one in last):
            sampler, some = look.sampler(self.backend), look.experiments
            if some and not self._settle(TIMED_AGAIN, some, forms, sampler, deadline):
                return False
        others = [one.of(lambda form: form not in at_once) for one in last]
        self._later = LaterLooks(self.backend, others, self._keep_later)
        throttled = ThrottledChains(self.backend, self.store, planner, self._write)
        return throttled.look(looks.suspects, lambda: time.monotonic() < deadline)

    def disturbed(self, request: Request) -> Disturbed:
        """What was disturbed of the forms of a request, and of those that others are measured by."""
        references = (*simple_forms(self.table), *order_forms(self.table))
        return disturbed(self.store, {form.id for form in (*request.forms, *references)})

    def _ports(
        self,
        forms: Sequence[InstructionForm],
        asked: Collection[str],
        deadline: float,
        meanwhile: Callable[[], None],
    ) -> bool:
        """Port usage: it needs throughputs of forms, unless just `asked`, and of what may block ports."""
        simple = (self.table[instruction_set(self.table.isa).roles.nop], *simple_forms(self.table))
        possible = list({form.id: form for form in (*candidates(self.table), *simple)}.values())
        self.find_legal(possible)
        blocking = [f for f in possible if self._legality[f.id] == "ok"]
        planner = self.planner()
        both = list({form.id: form for form in (*forms, *blocking)}.values())
        others = [form for form in both if form.id not in asked]
        experiments = self._experiments(planner, others, frozenset((THROUGHPUT,)))
        if not self._settle(THROUGHPUTS, experiments, others, Sampler(self.backend), deadline):
            return False
        timed = TimingsAhead(self.store, planner, stored_links(self.store))
        if not self.store.emulated:
            timed.begin(forms, self._later.asked)
            self._timed = timed
        backend = ThinkingBeside(self.backend, lambda: self._later.take() or timed.think())
        ports = PortCampaign(
            self.table, backend, self.store, planner, self._tell, self._again, meanwhile, self._known
        )
        with self._later.beside(self.store.note_samples):
            return ports.run(forms, blocking, deadline) and self._refute(ports, deadline)

    def _refute(self, ports: PortCampaign, deadline: float) -> bool:
        """Predict and measure mixes that had no part in anything; keep what they say."""
        approach = ports.approach()
        if approach.ports is None:
            return True
        refutation = Refutation(approach.ports, self.store, ports.plans, self._draw)
        if not refutation.is_done:
            refutation.forget_disturbed()
            if not all(ports.settle(stage, make(), deadline) for stage, make in refutation.stages()):
                return False
            refutation.conclude()
        self._ports_told = approach
        return True

    def _facts_to_ask(self, deadline: float) -> AskedMeanwhile:
        """What predictions and cards need: asked while ports are thought about, unless that may end."""
        asked = unanswered(self.store.facts(), self.table.isa)
        return AskedMeanwhile(asked, self.backend, self.table, self._asks_apart(deadline))

    def _asks_apart(self, deadline: float) -> bool:
        """Whether a thread of its own may ask the backend."""
        return deadline == math.inf and self.backend.capabilities().threaded

    def _facts(self, asked: AskedMeanwhile, deadline: float) -> bool:
        """Keep what probes found; whether there was time for all."""
        for number, found in enumerate(asked.each(), 1):
            self.store.write_probe(found.probe.name, found.facts, found.measured)
            self._tell(CORE_FACTS, number, asked.total)
            if time.monotonic() >= deadline:
                return number == asked.total
        return True

    def front_end(self, forms: Sequence[InstructionForm]) -> Approach:
        """The front end's part of port usage alone: width, lengths of encodings, slots of some forms."""
        self._ports_told = self._timed = None
        self.store.begin_session(datetime.now(UTC).isoformat(timespec="seconds"), {})
        needed = (*forms, *simple_forms(self.table), *order_forms(self.table))
        wanted = list({form.id: form for form in needed}.values())
        self.find_legal(wanted)
        able = [form for form in wanted if self._legality[form.id] == "ok"]
        experiments = self._experiments(self.planner(), able, frozenset((THROUGHPUT,)))
        self._settle(THROUGHPUTS, experiments, able, Sampler(self.backend), math.inf)
        ports = PortCampaign(self.table, self.backend, self.store, self.planner(), self._tell)
        ports.run_front_end(able)
        return ports.approach()

    def planner(self) -> Planner:
        """The planner with the helper instructions of this CPU."""
        if self._planner is None:
            self._planner = Planner(self.table, self._executes)
        return self._planner

    # --- stages ----------------------------------------------------------------------------------

    def _executes(self, form: InstructionForm) -> bool:
        """Whether the CPU executes a form; found out when the store does not know."""
        if self._runs and form.id not in self._legality:
            self.find_legal([form])
        return self._legality.get(form.id) == "ok"

    def find_legal(self, forms: Iterable[InstructionForm]) -> None:
        """Run every form once that the store knows nothing of."""
        found: list[tuple[str, str]] = []
        runnable: list[InstructionForm] = []
        kernels = []
        for form in forms:
            if form.id in self._legality:
                continue
            kernel = self._everything.probe_kernel(form)
            if kernel is None:
                found.append((form.id, "no encoding"))
            else:
                runnable.append(form)
                kernels.append(kernel)
        for start in range(0, len(kernels), PART):
            self._tell(TRYING, start, len(kernels))
            outcomes = self.backend.probe(kernels[start : start + PART])
            some = runnable[start : start + PART]
            found += [(f.id, o.describe()) for f, o in zip(some, outcomes, strict=True)]
        self.store.write_legality(found)
        self._legality |= dict(found)

    def links(self) -> dict[str, LinkLatency]:
        """Latencies of the links, measured unless the store has them, undisturbed."""
        stored = stored_links(self.store)
        whole = bool(stored) and len(stored) == len(self.store.links())
        experiments = [*self.planner().link_experiments(), *plain_sequences(self.planner(), self._executes)]
        doubtful = disturbed(self.store, {e.form for e in experiments}, LINK).keys
        if whole and not doubtful:
            return stored
        self._tell(LINKS, 0, len(experiments))
        self._chains = LinkChains(self.backend, experiments, self.store.records_of((LINK,)) if whole else ())
        self._chains.look()
        return self._write_links()

    def _links_again(self) -> dict[str, LinkLatency]:
        """The links, after another look at all that were measured, at another time: much rests on them."""
        changed = self._chains is not None and self._chains.look_again()
        return self._write_links() if changed else stored_links(self.store)

    def _write_links(self) -> dict[str, LinkLatency]:
        settled = self._chains.settled if self._chains else []
        found = solve_links(settled, self.table.isa, real=not self.store.emulated) | fastest(settled)
        links = {key: link for key, link in found.items() if is_latency(link)}
        written = self._chains.better if self._chains else []
        self.store.write_links({k: msgspec.json.encode(v) for k, v in links.items()}, written)
        return links

    def _experiments(
        self, planner: Planner, forms: Sequence[InstructionForm], quantities: frozenset[str]
    ) -> Iterator[Experiment]:
        return (one for _, some in self._by_form(planner, forms, quantities) for one in some)

    def _by_form(
        self, planner: Planner, forms: Sequence[InstructionForm], quantities: frozenset[str]
    ) -> Iterator[tuple[InstructionForm, Iterator[Experiment]]]:
        done = self.store.done(forms=[form.id for form in forms]).difference(self._again.keys)

        def of_form(form: InstructionForm) -> Iterator[Experiment]:
            if THROUGHPUT in quantities:
                yield from planner.throughput(form, done)
            if LATENCY in quantities:
                yield from planner.latency(form, done)

        return ((form, of_form(form)) for form in forms)

    def _settle(
        self,
        stage: str,
        experiments: Iterable[Experiment],
        forms: Sequence[InstructionForm],
        sampler: Sampler,
        deadline: float,
        ahead: ThoughtAhead[Any] | None = None,
    ) -> bool:
        """Measure experiments, which come in the order of `forms`; whether there was time for all.

        What is thought out `ahead` hears of answers.
        """
        place = {form.id: number for number, form in enumerate(forms, 1)}
        reached = 0
        for batch in sampler.measure(experiments, lambda: time.monotonic() < deadline):
            self._write(batch)
            if ahead is not None:
                ahead.hear(batch)
            reached = max([reached, *(place[e.form] for e, _ in batch)])
            self._tell(stage, reached, len(forms), sampler)
        self.store.note_samples(sampler.counts)
        if reached and time.monotonic() < deadline:
            self._tell(stage, len(forms), len(forms), sampler)
        return time.monotonic() < deadline

    def _keep_later(self, batch: Batch) -> None:
        self._write(batch)
        if self._timed:
            self._timed.hear(batch)

    def _write(self, batch: Sequence[tuple[Experiment, Measurement]]) -> None:
        self._failed += sum(not m.usable for _, m in batch)
        self.store.write(self._again.settle(batch))

    def _tell(self, stage: str, done: int, total: int, sampler: Sampler | None = None) -> None:
        samples = (sampler.accepted, sampler.rejected) if sampler else (0, 0)
        disturbed = sampler.disturbed if sampler else 0
        share = self._workload.share(stage, done, total)
        self._report(Progress(stage, done, total, self._failed, *samples, share, disturbed))

    def tell(self, done: int, total: int) -> None:
        """Say how far the reading of the results is, which makes the model of the machine."""
        self._tell(MODEL, done, total)

    def results(self, forms: Sequence[InstructionForm]) -> Iterator[FormTiming]:
        """Timings of the forms, in their order, one by one."""
        return self.readout(forms).timings()

    def readout(self, forms: Sequence[InstructionForm] | None = None) -> Readout:
        """What the store tells of some forms, or of all."""
        made = self._timed.made(stored_links(self.store)) if self._timed else {}
        return Readout(self.store, self.table, self._known, forms, self.planner(), self._ports_told, made)
