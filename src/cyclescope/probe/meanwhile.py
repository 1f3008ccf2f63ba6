"""Probes asked by a thread of their own, while the one that began them thinks about other answers."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.backend.base import Backend
from cyclescope.backend.meanwhile import Meanwhile
from cyclescope.isa.table import Table
from cyclescope.probe.question import Probe
from cyclescope.probe.run import Asked, ask


class AskedMeanwhile(Meanwhile[Asked]):
    """Probes that are asked meanwhile. `total` is their number."""

    def __init__(self, probes: Sequence[Probe], backend: Backend, table: Table, apart: bool = True) -> None:
        super().__init__(ask(probes, backend, table), backend, apart)
        self.total = len(probes)
