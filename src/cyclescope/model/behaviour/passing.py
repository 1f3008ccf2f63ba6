"""How long data take through memory, from a store to a load of the same bytes, as probes found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set
from cyclescope.model.facts import (
    FORWARDING,
    LOOPED,
    OF_GENERAL,
    RENAMING,
    STACKED,
    TRIP_ADDITIONS,
    TRIP_NOPS,
    VECTOR,
    VEX,
    CoreAnswer,
    Fact,
    LoadWork,
    MemoryWay,
    distance_subject,
    forwarding_subject,
    transfer_subject,
    trip_subject,
    update_subject,
    worked_subject,
)

IN_SHORT_LOOPS = {
    MemoryWay.REWRITTEN: MemoryWay.REWRITTEN_SHORT, MemoryWay.UPDATED: MemoryWay.REWRITTEN_SHORT,
    MemoryWay.OTHER: MemoryWay.OTHER_SHORT,
}  # fmt: skip
# Ways whose sizes and distances are asked apart.
ON_STACK = (MemoryWay.STACK, MemoryWay.STACK_OVERWRITTEN, MemoryWay.STACK_UPDATED)
_UPDATES = (MemoryWay.UPDATED, MemoryWay.STACK_UPDATED)  # of a register and memory in one instruction
MOST_SHORT = 12  # loads of what was stored that a short loop has: as many as were asked
_STORED = (32, 64, 16, 8, 128, 256)  # bits: stores whose failures stand for those of others, the first known
WHOLE_REGISTER = 64  # bits of the registers by which ways are asked
DISTANCES = (1, 2, 4, 8, 12, 15, 16, 20, 24, 32)  # other stores in between that probes ask for


class StoredLoad(NamedTuple):
    """A load of `loaded` bits that begins `offset` bytes behind the place where `stored` bits were stored.

    `between` are the other stores in between; `vector` tells of a vector register at one of the ends, `few`
    of a loop that has few such loads, `does` of what is made of the data. Of what is `unasked`, of x87
    registers or masks, probes found out when it fails, and nothing else. `alone` are the cycles that one of
    the two instructions takes from its own store to its next, the most that is known, `updated` those from
    the store of what loads as much there, too, to its next operation. What loads `updates` memory: what is
    renamed for an addition is for that, but it may be renamed where an addition's operand is not.
    """

    stored: int
    loaded: int
    offset: int
    way: MemoryWay
    vector: bool = False
    between: int = 0
    few: bool = False
    does: LoadWork | None = None
    unasked: bool = False
    alone: float = 0.0
    updated: float | None = None
    updates: bool = False

    @property
    def is_inside(self) -> bool:
        """Whether all that is loaded was stored."""
        return self.offset >= 0 and self.offset * 8 + self.loaded <= self.stored

    def is_like(self, offset: int) -> bool:
        """Whether a load at another offset is a multiple of its size away from the store if this one is."""
        size = max(self.loaded // 8, 1)
        return (offset % size == 0) == (self.offset % size == 0)


class MemoryPassing:
    """Answers of the probes of one core; it is false where there are none."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        told = [fact for fact in facts if fact.value is not None and fact.is_resolved]
        self._ways = {fact.subject: fact for fact in told if fact.probe == RENAMING}
        self._sizes = {fact.subject: fact for fact in told if fact.probe == FORWARDING}
        self._by_kind: dict[str, list[tuple[int, str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def cycles(self, one: StoredLoad) -> float | None:
        """Cycles from the stored data to the register, None where nothing like it was found out.

        Microcode need not rename what other instructions have renamed: its own trips show that it does not.
        """
        if one.few and self._forgets(one):
            return self.cycles(one._replace(few=False))
        fact = self._nearest(one)
        if fact is None or fact.value is None or (one.unasked and fact.answer is not CoreAnswer.FAILED):
            return None
        if one.vector or fact.answer is CoreAnswer.FAILED:
            return max(fact.value, 0.0)
        waits = round(one.alone) >= round(fact.value) > 0 and self._is_renamed(MemoryWay.BASE)
        renamed, way = None if waits else self._renamed(one), self._ways.get(self._subject(one))
        if renamed is not None:
            return renamed
        least = 0.0 if one.way in _UPDATES and way is not None else fact.value
        return max(least + self._work(one), self._forwarded(one), 0.0)

    @property
    def knows_trips(self) -> bool:
        """Whether it was asked how long round trips take."""
        return trip_subject(TRIP_ADDITIONS[0]) in self._ways or update_subject(0) in self._ways

    def trip(self, cycles: float) -> float:
        """Cycles of a round trip through memory whose parts take so many."""
        base = self._forwarding(MemoryWay.BASE)
        way = None if base is None else self._forwarding(trip_subject(round(cycles - base)))
        return cycles if way is None or base is None else max(cycles + way - base, cycles)

    def update(self, cycles: float, beside: float) -> float:
        """Cycles of an update whose parts take so many, with so many slots beside it."""
        asked = {nops: self._forwarding(update_subject(nops)) for nops in TRIP_NOPS}
        known = {nops: way for nops, way in asked.items() if way is not None}
        dense = max((nops for nops in known if nops <= beside), default=None)
        if dense is None or cycles < min(known.values()):  # what is renamed takes next to nothing
            return cycles
        return cycles + known[dense] - min(known.values())

    def _forwarding(self, way: str) -> float | None:
        """Cycles of a way that the core was found to forward, None of others."""
        fact = self._ways.get(way)
        return fact.value if fact is not None and fact.answer is CoreAnswer.FORWARDED else None

    def is_failed(self, one: StoredLoad) -> bool:
        """Whether a load like it was found to wait until the store is in the cache."""
        fact = self._nearest(one)
        return fact is not None and fact.answer is CoreAnswer.FAILED

    def is_forwarded(self, way: MemoryWay) -> bool:
        """Whether the core was found not to rename what is stored and loaded in a way."""
        fact = self._ways.get(way)
        return fact is not None and fact.answer is CoreAnswer.FORWARDED

    def _is_renamed(self, way: MemoryWay) -> bool:
        fact = self._ways.get(way)
        return fact is not None and fact.answer is CoreAnswer.RENAMED

    def _learns(self, one: StoredLoad) -> bool:
        """Whether it was asked what of this load is renamed in short loops and nowhere else."""
        asked = transfer_subject(WHOLE_REGISTER, LOOPED) in self._ways
        return asked and one.few and one.way not in ON_STACK and self.is_forwarded(MemoryWay.BASE)

    def _forgets(self, one: StoredLoad) -> bool:
        """Whether a load is of a size that is not renamed in short loops either."""
        fact = self._ways.get(self._size(one) or "")
        return self._learns(one) and (fact is None or fact.answer is not CoreAnswer.RENAMED)

    def _subject(self, one: StoredLoad) -> str:
        """What was asked of a way: in a short loop, if that was asked.

        Where nothing is known of a base that was written in between, another base stands for it if the core
        knows that one there.
        """
        if one.way in ON_STACK and one.way not in self._ways:
            return str(MemoryWay.STACK)
        if one.way is MemoryWay.BASE and self._learns(one):
            return transfer_subject(WHOLE_REGISTER, LOOPED)
        short = IN_SHORT_LOOPS.get(one.way) if one.few else None
        other = self._ways.get(MemoryWay.OTHER_SHORT)
        if short and short not in self._ways and other is not None and other.answer is CoreAnswer.RENAMED:
            short = MemoryWay.OTHER_SHORT
        return str(short if short in self._ways else one.way)

    def _renamed(self, one: StoredLoad) -> float | None:
        """Cycles of a load of what was stored which the core renames, None where it does not.

        What is forwarded is asked by another register than what was stored, which some cores never rename.
        """
        own = self._own(one)
        size = own or self._size(one)
        if size is None:
            return None
        subjects = (self._subject(one), size, *self._distances(one), *self._done(one))
        asked = [self._ways.get(subject) for subject in subjects]
        if any(fact is None or fact.answer is not CoreAnswer.RENAMED for fact in asked):
            return None
        way = max(_clearly(fact) for fact in asked if fact is not None)
        return max(way - self._not_stored(one), 0.0)

    def _not_stored(self, one: StoredLoad) -> float:
        """Cycles of a way by which what an update stores is there sooner than what is only stored.

        A narrow register takes a Zen 5 a cycle to store, and nothing from one update to the next.
        """
        asked = self._ways.get(worked_subject(LoadWork.ADDED, one.stored, one.stored))
        if one.updated is None or asked is None or asked.answer is not CoreAnswer.RENAMED:
            return 0.0
        return max(_clearly(asked) - one.updated, 0.0)

    def _work(self, one: StoredLoad) -> float:
        """Cycles by which a load takes longer that makes something of the data: what is left if renamed."""
        if one.does in (None, LoadWork.ADDED):
            return 0.0
        asked = self._ways.get(worked_subject(one.does, WHOLE_REGISTER, one.loaded))
        return _clearly(asked) if asked is not None and asked.answer is CoreAnswer.RENAMED else 0.0

    def _size(self, one: StoredLoad) -> str | None:
        """What was asked of a load of so much of so much, None of a part of it that was not asked."""
        kind = self._kind(one)
        if one.loaded != one.stored:
            part = forwarding_subject(one.stored, one.loaded, one.offset, kind)
            return part if part in self._ways else None
        if one.offset:
            return None
        whole = one.loaded == WHOLE_REGISTER and not kind
        return str(MemoryWay.BASE) if whole else transfer_subject(one.loaded, kind)

    def _done(self, one: StoredLoad) -> list[str]:
        """What was asked of what is made of the data, of as much of them or of all of a register."""
        if one.does is None:
            return []
        size = (one.loaded, one.loaded) if one.does is LoadWork.SIGNED else (WHOLE_REGISTER, WHOLE_REGISTER)
        work = LoadWork.SIGNED if one.does is LoadWork.SIGNED else LoadWork.ADDED
        subject = self._own(one) or worked_subject(work, *size, self._kind(one))
        return [subject] if subject in self._ways else []

    def _own(self, one: StoredLoad) -> str | None:
        """What was asked of a load of just so much, of which just this is made: of others it tells nothing.

        A core may rename what an operation reads and not what is only loaded.
        """
        work = LoadWork.ADDED if one.updates else one.does
        if work is None or one.offset:
            return None
        fact = self._ways.get(worked_subject(work, one.stored, one.loaded, self._kind(one)))
        if fact is None or (one.updates and fact.answer is not CoreAnswer.RENAMED):
            return None
        return fact.subject

    def _kind(self, one: StoredLoad) -> str:
        """The kind of subjects that tell of a way by the stack pointer, or in short loops, if asked."""
        if one.way in ON_STACK and transfer_subject(WHOLE_REGISTER, STACKED) in self._ways:
            return STACKED
        return LOOPED if self._learns(one) else OF_GENERAL

    def _distances(self, one: StoredLoad) -> list[str]:
        """What was asked of as many stores in between, or fewer."""
        return [subject for count, subject in self._asked_distances(self._kind(one)) if count <= one.between]

    def _asked_distances(self, kind: str) -> list[tuple[int, str]]:
        """The distances that were asked of a kind, and their subjects."""
        known = self._by_kind.get(kind)
        if known is None:
            subjects = ((count, distance_subject(count, kind)) for count in DISTANCES)
            known = self._by_kind[kind] = [(count, one) for count, one in subjects if one in self._ways]
        return known

    def _forwarded(self, one: StoredLoad) -> float:
        """Cycles of a way that the core does not rename, though it may rename others; else 0."""
        own = self._ways.get(self._subject(one))
        subjects = [*([] if self._is_update(one) else self._distances(one)), *self._done(one)]
        facts = (self._ways[subject] for subject in subjects if subject in self._ways)
        slow = (fact.value for fact in (*facts, own) if fact and fact.answer is CoreAnswer.FORWARDED)
        return max((cycles for cycles in slow if cycles is not None), default=0.0) + self._farther(one)

    def _is_update(self, one: StoredLoad) -> bool:
        """Whether it is asked how long what is stored takes back to the instruction that stored it."""
        return one.way in _UPDATES and str(one.way) in self._ways

    def _farther(self, one: StoredLoad) -> float:
        """Cycles by which an update takes longer behind other stores: by what a load does there."""
        base = self._ways.get(MemoryWay.BASE)
        if not self._is_update(one) or base is None or base.value is None:
            return 0.0
        longer = [0.0]
        for fact in (self._ways[subject] for subject in self._distances(one)):
            more = (fact.value or 0.0) - base.value
            if fact.answer is CoreAnswer.FORWARDED and more > (fact.error or 0.0) + (base.error or 0.0):
                longer.append(more)
        return max(longer)

    def _nearest(self, one: StoredLoad) -> Fact | None:
        """What was asked of this load, or of the one most like it."""
        if not one.is_inside:  # bytes from elsewhere are needed as well
            half = one.stored // 16
            cases = ((one.loaded, 0), (one.loaded, half), (one.stored, half))
            others = (one._replace(stored=size) for size in _STORED if size < one.loaded)
            like = (fact for other in (one, *others) for fact in self._known(other, cases, CoreAnswer.FAILED))
            return next(like, None)
        places = sorted(
            range(max(one.stored // 8, 1)), key=lambda at: (not one.is_like(at), abs(at - one.offset))
        )
        return next(self._known(one, ((one.loaded, at) for at in (one.offset, *places))), None)

    def _known(
        self, one: StoredLoad, cases: Iterable[tuple[int, int]], wanted: CoreAnswer = CoreAnswer.NONE
    ) -> Iterator[Fact]:
        for loaded, offset in cases:
            for kind in (VECTOR, VEX) if one.vector else (OF_GENERAL,):
                fact = self._sizes.get(forwarding_subject(one.stored, loaded, offset, kind))
                if fact is not None and wanted in (CoreAnswer.NONE, fact.answer):
                    yield fact


def _clearly(fact: Fact) -> float:
    """Cycles that are more than none beyond the error."""
    value = fact.value or 0.0
    return value if value > (fact.error or 0.0) else 0.0


def work_of(form: InstructionForm, loaded: Operand) -> LoadWork | None:
    """What an instruction makes of what it loads, if that is more than to load it."""
    roles = instruction_set(form.isa).roles
    if form.flags_read or form.flags_written:
        return LoadWork.ADDED
    if any(op.read for op in form.operands if op is not loaded and not (op.role or op.implicit)):
        return LoadWork.MERGED if form.mnemonic.startswith(roles.moves) else LoadWork.ADDED
    return LoadWork.SIGNED if form.mnemonic.startswith(roles.signed) else None
