"""Files that say what a machine is: of this one, or wherever a runner reads them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from cyclescope.errors import UsageError

# Paths below / to what the files say, or the names in a folder line by line; None where neither is there.
Read = Callable[[Sequence[str]], list[str | None]]


def files_of(root: Path = Path("/")) -> Read:
    """The files of this machine, or of a recorded one below `root`."""
    return partial(_read, root)


def _read(root: Path, paths: Sequence[str]) -> list[str | None]:
    return [_contents(root / path) for path in paths]


def _contents(path: Path) -> str | None:
    try:
        return "\n".join(sorted(p.name for p in path.iterdir())) if path.is_dir() else path.read_text()
    except OSError:
        return None


def one(read: Read, path: str) -> str:
    """What one file says, without spaces around it; "" where it is not there."""
    return (read([path])[0] or "").strip()


def replaceable(path: Path) -> Path:
    """Where a file that is made beside its place is put: the one that a link leads to.

    Raises UsageError for a device or a pipe: a rename would put a file in its place for every program. (None
    is put in the place of a folder.)
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UsageError(f"{path} is no plain file, and would be replaced by one", "name another file")
    return path.resolve() if path.is_symlink() else path


def write_whole(path: Path, data: bytes) -> None:
    """Write all of a file or nothing of it: one that is cut where a disk is full would look like a whole one.

    What a link leads to, a device and a pipe are written where they are, and so is a file in a folder that
    takes no other.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
        path.write_bytes(data)
        return
    part = path.with_name(f".{os.getpid()}.part")
    try:
        part.write_bytes(data)
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
