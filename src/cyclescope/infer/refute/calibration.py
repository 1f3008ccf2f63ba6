"""What fresh mixes say about port usages: which are refuted, and how often those of each confidence hold."""

from __future__ import annotations

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean, median

import msgspec

from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.ports.resources import HALFWAY, Shares
from cyclescope.infer.refute.halves import ClassHalves
from cyclescope.infer.refute.kinds import (
    HELD_AT_WORST,
    LIMITS,
    MOSTLY,
    PREDICTED_AT_WORST,
    PROVED,
    Blame,
    Kind,
    blame,
)
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.infer.refute.planner import MIXES, mixed_forms, order_name
from cyclescope.infer.refute.reading import HasRecords
from cyclescope.measure.database import store_error
from cyclescope.measure.record import ERRORS, FAILED, NOISY, UNSTABLE, Record
from cyclescope.measure.sampling import PASSING
from cyclescope.measure.store import Store
from cyclescope.model.calibration import LEVELS, NEAR, ClaimCalibration, TriedMixes
from cyclescope.model.facts import LOW, MEDIUM
from cyclescope.model.ports import ONLY_BESIDE
from cyclescope.remarks.ports import Usage
from cyclescope.remarks.remark import Remark

DRAWN_FIRST, ASKED, CHECKED, ACCESSES_ALONE = "first", "asked", "checked", "in order"  # phases of mixes
NOTE = "mixes"  # under which a store keeps the verdicts


class Trial(msgspec.Struct, frozen=True):
    """A mix as measured: the least cycles of its orders, and relative how vague that is.

    `apart` is by how much its orders differ, relative, and `plain` the cycles of the order of `forms`, 0 if
    they were not read.
    """

    forms: tuple[str, ...]
    phase: str
    cycles: float
    error: float
    apart: float
    plain: float = 0.0


class Verdict(msgspec.Struct, frozen=True, array_like=True):
    """The usage that was refuted, whatever its ports are called, and the confidence that is left.

    `reason` is the sentence that says why, as a store keeps it.
    """

    shape: str
    confidence: str
    reason: str


class Verdicts(msgspec.Struct, frozen=True):
    """What mixes said of `claims`, a digest of what was claimed: kept in a store.

    `units` are the units that mixes proved, with the forms that take them; `doubted` the confidence that is
    left to forms because too many mixes with others of their kind do not hold or are not predicted; `uneven`
    and `late` how much of what forms cost others mixes show (`Shares`), and `evenness` how far they are from
    the best use of the ports to an even one, `in_turn` the classes whose ports they show to be dealt out in
    turn, and `halves` the two between whose ports operations go to and fro, with what goes astray and `late`.
    """

    claims: int
    refuted: Mapping[str, Verdict]
    units: Mapping[str, tuple[str, ...]]
    calibration: ClaimCalibration
    doubted: Mapping[str, str] = {}
    uneven: float = HALFWAY
    evenness: float = 0.0
    late: float = HALFWAY
    in_turn: tuple[str, ...] = ()
    halves: ClassHalves | None = None

    @property
    def shares(self) -> Shares:
        """How much counts of what forms cost others."""
        return Shares(self.uneven, self.late)

    def proved(self, takers: Mapping[str, Iterable[str]]) -> set[str]:
        """Of units with the forms that take them those that mixes proved, under whatever names they have now.

        Each is the one whose forms are most like those of a proved one: of all vector instructions more
        than half may be among all that access memory.
        """
        found = set()
        for forms in self.units.values():
            alike = {name: _alike({*some}, {*forms}) for name, some in takers.items()}
            likest = max(alike, key=alike.__getitem__, default="")
            if alike.get(likest, 0.0) > MOSTLY:
                found.add(likest)
        return found

    def lowered(self, form: str, usage: PortUsage) -> PortUsage:
        """A usage with no more confidence than fresh mixes leave."""
        verdict = self.refuted.get(form)
        if verdict is not None and verdict.shape == shape_of(usage):
            usage = _at_most(usage, verdict.confidence, Usage.AS_KEPT.of(verdict.reason))
        doubted = self.doubted.get(form, usage.confidence)
        return usage if doubted == usage.confidence else _at_most(usage, doubted, Usage.DOUBTED_KIND.of())


