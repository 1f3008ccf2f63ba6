"""Text of files, read with a limit."""

from __future__ import annotations

from pathlib import Path

from cyclescope.formats.exchange import FormatError

MOST_BYTES = 256 << 20  # larger than any published table but uops.info's XML, which is read as a stream


def contents(path: Path) -> str:
    """A file's text. Raises FormatError for what is too large or no UTF-8, OSError."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FormatError(
            f"{path} is larger than {MOST_BYTES >> 20} MiB", "no table is: is it the right file?"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is no text: byte {error.start} is no UTF-8") from None
