"""What the front end, the renamer and the memory of a core do beside executing single forms.

Of a measured machine that is what its own probes found, and nothing else; of others what is published of the
core (`model.behaviour.published`). Where nothing is known, nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.addresses import ONE_MORE, addressing_of
from cyclescope.model.behaviour.barriers import held_behind
from cyclescope.model.behaviour.late_loads import late_loads
from cyclescope.model.behaviour.lines import code_lines
from cyclescope.model.behaviour.nops import trailed
from cyclescope.model.behaviour.passing import MemoryPassing
from cyclescope.model.behaviour.published import (
    CORES,
    BesideAdditions,
    BesideStores,
    CoreBehaviour,
    LineCrossing,
    LoadBanks,
    LoadedStores,
    PartialWords,
    StoreChunks,
    WideLoads,
)
from cyclescope.model.behaviour.store_lines import store_lines
from cyclescope.model.facts import (
    ACROSS_AND_BEHIND,
    BANKS,
    BESIDE_LOADS,
    BESIDE_STORES,
    CLEARING,
    CONSUMERS,
    COUNTED_AMONG,
    CROSSING,
    FUSED_BRANCHES,
    FUSION,
    LOADED_AGAIN,
    NARROW,
    NARROW_LOADS,
    PARTIAL_BITS,
    STACK_ENGINE,
    STACK_MOVES,
    STACK_READS,
    STACK_UPDATE,
    THREES,
    VECTOR_STATES,
    WHOLE_BITS,
    CoreAnswer,
    Fact,
    WideLoad,
    beside_stores,
    consumer_forms,
    fused_forms,
    loads_across,
    loads_and_additions,
    loads_apart,
    small_stores,
    stores_across,
    stores_apart,
    stores_loaded,
    wide_loads,
    wide_stores,
)
from cyclescope.model.machine import MEASURED, MachineModel

SPACINGS = (0, 4, 8, 16, 32, 64, 128, 256)  # bytes between two accesses in turn that probes ask for
SMALL_PLACES = (3, 4, 5, 6, 7, 8)  # to which stores of parts of words go in turn
LINE_SIZES = (16, 32, 64)  # bytes: what loads are asked to cross
WIDE_BITS = (128, 256, 512)  # of vectors, those of which are asked that the instruction set has
_LONGER = 0.5  # times what a load takes: half of one more
_LATER = 0.5  # cycles: results come a whole one later, or not
_JOINED = 0.8  # stores a cycle, between the two of three cycles and the two of two
_SLOWED = 0.85  # times as many accesses a cycle: of three or two, the next whole or half number is less


def behaviour_of(machine: MachineModel) -> CoreBehaviour:
    """What is known of a machine: found by its probes, or published under one of its names."""
    if machine.provenance.kind == MEASURED:
        return measured_behaviour(machine.facts, machine.isa, machine.core.nops)
    words = machine.name.lower().replace("_", "-").split()
    return next((core.behaviour for name, core in CORES.items() if name in words), CoreBehaviour())


def measured_behaviour(facts: Sequence[Fact], isa: str, nops: int = 1) -> CoreBehaviour:
    """What probes found that predictions need, of an instruction set; `nops` of the NOPs share a slot."""
    return CoreBehaviour(
        passing=MemoryPassing(facts), pairs=_pairs(facts, isa), apart_in_memory=_apart(facts, isa),
        store_chunk=_store_chunk(facts),
        store_lines=store_lines(facts, _most_stores(facts)), banks=_banks(facts),
        crossing=_load_crossing(facts),
        store_crossing=_crossing(facts, stores_apart, stores_across), early=_early(facts, isa),
        stack_update=_stack_update(facts), stack_moves=_stack_moves(facts), stack_reads=_stack_reads(facts),
        lines=code_lines(facts, nops),
        late_loads=late_loads(facts, _most_loads(facts), _SLOWED), beside_additions=_beside_additions(facts),
        loaded_stores=_loaded_stores(facts), addressing=addressing_of(facts, _longest_of_registers(facts)),
        branches_apart=_branches_apart(facts), counted_as=_counted_as(facts), trailed=trailed(facts, isa),
        clears_at_once=_clears_at_once(facts), nops=nops, beside_stores=_beside_stores(facts),
        together=_cycles_together(facts), held=held_behind(facts),
    )  # fmt: skip


def _pairs(facts: Sequence[Fact], isa: str) -> frozenset[tuple[str, str]]:
    """Mnemonics that share a slot, all of whose forms in registers that were asked do."""
    found = _fusion(facts, isa, memory=False)
    return frozenset(pair for pair, answers in found.items() if answers == {CoreAnswer.FUSED})


def _apart(facts: Sequence[Fact], isa: str) -> frozenset[str]:
    """Mnemonics some of whose forms with memory share no slot with a branch."""
    found = _fusion(facts, isa, memory=True)
    return frozenset(first for (first, _), answers in found.items() if CoreAnswer.SEPARATE in answers)


def _fusion(facts: Sequence[Fact], isa: str, memory: bool) -> dict[tuple[str, str], set[CoreAnswer]]:
    """What was found of pairs by their mnemonics, the first with memory or without; JNZ is as JZ."""
    asked = [fact for fact in facts if fact.probe == FUSION and fact.is_resolved]
    if not asked:
        return {}
    table = load_table(isa)
    answers: dict[tuple[str, str], set[CoreAnswer]] = {}
    for fact in asked:
        first, second = fused_forms(fact.subject)
        for branch in (second, f"{second[0]}N{second[1:]}"):  # JNZ looks at the same flags as JZ
            if branch in table and first in table and (table[first].memory >= 0) is memory:
                pair = table[first].mnemonic, table[branch].mnemonic
                answers.setdefault(pair, set()).add(fact.answer)
    return answers


def _branches_apart(facts: Sequence[Fact]) -> bool:
    """Whether all comparisons with branches that were asked take clearly less than half an addition."""
    asked = (f for f in facts if f.probe == FUSED_BRANCHES and f.subject not in COUNTED_AMONG)
    known = [f for f in asked if f.value is not None]
    return bool(known) and all((f.value or 0.0) + (f.error or 0.0) < ONE_MORE for f in known)


def _counted_as(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Forms of each of which a count with its branch clearly takes the place of more than half of one."""
    known = {f.subject: f for f in facts if f.probe == FUSED_BRANCHES and f.value is not None}
    return tuple(
        form
        for subject, form in COUNTED_AMONG.items()
        if subject in known and (known[subject].value or 0.0) - (known[subject].error or 0.0) > ONE_MORE
    )


