"""Sequences that keep one destination: what they take longer than others they wait for its old value.

Both kernels are the same but for the register that every instance overwrites. Sources are no part of it:
the only way from one instance to the next is a false dependency.

And sequences of forms that read their destination, which something else writes first: no instance waits for
another one. Where ports are dealt out before it is known when operands are ready, so many chains as there are
destinations take longer than instances that wait for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.isa.dataflow import Pair, overwritten, register_place
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.block import Register
from cyclescope.kernel.chain import Chain, Unmeasurable, Use
from cyclescope.kernel.dialect import Dialect, Items
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.stream import LENGTHS, Stream, kind_of
from cyclescope.kernel.variant import Kind, variant_of

Streams = Sequence[tuple[Stream, str]]  # with their class of values, "" or fast or slow
SHARES = (1, 2, 4)  # of so many instances one has its destination overwritten: fewer for no room of the width
_FILLED_COPIES = 4  # instances with one-cycle instructions behind each: more registers tell no more
_ONE = "all of its instances write the same registers"


def chosen_stream(form: InstructionForm, streams: Streams) -> tuple[Stream, str]:
    """The sequence that kernels of one destination are made of, and its class of values.

    Raises Unmeasurable where the form has none without other instructions in it.
    """
    kind = kind_of(variant_of(stream.variant).kind for stream, _ in streams)
    some = [(stream, speed) for stream, speed in streams if variant_of(stream.variant).kind is kind]
    if not some:
        raise Unmeasurable("it runs only with other instructions around it")
    return max(some, key=lambda found: found[0].count)


def share_of_one(form: InstructionForm, streams: Streams) -> float:
    """The share of the instances of a sequence that write the same register, where it is least; 0 without."""
    places = [register_place(form, pair.target.operand) for pair in overwritten(form) if not pair.excluded]
    found = []
    for stream, _ in streams:
        uses = [item.registers for item in stream.items if isinstance(item, Use)]
        if uses and len(uses) == len(stream.items) and places:
            written = [Counter(use[place] for use in uses) for place in places]
            found.append(max(one.most_common(1)[0][1] for one in written) / len(uses))
    return min(found, default=0.0)


def kept(dialect: Dialect, form: InstructionForm, pair: Pair, stream: Stream) -> Chain:
    """The sequence with one destination for all instances. Raises Unmeasurable."""
    uses = list(_instances(dialect, form, pair, stream))
    items: list[Use | Instruction] = []
    for before, _, use in uses:
        items += [*before, use]
    return Chain(pair.source.name, pair.target.name, Kind.KEPT, tuple(items), (), len(uses), stream.flags)


def filled(
    dialect: Dialect, form: InstructionForm, pair: Pair, stream: Stream, count: int
) -> tuple[Chain, Chain]:
    """The kept destination, and several ones, with `count` one-cycle instructions behind every instance.

    They are longer than the instance's share of the throughput, and each begins anew unless the instance
    waits for the one before. Raises Unmeasurable.
    """
    uses = list(_instances(dialect, form, pair, stream))[:_FILLED_COPIES]
    one = [(before, use) for before, _, use in uses]
    several = [(before, use) for before, use, _ in uses]
    items, keys = _with_fillers(dialect, form, pair, one, count)
    chain = Chain(pair.source.name, pair.target.name, Kind.FILLED, items, keys, len(uses))
    apart, _ = _with_fillers(dialect, form, pair, several, count)
    return chain, msgspec.structs.replace(chain, variant=Kind.FILLED_APART, items=apart, links=())


def emptied(dialect: Dialect, form: InstructionForm, streams: Streams) -> Streams:
    """The sequence with one destination, and no value in the registers of its kind that no instance uses, so
    that a core has as many as can be for what is in flight. None where nothing takes their values away.
    """
    pair = next((one for one in overwritten(form) if not one.excluded), None)
    if pair is None or not dialect.empty(form, pair.target.operand, ()):
        return ()
    try:
        stream, speed = chosen_stream(form, streams)
        chain = kept(dialect, form, pair, stream)
    except Unmeasurable:
        return ()
    uses = [item.registers for item in chain.items if isinstance(item, Use)]
    used = {one for some in uses for one in (*dialect.written(form, some), *dialect.read(form, some))}
    setup = dialect.empty(form, pair.target.operand, used)
    found = Stream(Kind.EMPTIED, chain.count, chain.items, chain.count, chain.flags, setup)
    return ((found, speed),) if setup and not speed else ()


def own_destinations(form: InstructionForm) -> list[int]:
    """The operands that are registers of an instance's choice, and that it reads and writes."""
    return [
        position
        for position, op in enumerate(form.operands)
        if op.is_register and not op.fixed and op.read and op.write and register_place(form, position) >= 0
    ]


