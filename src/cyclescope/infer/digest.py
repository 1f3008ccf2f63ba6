"""A digest of this package's code and tables: results that are kept are valid for one digest."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import cyclescope

PACKAGE = Path(cyclescope.__file__).parent
DIGESTED = (
    "host",
    "infer",
    "isa",
    "kernel",
    "measure",
    "model",
    "remarks",
    "simulate",
)  # that models are made by
FILES = (".py", ".xz")


@cache
def digest(package: Path = PACKAGE) -> str:
    """Changes whenever a file does that models are made by; a version may stay the same meanwhile."""
    found = hashlib.blake2b(digest_size=8)
    for part in DIGESTED:
        for path in sorted((package / part).rglob("*")):
            if path.suffix in FILES:
                found.update(f"{path.relative_to(package).as_posix()}\0".encode())
                found.update(path.read_bytes())
    return found.hexdigest()
