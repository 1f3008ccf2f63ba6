"""What a loop would gain: the simulated core once more, with one of its limits gone or moved.

The greatest bound is not always what is worth changing: two equal bounds hide each other, and the choice of
ports may lose cycles that no bound has. So every limit is tried by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from cyclescope.analyze.predict.causes import RESULT_LATE, TimeShare
from cyclescope.analyze.predict.watched import AVERAGING, LoopOnCore
from cyclescope.model.limits import REORDER_BUFFER, WIDTH
from cyclescope.remarks.remark import LISTED
from cyclescope.simulate.engine import MOST_PORTS, PARTS_OF_ONE, UNLIMITED, Layout, Template, Work


class Gain(msgspec.Struct, frozen=True):
    """Cycles of an iteration if one limit were another: `kind` as below, of an `instruction` or a `port`.

    `front_end`, `buffers`, `ports` and `dependencies` are no limit at all; `port` is there twice;
    `latency` is one cycle less.
    """

    kind: str
    cycles: float
    saved: float
    instruction: int | None = None
    port: str = ""


FRONT_END_GONE, BUFFERS_GONE, PORTS_GONE, DEPENDENCIES_GONE = "front_end", "buffers", "ports", "dependencies"
PORT_TWICE, LATENCY_LESS = "port", "latency"


def gains(
    loop: LoopOnCore, ports: Sequence[str], shares: Sequence[TimeShare], cycles: float, floor: float
) -> tuple[Gain, ...]:
    """What every change saves of `cycles`, the most first; less than `floor` no change makes it."""
    found = []
    for gain, changed in _changes(loop, ports, shares):
        taken = min(max(changed.steady().cycles, floor), cycles)
        if cycles - taken > AVERAGING * cycles:
            found.append(msgspec.structs.replace(gain, cycles=taken, saved=cycles - taken))
    return tuple(sorted(found, key=lambda gain: -gain.saved))


def _changes(
    loop: LoopOnCore, ports: Sequence[str], shares: Sequence[TimeShare]
) -> Iterator[tuple[Gain, LoopOnCore]]:
    layout = loop.layout
    yield Gain(FRONT_END_GONE, 0, 0), _with(loop, layout=_replaced(layout, width=WIDTH.most))
    yield Gain(BUFFERS_GONE, 0, 0), _with(loop, layout=_endless(layout))
    yield Gain(PORTS_GONE, 0, 0), _each(loop, _without_ports)
    yield Gain(DEPENDENCIES_GONE, 0, 0), _each(loop, _without_dependencies)
    if layout.ports < MOST_PORTS:
        for port in sorted({p for share in shares for p in share.ports}, key=ports.index):
            yield Gain(PORT_TWICE, 0, 0, port=port), _with_twin(loop, ports.index(port))
    slow = [
        share.instruction for share in shares if share.kind == RESULT_LATE and share.instruction is not None
    ]
    for number in slow[:LISTED]:
        templates = list(loop.templates)
        templates[number] = _quicker(templates[number])
        yield Gain(LATENCY_LESS, 0, 0, instruction=number), _with(loop, templates=tuple(templates))


def _replaced(layout: Layout, **values: object) -> Layout:
    return msgspec.structs.replace(layout, **values)


def _with(loop: LoopOnCore, layout: Layout | None = None, templates: tuple[Template, ...] = ()) -> LoopOnCore:
    return loop._replace(layout=layout or loop.layout, templates=templates or loop.templates)


def _each(loop: LoopOnCore, change: Callable[[Template], Template]) -> LoopOnCore:
    return _with(loop, templates=tuple(map(change, loop.templates)))


def _endless(layout: Layout) -> Layout:
    """Buffers that are never full."""
    entries = int(REORDER_BUFFER.most)
    return _replaced(layout, reorder_buffer=entries, load_buffer=UNLIMITED, store_buffer=UNLIMITED, queues=())


def _without_ports(template: Template) -> Template:
    """Operations that keep a port for as short as the engine can count."""
    return _with_work(template, lambda op: msgspec.structs.replace(op, cycles=1 / PARTS_OF_ONE))


def _without_dependencies(template: Template) -> Template:
    """An instruction that waits for nothing."""
    free = msgspec.structs.replace(
        template, latencies=tuple((None,) * len(row) for row in template.latencies)
    )
    return _with_work(free, lambda op: msgspec.structs.replace(op, after=(None,) * len(op.after)))


def _quicker(template: Template) -> Template:
    """An instruction whose results are there a cycle earlier, but not before its operands."""
    rows = tuple(tuple(_less(cycles) for cycles in row) for row in template.latencies)
    return msgspec.structs.replace(
        template, latencies=rows, base=tuple(max(b - 1, 0.0) for b in template.base)
    )


def _less(cycles: float | None) -> float | None:
    return None if cycles is None else max(cycles - 1, 0.0)


def _with_work(template: Template, change: Callable[[Work], Work]) -> Template:
    return msgspec.structs.replace(template, work=tuple(map(change, template.work)))


def _with_twin(loop: LoopOnCore, port: int) -> LoopOnCore:
    """A core that has a port twice; the second is in all queues and clusters of the first."""
    layout, twin = loop.layout, 1 << loop.layout.ports
    changed = _replaced(
        layout,
        ports=layout.ports + 1,
        queues=tuple((_joined(ports, port, twin), entries) for ports, entries in layout.queues),
        announcing=_joined(layout.announcing, port, twin),
        clusters=tuple(_joined(ports, port, twin) for ports in layout.clusters),
        single=_joined(layout.single, port, twin),
    )

    def widened(template: Template) -> Template:
        return _with_work(
            template, lambda op: msgspec.structs.replace(op, ports=_joined(op.ports, port, twin))
        )

    return _with(loop, layout=changed, templates=tuple(map(widened, loop.templates)))


def _joined(ports: int, port: int, twin: int) -> int:
    return ports | twin if ports >> port & 1 else ports
