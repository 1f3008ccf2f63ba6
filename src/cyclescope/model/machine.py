"""Machine models: the ports, widths and buffers of a core, and what every instruction form costs on it.

Two views of the same form stand side by side. The ports view says which micro-operations a form
consists of and which ports may execute each. The resource view says how many cycles of each shared
resource a form takes; a resource is a set of ports that some form is confined to, the front end, or
a unit that no port explains (a divider, a transfer path). Timing alone identifies the second.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cyclescope.model.calibration import ClaimCalibration
from cyclescope.model.facts import Fact

SCHEMA_VERSION = 1
MEASURED, EXTRACTED, PUBLISHED, DRAWN = "measured", "extracted", "published", "drawn"  # kinds of provenance
ASSUMED = "assumed"  # a width that nobody claims: a scheduling model's issue width
WIDTH_KINDS = (MEASURED, PUBLISHED, DRAWN, ASSUMED)
IDEAL, STATIC, ROUND_ROBIN, GROUPED, EVENLY = "ideal", "static", "round robin", "grouped", "evenly"
BINDINGS = (IDEAL, STATIC, ROUND_ROBIN, GROUPED, EVENLY)  # when and how operations get their ports
COSTS, BORROWED_PORTS, BUFFERS, WIDTH = "costs", "ports", "buffers", "width"  # what can be another core's


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a model comes from: measured here, extracted from another tool, published or drawn at random.

    `missing` says what of it has not been measured to the end.
    """

    kind: str
    source: str = ""
    version: str = ""
    licence: str = ""
    date: str = ""
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Borrowed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a machine model takes from another core, because it is not known of the machine itself.

    `core` is the other core's name, `source` says where its data are from, `what` is some of `costs`,
    `ports`, `buffers` and `width`. `forms` are the forms whose costs are borrowed, empty if all are.
    """

    core: str
    source: str
    what: tuple[str, ...]
    forms: tuple[str, ...] = ()


class Operation(msgspec.Struct, frozen=True, array_like=True):
    """`count` equal micro-operations, each taking one of `ports` (indices) for `cycles` cycles.

    After that many cycles the port is free for the next one; a pipelined unit has 1.
    """

    ports: tuple[int, ...]
    count: float = 1.0
    cycles: float = 1.0


class Scheduler(msgspec.Struct, frozen=True, omit_defaults=True):
    """A queue in front of some ports (indices); `entries` 0 where its size is not known."""

    name: str
    ports: tuple[int, ...]
    entries: int = 0


class Wakeup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A scheduler that wakes up readers of a result too early.

    Operations of one cycle on some ports (indices) wake up the readers of their results when they ask for a
    port, not when they get one: a reader that is woken up too early takes a port in vain. `clusters` are
    parts of these ports; an operation that may use all of them is given one part at dispatch, the less
    often the more wait there. There are none where the scheduler is not divided. The oldest operations start
    first, but for `blur` instructions, or operations of the same part where one of these is leading, by which
    one may be taken for younger than it is.
    `one_result` says that each port writes one result in a cycle: what would write another one has got it in
    vain. Operations that may use ports of several parts, and not all, get one at dispatch where there is a
    `leading` part: each cycle gives its ports first, then the others, one to each operation. What is made on
    a leading port so takes the place of a result of those that may use all ports of its part. What vector
    units send to general registers gets the ports in turn then.
    """

    ports: tuple[int, ...]
    clusters: tuple[tuple[int, ...], ...] = ()
    blur: int = 0
    one_result: bool = False
    leading: tuple[int, ...] = ()


