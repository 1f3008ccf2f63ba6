"""Tables on the terminal and in files: words to the left, numbers to the right."""

from __future__ import annotations

import io
from collections.abc import Sequence

WIDEST = 400  # columns: tables are never folded, a terminal that is narrower scrolls or wraps


def table(rows: Sequence[Sequence[str]], words: int) -> str:
    """Rows of cells, the first one the head, as text; the first `words` columns are words."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, padding=(0, 0, 0, 2), header_style="", show_edge=False)
    for number, name in enumerate(rows[0]):
        grid.add_column(Text(name), justify="left" if number < words else "right", no_wrap=True)
    for row in rows[1:]:
        grid.add_row(*map(Text, row))
    stream = io.StringIO()
    Console(file=stream, width=WIDEST, color_system=None).print(grid)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())