def _early(facts: Sequence[Fact], isa: str) -> dict[str, float]:
    """Mnemonics that take longer in turn with another kind, and not with one of their own, with how much.

    What others of a group are asked with is of their kind if it takes longer with the other kind itself.
    """
    asked: dict[str, dict[str, Fact]] = {}
    for fact in facts:
        if fact.probe == CONSUMERS and fact.value is not None:
            first, second = consumer_forms(fact.subject)
            asked.setdefault(first, {})[second] = fact
    if not asked:
        return {}
    table, found = load_table(isa), {}
    for first, by in asked.items():
        apart = [fact for second, fact in by.items() if second not in asked]
        alike = [fact for second, fact in by.items() if second in asked]
        if apart and first in table and all(map(_is_later, apart)) and not any(map(_is_later, alike)):
            found[table[first].mnemonic] = min(round(fact.value or 0.0, 1) for fact in apart)
    return found


def _is_later(fact: Fact) -> bool:
    return (fact.value or 0.0) - (fact.error or 0.0) > _LATER


def _stack_update(facts: Sequence[Fact]) -> float:
    """Cycles until the register has a stack pointer that pushes moved; none where nobody asked."""
    found = (fact.value for fact in facts if fact.probe == STACK_ENGINE and fact.subject == STACK_UPDATE)
    return float(round(next((value for value in found if value is not None), 0.0)))


def _stack_moves(facts: Sequence[Fact]) -> bool:
    asked = (fact for fact in facts if fact.probe == STACK_ENGINE and fact.subject == STACK_MOVES)
    return any(fact.answer is CoreAnswer.EXECUTED for fact in asked)


def _stack_reads(facts: Sequence[Fact]) -> float:
    """Cycles of each operation on the stack pointer, where each waits for the one before; else none."""
    found = (fact for fact in facts if (fact.probe, fact.subject) == (STACK_ENGINE, STACK_READS))
    return next((fact.value for fact in found if fact.value is not None), 0.0)


def _clears_at_once(facts: Sequence[Fact]) -> bool:
    """Whether chains take no longer by what clears the upper halves of all vectors."""
    asked = (f for f in facts if (f.probe, f.subject) == (VECTOR_STATES, CLEARING) and f.value is not None)
    return any(abs(fact.value or 0.0) + (fact.error or 0.0) < _LATER for fact in asked)


def _rates(facts: Sequence[Fact], subjects: Mapping[int, str]) -> dict[int, Fact]:
    known = {fact.subject: fact for fact in facts if fact.probe == BANKS and fact.value is not None}
    return {apart: known[subject] for apart, subject in subjects.items() if subject in known}


def _rate(fact: Fact) -> float:
    """Accesses per cycle: a whole or a half number if the reading may be one."""
    value = fact.value or 0.0
    near = round(2 * value) / 2
    return near if abs(value - near) <= (fact.error or 0.0) else value