class Writeback(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ports (indices) each of which writes one result in a cycle at most.

    An operation does not start when its result would come together with an older one's. For `patience` cycles
    younger ones start before it then, if theirs come in other cycles; after that none does. `crossing` says
    that what vector units send to general registers is written by these ports without an operation that is
    dealt to them: it comes in the place of a result of one cycle. Operations get these ports at dispatch,
    whenever others do. `entries` operations at most wait in front of each, if that is known: then those of
    many that are independent start whatever results they write.
    """

    ports: tuple[int, ...]
    patience: int = 0
    crossing: bool = False
    entries: int = 0


class Halves(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two sets of ports (indices) between which operations are dealt, whichever is free.

    An operation that may use the ports of both, or `first` alone, gets the set that the operation before it
    did not get, but for the share `astray` of them; one that may use `second` alone gets that. Where it is
    `late`, the first of a cycle of dispatch goes on from the last one before so many cycles of dispatch, and
    of these alone some go astray.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    astray: float = 0.0
    late: int = 0

    @property
    def both(self) -> tuple[int, ...]:
        """The ports of both, in order."""
        return tuple(sorted((*self.first, *self.second)))


class Narrow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Instructions with registers of some `files` (letters) of which a cycle takes `slots` slots at most.

    If `beside` is not 0, a loop with more of them than that and so many slots of others, or more, takes whole
    cycles for them. `source` says what shows it.
    """

    files: tuple[str, ...]
    slots: float
    beside: int = 0
    source: str = ""


class Core(msgspec.Struct, frozen=True, omit_defaults=True):
    """Properties of a core as a whole; 0 where they are not known.

    `width` is in front-end slots per cycle, the buffers in entries, the rest in cycles. `whole` says that all
    slots of an instruction are dispatched in one cycle, if a cycle has that many. `width_kind` says how the
    width is known, if not in the same way as the whole model (`MachineModel.width`); `narrow` says of which
    instructions a cycle takes fewer. `fetch` is in bytes of code per cycle; `lengths` has pairs (bytes,
    cycles): the cycles that a cycle's slots take with instructions of that length; `nops` is how many
    adjacent NOPs share a slot, if more than one. `binding` says when and how operations get their ports, ""
    if unknown; `wakeup` whether readers of results are woken up too early. Each of the `single` ports
    (indices) gets at most one operation in a cycle of dispatch, if operations get their ports then;
    `writeback` says which ports write one result in a cycle, and `ahead` whether single ports are chosen so
    that most of a cycle's next operations find one, too. The `rotating` ports (indices) take operations that
    may use no other one in turn, whatever the binding of others is: each gets, when it is dispatched, a port
    for which none waited when the cycle began, if there is one; of several, or else of all, the port that has
    been left out for longest.
    `evenness` is how far mixes are from the best use of the ports (0) to an even one (1), in which each
    operation goes to any of its ports as often. The sets of ports `in_turn` are dealt out one port after the
    other to the operations that have just these, in the order of instructions, whichever is free.
    """

    width: float
    reorder_buffer: int = 0
    load_buffer: int = 0
    store_buffer: int = 0
    load_latency: float = 0
    forward_latency: float = 0
    mispredict_penalty: float = 0
    in_order: bool = False
    schedulers: tuple[Scheduler, ...] = ()
    whole: bool = False
    width_kind: str = ""
    width_source: str = ""
    fetch: float = 0
    lengths: tuple[tuple[int, float], ...] = ()
    nops: int = 1
    binding: str = ""
    wakeup: Wakeup | None = None
    single: tuple[int, ...] = ()
    writeback: Writeback | None = None
    ahead: bool = False
    rotating: tuple[int, ...] = ()
    evenness: float = 0.0
    in_turn: tuple[tuple[int, ...], ...] = ()
    halves: Halves | None = None
    narrow: Narrow | None = None


class Width(msgspec.Struct, frozen=True, omit_defaults=True):
    """Slots per cycle of a front end, and how that is known: measured, published, drawn or assumed."""

    slots: float
    kind: str
    source: str = ""


class FormCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one instruction form costs.

    `slots` are front-end slots; `slot_range` is the least and the most, if they vary (microcode) or could not
    be measured exactly. `spare` are slots that have to be free behind those in the cycle that dispatches the
    form, for others to take. `latencies` has cycles by `source->target`, operands named as the instruction
    table names them; `ranges` has what is proved, the least and the most, of pairs whose value is not
    determined or rests on a convention; where there is no value, the most is that of the convention.
    `with_room` has the cycles of pairs that take less while the scheduler is not full; `latencies` has those
    in a chain alone.
    `throughput` is the measured reciprocal throughput in cycles, `throughput_error` its error,
    `throughput_most` an upper bound, if it could only be measured together with other instructions,
    `indexed_throughput` the measured one with an index in the address, where it is more.
    `operations` is None where the port usage is not known, empty where no port is needed.
    `resources` has cycles by resource name. `alternatives` are other port usages that the experiments do not
    rule out. `eliminated` marks moves that the renamer executes; `idiom` says what happens with one register
    for all sources: `zero` (no execution unit) or `breaking` (no dependency).
    """

    slots: float | None = None
    operations: tuple[Operation, ...] | None = None
    latencies: Mapping[str, float] = {}
    throughput: float | None = None
    resources: Mapping[str, float] = {}
    microcoded: bool = False
    eliminated: bool = False
    idiom: str = ""
    confidence: str = ""
    alternatives: tuple[str, ...] = ()
    note: str = ""
    ranges: Mapping[str, tuple[float, float]] = {}
    slot_range: tuple[float, float] | None = None
    throughput_most: float | None = None
    with_room: Mapping[str, float] = {}
    throughput_error: float = 0.0
    indexed_throughput: float | None = None
    spare: float = 0.0


class MachineModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine: `ports` are names, `resources` capacities (cycles offered per cycle) by name.

    `facts` are the answers of probes. `forms` has the cost of each form by its id in the instruction table of
    the `isa`, or by LLVM's opcode name. `borrowed` says what is taken from another core, `calibration` how
    often the port usages of a measured machine hold.
    """

    name: str
    isa: str
    provenance: Provenance
    core: Core
    ports: tuple[str, ...]
    forms: Mapping[str, FormCost]
    resources: Mapping[str, float] = {}
    borrowed: Borrowed | None = None
    facts: tuple[Fact, ...] = ()
    calibration: ClaimCalibration | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def width(self) -> Width:
        """The width of the front end; that of a scheduling model is assumed."""
        core, origin = self.core, self.provenance
        kind = core.width_kind or (ASSUMED if origin.kind == EXTRACTED else origin.kind)
        return Width(core.width, kind, core.width_source or origin.source)
