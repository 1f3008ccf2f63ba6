"""The C engine: cores, what instructions need of them, and what a loop did.

The engine (native/core) knows no instruction set: a loop body is a list of templates with numbered
locations that they read and write. It is a shared library, loaded when the first core is made.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.model.machine import BINDINGS, IDEAL, Core, Scheduler, Writeback

PARTS_OF_ONE = 1024  # parts of a cycle, parts of a slot
MOST_PORTS = QUEUES = 64
MOST_OPERATIONS, MOST_TARGETS = 256, 32
UNLIMITED = 1 << 20  # entries of a buffer whose size is not known
WINDOW = 256  # entries of a reorder buffer whose size is not known
LIMIT = 20_000  # instructions after which an average has to do
_NEVER = -(1 << 31)
_ROW, _OPERATION_ROW = 5, 4  # numbers of an instruction and of an operation in a trace
BUFFER_NAMES = (
    "",
    "reorder buffer",
    "load buffer",
    "store buffer",
    "scheduler",
)  # by the engine's numbers of them
_ERRORS = {
    -1: "the simulated core was given what it cannot run",
    -2: "no memory for the simulated core",
    -3: "the simulated core is stuck",
}
_REINSTALL = "reinstall with `pip install .` and a C compiler, or set CYCLESCOPE_CORE"


class _Outcome(ctypes.Structure):
    _fields_ = [
        ("cycles", ctypes.c_double),
        ("operations", ctypes.c_double * MOST_PORTS),
        ("simulated_cycles", ctypes.c_int64),
        ("simulated_instructions", ctypes.c_int64),
        ("exact", ctypes.c_int64),
    ]


class _Trace(ctypes.Structure):
    _fields_ = [
        ("iterations", ctypes.c_int64),
        ("instructions", ctypes.c_void_p),
        ("operations", ctypes.c_void_p),
    ]


class Layout(msgspec.Struct, frozen=True):
    """The core around the ports. `width` is in slots per cycle, buffers in entries.

    `queues` are (set of ports, entries) of the schedulers; a port in none waits for nothing. `announcing` is
    a set of ports whose operations of one cycle announce their results when they ask for a port, `clusters`
    are sets of which an operation that may use all of them gets one. Where ports are chosen at dispatch, each
    of the `single` ports gets one operation at most in a cycle, and each of the `writing` ports writes one
    result: while an operation would write another one, younger ones start before it in `patience` cycles; if
    these are negative, it waits for none. `ahead` says that single ports are chosen so that most of a cycle's
    next operations find one, too. The `rotating` ports take operations in turn, however many each of them
    got. By up to `blur` instructions, of its cluster where one is leading, an older operation may be taken
    for a younger one. Each of the `losing` ports writes one result in a cycle: what would write another one
    has got it in vain, where ports are chosen at the start. What may use ports of several clusters, not all,
    is dealt those of the `leading` one first, if there is one.
    """

    width: float
    ports: int
    reorder_buffer: int = WINDOW
    load_buffer: int = UNLIMITED
    store_buffer: int = UNLIMITED
    in_order: bool = False
    policy: str = IDEAL
    queues: tuple[tuple[int, int], ...] = ()
    announcing: int = 0
    clusters: tuple[int, ...] = ()
    single: int = 0
    writing: int = 0
    patience: int = 0
    ahead: bool = False
    rotating: int = 0
    blur: int = 0
    losing: int = 0
    leading: int = 0

    def words(self) -> array[int]:
        """The layout as the engine reads it. Raises UsageError for what it cannot be."""
        if self.policy not in BINDINGS:
            raise UsageError(f"no port binding policy {self.policy}", f"one of {', '.join(BINDINGS)}")
        if not 1 <= self.ports <= MOST_PORTS or self.width <= 0 or len(self.queues) > QUEUES:
            raise UsageError(f"no core with {self.ports} ports, {self.width:g} slots per cycle")
        words = [
            max(round(self.width * PARTS_OF_ONE), 1), self.reorder_buffer, self.load_buffer,
            self.store_buffer, int(self.in_order), BINDINGS.index(self.policy), self.ports, len(self.queues),
            _signed(self.announcing), len(self.clusters), _signed(self.single),
            _signed(self.writing), self.patience, int(self.ahead),
            _signed(self.rotating), self.blur, _signed(self.losing), _signed(self.leading),
        ]  # fmt: skip
        for ports, entries in self.queues:
            words += [_signed(ports), entries]
        words += map(_signed, self.clusters)
        return array("q", words)


def layout_of(core: Core, ports: int, policy: str = IDEAL) -> Layout:
    """The engine's core for a machine; sizes that the model does not know are no limit."""
    writeback = core.writeback or Writeback(())
    own = [Scheduler("", (port,), writeback.entries) for port in writeback.ports]
    queues = tuple(
        (_set(s.ports), s.entries)
        for s in sorted((*own, *core.schedulers), key=lambda s: len(s.ports))
        if s.entries and s.ports
    )
    return Layout(
        core.width, max(ports, 1), core.reorder_buffer or WINDOW, core.load_buffer or UNLIMITED,
        core.store_buffer or UNLIMITED, core.in_order, policy, queues[:MOST_PORTS],
        _set(core.wakeup.ports) if core.wakeup else 0,
        tuple(map(_set, core.wakeup.clusters)) if core.wakeup else (), _set(core.single),
        _set(writeback.ports), -1 if writeback.entries else writeback.patience, core.ahead,
        _set(core.rotating), core.wakeup.blur if core.wakeup else 0,
        _set(core.wakeup.ports) if core.wakeup and core.wakeup.one_result else 0,
        _set(core.wakeup.leading) if core.wakeup else 0,
    )  # fmt: skip


