"""How loads of a simulated core get what was stored before: renamed, forwarded, or only from the cache.

The engine lets every load wait for the stores that it reads, for as long as the machine's latencies say. What
a core does faster or slower than that is laid over it, as other templates of the same instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cyclescope.model.machine import Core
from cyclescope.simulate.engine import Template

RENAMED, BOTH_RENAMED, FAILED = "renamed", "updated", "failed"
_Row = tuple[float | None, ...]
BY_STACK, SAME, ANY = "stack", "same", "any"  # bases that are renamed


class PassedAccess(msgspec.Struct, frozen=True):
    """An access of an instruction of a body: where, how wide, and by which registers and displacement.

    What `works` makes something of what it loads.
    """

    number: int
    address: int
    size: int
    is_load: bool
    base: tuple[object, ...]
    on_stack: bool
    works: bool


class Passing(msgspec.Struct, frozen=True):
    """What a core does about loads of what is still on its way to the cache; nothing special by default.

    `renamed` says whose value needs no time: "" none, BY_STACK by it, SAME by registers that the
    store was addressed by, too, and that were not written since, ANY by any registers. Accesses of fewer bits
    than `narrowest` are not renamed, except of what is `worked` on if that says so, nor are those with more
    than `distance` stores in between. A load that needs bytes of several stores, or of a store and the cache,
    takes `failed` cycles longer.
    """

    renamed: str = ""
    narrowest: int = 0
    widest: int = 64
    distance: int = 1 << 20
    failed: float = 0.0
    worked: bool = False

    def kinds(self, accesses: Sequence[PassedAccess], written: Sequence[frozenset[int]]) -> dict[int, str]:
        """What becomes of the instructions of a loop: stores and loads that are renamed, loads that fail.

        `written` are the general registers that each instruction writes.
        """
        found: dict[int, str] = {}
        for position, load in enumerate(accesses):
            if not load.is_load:
                continue
            before = [one for one in (*accesses[position:], *accesses[:position])[::-1] if not one.is_load]
            store, between = _source(load, before)
            if store is None:
                continue
            if not _covers(store, load):
                found[load.number] = FAILED
            elif self._is_renamed(store, load, between, written):
                found[load.number] = found[store.number] = (
                    BOTH_RENAMED if load.number == store.number else RENAMED
                )
        return found

    def _is_renamed(
        self, store: PassedAccess, load: PassedAccess, between: int, written: Sequence[frozenset[int]]
    ) -> bool:
        bits = 8 * load.size
        narrowest = 0 if self.worked and load.works else self.narrowest
        fits = narrowest <= bits <= self.widest and between <= self.distance
        if not self.renamed or not fits or (store.address, store.size) != (load.address, load.size):
            return False
        if self.renamed == BY_STACK:
            return load.on_stack and store.on_stack
        return self.renamed == ANY or (store.base == load.base and not _rewritten(store, load, written))

    def applied(self, template: Template, kind: str, data: Sequence[bool], core: Core) -> Template:
        """A template with what its kind does to the way through memory; `data` tells loaded sources."""
        way = core.load_latency if any(data) else max(core.forward_latency - core.load_latency, 0.0)
        if kind == BOTH_RENAMED:  # it loads what it stored itself
            way = max(core.forward_latency, core.load_latency)
        added = self.failed if kind == FAILED else -way
        late = data if any(data) else [True] * len(data)

        def moved(row: _Row, changes: bool) -> _Row:
            return tuple(None if c is None else max(c + added, 0.0) for c in row) if changes else row

        rows = tuple(moved(row, changes) for row, changes in zip(template.latencies, late, strict=True))
        work = tuple(
            op if op.early else msgspec.structs.replace(
                op, after=tuple(moved((c,), changes)[0] for c, changes in zip(op.after, data, strict=True))
            )
            for op in template.work
        )  # fmt: skip
        return msgspec.structs.replace(template, latencies=rows, work=work)


WAITING = Passing()


def _source(load: PassedAccess, before: Sequence[PassedAccess]) -> tuple[PassedAccess | None, int]:
    """The youngest store before a load that it reads, and how many stores are between them."""
    for between, store in enumerate(before):
        if store.address < load.address + load.size and load.address < store.address + store.size:
            return store, between
    return None, 0


def _covers(store: PassedAccess, load: PassedAccess) -> bool:
    return store.address <= load.address and load.address + load.size <= store.address + store.size


def _rewritten(store: PassedAccess, load: PassedAccess, written: Sequence[frozenset[int]]) -> bool:
    """Whether a register of the address is written between a store and a load."""
    span = range(store.number + 1, load.number)
    if load.number <= store.number:  # around the end of the loop
        span_numbers = [*range(store.number + 1, len(written)), *range(load.number)]
    else:
        span_numbers = list(span)
    registers = {number for number in load.base if isinstance(number, int)}
    return any(not registers.isdisjoint(written[number]) for number in span_numbers)
