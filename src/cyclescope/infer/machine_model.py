"""The machine model made from a store's measurements.

Only what was measured enters it: a known machine gives names to ports, no numbers. What is not
determined is left out, with what is proved of it (`ranges`) or a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from cyclescope import __version__
from cyclescope.errors import StoreError
from cyclescope.infer.front_end.fetch import bytes_per_cycle
from cyclescope.infer.gaps import Gaps
from cyclescope.infer.ports.approach import Approach, read_approach
from cyclescope.infer.ports.builder import PortBuilder, PortUsage
from cyclescope.infer.ports.front_end import EVEN
from cyclescope.infer.ports.resources import UNTOLD, port_resources, with_resources
from cyclescope.infer.readout import Found, Readout
from cyclescope.infer.refute.calibration import Verdicts
from cyclescope.infer.scheduler import NOT_TOLD, scheduling_of
from cyclescope.infer.timing.links import stored_links
from cyclescope.infer.timing.results import EXACT, INTERVAL, UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.kernel.cycle import NOP
from cyclescope.kernel.variant import Kind
from cyclescope.measure.sampling import rejections
from cyclescope.measure.sessions import PROBE
from cyclescope.measure.store import Store
from cyclescope.model.check import impossible_forms
from cyclescope.model.facts import SCHEDULER, Fact
from cyclescope.model.machine import ASSUMED, MEASURED, Core, FormCost, Halves, MachineModel, Provenance
from cyclescope.remarks.model import Cost, Origin
from cyclescope.remarks.remark import LISTED, NOTHING, Remark, together
from cyclescope.remarks.timing import Cause, Idiom

_IDIOMS: dict[str, str] = {Idiom.ZERO: "zero", Idiom.BREAKING: "breaking"}  # as models have them
_UNKNOWN = PortUsage(None, None)


def build_model(store: Store, table: Table, known: MachineModel | None = None) -> MachineModel:
    """The measured model of the machine that a store belongs to.

    `known` is a machine that gives its ports their names where they match, and nothing else. Raises
    StoreError where the store has no value of any form, or was filled under emulation.
    """
    refuse_emulated(store)
    readout = Readout(store, table, known)
    return model_of(readout, readout.each())


def refuse_emulated(store: Store) -> None:
    """Raise StoreError for a store that was filled under emulation."""
    if any(session.get("real_time") is False for session in store.sessions()):
        raise StoreError(
            f"{store.path} was measured under emulation",
            "cycles of an emulator are none of a machine: measure on one",
        )


def model_of(readout: Readout, found: Iterable[Found]) -> MachineModel:
    """The model that a readout of all forms makes, whose results are `found`. Raises StoreError."""
    store, table = readout.store, readout.table
    gaps = Gaps()
    some: list[Found] = []
    for timing, usage in found:
        gaps.add(timing)
        if timing.status == "ok":
            some.append((timing, usage))
    ports = readout.ports
    every = {timing.id: form_cost(timing, usage) for timing, usage in some}
    costs = {name: cost for name, cost in every.items() if _has_numbers(cost)}
    if not costs:
        raise StoreError(f"{store.path} has no value of any form", "run {measure} first")
    capacities: Mapping[str, float] = {}
    if ports is not None:
        late = frozenset(timing.id for timing, usage in some if usage.late)
        told = readout.verdicts
        shares = told.shares if told else UNTOLD
        costs, capacities = _proved(*with_resources(costs, ports, late, shares), ports, told)
    core = _core(costs, table, readout)
    names = ports.names if ports else ()
    provenance = _provenance(store, ports, core, gaps)
    calibration = readout.verdicts.calibration if ports is not None and readout.verdicts else None
    model = _possible(MachineModel(
        store.machine, table.isa, provenance, core, names, costs, capacities, calibration=calibration,
    ))  # fmt: skip
    return with_facts(model, store.facts(), table)


def with_facts(model: MachineModel, facts: Iterable[Fact], table: Table) -> MachineModel:
    """The model with what probes found of its core in place of what it had.

    How the core schedules is computed where the readings that tell it are others than before.
    """
    asked = tuple(fact for fact in facts if fact.is_resolved)
    found = msgspec.structs.replace(model, facts=asked)
    if _of_scheduler(asked) == _of_scheduler(model.facts):
        return found
    plain = msgspec.structs.replace(found, core=NOT_TOLD.of(found.core))
    way = NOT_TOLD if plain.core.in_order else scheduling_of(plain, asked, table)
    return msgspec.structs.replace(plain, core=way.of(plain.core))


def _of_scheduler(facts: Iterable[Fact]) -> dict[str, Fact]:
    return {fact.subject: fact for fact in facts if fact.probe == SCHEDULER}


def _possible(model: MachineModel) -> MachineModel:
    """Without the forms whose readings no machine can have, which is told: else all would be refused."""
    wrong = impossible_forms(model)
    if not wrong:
        return model
    told = Origin.IMPOSSIBLE.of("; ".join(wrong.values())).text
    provenance = msgspec.structs.replace(model.provenance, missing=(*model.provenance.missing, told))
    forms = {name: cost for name, cost in model.forms.items() if name not in wrong}
    return msgspec.structs.replace(model, forms=forms, provenance=provenance)


def _takers(costs: Mapping[str, FormCost]) -> dict[str, list[str]]:
    """The forms with known ports that take each resource."""
    found: dict[str, list[str]] = {}
    for form, cost in costs.items():
        for name in cost.resources if cost.operations is not None else ():
            found.setdefault(name, []).append(form)
    return found


def _proved(
    costs: dict[str, FormCost],
    capacities: Mapping[str, float],
    ports: PortBuilder,
    verdicts: Verdicts | None,
) -> tuple[dict[str, FormCost], Mapping[str, float]]:
    """Without the units that fresh mixes did not prove."""
    if verdicts is None:
        return costs, capacities
    sets, takers = set(port_resources(ports)), _takers(costs)
    proved = verdicts.proved({name: forms for name, forms in takers.items() if name not in sets})
    kept = {name for name in capacities if name in sets or name in proved}
    found = {
        form: msgspec.structs.replace(
            cost, resources={name: cycles for name, cycles in cost.resources.items() if name in kept}
        )
        for form, cost in costs.items()
    }
    return found, {name: capacity for name, capacity in capacities.items() if name in kept}


# --- forms -------------------------------------------------------------------------------------------


def form_cost(timing: FormTiming, usage: PortUsage = _UNKNOWN) -> FormCost:
    """What a form costs, from its timing and its port usage.

    Latencies and throughput have a value where the measurements determine one; a latency that depends
    on the operands' values, an interval and an upper bound are ranges. A latency that rests on a
    convention has its value and the range that is proved without it. Of a destination's old value only a
    dependency that is shown is told.
    """
    known = [lat for lat in timing.latencies if not is_old(lat.source) or _is_false_dependency(lat)]
    value, remark = _throughput(timing)
    trust = timing.throughput.confidence if timing.throughput and value is not None else ""
    return FormCost(
        usage.slots,
        usage.operations,
        {_pair(lat): float(lat.max) for lat in known if lat.max is not None and _is_determined(lat)},
        value,
        microcoded=usage.microcoded,
        eliminated=_is_eliminated(timing, usage),
        idiom=_IDIOMS.get(timing.idiom, ""),
        confidence=usage.confidence or trust,
        alternatives=usage.alternatives,
        note=together((remark, usage.note, *timing.notes)),
        slot_range=usage.slot_range,
        spare=usage.spare,
        throughput_most=_throughput_most(timing),
        ranges={_pair(lat): found for lat in known if (found := _range(lat)) is not None},
        with_room={_pair(lat): lat.with_room for lat in known if lat.with_room is not None},
        throughput_error=0.0 if value is None else _throughput_error(timing),
        indexed_throughput=timing.throughput.indexed if timing.throughput and value is not None else None,
    )


def _has_numbers(cost: FormCost) -> bool:
    """Whether anything was measured of a form: some were only run once."""
    known = cost.throughput or cost.throughput_most or cost.latencies or cost.ranges
    return bool(cost.slots is not None or known)


def _throughput(timing: FormTiming) -> tuple[float | None, Remark]:
    """The reciprocal throughput where it is exact, and else what is known of it."""
    found = timing.throughput
    if found is None or found.value is None:
        return None, Cost.NO_THROUGHPUT.of(found.reason) if found and found.reason else NOTHING
    if found.kind == EXACT and found.value > 0:
        slow = found.variants.get(Kind.SLOW)
        return found.value, Cost.SLOW_OPERANDS.of(slow) if slow else NOTHING
    return None, (Cost.AT_MOST_AS if found.note else Cost.AT_MOST).of(found.value, found.note)


def _throughput_error(timing: FormTiming) -> float:
    """What looks at the throughput differ by."""
    return (timing.throughput and timing.throughput.spread) or 0.0


def _throughput_most(timing: FormTiming) -> float | None:
    """The least reciprocal throughput that was seen of a form which cannot be measured without others."""
    found = timing.throughput
    if found is None or found.value is None or found.kind != UPPER_BOUND:
        return None
    return found.value or None


def _pair(latency: Latency) -> str:
    return f"{latency.source}->{latency.target}"


def _is_false_dependency(latency: Latency) -> bool:
    """Whether a destination's old value is waited for: what is not shown is no part of a model."""
    return latency.kind in (EXACT, INTERVAL) and bool(latency.max)


