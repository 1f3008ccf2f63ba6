"""What a command does that ends soon and makes many objects: it looks for no garbage, at its end neither."""

import atexit
import gc


def keep_everything() -> None:
    """Leave all objects to the end of the process: tables have many, and what they need less is little."""
    gc.disable()
    atexit.register(gc.freeze)  # else Python would look through all of them once more
