"""A core on one page: of all that probes found the numbers that people ask for, and how many of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cyclescope.model.facts import SSE_SIDE_BY_SIDE, UPPER_HALVES, VECTOR_STATES, CoreAnswer, Fact
from cyclescope.report.tables import aligned
from cyclescope.report.words import printable

NOT_RESOLVED = "not resolved"
NO_CONDITIONS: Mapping[str, object] = {}  # conditions that nobody knows
_MOST_REASON = 70  # characters of a reason, so that a line is one


class CardLine(NamedTuple):
    """A row: under which heading, what it is about, what is known, and with which confidence."""

    heading: str
    title: str
    told: str
    confidence: str


class _Number(NamedTuple):
    """A row of one answer: the first of these subjects with an answer, else of those that the probe has."""

    title: str
    probe: str
    subjects: tuple[str, ...]


class _Counts(NamedTuple):
    """A row of all answers of a probe: how many have which."""

    title: str
    probe: str


def _sized(size: str) -> tuple[str, ...]:
    """Loads of a size, the widest that there are."""
    return tuple(f"loads of {bits} bits, {size}" for bits in (512, 256, 128, 64))


def _each(where: str, *names: str) -> tuple[str, ...]:
    """Subjects of the instruction sets."""
    return tuple(f"{name}, {where}" for name in names)


_CARD: tuple[tuple[str, tuple[_Number | _Counts, ...]], ...] = (
    (
        "front end",
        (
            _Number("instructions a cycle", "dispatch", ("of any kind",)),
            _Number("kept decoded", "decoded", ("instructions",)),
            _Number("decoded a cycle, of 4 bytes", "decoded", ("4 bytes each, decoded",)),
            _Counts("pairs in one slot", "fusion"),
            _Counts("register moves", "move-elimination"),
            _Counts("same registers twice", "zero-idioms"),
            _Counts("same registers twice, waiting", "dependency-breaking"),
            _Counts("parts of registers", "partial-registers"),
            _Number("pushes and pops", "stack-engine", ("pushes and pops",)),
        ),
    ),
    (
        "in flight",
        (
            _Number("instructions begin", "issue-order", ("multiplications", "vector additions")),
            *(_Number(title, "in-flight", (subject,))
            for title, subject in (
                ("anything (NOPs)", "NOPs"),
                ("anything (mixes)", "instructions of any kind"), ("additions", "additions"),
                ("vector additions", "vector additions"), ("additions of doubles", "additions of doubles"),
                ("loads", "loads"), ("stores", "stores"), ("branches not taken", "branches not taken"),
                ("additions that wait", "additions that wait"),
                ("vector additions that wait", "vector additions that wait"),
            )),
        ),
    ),
    (
        "branches",
        (
            _Number("predicted wrongly", "misprediction", ("branch on a sign",)),
            _Number("not taken", "branch-rates", ("not taken",)),
            _Number("taken", "branch-rates", ("taken, 64 bytes apart",)),
            _Number("calls inside each other", "return-stack", ("calls inside each other",)),
            _Number("known targets, first level", "branch-targets", ("first level, jumps",)),
            _Number("known targets, second level", "branch-targets", ("second level, jumps",)),
            _Number("trips of a loop", "loop-counts", ("trips of a loop",)),
            _Number("pattern of one branch", "branch-patterns", ("pattern of one branch",)),
            _Counts("same condition again", "correlated-branches"),
        ),
    ),
    (
        "memory",
        (
            _Number("first cache", "cache-sets", ("first level, size",)),
            _Number("first cache, ways", "cache-sets", ("first level, ways",)),
            _Number("first cache, line", "cache-sets", ("first level, line",)),
            _Number("first cache, load", "caches", ("first level, load",)),
            _Number("second cache", "caches", ("second level, size",)),
            _Number("second cache, load", "caches", ("second level, load",)),
            _Number("third cache", "caches", ("third level, size",)),
            _Number("third cache, load", "caches", ("third level, load",)),
            _Number("pages known", "pages", ("first level, entries",)),
            _Number("another page", "pages", ("first level, miss",)),
            _Number("loads", "accesses", ("loads of 64 bits",)),
            _Number("stores", "accesses", ("stores of 64 bits",)),
            _Counts("ways through memory", "memory-renaming"),
            _Counts("loads of what was stored", "store-forwarding"),
            _Number("load across a line", "crossing", ("load latency across 64 bytes",)),
            _Number("stores across a page", "crossing", ("stores across page",)),
            _Counts("4 KiB apart", "4k-aliasing"),
            _Number("bandwidth, 16 KiB", "bandwidth", _sized("16 KiB")),
            _Number("bandwidth, 256 KiB", "bandwidth", _sized("256 KiB")),
        ),
    ),
    (
        "others",
        (
            _Number("atomic addition", "atomics", _each("at one place", "LOCK ADD", "LDADD", "AMOADD")),
            _Number("fence", "atomics", _each("by itself", "MFENCE", "DMB ISH", "FENCE RW, RW")),
            _Number("subnormal product", "special-values", ("multiplication, subnormal result",)),
            _Number("VEX and SSE in turn", VECTOR_STATES, ("VEX of 256 bits and SSE in turn",)),
            _Number("8 SSE, 512 bits set", VECTOR_STATES, (f"{SSE_SIDE_BY_SIDE}, {UPPER_HALVES[512]}",)),
        ),
    ),
)  # fmt: skip


def clock_lines(conditions: Mapping[str, object]) -> Iterator[CardLine]:
    """Rows of the clock, where what a session was measured under tells it."""
    ticks, frequency, clean = (
        conditions.get(name) for name in ("ticks_per_cycle", "frequency", "clean_share")
    )
    if conditions.get("emulated") or not (isinstance(ticks, float) and isinstance(frequency, int)):
        return
    yield CardLine("clock", "core cycle", f"{ticks:.4f} ticks of the clock, {frequency / 1e9:.3f} GHz", "")
    if isinstance(clean, float):
        yield CardLine("clock", "undisturbed", f"{clean:.0%} of the canaries", "")


def card_lines(facts: Iterable[Fact]) -> Iterator[CardLine]:
    """The rows of what was asked; what nobody asked has none."""
    by_probe: dict[str, dict[str, Fact]] = {}
    for fact in facts:
        by_probe.setdefault(fact.probe, {})[fact.subject] = fact
    for heading, rows in _CARD:
        for row in rows:
            known = by_probe.get(row.probe, {})
            if isinstance(row, _Counts) and known:
                yield _counted(heading, row, list(known.values()))
            elif isinstance(row, _Number):
                found = [known[subject] for subject in row.subjects if subject in known]
                found.sort(key=lambda fact: not fact.is_resolved)
                yield from (_numbered(heading, row, fact) for fact in found[:1])
    yield from _pairs(by_probe)


def _numbered(heading: str, row: _Number, fact: Fact) -> CardLine:
    if not fact.is_resolved:
        return CardLine(heading, row.title, f"{NOT_RESOLVED}: {_short(fact.reason)}", "")
    name = "" if fact.answer is CoreAnswer.VALUE else str(fact.answer)
    value = "" if fact.value is None else valued(fact)
    return CardLine(heading, row.title, ", ".join(filter(None, (name, value))), fact.confidence)


def _counted(heading: str, row: _Counts, facts: Sequence[Fact]) -> CardLine:
    counts = Counter(_named(fact) for fact in facts)
    told = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    known = {fact.confidence for fact in facts if fact.is_resolved}
    return CardLine(heading, row.title, told, known.pop() if len(known) == 1 else "")


def _named(fact: Fact) -> str:
    if not fact.is_resolved:
        return NOT_RESOLVED
    return "with a value" if fact.answer is CoreAnswer.VALUE else str(fact.answer)


def _pairs(by_probe: dict[str, dict[str, Fact]]) -> Iterator[CardLine]:
    """Of pairs of CPUs the least and the most, of one its value."""
    for probe, title in (
        ("core-to-core", "a line from one CPU to another"),
        ("shared-core", "beside another CPU"),
    ):
        found = [fact for fact in by_probe.get(probe, {}).values() if fact.value is not None]
        values = sorted(fact.value for fact in found if fact.value is not None)
        if values:
            ends = dict.fromkeys((f"{values[0]:.2f}", f"{values[-1]:.2f}"))  # one where both are alike
            told = f"{' to '.join(ends)} {found[0].unit}" if len(found) > 1 else valued(found[0])
            yield CardLine("pairs of CPUs", title, told, _doubt(found))
        elif probe in by_probe:
            reason = next(iter(by_probe[probe].values())).reason
            yield CardLine("pairs of CPUs", title, f"{NOT_RESOLVED}: {_short(reason)}", "")


def _doubt(facts: Sequence[Fact]) -> str:
    """Why answers may be others at another time, nothing where they have no such reason."""
    doubts = [fact for fact in facts if fact.reason]
    return f"{doubts[0].confidence}: {_short(doubts[0].reason)}" if doubts else ""


def _short(reason: str) -> str:
    text = printable(reason)
    return text if len(text) <= _MOST_REASON else f"{text[: _MOST_REASON - 3]}..."


def valued(fact: Fact) -> str:
    """A value with its error; numbers of things without zeros behind the point."""
    digits = ".2f" if fact.unit in ("cycles", "per cycle", "times as long") else ".6g"
    value, error = round(fact.value or 0.0, 2) + 0.0, round(fact.error or 0.0, 2)
    return f"{value:{digits}} +-{error:{digits}} {fact.unit}" if error else f"{value:{digits}} {fact.unit}"


def card_text(machine: str, facts: Iterable[Fact], conditions: Mapping[str, object] = NO_CONDITIONS) -> str:
    """The page as text; `conditions` are what the last session was measured under."""
    lines, heading = [printable(machine)], ""
    rows = [*clock_lines(conditions), *card_lines(facts)]
    cells = []
    for row in rows:
        confidence = f"  ({row.confidence})" if row.confidence not in ("", "high") else ""
        cells.append((row.title, f"{row.told}{confidence}"))
    for row, line in zip(rows, aligned(cells, (0, 1), "  "), strict=True):
        if row.heading != heading:
            heading = row.heading
            lines += ["", heading]
        lines.append(line)
    return "\n".join(lines)