def _slowed(rates: Mapping[int, Fact]) -> set[int]:
    """Distances at which fewer accesses are done in a cycle than at others, beyond all doubt."""
    best = max((f.value - (f.error or 0.0) for f in rates.values() if f.value is not None), default=0.0)
    return {
        apart for apart, fact in rates.items()
        if fact.value is not None and fact.value + (fact.error or 0.0) < _SLOWED * best
    }  # fmt: skip


def _banks(facts: Sequence[Fact]) -> LoadBanks | None:
    """Loads next to each other wait, those a bank's width apart do not, those a period apart do again.

    Loads of registers that overlap share a bank whatever it is wide: narrow ones tell of narrow banks.
    """
    rates = _rates(facts, {apart: loads_apart(apart) for apart in SPACINGS})
    slowed = _slowed(rates)
    width = min((apart for apart in rates if apart not in slowed), default=0)
    period = min((apart for apart in slowed if apart > width), default=0)
    if 0 not in slowed or not width or not period:
        return None
    narrow = _rates(facts, {NARROW: NARROW_LOADS})
    if narrow and NARROW not in _slowed(rates | narrow):
        width = min(width, NARROW)
    return LoadBanks(width, period, min(_rate(rates[apart]) for apart in (0, period)))


def _loaded_stores(facts: Sequence[Fact]) -> LoadedStores | None:
    """What stores take of which so many are loaded again that they are slower, up to some share of loads."""
    rates = _rates(facts, {of: stores_loaded(of) for of in LOADED_AGAIN})
    alone = _rates(facts, {0: stores_apart(0)})
    slowed = _slowed(rates | alone) - {0}
    if not alone or not slowed or slowed != {of for of in rates if of <= max(slowed)} or slowed == set(rates):
        return None
    return LoadedStores(1 / min(_rate(rates[of]) for of in slowed), 1 / max(slowed), _rate(alone[0]))


