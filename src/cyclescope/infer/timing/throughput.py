"""Throughput of a form from its sequences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import msgspec

from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.laws import is_of_ports, is_uneven, waits_for_its_own
from cyclescope.infer.timing.link_chains import least_lawful
from cyclescope.infer.timing.results import (
    AGREED,
    EXACT,
    FINEST,
    LESS,
    MUCH,
    TOLERANCE,
    UNMEASURED,
    UPPER_BOUND,
    Latency,
    Throughput,
    confidence,
    first_error,
    rounded,
)
from cyclescope.isa.dataflow import is_in_memory, is_old
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set, streams_out
from cyclescope.kernel.stream import MANY_BASES
from cyclescope.kernel.variant import ASIDE, INDEPENDENT, SPEEDS, Kind
from cyclescope.measure.record import ERRORS, FAILED, NOISY, STABLE, UNSTABLE, Record
from cyclescope.measure.sampling import AGREE
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.remarks.remark import NOTHING, Remark
from cyclescope.remarks.timing import Cause, Timing, cause_of, withheld

_WITHOUT_INDEX = (Kind.PLAIN, Kind.UNROLLED)  # the same sequence but for the address
_LATER = 0.15  # of one that chains limit which wait for a port now and then: at 7/8 of what ports do
_SEEN = 3  # rounds that show a state which is faster: two may be too short by chance


def limit_of(throughput: Throughput) -> float:
    """Cycles that a chain has to exceed to show a latency; 0 where the throughput itself is a chain's."""
    own = throughput.cause in (Cause.CUT, Cause.RESTORED, Cause.CHAINS)
    return (throughput.value or 0.0) if own or throughput.kind == EXACT else 0.0


