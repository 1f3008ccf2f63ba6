"""Facts about a core as a whole, not about single forms: what the renamer, the front end and the memory do.

Every fact answers one question about one subject, with a confidence, or has the reason why there is no
answer.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

HIGH, MEDIUM, LOW = "high", "medium", "low"
"""Confidence: readings agree, or leave one answer though they do not, or it holds for the time of asking."""


class CoreAnswer(StrEnum):
    """What a question about a core can be answered with; NONE where it is not resolved."""

    NONE = ""
    ELIMINATED = "eliminated"  # a move that the renamer executes
    EXECUTED = "executed"
    ZERO = "zero idiom"  # neither waits for its sources nor is executed
    BREAKING = "breaks dependency"  # does not wait for its sources, whether it is executed or not
    DEPENDENT = "dependent"
    FUSED = "fused"  # two instructions in one slot
    SEPARATE = "separate"
    RENAMED = "renamed"  # a load that gets the value of a store without waiting for memory
    FORWARDED = "forwarded"
    FAILED = "not forwarded"  # the load waits until the store is in the cache
    MERGED = "merged"  # a narrow write waits for the rest of its register
    APART = "renamed apart"
    PRESENT = "present"
    ABSENT = "absent"
    ALIASED = "aliased"  # a load waits for a store to another page, at the same place in it
    IN_ORDER = "in order"  # an instruction waits until all older ones have begun
    OUT_OF_ORDER = "out of order"
    VALUE = "value"  # the value is the answer


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of `probe` for `subject`: `value` with an error in `unit`, or the reason why there is none.

    95 of 100 independent looks give a value within `error`. An answer of low confidence has a reason as well:
    why it may be another one at another time. `detail` is what a reason says of this subject
    alone, such as the readings. `unfinished` says that there was no time for it: it replaces no answer.
    """

    probe: str
    subject: str
    answer: CoreAnswer = CoreAnswer.NONE
    value: float | None = None
    error: float | None = None
    unit: str = ""
    confidence: str = ""
    reason: str = ""
    detail: str = ""
    unfinished: bool = False

    @property
    def is_resolved(self) -> bool:
        """Whether there is an answer."""
        return self.answer is not CoreAnswer.NONE


# --- subjects: how askers and readers name the same thing ------------------------------------------

ACCESSES, BANKS, CODE_LINES, CONSUMERS, CROSSING, FORWARDING, FUSION, RENAMING, SCHEDULER, STACK_ENGINE = (
    "accesses", "banks", "code-lines", "consumers", "crossing", "store-forwarding", "fusion",
    "memory-renaming", "scheduler", "stack-engine",
)  # fmt: skip
ADDRESSING, BARRIERS, FUSED_BRANCHES = "addressing", "barriers", "fused-branches"
"""Probes whose facts predictions use."""

MOVE_ELIMINATION, DEPENDENCY_BREAKING, ZERO_IDIOMS = "move-elimination", "dependency-breaking", "zero-idioms"
"""Probes whose facts are in drafts of scheduling models for LLVM."""

VECTOR_STATES, ASKED_IN_A_ROW, ASKED_UPDATE = "vector-states", "ADDPS (XMM, XMM)", "ADD (M64, I8)"
SSE_IN_A_ROW, SSE_SIDE_BY_SIDE = "SSE one after the other", "8 of SSE side by side"
UPPER_HALVES = {256: "upper halves set", 512: "upper halves of 512 bits set"}
"""A probe whose facts are conditions of latencies, the forms that are asked, and parts of its subjects."""

CLEARING = "VZEROUPPER"
"""What clears the upper halves of vectors: the same probe's subject for what chains take longer by it."""

CACHES, CACHE_LEVELS = "caches", ("first", "second", "third")
"""A probe whose facts say how long loads take that are further away, and its levels."""

IN_FLIGHT, MISPREDICTION = "in-flight", "misprediction"
"""Probes whose facts are sizes and times in exported machine models."""

WRONG_BRANCH = "branch on a sign"


class InFlight(StrEnum):
    """Instructions of which so many are in flight at once."""

    NOPS = "NOPs"
    ADDITIONS = "additions"
    VECTORS = "vector additions"
    DOUBLES = "additions of doubles"
    LOADS = "loads"
    STORES = "stores"
    ANY = "instructions of any kind"


ITSELF = ", onto itself"  # behind a move: its target is its source

OF_GENERAL, VECTOR, VEX, STACKED, LOOPED = "", "vector", "VEX", "stack pointer", "in a short loop"
STACK_UPDATE = "stack pointer behind a push and a pop"
STACK_MOVES = "moves of the stack pointer"
STACK_READS = "operations on the stack pointer, one after the other"
SHORTEST_NOPS, LONGER_NOPS = range(4, 41), range(8, 33)  # NOPs of loops that tell how a core gets code
BEGUN_LATE = (4, 8)  # NOPs of a loop that begins so many bytes before the end of a line
BESIDE_CONSTANTS = (6, 7)  # instructions of loops that tell how many constants a line has room for


