"""Text of files, read with a limit, and the rows of tables in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from cyclescope.formats.exchange import FormatError

T = TypeVar("T")
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


class Rows:
    """The rows of a table as CSV, each with its line; `columns` are named in the first.

    Both raise FormatError, with the line, for what is no CSV.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = csv.DictReader(io.StringIO(contents(path), newline=None), restval="")
        self.columns = frozenset(self._read(lambda: self._reader.fieldnames or ()))

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        while (row := self._read(lambda: next(self._reader, None))) is not None:
            yield self._reader.line_num, row

    def _read(self, take: Callable[[], T]) -> T:
        try:
            return take()
        except csv.Error as error:
            where = f"{self._path}, line {self._reader.line_num + 1}"  # it counts those that it has read
            raise FormatError(f"{where}: no row of a table ({error})", "is it the right file?") from None