def _set(ports: Iterable[int]) -> int:
    return sum(1 << port for port in set(ports))


class Work(msgspec.Struct, frozen=True):
    """One micro-operation: `ports` is a set of port numbers as bits, busy for `cycles`.

    `feeds` is the set of targets that are late when it is; `after` has per source the cycles between
    its arrival and readiness, None where it does not wait for the source. All others wait for an `early`
    one, a load: they and the targets are late only on the way from the sources it waits for. Waiting for
    a port makes late after `slack` cycles: so long it waits even where the instruction runs alone. Its port
    writes its result `result` cycles after its start, 0 where that is not known.
    """

    ports: int
    cycles: float
    feeds: int
    after: tuple[float | None, ...]
    early: bool = False
    slack: int = 0
    result: int = 0


class Template(msgspec.Struct, frozen=True):
    """What an instruction needs, whatever its registers.

    `slots` are front-end slots, `needed` those that a cycle has to have left, 0 where it may be divided;
    `entries`, `loads` and `stores` go to the reorder, load and store buffer. `base` has per target the cycles
    from dispatch that it takes at least, `latencies` per source the cycles to every target, None for no
    dependency.
    """

    slots: float
    base: tuple[float, ...]
    latencies: tuple[tuple[float | None, ...], ...]
    work: tuple[Work, ...]
    microcoded: bool = False
    entries: int = 1
    loads: int = 0
    stores: int = 0
    needed: float = 0.0

    def waiting(self, later: Sequence[float]) -> Template:
        """The same where sources come so many cycles later than what it was made of says."""
        work = (msgspec.structs.replace(op, after=tuple(map(_sum, op.after, later))) for op in self.work)
        latencies = (
            tuple(_sum(cycles, more) for cycles in row)
            for row, more in zip(self.latencies, later, strict=True)
        )
        return msgspec.structs.replace(self, work=tuple(work), latencies=tuple(latencies))

    def words(self) -> array[int]:
        """The template as the engine reads it."""
        words = [
            round(self.slots * PARTS_OF_ONE), int(self.microcoded), self.entries, self.loads, self.stores,
            len(self.latencies), len(self.base), len(self.work), round(self.needed * PARTS_OF_ONE),
            *map(_parts, self.base),
        ]  # fmt: skip
        for row in self.latencies:
            words += map(_parts, row)
        for op in self.work:
            words += [
                _signed(op.ports),
                max(_parts(op.cycles), 1),
                op.feeds,
                int(op.early),
                op.slack,
                op.result,
            ]
            words += map(_parts, op.after)
        return array("q", words)


def _sum(cycles: float | None, more: float) -> float | None:
    return None if cycles is None else cycles + more


class Body(msgspec.Struct, frozen=True):
    """A loop body: per instruction its template's number, locations read, locations written.

    A negative location is memory: -1 - n is access n of `accesses`, an (address, bytes) each. What is
    read before it is written was written in the iteration before, or never.
    """

    words: Sequence[int]
    accesses: Sequence[int] = ()


class Steady(msgspec.Struct, frozen=True):
    """The steady state: cycles and micro-operations per port, per iteration.

    `exact` says that a state came back, so that this goes on forever; else it is an average.
    """

    cycles: float
    operations: tuple[float, ...]
    exact: bool
    simulated_cycles: int
    simulated_instructions: int


class Refusal(NamedTuple):
    """Since which cycle an instruction found no room, and in which of `BUFFER_NAMES`."""

    since: int
    buffer: str


class Readiness(NamedTuple):
    """The cycle in which an operation could issue, and the source that it waited for last, -1 for none."""

    cycle: int
    source: int