def _is_determined(latency: Latency) -> bool:
    """Whether a pair has one value, or that of a chain alone."""
    return latency.kind == EXACT and (latency.min == latency.max or latency.with_room is not None)


def _range(latency: Latency) -> tuple[float, float] | None:
    """What is proved of a pair that is not determined without a convention, or that has two values.

    The most of a pair that has no value is that of the convention: predictions count with it.
    """
    if latency.min is None or latency.max is None:
        return None
    if latency.bounds is not None:
        least, most = latency.bounds
        return least, most if _is_determined(latency) else latency.max
    return None if latency.kind == EXACT and latency.min == latency.max else (latency.min, latency.max)


def _is_eliminated(timing: FormTiming, usage: PortUsage) -> bool:
    """Whether the renamer executes the form: its values take no time, and it needs no port."""
    known = [lat for lat in timing.latencies if lat.max is not None and not is_old(lat.source)]
    free = [lat.cause is Cause.ELIMINATED for lat in known]
    return any(free) and (not usage.operations if usage.operations is not None else all(free))


# --- the machine -------------------------------------------------------------------------------------


def _width(store: Store, approach: Approach) -> float:
    """Front-end slots per cycle: the fact, or the rate of what needs a slot and nothing else."""
    if approach.front_end.filler or approach.front_end.width_fact.is_told:
        return approach.width
    nop = stored_links(store).get(NOP)
    if nop is None or nop.value <= 0:
        raise StoreError(f"{store.path} does not tell the width of the front end", "measure NOP as well")
    rate = 1 / nop.value
    return float(round(rate)) if abs(rate - round(rate)) < EVEN * rate else rate


