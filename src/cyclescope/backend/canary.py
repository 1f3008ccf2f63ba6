"""What an undisturbed core is, kept per machine: the base of the runner's canaries.

Beside a neighbour that never rests, nothing that is measured says how fast the core is without it. So the
base is derived once, from the measured width of the core, and kept; it is replaced by a faster one only.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from cyclescope.backend.base import Calibration
from cyclescope.backend.build import cache_folder
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable

CANARY_FILE = "canary.json"
_FASTER = 0.99  # of a known base: less is another width, not the noise of a calibration
_LEAST, _MOST = 1 / 16, 100.0  # cycles per NOP: anything else is no base


def prepare(backend: NativeBackend, machine: str) -> Calibration:
    """Calibrate a backend against the base of its machine, and keep a better one."""
    known = known_bases().get(machine, 0.0)
    calibration = backend.calibrate(nop=known)
    found = calibration.nop
    if found and (not known or found < _FASTER * known):
        with suppress(OSError, BackendUnavailable):  # it will be derived again
            _keep({**known_bases(), machine: found})
    return calibration


def known_bases() -> dict[str, float]:
    """Core cycles per NOP by machine; empty where nothing, or nothing readable, is kept."""
    try:
        found = msgspec.json.decode((cache_folder() / CANARY_FILE).read_bytes(), type=dict[str, float])
    except (OSError, BackendUnavailable, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {machine: nop for machine, nop in found.items() if _LEAST <= nop <= _MOST}


def _keep(bases: dict[str, float]) -> None:
    """Write the file whole: others may read it meanwhile."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".canary-")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(bases))
        path.replace(folder / CANARY_FILE)
    except OSError:
        path.unlink(missing_ok=True)
        raise
