"""Blocks of a file as a stream: a line each, or a column of a CSV table. No file is read as a whole."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from io import DEFAULT_BUFFER_SIZE
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from cyclescope.errors import UsageError, unreadable
from cyclescope.session.block_files import CODE_COLUMNS, Written

_LONGEST = 100_000  # characters of a line: six times the longest block, as text


def block_lines(path: Path) -> Iterator[Written]:
    """Blocks with the numbers of their lines. Empty lines and those that begin with `#` are passed over.

    Raises UsageError for a file that cannot be read, or is no text.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            lines = (_checked(path, line) for line in iter(lambda: file.readline(_LONGEST + 1), ""))
            yield from _blocks(path, lines)
    except OSError as error:
        raise unreadable(path, error) from error


def _checked(path: Path, line: str) -> str:
    if "\0" in line:
        raise UsageError(f"{path} is binary", "give text: a block per line, or a CSV table")
    if len(line) > _LONGEST:
        raise UsageError(f"{path} has a line of more than {_LONGEST} characters", "write one block per line")
    return line


def _blocks(path: Path, lines: Iterator[str]) -> Iterator[Written]:
    first = next(lines, "")
    names = [name.strip() for name in next(csv.reader([first]), [])]
    column = next((name for name in CODE_COLUMNS if name in names), "")
    if column:
        at = names.index(column)
        reader = csv.reader(lines, skipinitialspace=True)
        try:
            for row in reader:
                if len(row) > at and row[at].strip():
                    yield Written(row[at].strip(), str(reader.line_num + 1))
        except csv.Error as error:
            raise UsageError(f"{path}, line {reader.line_num + 1}: no CSV ({error})") from error
        return
    for number, line in enumerate(chain((first,), lines), 1):
        if (text := line.strip()) and not text.startswith("#"):
            yield Written(text, str(number))


def counted_lines(path: Path) -> int:
    """How many lines a file has, about as many as blocks; of a pipe 0, since what is read of it is gone.

    Raises UsageError for one that cannot be read.
    """
    try:
        if path.is_fifo() or path.is_char_device():
            return 0
        with path.open("rb") as file:
            return sum(piece.count(b"\n") for piece in pieces(file))
    except OSError as error:
        raise unreadable(path, error) from error


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """What is left of a file, some of it at a time."""
    return iter(partial(file.read, DEFAULT_BUFFER_SIZE), b"")