def _core(costs: Mapping[str, FormCost], table: Table, readout: Readout) -> Core:
    """The front end, and what plain moves tell of loads and of the way through memory."""
    store = readout.store
    approach = readout.approach or read_approach(store, table)
    facts = approach.front_end
    width = facts.width_fact
    roles = instruction_set(table.isa).roles
    loading, storing = table[roles.load], table[roles.store]
    loaded = _latency(costs, loading, "address", "register")
    parts = _latency(costs, storing, "register", "data"), _latency(costs, loading, "data", "register")
    return Core(
        _width(store, approach), load_latency=loaded, forward_latency=sum(parts) if all(parts) else 0,
        in_order=approach.in_order, whole=readout.ports is not None and facts.whole,
        width_kind=MEASURED if width.is_told else ASSUMED, width_source=width.proof,
        fetch=bytes_per_cycle(facts.fetch, width.slots) if facts.fetch else 0,
        lengths=tuple((one.bytes, one.cycles) for one in facts.fetch), nops=width.per_slot,
        narrow=facts.narrow,
        **core_of_mixes(readout.ports, readout.verdicts),
    )  # fmt: skip


def core_of_mixes(ports: PortBuilder | None, verdicts: Verdicts | None) -> dict[str, Any]:
    """Fields of a core that fresh mixes tell."""
    if ports is None or verdicts is None:
        return {}
    sets = ports.structure.sets
    turns = sorted({tuple(sorted(sets[name])) for name in verdicts.in_turn if name in sets})
    found: dict[str, Any] = {"evenness": verdicts.evenness, "in_turn": tuple(turns)}
    if (two := verdicts.halves) is not None and {two.first, two.second} <= sets.keys():
        first, second = (tuple(sorted(sets[name])) for name in (two.first, two.second))
        found["halves"] = Halves(first, second, two.astray, two.late)
    return found


