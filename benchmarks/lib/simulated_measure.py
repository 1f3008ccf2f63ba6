"""`cyclescope measure` on a simulated machine, with the command's own arguments after the machine's name.

What it measures is the same in every run, so that a run that was stopped can be compared exactly.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.cli.main import main
from cyclescope.host.identity import Hypervisor, Identity
from cyclescope.session.machines import load_model


def identity(machine: str) -> Identity:
    """What a simulated host is."""
    return Identity("Simulated", f"Simulated {machine}", 6, 1, 1, machine, Hypervisor.NONE)


if __name__ == "__main__":
    name = sys.argv.pop(1)
    found = SimulatedBackend(load_model(name)), identity(name)
    told = {"machine": identity(name).machine, "brand": f"simulated {name}"}
    with (
        patch("cyclescope.infer.api.open_backend", lambda cpu=None, link=None: found),
        patch("cyclescope.infer.api.conditions", lambda backend, host: told),
    ):
        main()
