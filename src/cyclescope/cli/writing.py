"""Files that commands write."""

from pathlib import Path

from cyclescope.errors import unwritable
from cyclescope.host.files import write_whole


def write_file(path: Path, text: str) -> None:
    """Write a text, in whatever locale. Raises UsageError, with the file's name, where that fails."""
    try:
        write_whole(path, text.encode("utf-8", errors="surrogateescape"))
    except OSError as error:
        raise unwritable(path, error) from error