def _latency(costs: Mapping[str, FormCost], form: InstructionForm, source: str, target: str) -> float:
    """The latency between a form's first operands of two parts, 0 where it is not known."""
    every = [p for p in pairs(form) if (p.source.part, p.target.part) == (source, target)]
    names = [f"{pair.source.name}->{pair.target.name}" for pair in every]
    return costs[form.id].latencies.get(names[0], 0) if form.id in costs and names else 0


def _provenance(store: Store, ports: PortBuilder | None, core: Core, gaps: Gaps) -> Provenance:
    sessions = store.sessions()
    sessions = [one for one in sessions if not _asks_alone(one)] or sessions
    last = sessions[-1] if sessions else {}
    brand = str(last.get("brand") or store.machine)
    return Provenance(
        MEASURED, Origin.SOURCE.of(brand).text, __version__, date=str(last.get("started", "")),
        missing=tuple(gap.text for gap in gaps.notes(store)),
        notes=(*map(str, _notes(ports, core, gaps)), *map(_conditions, sessions[-LISTED:])),
    )  # fmt: skip


def _asks_alone(session: Mapping[str, object]) -> bool:
    """Whether a session asked probes, and measured no form: the model's costs are not of its day."""
    asked = session.get("asked")
    return isinstance(asked, dict) and asked.get("what") == [PROBE]


def _notes(ports: PortBuilder | None, core: Core, gaps: Gaps) -> Iterator[Remark]:
    yield Origin.CONVENTIONS.of()
    if core.in_order:
        yield Origin.IN_ORDER.of()
    else:
        yield Origin.NO_PORTS.of() if ports is None else ports.judge.naming
        if ports is not None and gaps.without_ports:
            yield gaps.without_ports


def _conditions(session: Mapping[str, object]) -> str:
    """A session in one line."""
    parts = [Origin.MEASURED.of(session.get("started", "")).text, *_measured_on(session)]
    return ", ".join(parts)


def _measured_on(session: Mapping[str, object]) -> Iterator[str]:
    clock, frequency, samples = (session.get(key) for key in ("clock", "frequency", "samples"))
    if "cpu" in session:
        yield f"CPU {session['cpu']}"
    if clock:
        yield str(clock)
    if isinstance(frequency, (int, float)):
        yield f"{frequency / 1e9:.2f} GHz"
    if isinstance(samples, dict):
        yield rejections(*(int(samples.get(name, 0)) for name in ("accepted", "rejected", "disturbed")))
    if "load" in session:
        yield Origin.LOAD.of(session["load"]).text
    for name in ("kernel", "microcode"):
        if session.get(name):
            yield Origin.VERSION.of(name, session[name]).text
