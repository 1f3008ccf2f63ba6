"""From the measured kernels of one form to its timing: throughput and a latency per operand pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from cyclescope.infer.latency_system import LinkLatency
from cyclescope.isa.dataflow import Pair, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.cycles import NOP
from cyclescope.measure.record import FAILED, NOISY, STABLE, UNSTABLE, Record

EXACT, INTERVAL, UPPER_BOUND = "exact", "interval", "upper_bound"
HIGH, MEDIUM, LOW = "high", "medium", "low"
WITHHELD = "withheld"
AGAIN = " again"  # ends the variant of a sequence that was measured a second time

_BOUND_BY_THROUGHPUT = 1.08  # a chain no longer than this times the throughput proves nothing
_LEAST_LATENCY = 0.85  # cycles; below, an idiom or an elimination has to be shown
_WIDE = 0.5
_STREAMING = ("MOVNT", "VMOVNT", "MASKMOV", "VMASKMOVDQU", "CLZERO", "MOVDIR")
_FASTER = 0.95  # of a NOP's time: less is no throughput
_AGREED = 1.03  # two sequences within this ratio confirm each other
_GRAIN, _RELATIVE, _MOST = 0.12, 0.025, 0.4  # how far noise moves a latency: cycles, share of the chain
_MEMORY = 300  # cycles: longer than any way through the caches
_EXCEPTIONS = ((1, "invalid"), (2, "denormal"), (4, "division by zero"), (8, "overflow"), (16, "underflow"))


class Throughput(msgspec.Struct, frozen=True):
    """Reciprocal throughput in cycles per instruction.

    `value` is the least over all sequences; `variants` the value of each. `kind` is `exact`, or
    `upper_bound` where instructions that cannot be left out, or a dependency that cannot be broken,
    take part in the time.
    """

    value: float | None
    spread: float | None
    kind: str | None
    variants: dict[str, float] = {}
    note: str = ""
    reason: str = ""
    confidence: str = HIGH


class Latency(msgspec.Struct, frozen=True):
    """Latency from a source to a target in cycles.

    `kind` is `exact`, `interval` (the measurements leave the range open) or `upper_bound`. Where
    the value depends on the operands' values, `values` has them by class and `min` and `max` are
    the extremes. `bypass` is the latency when an integer or floating-point instruction consumes the
    result. `convention` names the conventions the value rests on and `bounds` what is proved
    without them. `measured` is the value before it was taken for a whole number. A pair without a value
    has the `reason`.
    """

    source: str
    target: str
    min: float | None
    max: float | None
    kind: str | None
    spread: float | None
    values: dict[str, float] = {}
    bypass: dict[str, float] = {}
    convention: str = ""
    bounds: tuple[float, float] | None = None
    note: str = ""
    reason: str = ""
    confidence: str = HIGH
    measured: float | None = None


class FormTiming(msgspec.Struct, frozen=True):
    """Everything measured about one form."""

    id: str
    names: dict[str, str]
    status: str
    throughput: Throughput | None
    latencies: tuple[Latency, ...]
    idiom: str = ""
    notes: tuple[str, ...] = ()


def rounded(value: float) -> float:
    """Two decimals, three below 1: the noise is in the next."""
    return round(value + 0.0, 2 if abs(value) >= 1 else 3)


def whole(value: float, chain: float) -> float:
    """The whole number of cycles where `value`, found in a chain of so many cycles, is one but for noise."""
    nearest = float(round(value))
    above = max(_GRAIN, min(_RELATIVE * chain, _MOST))  # a chain that is disturbed takes longer, not less
    return nearest if -_GRAIN <= value - nearest <= above else value


class TimingBuilder:
    """Infers the timing of one form from its records."""

    def __init__(
        self,
        form: InstructionForm,
        records: Iterable[Record],
        links: Mapping[str, LinkLatency],
        missing: Mapping[tuple[str, str], str],
    ) -> None:
        self.form = form
        self.links = links
        self.missing = missing
        self.streams: list[Record] = []
        self.chains: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if record.quantity == "throughput":
                self.streams.append(record)
            elif record.quantity == "latency":
                self.chains.setdefault((record.source, record.target), []).append(record)

    def build(self, status: str) -> FormTiming:
        """The timing; `status` is what legality found (`ok`, `SIGILL`, ...)."""
        if status != "ok":
            return FormTiming(self.form.id, self.form.names, status, None, ())
        throughput = self.throughput()
        latencies = tuple(self.latency(pair, throughput) for pair in pairs(self.form))
        throughput = self._limited_by_ring(throughput, latencies)
        return FormTiming(
            self.form.id, self.form.names, status, throughput, latencies, self._idiom(latencies),
            tuple(self._notes()),
        )  # fmt: skip

    # --- throughput ------------------------------------------------------------------------------

    def throughput(self) -> Throughput:
        """Least time over all sequences of different registers."""
        usable = [r for r in self.streams if r.verdict != FAILED]
        main = [r for r in usable if not r.variant.startswith(("same register", "indexed", "slow"))]
        variants = {r.variant: rounded(r.per_instance) for r in usable}
        if not main:
            reason = self.missing.get(("", "")) or next((r.error for r in self.streams), "not measured")
            return Throughput(None, None, None, variants, reason=reason)
        best = self._best(main)
        again = [r for r in main if r.variant.endswith(AGAIN)]
        if again and self._breaks_law(best):
            best = self._best(again)
        if self._breaks_law(best):
            reason = f"{WITHHELD}: {best.per_instance:.3f} cycles is faster than a NOP"
            return Throughput(None, None, None, variants, reason=reason)
        kind, note = self._throughput_kind(best, main)
        return Throughput(
            rounded(best.per_instance), rounded(best.spread / best.count), kind, variants, note,
            confidence=_confidence(best),
        )  # fmt: skip

    def _breaks_law(self, best: Record) -> bool:
        """Whether a throughput is less than that of a NOP."""
        floor = self.links.get(NOP)
        return floor is not None and best.per_instance < _FASTER * floor.value

    def _best(self, main: Sequence[Record]) -> Record:
        """The least value that stands: a stable one, or one that a second sequence agrees with.

        Latency chains without links are sequences of the form, too. Where writes leave the cache, a
        short sequence stays within the buffers: the longest one counts.
        """
        if self._streams_out():
            return max(main, key=lambda r: (r.count, r.per_instance))
        chains = [r for found in self.chains.values() for r in found if not r.links and r.verdict == STABLE]
        least = min(r.per_instance for r in main)
        chains = [r for r in chains if r.variant not in ("fast", "slow") and r.per_instance < 0.97 * least]
        ordered = sorted((*main, *chains), key=lambda r: r.per_instance)
        for record, following in pairwise((*ordered, None)):
            if record is None or record.verdict == STABLE:
                break
            agreed = following is not None and following.per_instance < _AGREED * record.per_instance
            if record.verdict == UNSTABLE and agreed:
                return record
        stable = [r for r in ordered if r.verdict == STABLE]
        return stable[0] if stable else max(main, key=lambda r: r.count)

    def _streams_out(self) -> bool:
        """Whether the form's stores bypass the cache."""
        return self.form.mnemonic.startswith(
            ("MOVNT", "VMOVNT", "MASKMOV", "VMASKMOVDQU", "CLZERO", "MOVDIR")
        )

    def _throughput_kind(self, best: Record, main: Sequence[Record]) -> tuple[str, str]:
        name = best.variant.split(" x")[0]
        if name.startswith("with "):
            return UPPER_BOUND, f"measured {name}, whose time is included"
        if name.startswith("count "):
            return EXACT, f"repeat {name}"
        if self._streams_out():
            least = rounded(min(r.per_instance for r in main))
            return EXACT, f"lines are written out; {least} while few of them stay in buffers"
        if name == "fast":
            return EXACT, "operands restored before every instance"
        plain = min((r.per_instance for r in main if r.variant.startswith("plain")), default=None)
        if name == "broken" and plain is not None and best.per_instance < 0.97 * plain:
            return EXACT, f"its own dependency chain allows {rounded(plain)}"
        if self._own_chain() and not any(r.variant.startswith("broken") for r in main):
            return UPPER_BOUND, "limited by its own dependency chain, which cannot be broken"
        return EXACT, ""

    def _limited_by_ring(self, throughput: Throughput, latencies: Sequence[Latency]) -> Throughput:
        """An upper bound where the registers are too few to hide the form's own latency."""
        explicit = {op.name for op in self.form.operands if op.is_register and not op.fixed}
        chain = max((lat.max or 0.0 for lat in latencies if lat.source == lat.target in explicit), default=0)
        plain = max((r.count for r in self.streams if r.variant.startswith("plain")), default=0)
        if throughput.value is None or throughput.kind != EXACT or not plain or not chain:
            return throughput
        if abs(throughput.value - chain / plain) > max(0.03 * throughput.value, 0.006):
            return throughput
        note = f"as fast as chains through {plain} registers allow"
        return msgspec.structs.replace(throughput, kind=UPPER_BOUND, note=note)

    def _own_chain(self) -> bool:
        """Whether every instance depends on the one before through a fixed register or a flag."""
        fixed = any(
            op.read and op.write and op.fixed and op.name != "RSP" and op.is_register
            for op in self.form.operands
        )
        return fixed and self.form.attributes.isdisjoint(("string", "rep", "repne"))

    # --- latency ---------------------------------------------------------------------------------

    def latency(self, pair: Pair, throughput: Throughput) -> Latency:
        """Latency of one pair."""
        source, target = pair.source.name, pair.target.name
        records = self.chains.get((source, target), [])
        usable = [r for r in records if r.verdict != FAILED]
        if not usable:
            reason = pair.excluded or self.missing.get((source, target), "")
            reason = reason or next((r.error for r in records), "not measured")
            return Latency(source, target, None, None, None, None, reason=reason)
        speeds = {r.variant: r for r in usable if r.variant in ("fast", "slow")}
        base = [r for r in usable if r.variant not in speeds and not r.variant.endswith("link")]
        base += [r for r in usable if r.variant in ("link", "filled")]
        if not base:
            return self._by_value(pair, speeds, throughput)
        main = self._single(pair, self._preferred(base, throughput), throughput)
        main = self._with_bypass(main, usable)
        return self._with_slow(main, speeds.get("slow"), pair, throughput)

    def _preferred(self, base: Sequence[Record], throughput: Throughput) -> Record:
        """The configuration with the least latency among those that show a latency."""
        shown = [r for r in base if not self._hidden(r, throughput)]
        return min(shown or base, key=self._net)

    def _hidden(self, record: Record, throughput: Throughput) -> bool:
        """Whether the chain is no longer than the throughput, so that it may not be what is seen."""
        limit = throughput.value if throughput.kind == EXACT and throughput.value else 0.0
        return self._net(record) > 1.2 and record.per_instance < _BOUND_BY_THROUGHPUT * limit

    def _net(self, record: Record) -> float:
        known = [self.links[key].value for key in record.links if key in self.links]
        return (record.cycles - sum(known)) / record.count

    def _subtracted(self, record: Record) -> tuple[float, float, float, str]:
        """Latency, its proved bounds, and the conventions it rests on."""
        known = [self.links[key] for key in record.links if key in self.links]
        if len(known) != len(record.links):
            lost = [key for key in record.links if key not in self.links]
            raise KeyError(", ".join(lost))
        value = (record.cycles - sum(k.value for k in known)) / record.count
        most = (record.cycles - sum(k.least for k in known)) / record.count
        least = (record.cycles - sum(k.most for k in known)) / record.count
        names = sorted({n for k in known for n in k.convention.split(", ") if n})
        return value, least, most, ", ".join(names)

    def _single(self, pair: Pair, record: Record, throughput: Throughput) -> Latency:
        source, target = pair.source.name, pair.target.name
        try:
            value, least, most, convention = self._subtracted(record)
        except KeyError as lost:
            reason = f"the latency of the link {lost} is not known"
            return Latency(source, target, None, None, None, None, reason=reason)
        spread = rounded(record.spread / record.count)
        kind, note = self._latency_kind(pair, record, (value, most), throughput)
        if kind is None:
            return Latency(source, target, None, None, None, spread, reason=note)
        free = note.startswith(("eliminated", "no dependency"))
        measured = rounded(value)
        value = 0.0 if free else whole(value, record.cycles / record.count)
        bounds = None
        if convention and most - least > _WIDE and not free:
            bounds = (rounded(max(least, 0.0)), rounded(most))
        low = rounded(value)
        lowest = 0.0 if kind == UPPER_BOUND else low
        return Latency(
            source, target, lowest, low, kind, spread, convention=convention if bounds else "",
            bounds=bounds, note=note, confidence=self._trust(record, low), measured=measured,
        )  # fmt: skip

    def _latency_kind(
        self, pair: Pair, record: Record, found: tuple[float, float], throughput: Throughput
    ) -> tuple[str | None, str]:
        """Kind and note; kind None with the reason where a law withholds the value."""
        value, most = found
        if value < _LEAST_LATENCY:
            return self._below_law(value, most)
        if pair.target.flag == "AF" or pair.source.flag == "AF":
            kind = EXACT if value < 1.2 else UPPER_BOUND
            return kind, "AF is only readable together with the other flags"
        scatter = "vsib" in self.form.attributes
        if pair.target.part == "data" and pair.source.part in ("address", "index") and scatter:
            return UPPER_BOUND, "the load behind the store may have to be repeated"
        if self._streams_out() and value > _MEMORY:
            return UPPER_BOUND, "the data go through memory, whose time varies"
        if self._hidden(record, throughput):
            return UPPER_BOUND, "the throughput hides a shorter latency"
        return EXACT, ""

    def _trust(self, record: Record, value: float) -> str:
        """Confidence: an average of several paths (no whole number) is not what one of them takes."""
        found = _confidence(record)
        return MEDIUM if found == HIGH and value % 1 else found

    def _below_law(self, value: float, most: float) -> tuple[str | None, str]:
        """Less than a cycle, even without conventions, is proof that there is no dependency."""
        if most < _LEAST_LATENCY:
            moves = ("MOV", "VMOV", "KMOV", "LEA", "XCHG", "XADD", "FXCH")
            move = self.form.mnemonic.startswith(moves) and "string" not in self.form.attributes
            return EXACT, "eliminated at rename" if move else "no dependency: the chain is cut here"
        return None, f"{WITHHELD}: {value:.2f} cycles breaks the law that a latency is at least 1"

    def _with_bypass(self, latency: Latency, usable: Sequence[Record]) -> Latency:
        if latency.min is None:
            return latency
        bypass = {}
        for record in usable:
            if record.variant in ("integer link", "fp link") and record.links[0] in self.links:
                name = record.variant.split(" ")[0]
                bypass[name] = rounded(record.per_instance - self.links[record.links[0]].value)
        return msgspec.structs.replace(latency, bypass=bypass)

    def _with_slow(
        self, latency: Latency, slow: Record | None, pair: Pair, throughput: Throughput
    ) -> Latency:
        if slow is None or latency.min is None or latency.max is None:
            return latency
        other = self._single(pair, slow, throughput)
        if other.max is None:
            return latency
        values = {"fast": latency.max, "slow": other.max}
        return msgspec.structs.replace(
            latency, min=min(values.values()), max=max(values.values()), values=values
        )

    def _by_value(self, pair: Pair, speeds: Mapping[str, Record], throughput: Throughput) -> Latency:
        """Latency of an integer division: one chain per class of values."""
        found = {name: self._single(pair, record, throughput) for name, record in speeds.items()}
        values = {name: lat.max for name, lat in found.items() if lat.max is not None}
        first = next(iter(found.values()))
        if not values:
            return first
        return msgspec.structs.replace(
            first, min=min(values.values()), max=max(values.values()), values=values
        )

    # --- idioms and notes ------------------------------------------------------------------------

    def _idiom(self, latencies: Sequence[Latency]) -> str:
        """Whether one register for both sources breaks the dependency."""
        same = next((r for r in self.streams if r.variant.startswith("same register")), None)
        values = [
            lat.max for lat in latencies if lat.target == "op1" and lat.max is not None and lat.max > 0.5
        ]
        if same is None or same.verdict == FAILED or not values:
            return ""
        if same.per_instance > 0.9 * min(values):
            return ""
        others = [r.per_instance for r in self.streams if r.variant.startswith(("plain", "unrolled"))]
        free = others and same.per_instance < 0.8 * min(others)
        return "zero idiom, needs no execution unit" if free else "dependency-breaking idiom"

    def _notes(self) -> list[str]:
        raised = 0
        for record in (*self.streams, *(r for rs in self.chains.values() for r in rs)):
            raised |= record.exceptions
        names = [name for bit, name in _EXCEPTIONS if raised & bit]
        return [f"floating-point exceptions raised: {', '.join(names)}"] if names else []


def _confidence(record: Record) -> str:
    if record.verdict == STABLE:
        return MEDIUM if record.exceptions & 0x1F else HIGH
    return LOW if record.verdict == NOISY else MEDIUM
