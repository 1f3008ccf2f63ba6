"""What there is to know about this machine before measuring on it."""

from __future__ import annotations

import statistics
import time

import msgspec

from cyclescope.backend.base import Backend, Calibration, Capabilities
from cyclescope.backend.canary import prepare
from cyclescope.backend.native import NativeBackend
from cyclescope.host.counters import availability
from cyclescope.host.features import features, remarks
from cyclescope.host.files import Read, files_of
from cyclescope.host.identity import Identity, as_leaves
from cyclescope.host.noise import HostNoise, judge
from cyclescope.host.topology import Topology, read_topology

CALIBRATIONS = 8
_PAUSE = 0.1  # seconds between calibrations: bursts of noise last up to 0.3


class Survey(msgspec.Struct, frozen=True):
    """A host: CPU, features, clock, counters, pinning, noise."""

    identity: Identity
    features: tuple[str, ...]
    capabilities: Capabilities
    calibrations: tuple[Calibration, ...]
    topology: Topology
    counters: str
    noise: HostNoise

    @property
    def calibration(self) -> Calibration:
        """The calibration with the fastest clock: the least disturbed one."""
        return min(self.calibrations, key=lambda c: c.ticks_per_cycle * c.seconds_per_tick)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing and why, and what else there is to know."""
        return (*self.capabilities.notes, *remarks(as_leaves(self.capabilities.leaves)))


def reader(backend: Backend) -> Read:
    """What reads the files of a backend's machine."""
    return backend.read if isinstance(backend, NativeBackend) and backend.link.remote else files_of()


def surroundings(backend: Backend) -> Topology:
    """CPUs and load of a backend's machine."""
    remote = isinstance(backend, NativeBackend) and backend.link.remote
    return read_topology(read=reader(backend)) if remote else read_topology()


def survey(backend: Backend) -> Survey:
    """Look at the host for about a second."""
    capabilities = backend.capabilities()
    leaves = as_leaves(capabilities.leaves)
    calibrations = []
    if isinstance(backend, NativeBackend) and not capabilities.identity.emulated:
        prepare(backend, capabilities.identity.machine)
    for number in range(CALIBRATIONS):
        if number:
            time.sleep(_PAUSE)
        calibrations.append(backend.calibrate())
    topology = surroundings(backend)
    clean = statistics.mean(c.clean_share for c in calibrations)
    siblings = len(topology.siblings.get(capabilities.cpu, ()))
    return Survey(
        capabilities.identity,
        tuple(sorted(features(leaves))),
        capabilities,
        tuple(calibrations),
        topology,
        availability(read=reader(backend)),
        judge(clean, topology.load, len(topology.usable), siblings),
    )
