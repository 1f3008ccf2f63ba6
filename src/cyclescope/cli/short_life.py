"""Garbage of a command that makes many objects: it is left to the end of the process, and to nobody there."""

import atexit
import gc


def keep_everything() -> None:
    """Look for no garbage: a command that ends soon has many objects of tables, and needs little less."""
    gc.disable()
    end_at_once()


def end_at_once() -> None:
    """Leave all objects to the end of the process: Python would look through all of them once more."""
    atexit.register(gc.freeze)
