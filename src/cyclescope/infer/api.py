"""The library's entry points: open and calibrate a backend, and measure forms into a store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from cyclescope.analyze.read.example import assembled_forms
from cyclescope.backend.base import Backend, Calibration
from cyclescope.backend.canary import prepare
from cyclescope.backend.link import Link
from cyclescope.backend.native import NativeBackend
from cyclescope.backend.remote import link_to
from cyclescope.errors import UsageError
from cyclescope.host.counters import CYCLES, Event, availability, events_for, events_on
from cyclescope.host.cpuinfo import microcode
from cyclescope.host.features import features
from cyclescope.host.files import one
from cyclescope.host.identity import Identity, as_leaves
from cyclescope.host.topology import Topology, cpu_list, default_cpu, read_topology
from cyclescope.host.uname import host_isa
from cyclescope.infer.progress import Progress, nobody
from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table
from cyclescope.measure.database import default_store
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.ports import PORTS
from cyclescope.measure.store import Store
from cyclescope.measure.survey import reader, surroundings
from cyclescope.remarks.run import Counting

QUANTITIES = (THROUGHPUT, LATENCY, PORTS)  # that can be measured


def open_backend(cpu: int | None = None, link: Link | None = None) -> tuple[NativeBackend, Identity]:
    """A runner, of this machine or where a link leads, pinned, with performance counters where they exist.

    Raises UsageError for a CPU that it may not use, BackendUnavailable.
    """
    link = link or Link()
    chosen = -1 if link.remote else _chosen(cpu, read_topology())
    backend = NativeBackend(chosen, link=link, movable=cpu is None)
    try:
        if link.remote:
            chosen = _chosen(cpu, surroundings(backend))
            backend.configure(chosen)
        identity = backend.capabilities().identity
        if not identity.emulated and not availability(read=reader(backend)):
            _count(backend, chosen, identity.llvm)
    except BaseException:
        backend.close()
        raise
    return backend, identity


def isa_of(link: Link) -> str:
    """The instruction set of a link's machine, which only a remote one is asked for."""
    if not link.remote:
        return host_isa()
    with closing(NativeBackend(link=link)) as backend:
        return backend.capabilities().isa


def _chosen(cpu: int | None, topology: Topology) -> int:
    """The CPU to measure on; where nothing tells which there are, what was asked for, or any."""
    if not topology.usable:
        return -1 if cpu is None else cpu
    chosen = default_cpu(topology) if cpu is None else cpu
    if chosen not in topology.usable:
        raise UsageError(
            f"this program may not use CPU {chosen}", f"choose from {', '.join(map(str, topology.usable))}"
        )
    return chosen


def _count(backend: NativeBackend, cpu: int, llvm: str) -> None:
    """Open counters; without those of ports where the CPU counts less at a time: some alone would mislead."""
    read = reader(backend)
    wanted = events_on(events_for(llvm), cpu, read)
    backend.configure(cpu, wanted)
    if len(backend.capabilities().counters) < len(wanted):
        backend.configure(cpu, events_on(events_for(llvm, ports=False), cpu, read))


def counting(backend: NativeBackend, events: Sequence[Event]) -> str:
    """Count these events beside the core cycles; "" where all are counted, else why not."""
    read, known = reader(backend), backend.capabilities()
    if known.emulated:
        return Counting.EMULATED.of().text
    if why := availability(read=read):
        return why
    backend.configure(known.cpu, events_on((CYCLES, *events), known.cpu, read))
    opened = len(backend.capabilities().counters)
    return (
        "" if opened > len(events) else "; ".join(backend.capabilities().notes) or Counting.TOO_MANY.of().text
    )


def thread_cpus(threads: int | None, pins: str | None, link: Link) -> list[int]:
    """The CPUs of threads: those of a list, or the first ones. Raises UsageError."""
    if link.remote:
        raise UsageError("threads run on this machine alone", "leave out {target}")
    usable = read_topology().usable
    chosen = list(cpu_list(pins)) if pins else list(usable[: threads or 0])
    count = threads or len(chosen)
    if len(chosen) != count or not set(chosen) <= set(usable) or count < 2:
        asked = f"{count} threads" if count > 1 else "threads"
        raise UsageError(
            f"{asked} on CPUs {pins or 'of their own'}",
            f"this program may use {', '.join(map(str, usable))}, and threads need two at least",
        )
    return chosen


def calibrated(backend: Backend, identity: Identity) -> Calibration:
    """Calibrate a backend, a runner against what is known of its machine."""
    if isinstance(backend, NativeBackend) and not identity.emulated:
        return prepare(backend, identity.machine)
    return backend.calibrate()


def conditions(backend: Backend, identity: Identity) -> dict[str, object]:
    """What a session's measurements were taken under."""
    calibration = calibrated(backend, identity)
    capabilities = backend.capabilities()
    return {
        "machine": identity.machine,
        "brand": identity.brand,
        "cpu": capabilities.cpu,
        "real_time": capabilities.real_time,
        "clock": capabilities.clock,
        "frequency": round(calibration.frequency),
        "ticks_per_cycle": calibration.ticks_per_cycle,
        "clean_share": calibration.clean_share,
        "emulated": capabilities.emulated,
        "load": surroundings(backend).load,
        "kernel": one(reader(backend), "proc/sys/kernel/osrelease"),
        "microcode": microcode(one(reader(backend), "proc/cpuinfo")),
        "features": sorted(features(as_leaves(capabilities.leaves))),
    }


def measure_forms(
    patterns: Sequence[str] = (),
    store: Path | None = None,
    *,
    what: Iterable[str] = (THROUGHPUT, LATENCY),
    cpu: int | None = None,
    target: str | None = None,
    budget: float = 0.0,
    fresh: bool = False,
    report: Callable[[Progress], None] = nobody,
) -> Path:
    """Measure the forms that match the patterns; returns the store's path.

    `target` is another machine than this, `ssh://[user@]host[:port]` or `exec:COMMAND`. `budget` is in
    seconds, 0 for no limit.
    Work that the store already has is not repeated unless `fresh`. Raises UsageError, BackendUnavailable,
    StoreError or MeasurementError.
    """
    from cyclescope.infer.campaign import Campaign, Request  # slow to import
    from cyclescope.infer.ports.naming import known_machine

    _check(patterns, what := tuple(what), budget)
    backend, identity = open_backend(cpu, link_to(target))
    with closing(backend):
        table = load_table(backend.capabilities().isa)
        request = Request(tuple(select(table, patterns, read=assembled_forms)), frozenset(what), budget)
        path = store or default_store(identity.machine)
        with closing(Store(path, identity.machine, isa=table.isa)) as opened:
            if fresh:
                opened.clear()
            campaign = Campaign(table, backend, opened, report, known=known_machine(opened.machine))
            campaign.run(request, conditions(backend, identity))
            return opened.path


def _check(patterns: Sequence[str], what: Iterable[str], budget: float) -> None:
    if isinstance(patterns, str):
        raise UsageError("patterns are a sequence of strings, not one string", f"[{patterns[:40]!r}]")
    if unknown := [one for one in what if one not in QUANTITIES]:
        raise UsageError(f"{str(unknown[0])[:40]!r} is nothing to measure", f"one of {', '.join(QUANTITIES)}")
    if not 0 <= budget < math.inf:
        raise UsageError(f"a budget of {budget} seconds", "a number from 0 on, 0 for no limit")
