"""Files that commands write."""

from pathlib import Path

from cyclescope.errors import unwritable


def write_file(path: Path, text: str) -> None:
    """Write a text, in whatever locale. Raises UsageError, with the file's name, where that fails."""
    try:
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise unwritable(path, error) from error
