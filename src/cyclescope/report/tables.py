"""The one printer of tables, on the terminal and in files: words to the left, numbers to the right.

It is no library's: importing one takes a third as long as a whole analysis.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_BETWEEN = "  "
LINE_WIDTH = 100  # columns of a line on a terminal


def table(rows: Sequence[Sequence[str]], words: int) -> str:
    """Rows of cells, the first one the head, as text; the first `words` columns are words."""
    return "".join(f"{line}\n" for line in aligned(rows, range(words), _BETWEEN))


def aligned(rows: Sequence[Sequence[str]], left: Collection[int], indent: str = "") -> list[str]:
    """A line for each row, as wide as its cells need; cells of the columns `left` begin below each other.

    Those of other columns end below each other.
    """
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [(indent + _BETWEEN.join(_cells(row, widths, left))).rstrip() for row in rows]


def _cells(row: Sequence[str], widths: Sequence[int], left: Collection[int]) -> list[str]:
    padding = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
    return [
        cell + space if column in left else space + cell
        for column, (cell, space) in enumerate(zip(row, padding, strict=True))
    ]


def _width(cell: str) -> int:
    """Columns of a terminal that a text takes: two for a letter of Chinese, none for an accent."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len  # has the tables of Unicode

    return cell_len(cell)
