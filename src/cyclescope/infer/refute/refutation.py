"""The last part of the port step: the model tries to refute itself.

Mixes of all forms whose ports are told are drawn, predicted and measured. The forms of those that take
something else are asked again, each beside others. Then more mixes are drawn, which change nothing any
more: they say how often each level of confidence holds.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from cyclescope.infer.likelihood.usage import LATE_TURNS
from cyclescope.infer.ports.builder import PortBuilder, PortUsage, runs_slower
from cyclescope.infer.refute.calibration import (
    ACCESSES_ALONE,
    ASKED,
    CHECKED,
    DRAWN_FIRST,
    NOTE,
    Judge,
    Verdicts,
    claims_of,
    disturbed_mixes,
    measured_mixes,
    stored_verdicts,
    trials_of,
)
from cyclescope.infer.refute.drawer import MixDrawer
from cyclescope.infer.refute.kinds import KNOWN_MIXES, MOST_FORMS, MOSTLY, PROVED, Kind
from cyclescope.infer.refute.late import accesses_in_order, known_late
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.infer.refute.planner import ORDERS, Forms, MixPlanner
from cyclescope.infer.refute.reading import ReadOnce
from cyclescope.infer.refute.turns import dealt_in_turn
from cyclescope.infer.workload import CALIBRATING as CHECKING
from cyclescope.infer.workload import DOUBTED, FRESH
from cyclescope.measure.ports import PortPlanner, Question
from cyclescope.measure.store import Store
from cyclescope.model.calibration import LEVELS, ClaimCalibration
from cyclescope.model.facts import LOW

CHECKS = 900  # mixes that calibrate, a third for each level: 95 of 100 are known within 2.5 points
_ROUNDS = 4  # of drawing mixes that calibrate: the first finds enough where half of them can be read

Stages = Iterator[tuple[str, Callable[[], Iterable[Question]]]]


class Refutation:
    """Draws the mixes of a run, and concludes from them."""

    def __init__(self, builder: PortBuilder, store: Store, plans: PortPlanner, draw: random.Random) -> None:
        self._store = store
        self._mixes = ReadOnce(store)
        self._draw = draw
        facts = builder.facts
        self._planner = MixPlanner(plans, facts.evidence.shuts)
        cycles = facts.front_end.throughputs
        usages = {form: builder.usage(facts.table[form], cycles.get(form)) for form in facts.confined}
        self._model = MixModel(builder, usages)

    @cached_property
    def _claims(self) -> int:
        return claims_of(self._model.usages, self._model.claimed)

    @property
    def is_done(self) -> bool:
        """Whether the store has the verdict on what is claimed, and few mixes were disturbed."""
        known = stored_verdicts(self._store)
        return known is not None and known.claims == self._claims and not known.calibration.lacks_mixes

    def forget_disturbed(self) -> None:
        """Make room for others in the place of mixes that were disturbed."""
        mixes = disturbed_mixes(self._mixes)
        self._store.forget([record.key for records in mixes for record in records])
        self._mixes = ReadOnce(self._store)

    def stages(self) -> Stages:
        """Names and questions; each begins when the one before is in the store."""
        yield FRESH, self._first
        yield FRESH, self._rare
        yield DOUBTED, self._again
        for _ in range(_ROUNDS):
            yield CHECKING, self._checks

    def _drawer(self, model: MixModel) -> MixDrawer:
        return MixDrawer(model, self._planner, self._draw)

    def _asked(self, mixes: Iterable[Forms], phase: str) -> Iterator[Question]:
        for mix in mixes:
            for order in range(ORDERS):
                yield self._planner.question(mix, phase, order)

    def _judge(self) -> Judge:
        return Judge(self._model, trials_of(self._mixes, (DRAWN_FIRST, ASKED)))

    def _first(self) -> Iterator[Question]:
        known = Judge(self._model, trials_of(self._mixes, (DRAWN_FIRST,))).covered
        drawer = self._drawer(self._model)
        yield from self._asked(
            drawer.covering([n for n in self._model.claimed if n not in known]), DRAWN_FIRST
        )
        yield from self._asked(drawer.of_units(), DRAWN_FIRST)

    def _rare(self) -> Iterator[Question]:
        """Mixes of ports of few forms, until these say as much of them as what is believed of all forms, and
        of ports of which few mixes tell how they are dealt out.

        Half of each are any forms: a mix of rare ones alone would not tell which of them to blame.
        """
        drawer, claimed = self._drawer(self._model), self._model.claimed
        judge = Judge(self._model, trials_of(self._mixes, (DRAWN_FIRST,)))
        known = self._in_mixes(trial.forms for trial in judge.trials)
        for _ in range(math.ceil(KNOWN_MIXES)):
            in_turn = self._draw.sample(claimed, len(claimed))
            one_each = {self._kinds[form][0]: form for form in in_turn}
            rare = [form for ports, form in one_each.items() if known[ports] < KNOWN_MIXES]
            others = in_turn[: max(len(rare), MOST_FORMS)] if rare else []
            mixes = list(drawer.dealt(list(dict.fromkeys([*rare, *others]))))
            known += self._in_mixes([form.id for form in mix] for mix in mixes)
            yield from self._asked(mixes, DRAWN_FIRST)
        for halves in self._model.undecided_halves([(trial.forms, trial.cycles) for trial in judge.trials]):
            yield from self._asked(drawer.of_halves(halves), DRAWN_FIRST)

    def _in_mixes(self, mixes: Iterable[Iterable[str]]) -> Counter[str]:
        """In how many mixes forms of each set of ports are."""
        return Counter(self._kinds[form][0] for mix in mixes for form in mix)

    def _again(self) -> Iterator[Question]:
        """Forms of mixes that do not hold, beside others whose mixes all do; without units that are none."""
        model, judge = self._proved()
        drawer = self._drawer(model)
        for form in sorted(judge.failing):
            for _ in range(PROVED):
                mix = drawer.beside(form, judge.sound)
                if mix is not None:
                    yield from self._asked([mix], ASKED)
        yield from self._asked(accesses_in_order(model, self._planner, self._draw), ACCESSES_ALONE)

    def _proved(self) -> tuple[MixModel, Judge]:
        """The model with the units that mixes prove, as it fits them best, and what they say of it."""
        judge = self._judge()
        model = self._model.only_with(judge.proved_units())
        model = model.fitted([(trial.forms, trial.cycles) for trial in judge.trials])
        in_order = trials_of(self._mixes, (ACCESSES_ALONE,))
        model = known_late(model, [(trial.forms, trial.cycles) for trial in in_order])
        return model, Judge(model, judge.trials)

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        """Forms by their ports and by what they do: those of a mnemonic fail alike.

        Those that are not sure are kinds of their own: no sure one beside them is blamed for theirs. So are
        those that are slower than their ports let them be: two divisions wait for a divider, which says
        nothing of the multiplications on the port that both have.
        """
        return {form: self._kind(form, usage) for form, usage in self._model.usages.items()}

    def _kind(self, form: str, usage: PortUsage) -> Kind:
        doubt = "?" if usage.confidence == LOW else ""
        front_end = self._model.facts.front_end
        cycles, turns = front_end.throughputs.get(form, 0.0), LATE_TURNS if usage.late else 1.0
        slower = runs_slower(usage.operations or (), usage.slots, front_end.width, cycles, turns)
        return (usage.ports or "") + doubt + "~" * slower, self._model.facts.table[form].mnemonic

    @cached_property
    def _settled(self) -> tuple[MixModel, Verdicts, Judge]:
        """The model with the confidence that is left, why, and by what mixes, once these are measured."""
        model, judge = self._proved()
        refuted, doubted = judge.refuted(), judge.doubted(self._kinds)
        verdicts = Verdicts(
            self._claims, refuted, {}, ClaimCalibration(), doubted,
            model.shares.uneven, model.evenness, model.shares.late, dealt_in_turn(model, judge),
            model.classes_in_halves,
        )  # fmt: skip
        usages = {form: verdicts.lowered(form, usage) for form, usage in model.usages.items()}
        return model.with_confidence(usages), verdicts, judge

    def _checks(self) -> Iterator[Question]:
        """Fresh mixes; more of them while too few could be read beside neighbours."""
        judged = len(trials_of(self._mixes, (CHECKED,)))
        if judged >= MOSTLY * self._wanted:
            return
        model, _, _ = self._settled
        missing = self._wanted - judged
        for place, level in enumerate(LEVELS):
            share = missing * (place + 1) // len(LEVELS) - missing * place // len(LEVELS)
            yield from self._asked(self._drawn(model, level, share), CHECKED)

    def _drawn(self, model: MixModel, level: str, wanted: int) -> list[Forms]:
        """Mixes of forms that are as sure as a level or surer: of all, few would be of sure ones alone.

        None that had a part in what is refuted may come again by chance.
        """
        had_part = {trial.forms for trial in self._judge().trials}
        sure = LEVELS[: LEVELS.index(level) + 1]
        claimed = [form for form in model.claimed if model.usages[form].confidence in sure]
        drawer, found = self._drawer(model), list[Forms]()
        wanted = min(wanted, PROVED * len(claimed))
        while len(found) < wanted:
            drawn = drawer.covering(self._sample(claimed, drawer))
            mixes = [mix for mix in drawn if tuple(form.id for form in mix) not in had_part]
            if not mixes:
                break
            found += mixes
        return found[:wanted]

    @property
    def _wanted(self) -> int:
        return min(CHECKS, PROVED * len(self._model.claimed))

    def _sample(self, claimed: Sequence[str], drawer: MixDrawer) -> list[str]:
        """Of claimed forms half any, half of every kind as many."""
        some = self._draw.sample(claimed, min(len(claimed), CHECKS // 2))
        return list(dict.fromkeys([*some, *drawer.of_all_kinds(claimed, CHECKS // 2)]))

    def conclude(self) -> Verdicts:
        """Keep what the mixes say in the store."""
        model, verdicts, judge = self._settled
        checked = Judge(model, trials_of(self._mixes, (CHECKED,)))
        counts = len(model.claimed), len(judge.covered), len(verdicts.refuted), len(verdicts.doubted)
        units = {unit: tuple(model.takers(unit)) for unit in model.kept_units}
        calibration = msgspec.structs.replace(
            checked.calibration(*counts),
            disturbed=len(disturbed_mixes(self._mixes)), measured=measured_mixes(self._mixes),
        )  # fmt: skip
        found = msgspec.structs.replace(verdicts, units=units, calibration=calibration)
        self._store.write_note(NOTE, msgspec.json.encode(found).decode())
        return found