def _beside_stores(facts: Sequence[Fact]) -> tuple[BesideStores, ...]:
    """Vectors whose loads and stores together take clearly longer than either alone."""
    inside = {fact.subject: fact.value for fact in facts if fact.probe == CROSSING}
    found = []
    for bits in WIDE_BITS:
        load, rates = inside.get(wide_loads(bits, WideLoad.INSIDE)), _rates(facts, _together(bits))
        if load and set(rates) == {0, *BESIDE_STORES}:
            alone, *cycles = ((loads + 1) / _rate(rates[loads]) for loads in (0, *BESIDE_STORES))
            each = (cycles[1] - cycles[0]) / (BESIDE_STORES[1] - BESIDE_STORES[0])
            store = cycles[0] - BESIDE_STORES[0] * each
            if min(each, store) > 0 and _SLOWED * cycles[0] > max(alone, BESIDE_STORES[0] * load):
                found.append(BesideStores(bits // 8, each, store))
    return tuple(found)


def _cycles_together(facts: Sequence[Fact]) -> dict[int, float]:
    """Cycles of a store and the loads before it, by their number, of the narrowest vectors asked."""
    rates = next(filter(None, (_rates(facts, _together(bits)) for bits in WIDE_BITS)), {})
    return {loads: (loads + 1) / _rate(fact) for loads, fact in rates.items() if loads}


def _together(bits: int) -> dict[int, str]:
    """What is asked of such vectors, by the number of loads for each store."""
    return {0: wide_stores(bits), **{loads: beside_stores(bits, loads) for loads in BESIDE_STORES}}


def _beside_additions(facts: Sequence[Fact]) -> BesideAdditions | None:
    """What loads take beside additions, if some surely take longer than others, and all was asked."""
    rates = _rates(facts, {n: loads_and_additions(*pair) for n, pair in enumerate(BESIDE_LOADS)})
    fastest = max(map(_rate, rates.values()), default=0.0)
    sure = max(((fact.value or 0.0) - (fact.error or 0.0) for fact in rates.values()), default=0.0)
    slow = {n for n, fact in rates.items() if _rate(fact) + (fact.error or 0.0) < sure}
    if len(rates) < len(BESIDE_LOADS) or not slow:
        return None
    taken = (1 / (_rate(rates[n]) if n in slow else fastest) for n in range(len(BESIDE_LOADS)))
    shares = (additions / loads for loads, additions in BESIDE_LOADS)
    return BesideAdditions(tuple(zip(shares, taken, strict=True)))


def _crossing(
    facts: Sequence[Fact], apart: Callable[[int], str], across: Callable[[str], str]
) -> LineCrossing | None:
    """The shortest line across whose end an access takes longer, how much, and how long any takes."""
    rates = _rates(facts, {spacing: apart(spacing) for spacing in SPACINGS})
    fastest = max(map(_rate, rates.values()), default=0.0)
    known = {fact.subject: fact for fact in facts if fact.probe == CROSSING and fact.value is not None}
    for line in LINE_SIZES:
        fact = known.get(across(f"{line} bytes"))
        if fact and fact.value and fastest and fact.value - (fact.error or 0.0) > _LONGER / fastest:
            return LineCrossing(line, 1 / fastest, fact.value)
    return None


def _load_crossing(facts: Sequence[Fact]) -> LineCrossing | None:
    """The same of loads, with those of vectors that are known to take longer across a line's end."""
    found = _crossing(facts, loads_apart, loads_across)
    if found is None:
        return None
    asked = {fact.subject: fact for fact in facts if fact.probe == CROSSING and fact.value is not None}
    wide = (_wide_loads(asked, bits) for bits in WIDE_BITS)
    return msgspec.structs.replace(found, wide=tuple(one for one in wide if one is not None))


def _wide_loads(asked: Mapping[str, Fact], bits: int) -> WideLoads | None:
    """Loads of so many bits; where halves were not asked, they take what others across lines do."""
    inside, across = (asked.get(wide_loads(bits, where)) for where in (WideLoad.INSIDE, WideLoad.ACROSS))
    halves = asked.get(wide_loads(bits, WideLoad.HALVES), across)
    if inside is None or across is None or halves is None or not inside.value or not across.value:
        return None
    if inside.value >= _SLOWED * (across.value - (across.error or 0.0)):
        return None
    return WideLoads(bits // 8, inside.value, across.value, halves.value or across.value)


def _store_chunk(facts: Sequence[Fact]) -> StoreChunks | None:
    """The least distance from which on stores in turn are slower, and how many there are at one place."""
    rates = _rates(facts, {apart: stores_apart(apart) for apart in SPACINGS})
    slowed = _slowed(rates)
    if 0 not in rates or 0 in slowed:
        return None
    size = min((apart for apart in slowed if all(a in slowed for a in rates if a > apart)), default=0)
    if not size:
        return None
    threes = _rates(facts, {0: THREES, 1: stores_apart(0)})
    most = max(round(_rate(rates[0])), 1) if 0 in _slowed(threes) else size
    return StoreChunks(size, most, _joins(facts), _partial_words(facts))


def _most_loads(facts: Sequence[Fact]) -> float:
    """How many loads a cycle takes at the best of distances, 0 where nobody knows."""
    return max(map(_rate, _rates(facts, {at: loads_apart(at) for at in SPACINGS}).values()), default=0.0)


def _most_stores(facts: Sequence[Fact]) -> float:
    """How many stores to one place a cycle takes, 0 where nobody knows."""
    fact = _known_rate(facts, stores_apart(0))
    return _rate(fact) if fact is not None else 0.0


def _longest_of_registers(facts: Sequence[Fact]) -> float:
    """The most cycles of each store of a register to one place after the other, 0 where nobody knows."""
    fact = _known_rate(facts, stores_apart(0))
    return 1 / (_rate(fact) - (fact.error or 0.0)) if fact is not None else 0.0


def _known_rate(facts: Sequence[Fact], subject: str) -> Fact | None:
    return _rates(facts, {0: subject}).get(0)


def _joins(facts: Sequence[Fact]) -> bool:
    """Whether a store of two chunks leaves with others: with one behind it in two cycles, and not three."""
    fact = _known_rate(facts, ACROSS_AND_BEHIND)
    return fact is not None and (fact.value or 0.0) - (fact.error or 0.0) > _JOINED


def _partial_words(facts: Sequence[Fact]) -> PartialWords | None:
    """Words as wide as the narrowest stores that are no slower than whole ones, to two places in turn.

    With more and more places in turn, a word is written again as much later; from the first number on that
    is not slower it is late enough.
    """
    whole = _known_rate(facts, small_stores(WHOLE_BITS, 2))
    asked = {bits: _known_rate(facts, small_stores(bits, 2)) for bits in PARTIAL_BITS}
    if whole is None or None in asked.values():
        return None
    rates = {bits: fact for bits, fact in asked.items() if fact is not None} | {WHOLE_BITS: whole}
    slowed = _slowed(rates)
    size = min(bits for bits in rates if bits not in slowed) // 8
    if size == 1 or min(slowed) > 8 * size:
        return None
    longer = 2 / _rate(rates[min(slowed)]) - 2 / _rate(whole)
    places = {n: _known_rate(facts, small_stores(min(PARTIAL_BITS), n)) for n in SMALL_PLACES}
    known = {n: fact for n, fact in places.items() if fact is not None} | {0: whole}
    late = [n for n in known if n and n not in _slowed(known)]
    if not late or any(n not in known for n in SMALL_PLACES if n < late[0]):
        return None
    return PartialWords(size, round(2 * longer) / 2, round(late[0] / _rate(whole)))