def _alike(some: set[str], others: set[str]) -> float:
    return len(some & others) / max(len(some | others), 1)


def _at_most(usage: PortUsage, level: str, why: Remark) -> PortUsage:
    """A usage with no more than some confidence, and what took it in its remarks."""
    confidence = max(usage.confidence, level, key=LEVELS.index)
    return msgspec.structs.replace(usage, confidence=confidence, remarks=(*usage.remarks, why))


def shape_of(usage: PortUsage) -> str:
    """Micro-operations by how many ports they have: the names of ports are a matter of taste."""
    every = ((f"{op.count:g}*{len(op.ports)}", op.cycles) for op in usage.operations or ())
    return "+".join(sorted(text if cycles == 1 else f"{text}/{cycles:g}" for text, cycles in every))


def stored_verdicts(store: Store) -> Verdicts | None:
    """What mixes said, as far as a store has it. Raises StoreError where that is damaged."""
    text = store.note(NOTE)
    try:
        return msgspec.json.decode(text, type=Verdicts) if text else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise store_error(store.path, error) from error


def claims_of(usages: Mapping[str, PortUsage], claimed: Iterable[str]) -> int:
    """A digest of what is claimed: other claims need other mixes."""
    lines = "\n".join(f"{form} {usages[form].ports} {usages[form].confidence}" for form in claimed)
    return zlib.crc32(lines.encode())


_PHASES = (DRAWN_FIRST, ASKED, CHECKED)


def trials_of(store: HasRecords, phases: Sequence[str] = _PHASES) -> list[Trial]:
    """The mixes of a store that can be judged.

    What was disturbed is not: it may be slower than it is alone, which would refute what is right. Nor are
    its other orders, as the best of few is slower than that of all.
    """
    some = (
        _trial(forms, phase, records)
        for forms, phase, records in _mixes_of(store, phases)
        if not any(map(_is_disturbed, records))
    )
    return [trial for trial in some if trial.error <= NEAR]


def disturbed_mixes(store: HasRecords) -> list[Sequence[Record]]:
    """What was read of mixes that judge nothing because some of their orders were disturbed."""
    return [records for _, _, records in _mixes_of(store, _PHASES) if any(map(_is_disturbed, records))]


def measured_mixes(store: HasRecords) -> int:
    """How many mixes were measured, whatever that says."""
    return sum(1 for _ in _mixes_of(store, _PHASES))


def _mixes_of(
    store: HasRecords, phases: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], str, Sequence[Record]]]:
    """The forms of each mix, its phase, and what was read of its orders."""
    found: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in store.records_of((MIXES,)):
        if record.verdict != FAILED:
            found[record.form, record.source, record.target].append(record)
    for (form, source, phase), records in found.items():
        if phase in phases:
            yield mixed_forms(form, source), phase, records


def _is_disturbed(record: Record) -> bool:
    """Whether a reading may be another when alone: what a loop's length and place change stays."""
    return record.verdict == NOISY or (record.verdict == UNSTABLE and record.error in PASSING)


def _trial(forms: tuple[str, ...], phase: str, records: Sequence[Record]) -> Trial:
    best = min(records, key=lambda record: record.per_instance)
    slowest = max(record.per_instance for record in records)
    error = ERRORS * best.spread / best.cycles
    plain = next((record.per_instance for record in records if record.variant == order_name(0)), 0.0)
    return Trial(forms, phase, best.per_instance, error, slowest / best.per_instance - 1, plain)


