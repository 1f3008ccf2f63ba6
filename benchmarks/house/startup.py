"""Time of `cyclescope --help` and of other starts, and of a table of the one printer beside one of rich."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.lib.common import Check, parser, present
from benchmarks.lib.processes import command, environment, median_seconds

TARGET = 0.150
STARTS = ("show --help", "measure --help", "compare --help", "forms imul", "machines list")
_ROWS = "[[f'{row * column:.2f}' for column in range(8)] for row in range(200)]"
TABLES = {
    "here": f"from cyclescope.report.tables import table\nprint(table({_ROWS}, 1))",
    "by rich": f"""
from rich.console import Console
from rich.table import Table
table = Table(box=None)
for number in range(8):
    table.add_column(str(number))
for row in {_ROWS}:
    table.add_row(*row)
Console(width=120).print(table)
""",
}


def startup(times: int = 20) -> Sequence[Check]:
    """Median of several starts, beside the interpreter's own."""
    least, median, most = median_seconds(command("--help"), times, environment())
    bare = median_seconds([sys.executable, "-c", "pass"], times, environment())[1]
    return [
        Check(
            "`cyclescope --help`",
            f"{median * 1000:.0f} ms median of {times} ({least * 1000:.0f} to {most * 1000:.0f} ms)",
            f"<= {TARGET * 1000:.0f} ms",
            median <= TARGET,
        ),
        Check("of that, the interpreter alone", f"{bare * 1000:.0f} ms"),
        *(_start(words, times) for words in STARTS),
        *(_printing(name, code, times) for name, code in TABLES.items()),
    ]


def _start(words: str, times: int) -> Check:
    """What another command takes; `tests/unit/cli/test_start.py` bounds what they load."""
    median = median_seconds(command(*words.split()), times, environment())[1]
    return Check(f"`cyclescope {words}`", f"{median * 1000:.0f} ms")


def _printing(name: str, code: str, times: int) -> Check:
    """What a process takes that prints a table of 200 rows and 8 columns."""
    median = median_seconds([sys.executable, "-c", code], times, environment())[1]
    return Check(f"a table of 200 rows, {name}", f"{median * 1000:.0f} ms")


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--times", type=int, default=20)
    chosen = options.parse_args()
    present("startup", lambda: startup(chosen.times))


if __name__ == "__main__":
    main()
