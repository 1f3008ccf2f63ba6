"""Time of `cyclescope --help`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.lib.common import Check, parser, present
from benchmarks.lib.processes import command, environment, median_seconds

TARGET = 0.150


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
    ]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--times", type=int, default=20)
    chosen = options.parse_args()
    present("startup", lambda: startup(chosen.times))


if __name__ == "__main__":
    main()