def independent(dialect: Dialect, form: InstructionForm, streams: Streams) -> Streams:
    """Sequences whose destinations are overwritten first: all, or those of some instances, so that it shows
    whether what overwrites them is what takes the time. None where nothing does, or instances need others.
    """
    plain = [s for s, speed in streams if not speed and variant_of(s.variant).kind is Kind.PLAIN]
    alone = [s for s in plain if s.length <= LENGTHS[1]]
    stream = max(alone, key=lambda s: s.length, default=None)
    if stream is None or not all(isinstance(item, Use) for item in stream.items):
        return ()
    uses = [item for item in stream.items if isinstance(item, Use)]
    ways = [_overwrites(dialect, form, use) for use in uses]
    names = [name for name in ways[0] if all(name in way for way in ways)]
    return [
        (_overwritten(stream, uses, [way[name] for way in ways], name, share), "")
        for name in names
        for share in (SHARES if name == names[0] else SHARES[:1])
    ]


def _overwrites(dialect: Dialect, form: InstructionForm, use: Use) -> dict[str, Items]:
    """What overwrites all destinations of an instance that it reads, by the name of the way."""
    each = [
        dialect.overwrite(form, position, use.registers[register_place(form, position)])
        for position in own_destinations(form)
    ]
    names = [name for name in each[0] if all(name in ways for ways in each)] if each else []
    return {name: tuple(item for ways in each for item in ways[name]) for name in names}


def _overwritten(
    stream: Stream, uses: Sequence[Use], first: Sequence[Items], name: str, share: int
) -> Stream:
    items: list[Use | Instruction] = []
    for number, use in enumerate(uses):
        items += [*(() if number % share else first[number]), use]
    variant = f"{Kind.PARTLY} 1 of {share}" if share > 1 else f"{Kind.OVERWRITTEN} {name}".strip()
    return msgspec.structs.replace(stream, variant=variant, items=tuple(items))


def _with_fillers(
    dialect: Dialect, form: InstructionForm, pair: Pair, uses: Sequence[tuple[Items, Use]], count: int
) -> tuple[Items, tuple[str, ...]]:
    items: list[Use | Instruction] = []
    keys: list[str] = []
    for before, use in uses:
        number = use.registers[register_place(form, pair.target.operand)]
        fill, key = dialect.fill(form, pair.target.operand, number)
        items += [*before, use, *[fill] * count]
        keys += [key] * count
    return tuple(items), tuple(keys)


def _instances(
    dialect: Dialect, form: InstructionForm, pair: Pair, stream: Stream
) -> Iterator[tuple[Items, Use, Use]]:
    """Per instance of a sequence what comes before it, the instance, and the same with the first one's
    destination; as far as no other register is that destination.
    """
    place = register_place(form, pair.target.operand)
    uses = [item for item in stream.items if isinstance(item, Use)]
    number = uses[0].registers[place]
    destination = _destination(dialect, form, place, uses)
    before: list[Use | Instruction] = []
    for item in stream.items:
        if isinstance(item, Use):
            use = _changed(item, place, number)
            if _meets(dialect, form, destination, use, uses[0]):
                return
            yield tuple(before), item, use
            before = []
        else:
            before.append(item)


def _destination(
    dialect: Dialect, form: InstructionForm, place: int, uses: Sequence[Use]
) -> frozenset[Register]:
    """The registers of the first instance's destination. Raises Unmeasurable where all have the same."""
    first = uses[0]
    other = next((u for u in uses if u.registers[place] != first.registers[place]), None)
    if other is None:
        raise Unmeasurable(_ONE)
    moved = _changed(first, place, other.registers[place])
    found = dialect.written(form, first.registers) - dialect.written(form, moved.registers)
    if not found or found & dialect.read(form, first.registers):
        raise Unmeasurable("no register is left that is only written")
    return frozenset(found)


def _meets(
    dialect: Dialect, form: InstructionForm, destination: frozenset[Register], use: Use, first: Use
) -> bool:
    """Whether an instance reads the destination, or writes it twice."""
    written = len(dialect.written(form, use.registers)) < len(dialect.written(form, first.registers))
    return written or not destination.isdisjoint(dialect.read(form, use.registers))


def _changed(use: Use, place: int, number: int) -> Use:
    registers = (*use.registers[:place], number, *use.registers[place + 1 :])
    return msgspec.structs.replace(use, registers=registers)
