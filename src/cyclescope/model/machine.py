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
    """What a machine has from another core, since nobody has it of the machine itself.

    `core` is the other one's name, `source` where its data are from, `what` is some of `costs`, `ports`,
    `buffers` and `width`. `forms` are the forms whose costs these are, empty where all are.
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
    """A scheduler that announces results before they are sure.

    Operations of one cycle on some ports (indices) wake up what reads their results when they ask for a port,
    not when they get one: what is woken up too early takes a port for nothing. `clusters` are parts of these
    ports, one of which an operation gets at dispatch that may use them all; none where the scheduler is one.
    """

    ports: tuple[int, ...]
    clusters: tuple[tuple[int, ...], ...] = ()


class Core(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is not about single forms; 0 where it is not known.

    `width` is in front-end slots per cycle, the buffers in entries, the rest in cycles. `whole` says that
    the slots of an instruction are dispatched in one cycle, if a cycle has so many. `width_kind` says how
    the width is known where that is not as the whole model is (`MachineModel.width`). `fetch` is in bytes of
    code per cycle; `lengths` has (bytes, cycles) where a cycle's slots take as many cycles with instructions
    of so many bytes; `nops` is how many NOPs next to each other share a slot where that is not one. `binding`
    says when and how operations get their ports, "" where nobody knows; `wakeup` how results are announced
    where that is before they are sure. Of the `single` ports (indices) each gets one operation at most in a
    cycle of dispatch, where operations get them there.
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


class Width(msgspec.Struct, frozen=True, omit_defaults=True):
    """Slots per cycle of a front end, and how that is known: measured, published, drawn or assumed."""

    slots: float
    kind: str
    source: str = ""


class FormCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one instruction form costs.

    `slots` are front-end slots; `slot_range` the least and the most where they were read too vaguely or vary,
    as those of microcode do. `latencies` has cycles by `source->target`, operands named as the instruction
    table names them; `ranges` the least and the most that are proved of pairs whose value is not determined
    or rests on a convention. `with_room` has the cycles of pairs that take less where the scheduler is not
    full than in a chain alone, whose cycles `latencies` has. `throughput` is the measured reciprocal
    throughput in cycles, `throughput_error` how far looks at it differ, `throughput_most` one that it is at
    most where it could only be measured beside other instructions. `operations` is None where the port usage
    is not known, empty where no port is needed. `resources` has cycles by resource name. `alternatives` are
    other port usages that the experiments do not rule out. `eliminated` marks moves that the renamer
    executes; `idiom` what one register for all sources does: `zero` (no execution unit) or `breaking` (no
    dependency).
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


class MachineModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine: `ports` are names, `resources` capacities (cycles offered per cycle) by name.

    `facts` are what probes found.
    `forms` has the cost of each form by the id of the instruction table of the `isa`, or by LLVM's
    opcode name where there is no table. `borrowed` says what is another core's, `calibration` how often
    the ports of a measured machine hold.
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