class Trace(msgspec.Struct, frozen=True):
    """What every instruction did, in program order; times are cycles from the start.

    `instructions` has (dispatched, completed, retired), `operations` per instruction (issued, port),
    `refusals` what kept it from being dispatched (None for nothing), `ready` per operation when it was.
    """

    instructions: tuple[tuple[int, int, int], ...]
    operations: tuple[tuple[tuple[int, int], ...], ...]
    refusals: tuple[Refusal | None, ...] = ()
    ready: tuple[tuple[Readiness, ...], ...] = ()


class Engine:
    """One core; templates are added once, bodies run on it."""

    def __init__(self, layout: Layout) -> None:
        self._ports = layout.ports
        self._library = _library()
        words = layout.words()
        self._core = self._library.core_new(_address(words), len(words))
        if not self._core:
            raise UsageError("no such core", "check its widths, buffers and ports")
        self._templates: list[Template] = []

    def __del__(self) -> None:
        if getattr(self, "_core", None):
            self._library.core_free(self._core)

    def add(self, template: Template) -> int:
        """The number of a new template. Raises UsageError for what the engine cannot hold."""
        words = template.words()
        number: int = self._library.core_template(self._core, _address(words), len(words))
        _check(number)
        self._templates.append(template)
        return number

    def run(self, body: Body, limit: int = LIMIT) -> Steady:
        """The loop's steady state, looked for in at most about `limit` instructions."""
        out = self._run(body, limit, None)
        return Steady(
            out.cycles, tuple(out.operations[: self._ports]), bool(out.exact),
            out.simulated_cycles, out.simulated_instructions,
        )  # fmt: skip

    def trace(self, body: Body, iterations: int) -> Trace:
        """What happens in the first iterations of the loop."""
        counts = self._operations(body) * iterations
        rows = array("q", bytes(8 * _ROW * len(counts)))
        ops = array("q", bytes(8 * _OPERATION_ROW * (sum(counts) + 1)))
        self._run(body, 0, _Trace(iterations, _address(rows), _address(ops)))
        heads = [rows[i : i + _ROW] for i in range(0, len(rows), _ROW)]
        every = [ops[i : i + _OPERATION_ROW] for i in range(0, len(ops), _OPERATION_ROW)]
        ends = list(accumulate(counts, initial=0))
        own = [every[start:end] for start, end in pairwise(ends)]
        return Trace(
            tuple((row[0], row[1], row[2]) for row in heads),
            tuple(tuple((op[0], op[1]) for op in some) for some in own),
            tuple(None if row[3] < 0 else Refusal(row[3], BUFFER_NAMES[row[4]]) for row in heads),
            tuple(tuple(Readiness(op[2], op[3]) for op in some) for some in own),
        )

    def _run(self, body: Body, limit: int, trace: _Trace | None) -> _Outcome:
        words, accesses = array("i", body.words), array("q", body.accesses)
        out = _Outcome()
        _check(
            self._library.core_run(
                self._core, _address(words), len(words), _address(accesses), len(accesses) // 2,
                limit, ctypes.byref(out), ctypes.byref(trace) if trace else None,
            )
        )  # fmt: skip
        return out

    def _operations(self, body: Body) -> list[int]:
        """Micro-operations per instruction of the body."""
        counts, at = [], 0
        while at < len(body.words):
            template = self._templates[body.words[at]]
            counts.append(len(template.work))
            at += 1 + len(template.latencies) + len(template.base)
        return counts


def engine_path() -> Path:
    """The shared library built with the package."""
    override = os.environ.get("CYCLESCOPE_CORE")
    return Path(override) if override else Path(str(resources.files("cyclescope"))) / "native/core.so"


@cache
def _library() -> ctypes.CDLL:
    path = engine_path()
    if not path.is_file():
        raise BackendUnavailable(f"the simulated core {path} is missing", _REINSTALL)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise BackendUnavailable(f"the simulated core cannot be loaded ({error})", _REINSTALL) from error
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    library.core_new.restype, library.core_new.argtypes = pointer, (pointer, number)
    library.core_free.restype, library.core_free.argtypes = None, (pointer,)
    library.core_template.restype, library.core_template.argtypes = number, (pointer, pointer, number)
    library.core_run.restype = number
    library.core_run.argtypes = (
        pointer, pointer, number, pointer, number, ctypes.c_int64, pointer, pointer,
    )  # fmt: skip
    return library


def _address(words: array[int]) -> int:
    return words.buffer_info()[0]


def _check(status: int) -> None:
    if status < 0:
        raise UsageError(_ERRORS[status])


def _parts(cycles: float | None) -> int:
    return _NEVER if cycles is None else round(cycles * PARTS_OF_ONE)


def _signed(ports: int) -> int:
    return ports - (1 << 64) if ports >> 63 else ports
