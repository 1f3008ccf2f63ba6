"""Whether compiled code computes dependencies, or Python: chosen here, once, and nowhere else.

The library is built with the package. Where it is missing, or `CYCLESCOPE_BOUNDS` names none, Python does all
of it. What the library refuses (code that is too large for it) Python does as well.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib import resources
from pathlib import Path


def library_path() -> Path:
    """The shared library built with the package, or the one that is named."""
    override = os.environ.get("CYCLESCOPE_BOUNDS")
    return Path(override) if override else Path(str(resources.files("cyclescope"))) / "native/bounds.so"


@cache
def library() -> ctypes.PyDLL | None:
    """The library, None where Python computes. Its calls take microseconds: they keep Python's lock."""
    path = library_path()
    if not path.is_file():
        return None
    try:
        found = ctypes.PyDLL(str(path))
        chain, memory = found.bounds_chain, found.bounds_memory
    except (OSError, AttributeError):
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    chain.restype = ctypes.c_int
    chain.argtypes = (pointer, number, pointer, number, pointer, number, pointer, pointer, number)
    memory.restype = ctypes.c_int
    memory.argtypes = (pointer, number, pointer, number, number, pointer, pointer, number, pointer)
    return found