class Judge:
    """Compares mixes with what a model says of them."""

    def __init__(self, model: MixModel, trials: Iterable[Trial]) -> None:
        self._model = model
        self._cycles: dict[tuple[str, ...], float] = {}
        self._spans: dict[tuple[str, ...], tuple[float, float] | None] = {}
        self.trials = [trial for trial in trials if self.predicted(trial) > 0]

    def predicted(self, trial: Trial) -> float:
        """Cycles that a mix is predicted to take, 0 where a form is not known."""
        known = self._cycles.get(trial.forms)
        if known is None:
            known = self._cycles[trial.forms] = self._model.predicted(trial.forms) or 0.0
        return known

    def _span(self, trial: Trial) -> tuple[float, float] | None:
        if trial.forms not in self._spans:
            self._spans[trial.forms] = self._model.span(trial.forms)
        return self._spans[trial.forms]

    def miss(self, trial: Trial) -> float:
        """By how much a mix takes more than predicted, relative."""
        return trial.cycles / self.predicted(trial) - 1

    def beyond(self, trial: Trial) -> float:
        """By how much a mix takes more, or less, than any that ports let it take, relative."""
        least, most = self._span(trial) or (math.inf, math.inf)
        return max(trial.cycles / most - 1, 1 - trial.cycles / least, 0.0)

    def holds(self, trial: Trial) -> bool:
        """Whether a mix takes what its ports let it take, as far as it was read well enough to say so."""
        return self.beyond(trial) <= NEAR + trial.error

    def is_predicted(self, trial: Trial) -> bool:
        """Whether a mix takes what was predicted, as far as it was read well enough to say so."""
        return abs(self.miss(trial)) <= NEAR + trial.error

    def is_dealt(self, trial: Trial) -> bool:
        """Whether a mix may take something else than predicted by how the core deals out ports alone.

        A core that does so before it knows which will be free lets some wait for each other beside idle ones.
        """
        least, most = self._span(trial) or (0.0, 0.0)
        return most > least * (1 + NEAR)

    @cached_property
    def _of(self) -> dict[str, list[Trial]]:
        found: dict[str, list[Trial]] = defaultdict(list)
        for trial in self.trials:
            for form in dict.fromkeys(trial.forms):
                found[form].append(trial)
        return found

    @property
    def covered(self) -> set[str]:
        """Forms that are in a mix."""
        return set(self._of)

    @cached_property
    def failing(self) -> dict[str, int]:
        """Forms that may be to blame for mixes that did not hold, each with the number of these mixes."""
        return Counter(form for trial in self.trials if not self.holds(trial) for form in self.blamed(trial))

    def blamed(self, trial: Trial) -> tuple[str, ...]:
        """Forms that may be why a mix takes something else than predicted.

        What is faster would be without some of its forms as well: these have no part in the bound that is
        wrong, as those beside a division have none in the throughput of divisions.
        """
        every = tuple(dict.fromkeys(trial.forms))
        if self.miss(trial) >= 0:
            return every
        part = tuple(form for form in every if not self._is_faster_without(trial, form))
        return part or every

    def _is_faster_without(self, trial: Trial, form: str) -> bool:
        """Whether a mix takes less than ports let its other forms alone take."""
        least, _ = self._model.span([other for other in trial.forms if other != form]) or (0.0, 0.0)
        return trial.cycles < least * (1 - NEAR - trial.error)

    @cached_property
    def sound(self) -> list[str]:
        """Forms that are to blame for no mix: all that they might be to blame for held."""
        return sorted(self._of.keys() - self.failing.keys())

    def refuted(self) -> dict[str, Verdict]:
        """Forms whose mixes mostly do not hold: others of the same mixes hold elsewhere."""
        found = {}
        for form, count in self.failing.items():
            trials = self._of[form]
            if count > MOSTLY * len(trials):
                level = LOW if count > 1 else MEDIUM
                found[form] = Verdict(shape_of(self._model.usages[form]), level, self._reason(form))
        return found

    def _reason(self, form: str) -> str:
        trials = self._of[form]
        wrong = [trial for trial in trials if not self.holds(trial) and form in self.blamed(trial)]
        worst = max(wrong, key=lambda trial: abs(self.miss(trial)))
        mix = " + ".join(worst.forms)
        return Usage.REFUTED.of(len(wrong), len(trials), mix, worst.cycles, self.predicted(worst)).text

    def doubted(self, kinds: Mapping[str, Kind]) -> dict[str, str]:
        """Forms and the confidence left to them, as mixes with forms of their kind fail too often.

        They may take what ports do not let them take, or else what is not predicted where it does not depend
        on how ports are dealt out. `kinds` has those of all forms.
        """
        usages = self._model.usages
        plain = [trial for trial in self.trials if not self.is_dealt(trial)]
        held = self._blame(self.trials, self.holds, kinds)
        predicted = self._blame(plain, self.is_predicted, kinds)
        levels = {
            form: max(
                held.level(form, kind, HELD_AT_WORST),
                predicted.level(form, kind, PREDICTED_AT_WORST),
                key=LEVELS.index,
            )
            for form, kind in kinds.items()
        }
        return {
            form: level for form, level in sorted(levels.items())
            if usages[form].operations is not None
            and LEVELS.index(level) > LEVELS.index(usages[form].confidence)
        }  # fmt: skip

    def _blame(
        self, trials: Sequence[Trial], is_right: Callable[[Trial], bool], kinds: Mapping[str, Kind]
    ) -> Blame:
        """How often forms of each kind spoil mixes."""
        right = [is_right(trial) for trial in trials]
        mixes = (
            tuple(dict.fromkeys(trial.forms)) if held else self.blamed(trial)
            for trial, held in zip(trials, right, strict=True)
        )
        return blame([*zip(mixes, right, strict=True)], kinds)

    def proved_units(self) -> list[str]:
        """Units that most of the mixes which they decide take as long as, and few as long as without them.

        They are limits: mixes that are faster show that they are none, for some of their forms at least.
        Slower ones say nothing against what counts only beside others, which many forms told.
        """
        found, taken = [], [(trial, self._model.taken(trial.forms)) for trial in self.trials]
        for unit in self._model.units:
            deciding = [trial for trial, some in taken if unit in some and self._decides(unit, trial)]
            held = sum(map(self.holds, deciding))
            told = [self.holds(one) for one in deciding if self.holds(one) != self._holds_without(unit, one)]
            enough = min(held, sum(told)) >= PROVED and (held > MOSTLY * len(deciding) or ONLY_BESIDE in unit)
            if enough and sum(told) >= LIMITS * len(told):
                found.append(unit)
        return found

    def _holds_without(self, unit: str, trial: Trial) -> bool:
        without = self._model.cycles(trial.forms, without=frozenset((unit,))) or math.inf
        return abs(trial.cycles / without - 1) <= NEAR + trial.error

    def _decides(self, unit: str, trial: Trial) -> bool:
        without = self._model.cycles(trial.forms, without=frozenset((unit,))) or 0.0
        return (self._model.cycles(trial.forms) or 0.0) > without * (1 + NEAR)

    def calibration(self, claims: int, covered: int, refuted: int, doubted: int = 0) -> ClaimCalibration:
        """How often each level holds; mixes have the level of their least sure form.

        What a form's ports say is judged by mixes in which no other form is less sure: of a mix that does
        not hold, that one would be the likelier cause. What depends on how ports are dealt out is apart.
        """
        mixes: dict[str, list[float]] = defaultdict(list)
        dealt: list[float] = []
        ports: dict[str, list[float]] = defaultdict(list)
        for trial in self.trials:
            miss = abs(self.miss(trial))
            level = self._level(trial.forms)
            (dealt if self.is_dealt(trial) else mixes[level]).append(miss)
            for form in dict.fromkeys(trial.forms):
                least = self._model.usages[form].confidence == level
                if least and self._model.matters(trial.forms, form, NEAR):
                    ports[level].append(self.beyond(trial))
        apart = sorted(trial.apart for trial in self.trials)
        orders = (
            (round(median(apart), 4), round(apart[int(0.95 * (len(apart) - 1))], 4)) if apart else (0.0, 0.0)
        )
        return ClaimCalibration(
            _held(mixes), _held(ports), orders, claims, covered, refuted, doubted, _tried(dealt)
        )

    def _level(self, forms: Iterable[str]) -> str:
        return max((self._model.usages[form].confidence for form in forms), key=LEVELS.index)


def _held(misses: Mapping[str, Sequence[float]]) -> dict[str, TriedMixes]:
    return {level: _tried(some) for level in LEVELS if (some := misses.get(level))}


def _tried(misses: Sequence[float]) -> TriedMixes:
    error = round(fmean(misses), 4) if misses else 0.0
    return TriedMixes(len(misses), sum(miss <= NEAR for miss in misses), error)
