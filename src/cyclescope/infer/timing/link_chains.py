"""The closed chains of links: measured until they are not disturbed, and solved for the links' latencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from cyclescope.backend.base import Backend
from cyclescope.errors import MeasurementError
from cyclescope.infer.timing.latency_system import (
    UNCUT,
    Equation,
    LatencySystem,
    LinkLatency,
    lower_bound,
)
from cyclescope.infer.timing.results import ABOVE, BELOW, HALF, LESS, MOVED, TOLERANCE
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.cycle import LINK_SPACING, NOP, PLAIN, SPACED
from cyclescope.kernel.dialect import Executes
from cyclescope.kernel.kernel import CANARY, FAST
from cyclescope.kernel.stream import LENGTHS
from cyclescope.measure.front_end import GENERAL
from cyclescope.measure.plan import LINK, Experiment, Key, Planner
from cyclescope.measure.record import FROM_BEST, STABLE, UNSTABLE, Record
from cyclescope.measure.sampling import DISAGREE, PASSING, Measurement, Sampler

LOOKS = 4  # at chains that are disturbed: some seconds, where what disturbs lasts for tenths to some


class LinkChains:
    """The chains of all links, each with what several looks at it, apart in time, agree about.

    What disturbs steadily for a look lets its rounds agree, so that only another look tells. A chain that is
    cut needs to be short only: its best look counts.
    """

    def __init__(
        self, backend: Backend, experiments: Sequence[Experiment], known: Iterable[Record] = ()
    ) -> None:
        self._backend = backend
        self._experiments = experiments
        self._looks: dict[Key, list[Measurement]] = {r.key: [_measurement(r)] for r in known}
        self._best = {key: looks[0] for key, looks in self._looks.items()}
        self._once_seen: set[Key] = set()
        self._new: set[Key] = set()
        self._once = backend.capabilities().emulated

    @property
    def settled(self) -> list[tuple[Experiment, Measurement]]:
        """The chains that were measured."""
        return [(e, self._best[e.key]) for e in self._experiments if e.key in self._best]

    @property
    def better(self) -> list[tuple[Experiment, Measurement]]:
        """The chains with a reading that was not known before."""
        return [(e, m) for e, m in self.settled if e.key in self._new]

    @property
    def disturbed(self) -> list[Experiment]:
        """The chains that no look has read undisturbed, or that looks do not agree about, or only one saw."""
        if self._once:
            return []
        return [e for e, m in self.settled if m.error in PASSING or e.key in self._once_seen]

    def look(self, most: int = LOOKS) -> None:
        """Measure the chains that are not known, twice; those that are disturbed, so often at most."""
        wanted = [*(e for e in self._experiments if e.key not in self._best), *self.disturbed]
        for _ in range(most):
            self._visit(wanted)
            wanted = self.disturbed
            if not wanted:
                return

    def look_again(self) -> bool:
        """Measure all chains once more, at another time, and those that this calls into question; whether
        what is known of a chain has changed.
        """
        before = dict(self._best)
        if not self._once:
            self._visit(self._experiments)
            self.look()
        return before != self._best

    def _visit(self, wanted: Sequence[Experiment]) -> None:
        for batch in Sampler(self._backend).measure(wanted):
            for experiment, measurement in batch:
                self._note(experiment, measurement)

    def _note(self, experiment: Experiment, found: Measurement) -> None:
        """Keep what looks agree about; of a chain that is cut what is less disturbed, or shorter."""
        key = experiment.key
        known = self._best.get(key)
        looks = self._looks.setdefault(key, [])
        looks.append(found)
        best = min(looks, key=_badness) if experiment.variant else _agreed_by(looks)
        if known is None and not experiment.variant:
            self._once_seen.add(key)
        else:
            self._once_seen.discard(key)
        if known is None or best.verdict != known.verdict or not _are_near(best.cycles, known.cycles):
            self._best[key] = best
            self._new.add(key)


def _agreed_by(looks: Sequence[Measurement]) -> Measurement:
    """What looks at a chain agree about: all, or two thirds of at least three; the least, as one whose rounds
    disagree, where they do not agree. Of looks that were disturbed one can only confirm the others, or three
    each other, as far as none took less.
    """
    best = min(looks, key=_badness)
    usable = [look for look in looks if look.usable]
    calm = [look for look in usable if look.error not in PASSING]
    if not calm:
        return _least_of(usable) or best
    if len(looks) == 1:
        return best
    some = [look.cycles for look in (calm if len(calm) > 1 else usable)]
    enough = 2 if len(calm) == 1 or _are_near(min(some), max(some)) else max(3, len(some) * 2 / 3)
    for look in sorted(calm, key=_badness):
        if sum(_are_near(look.cycles, cycles) for cycles in some) >= enough:
            return look
    spread = max(some) - min(some)
    return msgspec.structs.replace(best, verdict=UNSTABLE, spread=spread, error=DISAGREE)


def _least_of(looks: Sequence[Measurement]) -> Measurement | None:
    """The least of disturbed looks, where two others say the same: disturbance makes none shorter."""
    ordered = sorted(looks, key=lambda look: look.cycles)
    near = [look.cycles for look in ordered if _are_near(look.cycles, ordered[0].cycles)]
    if len(near) < 3:
        return None
    return msgspec.structs.replace(ordered[0], verdict=STABLE, spread=near[2] - near[0], error="")


def _badness(found: Measurement) -> tuple[int, float]:
    return FROM_BEST.index(found.verdict), found.cycles


def _are_near(one: float, other: float) -> bool:
    """Whether two readings of a chain are the same but for noise."""
    return abs(one - other) <= _noise(max(one, other))


def _noise(cycles: float) -> float:
    """What noise moves a chain of so many cycles by."""
    return min(max(BELOW, TOLERANCE * cycles), MOVED)


def _measurement(record: Record) -> Measurement:
    """What a store keeps of a reading, as far as links need it."""
    return Measurement(record.cycles, record.spread, record.verdict, 0, 0, (), error=record.error)


def plain_sequences(planner: Planner, executes: Executes) -> list[Experiment]:
    """Independent instances of the first simple instruction that the CPU executes: NOPs are slow on some."""
    names = instruction_set(planner.table.isa).roles.simple.get(GENERAL, ())
    form = next((planner.table[n] for n in names if n in planner.table and executes(planner.table[n])), None)
    if form is None:
        return []
    try:
        kernel = planner.instances(form, LENGTHS[0]).kernel
    except Unmeasurable:
        return []
    kernel = msgspec.structs.replace(kernel, flags=CANARY | FAST)
    return [Experiment(PLAIN, LINK, "", "", "", kernel, len(kernel.body))]


def fastest(settled: Sequence[tuple[Experiment, Measurement]]) -> dict[str, LinkLatency]:
    """Cycles per NOP and per simple instruction, under their keys."""
    usable = {e.form: m.cycles / e.count for e, m in settled if e.form in (NOP, PLAIN) and m.usable}
    return {name: LinkLatency(value, value, value) for name, value in usable.items()}


def least_lawful(links: Mapping[str, LinkLatency]) -> float:
    """Cycles that no instruction takes less than: those of what is as fast as any, but for errors."""
    return LESS * min((links[name].value for name in (NOP, PLAIN) if name in links), default=0.0)


def solve_links(
    settled: Sequence[tuple[Experiment, Measurement]], isa: str, real: bool = True
) -> dict[str, LinkLatency]:
    """Latencies of the links whose chains carry a dependency.

    A link that only chains without one tell of takes at most what its own chain does. Raises MeasurementError
    where not even the reference chains could be measured, unless an emulator's times
    (not `real`) mean nothing anyway.
    """
    chains = {e.form: (e, m) for e, m in settled if e.quantity == LINK and not e.variant}
    controls = {e.form: m for e, m in settled if e.quantity == LINK and e.variant == "cut"}
    equations = []
    hidden = []
    for name, (experiment, measurement) in chains.items():
        control = controls.get(name)
        if not measurement.usable or control is None or not control.usable:
            continue
        least = sum(lower_bound(key, isa) for key in experiment.links)
        shown = min((1 - LESS) * measurement.cycles, 1 - ABOVE)  # in order a cut saves no more than a cycle
        if control.cycles > measurement.cycles - shown and measurement.cycles > 1.1 * least:
            hidden.append(_equation(experiment, measurement))
            continue  # cutting the link changes nothing: it carries no dependency
        if measurement.cycles < LESS * least:
            continue  # faster than the law allows: something in it is eliminated
        equations.append(_equation(experiment, measurement, name))
    if real and not any(set(e.keys) == {"r>r"} for e in equations):
        raise _without_reference(chains, controls)
    return _with_doubts(_solved(equations, hidden, isa), equations, hidden, isa)


def _solved(equations: Sequence[Equation], hidden: Sequence[Equation], isa: str) -> dict[str, LinkLatency]:
    """Latencies by chains that carry a dependency, and by those of which it is `hidden`."""
    chosen = _agreeing(equations, list(_undelayed(equations, isa)), isa)
    found = LatencySystem([*chosen, *_uncut(chosen, hidden, isa)], isa).solve()
    proved = {key for equation in chosen for key in equation.keys}
    return {key: link if key in proved else _at_most(link, key, isa) for key, link in found.items()}


def _with_doubts(
    found: dict[str, LinkLatency], equations: Sequence[Equation], hidden: Sequence[Equation], isa: str
) -> dict[str, LinkLatency]:
    """The links, those disputed that chains whose looks agree do not tell the same of by themselves."""
    sure, rest = ([e for e in some if e.is_sure] for some in (equations, hidden))
    if len(sure) == len(equations) and len(rest) == len(hidden):
        return found
    alone = _solved(sure, rest, isa) if sure else {}
    return {
        key: link
        if key in alone and abs(alone[key].value - link.value) < MOVED
        else msgspec.structs.replace(link, disputed=True)
        for key, link in found.items()
    }


def _equation(experiment: Experiment, found: Measurement, name: str = "") -> Equation:
    return Equation(experiment.links, _whole(found), name, found.verdict == STABLE)


def _without_reference(
    chains: Mapping[str, tuple[Experiment, Measurement]], controls: Mapping[str, Measurement]
) -> MeasurementError:
    """What to say where no chain of sign extensions shows that it is one: noise, or times of no core."""
    for name, (experiment, found) in chains.items():
        cut = controls.get(name)
        if set(experiment.links) == {"r>r"} and found.usable and cut and cut.usable:
            return MeasurementError(
                f"a chain of sign extensions takes {found.cycles:.2f} cycles, and {cut.cycles:.2f} with its "
                "dependency cut",
                "a core needs a cycle for each, and less without it: such times are an emulator's, or noise "
                "(`cyclescope host`)",
            )
    return MeasurementError(
        "not even a chain of sign extensions could be measured", "see `cyclescope host` for the noise here"
    )


def _whole(found: Measurement) -> float:
    """A chain takes a whole number of cycles, unless it is an average of several paths.

    So the links of two runs are the same, whose readings are not. Of rounds that differ, it is the one number
    between the least and the most.
    """
    noise = _noise(found.cycles)
    above = noise if found.verdict == STABLE else noise + found.spread
    least, most = math.ceil(found.cycles - noise), math.floor(found.cycles + above)
    return float(least) if least == most else found.cycles


def _undelayed(equations: Sequence[Equation], isa: str) -> Iterator[Equation]:
    """Of a chain through memory and the same one spaced, the one in which the links take less.

    Loads that are repeated, because the data that they wait for are not there yet, delay the other.
    """
    named = {equation.name: equation for equation in equations}
    alone = {e.keys[0]: e.cycles / len(e.keys) for e in equations if len(set(e.keys)) == 1}
    for equation in equations:
        name = equation.name.removesuffix(SPACED)
        bare, with_others = named.get(name), named.get(name + SPACED)
        if bare and with_others:
            fill = with_others.keys[-1]
            others = LINK_SPACING * alone.get(fill, lower_bound(fill, isa))
            if equation is not (bare if bare.cycles <= with_others.cycles - others else with_others):
                continue
        yield equation


def _agreeing(every: Sequence[Equation], chosen: Sequence[Equation], isa: str) -> list[Equation]:
    """The chosen equations, but for those of which the other one of two contradicts the others less.

    Loads may also take less with others on their way: where no other chain says so, they are the exception.
    """
    found = list(chosen)
    left = _contradiction(found, isa)
    for other in [equation for equation in every if equation not in chosen]:
        if left < HALF:
            break
        name = other.name.removesuffix(SPACED)
        tried = [other if equation.name.removesuffix(SPACED) == name else equation for equation in found]
        now = _contradiction(tried, isa)
        if now < left - HALF:
            found, left = tried, now
    return found


def _contradiction(equations: Sequence[Equation], isa: str) -> float:
    return LatencySystem(equations, isa).contradiction()


def _uncut(equations: Sequence[Equation], hidden: Sequence[Equation], isa: str) -> Iterator[Equation]:
    """Chains of a link, or of one there and back, that nothing else tells of though cutting changes nothing.

    A core that issues in order waits for what cuts a chain as for the chain itself. Where no core does, a
    link that carries no dependency has no latency.
    """
    known = {key for equation in equations for key in equation.keys}
    for equation in hidden if instruction_set(isa).links.cut_hides else ():
        if len(set(equation.keys)) <= 2 and not known.issuperset(equation.keys):
            yield equation


def _at_most(link: LinkLatency, key: str, isa: str) -> LinkLatency:
    """A link whose chain was not seen to carry a dependency."""
    return LinkLatency(link.value, lower_bound(key, isa), link.most, UNCUT)