class Constants(StrEnum):
    """What instructions of short loops have in their code."""

    ONE = "constants of an instruction each"
    TWO = "constants, two of an instruction"
    WIDE = "constants of 64 bits"


class MemoryWay(StrEnum):
    """Ways through memory from a store to a load, by the addresses."""

    BASE = "base register"
    REWRITTEN = "base written in between"
    OTHER = "another base"
    REWRITTEN_SHORT = "base written in between, in a short loop"
    OTHER_SHORT = "another base, in a short loop"
    COPIED = "copied base"
    STACK = "stack pointer"
    STACK_OVERWRITTEN = "stack pointer overwritten in between"
    INDEXED = "base and index"
    UPDATED = "read, modified and written, base written in between"
    STACK_UPDATED = "read, modified and written, stack pointer"


def transfer_subject(bits: int, kind: str = OF_GENERAL) -> str:
    """A load of as much as was stored, of a kind."""
    return f"{bits} bits, {kind}" if kind else f"{bits} bits"


def forwarding_subject(stored: int, loaded: int, offset: int, kind: str = OF_GENERAL) -> str:
    """A load of some bits that begins some bytes behind where bits were stored."""
    subject = f"{stored} bits, load of {loaded} at +{offset}"
    return f"{subject}, {kind}" if kind else subject


def distance_subject(stores: int, kind: str = OF_GENERAL) -> str:
    """A load with so many other stores between its own and it."""
    subject = f"{stores} stores in between"
    return f"{subject}, {kind}" if kind else subject


def level_subject(level: int) -> str:
    """A load from a cache; levels are counted from 1."""
    return f"{CACHE_LEVELS[level - 1]} level, load"


TRIP_ADDITIONS, TRIP_NOPS = (1, 2, 3, 4), (0, 1, 2, 3, 4)
"""Additions in a round trip through memory, and NOPs between updates of one place."""


def trip_subject(additions: int) -> str:
    """A store, a load of it by the same base, and so many additions to what the store is of."""
    return f"{additions} additions in a round trip"


def update_subject(nops: int) -> str:
    """Updates of one place with so many NOPs between them."""
    return f"{nops} NOPs between updates"


class LoadWork(StrEnum):
    """What an instruction makes of what it loads."""

    SIGNED = "sign extended"
    MERGED = "merged"
    ADDED = "operand of an addition"


def worked_subject(work: LoadWork, stored: int = 64, loaded: int = 64, kind: str = OF_GENERAL) -> str:
    """A load of the first of so many bits that were stored, of which something is made, of a kind."""
    size = transfer_subject(loaded) if loaded == stored else forwarding_subject(stored, loaded, 0)
    what = str(work) if work is LoadWork.ADDED and stored == loaded == 64 else f"{size}, {work}"
    return f"{what}, {kind}" if kind else what


def loads_apart(distance: int) -> str:
    """Loads from two places in turn, so many bytes apart."""
    return f"loads {distance} bytes apart"


NARROW = 4  # bytes of the loads that tell whether banks are narrower than registers
NARROW_LOADS = f"loads of {8 * NARROW} bits {NARROW} bytes apart"


def stores_apart(distance: int) -> str:
    """The same of stores."""
    return f"stores {distance} bytes apart"


def consumer_subject(first: str, second: str) -> str:
    """Two operations in turn, by their forms."""
    return f"{first} and {second}"


def consumer_forms(subject: str) -> tuple[str, str]:
    """The forms of a subject."""
    first, _, second = subject.partition(" and ")
    return first, second


def stores_across(place: str) -> str:
    """Stores across the ends of a place."""
    return f"stores across {place}"


def loads_across(place: str) -> str:
    """Loads of eight bytes side by side, that begin before a place and end behind it."""
    return f"loads across {place}"


class WideLoad(StrEnum):
    """Where loads of vectors begin, so that they are in one line or in two."""

    INSIDE = "in one line"
    ACROSS = "in two lines"
    HALVES = "a half in each of two lines"


def wide_loads(bits: int, where: WideLoad) -> str:
    """Loads of so many bits, into vectors, side by side."""
    return f"loads of {bits} bits, {where}"


class Addressed(StrEnum):
    """Instructions that may need more than others by what their addresses, or operands, are made of."""

    STORE = "stores, base and index"
    OPERATION = "operations on what is loaded, base and index"
    UPDATE = "updates of memory, base and index"
    POINTED = "operations on the stack pointer"


class More(StrEnum):
    """What an instruction may need more of."""

    SLOTS = "slots"
    ADDITIONS = "additions"


class AddressMade(StrEnum):
    """What an address with an index is made of."""

    INDEXED = "base and index"
    DISPLACED = "base, index and displacement"
    SCALED = "base and scaled index"
    SCALED_DISPLACED = "base, scaled index and displacement"