class ThroughputBuilder:
    """Infers a form's throughput; `chains` are its latency chains without links."""

    def __init__(
        self,
        form: InstructionForm,
        streams: Sequence[Record],
        chains: Sequence[Record],
        links: Mapping[str, LinkLatency],
        missing: Callable[[], str],
    ) -> None:
        self.form = form
        self.streams = streams
        self.chains = chains
        self.links = links
        self.missing = missing
        self._streams_out = streams_out(form)

    def throughput(self, unfinished: str = "") -> Throughput:
        """Least time over all sequences of different registers; `unfinished` says why there is none yet."""
        usable = [r for r in self.streams if r.verdict != FAILED]
        main = [r for r in usable if r.kind not in ASIDE]
        variants: dict[str, float] = {}
        for r in usable:
            name = r.look.first
            variants[name] = min(rounded(r.per_instance), variants.get(name, math.inf))
        if unfinished or not main:
            known = "" if unfinished else self.missing() or first_error(self.streams)
            reason = unfinished or known or UNMEASURED
            return Throughput(None, None, None, variants, reason=reason, unfinished=not known)
        best = self._fastest_state(self._best(main), main)
        again = [r for r in main if r.look.again]
        if again and self._breaks_law(best):
            best = self._best(again)
        if self._breaks_law(best):
            why = withheld(Timing.FASTER_THAN_NOP.of(best.per_instance))
            return Throughput(None, None, None, variants, reason=why.text, cause=cause_of(why))
        if self._streams_out and not self._is_repeated(best, main):
            why = withheld(Timing.OTHERS_WRITE.of(best.per_instance))
            return Throughput(None, None, None, variants, reason=why.text, cause=cause_of(why))
        kind, remark = self._kind(best, main)
        trust = self._trust(best, main)
        indexed, others = self._by_index(usable)
        if kind == EXACT and not remark and (slower := self._in_flight(best, usable)):
            remark, trust = Timing.IN_FLIGHT.of(slower), MEDIUM if trust == HIGH else trust
        found = Throughput(
            rounded(best.per_instance), rounded(best.spread / best.count), kind, variants,
            remark.text, confidence=trust, cause=cause_of(remark),
            indexed=rounded(indexed) if indexed > MUCH * others else None,
        )  # fmt: skip
        return self._of_chains_at_most(found, best, main)

    def _by_index(self, usable: Sequence[Record]) -> tuple[float, float]:
        """Cycles with an index in the address, and the most of as many without one; 0 where not known."""
        sure = [r for r in usable if r.verdict == STABLE and not self._streams_out]
        indexed = [r for r in sure if r.kind is Kind.INDEXED]
        counts = {r.count for r in indexed}
        others = [r.per_instance for r in sure if r.kind in _WITHOUT_INDEX and r.count in counts]
        return (min(r.per_instance for r in indexed), max(others)) if indexed and others else (0.0, 0.0)

    def _in_flight(self, best: Record, usable: Sequence[Record]) -> float:
        """Cycles with an index where registers limit a load: an index, which keeps one a cycle more, makes it
        a little slower; or 0.

        How many are free may depend on what else the core runs: another throughput is as true. So what is
        compared is of one look.
        """
        loads = all(op.read and not op.write for op in self.form.operands if op.is_memory)
        takes = any(op.write for op in self.form.operands if op.is_register)
        by_ports = not is_uneven(best.per_instance) or best.per_instance > LESS
        if not loads or not takes or by_ports:
            return 0.0
        looks = [self._by_index([r for r in usable if r.look.again is again]) for again in (False, True)]
        return max((i for i, others in looks if AGREED * others < i < MUCH * others), default=0.0)

    def _trust(self, best: Record, main: Sequence[Record]) -> str:
        """Confidence: less where all others are clearly slower, one was seen to be faster at times, be it in
        a single round, or a look at the same sequence found another time: the core may be in a state that
        no reading shows. An index or slow values make nothing faster. Lines that are written to memory take
        what others leave of its bandwidth.
        """
        found = confidence(best)
        others = [r.per_instance for r in main if r is not best]
        alone = bool(others) and min(others) > AGREED * best.per_instance
        least = best.per_instance - _noise(best)
        faster = any(r.per_instance < least for r in main if r.verdict in (UNSTABLE, NOISY))
        again = any(_is_apart(r, best) for r in main if _is_of_same(r, best))
        shared = self._streams_out  # memory, with whatever else runs
        was_faster = any(_was_faster(r, best) for r in (best, *self.streams) if r.kind is not Kind.SAME)
        doubtful = alone or faster or again or shared or was_faster
        return MEDIUM if found == HIGH and doubtful else found

    def _is_repeated(self, best: Record, main: Sequence[Record]) -> bool:
        """Whether another sequence as long takes the same, and no rounds of one as long disagree:
        lines leave for memory, where others write.
        """
        longest = [r for r in main if r.count == best.count]
        others = [r for r in longest if r is not best]
        near = not others or any(_agree(r, best) for r in others)
        return near and all(r.verdict == STABLE for r in longest)

    def _breaks_law(self, best: Record) -> bool:
        """Whether a throughput is less than that of a NOP, or of what else is as fast as any."""
        return best.per_instance < least_lawful(self.links)

    def _best(self, main: Sequence[Record]) -> Record:
        """The least value that stands: a stable one, or one that a second sequence agrees with.

        A stable one that agrees tells the value: of two times, the lesser one may have been disturbed.
        Latency chains without links are sequences of the form, too. Where writes leave the cache, a short
        sequence stays within the buffers: the longest one counts.
        """
        if self._streams_out:
            return max(main, key=lambda r: (r.count, r.verdict == STABLE, -r.per_instance))
        least = min(r.per_instance for r in main)
        chains = [r for r in self._own_chains() if r.verdict == STABLE and r.per_instance < 0.97 * least]
        ordered = sorted((*main, *chains), key=lambda r: r.per_instance)
        for record, following in pairwise((*ordered, None)):
            if record is None or record.verdict == STABLE:
                break
            agreed = following is not None and following.per_instance < AGREED * record.per_instance
            if record.verdict == UNSTABLE and agreed:
                same = [r for r in ordered if r.per_instance < AGREED * record.per_instance]
                return next((r for r in same if r.verdict == STABLE and r in main), record)
        stable = [r for r in ordered if r.verdict == STABLE]
        return stable[0] if stable else max(main, key=lambda r: r.count)

    def _fastest_state(self, best: Record, main: Sequence[Record]) -> Record:
        """The best record, or one that rounds show of which no record has enough: some cores run a sequence
        at several rates, as each round happens to find them, and what disturbs makes none of them faster.
        One round of each of several records may have been at one moment.
        """
        if self._streams_out:
            return best
        limit, every = best.per_instance / AGREED, (*main, *self._own_chains())
        lawful = least_lawful(self.links)
        rounds = sorted((cycles / r.count, number) for number, r in enumerate(every) for cycles in r.rounds)
        fast = [one for one in rounds if lawful < one[0] < limit]
        for first, (least, _) in enumerate(fast):
            state = [one for one in fast[first:] if one[0] < AGREED * least]
            ((number, again),) = Counter(number for _, number in state).most_common(1)
            if len(state) >= _SEEN and again > 1:
                return _at_times(every[number], sum(cycles for cycles, _ in state) / len(state))
        return best

    def _own_chains(self) -> list[Record]:
        """Latency chains without links, which are sequences, too: not those through memory, all of whose
        instances meet at one place.
        """
        usable = [r for r in self.chains if r.verdict != FAILED and r.kind not in SPEEDS]
        return [r for r in usable if not is_in_memory(r.source)]

    def _kind(self, best: Record, main: Sequence[Record]) -> tuple[str, Remark]:
        kind, name = best.kind, best.look.name
        if best.quantity == "latency":
            return UPPER_BOUND, Timing.CHAIN_IS_FASTER.of()
        if kind in (Kind.TAKEN, Kind.NOT_TAKEN) and self._needs_others(best, main):
            return UPPER_BOUND, Timing.WITH_TARGET.of()
        if kind is Kind.WITH:
            return UPPER_BOUND, Timing.WITH_OTHERS.of(name)
        if kind is Kind.COUNT:
            return EXACT, Timing.REPEAT.of(name)
        if self._streams_out:
            least = min(r.per_instance for r in main)
            if best.per_instance < AGREED * least:
                return EXACT, Timing.IN_BUFFERS.of()
            return EXACT, Timing.WRITTEN_OUT.of(rounded(least))
        return self._kind_of_sequence(best, main)

    def _needs_others(self, best: Record, main: Sequence[Record]) -> bool:
        """Whether what sets a branch's register, or stands behind it, may take the time: no sequence of
        branches alone takes the same.
        """
        alone = any(_agree(r, best) for r in main if not r.has_others)
        return not alone and any(op.is_register for op in self.form.operands)

    def _kind_of_sequence(self, best: Record, main: Sequence[Record]) -> tuple[str, Remark]:
        """Of sequences of the form and what cuts its dependencies."""
        if best.kind is Kind.FAST:
            return self._with_cuts(best), Timing.RESTORED.of()
        full = min((r.per_instance for r in main if r.kind is not Kind.EMPTIED), default=0.0)
        if best.kind is Kind.EMPTIED and full > AGREED * best.per_instance:
            return EXACT, Timing.EMPTIED.of(rounded(full))
        plain = min((r.per_instance for r in main if r.kind is Kind.PLAIN), default=None)
        if best.kind is Kind.BROKEN and plain is not None and best.per_instance < 0.97 * plain:
            return self._with_cuts(best), Timing.CUT.of(rounded(plain))
        if best.kind in INDEPENDENT and plain is not None and best.per_instance < plain / AGREED:
            without = self._is_without_chains(best, main)
            return EXACT if without else UPPER_BOUND, Timing.CUT.of(rounded(plain))
        if best.kind is Kind.BASES:
            return EXACT, NOTHING
        if self._in_one_place():
            return UPPER_BOUND, Timing.IN_ONE_PLACE.of()
        broken = [r for r in main if r.kind is Kind.BROKEN]
        if broken and best.kind is not Kind.BROKEN and all(r.verdict != STABLE for r in broken):
            return UPPER_BOUND, Timing.CUTS_DISTURBED.of()
        cut = broken and instruction_set(self.form.isa).links.cut_fixed and not self._is_cut_by_executed()
        if self._own_chain() and not cut:
            return UPPER_BOUND, Timing.OWN_CHAIN.of()
        return EXACT, NOTHING

    def _of_chains_at_most(self, found: Throughput, best: Record, main: Sequence[Record]) -> Throughput:
        """A bound where instances may wait for destinations that they read, and no sequence where these are
        overwritten first takes the same.
        """
        known = found.kind != EXACT or found.note or best.kind is Kind.BASES
        if known or not waits_for_its_own(self.form, found) or self._is_without_chains(best, main):
            return found
        plain = [r.per_instance for r in main if r.kind in _WITHOUT_INDEX]
        return _bounded(found, Timing.OWN_DESTINATIONS.of(rounded(max(plain, default=best.per_instance))))

    def _is_without_chains(self, best: Record, main: Sequence[Record]) -> bool:
        """Whether neither chains nor what cuts them take the time: with all destinations overwritten first
        it is the same, or if that is the best sequence, with fewer of them.
        """
        cuts = [r for r in main if r.kind in INDEPENDENT and r.look.name != best.look.name]
        if best.kind is not Kind.PARTLY:
            other = Kind.PARTLY if best.kind is Kind.OVERWRITTEN else Kind.OVERWRITTEN
            cuts = [r for r in cuts if r.kind is other]
        return any(r.verdict == STABLE and _agree(r, best) for r in cuts)

    def _is_cut_by_executed(self) -> bool:
        """Whether what cuts its dependencies is executed, on the stack of the x87, and takes a while."""
        return "x87" in self.form.attributes

    def _with_cuts(self, best: Record) -> str:
        """Exact where the form takes longer than the few instructions that cut its dependencies can: those
        that are executed take a cycle each at most.
        """
        flags = bool(self.form.flags_read & self.form.flags_written)
        others = best.instructions / best.count - 1 if self._is_cut_by_executed() else 0
        return UPPER_BOUND if flags or best.per_instance < max(LESS, others / LESS) else EXACT

    def limited_by_registers(
        self,
        throughput: Throughput,
        latencies: Sequence[Latency],
        share: Callable[[], float] = lambda: 0.0,
    ) -> Throughput:
        """An upper bound where the registers are too few to hide the form's own latency, or that from what a
        destination held before; `share` of a sequence's instances have the same destination.
        """
        bases = self._through_bases(latencies) / MANY_BASES
        if throughput.kind == EXACT and bases and (throughput.value or 0.0) < MUCH * bases:
            return _bounded(throughput, Timing.FEW_BASES.of(MANY_BASES))
        if throughput.value is None or throughput.kind != EXACT:
            return throughput
        plain = max((r.count for r in self.streams if r.kind is Kind.PLAIN), default=0)
        waits = max((lat.max or 0.0 for lat in latencies if is_old(lat.source)), default=0.0)
        shares = ((self._longest_cycle(latencies), plain and 1 / plain), (waits, waits and share()))
        for cycles, part in shares:
            if cycles and part and _may_be(throughput.value, cycles * part):
                return _bounded(throughput, Timing.FEW_REGISTERS.of(round(1 / part)))
        return throughput

    def _through_bases(self, latencies: Sequence[Latency]) -> float:
        """Cycles from an instance to the next one with the same base, by the base or by memory."""
        if not any(r.kind is Kind.BASES for r in self.streams):
            return 0.0
        same = [lat.max or 0.0 for lat in latencies if lat.source == lat.target]
        return max(same, default=0.0)

    def _longest_cycle(self, latencies: Sequence[Latency]) -> float:
        """Cycles per instance of the longest chain through explicit registers read and written."""
        names = {o.name for o in self.form.operands if o.is_register and not o.fixed and o.read and o.write}
        found = {(lat.source, lat.target): lat.max or 0.0 for lat in latencies}
        rounds = [(found.get((a, b), 0.0) + found.get((b, a), 0.0)) / 2 for a in names for b in names]
        return max(rounds, default=0.0)

    def _in_one_place(self) -> bool:
        """Whether all instances read and write the same memory: their address has no offset."""
        memory = any(op.is_memory and op.read and op.write for op in self.form.operands)
        return memory and self.form.has_fields and all(op.role != "offset" for op in self.form.operands)

    def _own_chain(self) -> bool:
        """Whether every instance depends on the one before through a fixed register, a flag or a base."""
        fixed = any(
            op.read and op.write and (op.fixed or op.role == "base") and op.name != "RSP" and op.is_register
            for op in self.form.operands
        )
        return fixed and self.form.attributes.isdisjoint(("string", "rep", "repne"))


