"""Experiments of a store once more: on a machine of its kind, to verify it, or on a model, to compare."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from cyclescope.backend.base import Backend
from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend
from cyclescope.backend.peers.peculiar import Peculiar, peculiar
from cyclescope.errors import StoreError
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.kernels import shown_kernels
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Experiment, Key, Planner
from cyclescope.measure.record import STABLE, Record
from cyclescope.measure.sampling import AGREE, GRAIN, Measurement, Sampler
from cyclescope.measure.store import Store
from cyclescope.remarks.elsewhere import NotCompared
from cyclescope.remarks.remark import NOTHING, Remark
from cyclescope.session.elsewhere.backends import SAMPLE

REPLAYED = (THROUGHPUT, LATENCY)
# Share of kernels that may differ between two runs on machines of one kind. Two full runs of one machine had
# one in 25; another core differs in most.
MAY_DIFFER = 0.1


class Agreeing(StrEnum):
    """What came of an experiment."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNREAD = "not read"  # it failed, or was not quiet enough to tell


class Again(msgspec.Struct, frozen=True):
    """An experiment and its second answer, in cycles of the body.

    `reason` is why there is none, or what there is about a kernel that a model answers otherwise.
    """

    record: Record
    cycles: float
    spread: float
    outcome: Agreeing
    reason: str = ""


class Replay(msgspec.Struct, frozen=True):
    """All answers; `left_out` counts, by reason, what could not be asked."""

    answers: tuple[Again, ...]
    left_out: Mapping[str, int] = {}

    def counts(self, quantity: str = "") -> Counter[Agreeing]:
        """How often each outcome was reached, of a quantity or of all."""
        return Counter(one.outcome for one in self.answers if quantity in ("", one.record.quantity))

    def reasons(self) -> Counter[str]:
        """What is told about kernels that differ."""
        return Counter(one.reason for one in self.answers if one.outcome is Agreeing.DIFFERENT and one.reason)

    @property
    def agrees(self) -> bool:
        """Whether no more differ than between two runs of one machine. False where nothing was compared."""
        found = self.counts()
        compared = found[Agreeing.EQUAL] + found[Agreeing.DIFFERENT]
        return compared > 0 and found[Agreeing.DIFFERENT] <= MAY_DIFFER * compared


# --- on a machine of the same kind -------------------------------------------------------------------


def verified(store: Store, backend: Backend, sample: int = SAMPLE, seed: int = 0) -> Replay:
    """A random sample of a store's stable kernels, byte by byte as they are stored, on another backend."""
    known = [one for one in store.records_of(REPLAYED) if one.verdict == STABLE]
    if not known:
        raise StoreError(f"{store.path} has no stable measurement to repeat", "run {measure} first")
    chosen = random.Random(seed).sample(known, min(sample, len(known)))  # noqa: S311 - no secret
    experiments = (_stored(store, record) for record in chosen)
    return _answered(backend, experiments, {record.key: record for record in chosen})


def _stored(store: Store, record: Record) -> Experiment:
    _, kernel = store.kernel(record.id)
    return Experiment(*record.key, kernel, record.count, record.links)


# --- on a model --------------------------------------------------------------------------------------


def replayed(store: Store, backend: Backend, forms: Sequence[str], sample: int, seed: int = 0) -> Replay:
    """The experiments of some of the forms on a model, which reads instructions and not bytes.

    They are planned anew; what is not planned today as it was measured is left out. `forms` are those to draw
    `sample` from.
    """
    table = load_table(store.isa)
    chosen = random.Random(seed).sample(list(forms), min(sample, len(forms)))  # noqa: S311 - no secret
    planned, left_out = _planned(store, table, chosen)
    if isinstance(backend, LlvmMcaBackend):
        planned = _accepted(backend, planned, left_out)
    records = {key: record for key, (record, _) in planned.items()}
    found = _answered(backend, (experiment for _, experiment in planned.values()), records)
    return Replay(tuple(_explained(one, table) for one in found.answers), dict(left_out))


def _explained(one: Again, table: Table) -> Again:
    if one.outcome is not Agreeing.DIFFERENT:
        return one
    record = one.record
    found = peculiar(table[record.form], (record.source, record.target), record.variant, record.links)
    return msgspec.structs.replace(one, reason=found)


_Planned = dict[Key, tuple[Record, Experiment]]


def _planned(store: Store, table: Table, forms: Collection[str]) -> tuple[_Planned, Counter[str]]:
    """Experiments with their stable records, and why others are left out."""
    legality = store.legality()
    planner = Planner(table, lambda form: legality.get(form.id) == "ok")
    found: _Planned = {}
    left_out: Counter[str] = Counter()
    for name, kernels in shown_kernels(store, sorted(forms)):
        if legality.get(name) != "ok" or (form := table.get(name)) is None:
            continue
        made = {one.key: one for one in (*planner.throughput(form), *planner.latency(form))}
        for kernel in kernels:
            if kernel.record.quantity not in REPLAYED:
                continue
            experiment = made.get(kernel.record.key)
            if why := _why_not(kernel.record, kernel.code, experiment):
                left_out[why.text] += 1
            elif experiment is not None:
                found[experiment.key] = kernel.record, experiment
    return found, left_out


def _why_not(record: Record, code: bytes, experiment: Experiment | None) -> Remark:
    if record.verdict != STABLE:
        return NotCompared.READING.of(record.verdict)
    if experiment is None:
        return NotCompared.SECOND_LOOK.of()
    if experiment.kernel.code != code:
        return NotCompared.PLANNED_ANEW.of()
    return NOTHING


def _accepted(backend: LlvmMcaBackend, planned: _Planned, left_out: Counter[str]) -> _Planned:
    """What llvm-mca reads."""
    places = backend.accepted([experiment.kernel for _, experiment in planned.values()])
    taken = {key: both for (key, both), place in zip(planned.items(), places, strict=True) if place < 0}
    if len(taken) < len(planned):
        left_out[NotCompared.INSTRUCTION_NOT_TAKEN.value] += len(planned) - len(taken)
    return taken


# --- both --------------------------------------------------------------------------------------------


def _answered(backend: Backend, experiments: Iterable[Experiment], records: Mapping[Key, Record]) -> Replay:
    answers: list[Again] = []
    for settled in Sampler(backend).measure(experiments):
        answers += [again(records[experiment.key], measurement) for experiment, measurement in settled]
    return Replay(tuple(sorted(answers, key=lambda one: one.record.id)))


def again(record: Record, answer: Measurement) -> Again:
    """What a second answer says of a first one: within what rounds agree, and the spreads of both."""
    if answer.verdict != STABLE:
        reason = answer.error or NotCompared.READING.of(answer.verdict).text
        return Again(record, answer.cycles, answer.spread, Agreeing.UNREAD, reason)
    grain = GRAIN * record.count + AGREE * max(record.cycles, answer.cycles)
    within = abs(record.cycles - answer.cycles) <= grain + record.spread + answer.spread
    return Again(record, answer.cycles, answer.spread, Agreeing.EQUAL if within else Agreeing.DIFFERENT)


def farthest(found: Replay) -> Iterator[Again]:
    """What differs: open ones first, then by ratio, the farthest apart first."""
    some = [one for one in found.answers if one.outcome is Agreeing.DIFFERENT]
    told = ("", Peculiar.OPEN)
    yield from sorted(some, key=lambda one: (one.reason not in told, -_ratio(one.record.cycles, one.cycles)))


def _ratio(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return (high + GRAIN) / (max(low, 0.0) + GRAIN)
