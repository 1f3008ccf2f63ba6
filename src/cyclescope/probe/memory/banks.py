"""Which loads, and which stores, of the same cycle are in each other's way?

Two places in turn, so many bytes apart, many times over, into registers that nothing waits for. A cache with
banks is read less often at one place than at two in different banks, and less often again where the banks
repeat. Stores leave for the cache one place after the other where they cannot go together; three by three
they show whether an odd one takes a cycle for itself, and one of two places with one behind it whether
these go together. Stores of a few bits show whether the rest of a word is read, and for how long that waits
for what was written there before. Stores some of which are loaded again show whether they leave as often
then. Loads of half a register next to each other show whether banks are as
narrow as that. Vectors are stored, and loaded two or three times for each store: what both take together may
be more than either takes alone. Chains of loads tell how many may be on their way. Rows of stores to one line
after the other tell how many lines are gathered before they leave, and what lines take that are more.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cyclescope.model.behaviour.found import SMALL_PLACES, SPACINGS, WIDE_BITS
from cyclescope.model.behaviour.late_loads import CHAIN_LENGTHS, ENDLESS, chained_loads
from cyclescope.model.behaviour.store_lines import (
    COUNTED_ROWS,
    FEWER_LINES,
    LINE,
    MANY,
    ROWS,
    stores_in_lines,
)
from cyclescope.model.facts import (
    ACROSS_AND_BEHIND,
    BANKS,
    BESIDE_LOADS,
    BESIDE_STORES,
    LOADED_AGAIN,
    LOADED_PLACES,
    LOADS_AND_OPERATIONS,
    NARROW,
    NARROW_LOADS,
    PARTIAL_BITS,
    THREES,
    WHOLE_BITS,
    beside_stores,
    loads_and_additions,
    loads_apart,
    small_stores,
    stores_apart,
    stores_loaded,
    wide_stores,
)
from cyclescope.probe.code import CHAIN_PLACE, NUMBERS, PARALLEL, PLAIN_SETTING, SOME, Setting, written
from cyclescope.probe.memory.transfers import (
    EMULATED_IF_UNALIGNED,
    PLAIN_TRANSFERS,
    VECTOR_TRANSFERS,
    Transfer,
    load_latency,
    per_cycle,
    with_register,
)
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings

_MOST = 0.05  # relative error: more would not tell 3 accesses a cycle from 2.5
_QUICK = (0, 8, 32, 64)
_FAR = (512, 4096, 65536)  # bytes: places of other lines or pages that a cache may take for one
_POINTED = 512  # bytes from the data to where a stored pointer leads
_OPERATION = {"x86-64": "CMP (R64, M64): h p"}  # that only flags depend on
_ADDITION = {"x86-64": "LEA_B_D32 (R64): a p +512"}  # long, so that fetching is no limit
_PLACED_BY = f"{SOME[1:]}D"  # registers that every form takes as a base; a is what is stored


def _cases(isa: str) -> Iterator[ProbeCase]:
    for distance in (*SPACINGS, *_FAR) if isa in PLAIN_TRANSFERS else ():
        for name, letters, is_load in ((loads_apart, SOME, True), (stores_apart, "a" * len(SOME), False)):
            point = _point(isa, distance, "po" * (len(letters) // 2), letters, is_load)
            yield ProbeCase(name(distance), (point,), distance in _QUICK)
    if isa in PLAIN_TRANSFERS:
        if isa not in EMULATED_IF_UNALIGNED:
            yield ProbeCase(ACROSS_AND_BEHIND, (_across_and_behind(isa),))
        for bits in (*PARTIAL_BITS, WHOLE_BITS):
            yield ProbeCase(small_stores(bits, 2), (_in_turn(isa, bits, 2),), bits == PARTIAL_BITS[0])
        for places in SMALL_PLACES:
            yield ProbeCase(
                small_stores(PARTIAL_BITS[0], places), (_in_turn(isa, PARTIAL_BITS[0], places),), False
            )
        yield ProbeCase(THREES, (_point(isa, SPACINGS[-1], "pppooo" * 2, "a" * 12, False),))
        for of in LOADED_AGAIN:
            yield ProbeCase(stores_loaded(of), (_loaded_again(isa, of),), False)
        yield from _late_cases(isa)
        for loads, additions in BESIDE_LOADS if isa in _ADDITION else ():
            point = _beside_additions(isa, loads, additions)
            yield ProbeCase(loads_and_additions(loads, additions), (point,), False)
        yield ProbeCase(NARROW_LOADS, (_point(isa, NARROW, "po" * (len(SOME) // 2), SOME, True, 8 * NARROW),))
        yield from _wide_cases(isa)
        yield from _line_cases(isa)


def _late_cases(isa: str) -> Iterator[ProbeCase]:
    """Loads that wait for each other, in pairs and chains, and those of operations."""
    yield ProbeCase(LOADED_PLACES, (_loaded_places(isa),), False)
    for loads in CHAIN_LENGTHS:
        yield ProbeCase(chained_loads(loads), (_chain(isa, loads),), False)
    yield ProbeCase(ENDLESS, (_endless(isa),), False)
    if isa in _OPERATION:
        yield ProbeCase(LOADS_AND_OPERATIONS, (_loads_and_operations(isa),), False)


def _line_cases(isa: str) -> Iterator[ProbeCase]:
    """Rows of stores to lines in turn; where a row could write all of a line, also to its first half."""
    for row in ROWS:
        for lines in (*(FEWER_LINES if row in COUNTED_ROWS else ()), MANY):
            yield ProbeCase(stores_in_lines(row, lines), (_rows(isa, row, lines, LINE // 2),), False)
    yield ProbeCase(stores_in_lines(ROWS[-1], MANY, whole=True), (_rows(isa, ROWS[-1], MANY, LINE),), False)


def _rows(isa: str, row: int, lines: int, written_bytes: int) -> Point:
    """So many stores of eight bytes to the first bytes of one line, and of the next."""
    store = PLAIN_TRANSFERS[isa][-1].store
    bases = _PLACED_BY[: MANY // 2]  # two lines behind each, as far as short displacements reach
    texts = [
        f"{store.replace('@', bases[line // 2])} +{line % 2 * LINE + 8 * n % written_bytes}"
        for line in range(lines) for n in range(row)
    ]  # fmt: skip
    setting = Setting(pointers=tuple((NUMBERS[isa][base], 2 * LINE * n) for n, base in enumerate(bases)))
    return Point("accesses", written(isa, *texts), 0, PARALLEL, setting, len(texts))


def _wide_cases(isa: str) -> Iterator[ProbeCase]:
    """Vectors, of each size the last kind that there is."""
    kinds = {one.bits: one for kind in VECTOR_TRANSFERS[isa].values() for one in kind}
    for bits in WIDE_BITS:
        if bits in kinds:
            yield ProbeCase(wide_stores(bits), (_with_stores(isa, kinds[bits], 0),), False)
            for loads in BESIDE_STORES:
                yield ProbeCase(beside_stores(bits, loads), (_with_stores(isa, kinds[bits], loads),), False)


def _with_stores(isa: str, kind: Transfer, loads: int) -> Point:
    """Stores to one place, and so many loads from another before each."""
    store = with_register(kind.store.replace("@", "p"), SOME[-1])
    turn = [*(with_register(kind.load.replace("@", "o"), one) for one in SOME[:loads]), store]
    lines = written(isa, *turn * 2)
    setting = Setting(pointers=((NUMBERS[isa]["o"], _POINTED),))
    return Point("accesses", lines, 0, PARALLEL, setting, len(lines))


def _point(isa: str, distance: int, places: str, letters: str, is_load: bool, bits: int = 64) -> Point:
    """Accesses with registers by letters at places by letters: o is so many bytes behind p."""
    whole = next(one for one in PLAIN_TRANSFERS[isa] if one.bits == bits)
    text = whole.load if is_load else whole.store
    texts = [with_register(text.replace("@", at), one) for at, one in zip(places, letters, strict=True)]
    setting = Setting(pointers=((NUMBERS[isa]["o"], distance),))
    return Point("accesses", written(isa, *texts), 0, PARALLEL, setting, len(texts))


def _across_and_behind(isa: str) -> Point:
    """A store of eight bytes across the end of 64, and one of the next eight."""
    whole = PLAIN_TRANSFERS[isa][-1]
    lines = written(isa, *(whole.store.replace("@", at) for at in "po" * 4))
    setting = Setting(pointers=((NUMBERS[isa]["p"], 60), (NUMBERS[isa]["o"], 68)))
    return Point("accesses", lines, 0, PARALLEL, setting, len(lines))


def _in_turn(isa: str, bits: int, places: int) -> Point:
    """Stores of so many bits to places 64 bytes apart, in turn."""
    one = next(one for one in PLAIN_TRANSFERS[isa] if one.bits == bits)
    letters = _PLACED_BY[:places]
    lines = written(isa, *(one.store.replace("@", letter) for letter in letters))
    setting = Setting(pointers=tuple((NUMBERS[isa][letter], 64 * n) for n, letter in enumerate(letters)))
    return Point("accesses", lines, 0, PARALLEL, setting, len(lines))


def _loaded_places(isa: str) -> Point:
    """Pairs of loads: of a pointer, and from where it leads."""
    load = PLAIN_TRANSFERS[isa][-1].load
    texts = []
    for pointer, other in zip(SOME[::2], SOME[1::2], strict=True):
        texts.append(with_register(load, pointer).replace("@", "p"))
        texts.append(with_register(load, other).replace("@", pointer))
    setting = Setting(stored=((0, _POINTED),))
    return Point("accesses", written(isa, *texts), 0, PARALLEL, setting, len(texts))


def _chain(isa: str, loads: int) -> Point:
    """Loads each from where the one before says, of pages of their own, at the same place of each."""
    load = with_register(PLAIN_TRANSFERS[isa][-1].load, "a")
    texts = [load.replace("@", "p") + f" +{CHAIN_PLACE}", *[load.replace("@", "a")] * (loads - 1)]
    return Point("accesses", written(isa, *texts), 0, PARALLEL, Setting(chain=(loads, _FAR[1])), loads)


def _endless(isa: str) -> Point:
    """A load of a pointer to itself, over and over."""
    chain = load_latency(isa)
    return msgspec.structs.replace(chain, part="accesses", count=len(chain.lines))


def _loaded_again(isa: str, of: int) -> Point:
    """So many stores to two places in turn, and a load of one of them."""
    whole = PLAIN_TRANSFERS[isa][-1]
    stores = [whole.store.replace("@", "po"[n % 2]) for n in range(of)]
    load = with_register(whole.load, SOME[0]).replace("@", "p")
    setting = Setting(pointers=((NUMBERS[isa]["o"], 8),))
    return Point("accesses", written(isa, *stores, load), 0, PARALLEL, setting, of)


def _beside_additions(isa: str, loads: int, additions: int) -> Point:
    """Loads and additions, spread evenly; what is counted are the loads."""
    load, many = PLAIN_TRANSFERS[isa][-1].load.replace("@", "p"), loads + additions
    texts = [
        load if (n + 1) * additions // many == n * additions // many else _ADDITION[isa] for n in range(many)
    ]
    named = [with_register(text, SOME[n % len(SOME)]) for n, text in enumerate(texts)]
    return Point("accesses", written(isa, *named), 0, PARALLEL, PLAIN_SETTING, loads)


def _loads_and_operations(isa: str) -> Point:
    """A load and an operation on memory, in turn."""
    whole = PLAIN_TRANSFERS[isa][-1]
    loads = [with_register(whole.load.replace("@", "p"), letter) for letter in SOME]
    texts = [text for load in loads for text in (load, _OPERATION[isa])]
    return Point("accesses", written(isa, *texts), 0, PARALLEL, PLAIN_SETTING, len(texts))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    return per_cycle(readings, _MOST)


PROBE = Probe(
    BANKS,
    "How many accesses does a cycle take that go to two places in turn, so many bytes apart?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_banks", "T. Downs, uarch-bench"),
    unit="per cycle",
)