def _may_be(throughput: float, chains: float) -> bool:
    """Whether a throughput may be what so many cycles of chains side by side allow."""
    noise = AGREED - 1
    later = noise if is_of_ports(throughput) else _LATER
    least = noise * max(throughput, FINEST)
    return -least <= throughput - chains <= max(later * throughput, least)


def _at_times(record: Record, cycles: float) -> Record:
    """A record of what an instance takes in some of its rounds."""
    slowest = max(record.rounds) / record.count
    return msgspec.structs.replace(
        record, cycles=cycles * record.count, spread=(slowest - cycles) * record.count, verdict=UNSTABLE
    )


def _is_of_same(record: Record, other: Record) -> bool:
    """Whether both are looks at one sequence that its rounds agree about."""
    return record.look.first == other.look.first and record.verdict == STABLE == other.verdict


def _noise(record: Record) -> float:
    """What a sequence is off by at most, in cycles per instance."""
    return max(ERRORS * record.spread / record.count, TOLERANCE * record.per_instance)


def _is_apart(record: Record, best: Record) -> bool:
    """Whether a look at the same sequence takes longer, by more than the errors of both and 2 %."""
    errors = ERRORS * (record.spread / record.count + best.spread / best.count)
    longer = record.per_instance - best.per_instance
    return longer > max(errors, AGREE * record.per_instance)


def _was_faster(record: Record, best: Record) -> bool:
    """Whether a round of a sequence was clearly faster than the value: what disturbs makes none so."""
    return any(AGREED * cycles / record.count < best.per_instance for cycles in record.rounds)


def _agree(record: Record, other: Record) -> bool:
    """Whether an instance takes the same in two sequences."""
    one, two = record.per_instance, other.per_instance
    return max(one, two) < AGREED * min(one, two)


def _bounded(throughput: Throughput, by: Remark) -> Throughput:
    return msgspec.structs.replace(throughput, kind=UPPER_BOUND, note=by.text, cause=cause_of(by))