ADDRESS_ENDS = ("base", "index")


def later_subject(end: str, made: AddressMade) -> str:
    """Loads whose addresses wait for one of the two registers, by what these are made of."""
    return f"loads, from the {end}: {made}"


CONSTANT_BITS = (8, 16, 32, 64)  # of constants that are stored


def addressed_subject(which: str, more: More) -> str:
    """What such instructions need more of than those by a base alone."""
    return f"{which}: {more}"


def stacked_constant(bits: int) -> str:
    """Constants that are stored by the stack pointer, compared with those by another register."""
    return f"constants of {bits} bits, {STACKED}"


def stored_constant(bits: int) -> str:
    """Constants that are stored by another register, compared with registers that are stored by it."""
    return f"constants of {bits} bits"


def constants_alone(bits: int) -> str:
    """Constants that are stored, with nothing beside them."""
    return f"{stored_constant(bits)}, one after the other"


THREES = "stores in threes, 256 bytes apart"
LOADED_PLACES, LOADS_AND_OPERATIONS = "loads from where the one before says", "loads and operations on memory"
BESIDE_LOADS = (
    (3, 1),
    (5, 2),
    (2, 1),
    (5, 3),
    (3, 2),
    (1, 1),
)  # and additions, the fewest for each load first
ACROSS_AND_BEHIND = "stores across 64 bytes and behind them, in turn"
LOADED_AGAIN = (2, 3, 4, 6)  # one of so many stores


MAKING, IDLING, READING = "making", "idle", "reading"  # operations of the probe `scheduler`
READ_APART = (0, 1, 2, 3, 4, 6, 8, 12)  # idle ones between what makes a value and what reads it


def loads_and_additions(loads: int, additions: int) -> str:
    """Loads and additions of registers in turn, so many of each."""
    return f"{loads} loads and {additions} additions in turn"


def stores_loaded(of: int) -> str:
    """Stores to two places of one chunk, one of so many of which is loaded again while it is in flight."""
    return f"stores, one of {of} loaded again"


BESIDE_STORES = (2, 3)  # loads for each store


def wide_stores(bits: int) -> str:
    """Stores of vectors of so many bits."""
    return f"stores of {bits} bits"


def beside_stores(bits: int, loads: int) -> str:
    """Loads of vectors of so many bits, and a store of as many for each so many of them."""
    return f"{loads} loads of {bits} bits for each store"


PARTIAL_BITS, WHOLE_BITS = (8, 16, 32), 64
"""Bits of the stores that tell whether parts of a word take longer, and of those they are compared with."""


def small_stores(bits: int, places: int) -> str:
    """Stores of so many bits, to so many places in turn."""
    return f"stores of {bits} bits to {places} places"


WITH = " + "  # between the two instructions of a pair


def fused_subject(first: str, second: str) -> str:
    """Two instructions next to each other, by their forms."""
    return f"{first}{WITH}{second}"


CHOICE, SHIFT = "CMOVZ (R64, R64)", "SHL (R64, I8)"
COUNTED_AMONG = {
    "DEC (R64) + JZ (Rel8), among conditional moves": CHOICE, "DEC (R64) + JZ (Rel8), among shifts": SHIFT,
}  # fmt: skip
"""A count with the branch that it shares a slot with, among what may be executed where branches are."""


def fused_forms(subject: str) -> tuple[str, str]:
    """The forms of a pair."""
    first, _, second = subject.partition(WITH)
    return first, second


def mnemonic_of(form: str) -> str:
    """The mnemonic in a form's id: what is in front of an opcode or operands that tell it from others."""
    return form.partition(" ")[0].partition("_")[0]


def loop_of(nops: int, size: int) -> str:
    """A loop of so many NOPs of so many bytes."""
    return f"{nops} NOPs of {size} bytes in a loop"


def begun_late(size: int) -> str:
    """The loop of a few NOPs of so many bytes that begins shortly before the end of its line."""
    nops, before = BEGUN_LATE
    return f"{loop_of(nops, size)}, begun {before} bytes before its line ends"


WITH_CONSTANTS = {
    (Constants.ONE, BESIDE_CONSTANTS[1]): range(2, 7),
    (Constants.TWO, BESIDE_CONSTANTS[1]): range(2, 8),
    (Constants.TWO, BESIDE_CONSTANTS[0]): range(2, 9),
    (Constants.WIDE, BESIDE_CONSTANTS[1]): range(1, 4),
}
"""How many constants short loops have, by their kind and the number of instructions."""


def loop_with(count: int, what: Constants, among: int) -> str:
    """A loop of some instructions and its end, with so many constants."""
    return f"{count} {what}, among {among} instructions in a loop"


def barrier_subject(mnemonic: str, of: str) -> str:
    """A barrier with general instructions behind it (""), or with those of vectors."""
    return f"{mnemonic}, {of} instructions behind it" if of else mnemonic
