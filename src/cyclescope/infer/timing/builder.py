"""From the measured kernels of one form to its timing: throughput and a latency per operand pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from cyclescope.infer.timing.choice import (
    against_law,
    as_long_as_filled,
    best_looks,
    by_pairs,
    doubt,
    is_disproved,
    is_disputed,
    is_one_or_none,
    is_proof,
    is_too_short,
    left_out,
    preferred,
)
from cyclescope.infer.timing.latency_system import ONE_CYCLE, UNCUT, LinkLatency
from cyclescope.infer.timing.links import KnownLinks
from cyclescope.infer.timing.overwriting import LEAST_LATENCY, output_latency
from cyclescope.infer.timing.results import (
    BELOW,
    EXACT,
    HALF,
    INTERVAL,
    LESS,
    UNMEASURED,
    UPPER_BOUND,
    FormTiming,
    Latency,
    Throughput,
    confidence,
    exceptions_noted,
    first_error,
    nearest,
    rounded,
    unfinished,
    whole,
    without_value,
)
from cyclescope.infer.timing.several import (
    REPEATED,
    doubted,
    over_values,
    with_flags_together,
    with_repeated_loads,
)
from cyclescope.infer.timing.throttling import TELLING, with_room
from cyclescope.infer.timing.throughput import ThroughputBuilder, limit_of
from cyclescope.isa.dataflow import Pair, is_in_memory, is_of_itself, is_old, overwritten, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_sets, streams_out
from cyclescope.kernel.variant import LINKED, SPEEDS, Kind
from cyclescope.measure.record import FAILED, STABLE, Record
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.remarks.remark import NOTHING, Remark
from cyclescope.remarks.timing import Cause, Idiom, Timing, cause_of, withheld

_CONSUMERS = {Kind.INTEGER_LINK: "integer", Kind.FP_LINK: "fp"}  # of a result, and their names
_MEMORY = 300  # cycles: longer than any way through the caches


class TimingBuilder:
    """Infers the timing of one form from its records.

    `missing` says why a pair (the throughput: "", "") has no kernel, or "". `unmeasured` has pairs of which
    some kernels are not measured, how many of how many: others would not do in place of them. `share` is
    the part of a sequence's instances that have one destination.
    """

    def __init__(
        self,
        form: InstructionForm,
        records: Sequence[Record],
        links: Mapping[str, LinkLatency],
        missing: Callable[[str, str], str],
        unmeasured: Mapping[tuple[str, str], tuple[int, int]] | None = None,
        share: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.form, self._share = form, share
        self.links = links if isinstance(links, KnownLinks) else KnownLinks(links)
        self.missing = missing
        self.unmeasured = unmeasured or {}
        self._nets: dict[int, float] = {}
        self._sets_length = any(op.fixed == "VL" and op.write for op in form.operands)
        self.streams: list[Record] = []
        self.chains: dict[tuple[str, str], list[Record]] = {}
        self.throttled: dict[tuple[str, str], list[float]] = {}  # cycles per instance
        self.longer: dict[tuple[str, str], Record] = {}
        self.filled: set[tuple[str, str]] = set()  # pairs that a filled chain tells
        self._looks = by_pairs(records)
        for record in best_looks(records):
            if record.quantity == "throughput":
                self.streams.append(record)
            elif record.kind is Kind.THROTTLED:
                if record.verdict in TELLING and not is_in_memory(record.source):
                    self.throttled.setdefault((record.source, record.target), []).append(record.per_instance)
            elif record.kind is Kind.LONGER:
                self.longer[record.source, record.target] = record
            elif record.quantity == "latency":
                self.chains.setdefault((record.source, record.target), []).append(record)

    def build(self, status: str) -> FormTiming:
        """The timing; `status` is what legality found (`ok`, `SIGILL`, ...)."""
        if status != "ok":
            return FormTiming(self.form.id, self.form.names, status, None, ())
        every_chain = [r for found in self.chains.values() for r in found]
        chains = [r for r in every_chain if not r.links and not is_old(r.source)]
        builder = ThroughputBuilder(self.form, self.streams, chains, self.links, lambda: self.missing("", ""))
        throughput = builder.throughput(unfinished(self.unmeasured.get(("", ""))))
        every = pairs(self.form)
        found = with_repeated_loads([self.latency(pair, throughput) for pair in every], every)
        latencies = with_flags_together(found)
        outputs = tuple(self.output(pair) for pair in overwritten(self.form))
        throughput = builder.limited_by_registers(throughput, (*latencies, *outputs), self._share)
        return FormTiming(
            self.form.id, self.form.names, status, throughput, (*latencies, *outputs),
            self._idiom(latencies), exceptions_noted((*self.streams, *every_chain)),
        )  # fmt: skip

    # --- latency ---------------------------------------------------------------------------------

    def output(self, pair: Pair) -> Latency:
        """Latency from a destination's old value."""
        source, target = pair.source.name, pair.target.name
        if why := unfinished(self.unmeasured.get((source, target))):
            return without_value((source, target), why, unfinished=True)
        records = self.chains.get((source, target), ())
        return output_latency(pair, records, self.streams, self.links, lambda: self.missing(source, target))

    def latency(self, pair: Pair, throughput: Throughput) -> Latency:
        """Latency of one pair."""
        source, target = pair.source.name, pair.target.name
        records = self.chains.get((source, target), [])
        if why := unfinished(self.unmeasured.get((source, target))):
            return without_value((source, target), why, unfinished=True)
        usable = [r for r in records if r.verdict != FAILED]
        if not usable:
            return self._without(pair, records)
        kinds = [(r, r.kind) for r in usable]
        speeds = {r.variant: r for r, kind in kinds if kind in SPEEDS}
        base = [r for r, kind in kinds if kind not in SPEEDS and kind not in LINKED]
        base += [r for r, kind in kinds if kind in (Kind.LINK, Kind.FILLED)]
        every, longer = base, self.longer.get((source, target))
        base = as_long_as_filled(every, longer, self._net)
        if not base:
            return self._by_value(pair, speeds, throughput) if speeds else self._without(pair, records)
        chosen = self._preferred(base, throughput)
        if chosen.kind is Kind.FILLED:
            self.filled.add((source, target))
        otherwise = doubt(chosen, base, self._net, lambda record: self._hidden(record, throughput))
        otherwise = otherwise or left_out(chosen, every, longer, self._net)
        main = doubted(self._single(pair, chosen, throughput), otherwise)
        main = with_room(self._with_bypass(main, usable), self.throttled.get((source, target), ()))
        return self._with_slow(main, speeds.get(Kind.SLOW), pair, throughput)

    def _without(self, pair: Pair, records: Sequence[Record]) -> Latency:
        """A pair of which no chain that tells its latency is there."""
        names = pair.source.name, pair.target.name
        known = pair.excluded or self.missing(*names) or first_error(records)
        return without_value(names, known or UNMEASURED, unfinished=not known)

    def _preferred(self, base: Sequence[Record], throughput: Throughput) -> Record:
        """The chain that tells most: one that is too short, where others show what is not cut."""
        if len(base) == 1:
            return base[0]
        if proofs := sorted(filter(self._is_proof, base), key=lambda record: record.verdict != STABLE):
            return proofs[0]
        hidden = {id(r) for r in base if self._hidden(r, throughput)}
        return preferred(base, self._net, lambda record: id(record) in hidden)

    def _is_proof(self, record: Record) -> bool:
        """Whether a chain is surely too short: from flags with others cut, of others by a cycle and more."""
        if not record.links or self.links.along(record.links).lost:
            return False
        most = self._subtracted(record)[2]
        if record.source.startswith("flags.") and record.kind is Kind.LINK:
            return is_proof(record, most, self._rounds(record))
        return most < -ONE_CYCLE and is_too_short(record, most)

    def _rounds(self, record: Record) -> list[float]:
        """Latencies by each round of a chain."""
        return [self._net_of(record, cycles) for cycles in record.rounds]

    def _hidden(self, record: Record, throughput: Throughput) -> bool:
        """Whether the chain is no longer than the throughput, so that it may not be what is seen."""
        if record.source.startswith("flags.") and self._keeps_flags:  # a latency of 0 is lawful there
            slowest = max((r.per_instance for r in self.streams if r.verdict != FAILED), default=0.0)
            return LESS * record.per_instance < slowest
        alone = self._is_base(record) or self.form.configuration is not None
        limit = (throughput.value or 0.0) if alone else limit_of(throughput)
        return self._net(record) > 1.2 and LESS * record.per_instance < limit

    def _is_busy(self, record: Record) -> bool:
        """Whether what fills a chain may keep its unit busy for as long as it takes: vectors of RISC-V do."""
        if record.kind is not Kind.FILLED:
            return False
        uncut = any(self.links[key].convention == UNCUT for key in record.links)
        return uncut or self.form.configuration is not None

    def _is_base(self, record: Record) -> bool:
        """Whether a chain is that of a base that moves on, which sequences have as well."""
        return record.source == record.target in self._bases

    @cached_property
    def _bases(self) -> frozenset[str]:
        operands = self.form.operands
        return frozenset(op.name for op in operands if op.is_register and op.role == "base")

    @cached_property
    def _keeps_flags(self) -> bool:
        """Whether the form reads flags only because a count of 0 leaves them as they are."""
        counted = any(op.fixed == "CL" for op in self.form.operands)
        return counted and not self.form.mnemonic.startswith("RC")

    def _net(self, record: Record) -> float:
        found = self._nets.get(id(record))
        if found is None:
            found = self._nets[id(record)] = self._net_of(record, record.cycles)
        return found

    def _net_of(self, record: Record, cycles: float) -> float:
        """Latency by so many cycles of a chain."""
        return (cycles - self.links.along(record.links).value) / record.count

    def _subtracted(self, record: Record) -> tuple[float, float, float, str]:
        """Latency, its proved bounds, and the conventions it rests on."""
        path = self.links.along(record.links)
        if path.lost:
            raise KeyError(", ".join(path.lost))
        value = (record.cycles - path.value) / record.count
        most = (record.cycles - path.least) / record.count
        least = (record.cycles - path.most) / record.count
        return value, least, most, path.convention

    def _single(self, pair: Pair, record: Record, throughput: Throughput) -> Latency:
        source, target = pair.source.name, pair.target.name
        try:
            value, least, most, convention = self._subtracted(record)
        except KeyError as lost:
            return without_value((source, target), Timing.LOST_LINK.of(str(lost)))
        spread = rounded(record.spread / record.count)
        kind, remark = self._latency_kind(pair, record, (value, most), throughput)
        if kind is None:
            return without_value((source, target), remark, spread)
        free = cause_of(remark) in (Cause.ELIMINATED, Cause.INDEPENDENT)
        measured, error = rounded(value), spread if record.verdict == STABLE else 0.0
        value = 0.0 if free else whole(value, record.per_instance, error, bool(record.links))
        value = 1.0 if cause_of(remark) is Cause.CARRIED else value
        bounds = None
        if convention and most - least > HALF and not free:
            low = 0.0 if kind == UPPER_BOUND else max(min(least, value), 0.0)
            bounds = (rounded(low), rounded(max(most, value)))
        low, high = 0.0 if kind == UPPER_BOUND else rounded(value), rounded(value)
        if kind == EXACT and high % 1 and high > 1:
            remark = (Timing.AVERAGE if record.links else Timing.AVERAGE_ALONE).of()
            if record.links:  # helpers may be in the way: from the average to the nearest whole number
                kind, (low, high) = INTERVAL, sorted((high, nearest(high)))
        return Latency(
            source, target, low, high, kind, spread, convention=convention if bounds else "",
            bounds=bounds, note=remark.text, confidence=self._trust(record, value), measured=measured,
            cause=cause_of(remark),
        )  # fmt: skip

    def _latency_kind(
        self, pair: Pair, record: Record, found: tuple[float, float], throughput: Throughput
    ) -> tuple[str | None, Remark]:
        """Kind and note; kind None with the reason where a law withholds the value."""
        value = found[0]
        if value < LEAST_LATENCY:
            if not record.links and self._is_in_every_instance(pair):
                return self._in_part_of_a_cycle(record)
            longer = LESS * record.per_instance >= (throughput.value or math.inf)  # than without a dependency
            return self._below_law(pair, record, found, record.kind is Kind.FILLED and longer)
        if pair.target.flag == "AF" or pair.source.flag == "AF":
            sure = value < 1.2 and not self._hidden(record, throughput)
            return EXACT if sure else UPPER_BOUND, Timing.ADJUST_FLAG.of()
        if record.links and self._sets_length:
            return UPPER_BOUND, Timing.VECTOR_LENGTH.of()
        if pair.target.part == "data" and "vsib" in self.form.attributes:
            return UPPER_BOUND, REPEATED
        if value > _MEMORY and streams_out(self.form):
            return None, withheld(Timing.THROUGH_MEMORY.of(value))
        if pair.source.part == "flag" and self.form.flags_read.bit_count() > 1 and value > 1 + BELOW:
            return UPPER_BOUND, Timing.FLAGS_TOGETHER.of()
        if self._hidden(record, throughput) or self._is_busy(record):
            return UPPER_BOUND, Timing.HIDDEN.of()
        return EXACT, NOTHING

    def _trust(self, record: Record, value: float) -> str:
        """Confidence: an average of several paths (no whole number) is not what one of them takes."""
        looks, found = self._looks[record.source, record.target], confidence(record)
        doubtful = found == HIGH and (rounded(value) % 1 or is_disputed(record, looks, self.links))
        return MEDIUM if doubtful else found

    def _below_law(
        self, pair: Pair, record: Record, found: tuple[float, float], carried: bool
    ) -> tuple[str | None, Remark]:
        """Surely less than a cycle, even without conventions, is proof that there is no dependency.

        Not where a chain is `carried` through the form, as one that takes longer than the form alone is: then
        its links take less there than alone, but by no more than links lose, or nothing is known.
        """
        value, most = found
        if carried and most >= HALF and value >= 1 - ONE_CYCLE:
            return EXACT, Timing.CARRIED.of()
        if is_too_short(record, most):
            sure = is_disproved(pair, self.streams)
            doubt = withheld(Timing.ONE_OR_NONE.of(value, record.spread / record.count))
            if is_one_or_none(record, most, self._rounds(record)) and not sure:
                return None, doubt
            moves = tuple(name for record in instruction_sets() for name in record.roles.moves)
            move = self.form.mnemonic.startswith(moves) and "string" not in self.form.attributes
            if (move and pair.source != pair.target) or is_of_itself(self.form, pair):
                if is_in_memory(pair.target.name):  # what is stored has no name
                    return None, withheld(Timing.AGAINST_LAW.of(value))
                return EXACT, Timing.ELIMINATED.of()
            kept = pair.source.part == "flag" and self._keeps_flags
            if carried and most > -ONE_CYCLE and not kept and not sure:
                return None, doubt
            return EXACT, (Timing.INDEPENDENT_IF_COUNTED if kept else Timing.INDEPENDENT).of()
        return None, withheld(against_law(record, value))

    def _is_in_every_instance(self, pair: Pair) -> bool:
        """Whether source and target are one register that the form always has: NZCV. Then sequences have the
        dependency, too, and a chain as long as they are is no proof that there is none.
        """
        operand = pair.source.operand
        return operand == pair.target.operand >= 0 and bool(self.form.operands[operand].fixed)

    def _in_part_of_a_cycle(self, record: Record) -> tuple[str | None, Remark]:
        """Some cores execute two dependent instructions in a cycle: what is slower than with the dependency
        cut is a latency.
        """
        if record.per_instance <= 0:
            return None, withheld(Timing.AGAINST_LAW.of(record.per_instance))
        cut = [r.per_instance for r in self.streams if r.kind is Kind.BROKEN and r.verdict != FAILED]
        if cut and LESS * record.per_instance > min(cut):
            return EXACT, Timing.PART_OF_A_CYCLE.of()
        return UPPER_BOUND, Timing.HIDDEN.of()

    def _with_bypass(self, latency: Latency, usable: Sequence[Record]) -> Latency:
        if latency.min is None:
            return latency
        bypass = {}
        for record in usable:
            link = self.links.get(record.links[0]) if record.kind in _CONSUMERS else None
            if link is not None and not link.disputed:
                value = whole(record.per_instance - link.value, record.per_instance)
                bypass[_CONSUMERS[record.kind]] = rounded(value)
        return msgspec.structs.replace(latency, bypass=bypass) if bypass else latency

    def _with_slow(
        self, latency: Latency, slow: Record | None, pair: Pair, throughput: Throughput
    ) -> Latency:
        if slow is None or latency.min is None or latency.max is None:
            return latency
        other = self._single(pair, slow, throughput)
        if other.max is None:
            return latency
        return over_values({str(Kind.FAST): latency, str(Kind.SLOW): other})

    def _by_value(self, pair: Pair, speeds: Mapping[str, Record], throughput: Throughput) -> Latency:
        """Latency of an integer division: one chain per class of values."""
        found = {name: self._single(pair, record, throughput) for name, record in speeds.items()}
        return over_values({n: f for n, f in found.items() if f.max is not None} or found)

    # --- idioms and notes ------------------------------------------------------------------------

    def _idiom(self, latencies: Sequence[Latency]) -> str:
        """Whether one register for both sources breaks the dependency.

        Less than a cycle in a row proves it. More may be other values, as of LSL, or a rotation made of SHLD.
        A form that writes another register file, as comparisons write masks, is in no row: of it only that it
        needs no unit shows.
        """
        same = next((r for r in self.streams if r.kind is Kind.SAME), None)
        values = [
            lat.max for lat in latencies if lat.target == "op1" and lat.max is not None and lat.max > 0.5
        ]
        if same is None or same.verdict == FAILED or not values:
            return ""
        if same.per_instance > min(0.9 * min(values), LEAST_LATENCY):
            return ""
        others = [r.per_instance for r in self.streams if r.kind in (Kind.PLAIN, Kind.UNROLLED, Kind.BROKEN)]
        free = others and same.per_instance < 0.8 * min(others)
        return Idiom.ZERO if free else Idiom.BREAKING if self._is_in_a_row else ""

    @cached_property
    def _is_in_a_row(self) -> bool:
        """Whether one register for all sources is what the form writes, too."""
        read = {op.cls for op in self.form.operands if op.is_register and op.read}
        return any(op.is_register and op.write and op.cls in read for op in self.form.operands)
